"""The index of a large tracker: it answers as reading the whole file does, whatever happens."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutants import mutant
from tracker_worlds import World, answers

from queenbee import Hive
from queenbee.documents.folders import gates_dir
from queenbee.services import issues as issues_module
from queenbee.services.tracker import upkeep, view
from queenbee.store.index import tracker, tracker_lines


@pytest.fixture(autouse=True)
def indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has an index for any size, and no file change twice within one step of its clock: the times
    of the files here are set."""
    monkeypatch.setattr(issues_module, "INDEX_FROM_BYTES", 0)
    monkeypatch.setattr(tracker_lines, "_YOUNG_NS", -(10**19))
    monkeypatch.setattr(tracker_lines, "_COARSE_NS", -(10**19))


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
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_it_answers_as_the_file_does(places: Callable[[], Path], seed: int) -> None:
    done = []
    for what, world in play(places(), seed, 14):
        done.append(what)
        told, truth = answers(world.indexed), answers(world.plain)
        assert {key: told[key] for key in truth} == truth, done
        assert not world.indexed.issues._index_failed, done


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

    def test_would_be_noticed_if_it_were_not(
        self, beads: Path, hive: Hive, same_stamp: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = mutant(tracker_lines, '(just_read or not notes.get("young"))', "True")
        monkeypatch.setattr(upkeep, "is_current", broken.is_current)
        (beads / "issues.jsonl").write_text('{"id": "qb-1", "status": "open"}\n')
        counts = []
        for status in ("open", "done"):
            row = {"id": "qb-1", "status": status}
            (beads / "issues.jsonl").write_text(json.dumps(row) + "\n")
            counts.append(hive.issues.counts()["ready"])
        assert counts == [1, 1]


def test_a_file_is_young_until_its_clock_has_moved_on(
    beads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    path = beads / "issues.jsonl"
    path.write_bytes(b"{}\n")
    now_ns = time.time_ns()
    for age_ns, young in ((0, True), (10**9, False), (-(10**9), True)):
        os.utime(path, ns=(now_ns - age_ns, now_ns - age_ns))
        with tracker_lines.Source(str(path)) as source:
            assert source.young == young
    whole_s = now_ns // 10**9 - 1
    os.utime(path, (whole_s, whole_s))
    with tracker_lines.Source(str(path)) as source:
        assert source.young


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

    def test_of_two_rows_that_are_not_looked_at_again_the_wrong_one_counts(
        self, beads: Path, hive: Hive, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = mutant(tracker_lines, "in tables.db.execute(_REPEATED)", "in ()")
        monkeypatch.setattr(upkeep, "catch_up", broken.catch_up)
        assert self.two_rows(beads, hive) == [True, True]


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

    def test_a_gate_that_is_not_looked_at_is_noticed(
        self, beads: Path, hive: Hive, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = mutant(upkeep, 'and self._notes.get("gates") == self._gates', "")
        monkeypatch.setattr(view, "Upkeep", broken.Upkeep)
        with pytest.raises(AssertionError):
            self.gated(beads, hive)

    def test_a_child_of_what_it_waits_for(self, beads: Path, hive: Hive) -> None:
        self.spawned(beads, hive)

    def test_a_child_that_is_not_looked_at_is_noticed(
        self, beads: Path, hive: Hive, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = mutant(tracker, "            self.parents_of(ids),", "            set(),")
        monkeypatch.setattr(view, "TrackerTables", broken.TrackerTables)
        with pytest.raises(AssertionError):
            self.spawned(beads, hive)


MUTANTS = {
    "believes the index without looking at the file": (
        tracker_lines, "    return same and (just_read", '    return "stamp" in notes or (just_read'
    ),
    "takes every longer file for one that was appended to": (
        tracker_lines, "if longer and source.sum_of(end) == total:", "if longer:"
    ),
    "compares where the lines are, and not what is in them": (
        tracker_lines, "known[n][:2] == (now[n][0], digests[n])", "known[n][0] == now[n][0]"
    ),
    "forgets that lines move": (
        tracker_lines, "if after and moved:", "if False:"
    ),
    "lets an older row count": (
        tracker_lines, "if name not in best or (changed, at) >= best[name][:2]:",
        "if name not in best:",
    ),
    "forgets the children": (tracker, "return self._closed(found, _CHILDREN)", "return found"),
    "forgets the parents": (
        tracker, "related = self._closed(set(ids), _PARENTS)", "related = set(ids)"
    ),
    "follows no assignment": (upkeep, "and not self._held_otherwise()", ""),
    "follows no completion": (upkeep, "and not self._completed_otherwise()", ""),
    "stops the clock": (upkeep, "and not self._due()", ""),
    "keeps the order": (upkeep, "self._rank(other | blockers)", ""),
    "keeps the order of what waits": (upkeep, "self._rank(other | blockers)", "self._rank(other)"),
    "forgets open children": (upkeep, "self._find_parents(parents)", ""),
    "forgets the usual time": (
        upkeep, 'everything = changed is None or self._notes.get("usual") != usual',
        "everything = changed is None",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_an_index_that_is_wrong_is_caught(
    places: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, old, new = MUTANTS[name]
    broken = mutant(module, old, new)
    for error in ("Unfit", "Stale", "Misled"):
        monkeypatch.setattr(broken, error, getattr(tracker_lines, error), raising=False)
    if module is upkeep:
        monkeypatch.setattr(view, "Upkeep", broken.Upkeep)
    elif module is tracker:
        monkeypatch.setattr(view, "TrackerTables", broken.TrackerTables)
    else:
        for function in ("catch_up", "is_current", "winning_rows"):
            monkeypatch.setattr(upkeep, function, getattr(broken, function))
    assert any(
        # One that cannot answer is no use either.
        answers(world.indexed) != answers(world.plain) or world.indexed.issues._index_failed
        for seed in range(60)
        for _, world in play(places(), seed, 14)
    )
