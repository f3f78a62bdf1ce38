"""Confirmed grants of several clones: wrong clocks, a bad network, pushers that are killed.

    python -m tests.torture remote --operations 20000

Each clone has a clock of its own, up to an hour off, and droids in processes of their own that are
killed at random. Each clone reaches the remote through a proxy that delays, cuts and truncates, and
now and then lets nothing through for seconds. What comes of it is judged by `remote_history`.

A run is cut into rounds, each in a new world, so that no lease really ends in it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

from queenbee import Hive
from queenbee.errors import Busy, Held, QueenError, Taken
from queenbee.git.remote import confirmed_grants, syncing
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.sync_state import Notes
from tests.torture.kills import killed_at
from tests.torture.network import Proxy, Server
from tests.torture.places import ENVIRONMENT, ROOT, must, require
from tests.torture.remote_history import MEET, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

HOUR_MS = 3_600_000
TTL_S = 1800
"""Shorter than the clocks differ: judged by them, a lease that was just granted has ended."""
MOST_S = 1500
"""No round may last so long that a lease really ends."""
ROUND = 2_500
"""So many operations are in one round."""
ISSUES = ("shop-1", "shop-2", "shop-3")
SERVERS = ("git", "http")
"""The server of each round, in turn."""
_BETWEEN_KILLS = 6
"""At least so many operations are between two kills, so that most of them end, however slow the
machine is."""
_PARTITIONS = 0.02
_LONGEST_PARTITION_S = 4.0
_PAUSE_S = 0.2
"""Before a droid that could not reach the remote asks again."""


# The droids at work.


def work(tree: str, log: str, name: str, off_ms: int, seed: int, broken: str) -> None:
    """Lets one droid ask until it is killed."""
    if broken == "blind":
        syncing._Exchange._take_in = _taking_nothing_in(syncing._Exchange._take_in)
    hive = Hive.open(
        tree,
        droid=name,
        env={"QUEEN_DURABILITY": "buffered"},
        clock=lambda: time.time_ns() // 1_000_000 + off_ms,
    )
    if broken == "clock":  # The hive goes by its own clock, as if all clocks told one time.
        object.__setattr__(hive.layout.settings, "sync_clock_skew_s", 0)
    chance = random.Random(seed)
    with open(log, "a", encoding="utf-8") as file:
        while True:
            _act(hive, chance, file.fileno())


def _taking_nothing_in(take_in: Callable[..., None]) -> Callable[..., None]:
    """Returns what notes that it has the lines of a commit, and does not append them."""

    def blind(exchange: Any, head: str | None) -> None:
        exchange._append = lambda lines: None
        try:
            take_in(exchange, head)
        finally:
            del exchange._append

    return blind


def _note(log: int, **fields: object) -> None:
    line = json.dumps({"at": time.monotonic_ns(), **fields}) + "\n"
    os.write(log, line.encode())  # In the kernel: it survives a kill.


def _act(hive: Hive, chance: random.Random, log: int) -> None:
    held = [*hive.assignments.find(droid=hive.actor), *hive.reservations.find(droid=hive.actor)]
    if held and chance.random() < 0.8:
        given = chance.choice(held)
        _note(log, do="end", id=given.id, droid=hive.actor)
        with suppress(QueenError):
            if given.id.startswith("qa"):
                hive.assignments.release(given.issue_id)
            else:
                hive.reservations.release(ids=[given.id])
            syncing.sync(hive)
        return
    if chance.random() < 0.5:
        what = chance.choice(ISSUES)

        def grant() -> list[object]:
            return [hive.assignments.claim(what, anyway=True)]
    else:
        what = chance.choice(sorted(MEET))

        force = chance.random() < 0.2

        def grant() -> list[object]:
            return hive.reservations.reserve([what], ttl_s=TTL_S, force=force, reason="needed")

    _note(log, do="ask", what=what, droid=hive.actor)
    try:
        given = confirmed_grants.confirmed(hive, grant)[0]  # type: ignore[arg-type]
        _note(log, do="yes", what=what, id=given.id, token=given.token, droid=hive.actor)
    except (Held, Taken):
        _note(log, do="no", what=what, droid=hive.actor)
    except Busy as error:
        _note(log, do=error.code, what=what, droid=hive.actor)
        time.sleep(_PAUSE_S)
    except QueenError as error:
        _note(log, do="failed", what=what, droid=hive.actor, said=error.message)


def nurse() -> None:
    """Starts and kills droids as its standard input says, and kills all of them at its end.

    They are forked from here: to start a Python and import everything takes longer than a grant.
    """
    import filelock  # noqa: F401, PLC0415 - each droid would import them anew
    import orjson  # noqa: F401, PLC0415

    droids: dict[str, int] = {}
    try:
        while line := sys.stdin.readline():
            what, name, *more = json.loads(line)
            if what == "start":
                droids[name] = _forked(*more)
            elif name in droids:
                _end(droids.pop(name))
            print(len(droids), flush=True)
    finally:
        for pid in droids.values():
            _end(pid)


def _forked(tree: str, log: str, name: str, off_ms: int, seed: int, broken: str) -> int:
    pid = os.fork()
    if pid:
        with suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    try:
        # A group of its own: the gits that read and write die with it. Those that fetch and push
        # have sessions of their own, and go on without it.
        os.setpgid(0, 0)
        os.close(0)
        os.open(os.devnull, os.O_RDONLY)
        work(tree, log, name, off_ms, seed, broken)
    finally:
        os._exit(1)


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


class _Droids:
    """The droids of one round, in a process that forks them."""

    def __init__(self, broken: str) -> None:
        self._broken = broken
        self._places: dict[str, tuple[str, str, int]] = {}
        self._nurse = subprocess.Popen(
            [sys.executable, "-c", "from tests.torture import remote; remote.nurse()"],
            cwd=ROOT, env=ENVIRONMENT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def add(self, name: str, tree: str, log: str, off_ms: int) -> None:
        self._places[name] = tree, log, off_ms

    @property
    def names(self) -> list[str]:
        return [*self._places]

    def start(self, name: str, seed: int) -> None:
        tree, log, off_ms = self._places[name]
        self._say("start", name, tree, log, name, off_ms, seed, self._broken)

    def kill(self, name: str) -> None:
        self._say("kill", name)

    def stop(self) -> None:
        with suppress(OSError):
            self._nurse.communicate(timeout=60)

    def _say(self, *words: object) -> None:
        assert self._nurse.stdin is not None
        assert self._nurse.stdout is not None
        self._nurse.stdin.write(json.dumps(words) + "\n")
        self._nurse.stdin.flush()
        require(self._nurse.stdout.readline(), "the process that starts the droids has ended")


# Rounds.


def rounds(base: str, *, operations: int, seed: int, seconds: float) -> dict[str, object]:
    """Runs as many rounds as it takes, each of which is printed; returns the figures of all."""
    total: Counter[str] = Counter()
    until, number = time.monotonic() + seconds, 0
    while total["operations"] < operations and time.monotonic() < until:
        folder = os.path.join(base, f"round-{number}")
        os.makedirs(folder)
        figures = run(
            folder,
            operations=min(ROUND, operations - total["operations"]),
            seed=seed + number,
            server=SERVERS[number % len(SERVERS)],
            seconds=min(MOST_S, until - time.monotonic()),
        )
        shutil.rmtree(folder)
        print(f"  round {number} (seed {seed + number}): {json.dumps(figures)}", flush=True)
        most = max(total["most at once"], int(str(figures["most at once"])))
        total.update({k: v for k, v in figures.items() if isinstance(v, int)})
        total["most at once"] = most
        number += 1
    return {"rounds": number, **total}


def run(
    base: str,
    *,
    operations: int,
    seed: int,
    clones: int = 5,
    droids: int = 3,
    seconds: float = MOST_S,
    server: str = "git",
    cuts: float = 0.1,
    kill: bool = True,
    broken: str = "",
) -> dict[str, object]:
    """Lets the droids of all clones ask and give back so often, and returns the figures.

    Raises `Broken`.
    """
    chance = random.Random(seed)
    bare = os.path.join(base, "remote.git")
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True, env=ENVIRONMENT)
    # Each push would start gits that look for what to pack.
    must(bare, "config", "receive.autogc", "false")
    serving = Server(base, server)
    workers = _Droids(broken)
    proxies, logs = [], []
    begun = time.monotonic()
    try:
        for number in range(clones):
            proxy = Proxy(serving.port, seed * clones + number, cuts=cuts)
            proxy.start()
            proxies.append(proxy)
            tree = _clone(base, bare, f"clone-{number}", serving.url(proxy.port, "remote.git"))
            # The two extremes are always there.
            off_ms = (
                (-HOUR_MS, HOUR_MS)[number] if number < 2 else chance.randint(-HOUR_MS, HOUR_MS)
            )
            for droid in range(droids):
                logs.append(os.path.join(base, f"log-{number}-{droid}"))
                workers.add(f"d{number}.{droid}", tree, logs[-1], off_ms)
        begun = time.monotonic()
        kills = _drive(workers, proxies, logs, chance, operations, begun + seconds, kill=kill)
        took = time.monotonic() - begun
    finally:
        workers.stop()
        for each in proxies:
            each.stop()
        serving.stop()
    notes = [note for log in logs for note in _notes(log)]
    figures = check(bare, notes)
    return {
        "operations": sum(note["do"] in ("ask", "end") for note in notes),
        **figures,
        "kills": kills,
        "connections": sum(each.served for each in proxies),
        "cut": sum(each.cut for each in proxies),
        "delayed": sum(each.delayed for each in proxies),
        "partitions": sum(each.partitions for each in proxies),
        "seconds": round(took),
        "server": server,
    }


def _clone(base: str, bare: str, name: str, url: str) -> str:
    tree = os.path.join(base, name)
    must(base, "clone", "-q", bare, tree)
    must(tree, "remote", "set-url", "origin", url)
    beads = os.path.join(tree, ".beads")
    os.makedirs(beads)
    with open(os.path.join(beads, "queen.toml"), "w", encoding="utf-8") as file:
        file.write('[sync]\ntimeout = "10s"\n')
    return tree


def _drive(
    droids: _Droids,
    proxies: list[Proxy],
    logs: list[str],
    chance: random.Random,
    operations: int,
    until: float,
    *,
    kill: bool,
) -> int:
    kills = done = last = 0
    for each in droids.names:
        droids.start(each, chance.randrange(2**32))
    while time.monotonic() < until and (done := sum(map(_operations, logs))) < operations:
        time.sleep(chance.uniform(0.05, 0.5))
        if not kill or done < last + _BETWEEN_KILLS:
            continue
        last = done
        victim = chance.choice(droids.names)
        droids.kill(victim)
        droids.start(victim, chance.randrange(2**32))
        kills += 1
        if chance.random() < _PARTITIONS:
            chance.choice(proxies).part(chance.uniform(0.5, _LONGEST_PARTITION_S))
    return kills


def _operations(log: str) -> int:
    with suppress(FileNotFoundError), open(log, encoding="utf-8") as file:
        text = file.read()
        return text.count('"do": "ask"') + text.count('"do": "end"')
    return 0


def _notes(log: str) -> list[dict[str, object]]:
    with suppress(FileNotFoundError), open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]
    return []


# One who is killed at every step.


def at_every_step(
    folder: str, *, parts: Iterable[float] = (0.0, 0.5, 1.0), every: int = 1
) -> dict[str, int]:
    """Kills a process at each step of a confirmed reservation; returns the figures.

    Then another clone asks for the same, and both exchange. In the remote's history, the two never
    exclude each other, and both clones agree on who has it.
    """
    first = _two_clones(os.path.join(folder, "first"))
    found: Counter[str] = Counter()
    for part in parts:
        nth, killed = 0, True
        while killed:
            nth += every
            world = os.path.join(folder, f"{part}-{nth}")
            shutil.copytree(first, world, symlinks=True)
            killed, told = killed_at(nth, lambda at=world: _reserve(at, "one"), part=part)
            who = _healed(world, told=told)
            found["kills"] += killed
            found[f"then held by {who}"] += 1
            shutil.rmtree(world)
    return dict(found)


def _two_clones(world: str) -> str:
    os.makedirs(world)
    bare = os.path.join(world, "remote.git")
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True, env=ENVIRONMENT)
    for name in ("one", "two"):
        # By a relative path: the world is copied.
        _clone(world, bare, name, "../remote.git")
    _opened(world, "two").assignments.claim("shop-1")
    for name in ("two", "one"):
        syncing.sync(_opened(world, name))
    return world


def _opened(world: str, name: str) -> Hive:
    tree = os.path.join(world, name)
    return Hive.open(tree, droid=name, env={"QUEEN_DURABILITY": "buffered"})


def _reserve(world: str, name: str) -> None:
    hive = _opened(world, name)
    confirmed_grants.confirmed(hive, lambda: hive.reservations.reserve(["src/**"], ttl_s=TTL_S))


def _healed(world: str, *, told: bool) -> str:
    """Lets the other clone ask, and both exchange; returns who has it then."""
    with suppress(Held):
        _reserve(world, "two")
    for name in ("one", "two", "one"):
        syncing.sync(_opened(world, name))
    hives = [_opened(world, name) for name in ("one", "two")]
    holders = [{each.droid for each in hive.reservations.find()} for hive in hives]
    require(holders[0] == holders[1], f"{world}: the clones say {holders}")
    require(len(holders[0]) == 1, f"{world}: it is held by {holders[0]}")
    require(not told or holders[0] == {"one"}, f"{world}: who was told yes does not have it")
    for hive in hives:
        left = Notes(hive, Branch(hive).ref).pending()
        require(not left, f"{world}: requests are left: {left}")
        require(not hive.reservations.conflicts(), f"{world}: grants collide")
        require(
            all(each.token and not each.unconfirmed for each in hive.reservations.find()),
            f"{world}: what is held was not confirmed",
        )
    check(os.path.join(world, "remote.git"), [])
    return holders[0].pop()
