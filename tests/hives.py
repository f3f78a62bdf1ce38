"""What the tests of services and of `queen` stand on: a clock, a repository, the command itself.

The command runs in two ways that give the same answer: `Queen` runs the real one in a process
of its own (`started_queens`, where nothing depends on how Python starts); `QuickQueen` calls its
entry point in this process, at a tenth of the price, for tables of cases.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, BinaryIO

import postgres_server
import started_queens
import written_documents
from entry_points import run_queen

from queenbee.store.callers import agent_above

TRACES = ("Traceback", 'File "')
IDENTITY = ("QUEEN_DROID", "QUEEN_AGENT", "FACTORY_DROID")
START_MS = 1_734_172_200_000
"""2024-12-14T10:30:00Z, the instant of the records document's examples."""


class Clock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)


class Ran:
    """What one call of `queen` left: exit status, standard output, standard error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The refusal that `--json` puts on standard error."""
        refusal: dict[str, Any] = json.loads(self.err)["error"]
        return refusal

    def __repr__(self) -> str:
        return f"Ran(code={self.code}, out={self.out[:2000]!r}, err={self.err[:2000]!r})"


class Queen:
    """Runs the real command, in a process of its own."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.env = {"QUEEN_DURABILITY": "synced"}

    def __call__(
        self,
        *arguments: str | bytes,
        as_: str | None = None,
        cwd: Path | None = None,
        stdin: str | bytes = b"",
        env: dict[str, str] | None = None,
        unprivileged: bool = False,
    ) -> Ran:
        place, data = cwd or self.cwd, stdin.encode() if isinstance(stdin, str) else stdin
        environment = self.environment(as_, env)
        if not unprivileged and started_queens.can_run(environment, data):
            return checked(Ran(*started_queens.run(arguments, place, environment, data)), arguments)
        ran = subprocess.run(
            [*COMMAND, *arguments],
            cwd=place,
            input=data,
            env=environment,
            capture_output=True,
            timeout=60,
            preexec_fn=without_override if unprivileged else None,
        )
        return checked(Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode()), arguments)

    def start(
        self,
        *arguments: str,
        as_: str | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Starts the command and returns at once."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=cwd or self.cwd,
            env=self.environment(as_, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def environment(self, as_: str | None, env: dict[str, str] | None) -> dict[str, str]:
        """Returns the environment of one call."""
        base = {**os.environ, **self.env, **(env or {})}
        return {**base, "QUEEN_DROID": as_} if as_ else base


def at_a_terminal(
    queen: Queen,
    says: str,
    *arguments: str,
    by: Sequence[str] = (),
    stdout: BinaryIO | None = None,
    **env: str,
) -> tuple[int, str]:
    """Runs the command, or what runs it, at a terminal at which somebody types; returns its status
    and all it shows there.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*by, *COMMAND, *arguments],
        cwd=queen.cwd,
        env=queen.environment(None, {"TERM": "dumb", **env}),
        stdin=theirs,
        stdout=stdout or theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, says.encode())
    shown = b""
    with suppress(OSError):
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    return process.wait(timeout=60), shown.decode().replace("\r\n", "\n")


class QuickQueen:
    """Runs the command's entry point in this process."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.env: dict[str, str] = {}

    def __call__(
        self,
        *arguments: str,
        as_: str | None = None,
        cwd: Path | None = None,
        stdin: str | bytes = b"",
        env: dict[str, str] | None = None,
    ) -> Ran:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err, into = (
            io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True, newline=""),
            io.TextIOWrapper(
                io.BytesIO(), "utf-8", "backslashreplace", write_through=True, newline=""
            ),
            io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"),
        )
        wanted = {**self.env, **(env or {}), **({"QUEEN_DROID": as_} if as_ else {})}
        saved_stdin, sys.stdin = sys.stdin, into
        try:
            with inside(cwd or self.cwd, wanted), redirect_stdout(out), redirect_stderr(err):
                code = run_queen(arguments)
        finally:
            sys.stdin = saved_stdin
        return checked(Ran(code, _written(out), _written(err)), arguments)


def is_open(database: sqlite3.Connection) -> bool:
    """Returns whether a database can still be asked."""
    try:
        return database.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False


BELOW_CLIENT = agent_above._has_client_above()
"""Whether an agent runs these tests: in them, it types for a person."""
_AS_PERSON = "from queenbee.store.callers import agent_above; agent_above._has_client_above = bool"
_MAIN = "from queenbee.cli.main import main; main()"
COMMAND = (sys.executable, "-c", f"{_AS_PERSON}; {_MAIN}" if BELOW_CLIENT else _MAIN)
"""As the installed script does, without depending on where that was put."""


def checked(ran: Ran, arguments: Sequence[str | bytes]) -> Ran:
    """Returns the result, having seen to it that no traceback left the command, and that what it
    printed as JSON is what its schema says.
    """
    assert not any(trace in ran.err or trace in ran.out for trace in TRACES), ran
    if "--json" in arguments:
        written_documents.check([str(each) for each in arguments], ran.out, ran.err)
    return ran


@contextmanager
def inside(cwd: Path, env: dict[str, str]) -> Any:
    """Works in a directory, with additions to the environment."""
    before, saved = os.getcwd(), {name: os.environ.get(name) for name in env}
    os.chdir(cwd)
    os.environ.update(env)
    try:
        yield
    finally:
        os.chdir(before)
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def without_override() -> None:
    """Gives up root's right to write where permissions say no, for the process to be started."""
    if os.geteuid() == 0:
        drop_from_bounding_set, override, read_search = 24, 1, 2
        library = ctypes.CDLL(None)
        for capability in (override, read_search):
            if library.prctl(drop_from_bounding_set, capability) != 0:
                os._exit(99)


