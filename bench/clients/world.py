"""A throw-away machine: an empty home, a repository with a hive, and clients that run there.

Nothing of the caller's environment reaches a client but where node and git are. `queen` and
`queen-hook` are those of this tree; a stand-in for the latter notes each event, answer and time.
A client runs in a process group of its own, and nothing of that group survives its run.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.clients.install import ROOT
from bench.clients.known import Client, Start
from bench.clients.model import Model, Play

_QUEEN = '#!/bin/sh\nPYTHONPATH="{root}" exec "{python}" "{root}/scripts/queen" "$@"\n'
_HOOK = """#!/bin/sh
at="{log}/$(date +%s%N).$$"
cat > "$at.in"
begun=$(date +%s%N)
PYTHONPATH="{root}" "{python}" "{root}/scripts/queen-hook" "$@" < "$at.in" > "$at.out"
status=$?
echo "$begun $(date +%s%N)" > "$at.times"
cat "$at.out"
exit $status
"""
_LIMIT_S = 150
_OURS = ("exec", "run", "-p", "")
"""What `queen start` says itself: a subcommand, and the prompt."""
ISSUES = tuple(f"Thing {number}" for number in range(1, 7))


@dataclass(frozen=True)
class Hooked:
    """One event that a client gave to the hook."""

    event: dict[str, Any]
    answer: str
    ms: float

    @property
    def context(self) -> str:
        """What the answer adds to the conversation, if anything."""
        told = json.loads(self.answer) if self.answer.startswith("{") else {}
        told = told.get("hookSpecificOutput") or told
        return str(told.get("additionalContext") or "")


_groups: set[int] = set()
"""The process groups of clients at work."""


def _kill(group: int) -> None:
    _groups.discard(group)
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def stop(*_: object) -> None:
    """Ends this process and every client that it started: what a signal asks for."""
    for group in list(_groups):
        _kill(group)
    os._exit(128 + signal.SIGTERM)


class Run:
    """A client at work."""

    def __init__(self, play: Play, process: subprocess.Popen[str], output: Path) -> None:
        self.play = play
        self.begun = time.monotonic()
        self.seconds = 0.0
        self.status: int | None = None
        self._process = process
        self._output = output

    def wait(self, limit_s: float = _LIMIT_S) -> Run:
        """Waits for the client's end, then kills what is left of its group; returns itself."""
        try:
            with suppress(subprocess.TimeoutExpired):
                self.status = self._process.wait(limit_s)
        finally:
            self.seconds = time.monotonic() - self.begun
            _kill(self._process.pid)
            self._process.wait()
        return self

    @property
    def output(self) -> str:
        """What the client wrote."""
        return self._output.read_text(errors="replace")

    @property
    def failure(self) -> str | None:
        """Why the run shows nothing, or None."""
        if self.status is None:
            return "did not end"
        for each in self.play.conversations:
            if each.failure is not None:
                return f"{type(each.failure).__name__}: {each.failure}"
        if not self.play.requests:
            lines = self.output.strip().splitlines() or ["nothing"]
            return f"asked no model, and said: {lines[-1][:200]}"
        return None


