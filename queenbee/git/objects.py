"""Reading many objects of a repository, for the records on a branch."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

from queenbee.core.command_lines import git_line
from queenbee.errors import ExternalFailure
from queenbee.git.run import QUIET, quiet_environment


class TooLarge(Exception):
    """An object has so many bytes that it is not read."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


class Objects:
    """Reads objects of a repository through one git that runs until it is closed.

    To start a git for each takes longer than what it is asked. Used as a context manager.
    """

    def __init__(self, cwd: str) -> None:
        self.cwd: str = cwd
        self._git: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends git; the next question starts another."""
        process, self._git = self._git, None
        if process is None:
            return
        process.kill()
        for each in (process.stdin, process.stdout):
            with suppress(OSError):  # It may have ended before it read the last question.
                each.close()  # type: ignore[union-attr]
        process.wait()

    def read(self, name: str, most_bytes: int | None = None) -> tuple[str, str, bytes] | None:
        """Returns the id, type and content of an object; None if there is none of this name.

        Git would read a name with a line break as two, or as another: none is asked for. Raises
        `TooLarge` if it has more than `most_bytes`, and `ExternalFailure`.
        """
        if "\n" in name or "\0" in name or name.endswith("\r"):
            return None
        process = self._git or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(os.fsencode(name) + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise ExternalFailure("git cat-file ended", program="git") from error
        said = process.stdout.readline()
        fields = said.split()
        if said.endswith((b" missing\n", b" ambiguous\n")):
            return None
        if len(fields) != 3 or not fields[2].isdigit():
            raise ExternalFailure(f"git cat-file failed: {os.fsdecode(said)}", program="git")
        size_bytes = int(fields[2])
        if most_bytes is not None and size_bytes > most_bytes:
            self.close()
            raise TooLarge(size_bytes)
        data = process.stdout.read(size_bytes + 1)
        if len(data) != size_bytes + 1:
            raise ExternalFailure("git cat-file ended", program="git")
        return fields[0].decode(), fields[1].decode(), data[:-1]

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            self._git = subprocess.Popen(
                git_line(self.cwd, (*QUIET, "cat-file", "--batch")),
                env=quiet_environment({}, {}),
                stdin=pipe,
                stdout=pipe,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise ExternalFailure(f"git cannot be run: {error.strerror}", program="git") from error
        return self._git
