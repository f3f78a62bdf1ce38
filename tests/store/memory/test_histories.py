"""Whatever befalls a hive's files, every process sees the records that its lines fold to.

Two clones go through a random history: transactions over several kinds, lines that other programs
append, torn lines, checkouts, merges, rotations, deleted memories, kills. A model in plain Python
says after each step which lines count, and which of them every clone has to carry.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hives import git
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_places import Place, joined, line, state_of

from queenbee import Hive
from queenbee.core.fold import Table
from queenbee.core.kinds import kind_of
from queenbee.errors import Unwritable
from queenbee.store.codec import Unusable, decode, is_migration
from queenbee.store.files import Appender, split_lines
from queenbee.store.memory import recorded, rotation
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.memory.intake import Intake
from queenbee.store.memory.recorded import Recorded

pytestmark = pytest.mark.slow

KINDS = ("messages", "reservations")
Lines = dict[str, list[bytes]]


class Killed(BaseException):
    """Stands for a process that ends at once."""


def usable(raw: bytes) -> dict[str, Any] | None:
    try:
        return decode(raw)
    except Unusable:
        return None


def without_migrations(lines: list[bytes]) -> list[bytes]:
    return [each for each in lines if not is_migration(decode(each))]


class Model:
    """What one clone has to know of one kind."""

    def __init__(self, place: Place, kind: str) -> None:
        self.place = place
        self.kind = kind
        self.arrived: list[bytes] = []
        """Every line that counts, in order of arrival."""
        self.recorded: set[bytes] = set()

    def forget(self) -> None:
        self.arrived, self.recorded = [], set()

    def read(self) -> None:
        """Takes in what the tracked files have, and lets go of what only they had."""
        lines = [*self.place.archived(self.kind), *split_lines(self.place.content(self.kind))]
        there = dict.fromkeys(filter(usable, lines))
        self.arrived = [each for each in self.arrived if each in self.recorded or each in there]
        known = {*self.arrived}
        self.arrived += [each for each in there if each not in known]

    def record(self, lines: list[bytes]) -> None:
        self.read()
        self.arrived += [each for each in lines if each not in self.arrived]
        self.recorded.update(self.arrived)

    def unusable(self) -> int:
        return sum(usable(each) is None for each in split_lines(self.place.content(self.kind)))

    def folded(self) -> dict[str, dict[str, Any]]:
        table = Table(kind_of(self.kind).aliases)
        for raw in without_migrations(self.arrived):
            table.add(raw, decode(raw))
        return {identifier: table.get(identifier) or {} for identifier in table.ids()}


class Follower:
    """Somebody who reads a hive for long, and looks only at what changed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.memory = FilesMemory(place.layout)
        self.seen: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in KINDS}
        self.cursors: dict[str, Any] = dict.fromkeys(KINDS)
        self.identity = 0
        self.numbers = dict.fromkeys(KINDS, 0)
        self.sent: dict[str, set[bytes]] = {kind: set() for kind in KINDS}

    def follow(self, kind: str) -> dict[str, dict[str, Any]]:
        state = Recorded(kind, self.memory)
        state.refresh()
        ids, self.cursors[kind] = state.changes(self.cursors[kind])
        if ids is None:
            self.seen[kind] = {str(each["id"]): each for each in state.everything()}
        else:
            self.seen[kind] |= {each: state.get(each) or {} for each in ids}
        return self.seen[kind]

    def send(self, kind: str) -> None:
        """Collects the recorded lines after those that it has, as an exchange with a remote."""
        if self.memory.identity() != self.identity:
            self.identity, self.numbers = self.memory.identity(), dict.fromkeys(KINDS, 0)
        for number, raw in Recorded(kind, self.memory).lines_after(self.numbers[kind]):
            self.numbers[kind] = number
            self.sent[kind].add(raw)


