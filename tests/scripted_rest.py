"""The pull requests of a scripted host as the REST of GitLab and of Gitea has them.

Made from the documentation and the sources of both, of which no server was run: the shapes are
theirs, the fields those that `queen` reads and some more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from scripted_host import ScriptedHost

SLUG = "me/shop"
_IDS = {"ann": 21, "me": 22, "mallory": 23}
_HERE = 3
"""The number of the project; those of forks follow it."""


class Refused(Exception):
    """The host answers, and refuses."""


def gitlab(host: ScriptedHost, method: str, path: str, said: Mapping[str, Any]) -> tuple[int, Any]:
    """Returns the status and the answer of GitLab."""
    parts = urlsplit(path)
    asked = parse_qs(parts.query)
    top = re.fullmatch(r"/(users|projects/([^/]+))(/.*)?", parts.path)
    assert top is not None, path
    if top[1] == "users":
        name = asked["username"][0]
        return 200, [] if name in host.strangers else [{"id": _IDS[name], "username": name}]
    slug, rest = _slug(host, unquote(top[2])), top[3] or ""
    if not slug:
        return 404, {"message": "404 Project Not Found"}
    if not rest:
        return 200, {"id": _project(host, slug), "path_with_namespace": slug}
    if rest == "/members/all":
        known = {number: name for name, number in _IDS.items() if name != "mallory"}
        ids = [int(each) for each in asked["user_ids[]"]]
        return 200, [{"id": x, "username": known[x], "access_level": 40} for x in ids if x in known]
    if jobs := re.fullmatch(r"/pipelines/(\d+)/jobs", rest):
        return 200, [*map(_job, host.pulls[int(jobs[1])]["checks"].items())]
    if train := re.fullmatch(r"/merge_trains/merge_requests/(\d+)", rest):
        pull = host._refreshed(int(train[1]))
        if not host.queue or said["sha"] != pull["head"]:
            return 403, {"message": "403 Forbidden"}
        pull["queued"] = True
        return 201, []
    if rest == "/merge_requests" and method == "POST":
        fork = slug if slug != SLUG else ""
        head = f"{fork.partition('/')[0]}:{said['source_branch']}".removeprefix(":")
        assert said.get("target_project_id") == (_HERE if fork else None)
        draft = said["title"].startswith("Draft: ")
        words = {"title": said["title"], "body": said["description"], "draft": draft}
        return 201, _request(host, host.opened(head, said["target_branch"], **words))
    if rest == "/merge_requests":
        numbers = [int(each) for each in asked.get("iids[]", host.pulls)]
        shown = [_request(host, each) for each in numbers if each in host.pulls]
        for name in ("source_branch", "target_branch"):
            shown = [x for x in shown if x[name] == asked.get(name, [x[name]])[0]]
        state = asked["state"][0]
        return 200, [each for each in shown if state in ("all", each["state"])]
    found = re.fullmatch(r"/merge_requests/(\d+)(?:/(\w+))?(?:/([\w.]+)/notes)?", rest)
    assert found is not None, path
    return _of_request(host, method, int(found[1]), found[2], found[3], said)


def _of_request(
    host: ScriptedHost, method: str, number: int, what: str | None, thread: str | None,
    said: Mapping[str, Any],
) -> tuple[int, Any]:  # fmt: skip
    pull = host._refreshed(number)
    if what is None:
        assert method == "PUT"
        if said.get("state_event") == "close":
            host.close(number)
        pull["asked"] |= {name: said[name] for name in said if name != "state_event"}
        return 200, _request(host, number)
    if what == "merge":
        host.merge_if_it_may(number, said["sha"], "SQUASH" if said["squash"] else "MERGE")
        return 200, _request(host, number)
    if what == "pipelines":
        states = [each["state"] for each in pull["checks"].values()]
        state = "failed" if "FAILURE" in states else "running" if "PENDING" in states else "success"
        one = {"id": number, "sha": pull["head"], "status": state, "project_id": _HERE}
        one |= {"ref": pull["branch"], "web_url": f"https://gitlab.com/{SLUG}/-/pipelines/{number}"}
        return 200, [one] if states else []
    if what == "notes":
        notes = [_note(each) for each in pull["comments"]]
        return 200, [{**_note({"body": "closed"}), "system": True}, *reversed(notes)]
    assert what == "discussions"
    if thread is not None:
        (found,) = (each for each in pull["threads"] if each["id"] == thread)
        found["comments"]["nodes"].append({"body": said["body"], "author": {"login": "me"}})
        return 201, {}
    alone = [x for x in pull["reviews"] if x["body"]]
    return 200, [
        *({"id": "d", "individual_note": True, "notes": [_note(each)]} for each in alone),
        *map(_discussion, pull["threads"]),
    ]


def _slug(host: ScriptedHost, said: str) -> str:
    names = [SLUG, *host.forks]
    return next((x for x in names if said in (x, str(_project(host, x)))), "")


def _project(host: ScriptedHost, slug: str) -> int:
    return _HERE + [SLUG, *host.forks].index(slug)


def _request(host: ScriptedHost, number: int) -> dict[str, Any]:
    pull = host._refreshed(number)
    states = {"OPEN": "opened", "MERGED": "merged", "CLOSED": "closed"}
    merged = pull.get("merged")
    parents = host.git("rev-list", "--parents", "-1", merged).split() if merged else []
    is_merge = len(parents) > 2
    return {
        "id": 7_000 + number, "iid": number, "state": states[pull["state"]],
        "title": pull["title"], "draft": pull["draft"], "sha": pull["head"],
        "source_branch": pull["branch"], "target_branch": pull["base"],
        "source_project_id": _project(host, pull["fork"] or SLUG), "target_project_id": _HERE,
        "merge_commit_sha": merged if is_merge else None,
        "squash_commit_sha": None if is_merge else merged,
        "web_url": f"https://gitlab.com/{SLUG}/-/merge_requests/{number}",
        "merge_when_pipeline_succeeds": pull["queued"],
        "has_conflicts": host._merge_state(pull) == "DIRTY",
        "detailed_merge_status": _detail(host, pull),
    }  # fmt: skip


def _detail(host: ScriptedHost, pull: dict[str, Any]) -> str:
    if pull["state"] != "OPEN":
        return "not_open"
    states = {"UNKNOWN": "checking", "DIRTY": "conflict", "DRAFT": "draft_status"}
    state = host._merge_state(pull)
    decisions = {"CHANGES_REQUESTED": "requested_changes", "REVIEW_REQUIRED": "not_approved"}
    blocked = decisions.get(host._decision(pull) or "", "ci_must_pass")
    return states.get(state, blocked if state == "BLOCKED" else "mergeable")


def _note(said: Mapping[str, Any]) -> dict[str, Any]:
    login = said.get("author", {}).get("login", "me")
    author = {"id": _IDS[login], "username": login}
    return {"id": abs(hash(said.get("id"))) % 10**6, "body": said["body"], "author": author,
            "system": False, "resolvable": False}  # fmt: skip


def _discussion(thread: Mapping[str, Any]) -> dict[str, Any]:
    notes = [_note(each) for each in thread["comments"]["nodes"]]
    place = {"new_path": thread["path"], "new_line": thread["line"], "old_line": None}
    for each in notes:
        each |= {"type": "DiffNote", "resolvable": True, "position": place}
        each |= {"resolved": thread["isResolved"]}
    return {"id": thread["id"], "individual_note": False, "notes": notes}


def _job(check: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    name, said = check
    states = {"SUCCESS": "success", "FAILURE": "failed", "PENDING": "running"}
    return {
        "id": said["id"], "name": name, "status": states[said["state"]], "allow_failure": False,
        "web_url": f"https://gitlab.com/{SLUG}/-/jobs/{said['id']}",
    }  # fmt: skip


def gitea(host: ScriptedHost, method: str, path: str, said: Mapping[str, Any]) -> tuple[int, Any]:
    """Returns the status and the answer of Gitea."""
    parts = urlsplit(path)
    asked = parse_qs(parts.query)
    top = re.fullmatch(rf"/repos/{SLUG}(/.*)?", parts.path)
    assert top is not None, path
    rest = top[1] or ""
    if not rest:
        return 200, {"id": _HERE, "full_name": SLUG}
    if rest == "/assignees":
        return 200, [{"login": name} for name in ("ann", "me")]
    if rest == "/branches/main":
        rules = {"required_approvals": host.approvals, "status_check_contexts": host.required}
        return 200, {"name": "main", "enable_status_check": bool(host.required), **rules}
    if status := re.fullmatch(r"/commits/(\w+)/status", rest):
        pulls = [each for each in host.pulls.values() if each["head"] == status[1]]
        states = {"SUCCESS": "success", "FAILURE": "failure", "PENDING": "pending"}
        return 200, {"statuses": [
            {"id": each["id"], "context": name, "status": states[each["state"]],
             "target_url": f"/{SLUG}/actions/runs/1/jobs/0"}
            for pull in pulls[-1:] for name, each in pull["checks"].items()
        ]}  # fmt: skip
    if rest == "/pulls" and method == "POST":
        draft = said["title"].startswith("WIP:")
        words = {"title": said["title"], "body": said["body"], "draft": draft}
        return 201, _pull(host, host.opened(said["head"], said["base"], **words))
    if rest == "/pulls":
        shown = [_pull(host, each) for each in sorted(host.pulls, reverse=True)]
        bases = asked.get("base_branch")
        state = asked["state"][0]
        return 200, [
            each for each in shown
            if state in ("all", each["state"]) and (not bases or each["base"]["ref"] in bases)
        ]  # fmt: skip
    found = re.fullmatch(r"/(?:pulls|issues)/(\d+)(?:/(\w+))?(?:/(\d+)/comments)?", rest)
    assert found is not None, path
    return _of_pull(host, method, int(found[1]), found[2], found[3], said)


def _of_pull(
    host: ScriptedHost, method: str, number: int, what: str | None, review: str | None,
    said: Mapping[str, Any],
) -> tuple[int, Any]:  # fmt: skip
    if number not in host.pulls:
        return 404, {"message": "The target couldn't be found."}
    pull = host._refreshed(number)
    if what is None:
        if method == "PATCH" and said == {"state": "closed"}:
            host.close(number)
        return 200, _pull(host, number)
    if what == "merge":
        host.merge_if_it_may(number, said["head_commit_id"], said["Do"].upper())
        return 200, None
    if what == "comments":
        return 200, [_comment(each) for each in pull["comments"]]
    if what in ("requested_reviewers", "labels"):
        for name, each in said.items():
            if {*each} & host.strangers:
                return 404, {"message": "user does not exist"}
            pull["asked"].setdefault(name, []).extend(each)
        return 201, []
    assert what == "reviews"
    if method == "POST":
        (comment,) = said["comments"]
        place = (comment["path"], comment["new_position"])
        (found,) = (x for x in pull["threads"] if (x["path"], x["line"]) == place)
        found["comments"]["nodes"].append({"body": comment["body"], "author": {"login": "me"}})
        return 200, {}
    if review is not None:
        thread = pull["threads"][int(review) - 1_000]
        place = {"path": thread["path"], "position": thread["line"], "resolver": None}
        return 200, [{**_comment(x), **place} for x in thread["comments"]["nodes"]]
    states = {"CHANGES_REQUESTED": "REQUEST_CHANGES", "COMMENTED": "COMMENT"}
    reviews = [
        {**_comment(each), "state": states.get(each["state"], each["state"]),
         "official": each["author"]["login"] == "ann", "comments_count": 0,
         "dismissed": each["state"] == "DISMISSED"}
        for each in pull["reviews"]
    ]  # fmt: skip
    of_threads = [
        {**_comment(each["comments"]["nodes"][0]), "id": 1_000 + at, "state": "COMMENT",
         "official": False, "comments_count": 1, "dismissed": False, "body": ""}
        for at, each in enumerate(pull["threads"])
    ]  # fmt: skip
    return 200, [*reviews, *of_threads]


def _pull(host: ScriptedHost, number: int) -> dict[str, Any]:
    pull = host._refreshed(number)
    name = pull["fork"] or SLUG
    is_gone = not pull["fork"] and not host.tip(pull["branch"])
    return {
        "id": 9_000 + number, "number": number, "title": pull["title"], "draft": pull["draft"],
        "state": "open" if pull["state"] == "OPEN" else "closed",
        "merged": pull["state"] == "MERGED", "merge_commit_sha": pull.get("merged"),
        "mergeable": host._merge_state(pull) not in ("DIRTY", "DRAFT", "UNKNOWN"),
        "html_url": f"https://git.example.org/{SLUG}/pulls/{number}",
        "base": {"label": pull["base"], "ref": pull["base"]},
        "head": {
            "label": pull["branch"], "sha": pull["head"], "repo": {"full_name": name},
            "ref": f"refs/pull/{number}/head" if is_gone else pull["branch"],
        },
    }  # fmt: skip


def _comment(said: Mapping[str, Any]) -> dict[str, Any]:
    number = abs(hash(said.get("id"))) % 10**6
    return {"id": number, "body": said["body"], "user": {"login": said["author"]["login"]}}


ANSWERS: Mapping[str, Callable[..., tuple[int, Any]]] = {"gitlab": gitlab, "gitea": gitea}
