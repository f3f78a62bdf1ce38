"""Writers killed at every step and at random moments; what was acknowledged stays, whole."""

from __future__ import annotations

import builtins
import glob
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter

from queenbee.store.creating import init
from queenbee.store.layout import discover
from queenbee.store.memory import database
from queenbee.store.memory.archive import Archive
from tests.torture.places import (
    ENVIRONMENT,
    ROOT,
    errors_of,
    make_repository,
    must,
    open_hive,
    require,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TRAPPED = (
    "open",
    "write",
    "pwrite",
    "ftruncate",
    "unlink",
    "mkdir",
    "replace",
    "fsync",
    "fdatasync",
    "close",
)
"""The calls by which Python code changes files: a child is killed at each of them in turn."""


class Scene:
    """A repository in a certain state, what a writer then does in it, and what has to hold."""

    def __init__(self, tree: str, before: set[bytes]) -> None:
        self.tree = tree
        self.before = before

    @classmethod
    def first(cls, folder: str) -> Scene:
        """Makes the scene that the others are copied from."""
        scene = cls(make_repository(os.path.join(folder, cls.__name__)), set())
        scene.prepare()
        scene.before = lines_of(scene.tree)
        return scene

    def again(self, name: str) -> Scene:
        """Returns a copy of the scene, to be spoiled."""
        tree = f"{self.tree}-{name}"
        shutil.copytree(self.tree, tree, symlinks=True)
        return type(self)(tree, self.before)

    def prepare(self) -> None:
        """Brings the repository into its state."""
        open_hive(self.tree, "ui").messages.send("api", "before", new=True)

    def begin(self) -> None:
        """Does what the child survives."""

    def act(self) -> None:
        """Does what a child is killed in."""
        raise NotImplementedError

    def check(self, fresh: set[bytes]) -> None:
        """Raises `Broken` where what a killed child recorded is half of something."""
        require(len(fresh) <= 1, f"{len(fresh)} lines of one")


class Append(Scene):
    def act(self) -> None:
        open_hive(self.tree, "ui", durability="synced").messages.send("api", "x" * 3_000, new=True)


class AppendSeveral(Scene):
    def act(self) -> None:
        patterns = [f"src/{number}/**" for number in range(5)]
        open_hive(self.tree, "ui", durability="synced").reservations.reserve(patterns)

    def check(self, fresh: set[bytes]) -> None:
        require(len(fresh) in (0, 5), f"{len(fresh)} of 5 patterns are reserved")


class AppendFromAnOpenHive(Scene):
    def begin(self) -> None:
        self.hive = open_hive(self.tree, "ui", durability="synced")
        for number in range(2):
            self.hive.reservations.reserve([f"before/{number}"])

    def act(self) -> None:
        self.hive.reservations.reserve([f"src/{number}/**" for number in range(5)])

    def check(self, fresh: set[bytes]) -> None:
        require(len(fresh) in (2, 7), f"{len(fresh) - 2} of 5 patterns are reserved")


class TwoLedgers(Scene):
    def prepare(self) -> None:
        hive = open_hive(self.tree, "ui")
        hive.assignments.claim("qb-1")
        hive.reservations.reserve(["a/**", "b/**"], issue_id="qb-1")

    def act(self) -> None:
        open_hive(self.tree, "ui", durability="synced").assignments.complete("qb-1")

    def check(self, fresh: set[bytes]) -> None:
        require(len(fresh) in (0, 3), "of an assignment and two leases, some ended")


class Heal(Scene):
    def prepare(self) -> None:
        hive = open_hive(self.tree, "ui")
        for number in range(5):
            hive.messages.send("api", f"before {number}", new=True)
        os.truncate(hive.layout.ledger_path("messages"), 100)

    act = Append.act


class TakeIn(Scene):
    def prepare(self) -> None:
        hive = open_hive(self.tree, "ui")
        hive.messages.send("api", "before", new=True)
        with open(hive.layout.ledger_path("messages"), "ab") as file:
            for number in range(5):
                file.write(b'{"id":"qm-foreign-%d","rev":1,"to":"ui","from":"x"}\n' % number)

    act = Append.act


class Adopt(Scene):
    def prepare(self) -> None:
        hive = open_hive(self.tree, "ui")
        for number in range(5):
            hive.messages.send("api", f"before {number}", new=True)
        hive.close()
        for path in glob.glob(hive.layout.memory_path + "*"):
            os.unlink(path)

    act = Append.act


class Rotate(Scene):
    """Some records are closed and move, others are open and stay."""

    def prepare(self) -> None:
        hive = open_hive(self.tree, "ui")
        for number in range(5):
            hive.assignments.claim(f"qb-{number}")
        for number in range(3):
            hive.assignments.complete(f"qb-{number}")
        hive.rotate(older_than_s=0)
        hive.assignments.complete("qb-3")

    def act(self) -> None:
        open_hive(self.tree, "ui", durability="synced").rotate(older_than_s=0)

    def check(self, fresh: set[bytes]) -> None:
        require(not fresh, f"{len(fresh)} lines that nobody wrote")


class TakeInSegment(Scene):
    """What another clone archived, and took out of its ledger, came by git."""

    def prepare(self) -> None:
        hive = open_hive(self.tree, "ui")
        for number in range(5):
            hive.messages.send("api", f"before {number}", new=True)
        with open(hive.layout.ledger_path("messages"), "rb+") as file:
            lines = file.read().splitlines(keepends=True)
            file.seek(0)
            file.truncate()
            file.writelines(lines[3:])
        archive = Archive(hive.layout.ledger_path("messages"))
        os.makedirs(archive.folder)
        with open(archive.path("queen_messages.1.jsonl"), "wb") as file:
            file.writelines([*lines[:3], b'{"id":"qm-foreign","rev":1,"to":"ui","from":"x"}\n'])

    act = Append.act


class Init(Scene):
    def prepare(self) -> None:
        must(self.tree, "rm", "-rqf", ".beads")

    def act(self) -> None:
        init(discover(self.tree, {}, must_exist=False))


SCENES: tuple[type[Scene], ...] = (
    Append,
    AppendSeveral,
    AppendFromAnOpenHive,
    TwoLedgers,
    Heal,
    TakeIn,
    Adopt,
    Rotate,
    TakeInSegment,
    Init,
)


def lines_of(tree: str) -> set[bytes]:
    """Returns the usable lines that a fresh reader sees, of all ledgers; none without a hive."""
    if not os.path.isdir(os.path.join(tree, ".beads")):
        return set()
    with open_hive(tree, "queen") as hive:
        for kind in hive.kinds():
            hive.state(kind)
        rows = hive.engine.memory.database.ask("SELECT raw FROM lines")
    return {raw for (raw,) in rows if isinstance(raw, bytes)}


def killed_at(
    nth: int,
    act: Callable[[], None],
    *,
    part: float,
    begin: Callable[[], None] = lambda: None,
) -> tuple[bool, bool]:
    """Runs `act` in a child killed at its nth trapped call, that far into a write. What it does in
    `begin`, before that, it survives.

    Returns whether it was killed, and whether it had been told that all went well before.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            tell = os.write
            begin()
            _set_trap(nth, part)
            act()
            tell(writer, b"ok")
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        acknowledged = told.read() == b"ok"
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    require(killed or os.WEXITSTATUS(status) == 0, "a child failed on its own")
    return killed, acknowledged


def _set_trap(nth: int, part: float) -> None:
    left = nth

    def trap(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def trapped(*args: object, **kwargs: object) -> object:
            nonlocal left
            left -= 1
            if left == 0:
                try:
                    if name in ("write", "pwrite"):
                        fd, data = args[0], bytes(args[1])  # type: ignore[call-overload]
                        original(fd, data[: int(len(data) * part)], *args[2:])
                    elif part:
                        original(*args, **kwargs)
                finally:
                    os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return trapped

    for name in TRAPPED:
        setattr(os, name, trap(name, getattr(os, name)))
    builtins.open = trap("builtin", builtins.open)  # type: ignore[assignment]

    class Trapped(sqlite3.Connection):
        """Dies at a statement that changes the memory, as at any other step."""

        execute = trap("execute", sqlite3.Connection.execute)  # type: ignore[assignment]
        executemany = trap("executemany", sqlite3.Connection.executemany)  # type: ignore[assignment]

    connect = database.sqlite.connect
    database.sqlite.connect = lambda *args, **more: connect(*args, **more, factory=Trapped)


def at_every_step(
    folder: str,
    *,
    scenes: tuple[type[Scene], ...] = SCENES,
    parts: tuple[float, ...] = (0.0, 0.5, 1.0),
) -> Counter[str]:
    """Kills each scene's writer at each of its steps; returns the kills by scene."""
    kills = Counter[str]()
    for kind in scenes:
        first = kind.first(folder)
        for part in parts:
            nth, killed = 0, True
            while killed:
                nth += 1
                place = first.again(f"{part}-{nth}")
                killed, acknowledged = killed_at(nth, place.act, part=part, begin=place.begin)
                _check(place, acknowledged=acknowledged)
                shutil.rmtree(place.tree)
                kills[kind.__name__] += killed
    return kills


def _check(place: Scene, *, acknowledged: bool) -> None:
    if isinstance(place, Init):
        init(discover(place.tree, {}, must_exist=False))
    seen = lines_of(place.tree)
    where = place.tree
    require(place.before <= seen, f"{where}: {len(place.before - seen)} recorded lines are gone")
    place.check(seen - place.before)
    if acknowledged and not isinstance(place, Init | Rotate):
        require(seen - place.before, f"{where}: what was acknowledged is gone")
    # The dead hold no lock, and the next write is whole and heals.
    hive = open_hive(place.tree, "queen")
    hive.layout.settings.lock_timeout_s = 0
    sent = hive.messages.send("api", "after", new=True)[0]
    with hive.transaction() as tx:
        for kind in hive.kinds():
            tx.touch(kind)
    after = lines_of(place.tree)
    require(seen < after and len(after) == len(seen) + 1, f"{where}: the next write was not whole")
    require(open_hive(place.tree, "api").messages.get(sent.id), "the next write is not seen")
    for kind in hive.kinds():
        missing = open_hive(place.tree, "api").engine.memory.lacking(kind)
        require(not missing, f"{where}: {kind} did not heal")
    wrong = errors_of(open_hive(place.tree, "queen"), but=frozenset({"unusable_line"}))
    require(not wrong, f"{where}: {wrong}")


def at_random(folder: str, count: int, *, seed: int) -> dict[str, object]:
    """Kills real processes at random moments, all on one hive; returns the figures."""
    rng = random.Random(seed)
    tree = make_repository(os.path.join(folder, "random"))
    log = os.path.join(folder, "acknowledged")
    open(log, "wb").close()
    total = 0
    for number in range(count):
        size = os.path.getsize(log)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.kills", "busy", tree, log, str(number)],
            cwd=ROOT,
            env=ENVIRONMENT,
        )
        while os.path.getsize(log) == size:  # It acknowledges, so it is in the thick of it.
            require(process.poll() is None, "a busy writer died on its own")
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.03))
        process.kill()
        process.wait()
        with open(log, "rb") as file:
            told = file.read().split()
        wanted, total = set(told[total:]), len(told)
        seen = b"\n".join(lines_of(tree))
        lost = [each for each in wanted if each not in seen]
        require(not lost, f"kill {number}: {len(lost)} acknowledged records are gone: {lost[:3]}")
        _check_whole_grants(tree)
        hive = open_hive(tree, "queen")
        hive.layout.settings.lock_timeout_s = 0
        hive.messages.send("api", "after", new=True)
    hive = open_hive(tree, "queen")
    with open(log, "rb") as file:
        seen = b"\n".join(lines_of(tree))
        require(all(each in seen for each in file.read().split()), "acknowledged records are gone")
    wrong = errors_of(hive, but=frozenset({"unusable_line"}))
    require(not wrong, str(wrong))
    return {"kills": count, "acknowledged": total, "lost": 0}


def _check_whole_grants(tree: str) -> None:
    """Each reservation of the busy writer is of five patterns, and they come together."""
    counts = Counter(
        lease.reason for lease in open_hive(tree, "queen").reservations.find(ended=True)
    )
    halves = {reason: count for reason, count in counts.items() if count != 5}
    require(not halves, f"granted in part: {halves}")


def busy(tree: str, log: str, number: str) -> None:
    """Appends, reserves and releases as fast as it can, noting what was acknowledged."""
    hive = open_hive(tree, f"busy-{number}", durability="synced")
    with open(log, "ab", buffering=0) as acknowledged:
        turn = 0
        while True:
            turn += 1
            sent = hive.messages.send("api", f"{number} {turn}", new=True)[0]
            acknowledged.write(f"{sent.id}\n".encode())
            patterns = [f"{number}/{turn}/{each}/**" for each in range(5)]
            granted = hive.reservations.reserve(patterns, reason=f"{number} {turn}")
            acknowledged.write("".join(f"{lease.id}\n" for lease in granted).encode())


if __name__ == "__main__":
    assert sys.argv[1] == "busy"
    busy(*sys.argv[2:])