def environment() -> dict[str, str]:
    """Returns the environment in which the fixtures open a hive, of whichever engine."""
    return {"QUEEN_DURABILITY": "buffered", **postgres_server.environment()}


def git(cwd: Path, *arguments: str) -> str:
    """Runs git and returns what it printed."""
    done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def add_hook(repo: Path, name: str, text: str) -> None:
    """Has git run a script as a hook of a repository."""
    path = repo / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def commit_file(tree: Path, name: str, text: str = "") -> None:
    """Adds a file to a repository and commits it."""
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(tree, "add", "--", name)
    git(tree, "commit", "-qm", f"add {name}")


def add_submodule(repo: Path, library: Path, at: str, name: str = "z.py") -> None:
    """Makes a repository with one file, and adds it to another one as a submodule."""
    library.mkdir()
    git(library, "init", "-q")
    commit_file(library, name)
    local = ("-c", "protocol.file.allow=always")
    git(repo, *local, "submodule", "--quiet", "add", str(library), at)


def snapshot(*folders: Path) -> dict[str, bytes]:
    """Returns every file below these folders with its bytes, but for those that say who came, and
    the memory, which readers write too; and the lines of a hive that is kept in the database.
    """
    beside = ("seen", "clients")
    files = {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.name != "lock"
        and path.parent.name not in beside
        and not path.name.startswith("hive.sqlite3")
    }
    for folder in folders:
        if hive := postgres_server.hive_of(folder):
            del files[str(folder / "queen.toml")]
            if rows := postgres_server.lines(hive):
                files[hive] = b"\n".join(rows)
    return files


def records(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of a ledger as objects, in files or in the database; every one must be
    whole and well formed.
    """
    hive, kind = postgres_server.hive_of(path.parent), kind_of(path)
    if hive and kind:
        return [json.loads(line) for line in postgres_server.lines(hive, kind)]
    data = path.read_bytes() if path.exists() else b""
    assert data == b"" or data.endswith(b"\n"), data[-200:]
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def exported(path: Path) -> list[dict[str, Any]]:
    """Returns the rows of a tracker's file, once the hive beside it has written them there."""
    ran = QuickQueen(path.parent.parent)("issue", "export", env=environment())
    assert ran.code == 0, ran
    return records(path)


def cloned(beads: Path, place: Path) -> Path:
    """Returns a repository that has the same ledgers, but no journal: every line came by git."""
    place.mkdir()
    git(place, "init", "-q")
    shutil.copytree(beads, place / ".beads")
    return place


def write_lines(path: Path, *rows: dict[str, Any] | str | bytes) -> None:
    """Appends lines to a file as a foreign program would; those of a ledger that is kept in the
    database to that.
    """
    texts = [json.dumps(row, ensure_ascii=False) if isinstance(row, dict) else row for row in rows]
    lines = [text.encode() if isinstance(text, str) else text for text in texts]
    hive, kind = postgres_server.hive_of(path.parent), kind_of(path)
    if hive and kind:
        postgres_server.append(hive, kind, lines)
        return
    with path.open("ab") as file:
        file.writelines(line + b"\n" for line in lines)


def kind_of(ledger: Path) -> str:
    """Returns the kind of record that a ledger has; empty for other files."""
    name = ledger.name
    is_ledger = name.startswith("queen_") and ledger.suffix == ".jsonl"
    return name.removeprefix("queen_").removesuffix(".jsonl") if is_ledger else ""


def write_settings(beads: Path, text: str) -> None:
    """Writes settings that stand above all tables; which engine it is remains."""
    path = beads / "queen.toml"
    path.write_text(text + (path.read_text() if path.exists() else ""))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
