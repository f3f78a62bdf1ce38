"""The index of a large tracker: it answers as reading the whole file does, whatever happens."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from extent import quick_or
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tracker_worlds import World, answers

from queenbee import Hive
from queenbee.documents.folders import gates_dir
from queenbee.services import issues as issues_module
from queenbee.services.tracker import view
from queenbee.store.index import tracker_lines


@pytest.fixture(autouse=True)
def indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has an index for any size, and no file change twice within one step of its clock: the times
    of the files here are set."""
    monkeypatch.setattr(issues_module, "INDEX_FROM_BYTES", 0)
    monkeypatch.setattr(tracker_lines, "_YOUNG_NS", -(10**19))
    monkeypatch.setattr(tracker_lines, "_COARSE_NS", -(10**19))


@pytest.fixture
def misled(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Each time that a row was not where the index said: it is rebuilt then, and nobody would
    notice.
    """
    found: list[Exception] = []
    start_over = view.TrackerIndex.start_over

    def noted(self: view.TrackerIndex, error: Exception) -> bool:
        found.extend([error] if isinstance(error, tracker_lines.Misled) else [])
        return start_over(self, error)

    monkeypatch.setattr(view.TrackerIndex, "start_over", noted)
    return found


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    numbers = iter(range(10**6))
    folder = tmp_path_factory.mktemp("trackers")
    return lambda: folder / str(next(numbers))


def play(place: Path, seed: int, moves: int) -> Iterator[tuple[str, World]]:
    """Yields a world before and after each of some moves."""
    world = World(place, Random(seed))
    try:
        yield "begin", world
        for _ in range(moves):
            yield world.change(), world
    finally:
        world.close()


@given(seed=st.integers(0, 2**32))
@settings(
    max_examples=quick_or(25, quick=8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_it_answers_as_the_file_does(
    places: Callable[[], Path], misled: list[Exception], seed: int
) -> None:
    done = []
    for what, world in play(places(), seed, 14):
        done.append(what)
        told, truth = answers(world.indexed), answers(world.plain)
        assert {key: told[key] for key in truth} == truth, done
        assert not world.indexed.issues._index_failed, done
        assert not misled, done


class TestAFileThatChangesTwiceWithinOneStepOfItsClock:
    """It has the same time, size and inode, and another content."""

    @pytest.fixture
    def same_stamp(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tracker_lines, "_YOUNG_NS", 10**12)
        begin = tracker_lines.Source.__init__

        def opened(self: tracker_lines.Source, path: str) -> None:
            begin(self, path)
            self.stamp = [1, 2, 3, 4]
            self.wait_s = 0

        monkeypatch.setattr(tracker_lines.Source, "__init__", opened)

    def ask(self, beads: Path, hive: Hive) -> list[int]:
        told = []
        for priority in (1, 3):
            row = {"id": "qb-1", "status": "open", "priority": priority}
            (beads / "issues.jsonl").write_text(json.dumps(row) + "\n")
            told += [each.priority for each in hive.issues.ready()]
        assert not hive.issues._index_failed
        return told

    def test_is_read_again(self, beads: Path, hive: Hive, same_stamp: None) -> None:
        assert self.ask(beads, hive) == [1, 3]

    def test_is_counted_again(self, beads: Path, hive: Hive, same_stamp: None) -> None:
        (beads / "issues.jsonl").write_text('{"id": "qb-1", "status": "open"}\n')
        counts = []
        for status in ("open", "done"):
            row = {"id": "qb-1", "status": status}
            (beads / "issues.jsonl").write_text(json.dumps(row) + "\n")
            counts.append(hive.issues.counts()["ready"])
        assert counts == [1, 0]


def test_a_file_is_young_until_its_clock_has_moved_on(
    beads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    path = beads / "issues.jsonl"
    path.write_bytes(b"{}\n")

    def young(*, after_ns: int) -> bool:
        status = path.stat()
        now_ns = max(status.st_mtime_ns, status.st_ctime_ns) + after_ns
        monkeypatch.setattr(tracker_lines.time, "time_ns", lambda: now_ns)
        with tracker_lines.Source(str(path)) as source:
            return source.young

    some_ns = path.stat().st_mtime_ns | 1
    os.utime(path, ns=(some_ns, some_ns))
    assert [young(after_ns=age_ns) for age_ns in (0, 10**9, -(10**9))] == [True, False, True]
    whole_s = some_ns // 10**9
    os.utime(path, (whole_s, whole_s))
    assert [young(after_ns=age_ns) for age_ns in (10**9, 3 * 10**9)] == [True, False]


def test_a_file_whose_time_is_set_back_is_as_young_as_its_inode(beads: Path) -> None:
    """A program that keeps the times of files may change one twice within a step of the clock."""
    path = beads / "issues.jsonl"
    path.write_bytes(b"{}\n")
    os.utime(path, ns=(10**18 + 1, 10**18 + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracker_lines, "_YOUNG_NS", 10**12)
        with tracker_lines.Source(str(path)) as source:
            assert source.young


def with_the_same_checksum(row: bytes, other: bytes) -> bytes:
    """Returns the other row with some of its last letters `a` exchanged for `c`, so that CRC-32
    gives the same for both.
    """
    base, wanted = zlib.crc32(other), zlib.crc32(row)
    places = [at for at, byte in enumerate(other) if byte == ord("a")][-64:]

    def changed(at: int) -> int:
        text = bytearray(other)
        text[at] ^= 2
        return zlib.crc32(bytes(text)) ^ base

    left, chosen = wanted ^ base, 0
    basis: dict[int, tuple[int, int]] = {}
    for number, at in enumerate(places):
        value, mask = changed(at), 1 << number
        while value and (top := value.bit_length()) in basis:
            value, mask = value ^ basis[top][0], mask ^ basis[top][1]
        if value:
            basis[value.bit_length()] = value, mask
    while left:
        value, mask = basis[left.bit_length()]
        left, chosen = left ^ value, chosen ^ mask
    text = bytearray(other)
    for number, at in enumerate(places):
        text[at] ^= 2 * (chosen >> number & 1)
    assert zlib.crc32(bytes(text)) == wanted
    return bytes(text)


class TestALongerFile:
    """It need not be the one of before with more rows: it was written in place, or got the inode
    of one that was removed. Its author wrote both."""

    def ask(self, beads: Path, hive: Hive) -> None:
        text = b'{"id": "qb-1", "status": "open", "priority": %d, "title": "' + 80 * b"a" + b'"}\n'
        path = beads / "issues.jsonl"
        path.write_bytes(text % 1)
        assert ready_of(hive) == ["qb-1"]
        more = b'{"id": "qb-2", "status": "open", "priority": 2}\n'
        path.write_bytes(with_the_same_checksum(text % 1, text % 3) + more)
        assert ready_of(hive) == ["qb-2", "qb-1"]
        assert not hive.issues._index_failed

    def test_with_the_same_checksum_is_compared(self, beads: Path, hive: Hive) -> None:
        self.ask(beads, hive)


def write(beads: Path, *rows: dict[str, object]) -> None:
    """Replaces the tracker's file, as trackers do."""
    fresh = beads / "issues.new"
    fresh.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fresh.replace(beads / "issues.jsonl")


def ready_of(hive: Hive) -> list[str]:
    """Returns what the index says is ready."""
    found = hive.issues.ask_index(lambda view: view.ready(None))
    assert found is not None
    return [each.id for each in found]


def reason(hive: Hive) -> str | None:
    """Returns why the index says that the issue is on hold."""
    found = hive.issues.ask_index(lambda view: view.standings(["qb-1"]))
    assert found is not None
    return found["qb-1"].because


class TestAFileThatAnotherProgramWroteAgain:
    """With the rows in another order, or changed far from each other."""

    def rows(self) -> list[dict[str, object]]:
        return [{"id": f"qb-{n}", "status": "open", "priority": 2} for n in range(50)]

    @pytest.fixture
    def parsed(self, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
        seen: list[bytes] = []
        real = tracker_lines._line

        def noted(at: int, raw: bytes, decode: Callable[[bytes], Any]) -> tracker_lines.Line:
            seen.append(raw)
            return real(at, raw, decode)

        monkeypatch.setattr(tracker_lines, "_line", noted)
        return seen

    def test_only_the_rows_that_differ_are_parsed(
        self, beads: Path, hive: Hive, parsed: list[bytes]
    ) -> None:
        rows = self.rows()
        write(beads, *rows)
        assert len(hive.issues.ready()) == len(parsed) == 50
        parsed.clear()
        rows[2]["priority"], rows[47]["status"] = 1, "closed"
        write(beads, *rows)
        ready = ready_of(hive)
        assert (len(ready), ready[0], "qb-47" in ready) == (49, "qb-2", False)
        assert [json.loads(raw)["id"] for raw in parsed] == ["qb-2", "qb-47"]

    def test_rows_that_only_moved_are_not_parsed(
        self, beads: Path, hive: Hive, parsed: list[bytes]
    ) -> None:
        write(beads, *self.rows())
        before = ready_of(hive)
        parsed.clear()
        write(beads, *reversed(self.rows()))
        assert ready_of(hive) == before
        assert parsed == []

    def two_rows(self, beads: Path, hive: Hive) -> list[bool]:
        """Returns whether an issue with two rows is ready, with either as the last."""
        closed: dict[str, object] = {"id": "qb-1", "status": "closed"}
        opened: dict[str, object] = {"id": "qb-1", "status": "open"}
        ends: list[dict[str, object]] = [
            {"id": "qb-0", "status": "open"},
            {"id": "qb-2", "status": "open"},
        ]
        told = []
        for first, second in ((closed, opened), (opened, closed)):
            write(beads, ends[0], first, second, ends[1])
            told.append("qb-1" in ready_of(hive))
        return told

    def test_of_two_rows_of_one_issue_the_last_counts(self, beads: Path, hive: Hive) -> None:
        assert self.two_rows(beads, hive) == [True, False]


class TestWhatChangesWithoutTheRowOfAnIssue:
    def gated(self, beads: Path, hive: Hive) -> None:
        row = {"id": "qb-1", "status": "open", "metadata": {"phase_gate": "wf/p1"}}
        write(beads, row)
        assert "missing" in str(reason(hive))
        folder = Path(gates_dir(hive.layout))
        folder.mkdir(parents=True)
        made = {"metadata": {"workflow_id": "wf", "phase_id": "p1"}}
        (folder / "phase_gate_wf_p1.json").write_text(json.dumps(made))
        assert "not valid" in str(reason(hive))

    def spawned(self, beads: Path, hive: Hive) -> None:
        parent: dict[str, object] = {"id": "qb-1", "status": "open", "issue_type": "gate"}
        on = {"depends_on_id": "qb-1", "type": "waits-for"}
        waiting: dict[str, object] = {"id": "qb-2", "status": "open", "dependencies": [on]}
        of = {"depends_on_id": "qb-1", "type": "parent-child"}
        child: dict[str, object] = {"id": "qb-3", "status": "open", "dependencies": [of]}
        write(beads, parent, waiting, child)
        assert ready_of(hive) == ["qb-3"]
        write(beads, parent, waiting, {**child, "status": "closed"})
        assert ready_of(hive) == ["qb-2"]

    def test_the_gate_before_it(self, beads: Path, hive: Hive) -> None:
        self.gated(beads, hive)

    def test_a_child_of_what_it_waits_for(self, beads: Path, hive: Hive) -> None:
        self.spawned(beads, hive)
