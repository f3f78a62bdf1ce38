"""Whether an agent has started this process: its environment says so, or the client of one runs
above it.

`env -i` takes an environment away, and a pseudo-terminal is a terminal like any other; the
processes above stay who they are. A person in a terminal of an editor has no client above: editors
run theirs beside their terminals. ADR 0041.
"""

from __future__ import annotations

import os
import posixpath
import re
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from queenbee.core.command_lines import command_line
from queenbee.core.names import is_of_agent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CLIENTS = frozenset((
    "aider", "amp", "auggie", "claude", "cline", "codex", "copilot", "crush", "cursor-agent",
    "droid", "gemini", "goose", "kilo", "kilocode", "opencode", "qwen",
))  # fmt: skip
"""Their programs. Not `cursor`, `windsurf` or `code`: editors, with terminals for people."""
_INTERPRETERS = re.compile(r"(?:node|bun|deno|python|bash|sh|env)(?:[-\d.]*)")
_INSTALLED = re.compile(
    r"/node_modules/(?:@anthropic-ai/claude-code|@openai/codex|@google/gemini-cli|@github/copilot"
    r"|@qwen-code/qwen-code|@kilocode/cli|opencode-ai)/|/cursor-agent/versions/"
    r"|/queenbee/starting/processes/minder\.py$"
)
"""Where their packages are, and what minds the agents of `queen start`."""
_TEXT = ("-c", "-e", "-p", "--eval", "--print")
"""What an interpreter runs after these is no file."""
_MOST_ABOVE = 4_096


def is_agent() -> bool:
    """Returns whether an agent has started this process."""
    return is_of_agent(os.environ) or _has_client_above()


@cache
def _has_client_above() -> bool:
    return any(is_client(*each) for each in _above())


def is_client(name: str, argv: Sequence[str]) -> bool:
    """Returns whether a process with this name and command line is a client."""
    program = posixpath.basename(argv[0]) if argv else ""
    files = [name, *argv[:1]]
    if _INTERPRETERS.fullmatch(program):
        for before, word in pairwise(argv):
            if word in _TEXT:
                break
            if not word.startswith("-") or before == "-m":
                files.append(word)
                break
    names = {posixpath.splitext(posixpath.basename(each))[0] for each in files}
    return not _CLIENTS.isdisjoint(names) or any(map(_INSTALLED.search, files))


def _above() -> Iterator[tuple[str, list[str]]]:
    """Yields the name and the command line of each process above us, the nearest first."""
    look, pid = _of_proc if os.path.isdir("/proc/self") else _of_ps().get, os.getppid()
    for _ in range(_MOST_ABOVE):
        found = look(pid) if pid else None
        if found is None:
            return
        pid, name, argv = found
        yield name, argv


def _of_proc(pid: int) -> tuple[int, str, list[str]] | None:
    with suppress(OSError, ValueError):
        with open(f"/proc/{pid:d}/stat", encoding="utf-8", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
        with open(f"/proc/{pid:d}/cmdline", encoding="utf-8", errors="replace") as file:
            argv = file.read().removesuffix("\0").split("\0")
        return int(rest.split()[1]), name, argv
    return None


def _of_ps() -> dict[int, tuple[int, str, list[str]]]:
    """Returns the same of all processes where there is no /proc."""
    import subprocess  # noqa: PLC0415 - start-up

    listed = command_line("ps", "-axww", "-o", "pid=,ppid=,command=")
    found = {}
    with suppress(OSError, subprocess.SubprocessError):
        ran = subprocess.run(listed, capture_output=True, errors="replace", timeout=5, check=False)
        for words in map(str.split, ran.stdout.splitlines()):
            if len(words) > 2 and words[0].isdecimal() and words[1].isdecimal():
                found[int(words[0])] = int(words[1]), "", words[2:]
    return found
