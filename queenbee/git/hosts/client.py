"""A code host, through the user's own client of it: `gh`, `glab` or `tea`, each by its `api`.

A request is in a file. So nothing that anybody wrote is on a command line, no version of a client
decides what an answer looks like, and only the client gets a token.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from queenbee.checks.processes import Program, run_process
from queenbee.core.command_lines import command_line
from queenbee.core.text import quotation, without_escapes
from queenbee.errors import ExternalFailure, Unreachable
from queenbee.git.hosts.repository import GITEA, GITHUB, GITLAB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.checks.processes import ProcessResult
    from queenbee.core.command_lines import CommandLine
    from queenbee.git.hosts.repository import Repository
    from queenbee.store.host_note import HostNote

GRAPHQL = "graphql"
_TIMEOUT_S = 60.0
_MOST_BYTES = 2**24
_SAID_CHARS = 300
_WAIT_S, _LONGEST_WAIT_S = 60.0, 3600.0
"""How long a host is left alone that refuses without saying for how long, and at most."""
_LOGGED_OUT = 4
"""The status of `gh` without any token."""
_REFUSED, _LOGIN, _FORBIDDEN, _LIMIT, _FAILED = 400, 401, 403, 429, 500
_HALVES = "\\ud"
"""With this begins one of the two that JSON writes a character beyond the first 65,536 as."""
_LIMITS = frozenset({"retry-after"})
_MARKDOWN = ("body", "description")
"""The parts of a request to GitLab in which a line such as `/merge` is a command."""
_COMMAND = re.compile(r"^([^\S\n]*)/", re.MULTILINE)


class HostAway(Unreachable):
    """The code host does not answer, or answers no more for now; `until_s` says until when."""

    code = "host_away"


def refuse_early(note: HostNote, now_ms: int, again: str) -> None:
    """Raises `HostAway` while the host wants to be left alone; `again` is the command to repeat."""
    if now_ms < note.until_ms:
        raise HostAway(note.error, hint=f"{again}, later", until_s=note.until_ms / 1000)


class NotLoggedIn(ExternalFailure):
    """The client of the code host has no token, or one that the host does not take."""

    code = "not_logged_in"


class NoClient(ExternalFailure):
    """The client of the code host is not installed."""

    code = "no_host_client"


class HostRefuses(ExternalFailure):
    """The code host does not do what it is asked for; the message has its words."""

    code = "host_refuses"


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a client is called, and how it is kept quiet."""

    program: str
    address: str
    login: str
    environment: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    """Variables that would show requests, or lead them elsewhere."""


