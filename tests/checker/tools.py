"""A droid whose client calls the tools of `queen mcp`, where there is one for what it asks."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

_FLAGS = {"--shared": "shared", "--force": "force", "--next": "next", "--new": "new"}
_VALUES = {"--ttl": "ttl", "--reason": "reason", "--wait": "wait"}
_VERSION = "2025-06-18"
LONGEST_S = 180
"""No call may take longer: a law counts it as an answer that never came."""
HUNG = 124
_STATUSES = {"invalid_input": 2, "bad_pattern": 2, "ambiguous": 2, "no_actor": 2, "bug": 70}
"""With which the command ends on these; on others with 4 to 8, which no law tells apart."""


def tool_of(words: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """Returns the tool that does what a command does, and its arguments; None if there is none."""
    match list(words):
        case ["reserve", "release", "--all"]:
            return "release", {"all": True}
        case ["reserve", "list" | "renew" | "release", *_]:
            return None
        case ["reserve", pattern, *rest]:
            return _with_flags("reserve", {"patterns": [pattern]}, rest)
        case ["claim" | "complete" as tool, issue, *rest]:
            return _with_flags(tool, {"issue": issue}, rest)
        case ["release", issue]:
            return "release", {"issue": issue}
        case ["msg", "send", to, body, *rest]:
            return _with_flags("send", {"to": to, "body": body}, rest)
        case ["msg", "read"]:
            return "inbox", {"read": True}
        case ["next" | "status" as tool]:
            return tool, {}
    return None


def _with_flags(
    tool: str, given: dict[str, Any], rest: list[str]
) -> tuple[str, dict[str, Any]] | None:
    words = iter(rest)
    for word in words:
        if word in _FLAGS:
            given[_FLAGS[word]] = True
        elif word in _VALUES:
            given[_VALUES[word]] = next(words)
        else:
            return None
    return tool, given


class Client:
    """A client's connection to its server, which is started again when it was killed."""

    def __init__(
        self,
        words: Sequence[str],
        tree: str,
        env: dict[str, str],
        known: Callable[[subprocess.Popen[str]], AbstractContextManager[None]],
    ) -> None:
        self._words = words
        self._tree = tree
        self._env = env
        self._known = known
        """Within it, a process can be killed by somebody else."""
        self._server: subprocess.Popen[str] | None = None
        self._is_greeted = False
        self._number = 0

    def call(self, tool: str, given: dict[str, Any]) -> tuple[int, str, str]:
        """Returns what the command would have ended with and printed."""
        if self._server is None:
            self._is_greeted = False
            self._server = subprocess.Popen(
                self._words, cwd=self._tree, env=self._env, text=True, errors="replace",
                start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
        hung = threading.Timer(LONGEST_S, self._server.kill)
        hung.start()
        with self._known(self._server):
            answer = None
            if self._greeted(self._server):
                asked = {"name": tool, "arguments": given}
                answer = self._asked(self._server, "tools/call", asked)
            in_time = hung.is_alive()
            hung.cancel()
            if answer is not None:
                return _as_printed(answer)
            self._server.kill()  # Its output ended, so it is ending, or was killed.
            self._server.communicate()
            status, self._server = self._server.returncode, None
            return status if in_time else HUNG, "", ""

    def end(self) -> None:
        """Closes the connection, as a client does that ends."""
        if self._server is not None:
            self._server.communicate(timeout=LONGEST_S)

    def _greeted(self, server: subprocess.Popen[str]) -> bool:
        if not self._is_greeted:
            about = {"name": "checker", "version": "1"}
            given = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": about}
            self._is_greeted = self._asked(server, "initialize", given) is not None
        return self._is_greeted

    def _asked(
        self, server: subprocess.Popen[str], method: str, given: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Returns the answer to a request; None if the server ended instead."""
        assert server.stdin is not None and server.stdout is not None
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": given}
        try:
            server.stdin.write(json.dumps(asked) + "\n")
            server.stdin.flush()
        except OSError:
            return None
        for line in server.stdout:
            message = json.loads(line)
            if message.get("id") == self._number:
                return dict(message)
        return None


def _as_printed(answer: dict[str, Any]) -> tuple[int, str, str]:
    if "error" in answer:  # Of the protocol: the tool was not asked.
        return 70, "", json.dumps(answer["error"])
    said = dict(answer["result"]["structuredContent"])
    result = said.pop("result", None)
    if not answer["result"]["isError"]:
        unmet = isinstance(result, dict) and result.get("completed") is False
        return 1 if unmet else 0, json.dumps(result), json.dumps(said)
    return _STATUSES.get(said["error"]["code"], 5), "", json.dumps(said)
