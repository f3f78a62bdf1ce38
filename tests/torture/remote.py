"""Confirmed grants of several clones: wrong clocks, a bad network, pushers that are killed.

    python -m tests.torture remote --operations 20000

Each clone has a clock of its own, up to an hour off, and droids in processes of their own that are
killed at random. They reach the remote through a proxy that delays, cuts and truncates.

The checker knows nothing of QueenBee. It reads the commits of the remote's branch one after the
other, and what each process noted before it asked and after it was answered, and requires that

- in no commit two confirmed grants of different droids exclude each other;
- each token is the number of the commit that brought it;
- whoever was told yes is in that history, and no two were told so for the same thing at once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

from mutants import mutant

from queenbee import Hive
from queenbee.core.leases import NEVER_MS
from queenbee.errors import Busy, Held, QueenError, Taken
from queenbee.git.remote import confirming, deciding, syncing
from tests.torture.places import ENVIRONMENT, ROOT, must, require

BRANCH = "queenbee/hive"
HOUR_MS = 3_600_000
TTL_S = 1800
"""Shorter than the clocks differ: judged by them, a lease that was just granted has ended."""
MOST_S = 1500
"""No run may last so long that a lease really ends."""
ISSUES = ("shop-1", "shop-2", "shop-3")
MEET = {
    "src/**": {"src/**", "src/a.py", "**/a.py"},
    "src/a.py": {"src/**", "src/a.py", "**/a.py"},
    "**/a.py": {"src/**", "src/a.py", "**/a.py", "docs/*"},
    "docs/*": {"docs/*", "**/a.py"},
}
"""Which patterns share a path, by hand."""
_ENDED = ("released", "completed", "reassigned")
_GRACE_S = 60


# The network.


class Proxy(threading.Thread):
    """Stands between the clones and the remote's daemon, and cuts connections."""

    def __init__(self, port: int, seed: int, *, cuts: float) -> None:
        super().__init__(daemon=True)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._to = port
        self._random = random.Random(seed)
        self._cuts = cuts
        self.cut = 0

    def run(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def stop(self) -> None:
        self._server.close()

    def _serve(self, client: socket.socket) -> None:
        # Many end within the first bytes of an answer: the push counted, and nobody was told.
        bad = self._random.random() < self._cuts
        limit = int(2 ** self._random.uniform(0, 13)) if bad else None
        which = self._random.random() < 0.5
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._to)) as remote:
            if bad and self._random.random() < 0.2:
                self.cut += 1
                return
            up = threading.Thread(
                target=self._pump, args=(client, remote, limit if which else None), daemon=True
            )
            up.start()
            self._pump(remote, client, None if which else limit)
            up.join(5)

    def _pump(self, source: socket.socket, target: socket.socket, limit: int | None) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(65_536):
                if limit is not None and passed + len(data) > limit:
                    target.sendall(data[: limit - passed])
                    self.cut += 1
                    for each in (source, target):
                        each.shutdown(socket.SHUT_RDWR)
                    return
                passed += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


# The droids at work.


def work(tree: str, log: str, name: str, off_ms: int, seed: int, broken: str) -> None:
    """Lets one droid ask until it is killed."""
    if broken == "clock":
        by_clock = mutant(deciding, "margin_ms = skew_ms if", "margin_ms = 0 if")
        syncing.decide = by_clock.decide
    if broken == "blind":
        taken = "        self._append({kind: lines for kind, lines in lacking.items() if lines})\n"
        blind = mutant(syncing, taken, "")
        confirming.sync, confirming.take_in = blind.sync, blind.take_in
    hive = Hive.open(
        tree,
        droid=name,
        env={"QUEEN_DURABILITY": "buffered"},
        clock=lambda: time.time_ns() // 1_000_000 + off_ms,
    )
    chance = random.Random(seed)
    with open(log, "a", encoding="utf-8") as file:
        while True:
            _act(hive, chance, file.fileno())


def _note(log: int, **fields: object) -> None:
    line = json.dumps({"at": time.monotonic_ns(), **fields}) + "\n"
    os.write(log, line.encode())  # In the kernel: it survives a kill.


