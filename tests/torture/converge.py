"""Clones that live apart, merge in every direction, and must then say the same, byte for byte."""

from __future__ import annotations

import glob
import json
import os
import random
import re
import time
from collections import Counter
from pathlib import Path

from glob_reference import share_a_path
from hives import QuickQueen
from stamps import format_ms, parse_ms

from queenbee import Hive
from queenbee.errors import QueenError, StoreError
from tests.torture.places import errors_of, git, make_repository, must, require

START_MS = 1_734_172_200_000
ISSUES = ("qb-1", "qb-2", "qb-3")
PATTERNS = ("src/a.py", "src/*", "src/**", "docs/**", "**/a.py", "docs/[ab].md")
_SEEN = re.compile(r',"last_seen_at":"[^"]*"')
"""When a droid was last seen is known best where it was."""
EVERYWHERE = frozenset({"conflict"})
"""What doctor may find in a sound hive here: two grants that a merge brought together."""


class Clone:
    """One clone, with a clock of its own that is a little off, and two droids."""

    def __init__(self, tree: str, number: int, world: World) -> None:
        self.tree = tree
        self.droids = (f"ui-{number}", f"api-{number}")
        self.skew_ms = world.random.randrange(-5_000, 5_000)
        self.world = world

    def hive(self, droid: str) -> Hive:
        return Hive.open(
            self.tree,
            droid=droid,
            env={"QUEEN_DURABILITY": "buffered"},
            clock=lambda: self.world.now_ms + self.skew_ms,
        )

    def touch(self) -> None:
        """Lets journals and ledgers catch up, as any write does."""
        hive = self.hive("queen")
        with hive.transaction() as tx:
            for kind in hive.kinds():
                tx.touch(kind)

    def commit(self) -> None:
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-qm", "work")

    def pull(self, other: Clone) -> None:
        self.commit()
        must(self.tree, "pull", "-q", "--no-rebase", "--no-edit", other.tree, "main")