_QUIET = {"NO_COLOR": "1"}
_KINDS = {
    GITHUB: _Kind(
        "gh", "https://cli.github.com", "gh auth login --hostname={}",
        _QUIET | {
            "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1",
            "GH_NO_EXTENSION_UPDATE_NOTIFIER": "1", "GH_TELEMETRY": "false",
        },
        frozenset({"GH_DEBUG", "DEBUG", "GH_HOST", "GH_REPO", "GH_FORCE_TTY", "CLICOLOR_FORCE"}),
    ),
    GITLAB: _Kind(
        "glab", "https://gitlab.com/gitlab-org/cli", "glab auth login --hostname={}",
        _QUIET | {
            "NO_PROMPT": "1", "GLAB_CHECK_UPDATE": "false", "GLAB_SEND_TELEMETRY": "false",
        },
        frozenset({
            "DEBUG", "GLAB_DEBUG", "GLAB_DEBUG_HTTP", "GITLAB_HOST", "GITLAB_URI", "GL_HOST",
            "GITLAB_API_HOST", "GITLAB_REPO", "GITLAB_GROUP", "FORCE_HYPERLINKS",
        }),
    ),
    GITEA: _Kind(
        "tea", "https://gitea.com/gitea/tea", "tea login add --url https://{}", _QUIET,
        frozenset({"GITEA_INSTANCE_URL", "GITEA_SERVER_URL"}),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reply:
    """What a host answered."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    value: Any
    """The JSON of its body; None if it is none."""


@dataclass(frozen=True, slots=True)
class Client:
    """The client of the host that a repository is on."""

    repository: Repository
    again: str
    """The command that a hint has the user type again."""

    def ask(
        self, path: str, *, method: str | None = None, body: Mapping[str, object] | None = None
    ) -> Reply:
        """Returns what the host answers to a request, with a status below 400. Raises `HostAway`,
        `NotLoggedIn`, `NoClient` and `HostRefuses`.
        """
        ran = self._run(path, method, body)
        out = (ran.stdout.head + ran.stdout.tail).decode(errors="replace")
        err = without_escapes((ran.stderr.head + ran.stderr.tail).decode(errors="replace"))
        status, headers, said = _parts(out)
        if not status:  # `tea` has the headers elsewhere.
            status, headers, _ = _parts(err)
        # Who may ask for nothing by REST is told so by the status of a limit.
        is_limit = status == _LIMIT or (
            status == _FORBIDDEN and (path == GRAPHQL or bool(_LIMITS & headers.keys()))
        )
        self._refuse(ran, status, headers if is_limit else None, err)
        value = _json(said)
        if status >= _REFUSED and path != GRAPHQL:
            words = value.get("message") or value.get("error") if isinstance(value, dict) else None
            why = quotation(str(words or f"status {status}"), _SAID_CHARS)
            raise HostRefuses(f"{self.repository}: {why}", hint=self._login)
        return Reply(status, headers, value)

    def value(self, path: str, **more: Any) -> Any:
        """Returns the JSON of what the host answers, as `ask` does."""
        return self.ask(path, **more).value

    def maybe(self, path: str) -> Any:
        """Returns the same; None if the token may not read it, or it is not there."""
        with suppress(HostRefuses):
            return self.value(path)
        return None

    def text(self, path: str, most_bytes: int) -> str:
        """Returns the end of a text that the host has, such as a log; empty if it has none."""
        argv = command_line(self._kind.program, "api", values=[path], hostname=self.repository.host)
        ran = self._ran(argv, most_bytes)
        said = ran.stdout.tail or ran.stdout.head
        return without_escapes(said.decode(errors="replace")) if ran.exit_code == 0 else ""

    def unread(self) -> HostAway:
        """Returns the error for an answer that is not what was asked for."""
        what = f"{self.repository} gives no answer that can be read"
        return HostAway(what, hint=f"{self._kind.program} auth status")

    @property
    def _kind(self) -> _Kind:
        return _KINDS[self.repository.kind]

    @property
    def _login(self) -> str:
        return self._kind.login.format(self.repository.host)

    def _refuse(
        self, ran: ProcessResult, status: int, limits: Mapping[str, str] | None, why: str
    ) -> None:
        """Raises what an answer means that is none; `limits` are the headers of one that says that
        no more may be asked.
        """
        host, name = self.repository.host, self._kind.program
        if ran.ended == "not_started":
            raise NoClient(
                f"{name} cannot be run, the client of {host}: {ran.problem}",
                hint=f"install it ({self._kind.address}), then: {self._login}",
            )
        if status == _LOGIN or (ran.exit_code == _LOGGED_OUT and name == "gh"):
            raise NotLoggedIn(f"{name} is not logged in to {host}", hint=self._login)
        if limits is not None or status >= _FAILED or not status:
            reason = f"status {status}" if status else quotation(why, _SAID_CHARS) or ran.ended
            until_s = 0.0 if limits is None else time.time() + _wait_s(limits)
            what = f"{host} does not answer: {reason}"
            raise HostAway(what, hint=f"{self.again}, later", until_s=until_s)

    def _run(
        self, path: str, method: str | None, body: Mapping[str, object] | None
    ) -> ProcessResult:
        if self.repository.kind == GITLAB and body is not None:
            said = {each: as_text(str(body[each])) for each in _MARKDOWN if each in body}
            body = {**body, **said}
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            if body is not None:
                json.dump(body, file)
                file.flush()
            return self._ran(self.argv(path, method, None if body is None else file.name))

    def argv(self, path: str, method: str | None = None, file: str | None = None) -> CommandLine:
        """Returns the command line of a request whose body is in a file, if it has one."""
        named = {} if method is None else {"method": method}
        name = self._kind.program
        if self.repository.kind == GITEA:
            named |= {} if file is None else {"data": f"@{file}"}
            return command_line(
                name, "api", "--include", values=[path], login=self._tea_login(), **named
            )
        named |= {} if file is None else {"input": file}
        host = self.repository.host
        return command_line(name, "api", "--include", values=[path], hostname=host, **named)

    def _tea_login(self) -> str:
        """Returns the name of the login that `tea` has for the host. Raises `NotLoggedIn`."""
        ran = self._ran(command_line("tea", "logins", "list", output="json"))
        self._refuse(ran, 0 if ran.exit_code else 200, None, "tea logins list fails")
        known: Any = None
        with suppress(ValueError, RecursionError):
            known = json.loads(ran.stdout.head + ran.stdout.tail)
        for each in known if isinstance(known, list) else ():
            address = str(each.get("url")) if isinstance(each, dict) else ""
            if address.partition("://")[2].partition("/")[0].lower() == self.repository.host:
                return str(each.get("name"))
        raise NotLoggedIn(f"tea is not logged in to {self.repository.host}", hint=self._login)

    def _ran(self, argv: CommandLine, most_bytes: int = _MOST_BYTES) -> ProcessResult:
        kind = self._kind
        env = {name: value for name, value in os.environ.items() if name not in kind.hidden}
        # Elsewhere, a client would read the config of a repository.
        return run_process(
            Program(argv, os.sep, {**env, **kind.environment}, _TIMEOUT_S, cap_bytes=most_bytes)
        )


def as_text(said: str) -> str:
    """Returns Markdown of which GitLab takes no line for a quick action, which it would run as the
    person: it shows the slash that each begins with, also after a `\\r`, which it takes away.
    """
    return _COMMAND.sub(r"\1\\/", said)


def _json(said: str) -> Any:
    """Returns the JSON of an answer, without halves of characters, which no record can have; None
    if it is none.
    """
    with suppress(ValueError, RecursionError):
        value = json.loads(said)
        if _HALVES not in said.lower():
            return value
        return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return None


def _parts(said: str) -> tuple[int, dict[str, str], str]:
    """Returns the status, the headers and the body of what `api --include` prints."""
    head, _, body = said.replace("\r\n", "\n").partition("\n\n")
    first, *lines = head.split("\n")
    words = first.split()
    is_http = len(words) > 1 and words[0].startswith("HTTP/") and words[1].isdecimal()
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    return (int(words[1]), headers, body) if is_http else (0, {}, said)


def _wait_s(headers: Mapping[str, str]) -> float:
    """Returns how long a host wants to be left alone, in seconds."""
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isdecimal():
        return min(float(after), _LONGEST_WAIT_S)
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return min(max(float(reset) - time.time(), _WAIT_S), _LONGEST_WAIT_S)
    return _WAIT_S