def _act(hive: Hive, chance: random.Random, log: int) -> None:
    held = [*hive.assignments.find(droid=hive.actor), *hive.reservations.find(droid=hive.actor)]
    if held and chance.random() < 0.5:
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

        def grant() -> list[object]:
            return hive.reservations.reserve([what], ttl_s=TTL_S)

    _note(log, do="ask", what=what, droid=hive.actor)
    try:
        given = confirming.confirmed(hive, grant)[0]  # type: ignore[arg-type]
        _note(log, do="yes", what=what, id=given.id, token=given.token, droid=hive.actor)
    except (Held, Taken):
        _note(log, do="no", what=what, droid=hive.actor)
    except Busy as error:
        _note(log, do=error.code, what=what, droid=hive.actor)
    except QueenError as error:
        _note(log, do="failed", what=what, droid=hive.actor, said=error.message)


class _Worker:
    def __init__(self, tree: str, log: str, name: str, off_ms: int, broken: str) -> None:
        self.tree, self.log, self.name, self.off_ms, self.broken = tree, log, name, off_ms, broken
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, seed: int) -> None:
        call = f"remote.work({self.tree!r}, {self.log!r}, {self.name!r}, {self.off_ms}, {seed}, "
        program = f"from tests.torture import remote; {call}{self.broken!r})"
        # A group of its own: its git dies with it.
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=ENVIRONMENT,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def run(
    base: str,
    *,
    operations: int,
    seed: int,
    clones: int = 5,
    droids: int = 2,
    seconds: float = MOST_S,
    cuts: float = 0.1,
    kill: bool = True,
    broken: str = "",
) -> dict[str, object]:
    """Lets the droids of all clones ask so often, and returns the figures. Raises `Broken`."""
    chance = random.Random(seed)
    bare = os.path.join(base, "remote.git")
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True, env=ENVIRONMENT)
    port = _free_port()
    daemon = subprocess.Popen(
        ["git", "daemon", f"--base-path={base}", "--export-all", "--enable=receive-pack",
         "--listen=127.0.0.1", f"--port={port}", "--reuseaddr", base],
        env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    proxy = Proxy(port, seed, cuts=cuts)
    proxy.start()
    workers = []
    try:
        _await_port(port)
        logs = []
        for number in range(clones):
            tree = os.path.join(base, f"clone-{number}")
            must(base, "clone", "-q", bare, tree)
            must(tree, "remote", "set-url", "origin", f"git://127.0.0.1:{proxy.port}/remote.git")
            beads = os.path.join(tree, ".beads")
            os.makedirs(beads)
            with open(os.path.join(beads, "queen.toml"), "w", encoding="utf-8") as file:
                file.write('[sync]\ntimeout = "10s"\n')
            # The two extremes are always there.
            off_ms = (
                (-HOUR_MS, HOUR_MS)[number] if number < 2 else chance.randint(-HOUR_MS, HOUR_MS)
            )
            for droid in range(droids):
                logs.append(os.path.join(base, f"log-{number}-{droid}"))
                workers.append(_Worker(tree, logs[-1], f"d{number}.{droid}", off_ms, broken))
        kills = _drive(workers, logs, chance, operations, time.monotonic() + seconds, kill=kill)
    finally:
        for each in workers:
            each.kill()
        proxy.stop()
        with suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
    figures = check(bare, [note for log in logs for note in _notes(log)])
    return {**figures, "kills": kills, "connections cut": proxy.cut, "clones": clones}


def _drive(
    workers: list[_Worker],
    logs: list[str],
    chance: random.Random,
    operations: int,
    until: float,
    *,
    kill: bool,
) -> int:
    kills = 0
    for each in workers:
        each.start(chance.randrange(2**32))
    while time.monotonic() < until and sum(map(_asked, logs)) < operations:
        time.sleep(chance.uniform(0.2, 1.0))
        if not kill:
            continue
        victim = chance.choice(workers)
        victim.kill()
        victim.start(chance.randrange(2**32))
        kills += 1
    return kills


def _asked(log: str) -> int:
    with suppress(FileNotFoundError), open(log, encoding="utf-8") as file:
        return file.read().count('"do": "ask"')
    return 0


def _notes(log: str) -> list[dict[str, object]]:
    with suppress(FileNotFoundError), open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]
    return []


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _await_port(port: int) -> None:
    until = time.monotonic() + _GRACE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            require(time.monotonic() < until, "git daemon did not start")
            time.sleep(0.05)


