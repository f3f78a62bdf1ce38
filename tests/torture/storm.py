"""Everything at once: moves, forks, clock leaps, links, a second user, kills and stops.

    python -m tests.torture storm --seconds 600

Droids work in processes of their own. Around them, the repository is moved and an empty one put in
its place, files of the state and whole folders are exchanged for links that lead out, processes are
killed and stopped; they themselves fork while other threads write, and read clocks that leap.

The checker knows nothing of QueenBee. It reads what each process noted before it asked and after
it was answered, and the lines of the files, and requires that

- nothing acknowledged is lost: each record is in the files, and what was ended has stayed ended;
- nothing is granted twice: no two droids held for certain, at one instant, what cannot be shared;
- nothing was written outside the hive, nor into the place that the repository left;
- no process hung, and none ended with anything but an answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from queenbee import Hive
from queenbee.errors import QueenError
from queenbee.services.writing.secrets import LooksLikeSecret, refuse_secrets
from queenbee.store.carriers import write
from tests.torture.linear import PATTERNS, Hold, NoLock, _held_together
from tests.torture.places import (
    ENVIRONMENT,
    ROOT,
    errors_of,
    git,
    heal,
    make_repository,
    open_hive,
    require,
)

DAY_MS = 86_400_000
LEASE_LEAPS_MS = (0, 0, 0, 3_600_000, -3_600_000, 12 * DAY_MS, -12 * DAY_MS)
"""Two of them differ by less than the TTL of the leases, which therefore never end by themselves:
otherwise a clock ahead would rightly find them expired."""
OTHER_LEAPS_MS = (*LEASE_LEAPS_MS, 2_000 * DAY_MS, -9_000 * DAY_MS, 2_950_000 * DAY_MS)
TTL_S = 30 * 86_400
ISSUES = 5
HANG_S = 60
NOBODY = 65_534
KINDS = ("messages", "assignments", "reservations")


class Clock:
    """The real one, and an error."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


# One droid.


