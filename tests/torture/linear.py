"""Processes and threads that reserve, claim and let go at random; a checker reads their notes.

Each operation is noted with the instants (of the monotonic clock, which all processes share)
before it was asked for and after it was answered. It took effect somewhere between the two. A
grant is therefore held *for certain* from its answer to the asking for its end, and *possibly*
from its asking to the answer of its end. Then

- no two droids hold for certain, at one instant, what excludes each other, and
- every refusal meets something that was possibly held while it was asked: a release is seen at
  once, and nobody is refused for nothing.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time

from glob_reference import share_a_path

from queenbee import Hive
from queenbee.errors import Busy, Held, NotFound, QueenError, Taken
from queenbee.store.carriers import write
from tests.torture.places import ENVIRONMENT, ROOT, errors_of, make_repository, open_hive, require

PATTERNS = ("a/x.py", "a/*", "b/**", "**/y.py", "c/[xy].py", "c/y*")
ISSUES = 4
"""So many are open at a time, for a second or two: nobody works on one issue a thousand times."""
NEVER = 2**63
WORKER = (sys.executable, "-m", "tests.torture.linear")


class Hold:
    """Something that a droid has, and when it had it."""

    __slots__ = (
        "answered", "asked", "droid", "end_answered", "end_asked", "exclusive", "tree", "what",
    )  # fmt: skip

    def __init__(
        self,
        droid: str,
        what: str,
        exclusive: bool,
        asked: int,
        answered: int,
        tree: str | None = None,
    ) -> None:
        self.droid = droid
        self.what = what
        self.exclusive = exclusive
        self.tree = tree
        """The working tree that a shared lease was announced in; None: it excludes no other."""
        self.asked = asked
        self.answered = answered
        self.end_asked = NEVER
        self.end_answered = NEVER


# The droids at work.


class Droid:
    """One thread's droid: it asks, and notes what it is told."""

    def __init__(self, hive: Hive, name: str, note: object) -> None:
        self.hive = hive
        self.name = name
        self.note = note
        self.random = random.Random(name)
        self.leases: dict[str, str] = {}
        self.issues: set[str] = set()
        self.answered = 0

    def work(self, operations: int) -> None:
        """Asks until it was answered so often."""
        while self.answered < operations:
            self.act()

    def act(self) -> None:
        """Asks for one thing."""
        choice = self.random.random()
        if choice < 0.35:
            self._reserve()
        elif choice < 0.6:
            self._release()
        elif choice < 0.65:
            self._renew()
        elif choice < 0.85:
            self._claim()
        else:
            self._end()

    def _ask(self, operation: str, what: str, act, **more: object) -> object:
        asked = time.monotonic_ns()
        try:
            answer, outcome = act(), "done"
        except (Held, Taken):
            answer, outcome = None, "refused"
        except NotFound:
            answer, outcome = None, "gone"
        except Busy:
            answer, outcome = None, "busy"
        except QueenError as error:
            answer, outcome = None, f"failed: {error.message}"
        line = [asked, time.monotonic_ns(), self.name, operation, what, outcome, more]
        self.note(line)  # type: ignore[operator]
        self.answered += 1
        return answer

    def _reserve(self) -> None:
        pattern = self.random.choice(PATTERNS)
        exclusive = self.random.random() < 0.7
        if pattern in self.leases:
            return  # Reserving it again may strengthen it; that is another test's.
        granted = self._ask(
            "reserve",
            pattern,
            lambda: self.hive.reservations.reserve([pattern], exclusive=exclusive, issue_id=""),
            exclusive=exclusive,
            tree=self.hive.layout.tree,
        )
        if granted:
            self.leases[pattern] = granted[0].id  # type: ignore[index]

    def _release(self) -> None:
        if self.leases:
            pattern = self.random.choice(list(self.leases))
            identifier = self.leases.pop(pattern)
            self._ask("release", pattern, lambda: self.hive.reservations.release(ids=[identifier]))

    def _renew(self) -> None:
        if self.leases:
            pattern = self.random.choice(list(self.leases))
            self._ask(
                "renew",
                pattern,
                lambda: self.hive.reservations.renew(ids=[self.leases[pattern]], ttl_s=7_200),
            )

    def _claim(self) -> None:
        issue = f"qb-{time.monotonic_ns() // 2**31}-{self.random.randrange(ISSUES)}"
        if issue not in self.issues and self._ask(
            "claim", issue, lambda: self.hive.assignments.claim(issue, anyway=True)
        ):
            self.issues.add(issue)

    def _end(self) -> None:
        if self.issues:
            issue = self.random.choice(sorted(self.issues))
            self.issues.discard(issue)
            how = self.random.choice(("complete", "release"))
            self._ask("end", issue, lambda: getattr(self.hive.assignments, how)(issue))