# The checker.


def check(bare: str, notes: list[dict[str, object]]) -> dict[str, object]:
    """Reads the remote's history and the notes; returns figures. Raises `Broken`."""
    commits = must(bare, "rev-list", "--reverse", "--first-parent", BRANCH).split()
    lines: dict[str, list[dict[str, object]]] = {}
    seen: dict[str, set[str]] = {}
    tokens: dict[tuple[str, int], int] = {}
    most = 0
    for number, commit in enumerate(commits, 1):
        for name in must(bare, "ls-tree", "-r", "--name-only", commit).split():
            known = seen.setdefault(name.split("/")[-1].split(".")[0], set())
            for text in must(bare, "cat-file", "blob", f"{commit}:{name}").splitlines():
                if text in known:
                    continue
                known.add(text)
                line = json.loads(text)
                lines.setdefault(line["id"], []).append(line)
                if line.get("token") and (line["id"], line["token"]) not in tokens:
                    # Later lines repeat the token; the first one is the confirmation.
                    require(
                        line["token"] == number, f"{line['id']} has the token of another commit"
                    )
                    tokens[line["id"], line["token"]] = number
        live = [grant for each in lines.values() if (grant := _live(each)) is not None]
        most = max(most, len(live))
        _exclude_nobody(live, f"commit {number}")
    _told(notes, tokens)
    counts: dict[str, int] = {}
    for note in notes:
        counts[str(note["do"])] = counts.get(str(note["do"]), 0) + 1
    return {"commits": len(commits), "confirmations": len(tokens), "most at once": most, **counts}


def _live(lines: list[dict[str, object]]) -> dict[str, object] | None:
    """Returns a grant that was confirmed and that no line ends."""
    ended = any(each.get("status") in _ENDED or each.get("deleted") for each in lines)
    sure = [each for each in lines if each.get("token")]
    return sure[0] if sure and not ended else None


def _exclude_nobody(live: list[dict[str, object]], where: str) -> None:
    for count, one in enumerate(live):
        for other in live[count + 1 :]:
            both = f"{one['id']} of {one['droid']} and {other['id']} of {other['droid']}"
            require(not _clash(one, other), f"{where}: {both} are both confirmed")


def _clash(one: dict[str, object], other: dict[str, object]) -> bool:
    if one["droid"] == other["droid"]:
        return False
    if "pattern" in one and "pattern" in other:
        return other["pattern"] in MEET[str(one["pattern"])]
    return one.get("issue_id") is not None and one.get("issue_id") == other.get("issue_id")


def _told(notes: list[dict[str, object]], tokens: dict[tuple[str, int], int]) -> None:
    """Requires that whoever was told yes had it alone, until they asked to give it back."""
    ends: dict[str, int] = {}
    for note in notes:
        if note["do"] == "end":
            at = ends.get(str(note["id"]), NEVER_MS)
            ends[str(note["id"])] = min(at, int(str(note["at"])))
    holds = []
    for note in notes:
        if note["do"] != "yes":
            continue
        key = str(note["id"]), int(str(note["token"]))
        require(key in tokens, f"{key[0]} was granted, and the remote does not have it")
        what = "pattern" if note["what"] in MEET else "issue_id"
        grant = {"id": key[0], "droid": note["droid"], what: note["what"]}
        holds.append((int(str(note["at"])), ends.get(key[0], 2**62), grant))
    holds.sort(key=lambda each: each[0])
    open_: list[tuple[int, int, dict[str, object]]] = []
    for hold in holds:
        open_ = [each for each in open_ if each[1] > hold[0]]
        for each in open_:
            both = f"{each[2]['id']} and {hold[2]['id']}"
            require(not _clash(each[2], hold[2]), f"{both} were held at once")
        open_.append(hold)
