"""One mutant in one copy of the repository: written, tested, taken back."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from mutation.plugin import TIMES_FROM

_MOST_BYTES = 4 * 1024**3
"""Of memory, for each process: some mutants never stop to allocate."""


class Copy:
    """A copy of the repository in which mutants are made, and the environment to test it in."""

    def __init__(self, repository: str, folder: str) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            # The copy's package comes before the installed one, also in processes that tests start.
            "PYTHONPATH": os.pathsep.join([folder, os.path.join(repository, "tests")]),
            # Two mutants of one second and one size must not share compiled code.
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": folder + ".tmp",
        }
        self._clear()
        os.makedirs(self.folder)
        os.makedirs(self.env["TMPDIR"])
        _copy_tree(repository, folder)
        # What has not changed is compiled once; a mutant is known by its hash, not by its time.
        compiling = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "queenbee"]
        subprocess.run([sys.executable, *compiling, "tests"], cwd=folder, check=True)

    def path(self, name: str) -> str:
        """Returns where a file of the repository is in this copy."""
        return os.path.join(self.folder, name)

    def try_source(self, name: str, source: str, tests: Sequence[str], limit_s: float) -> str:
        """Runs tests with one file changed: `survived`, `timeout`, or `caught by` which test."""
        arguments = os.path.join(self.env["TMPDIR"], "tests.txt")
        with open(arguments, "w") as file:
            file.write("\n".join(tests))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "--no-header"]
        with open(self.path(name), encoding="utf-8") as file:
            original = file.read()
        try:
            self._write(name, source)
            return self._verdict([*command, "-p", "mutation.plugin", f"@{arguments}"], limit_s)
        finally:
            self._write(name, original)

    def order_by(self, times: str) -> None:
        """Takes the tests' durations from a file, for the quick ones to run first."""
        self.env[TIMES_FROM] = times

    def remove(self) -> None:
        """Deletes the copy and what its tests left."""
        self._clear()

    def _write(self, name: str, source: str) -> None:
        with open(self.path(name), "w", encoding="utf-8", newline="") as file:
            file.write(source)

    def _end_leftovers(self) -> None:
        """Ends what left the group of its test, such as a command that a broken line lets run."""
        for group in _groups_inside(self.env["TMPDIR"]):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def _clear(self) -> None:
        for folder in (self.folder, self.folder + ".tmp"):
            shutil.rmtree(folder, ignore_errors=True)

    def _verdict(self, command: Sequence[str], limit_s: float) -> str:
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_limit_memory,
        ) as process:
            try:
                printed, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                return "timeout"
            finally:
                # Also what a test started and a broken line forgot to end.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                self._end_leftovers()
        if process.returncode == 0:
            return "survived"
        if process.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
            return "survived: no test runs"
        failed = re.search(rb"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE)
        by = failed[1].decode(errors="replace") if failed else f"status {process.returncode}"
        return f"caught by {by}"


def _groups_inside(folder: str) -> set[int]:
    """Returns the process groups that work in a folder, where the system tells."""
    groups = set()
    for pid in filter(str.isdecimal, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/cwd").startswith(folder):
                groups.add(os.getpgid(int(pid)))
    return groups


def caught(verdict: str) -> bool:
    """Returns whether a verdict says that the tests noticed; a test that hangs is noticed."""
    return verdict.startswith(("caught", "timeout"))


def limit_s(tests: Sequence[str], times_s: Mapping[str, float]) -> float:
    """Returns how long tests may take before their mutant counts as one that hangs."""
    return 30 + 10 * sum(times_s.get(test, 0) for test in tests)


def _limit_memory() -> None:
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


def _copy_tree(repository: str, folder: str) -> None:
    """Copies what git would commit, as it stands in the working tree."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")
    for name in map(os.fsdecode, filter(None, names)):
        source, target = os.path.join(repository, name), os.path.join(folder, name)
        if os.path.lexists(source):  # It may be deleted, and not committed yet.
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
