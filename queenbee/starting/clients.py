"""The command lines of the clients that can be started: headless, with a first prompt, or resumed.

No permission is given that the user did not give: what a client may do unasked is in its own
settings, unless the user says `yolo`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.command_lines import CommandLine, command_line, filled_line, shell_line
from queenbee.core.names import is_name, nearest
from queenbee.core.text import suggested
from queenbee.errors import InvalidInput, MissingPackage
from queenbee.store.droids.spending import Cost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHELL_S = 5.0
_MOST_USD, _MOST_TOKENS = 1e6, 10**12
_DENIED = re.compile(rb'"permission_denials"\s*:\s*\[\s*\{')
_COST = b'"total_cost_usd"'
_TOKENS = re.compile(rb"^tokens used\s+([0-9,]{1,20})\s*$", re.MULTILINE)
"""What Codex ends with."""


@dataclass(frozen=True)
class Client:
    """How a client is started: templates with `{prompt}`, `{session}` and `{options}`."""

    name: str
    headless: Sequence[str]
    resumed: Sequence[str]
    """The same, going on with a session of which the id is known."""
    interactive: Sequence[str]
    yolo: Sequence[str]
    """What lets it do everything unasked."""
    model: str = ""
    """What stands before the model that a sprint bead names, by Claude's names."""
    loops: bool = True
    """Whether it takes the next issue by itself. A program works on one issue and ends."""

    def command(
        self, prompt: str, *, session: str = "", model: str = "", options: Sequence[str] = ()
    ) -> CommandLine:
        """Returns the program and its arguments; with a session, it goes on with that one.

        What is no plain id is not gone on with.
        """
        if not self.loops:
            return shell_line(self.name)
        session = session if is_name(session) else ""
        template = self.resumed if session and self.resumed else self.headless
        if model and self.model:
            options = [*options, f"{self.model}{model}"]
        return filled_line(template, options, prompt=prompt, session=session)

    def opened(self, prompt: str, options: Sequence[str]) -> CommandLine:
        """Returns the program and its arguments for a terminal of its own."""
        if not self.loops:
            return shell_line(self.name)
        return filled_line(self.interactive, options, prompt=prompt)


CLIENTS = {
    each.name: each
    for each in (
        Client(
            "claude",
            ["claude", "{options}", "-p", "{prompt}", "--verbose", "--output-format",
             "stream-json"],
            ["claude", "{options}", "-p", "{prompt}", "--resume", "{session}", "--verbose",
             "--output-format", "stream-json"],
            ["claude", "{options}", "{prompt}"],
            ["--dangerously-skip-permissions"],
            "--model=",
        ),
        Client(
            "codex",
            ["codex", "exec", "{options}", "{prompt}"],
            ["codex", "exec", "{options}", "resume", "{session}", "{prompt}"],
            ["codex", "{options}", "{prompt}"],
            ["--dangerously-bypass-approvals-and-sandbox"],
        ),
        Client(
            "gemini",
            ["gemini", "{options}", "-p", "{prompt}"],
            ["gemini", "{options}", "--resume", "latest", "-p", "{prompt}"],
            ["gemini", "{options}", "-i", "{prompt}"],
            ["--yolo"],
        ),
        Client(
            "opencode",
            ["opencode", "run", "{options}", "{prompt}"],
            ["opencode", "run", "{options}", "--session", "{session}", "{prompt}"],
            ["opencode", "{options}", "--prompt", "{prompt}"],
            [],
        ),
        Client(
            "copilot",
            ["copilot", "{options}", "-p", "{prompt}"],
            ["copilot", "{options}", "--resume", "{session}", "-p", "{prompt}"],
            ["copilot", "{options}", "-i", "{prompt}"],
            ["--allow-all-tools"],
        ),
        Client(
            "qwen",
            ["qwen", "{options}", "-p", "{prompt}"],
            ["qwen", "{options}", "--resume", "{session}", "-p", "{prompt}"],
            ["qwen", "{options}", "-i", "{prompt}"],
            ["--yolo"],
        ),
        Client(
            "kilo",
            ["kilo", "run", "{options}", "{prompt}"],
            ["kilo", "run", "{options}", "--session", "{session}", "{prompt}"],
            ["kilo", "{options}", "--prompt", "{prompt}"],
            ["--auto"],
        ),
    )
}  # fmt: skip


def path_of(env: Mapping[str, str]) -> str:
    """Returns a PATH on which `queen` is."""
    path = env.get("PATH", os.defpath)
    if shutil.which("queen", path=path) is not None:
        return path
    return f"{path}{os.pathsep}{os.path.dirname(sys.executable)}"


def shell_options(client: Client, env: Mapping[str, str]) -> list[str]:
    """Returns what has a client run its commands where `queen` is found.

    Codex asks a login shell, which may make a PATH of its own.
    """
    asked = command_line(env.get("SHELL") or "/bin/sh", "-lc", "command -v queen")
    whole = {**env, "PATH": path_of(env)}
    with suppress(OSError, subprocess.TimeoutExpired):
        if (
            client.name == "codex"
            and subprocess.run(
                asked, env=whole, capture_output=True, timeout=_SHELL_S, check=False
            ).returncode
        ):
            return ["-c", "allow_login_shell=false"]
    return []