class Clone:
    """One clone: its files, the model of each kind, and two processes that live long."""

    def __init__(self, root: Path) -> None:
        self.place = Place(root)
        self.models = {kind: Model(self.place, kind) for kind in KINDS}
        self.writer = FilesMemory(self.place.layout)
        self.follower = Follower(self.place)
        self.past: dict[str, list[bytes]] = {kind: [b""] for kind in KINDS}
        """Contents that each ledger had."""
        self.write({key: [] for key in KINDS})

    def close(self) -> None:
        self.writer.close()
        self.follower.memory.close()

    def write(self, lines: dict[str, list[bytes]], *, fresh: bool = False) -> None:
        """Records lines, in this process or in another, and holds what every write promises."""
        before = {kind: split_lines(self.place.content(kind)) for kind in lines}
        if fresh:
            self.place.write(lines)
        else:
            self.writer.write(lines)
        for kind, new in lines.items():
            self.models[kind].record(new)
            ledger = split_lines(self.place.content(kind))
            for each in self.models[kind].recorded:
                assert ledger.count(each) <= max(1, before[kind].count(each))
            # What was acknowledged is where git carries it.
            assert self.models[kind].recorded <= self.place.tracked(kind)
            self.past[kind].append(self.place.content(kind))

    def check(self) -> None:
        """Holds that each process sees what the model says."""
        for kind, model in self.models.items():
            model.read()
            expected = model.folded()
            for memory in (self.follower.memory, self.writer):
                assert state_of(memory, kind) == expected
                assert memory.unusable(kind) == model.unusable()
            assert self.follower.follow(kind) == expected
            self.follower.send(kind)
            recorded = self.place.recorded(kind)
            assert sorted(recorded) == sorted(model.recorded)
            arrived = [each for each in model.arrived if each in model.recorded]
            # The bookkeeping of a batch follows its records.
            assert without_migrations(recorded) == without_migrations(arrived)


# What happens.


