"""Droids at work: each in a thread calls `queen` at random and notes what it is told."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tests.checker.history import KILLED, Call
from tests.checker.tools import HUNG, LONGEST_S, Client, tool_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.checker.worlds import World

PATTERNS = ("a/x.py", "a/*", "b/**", "**/y.py", "c/[xy].py", "c/y*")
_OPEN_ISSUES = 5


class Processes:
    """The calls under way, to be killed and stopped by somebody else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []
        self.kills = self.stops = 0

    def run(
        self, words: Sequence[str], tree: str, env: dict[str, str], given: str = ""
    ) -> tuple[int, str, str]:
        """Runs one to its end; returns its status, negative if it was killed, and both streams."""
        process = subprocess.Popen(
            words, cwd=tree, env=env, text=True, errors="replace", start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        with self.known(process):
            try:
                out, err = process.communicate(given, timeout=LONGEST_S)
                return process.returncode, out, err
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return HUNG, *process.communicate()

    @contextmanager
    def known(self, process: subprocess.Popen[str]) -> Iterator[None]:
        """Within it, a process may be killed or stopped."""
        with self._lock:
            self._running.append(process)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(process)

    def disturb(self, chance: random.Random) -> None:
        """Kills one call, or stops it for a moment."""
        with self._lock:
            if not self._running:
                return
            process = chance.choice(self._running)
            with suppress(ProcessLookupError):
                if chance.random() < 0.6:
                    # Alone, what it has started goes on without it.
                    kill = os.killpg if chance.random() < 0.5 else os.kill
                    kill(process.pid, signal.SIGKILL)
                    self.kills += 1
                    return
                os.kill(process.pid, signal.SIGSTOP)
                self.stops += 1
        time.sleep(chance.uniform(0.1, 1.0))
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


class Issues:
    """The issues that were made, known to all droids of a run."""

    def __init__(self, prepared: Sequence[str]) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self.open = list(prepared)

    def new(self) -> str:
        with self._lock:
            self._number += 1
            return f"ck-{self._number}"

    def known(self, issue: str) -> None:
        with self._lock:
            self.open.append(issue)

    def gone(self, issue: str) -> None:
        with self._lock, suppress(ValueError):
            self.open.remove(issue)


class Droid(threading.Thread):
    """One droid in one tree."""

    def __init__(self, world: World, name: str, tree: str, issues: Issues, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.world = world
        self.droid = name
        self.tree = tree
        self.issues = issues
        self.calls: list[Call] = []
        self.error: BaseException | None = None
        self._chance = random.Random(seed)
        self._leases: dict[str, str] = {}
        self._mine: list[str] = []
        self._made: list[str] = []
        self._files: list[str] = []
        self._count = 0
        self._client: Client | None = None
        if name in world.by_tools:
            env = {**world.environment(tree), "QUEEN_DROID": name}
            self._client = Client((*world.queen, "mcp"), tree, env, world.processes.known)

    def run(self) -> None:
        try:
            self._call("look", "", "status")
            while self.world.takes_another():
                self._act()
        except BaseException as error:
            self.error = error

    def drain(self) -> None:
        """Reads what is left of its mail, and ends what it has."""
        self._recover()
        while self._call("read", "", "msg", "read").status != 0:
            pass
        if self._client is not None:
            self._client.end()

    def _act(self) -> None:
        ways = {
            self._reserve: 22, self._unreserve: 14, self._claim: 12, self._finish: 12,
            self._send: 10, self._read: 6, self._look: 4, self._hear: 4,
        }  # fmt: skip
        if self.world.kind == "files":
            ways |= {self._new: 6, self._edit: 4, self._git: 4, self._gate: 3, self._gated: 3}
        if self.tree in self.world.landing_trees and self.droid in self.world.landers:
            ways |= {self._land: 10}
        (way,) = self._chance.choices(list(ways), list(ways.values()))
        way()

    # What it does.

    def _reserve(self) -> None:
        pattern = self._chance.choice(PATTERNS)
        if pattern in self._leases:
            return
        more: dict[str, Any] = {"exclusive": self._chance.random() < 0.7, "ttl_s": 7200}
        words = ["reserve", "--keep", pattern]  # Else it ends with the one issue that it has.
        if not more["exclusive"]:
            words.append("--shared")
        if self.world.kind != "remote" and self._chance.random() < 0.15:
            more["ttl_s"] = 1
            words += ["--ttl", "1s"]
        if self._chance.random() < 0.15:
            more |= {"force": True, "reason": f"take-{self.droid}n{len(self.calls)}"}
            words += ["--force", "--reason", str(more["reason"])]
        elif self.world.kind == "files" and self._chance.random() < 0.15:
            more["wait"] = True
            words += ["--wait", "1s"]
        call = self._call("reserve", pattern, *words, *self.world.confirm, more=more)
        if call.done and more["ttl_s"] > 1:
            self._leases[pattern] = str(call.answer[0]["id"])

    def _unreserve(self) -> None:
        if self._leases:
            pattern = self._chance.choice(sorted(self._leases))
            if self._chance.random() < 0.15:
                self._call("renew", self._leases[pattern], "reserve", "renew", pattern)
                return
            given = self._leases.pop(pattern)
            self._call("unreserve", given, "reserve", "release", "--id", given)

    def _claim(self) -> None:
        if len(self._mine) >= self.world.most_issues:
            return
        lands = self.droid in self.world.landers
        if self.world.kind == "files" and not lands and self._chance.random() < 0.3:
            call = self._call("next", "", "next")
            if call.done and call.answer.get("issue_id") and not call.answer["again"]:
                self._mine.append(str(call.answer["issue_id"]))
            return
        if issues := [each for each in self.issues.open[-12:] if each not in self._mine]:
            issue = self._chance.choice(issues)
            call = self._call("claim", issue, "claim", issue, *self.world.confirm)
            if call.done:
                self._mine.append(issue)
            elif call.code == "issue_closed":
                self.issues.gone(issue)

    def _finish(self) -> None:
        if not self._mine:
            return
        issue = self._mine.pop(self._chance.randrange(len(self._mine)))
        lands = self.droid in self.world.landers
        gated = issue == self.world.gated_issue
        if self.world.kind != "files" or lands or gated or self._chance.random() < 0.4:
            self._call("give", issue, "release", issue)
            return
        more = ["--next"] if self._chance.random() < 0.3 else []
        call = self._call("complete", issue, "complete", issue, *more)
        if call.done:
            self.issues.gone(issue)
            begun = (call.answer.get("next") or {}).get("issue_id")
            if begun and begun not in self._mine:
                self._mine.append(str(begun))

    def _new(self) -> None:
        if len(self.issues.open) >= _OPEN_ISSUES + len(self.world.prepared_issues):
            return
        issue, more = self.issues.new(), {"title": f"by {self.droid}"}
        words = ["issue", "new", more["title"], "--id", issue]
        if self.issues.open and self._chance.random() < 0.3:
            more["needs"] = self._chance.choice(self.issues.open)
            words += ["--depends-on", more["needs"]]
        if self._call("new", issue, *words, more=more).done:
            self._made.append(issue)
            self.issues.known(issue)

    def _edit(self) -> None:
        if self._made:
            self._count += 1
            issue, title = self._chance.choice(self._made[-8:]), f"{self.droid} {self._count}"
            words = ("issue", "edit", issue, "--title", title)
            self._call("edit", issue, *words, more={"title": title})

    def _send(self) -> None:
        self._count += 1
        to = self._chance.choice([*self.world.names, "@all"])
        if to != self.droid:
            body = f"{self.droid} says {self._count}"
            self._call("send", to, "msg", "send", to, body, "--new", more={"body": body})

    def _read(self) -> None:
        self._call("read", "", "msg", "read")

    def _look(self) -> None:
        looks = [("status",), ("reserve", "list"), ("msg", "inbox"), ("show", "ck-p1"), ("doctor",)]
        if self.world.kind != "database":
            looks += [("hive", "rotate", "--older-than", "0s"), ("issues",)]
        if self.world.kind == "remote":
            looks += [("sync",)] * 3
        self._call("look", "", *self._chance.choice(looks))

    def _hear(self) -> None:
        """What the hook of an agent tells it with a prompt, or after a tool."""
        event = self._chance.choice(("UserPromptSubmit", "PostToolUse"))
        told = {
            "hook_event_name": event, "session_id": f"of-{self.droid}", "cwd": self.tree,
            "prompt": "go on", "tool_name": "Bash", "tool_input": {"command": "ls"},
        }  # fmt: skip
        call = Call(self.droid, self.tree, "hear", event, time.monotonic_ns())
        env = {**self.world.environment(self.tree), "QUEEN_DROID": self.droid}
        hook = self.world.hook
        status, out, err = self.world.processes.run(hook, self.tree, env, json.dumps(told))
        call.answered, call.status = time.monotonic_ns(), KILLED if status < 0 else status
        answer = _document(out) or {}
        if call.done and isinstance(answer, dict):
            lines = answer.get("hookSpecificOutput", {}).get("additionalContext", "").splitlines()
            call.said = {"notices": [each.removeprefix("- ") for each in lines]}
        elif call.status is not KILLED:
            call.said = {"error": {"code": "", "message": (out + err)[-600:]}}
        self.calls.append(call)

    def _gate(self) -> None:
        flag = os.path.join(self.world.main, "flag")
        if self._chance.random() < 0.5:
            open(flag, "w").close()
        else:
            with suppress(FileNotFoundError):
                os.unlink(flag)
        self._call("gate", "1", *self.world.gate_run, at=self.world.main)

    def _gated(self) -> None:
        if len(self._mine) < self.world.most_issues:
            issue = self.world.gated_issue
            if self._call("claim", issue, "claim", issue, more={"gated": True}).done:
                self._call("give", issue, "release", issue)

    def _git(self) -> None:
        """What people do to a tree without a thought for what others keep in it."""
        if self._files:
            return  # It would lose work of its own.
        ways = [("stash", "-u"), ("reset", "-q", "--hard"), ("checkout", "-q", "--", "."),
                ("clean", "-fdq")]  # fmt: skip
        if self.tree == self.world.main:
            ways += [("commit", "-qm", "records", "--", ".beads")] * 2
        self.world.git(self.tree, *self._chance.choice(ways))
        self.world.count("git")

    def _land(self) -> None:
        if len(self._mine) > 1:
            return
        bad = self._chance.random() < 0.1
        self._count += 1
        name = f"{'bad' if bad else 'good'}-{self.droid}-{self._count}.txt"
        if not self._commit(name):
            return
        self._files.append(name)
        issue = self._mine[0] if self._mine else ""
        spoiled = any(each.startswith("bad") for each in self._files)
        more = {"files": list(self._files), "bad": spoiled}
        call = self._call("land", issue, "land", *filter(None, [issue]), "--wait", "60s", more=more)
        if call.done and call.answer["landing"]["landed"]:
            self._files.clear()
            if call.answer["completed"]:
                self._mine.clear()
                self.issues.gone(issue)
        elif "git cherry-pick" in str(call.said.get("error", {}).get("hint")):
            # It committed where a landing had left the branch: it does as it is told.
            picked = call.said["error"]["hint"].partition(" cherry-pick ")[2].partition(",")[0]
            if self.world.git(self.tree, "switch", "-q", os.path.basename(self.tree)):
                self.world.git(self.tree, "cherry-pick", *picked.split())
        elif spoiled:
            while self._call("abort", "", "land", "--abort").status is KILLED:
                pass
            if self.world.git(self.tree, "reset", "-q", "--hard", "main"):
                self._files.clear()

    def _commit(self, name: str) -> bool:
        with open(os.path.join(self.tree, name), "w", encoding="utf-8") as file:
            file.write(name)
        added = self.world.git(self.tree, "add", name)
        return added and self.world.git(self.tree, "commit", "-qm", name, "--", name)

    # How it asks.

    def _call(
        self, kind: str, what: str, *words: str, more: dict[str, Any] | None = None, at: str = ""
    ) -> Call:
        call = self._asked(kind, what, *words, more=more, at=at)
        if call.is_open and kind not in ("look", "read", "send", "edit", "gate"):
            self._recover()
        return call

    def _asked(
        self, kind: str, what: str, *words: str, more: dict[str, Any] | None = None, at: str = ""
    ) -> Call:
        call = Call(self.droid, self.tree, kind, what, time.monotonic_ns(), more=dict(more or {}))
        if self._client is not None and (asked := tool_of(words)):
            status, out, err = self._client.call(*asked)
            self.world.count("by tools")
        else:
            status, out, err = self.world.processes.run(
                (*self.world.queen, *words, "--json", "--as", self.droid),
                at or self.tree, self.world.environment(self.tree),
            )  # fmt: skip
        call.answered = time.monotonic_ns()
        call.status = KILLED if status < 0 else status
        if call.status is not KILLED:
            call.answer = _document(out)
            call.said = _document(err) or {}
            if not isinstance(call.said, dict):
                call.said = {"error": {"code": "", "message": err[-600:]}}
        self.calls.append(call)
        return call

    def _recover(self) -> None:
        """Gives everything back: nobody knows what an unanswered call has done."""
        self._leases.clear()
        self._mine.clear()
        begun = time.monotonic_ns()
        while not self._has_nothing():
            pass
        call = Call(self.droid, self.tree, "recover", "", begun, time.monotonic_ns(), 0)
        self.calls.append(call)

    def _has_nothing(self) -> bool:
        released = self._asked("look", "", "reserve", "release", "--all")
        held = self._asked("look", "", "issue", "assignments", "--droid", self.droid)
        if not (held.done and (released.done or released.code == "not_found")):
            time.sleep(0.1)
            return False
        return all(
            self._asked("look", "", "release", str(each["issue_id"])).done for each in held.answer
        )


def _document(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except ValueError:
        return text[-600:]


def waited_for(droids: Sequence[Droid]) -> Iterator[Call]:
    """Waits until all have ended, and yields their calls."""
    for droid in droids:
        droid.join()
        if droid.error is not None:
            raise droid.error
        yield from droid.calls