class Droid:
    """Works through one hive that it keeps open, as far as moves and links let it."""

    def __init__(self, base: str, name: str, notes: int) -> None:
        self.base = base
        self.name = name
        self.notes = notes
        self.random = random.Random(f"{name} {os.getpid()} {time.monotonic_ns()}")
        self.clock = Clock()
        self.hive: Hive | None = None
        self.leases: dict[str, str] = {}
        self.issues: set[str] = set()

    def note(self, *what: object) -> None:
        """Notes something. One write, so that a kill leaves it whole or leaves none."""
        os.write(self.notes, (json.dumps([time.monotonic_ns(), *what]) + "\n").encode())

    def work(self) -> None:
        """Works until it is told to stop, or killed."""
        self._begin_anew()
        while not os.path.exists(os.path.join(self.base, "stop")):
            what = self.random.random()
            leaps = LEASE_LEAPS_MS if what < 0.45 else OTHER_LEAPS_MS
            self.clock.ahead_ms = self.random.choice(leaps)
            if what < 0.3:
                self._reserve()
            elif what < 0.45:
                self._release()
            elif what < 0.6:
                self._claim()
            elif what < 0.75:
                self._end()
            elif what < 0.97:
                self._send()
            else:
                self._fork()
        self.note("stopped", self.name, "", "done", {})

    def _begin_anew(self) -> None:
        """Ends what a killed process of this name may have held."""
        self.note("begin", self.name, "", "done", {})
        while not os.path.exists(os.path.join(self.base, "stop")):
            try:
                hive = self._opened()
                held = hive.reservations.find(droid=self.name)
                given = hive.assignments.find(droid=self.name)
                for each in held:
                    hive.reservations.release(ids=[each.id])
                for one in given:
                    hive.assignments.release(one.issue_id)
            except (QueenError, FileNotFoundError, RuntimeError):
                self.hive = None
                time.sleep(0.01)
            else:
                return

    def _opened(self) -> Hive:
        if self.hive is None:
            with open(os.path.join(self.base, "where"), encoding="utf-8") as file:
                place = file.read()
            self.hive = Hive.open(
                place,
                droid=self.name,
                env={"QUEEN_DURABILITY": "buffered"},
                clock=self.clock,
            )
        return self.hive

    def _ask(self, operation: str, what: str, act, **more: object):
        """Asks, and notes that it asks, and what the answer was."""
        self.note("ask", self.name, operation, what, more)
        found, outcome = None, "done"
        try:
            found = act(self._opened())
        except QueenError as error:
            outcome = error.code
            more = {**more, "message": error.message}
            if error.code not in ("held", "taken", "busy"):
                self.hive = None
        except FileNotFoundError:
            # The directory went while it was opened: nothing was asked yet.
            outcome = "gone"
            self.hive = None
        if outcome in ("gone", "no_hive"):
            time.sleep(0.01)
        ids = [each.id for each in found] if found else []
        self.note("answer", self.name, operation, what, {**more, "outcome": outcome, "ids": ids})
        return found

    def _reserve(self) -> None:
        pattern = self.random.choice(PATTERNS)
        if pattern in self.leases:
            return
        exclusive = self.random.random() < 0.7
        found = self._ask(
            "reserve",
            pattern,
            lambda hive: hive.reservations.reserve(
                [pattern], exclusive=exclusive, ttl_s=TTL_S, issue_id=""
            ),
            exclusive=exclusive,
        )
        if found:
            self.leases[pattern] = found[0].id

    def _release(self) -> None:
        if self.leases:
            pattern = self.random.choice(sorted(self.leases))
            identifier = self.leases[pattern]
            if self._ask(
                "release", pattern, lambda hive: hive.reservations.release(ids=[identifier])
            ):
                del self.leases[pattern]

    def _claim(self) -> None:
        issue = f"qb-{self.random.randrange(ISSUES)}"
        if issue not in self.issues and self._ask(
            "claim", issue, lambda hive: [hive.assignments.claim(issue, anyway=True)]
        ):
            self.issues.add(issue)

    def _end(self) -> None:
        if self.issues:
            issue = self.random.choice(sorted(self.issues))
            how = self.random.choice(("complete", "release"))
            if self._ask("end", issue, lambda hive: [getattr(hive.assignments, how)(issue)]):
                self.issues.discard(issue)

    def _send(self) -> None:
        body = f"{self.name} {self.random.random()}"
        self._ask("send", body, lambda hive: list(hive.messages.send("all-of-us", body, new=True)))

    def _fork(self) -> None:
        """Forks while another thread writes; both go on with the hive that was open."""
        if self.hive is None:
            return
        hive, done = self.hive, threading.Event()

        def write() -> None:
            while not done.is_set():
                with suppress(QueenError, FileNotFoundError):
                    hive.messages.send("all-of-us", "from a thread", new=True)

        self._send()  # What a write imports is there: a child cannot wait for a thread's imports.
        beside = threading.Thread(target=write)
        beside.start()
        time.sleep(self.random.random() / 100)
        child = os.fork()
        if child == 0:
            signal.alarm(HANG_S)  # Ends the child, which counts as hung.
            self._send()
            time.sleep(0.1)  # Inherited handles must not keep the lock for so long.
            self._send()
            os._exit(0)
        done.set()
        beside.join()
        self._send()
        _, status = os.waitpid(child, 0)
        self.note("forked", self.name, "", "done", {"status": status})