class Play:
    """A history of two clones."""

    def __init__(self, root: Path) -> None:
        self.clones = [Clone(root / name) for name in ("one", "two")]
        self.ticks = time.time_ns()
        self.nonce = 0

    def line(self, kind: str, seed: int) -> bytes:
        """Returns a line that nobody has written before."""
        self.nonce += 1
        dice = random.Random(seed)
        identifier = f"{'qm' if kind == 'messages' else 'qr'}-{dice.randrange(4)}"
        more: dict[str, Any] = {"body": self.nonce}
        if dice.random() < 0.5:
            more["status"] = dice.choice(["active", "released", 5])
        if dice.random() < 0.2:
            more["deleted"] = True
        return line(identifier, dice.choice([0, 1, 1, 2, 3, 4]), **more)

    def lines(self, seeds: dict[str, list[int]]) -> Lines:
        return {kind: [self.line(kind, each) for each in some] for kind, some in seeds.items()}

    def put(self, path: Path, data: bytes, *, in_place: bool = False) -> None:
        """Replaces a file, at a time that no other change has."""
        path.parent.mkdir(exist_ok=True)
        if not in_place:
            path.unlink(missing_ok=True)
        path.write_bytes(data)
        self.ticks += 1_000_003
        os.utime(path, ns=(self.ticks, self.ticks))

    def write(self, clone: Clone, seeds: dict[str, list[int]], fresh: bool) -> None:
        clone.write(self.lines(seeds), fresh=fresh)

    def append(self, clone: Clone, kind: str, seeds: list[int], end: bytes) -> None:
        """Another program appends to a ledger."""
        added = joined(self.line(kind, each) for each in seeds) + end
        with clone.place.ledger(kind).open("ab") as file:
            file.write(added)
        clone.past[kind].append(clone.place.content(kind))

    def checkout(self, clone: Clone, kind: str, which: int, in_place: bool) -> None:
        """Git brings back a content that the ledger had: an older branch, or a stash."""
        past = clone.past[kind]
        self.put(clone.place.ledger(kind), past[which % len(past)], in_place=in_place)

    def cut(self, clone: Clone, kind: str, size: int) -> None:
        """Somebody cuts a ledger off, amid a line perhaps."""
        self.put(clone.place.ledger(kind), clone.place.content(kind)[:size], in_place=True)

    def remove(self, clone: Clone, kind: str) -> None:
        clone.place.ledger(kind).unlink(missing_ok=True)

    def merge(self, clone: Clone, seed: int) -> None:
        """Does what git's union driver may do, in a random order of lines: file by file."""
        ours, theirs = clone.place, self.other(clone).place
        for kind in KINDS:
            names = {*ours.archive(kind).listing(), *theirs.archive(kind).listing()}
            pairs = [
                (ours.ledger(kind), theirs.ledger(kind)),
                *((ours.beads / "archive" / n, theirs.beads / "archive" / n) for n in names),
            ]
            for mine, other in pairs:
                have, bring = (
                    each.read_bytes().splitlines() if each.exists() else []
                    for each in (mine, other)
                )
                if {*bring} - {*have}:
                    lines = [*dict.fromkeys([*have, *bring])]
                    random.Random(seed).shuffle(lines)
                    self.put(mine, joined(lines))

    def rotate(self, clone: Clone, kind: str, closed: set[str]) -> None:
        clone.models[kind].record([])
        rotation.rotate(clone.writer, kind, lambda fields: fields["id"][-1] in closed)
        assert clone.models[kind].recorded <= clone.place.tracked(kind)

    def lose(self, clone: Clone, kind: str, number: int) -> None:
        """Git takes a segment away."""
        for name in [*clone.place.archive(kind).listing()][number : number + 1]:
            os.unlink(clone.place.archive(kind).path(name))

    def forget(self, clone: Clone) -> None:
        """Somebody deletes the memory. The next write makes it again."""
        clone.place.forget()
        for model in clone.models.values():
            model.forget()
        clone.write({key: [] for key in KINDS})

    def restart(self, clone: Clone) -> None:
        clone.close()
        clone.writer = FilesMemory(clone.place.layout)

    def kill(self, clone: Clone, seeds: dict[str, list[int]], whole: int, part: float) -> None:
        """A process is killed behind the commit: some ledgers have all lines, one has a part."""
        lines = self.lines(seeds)
        with killed(whole, part), suppress(Killed):
            clone.place.write(lines)
        for kind, new in lines.items():
            clone.models[kind].record(new)

    def fail(self, clone: Clone, seeds: dict[str, list[int]], whole: int) -> None:
        """A disk takes no more: the write is refused as a whole."""
        before = {kind: clone.place.content(kind) for kind in seeds}
        lines = self.lines(seeds)
        with full(whole):
            try:
                clone.writer.write(lines)
            except Unwritable:
                assert {kind: clone.place.content(kind) for kind in seeds} == before
                lines = {kind: [] for kind in seeds}
        for kind, new in lines.items():
            clone.models[kind].record(new)

    def other(self, clone: Clone) -> Clone:
        return self.clones[clone is self.clones[0]]


@contextmanager
def killed(whole: int, part: float) -> Iterator[None]:
    """A process that ends while it appends to a ledger, after so many others."""
    left = [whole]

    def dies(file: Appender, data: bytes) -> None:
        left[0] -= 1
        if left[0] >= 0:
            append(file, data)
        else:
            os.write(file._fd, data[: int(len(data) * part)])
            raise Killed

    def gone(*_: object) -> None:
        raise Killed

    append = Appender.append
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Appender, "append", dies)
        patch.setattr(FilesMemory, "_take_back", gone)
        yield