class NoLock:
    """The mutant: a lock that keeps nobody out."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    def __enter__(self) -> NoLock:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def confirm(self) -> None:
        pass

    def release(self) -> None:
        pass

    def close(self) -> None:
        pass


def work(tree: str, log: str, name: str, threads: int, operations: int, broken: str) -> None:
    """Lets the threads of one process work; the notes go to `log`."""
    if broken == "lock":
        write.KernelLock = NoLock
    notes: list[list[object]] = []
    droids = [
        Droid(
            Hive.open(tree, droid=f"{name}.{number}", env={"QUEEN_DURABILITY": "buffered"}),
            f"{name}.{number}",
            notes.append,
        )
        for number in range(threads)
    ]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    running = [threading.Thread(target=droid.work, args=(operations,)) for droid in droids]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    with open(log, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(note) + "\n" for note in notes)


# The checker.


def excludes(one: Hold, other: Hold) -> bool:
    """Returns whether two droids' holds cannot stand together."""
    apart = one.tree is None or one.tree != other.tree
    if one.droid == other.droid or (apart and not (one.exclusive or other.exclusive)):
        return False
    if one.what.startswith("qb-") or other.what.startswith("qb-"):
        return one.what == other.what
    return _overlapping(one.what, other.what)


_KNOWN: dict[tuple[str, str], bool] = {}


def _overlapping(one: str, other: str) -> bool:
    key = (one, other) if one < other else (other, one)
    if key not in _KNOWN:
        _KNOWN[key] = share_a_path(*key)
    return _KNOWN[key]


def violations(notes: list[list]) -> list[str]:
    """Returns what in a recorded history cannot have been."""
    notes.sort(key=lambda note: note[0])
    found: list[str] = []
    holds: dict[tuple[str, str], Hold] = {}
    every: list[Hold] = []
    refusals: list[tuple[Hold, str]] = []
    for asked, answered, droid, operation, what, outcome, more in notes:
        exclusive, tree = more.get("exclusive", True), more.get("tree")
        wanted = Hold(droid, what, exclusive, asked, answered, tree)
        if operation in ("reserve", "claim"):
            if outcome == "done":
                holds[droid, what] = wanted
                every.append(wanted)
            elif outcome == "refused":
                refusals.append((wanted, operation))
        elif operation in ("release", "end") and outcome == "done":
            held = holds.pop((droid, what))
            held.end_asked, held.end_answered = asked, answered
        if outcome not in ("done", "refused"):
            found.append(f"{droid} {operation} {what}: {outcome}")
    return found + _held_together(every) + _refused_for_nothing(every, refusals)


def _held_together(every: list[Hold]) -> list[str]:
    """Returns the pairs that were held for certain at one instant, and exclude each other."""
    found: list[str] = []
    live: list[Hold] = []
    for hold in sorted(every, key=lambda each: each.answered):
        live = [each for each in live if each.end_asked > hold.answered]
        found.extend(
            f"{other.droid} and {hold.droid} both hold {other.what} and {hold.what}"
            for other in live
            if excludes(other, hold) and hold.end_asked > hold.answered
        )
        live.append(hold)
    return found


def _refused_for_nothing(every: list[Hold], refusals: list[tuple[Hold, str]]) -> list[str]:
    """Returns the refusals that nothing possibly held stood against."""
    found: list[str] = []
    starts = sorted(every, key=lambda each: each.asked)
    live: list[Hold] = []
    at = 0
    for wanted, operation in sorted(refusals, key=lambda pair: pair[0].answered):
        while at < len(starts) and starts[at].asked <= wanted.answered:
            live.append(starts[at])
            at += 1
        if not any(excludes(held, wanted) and held.end_answered >= wanted.asked for held in live):
            found.append(f"{wanted.droid} was refused {operation} {wanted.what} for nothing")
        if len(live) > 2_000:
            # The oldest question still to come began no earlier than a minute before this one.
            since = wanted.asked - 60 * 10**9
            live = [each for each in live if each.end_answered >= since]
    return found


def run(
    folder: str, operations: int, *, processes: int = 8, threads: int = 2, broken: str = ""
) -> dict[str, object]:
    """Records a history and judges it; returns the figures."""
    trees = [make_repository(os.path.join(folder, "repo")), os.path.join(folder, "linked")]
    subprocess.run(
        ["git", "worktree", "add", "-q", trees[1], "-b", "linked"],
        cwd=trees[0],
        env=ENVIRONMENT,
        check=True,
    )
    each = -(-operations // (processes * threads))
    logs = [os.path.join(folder, f"notes-{number}") for number in range(processes)]
    begun = time.monotonic()
    started = [
        subprocess.Popen(
            [*WORKER, trees[number % 2], log, f"p{number}", str(threads), str(each), broken],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, log in enumerate(logs)
    ]
    for process in started:
        require(process.stdout.readline() == "ready\n", "a process did not start")
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        process.communicate()
        require(broken or process.returncode == 0, "a process died")
    seconds = time.monotonic() - begun
    notes = []
    for log in logs:
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                notes += [json.loads(line) for line in file]
    wrong = violations(notes)
    if not broken:
        sound = errors_of(open_hive(trees[0], "queen"))
        require(not sound, str(sound[:3]))
    refused = sum(note[5] == "refused" for note in notes)
    return {
        "operations": len(notes),
        "refused": refused,
        "seconds": round(seconds, 1),
        "violations": len(wrong),
        "examples": wrong[:3],
    }


if __name__ == "__main__":
    _, tree, log, name, threads, operations, *broken = sys.argv
    work(tree, log, name, int(threads), int(operations), broken[0] if broken else "")