class World:
    """The machine of one client."""

    def __init__(self, folder: Path, client: Client, program: Path, model: Model) -> None:
        self.client = client
        self.folder = folder
        self.home = folder / "home"
        self.repo = folder / "repo"
        self.linked = folder / "linked"
        self.log = folder / "hooks"
        self._program = program
        self._model = model
        self._runs = 0
        self._trusted = True
        bin_ = folder / "bin"
        for each in (self.home / "tmp", self.repo / "src", self.log, bin_):
            each.mkdir(parents=True)
        given = {"root": ROOT, "python": sys.executable, "log": self.log}
        for name, text in (("queen", _QUEEN), ("queen-hook", _HOOK)):
            (bin_ / name).write_text(text.format(**given))
            (bin_ / name).chmod(0o755)
        node = os.path.dirname(os.path.realpath(shutil.which("node") or "/usr/bin/node"))
        path = f"{bin_}:{program.parent}:{node}:/usr/local/bin:/usr/bin:/bin"
        self.env = {"HOME": str(self.home), "PATH": path, "TERM": "dumb", "LANG": "C.UTF-8"}
        self.env |= {"TMPDIR": str(self.home / "tmp"), "SHELL": "/bin/bash"}
        # Codex runs a login shell, which makes a PATH of its own.
        (self.home / ".bash_profile").write_text(f"export PATH='{path}'\n")

    def furnish(self, *, trusted: bool = True, issues: Sequence[str] = ISSUES) -> World:
        """Makes the repository with its hive and `queen setup`; returns itself."""
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Bench")
        self.git("config", "user.email", "bench@example.invalid")
        for name in "abcdef":
            (self.repo / "src" / f"{name}.py").write_text(f"{name} = 1\n")
        (self.repo / "src" / "shared.py").write_text("x = 1\n" + "\n" * 20 + "y = 1\n")
        self.queen("init")
        self.queen("config", "set", "land.check", "grep -q = src/shared.py")
        for number, title in enumerate(issues, 1):
            self.queen("issue", "new", title, "--id", f"shop-{number}", droid="human")
        self.commit("begin")
        self.join(self.repo, trusted=trusted)
        return self

    def join(self, repo: Path, *, trusted: bool = True) -> None:
        """Connects the client to a repository that has a hive."""
        self.repo, self._trusted = repo, trusted
        self.client.trust(self.home, [repo, self.linked] if trusted else [])
        self.queen("setup", self.client.name)
        self.commit("agents")

    def git(self, *words: str) -> str:
        """Runs git in the repository and returns its output."""
        return self._ran(["git", *words])

    def commit(self, subject: str) -> None:
        """Commits everything."""
        self.git("add", "-A")
        self.git("commit", "-qm", subject, "--no-verify")

    def queen(self, *words: str, droid: str | None = None) -> str:
        """Runs `queen` in the repository, as a droid, and returns its output."""
        return self._ran(["queen", *(["--as", droid] if droid else []), *words])

    def asked(self, *words: str) -> Any:
        """Returns what `queen --json` answers."""
        return json.loads(self.queen(*words, "--json"))

    def leases(self) -> dict[str, str]:
        """Returns who has reserved what: droids by patterns."""
        return {each["pattern"]: each["droid"] for each in self.asked("reserve", "list")}

    def start(self, play: Play, prompt: str, *, cwd: Path | None = None, **more: bool) -> Run:
        """Starts the client with a prompt, against a model that plays; `more` is for `Start`."""
        start = self._begun(play, prompt, **more)
        return self._run(play, start, [str(self._program), *self.client.command(start)], cwd)

    def team(self, play: Play, *names: str) -> Run:
        """Starts `queen start` with agents of this client, against a model that plays."""
        start = self._begun(play, "", lands=True)
        options = shlex.join(each for each in self.client.command(start) if each not in _OURS)
        queen = shutil.which("queen", path=self.env["PATH"]) or "queen"
        command = [queen, "start", *names, "--agent", self.client.name, f"--args={options}"]
        return self._run(play, start, command, None)

    def _begun(self, play: Play, prompt: str, **more: bool) -> Start:
        self._runs += 1
        run = f"{self.folder.name}-{self._runs}"
        self._model.plays[run] = play
        return Start(prompt, self._model.address(run), trusted=self._trusted, **more)

    def _run(self, play: Play, start: Start, command: list[str], cwd: Path | None) -> Run:
        output = self.folder / f"output-{self._runs}"
        with output.open("w") as out:
            process = subprocess.Popen(
                command,
                cwd=cwd or self.repo,
                env=self.env | self.client.env(start),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        _groups.add(process.pid)
        return Run(play, process, output)

    def hooked(self) -> list[Hooked]:
        """Returns the events that the hook has answered so far, in order."""
        found = []
        for path in sorted(self.log.glob("*.times")):
            begun, ended = path.read_text().split()
            event = json.loads(path.with_suffix(".in").read_text())
            ms = (int(ended) - int(begun)) / 1e6
            found.append(Hooked(event, path.with_suffix(".out").read_text(), ms))
        return found

    def tried(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Returns what came of `queen`, whatever its exit status is."""
        return self._started(["queen", *words])

    def _ran(self, words: list[str]) -> str:
        done = self._started(words)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def _started(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        program = shutil.which(words[0], path=self.env["PATH"]) or words[0]
        return subprocess.run(
            [program, *words[1:]], cwd=self.repo, env=self.env, capture_output=True, text=True
        )