class World:
    """Several clones and the time that passes for all of them."""

    def __init__(self, folder: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = START_MS
        self.grants_apart = 0
        first = make_repository(os.path.join(folder, "clone-0"))
        with open(os.path.join(first, ".beads", "issues.jsonl"), "w", encoding="utf-8") as file:
            for issue in ISSUES:
                row = {"id": issue, "title": issue, "status": "open", "priority": 1}
                file.write(json.dumps({**row, "created_at": format_ms(START_MS)}) + "\n")
        must(first, "add", "-A")
        must(first, "commit", "-qm", "issues")
        trees = [first]
        for number in range(1, self.random.randint(3, 5)):
            trees.append(os.path.join(folder, f"clone-{number}"))
            must(folder, "clone", "-q", first, trees[-1])
        self.clones = [Clone(tree, number, self) for number, tree in enumerate(trees)]

    def live(self, steps: int) -> Counter[str]:
        """Lets the clones live; returns what happened."""
        happened = Counter[str]()
        for _ in range(steps):
            self.now_ms += self.random.randrange(1, 600_000)
            clone = self.random.choice(self.clones)
            what = self.random.random()
            if what < 0.1:
                others = [each for each in self.clones if each is not clone]
                clone.pull(self.random.choice(others))
                happened["merge"] += 1
            elif what < 0.2:
                clone.commit()
            elif what < 0.25:
                self._spoil(clone)
            else:
                happened[self._work(clone)] += 1
        return happened

    def _work(self, clone: Clone) -> str:
        hive = clone.hive(self.random.choice(clone.droids))
        issue, pattern = self.random.choice(ISSUES), self.random.choice(PATTERNS)
        acts = {
            "claim": lambda: hive.assignments.claim(issue),
            "complete": lambda: hive.assignments.complete(issue),
            "release": lambda: hive.assignments.release(issue, reason="not now"),
            "reassign": lambda: hive.assignments.assign(
                issue, self.random.choice(clone.droids), reassign=True
            ),
            "reserve": lambda: hive.reservations.reserve(
                [pattern],
                exclusive=self.random.random() < 0.7,
                ttl_s=self.random.choice((300, 1_800, 7_200)),
                issue_id=self.random.choice((None, issue)),
            ),
            "unreserve": lambda: hive.reservations.release(everything=True),
            "renew": lambda: hive.reservations.renew(everything=True, ttl_s=3_600),
            "force": lambda: hive.reservations.reserve([pattern], force=True, reason="I must"),
            "send": lambda: hive.messages.send("ui-0,api-1", "hello", issue_id=issue, new=True),
            "read": lambda: hive.messages.mark_read([self._message(hive).id]),
            "delete": lambda: hive.messages.delete(self._message(hive).id),
            "reply": lambda: hive.messages.reply(self._message(hive).id, "indeed"),
        }
        name = self.random.choice(list(acts))
        try:
            acts[name]()
        except StoreError:
            raise
        except (QueenError, IndexError):
            return f"{name} refused"
        return name

    def _message(self, hive: Hive):
        return self.random.choice(hive.messages.inbox())

    def _spoil(self, clone: Clone) -> None:
        how = self.random.choice(("CRLF", "twice", "reversed"))
        spoil(clone, self.random.choice(("messages", "assignments", "reservations")), how)

    def exchange(self) -> None:
        """Brings every line to every clone."""
        for _ in range(2):
            for clone in self.clones:
                clone.touch()
                clone.commit()
            for clone in self.clones:
                for other in self.clones:
                    if other is not clone:
                        clone.pull(other)
        for clone in self.clones:
            clone.touch()


def spoil(clone: Clone, kind: str, how: str) -> None:
    """Does to a ledger what editors, merges and Windows do: nothing that loses a line."""
    path = clone.hive("queen").layout.ledger_path(kind)
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    lines = {"CRLF": lines, "twice": [*lines, *lines[:3]], "reversed": lines[::-1]}[how]
    end = b"\r\n" if how == "CRLF" else b"\n"
    with open(path, "wb") as file:
        file.write(b"".join(line + end for line in lines))


def told(clone: Clone, now_ms: int, ids: list[str], droids: list[str]) -> dict[str, str]:
    """Returns what `queen` prints in a clone, by command."""
    queen = QuickQueen(Path(clone.tree))
    queen.env = {"QUEEN_DURABILITY": "buffered", "GIT_CONFIG_GLOBAL": "/dev/null"}
    commands = [
        ["issue", "assignments"],
        ["issue", "assignments", "--status", "all"],
        ["reserve", "list"],
        ["reserve", "list", "--all"],
        ["reserve", "conflicts"],
        ["issues"],
        *(["issue", "ready", "--as", droid] for droid in droids),
        *(["msg", "inbox", "--limit", "1000", "--for", droid] for droid in droids),
        *(["msg", "sent", "--limit", "1000", "--as", droid] for droid in droids),
        *(["show", issue] for issue in ISSUES),
        *(["msg", "thread", issue] for issue in ISSUES),
        *(["reserve", "check", "src/a.py", "docs/a.md", "--as", droid] for droid in droids),
        *(["hive", "history", identifier] for identifier in ids),
    ]
    clock, time.time_ns = time.time_ns, lambda: now_ms * 1_000_000
    try:
        ran = {" ".join(each): queen(*each, "--json") for each in commands}
        answers = {
            name: "\n".join((str(each.code), _SEEN.sub("", each.out))) for name, each in ran.items()
        }
        if not all(each["exclusive"] for each in _rows(answers["reserve list"])):
            checks = [each for each in ran if each.startswith("reserve check ")]
            answers |= {each: _anywhere(answers[each]) for each in checks}
        if _rows(answers["reserve list"]):  # Refused everywhere, for the same reasons in one order.
            refused = queen("reserve", "**", "--as", "stranger", "--json")
            holders = [each["id"] for each in refused.error["holders"]]
            answers["reserve **"] = f"{refused.code}\n{holders}"
    finally:
        time.time_ns = clock
    return answers


def check(world: World) -> dict[str, object]:
    """Raises `Broken` where the clones differ or judge wrongly; returns the figures."""
    first = world.clones[0].hive("queen")
    ids = sorted(str(row["id"]) for kind in first.kinds() for row in first.state(kind).everything())
    droids = sorted({name for clone in world.clones for name in clone.droids})
    answers = []
    for number, clone in enumerate(world.clones):
        wrong = errors_of(clone.hive("queen"), but=EVERYWHERE)
        require(not wrong, f"{clone.tree}: {wrong[:3]}")
        for kind in ("messages", "assignments", "reservations"):
            spoil(clone, kind, ("twice", "reversed", "CRLF")[number % 3])
        if number == len(world.clones) - 1:  # It makes its memory anew.
            for path in glob.glob(clone.hive("queen").layout.memory_path + "*"):
                os.unlink(path)
        answers.append(told(clone, world.now_ms, ids, droids))
    for clone, answer in zip(world.clones[1:], answers[1:], strict=True):
        for command, text in answer.items():
            require(
                text == answers[0][command],
                f"queen {command} differs in {clone.tree}:\n{text}\n{answers[0][command]}",
            )
    superseded = _check_verdicts(answers[0], world.now_ms)
    return {"commands": len(answers[0]), "records": len(ids), "superseded": superseded}


def _anywhere(answer: str) -> str:
    """Returns what is said of files, without the verdict and without shared leases: those exclude
    others in the tree of one clone alone.
    """
    rows = _rows(answer)
    for each in rows:
        each["reservations"] = [one for one in each["reservations"] if one["exclusive"]]
    return json.dumps([{**each, "status": None} for each in rows])


def _check_verdicts(answer: dict[str, str], now_ms: int) -> int:
    """Judges the grants again, naively, and compares; returns how many were superseded."""
    leases = _rows(answer["reserve list --all"])
    given = _rows(answer["issue assignments --status all"])
    lost = {**_judged(leases, _lease_end, _leases_exclude)}
    lost.update(_judged(given, _assignment_end, _assignments_exclude))
    shown = {row["id"]: row.get("superseded_by") for row in (*leases, *given)}
    require(shown == {key: lost.get(key) for key in shown}, f"{shown} is not {lost}")
    active = [
        row["issue_id"] for row in given if row["status"] == "active" and not lost.get(row["id"])
    ]
    require(len(active) == len(set(active)), f"two droids have one issue: {active}")
    listed = {row["superseded"]["id"] for row in _rows(answer["reserve conflicts"])}
    expected = {row["id"] for row in given if row["status"] == "active" and row["id"] in lost}
    expected |= {
        row["id"] for row in leases if row["id"] in lost and row["status"] == "active"
        and parse_ms(row["expires_at"]) > now_ms
    }  # fmt: skip
    require(listed == expected, f"conflicts lists {listed}, not {expected}")
    return len(lost)


def _judged(rows, end_of, exclude) -> dict[str, str]:
    """Returns the winner of each grant that lost to an older one that stands."""
    standing, lost = [], {}
    for row in sorted(rows, key=lambda each: (parse_ms(each["created_at"]), each["id"])):
        born = parse_ms(row["created_at"])
        winner = next((w for w in standing if exclude(w, row) and born < end_of(w)), None)
        if winner is None:
            standing.append(row)
        else:
            lost[row["id"]] = winner["id"]
    return lost


def _leases_exclude(one, other) -> bool:
    return (
        one["droid"] != other["droid"]
        and (one["exclusive"] or other["exclusive"] or one.get("tree_id") == other.get("tree_id"))
        and share_a_path(one["pattern"], other["pattern"])
    )


def _assignments_exclude(one, other) -> bool:
    return one["issue_id"] == other["issue_id"]


def _lease_end(row) -> int:
    released = row.get("released_at") if row["status"] == "released" else None
    ends = parse_ms(row["expires_at"])
    return min(ends, parse_ms(released)) if released else ends


def _assignment_end(row) -> int:
    return 2**62 if row["status"] == "active" else parse_ms(row["updated_at"])


def _rows(text: str) -> list[dict[str, object]]:
    return json.loads(text.partition("\n")[2])


def run(folder: str, *, histories: int, steps: int, seed: int = 1) -> dict[str, object]:
    """Lets worlds live and compares their clones; returns the figures. Raises `Broken`."""
    figures = Counter[str]()
    for number in range(histories):
        place = os.path.join(folder, f"world-{number}")
        os.makedirs(place)
        world = World(place, seed + number)
        happened = world.live(steps)
        world.exchange()
        figures["histories"] += 1
        figures["clones"] += len(world.clones)
        figures["merges apart"] += happened["merge"]
        figures.update(check(world))
    return dict(figures)