LOOP = (
    "You are {name}, one of several agents in this repository. Run `queen next`, do what it says "
    "to the end, then run `queen land -m 'WHAT YOU DID' --next`, and go on with the issue that it "
    "prints. Stop when it says that you can.{alone}"
)
ALONE = " Nobody answers questions here."
_NO_PROGRAM = "name one of these clients, or a program that is there, by its path or on the PATH"
_WORD = re.compile(r"[\w.+/][\w.+/-]*", re.ASCII)
"""A word that a shell takes as it is."""
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz")


def installed(env: Mapping[str, str]) -> list[str]:
    """Returns the clients that are on the PATH."""
    return [name for name in CLIENTS if shutil.which(name, path=env.get("PATH"))]


def client_of(command: str, env: Mapping[str, str]) -> Client:
    """Returns the client of a name, or a program for any other command. Raises `MissingPackage`
    for a client that is not installed.
    """
    known = CLIENTS.get(command)
    if known is None and set(command) <= _NAME:
        program, close = shutil.which(command, path=env.get("PATH")), nearest(command, CLIENTS)
        if program is None and close is None and os.path.isfile(command):
            program = f"./{command}"
        own = f"a program of your own: {suggested('queen start --agent', program or '')}"
        named = suggested("queen start --agent", close) if close else _NO_PROGRAM
        raise InvalidInput(
            f"{command!r} is no client that can be started: {', '.join(CLIENTS)}",
            hint=own if program else named,
        )
    words = command.replace(",", " ").split()
    if words[1:] and set(words) <= set(CLIENTS):
        raise InvalidInput(
            f"{command!r} names {len(words)} clients, and no program",
            hint=f"queen start --agent {','.join(words)}",
        )
    if known is None:
        _refuse_program(command.split(" ")[0], env)
        return Client(command, (), (), (), (), loops=False)
    if shutil.which(known.headless[0], path=env.get("PATH")) is None:
        raise MissingPackage(
            f"{command} is not on the PATH",
            hint="install it, or name another client, or a program of your own, with --agent",
        )
    return known


def _refuse_program(program: str, env: Mapping[str, str]) -> None:
    """Raises `InvalidInput` for the first word of a command if no program can be run by it."""
    if os.path.isabs(program) and not os.access(program, os.X_OK):
        if not os.path.exists(program):
            raise InvalidInput(f"there is no {program}", hint="name a program that is there")
        raise InvalidInput(
            f"{program} is no program that can be run",
            hint=f"{suggested('chmod +x', program)}, or name another program",
        )
    if os.path.isfile(program) and not (
        "/" in program or shutil.which(program, path=env.get("PATH"))
    ):
        raise InvalidInput(
            f"{program} is a file here, and not on the PATH",
            hint=suggested("queen start --agent", os.path.abspath(program)),
        )
    if not _begins(program, env):
        raise InvalidInput(
            f"{program} is no program on the PATH, and no client: {', '.join(CLIENTS)}",
            hint=_NO_PROGRAM,
        )


def _begins(word: str, env: Mapping[str, str]) -> bool:
    """Returns whether a shell could begin with this word, which may be one of its own."""
    if not _WORD.fullmatch(word) or "/" in word:
        return True
    asked = shell_line('command -v -- "$1"', "sh", word)
    whole = {**env, "PATH": path_of(env)}
    return subprocess.run(asked, env=whole, capture_output=True, check=False).returncode == 0


def reported_cost(output: bytes) -> Cost:
    """Returns what a run has cost, as its client says at the end of what it prints."""
    lines = (each for each in reversed(output.splitlines()) if _COST in each)
    try:
        said = json.loads(next(lines, b"{}"))
    except (ValueError, RecursionError):
        said = {}
    said = said if isinstance(said, dict) else {}
    usage = said.get("usage")
    counts = usage.items() if isinstance(usage, dict) else ()
    usd: object = said.get("total_cost_usd")
    tokens = [
        count for name, count in counts if name.endswith("_tokens") and type(count) is int
    ] or [int(each.replace(b",", b"") or 0) for each in _TOKENS.findall(output)[-1:]]
    cost_usd = float(usd) if isinstance(usd, int | float) and 0 <= usd < _MOST_USD else 0.0
    return Cost(cost_usd, min(max(0, sum(tokens)), _MOST_TOKENS))


def was_denied(output: bytes) -> bool:
    """Returns whether a client says there that it was refused a permission."""
    return _DENIED.search(output) is not None


def refuse_missing(client: Client, tree: str) -> None:
    """Raises `InvalidInput` for a program that is named from the worktree and is not in it."""
    program = "" if client.loops else client.name.split(" ")[0]
    if (
        "/" in program
        and not os.path.isabs(program)
        and not os.path.exists(os.path.join(tree, program))
    ):
        whole = os.path.abspath(program)
        name_it = suggested("queen start --agent", whole)
        raise InvalidInput(
            f"{program} is not in {tree}, where it would run",
            hint=f"commit it, or give its whole path: {name_it}"
            if os.path.exists(whole)
            else f"write it first: {program} does not exist here either",
        )
