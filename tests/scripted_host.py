"""A code host for tests: GitHub as far as `queen` asks it, over a Unix socket.

Git pushes to a bare repository whose base branch is protected. What people, checks and the host do
is scripted with methods: `check`, `review`, `merge`, `close` and so on. It answers GraphQL as a
host does: it refuses a field that it does not know, and gives null for one that the token may not
read.
Made from public descriptions; it shows what `queen` and `gh` do, and not what GitHub does.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

import scripted_rest
from scripted_issues import ScriptedIssues
from scripted_rest import Refused

SLUG = "me/shop"
_TOKENS = re.compile(r'\.\.\.|\$?\w+|"(?:[^"\\]|\\.)*"|[{}()\[\]:!@,]')
_UPDATE = """#!/bin/sh
test "$1" != refs/heads/main && exit 0
test -e "$(git rev-parse --git-dir)/unprotected" && exit 0
echo "error: GH006: Protected branch update failed for $1." >&2
exit 1
"""
_NAMES = {
    f"GIT_{role}_{what}": text
    for role in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "Host"), ("EMAIL", "host@example.invalid"))
}


class Field:
    """One field of a selection, with its arguments and its own selection."""

    def __init__(self, alias: str, name: str, of: str | None) -> None:
        self.alias, self.name, self.of = alias, name, of
        self.args: dict[str, Any] = {}
        self.below: list[Field] | None = None


def parsed(query: str, variables: Mapping[str, Any]) -> list[Field]:
    """Returns the selection of the one operation of a query."""
    words = [each for each in _TOKENS.findall(query) if each != ","]
    while words[0] != "{":
        words.pop(0)
    words.pop(0)
    return [*_selection(words, variables, None)]


def _selection(words: list[str], variables: Mapping[str, Any], of: str | None) -> Iterator[Field]:
    while (word := words.pop(0)) != "}":
        if word == "...":
            _, kind, _ = words.pop(0), words.pop(0), words.pop(0)
            yield from _selection(words, variables, kind)
            continue
        field = Field(word, word, of)
        if words[0] == ":":
            field.name = words[1]
            del words[:2]
        if words[0] == "(":
            words.pop(0)
            while (name := words.pop(0)) != ")":
                words.pop(0)
                field.args[name] = _value(words, variables)
        if words[0] == "{":
            words.pop(0)
            field.below = [*_selection(words, variables, None)]
        yield field


def _value(words: list[str], variables: Mapping[str, Any]) -> Any:
    word = words.pop(0)
    if word == "[":
        found = []
        while words[0] != "]":
            found.append(_value(words, variables))
        words.pop(0)
        return found
    if word.startswith("$"):
        return variables.get(word[1:])
    return int(word) if word.isdecimal() else word


class ScriptedHost(ThreadingMixIn, UnixStreamServer):
    """The host of one bare repository, until `stop`."""

    daemon_threads = True

    def __init__(self, repo: Path, socket: Path) -> None:
        self.repo, self.lock = repo, threading.RLock()
        self.requests: list[str] = []
        """What was asked, each as its text."""
        self.failures: list[tuple[int, dict[str, str]]] = []
        """With which status and headers the next requests fail."""
        self.away = False
        self.garbled = ""
        """What it answers to everything, whatever it does."""
        self.changes = ""
        """What becomes of the next change: `refused`, or `lost`, where only its answer is."""
        self.required, self.approvals, self.strict = ["ci"], 1, False
        self.denied: set[str] = set()
        """The fields that the token may not read."""
        self.unknown: set[str] = set()
        """Those that an older host does not know."""
        self.before: Callable[[], object] | None = None
        """What happens right before the next request is answered."""
        self.queue = False
        """Whether what is merged has to go through a merge queue."""
        self.deletes_branches = False
        self.strangers: set[str] = set()
        """Whose review cannot be asked for."""
        self.kind = "github"
        """Whose REST it has; GraphQL only as `github`."""
        self.forks: dict[str, Path] = {}
        """The bare repositories of forks, by name: `ann/shop`."""
        self.pulls: dict[int, dict[str, Any]] = {}
        self.issues = ScriptedIssues(SLUG)
        hook = repo / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_UPDATE)
        hook.chmod(0o755)
        super().__init__(str(socket), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a client that has gone: it had what it wanted."""
        if not isinstance(sys.exception(), BrokenPipeError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def git(
        self, *words: str, stdin: str = "", cwd: Path | str | None = None, ok: bool = False
    ) -> str:
        """Runs git in the bare repository; returns what it prints, or nothing if it may fail."""
        ran = subprocess.run(
            ["git", *words], cwd=cwd or self.repo, input=stdin, text=True, capture_output=True,
            env={**os.environ, **_NAMES}, check=False,
        )  # fmt: skip
        if ran.returncode and not ok:
            raise Refused(ran.stderr.strip() or ran.stdout.strip())
        return ran.stdout.strip() if ran.returncode == 0 else ""

    def tip(self, branch: str) -> str:
        """Returns the commit of a branch, or nothing."""
        return self.git("rev-parse", "-q", "--verify", f"refs/heads/{branch}", ok=True)

    # What people, checks and the host do.

    def pull(self, branch: str, **more: Any) -> dict[str, Any]:
        """Returns a new pull request for a branch; `fork`: of that repository."""
        head = self._fetched(more["fork"], branch) if "fork" in more else self.tip(branch)
        return {
            "title": "", "body": "", "draft": False, "state": "OPEN", "branch": branch,
            "base": "main", "head": head, "checks": {}, "reviews": [], "threads": [],
            "comments": [], "queued": False, "auto": "", "asked": {}, "fork": "", **more,
        }  # fmt: skip

    def _fetched(self, fork: str, branch: str) -> str:
        """Returns the commit of a branch of a fork, once it is here; nothing if it is gone."""
        if fork not in self.forks:
            return self.tip(branch)
        there = str(self.forks[fork])
        self.git("fetch", "-q", there, f"+refs/heads/{branch}:refs/forks/{fork}", ok=True)
        return self.git("-C", there, "rev-parse", "-q", "--verify", f"refs/heads/{branch}", ok=True)

    def base(self, path: str, text: str) -> str:
        """Has somebody else put a file on the base branch; returns the commit."""
        with tempfile.TemporaryDirectory() as folder:
            tree = f"{folder}/w"
            self.git("worktree", "add", "-q", "--detach", tree, "main")
            Path(tree, path).write_text(text)
            self.git("add", "-A", cwd=tree)
            self.git("commit", "-qm", f"somebody changes {path}", cwd=tree)
            head = self.git("rev-parse", "HEAD", cwd=tree)
            self.git("worktree", "remove", "--force", tree)
        self.git("update-ref", "refs/heads/main", head)
        return head

    def check(self, number: int, state: str, name: str = "ci", log: str = "") -> None:
        """Has a check end, or begin (PENDING)."""
        pull = self._refreshed(number)
        pull["checks"][name] = {"state": state, "log": log, "id": 100 * number + len(name)}

    def review(
        self, number: int, state: str, body: str = "", by: str = "ann", role: str = "MEMBER"
    ) -> None:
        """Has somebody review it: APPROVED, CHANGES_REQUESTED or COMMENTED."""
        said = {
            "id": f"R{number}.{len(self.pulls[number]['reviews'])}",
            "state": state,
            "body": body,
        }
        said |= {
            "author": {"login": by},
            "authorAssociation": role,
            "oid": self.pulls[number]["head"],
        }
        self.pulls[number]["reviews"].append(said)

    def comment(
        self, number: int, body: str, path: str, line: int, by: str = "ann", role: str = "MEMBER"
    ) -> None:
        """Has somebody begin a thread at a line."""
        threads = self.pulls[number]["threads"]
        comment = {"id": f"C{number}.{len(threads)}", "body": body, "author": {"login": by}}
        comment |= {"authorAssociation": role}
        threads.append({"id": f"T{number}.{len(threads)}", "isResolved": False, "isOutdated": False,
                        "path": path, "line": line, "comments": {"nodes": [comment]}})  # fmt: skip

    def close(self, number: int, body: str = "", role: str = "OWNER") -> None:
        """Closes it, with a comment."""
        comments = self.pulls[number]["comments"]
        if body:
            said = {"id": f"I{number}.{len(comments)}", "body": body, "author": {"login": "ann"}}
            comments.append({**said, "authorAssociation": role})
        self.pulls[number]["state"] = "CLOSED"

    def reopen(self, number: int) -> None:
        self.pulls[number]["state"] = "OPEN"

    def merge(self, number: int, method: str = "SQUASH") -> str:
        """Merges it, as a person's click does, whatever is required; returns the commit."""
        pull = self._refreshed(number)
        old, head, title = self.tip("main"), pull["head"], f"{pull['title']} (#{number})"
        if method == "REBASE":
            with tempfile.TemporaryDirectory() as folder:
                self.git("worktree", "add", "-q", "--detach", f"{folder}/w", head)
                self.git("rebase", "-q", "--force-rebase", old, cwd=f"{folder}/w")
                new = self.git("rev-parse", "HEAD", cwd=f"{folder}/w")
                self.git("worktree", "remove", "--force", f"{folder}/w")
        else:
            tree = self.git("merge-tree", "--write-tree", old, head).splitlines()[0]
            parents = ["-p", old, *(["-p", head] if method == "MERGE" else [])]
            new = self.git(
                "commit-tree", tree, *parents, "-F", "-", stdin=f"{title}\n\n{pull['body']}\n"
            )
        self.git("update-ref", "refs/heads/main", new, old)
        pull.update(state="MERGED", merged=new, queued=False, auto="")
        if self.deletes_branches:
            self.git("update-ref", "-d", f"refs/heads/{pull['branch']}")
        return new

    # What it says.

    def _refreshed(self, number: int) -> dict[str, Any]:
        """Returns a pull request after it has followed pushes, as on each push."""
        pull = self.pulls[number]
        head = (
            self._fetched(pull["fork"], pull["branch"])
            if pull["fork"]
            else self.tip(pull["branch"])
        )
        if pull["state"] == "OPEN" and not head:
            pull["state"] = "CLOSED"
        elif pull["state"] == "OPEN" and head != pull["head"]:
            pull["head"], pull["checks"] = head, {}
            for each in pull["reviews"]:
                each["state"] = "DISMISSED" if each["state"] == "APPROVED" else each["state"]
        return pull

    def _decision(self, pull: Mapping[str, Any]) -> str | None:
        last = {
            x["author"]["login"]: x["state"] for x in pull["reviews"] if x["state"] != "COMMENTED"
        }
        if "CHANGES_REQUESTED" in last.values():
            return "CHANGES_REQUESTED"
        if not self.approvals:
            return None
        approved = list(last.values()).count("APPROVED") >= self.approvals
        return "APPROVED" if approved else "REVIEW_REQUIRED"

    def _merge_state(self, pull: Mapping[str, Any]) -> str:
        if pull["state"] != "OPEN" or pull.get("computing"):
            return "UNKNOWN"
        if not self.git("merge-tree", "--write-tree", "main", pull["head"], ok=True):
            return "DIRTY"
        if pull["draft"]:
            return "DRAFT"
        states = [pull["checks"].get(each, {}).get("state") for each in self.required]
        if self._decision(pull) not in ("APPROVED", None) or any(x != "SUCCESS" for x in states):
            return "BLOCKED"
        if self.strict and self.git("merge-base", "main", pull["head"]) != self.tip("main"):
            return "BEHIND"
        all_ = (each["state"] for each in pull["checks"].values())
        return "CLEAN" if all(each == "SUCCESS" for each in all_) else "UNSTABLE"

    def _shown(self, number: int) -> dict[str, Any]:
        pull = self._refreshed(number)
        runs = [
            {
                "__typename": "CheckRun", "name": name, "databaseId": each["id"],
                "status": "IN_PROGRESS" if each["state"] == "PENDING" else "COMPLETED",
                "conclusion": None if each["state"] == "PENDING" else each["state"],
                "detailsUrl": f"https://github.com/{SLUG}/actions/runs/{number}/job/{each['id']}",
                "isRequired": name in self.required,
            }
            for name, each in pull["checks"].items()
        ]  # fmt: skip
        rollup = {"contexts": {"nodes": runs}} if runs else None
        merged = pull.get("merged")
        return {
            "number": number, "id": f"PR_{number}", "state": pull["state"],
            "isDraft": pull["draft"],
            "url": f"https://github.com/{SLUG}/pull/{number}", "headRefName": pull["branch"],
            "headRefOid": pull["head"], "baseRefName": pull["base"],
            "isCrossRepository": bool(pull["fork"]),
            "headRepository": {"nameWithOwner": pull["fork"] or SLUG},
            "mergeCommit": {"oid": merged} if merged else None,
            "mergeStateStatus": self._merge_state(pull), "reviewDecision": self._decision(pull),
            "isInMergeQueue": pull["queued"],
            "autoMergeRequest": {"mergeMethod": pull["auto"]} if pull["auto"] else None,
            "commits": {"nodes": [{"commit": {"oid": pull["head"], "statusCheckRollup": rollup}}]},
            "reviews": {"nodes": pull["reviews"]}, "reviewThreads": {"nodes": pull["threads"]},
            "comments": {"nodes": pull["comments"]},
        }  # fmt: skip

    def _repository(self) -> dict[str, Any]:
        def pull_request(number: int) -> Any:
            if number not in self.pulls:
                raise Refused(f"Could not resolve to a PullRequest with the number of {number}.")
            return self._shown(number)

        def pull_requests(states: list[str], first: int = 0, last: int = 0, **of: str) -> Any:
            shown = [self._shown(each) for each in self.pulls]
            named = ((each, {name: each[name] for name in of}) for each in shown)
            found = [each for each, has in named if each["state"] in states and has == of]
            return {"nodes": found[:first] if first else found[-last:]}

        return {
            "id": "R_1", "pullRequest": pull_request, "pullRequests": pull_requests,
            "issues": self.issues.graphql,
        }  # fmt: skip

    def _created(self, input: Mapping[str, Any]) -> Any:
        said = {name: input[name] for name in ("title", "body", "draft")}
        number = self.opened(input["headRefName"], input["baseRefName"], **said)
        return {"pullRequest": self._shown(number)}

    def opened(self, head: str, base: str, **said: Any) -> int:
        """Opens one for a branch, or for `ann:BRANCH` of her fork; returns its number."""
        owner, _, branch = head.rpartition(":")
        fork = next((each for each in self.forks if each.startswith(f"{owner}/")), "")
        if owner and not fork:
            raise Refused(f"Head repository of {owner} is not known")
        own = (each for each in self.pulls.values() if each["fork"] == fork)
        if any(x["branch"] == branch and x["state"] == "OPEN" for x in own):
            raise Refused(f"A pull request already exists for {owner or 'me'}:{branch}.")
        made = self.pull(branch, base=base, **said, **({"fork": fork} if fork else {}))
        if not made["head"] or not self.git("rev-list", "-1", f"{base}..{made['head']}", ok=True):
            raise Refused(f"No commits between {base} and {branch}")
        number = len(self.pulls) + 1
        self.pulls[number] = made
        return number

    def _merged(self, input: Mapping[str, Any]) -> Any:
        number = int(input["pullRequestId"].removeprefix("PR_"))
        self.merge_if_it_may(number, input["expectedHeadOid"], input["mergeMethod"])
        return {"pullRequest": self._shown(number)}

    def merge_if_it_may(self, number: int, head: str, method: str) -> None:
        """Merges it, as its author asks for."""
        pull = self._refreshed(number)
        if head != pull["head"]:
            raise Refused("Head branch was modified. Review and try the merge again.")
        if self.queue or self._merge_state(pull) not in ("CLEAN", "UNSTABLE"):
            raise Refused("Repository rule violations found")
        self.merge(number, method)

    def _replied(self, input: Mapping[str, Any]) -> Any:
        thread, text = input["pullRequestReviewThreadId"], input["body"]
        found = [x for pull in self.pulls.values() for x in pull["threads"] if x["id"] == thread]
        if not found:
            raise Refused(f"Could not resolve to a node with the global id of '{thread}'.")
        found[0]["comments"]["nodes"].append(
            {"id": "A", "body": text, "author": {"login": "me"}, "authorAssociation": "OWNER"}
        )
        return {"comment": {"id": "A"}}

    def _closed(self, input: Mapping[str, Any]) -> Any:
        number = int(input["pullRequestId"].removeprefix("PR_"))
        self.close(number)
        return {"pullRequest": self._shown(number)}

    def rest(self, method: str, path: str, said: Mapping[str, Any]) -> tuple[int, object]:
        """Returns the status and the answer of a request by REST: of reviewers, labels, issues;
        of pull requests, as another host has them.
        """
        if self.kind != "github" and "/issues?" not in path:
            try:
                return scripted_rest.ANSWERS[self.kind](self, method, path, said)
            except Refused as error:
                return 409, {"message": str(error)}
        found = re.fullmatch(
            rf"/repos/{SLUG}/(pulls/(\d+)/requested_reviewers|issues/(\d+)/labels)", path
        )
        if method != "POST" or found is None:
            return self.issues.rest(method, path, said)
        asked = self.pulls[int(found[2] or found[3])]["asked"]
        for name, each in said.items():
            if unknown := {*each} & self.strangers:
                message = f"Reviews may only be requested from collaborators: {min(unknown)}"
                return 422, {"message": message}
            asked.setdefault(name, []).extend(each)
        return 201, {}

    def _enqueued(self, input: Mapping[str, Any]) -> Any:
        pull = self.pulls[int(input["pullRequestId"].removeprefix("PR_"))]
        if not self.queue or input["expectedHeadOid"] != pull["head"]:
            raise Refused("Merge queue is not enabled, or the head was modified")
        pull["queued"] = True
        return {"mergeQueueEntry": {"id": "MQE_1"}}

    def answered(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what the host answers to a request."""
        fields = parsed(query, variables)
        if unknown := sorted(_names(fields) & self.unknown):
            error = {"message": f"Field '{unknown[0]}' doesn't exist", "path": ["query"]}
            return {"errors": [{**error, "extensions": {"code": "undefinedField"}}]}
        errors: list[dict[str, Any]] = []
        root = {
            "repository": lambda owner, name: self._repository(),
            "createPullRequest": self._created,
            "mergePullRequest": self._merged,
            "closePullRequest": self._closed,
            "addPullRequestReviewThreadReply": self._replied,
            "enqueuePullRequest": self._enqueued,
        }
        data = self._cut(root, fields, [], errors)
        return {"data": data, **({"errors": errors} if errors else {})}

    def _cut(
        self, data: Any, fields: list[Field] | None, path: list[Any], errors: list[Any]
    ) -> Any:
        if isinstance(data, list):
            return [self._cut(x, fields, [*path, at], errors) for at, x in enumerate(data)]
        if not isinstance(data, dict) or fields is None:
            return data
        answer: dict[str, Any] = {}
        for field in fields:
            if field.of and data.get("__typename") != field.of:
                continue
            here = [*path, field.alias]
            if field.name not in data:
                raise AssertionError(f"the host does not know {field.name}")
            value: Any = data[field.name]
            try:
                if field.name in self.denied:
                    raise Refused("Resource not accessible by personal access token")
                if callable(value):
                    value = value(**field.args)
            except Refused as error:
                errors.append({"type": "FORBIDDEN", "path": here, "message": str(error)})
                value = None
            answer[field.alias] = self._cut(value, field.below, here, errors)
        return answer


def _names(fields: list[Field]) -> set[str]:
    return {x.name for x in fields}.union(*(_names(x.below) for x in fields if x.below))


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedHost
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *words: object) -> None:
        pass

    def do_POST(self) -> None:
        said = self._said()
        if self.path != "/graphql":
            self._rest("POST", said)
            return
        query = " ".join(said["query"].split())
        variables = said.get("variables") or {}
        is_change = query.startswith("mutation")
        self._answer(query, is_change, lambda: (200, self.server.answered(query, variables)))

    def do_PATCH(self) -> None:
        self._rest("PATCH", self._said())

    def do_PUT(self) -> None:
        self._rest("PUT", self._said())

    def do_GET(self) -> None:
        """The log of a job, or all else by REST."""
        if not self.path.endswith(("/logs", "/trace")):
            self._rest("GET", {})
            return
        host, job = self.server, self.path.rpartition("/jobs/")[2].partition("/")[0]
        with host.lock:
            checks = (each for pull in host.pulls.values() for each in pull["checks"].values())
            log = next((each["log"] for each in checks if str(each["id"]) == job), None)
        self._send(200 if log is not None else 404, log or "", {})

    def _rest(self, method: str, said: Mapping[str, Any]) -> None:
        rest = self.server.rest
        request = f"{method} {self.path}"
        self._answer(request, method != "GET", lambda: rest(method, self.path, said))

    def _answer(self, request: str, is_change: bool, act: Callable[[], tuple[int, object]]) -> None:
        """Does what was asked for and answers, if nothing is to go wrong."""
        host = self.server
        with host.lock:
            host.requests.append(request)
            before, host.before = host.before, None
            if before is not None:
                before()
            becomes = host.changes if is_change else ""
            if becomes == "lost":
                act()
            if host.away or becomes:
                host.changes = ""
                self._send(502, {"message": "Bad Gateway"}, {})
            elif self.headers.get("Authorization") in (None, "token bad"):
                self._send(401, {"message": "Bad credentials"}, {})
            elif host.failures:
                status, headers = host.failures.pop(0)
                self._send(status, {"message": "You have exceeded a rate limit"}, headers)
            else:
                status, answer = act()
                self._send(status, host.garbled or answer, {})

    def _said(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _send(self, status: int, answer: object, headers: Mapping[str, str]) -> None:
        data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


_CLIENT = """#!{python}
import http.client, json, os, socket, sys
if sys.argv[1:3] == ["logins", "list"]:
    print(json.dumps([{{"name": "work", "url": "https://git.example.org"}}]))
    sys.exit(0)
assert sys.argv[1] == "api" and sys.argv[-2] == "--", sys.argv
args = dict(x[2:].partition("=")[::2] for x in sys.argv[2:-2])
of_tea = {{"include", "login", "data", "method"}}
known = of_tea if "login" in args else {{"include", "hostname", "input", "method"}}
assert args.keys() <= known, sys.argv
if not os.environ.get("GH_TOKEN"):
    sys.exit(4)
link = http.client.HTTPConnection("host")
link.sock = socket.socket(socket.AF_UNIX)
try:
    link.sock.connect({socket!r})
except OSError as error:
    sys.exit(f"error connecting to api.github.com: {{error}}")
file = args.get("input") or args.get("data", "").removeprefix("@")
body = open(file, "rb").read() if file else None
method = args.get("method") or ("POST" if body is not None else "GET")
token = {{"Authorization": "token " + os.environ["GH_TOKEN"]}}
link.request(method, "/" + sys.argv[-1], body, token)
answer = link.getresponse()
if "include" in args:
    where = sys.stderr if "login" in args else sys.stdout
    print("HTTP/2.0", answer.status, answer.reason, file=where)
    for name, value in answer.getheaders():
        print(f"{{name}}: {{value}}\\r", file=where)
    print("\\r", file=where)
said = answer.read().decode()
print(said)
failed = "errors" in json.loads(said) if sys.argv[-1] == "graphql" else answer.status >= 400
sys.exit(1 if answer.status >= 400 or failed else 0)
"""
REAL = "QUEEN_TEST_GH"
"""The variable that names a real `gh`, for `make host`."""


def put_gh(
    folder: Path, socket: Path, setenv: Callable[[str, str], None], *, path: str = ""
) -> None:
    """Puts the clients of code hosts first in the path, which talk to a socket: a small program
    that does what `queen` needs of them, and the real `gh` if the environment names one.
    """
    folder.mkdir()
    (folder / "config").mkdir()
    (folder / "config" / "config.yml").write_text(f"http_unix_socket: {socket}\nversion: '1'\n")
    for name, value in (("GH_CONFIG_DIR", "config"), ("XDG_CACHE_HOME", "cache")):
        setenv(name, str(folder / value))
    setenv("GH_TOKEN", "x")
    for name in ("gh", "glab", "tea"):
        program, real = folder / name, os.environ.get(REAL)
        if name == "gh" and real:
            program.symlink_to(real)
        else:
            program.write_text(_CLIENT.format(python=sys.executable, socket=str(socket)))
            program.chmod(0o755)
    setenv("PATH", f"{folder}{os.pathsep}{path or os.environ['PATH']}")
