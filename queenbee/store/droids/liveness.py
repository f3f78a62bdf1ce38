"""Processes by name: which one runs us, and whether one that was noted still runs.

A process is noted as text: the machine and the space of process ids that it is in, its id, and when
it began, since ids are used again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from queenbee.core.command_lines import command_line

PROC = os.path.isdir("/proc/self")
"""Whether this system describes its processes in files, as Linux does."""
if not PROC:
    import subprocess

_PASSING = frozenset((
    "sh", "ash", "bash", "busybox", "dash", "fish", "ksh", "tcsh", "zsh", "env", "timeout",
    "queen-hook",
))  # fmt: skip
"""Programs between an agent and its hook, which end with the hook."""
_FARTHEST = 10
_MOST_ABOVE = 4_096
_TRIES = 10
"""So often the processes above are listed anew, if one of them ends meanwhile."""
OUTERMOST = "pid:[4026531836]"
"""The PID namespace that Linux begins with; `PROC_PID_INIT_INO` in its sources. Whoever is in it
sees all processes, and has none above that is in another one.
"""


def caller() -> str:
    """Returns the nearest process above us that is no shell, or "" if that cannot be told."""
    return next((each for name, each in _above() if name not in _PASSING), "")


def callers(most: int = _FARTHEST) -> Iterator[str]:
    """Yields the processes above us, the nearest first."""
    return (each for _, each in _above(most))


def _above(most: int = _FARTHEST) -> Iterator[tuple[str, str]]:
    """Yields the program of each process above us, and the process as it is noted."""
    pid, place = os.getppid(), _place()
    for _ in range(most):
        found = _look(pid) if pid > 1 else None
        if found is None:
            return
        name, above, begun = found
        yield os.path.basename(name), f"{place} {pid} {begun}"
        pid = above


def ids_above() -> tuple[list[int], bool]:
    """Returns the ids of the processes above us, the nearest first, as far as our PID namespace
    shows them, and whether these are all. Another user's may be hidden; none of ours is above it.
    """
    found: list[int] = []
    for _ in range(_TRIES):
        found, pid = [], os.getppid()
        while pid > 0 and len(found) < _MOST_ABOVE:
            found.append(pid)
            looked = _look(pid)
            if looked is None:
                break
            pid = looked[1]
        else:
            return found, pid == 0
        if _is_there(pid):
            return found, True
    return found, False


def described(pid: int) -> str:
    """Returns a process as it is noted, with its begin where this system tells it."""
    found = _of_proc(pid) if PROC else None
    return f"{_place()} {pid} {found[2] if found is not None else ''}"


def is_running(process: str) -> bool | None:
    """Returns whether a noted process still runs; None if that cannot be told from here."""
    place, _, rest = process.partition(" ")
    pid, _, begun = rest.partition(" ")
    if not pid.isdecimal() or place != _place():
        return None
    if not _is_there(int(pid)):
        return False
    found = _of_proc(int(pid)) if begun else None
    return found is None or found[2] == begun


def was_given(pid: int, argument: str) -> bool:
    """Returns whether a process was started with an argument, such as a path that only we give:
    a note of it could name any process. True where this system does not tell.
    """
    if not PROC:
        return True
    with suppress(OSError), open(f"/proc/{pid:d}/cmdline", "rb") as file:
        return os.fsencode(argument) in file.read().split(b"\0")
    return False


def has_open(pid: int, path: str) -> bool:
    """Returns whether a process of this user has a file open. True where this system does not
    tell.
    """
    if not PROC:
        return True
    with suppress(OSError):
        wanted = os.stat(path)
        folder = f"/proc/{pid:d}/fd"
        return any(_is_same(f"{folder}/{each}", wanted) for each in os.listdir(folder))
    return False


def _is_same(path: str, wanted: os.stat_result) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.stat(path), wanted)
    return False


def has_child_since(process: str, instant_ms: int) -> bool:
    """Returns whether a noted process runs one now that began after an instant, in ms since 1970;
    False where this system does not tell.
    """
    if is_running(process) is not True or not PROC:
        return False
    pid = space_and_id(process)[1]
    with suppress(OSError, ValueError), open("/proc/uptime", encoding="ascii") as file:
        booted_s = time.time() - float(file.read().split()[0])
        after = (instant_ms / 1000 - booted_s) * os.sysconf("SC_CLK_TCK")
        numbers = (int(each) for each in os.listdir("/proc") if each.isdecimal())
        found = (_of_proc(each) for each in numbers)
        return any(each[2] and each[1] == pid and int(each[2]) > after for each in found if each)
    return False


def own_space() -> str:
    """Returns the PID namespace that we are in; "" where this system does not tell."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def space_and_id(process: str) -> tuple[str, int]:
    """Returns the PID namespace of a noted process, and its id there; 0 if that is not one."""
    place, _, rest = process.partition(" ")
    pid = rest.partition(" ")[0]
    return place.rpartition("/")[2], int(pid) if pid.isdecimal() else 0


def _place() -> str:
    return f"{os.uname().nodename}/{own_space()}".replace(" ", "_")


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _look(pid: int) -> tuple[str, int, str] | None:
    return _of_proc(pid) if PROC else _of_ps(pid)


def _of_proc(pid: int) -> tuple[str, int, str] | None:
    """Returns the name of a process, its parent, and when it began: from Linux's own files."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    # The name stands in parentheses and may have any character in it; the rest are numbers.
    name = text[text.find("(") + 1 : text.rfind(")")]
    fields = text[text.rfind(")") + 1 :].split()
    if len(fields) < 20 or not fields[1].isdigit():
        return None
    # One that ended and was not waited for is there, and does not run.
    return name, int(fields[1]), fields[19] if fields[0] != "Z" else ""


def _of_ps(pid: int) -> tuple[str, int, str] | None:
    """Returns the same where there is no /proc; 5 ms, once in a session."""
    try:
        ran = subprocess.run(
            command_line("ps", "-o", "ppid=,comm=", f"-p{pid}"),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    above, _, name = ran.stdout.strip().partition(" ")
    return (name.strip().removeprefix("-"), int(above), "") if above.isdigit() else None