@contextmanager
def full(whole: int) -> Iterator[None]:
    left, append = [whole], Appender.append

    def refuses(file: Appender, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Unwritable("no space left; nothing was recorded")
        append(file, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Appender, "append", refuses)
        yield


seed = st.integers(0, 999)
kind = st.sampled_from(KINDS)
clone = st.integers(0, 1)
some = st.dictionaries(kind, st.lists(seed, max_size=3), min_size=1)
ends = st.sampled_from(
    [
        *(b"", b"", b"\n", b"<<<<<<< ours\n", b'{"_migration":"v1_to_v2"}\n'),
        *(b'{"id":"qm-1","to', b'{"id":"qm-2","rev":1,"x":1}', b'{"id":"qm-3","rev":2,"x":1}\r\n'),
    ]
)
STEPS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "write": (some, st.booleans()),
    "append": (kind, st.lists(seed, max_size=3), ends),
    "checkout": (kind, st.integers(0, 99), st.booleans()),
    "cut": (kind, st.integers(0, 400)),
    "remove": (kind,),
    "merge": (seed,),
    "rotate": (kind, st.sets(st.sampled_from("0123"))),
    "lose": (kind, st.integers(0, 2)),
    "forget": (),
    "restart": (),
    "kill": (some, st.integers(0, 1), st.sampled_from([0.0, 0.4, 0.99, 1.0])),
    "fail": (some, st.integers(0, 1)),
}
steps = st.one_of(
    [st.tuples(st.just(name), clone, st.tuples(*more)) for name, more in STEPS.items()]
)


def play(root: Path, history: list[tuple[str, int, tuple[Any, ...]]]) -> None:
    """Plays a history; asserts after each step what must always hold, and that clones agree."""
    shutil.rmtree(root, ignore_errors=True)
    world = Play(root)
    try:
        for step, which, more in history:
            happens: Callable[..., None] = getattr(world, step)
            happens(world.clones[which], *more)
            for each in world.clones:
                each.check()
        for each in world.clones:
            each.write({key: [] for key in KINDS})
            each.check()
            for name, model in each.models.items():
                assert each.follower.sent[name] >= model.recorded
        for _ in range(2):
            for each in world.clones:
                world.merge(each, 7)
                each.write({key: [] for key in KINDS})
                each.check()
        one, two = world.clones
        for name in KINDS:
            assert one.models[name].recorded == two.models[name].recorded
    finally:
        for each in world.clones:
            each.close()


def test_a_migration_that_a_ledger_gets_twice_at_once_counts_once(tmp_path: Path) -> None:
    """Both lines are read in one piece, so the first is not in the memory when the second comes."""
    write = ("write", 0, ({"messages": []}, False))
    append = ("append", 0, ("reservations", [], b'{"_migration":"v1_to_v2"}\n'))
    play(tmp_path / "clones", [write, append, append, write, ("forget", 0, ())])


@settings(
    max_examples=examples(300),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(steps, max_size=14))
def test_any_history_of_two_clones(tmp_path: Path, history: list[Any]) -> None:
    play(tmp_path / "clones", history)


LOST = [line("qm-1", 0, body="first"), line("qm-1", 0, body="last")]


@pytest.mark.parametrize("part", [0.6, 0.99])
def test_lines_without_revision_that_a_killed_write_restored_do_not_arrive_again(
    tmp_path: Path, part: float
) -> None:
    place = Place(tmp_path)
    place.record(*LOST)
    place.ledger().write_bytes(b"")
    with killed(0, part), suppress(Killed):
        place.record()
    assert place.state()["qm-1"]["body"] == "last"
    place.record()
    assert place.content().splitlines().count(LOST[1]) == 1
    assert (place.state()["qm-1"]["body"], place.state()["qm-1"]["rev"]) == ("last", 2)