def be_nobody() -> None:
    """Gives up root. What would be imported later may not be readable then."""
    import importlib
    import pkgutil

    import queenbee

    for found in pkgutil.walk_packages(queenbee.__path__, "queenbee."):
        with suppress(ImportError):  # Some modules are there for types alone.
            importlib.import_module(found.name)
    for name in ("hashlib", "re", "sqlite3", "tempfile", "select", "shutil", "statistics", "ulid"):
        importlib.import_module(name)
    with suppress(LooksLikeSecret):  # It imports its rules when a text makes it look closer.
        refuse_secrets({"body": "password = " + "Zx81-kQ9vLm2"})
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def work(base: str, name: str, who: str) -> None:
    """Works as one droid in this process."""
    os.umask(0)
    notes = os.open(os.path.join(base, "notes", name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if os.environ.get("TORTURE_BROKEN") == "lock":
        write.KernelLock = NoLock
    elif os.environ.get("TORTURE_BROKEN") == "outside":
        with open(os.path.join(base, "outside", "file"), "a", encoding="utf-8") as file:
            file.write("yours")
    if who == "nobody":
        be_nobody()
    Droid(base, name, notes).work()


# The weather around them.


def exchange(one: str, other: str) -> bool:
    """Exchanges two names at once, so that neither is missing in between."""
    at_cwd, rename_exchange = -100, 2
    done = ctypes.CDLL(None).renameat2(
        at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), rename_exchange
    )
    return done == 0


class Weather:
    """Moves the repository, plants links, kills and stops processes, one thing after another."""

    def __init__(self, base: str, processes: list[Process], rng: random.Random) -> None:
        self.base = base
        self.processes = processes
        self.random = rng
        self.place = os.path.join(base, "a", "repo")
        self.done: Counter[str] = Counter()

    def strike(self) -> None:
        """Does one thing."""
        choice = self.random.random()
        if choice < 0.12:
            self.move()
        elif choice < 0.55:
            self.link()
        elif choice < 0.75:
            self.kill()
        else:
            self.stop()

    def move(self) -> None:
        """Moves the repository; an empty one takes its place for a while."""
        old = self.place
        new = os.path.join(self.base, self.random.choice("bcdefg"), "repo")
        if new == old:
            return
        os.makedirs(os.path.dirname(new), exist_ok=True)
        os.rename(old, new)
        decoy = self.random.random() < 0.5
        if decoy:
            os.mkdir(old)
            git(old, "init", "-q")
            os.chmod(old, 0o777)
        time.sleep(self.random.random() / 5)
        self.place = new
        tell_where(self.base, new)
        time.sleep(self.random.random() / 5)
        if decoy:
            left = sorted(os.listdir(old))
            require(left == [".git"], f"written where the repository was: {left}")
            inside = sorted(os.listdir(os.path.join(old, ".git")))
            require("queenbee" not in inside, "state was made where the repository was")
            subprocess.run(["rm", "-rf", old], check=True)
        else:
            require(not os.path.lexists(old), "made anew where the repository was")
        self.done["moves"] += 1

    def link(self) -> None:
        """Puts a link that leads out in place of a file or a folder, and takes it away again."""
        target = self.random.choice(self._victims())
        path = self.random.choice(self._places())
        spare = os.path.join(self.base, "spare")
        with suppress(FileNotFoundError):
            os.unlink(spare)
        os.symlink(target, spare)
        if os.path.lexists(path):
            if not exchange(spare, path):
                return
            time.sleep(self.random.random() / 10)
            require(exchange(spare, path), f"{path} could not be put back")
            require(os.path.islink(spare), f"the link at {path} was replaced")
        else:
            try:
                os.symlink(target, path)
            except (FileExistsError, FileNotFoundError):
                return
            time.sleep(self.random.random() / 10)
            if os.path.islink(path):
                os.unlink(path)
        self.done["links"] += 1

    def _victims(self) -> list[str]:
        outside = os.path.join(self.base, "outside")
        return [os.path.join(outside, name) for name in ("file", "folder", "absent")]

    def _places(self) -> list[str]:
        state = os.path.join(self.place, ".git", "queenbee")
        found = [state, os.path.join(self.place, ".beads")]
        found += [os.path.join(self.place, ".beads", f"queen_{kind}.jsonl") for kind in KINDS]
        names = (
            "lock",
            "hive.sqlite3",
            "hive.sqlite3-wal",
            "told",
            "droids",
            "queue",
            "hook.log",
            "guard.log",
        )
        return found + [os.path.join(state, name) for name in names]

    def kill(self) -> None:
        """Kills a process; a new one takes its name."""
        process = self.random.choice(self.processes)
        process.kill()
        process.start()
        self.done["kills"] += 1

    def stop(self) -> None:
        """Stops a process for a moment, wherever it is."""
        process = self.random.choice(self.processes)
        process.send(signal.SIGSTOP)
        time.sleep(self.random.random() / 3)
        process.send(signal.SIGCONT)
        self.done["stops"] += 1


class Process:
    """A droid's process, and those that took its place."""

    def __init__(self, base: str, name: str, who: str, broken: str = "") -> None:
        self.arguments = (base, name, who)
        self.broken = broken
        self.errors = os.path.join(base, "notes", f"{name}.errors")
        self.start()

    def start(self) -> None:
        with open(self.errors, "ab") as errors:
            self.running = subprocess.Popen(
                [sys.executable, "-m", "tests.torture.storm", *self.arguments],
                cwd=ROOT,
                env={**ENVIRONMENT, "TORTURE_BROKEN": self.broken},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    def send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.running.pid, number)

    def kill(self) -> None:
        """Kills it and what it forked."""
        self.send(signal.SIGKILL)
        self.running.wait()

    def finish(self) -> None:
        """Waits for its end; it was told to stop."""
        try:
            status = self.running.wait(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            self.kill()
            require(False, f"{self.arguments[1]} hangs")
        require(status == 0, f"{self.arguments[1]} ended with {status}: {self.told()}")

    def told(self) -> str:
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read()[-2_000:]


def tell_where(base: str, place: str) -> None:
    """Tells the droids where the repository is."""
    fresh = os.path.join(base, "where.new")
    with open(fresh, "w", encoding="utf-8") as file:
        file.write(place)
    os.replace(fresh, os.path.join(base, "where"))


# The checker.


def snapshot(folder: str) -> dict[str, object]:
    """Returns everything below a folder: modes, times and contents."""
    found: dict[str, object] = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            about = os.lstat(path)
            content = None
            if stat.S_ISREG(about.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            found[path] = (about.st_mode, about.st_mtime_ns, content)
    return found


def read_notes(base: str) -> list[list]:
    """Returns all notes, by time."""
    notes = []
    folder = os.path.join(base, "notes")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".errors"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                notes += [json.loads(line) for line in file]
    return sorted(notes, key=lambda note: note[0])


def granted_twice(notes: list[list]) -> tuple[int, list[str]]:
    """Returns how many grants there were, and those that excluded each other.

    A hold is certain from the answer that grants it to the next request to end it; a new process
    of the same name ends what the old one had.
    """
    every: list[Hold] = []
    holds: dict[tuple[str, str], Hold] = {}
    asked: dict[tuple[str, str, str], int] = {}
    for at, what, droid, operation, thing, more in notes:
        if what == "begin":
            for key in [key for key in holds if key[0] == droid]:
                holds.pop(key).end_asked = at
        elif what == "ask":
            asked[droid, operation, thing] = at
            if operation in ("release", "end") and (droid, thing) in holds:
                holds.pop((droid, thing)).end_asked = at
        elif what == "answer" and more["outcome"] == "done" and operation in ("reserve", "claim"):
            begun = asked[droid, operation, thing]
            hold = Hold(droid, thing, more.get("exclusive", True), begun, at)
            holds[droid, thing] = hold
            every.append(hold)
    return len(every), _held_together(every)


def lines_of(place: str) -> dict[str, tuple[int, dict[str, object]]]:
    """Returns the newest line of each record in a ledger, and its revision."""
    newest: dict[str, tuple[int, dict[str, object]]] = {}
    for kind in KINDS:
        path = os.path.join(place, ".beads", f"queen_{kind}.jsonl")
        if not os.path.exists(path):  # In a short storm, nobody may have written any.
            continue
        with open(path, "rb") as file:
            for line in file.read().split(b"\n"):
                try:
                    fields = json.loads(line)
                except ValueError:
                    continue
                if fields["rev"] > newest.get(fields["id"], (0, {}))[0]:
                    newest[fields["id"]] = fields["rev"], fields
    return newest


def lost(notes: list[list], place: str) -> tuple[int, list[str]]:
    """Returns how many records were acknowledged, and what the files do not have of them."""
    newest = lines_of(place)
    acknowledged = 0
    missing: list[str] = []
    for _, what, droid, operation, thing, more in notes:
        if what != "answer" or more["outcome"] != "done":
            continue
        for identifier in more["ids"]:
            acknowledged += 1
            fields = newest.get(identifier, (0, {}))[1]
            if not fields or (operation == "send" and fields["body"] != thing):
                missing.append(f"{droid} {operation} {thing}: {identifier} is not there")
            if operation in ("release", "end") and fields.get("status", "active") == "active":
                missing.append(f"{droid} {operation} {thing}: {identifier} is active")
    return acknowledged, missing


ANSWERS = {
    "done", "held", "taken", "busy", "gone", "not_found", "not_yours", "unreadable", "no_hive",
    "unwritable",
}  # fmt: skip
"""What a droid may be told in this weather."""


def run(
    folder: str, seconds: float, *, seed: int = 1, droids: int = 5, broken: str = ""
) -> dict[str, object]:
    """Lets the storm rage and judges what it left; returns the figures."""
    base = os.path.realpath(folder)
    os.chmod(base, 0o755)
    for name in ("a", "notes", "outside"):
        os.mkdir(os.path.join(base, name))
    place = make_repository(os.path.join(base, "a", "repo"))
    git(place, "config", "core.sharedRepository", "0777")
    subprocess.run(["chmod", "-R", "a+rwX", os.path.join(base, "a")], check=True)
    outside = os.path.join(base, "outside")
    os.mkdir(os.path.join(outside, "folder"))
    for path in ("file", os.path.join("folder", "messages.jsonl")):
        with open(os.path.join(outside, path), "w", encoding="utf-8") as file:
            file.write("not yours\n")
    subprocess.run(["chmod", "-R", "a+rwX", outside], check=True)
    before = snapshot(outside)
    tell_where(base, place)
    without = no_second_user(base)
    processes = [
        Process(base, f"d{number}", "me" if without or number % 2 == 0 else "nobody", broken)
        for number in range(droids)
    ]
    weather = Weather(base, processes, random.Random(seed))
    try:
        wait_for_work(base, processes)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            weather.strike()
            time.sleep(weather.random.random() / 10)
            for each in processes:
                require(each.running.poll() is None, f"{each.arguments[1]} died: {each.told()}")
            require(snapshot(outside) == before, "written outside the hive")
        with open(os.path.join(base, "stop"), "w", encoding="utf-8"):
            pass
        for each in processes:
            each.finish()
    finally:
        for each in processes:
            each.kill()
    return {
        **judge(base, weather.place),
        **weather.done,
        "second user": f"skipped: {without}" if without else "nobody",
    }


def wait_for_work(base: str, processes: list[Process]) -> None:
    """Waits until each has been answered once: a busy machine may need a while for that."""
    until = time.monotonic() + 120
    while sum('"answer"' in each.read_text() for each in Path(base, "notes").iterdir()) < len(
        processes
    ):
        for each in processes:
            require(each.running.poll() is None, f"{each.arguments[1]} died: {each.told()}")
        require(time.monotonic() < until, "nobody began to work")
        time.sleep(0.05)


def no_second_user(base: str) -> str:
    """Returns why no second user can take part, or nothing."""
    if os.geteuid() != 0:
        return "needs root"
    above = base
    while (above := os.path.dirname(above)) != os.sep:
        if not os.stat(above).st_mode & stat.S_IXOTH:
            return f"{above} is closed to others"
    return ""


def judge(base: str, place: str) -> dict[str, object]:
    """Returns the figures. Raises `Broken` if a promise did not hold."""
    notes = read_notes(base)
    answers = Counter(note[5]["outcome"] for note in notes if note[1] == "answer")
    strange = sorted(set(answers) - ANSWERS)
    examples = [note for note in notes if note[1] == "answer" and note[5]["outcome"] in strange]
    require(not strange, f"answers that nobody expected: {examples[:3]}")
    forked = [note for note in notes if note[1] == "forked"]
    hung = [note for note in forked if note[5]["status"] != 0]
    require(not hung, f"forked children ended with {hung[:3]}")
    granted, twice = granted_twice(notes)
    require(not twice, f"granted twice: {twice[:3]}")
    acknowledged, missing = lost(notes, place)
    require(not missing, f"lost: {missing[:3]}")
    heal(place)
    wrong = errors_of(open_hive(place, "queen"))
    require(not wrong, str(wrong[:3]))
    return {
        "asked": sum(note[1] == "ask" for note in notes),
        "acknowledged": acknowledged,
        "granted": granted,
        "answers": dict(sorted(answers.items())),
        "forks": len(forked),
        "lost": 0,
        "granted twice": 0,
        "written outside": 0,
    }


if __name__ == "__main__":
    work(*sys.argv[1:])