def test_lines_without_revision_of_a_ledger_that_comes_back_do_not_arrive_again(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    place.record(*LOST)
    place.ledger().rename(tmp_path / "aside")
    assert place.state()["qm-1"]["rev"] == 2
    (tmp_path / "aside").rename(place.ledger())
    assert (place.state()["qm-1"]["body"], place.state()["qm-1"]["rev"]) == ("last", 2)


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_process_that_ends_while_it_writes_two_kinds_leaves_both_or_none(
    tmp_path: Path, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step is the memory's commit, the others are the ledgers."""
    place = Place(tmp_path)
    lines = {"messages": [line("qm-1")], "reservations": [line("qr-1")]}
    record_step, append, left = Intake.record, Appender.append, [nth]

    def or_end(step: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os._exit(9)
            return step(*args)

        return stepped

    child = os.fork()
    if child == 0:
        where, name = (Intake, "record") if nth == 1 else (Appender, "append")
        left[0] = max(1, nth - 1)
        monkeypatch.setattr(where, name, or_end(record_step if nth == 1 else append))
        place.write(lines)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with closing(FilesMemory(place.layout)) as memory:
        there = {kind: [*state_of(memory, kind)] for kind in lines}
    assert there == (
        {kind: [] for kind in lines}
        if nth == 1
        else {"messages": ["qm-1"], "reservations": ["qr-1"]}
    )
    place.write({kind: [] for kind in lines})
    for kind, new in lines.items():
        assert place.content(kind) == (b"" if nth == 1 else joined(new))


def test_a_question_that_comes_upon_damage_is_answered_with_what_the_ledgers_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    place.record(line("qm-1"))
    with place.ledger().open("ab") as file:
        file.write(joined([line("qm-2"), b"no record"]))
    checked, left = recorded.checked, [1]

    def damaged(*row: object) -> bytes:
        left[0] -= 1
        if left[0] == 0:
            raise sqlite3.DatabaseError("database disk image is malformed")
        return checked(*row)

    with closing(FilesMemory(place.layout)) as memory:
        state = Recorded("messages", memory)
        state.refresh()
        monkeypatch.setattr(recorded, "checked", damaged)
        assert state.get("qm-2") == {**decode(line("qm-2")), "rev": 1}
        assert (state.unusable, state.is_unrecorded) == (1, True)
    assert len(list(place.state_dir.glob("hive.sqlite3.damaged-*"))) == 1


class TestWorktreesOfABareRepository:
    """Each has ledgers of its own, and all have one memory."""

    @pytest.fixture
    def pair(self, repo: Path, tmp_path: Path) -> tuple[Hive, Hive]:
        git(repo, "clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
        for name in ("one", "two"):
            git(tmp_path / "bare.git", "worktree", "add", "-q", "-b", name, f"../{name}")
            (tmp_path / name / ".beads").mkdir(exist_ok=True)
        one, two = (Hive.open(tmp_path / name, droid="ui", env={}) for name in ("one", "two"))
        assert one.layout.memory_path == two.layout.memory_path
        return one, two

    def test_bring_every_record_to_every_ledger(self, pair: tuple[Hive, Hive]) -> None:
        for number, hive in enumerate((*pair, *pair)):
            hive.messages.send("api", f"message {number}")
        for hive in pair:
            with hive.transaction() as tx:
                tx.touch("messages")
            assert len(hive.messages.sent()) == 4
            assert len(Path(hive.layout.ledger_path("messages")).read_bytes().splitlines()) == 4

    def test_a_line_that_both_have_stays_while_one_has_it(self, pair: tuple[Hive, Hive]) -> None:
        one, two = pair
        foreign = line("qm-7", to="ui", body="pulled")
        one.messages.send("api", "the first write makes the memory")
        for hive in pair:
            with open(hive.layout.ledger_path("messages"), "ab") as ledger:
                ledger.write(joined([foreign]))
            assert [each.id for each in hive.messages.inbox()] == ["qm-7"]
        Path(one.layout.ledger_path("messages")).unlink()
        assert one.messages.inbox() == []
        two.close()  # What was read without a change of the file is not read again before.
        assert [each.id for each in two.messages.inbox()] == ["qm-7"]

    def test_an_exchange_sends_what_a_later_write_made_of_a_loose_line(
        self, pair: tuple[Hive, Hive]
    ) -> None:
        one, two = pair
        two.messages.send("api", "the first write makes the files")
        with open(two.layout.ledger_path("messages"), "ab") as ledger:
            ledger.write(joined([line("qm-7")]))
        assert two.state("messages").is_unrecorded
        one.messages.send("api", "after it")
        [*_, (last, _)] = one.state("messages").lines_after(0)
        two.messages.send("api", "records it")
        after = [raw for _, raw in two.state("messages").lines_after(last)]
        assert line("qm-7") in after
