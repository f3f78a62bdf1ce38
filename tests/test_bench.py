"""The benchmarks' rows, the file that keeps them, and what a comparison of two runs says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import calibration, peer_commands, peers, results
from bench.compare import Comparison, compare, told
from bench.results import Row

ROOT = Path(__file__).parent.parent
INBOX = Row("inbox", 1.30, "x", 1.25, 1.35)


FOLD = Row("fold", 10, "ms", 9.8, 10.2)
LOOPS = {
    "version": 1,
    "processor": {"value": 20.0, "low": 19.5, "high": 20.5},
    "files": {"value": 20.0, "low": 19.5, "high": 20.5},
}
HALF = {"value": 40.0, "low": 39.0, "high": 41.0}
"""A loop on a machine of half the speed."""


def slower(row: Row, times: float) -> Row:
    assert row.low is not None and row.high is not None
    return row._replace(value=row.value * times, low=row.low * times, high=row.high * times)


def names(pairs: list[tuple[Row, Row]]) -> list[str]:
    return [new.name for _, new in pairs]


def against(row: Row, **changes: object) -> Comparison:
    return compare([row], [row._replace(**changes)], LOOPS, LOOPS)


class TestComparing:
    def test_a_value_that_grew_beyond_both_spreads_is_slower(self) -> None:
        found = against(INBOX, value=1.60, low=1.50, high=1.70)
        assert names(found.slower) == ["inbox"]
        assert found.faster == found.same == []

    def test_a_value_that_shrank_beyond_both_spreads_is_faster(self) -> None:
        found = against(INBOX, value=1.0, low=0.9, high=1.1)
        assert names(found.faster) == ["inbox"]

    def test_spreads_that_overlap_are_noise_however_far_the_medians_are(self) -> None:
        found = against(INBOX, value=2.60, low=1.35, high=3.0)
        assert names(found.same) == ["inbox"]

    def test_less_than_a_tenth_is_noise_however_narrow_the_spreads_are(self) -> None:
        narrow = INBOX._replace(low=1.30, high=1.30)
        assert names(against(narrow, value=1.42, low=1.42, high=1.42).same) == ["inbox"]
        assert names(against(narrow, value=1.44, low=1.44, high=1.44).slower) == ["inbox"]

    def test_where_more_is_better_a_smaller_value_is_slower(self) -> None:
        rate = Row("appends", 0.60, "of the floor", 0.55, 0.65, better="more")
        assert names(against(rate, value=0.30, low=0.25, high=0.35).slower) == ["appends"]
        assert names(against(rate, value=0.90, low=0.85, high=0.95).faster) == ["appends"]

    def test_a_row_that_was_measured_once_has_changed_at_twice_the_value(self) -> None:
        once = Row("pull", 1.0, "s")
        assert names(against(once, value=1.9).same) == ["pull"]
        assert names(against(once, value=2.1).slower) == ["pull"]
        assert names(against(once, value=0.4).faster) == ["pull"]

    def test_rows_of_one_run_alone_are_new_or_gone(self) -> None:
        found = compare([INBOX, Row("old", 1, "x")], [INBOX, Row("young", 1, "x")])
        assert ([row.name for row in found.new], [row.name for row in found.gone]) == (
            ["young"],
            ["old"],
        )

    def test_a_row_in_another_unit_is_another_row(self) -> None:
        found = against(INBOX, unit="ms")
        assert (found.new[0].unit, found.gone[0].unit) == ("ms", "x")

    def test_a_machine_of_half_the_speed_is_no_change(self) -> None:
        rows = [INBOX, FOLD, FOLD._replace(name="commit", unit="s", loop="files")]
        slow = [INBOX, *(slower(row, 2) for row in rows[1:])]
        found = compare(rows, slow, LOOPS, {**LOOPS, "processor": HALF, "files": HALF})
        assert found.slower == found.faster == found.unknown == []
        assert len(found.same) == 3

    def test_slower_code_is_found_on_a_machine_of_half_the_speed(self) -> None:
        rows = [FOLD, FOLD._replace(name="commit", loop="files")]
        new = [slower(rows[0], 6), rows[1]]
        half = {**LOOPS, "processor": HALF, "files": HALF}
        found = compare(rows, new, LOOPS, half)
        assert names(found.slower) == ["fold"]
        assert names(found.faster) == ["commit"]
        (line,) = [each for each in told(found, LOOPS, half) if each.startswith("  fold")]
        assert "3.00 x, by the loops of the runs" in line

    def test_each_row_goes_by_the_loop_of_its_kind(self) -> None:
        row = FOLD._replace(name="commit", loop="files")
        found = compare([FOLD, row], [FOLD, row], LOOPS, {**LOOPS, "files": HALF})
        assert names(found.same) == ["fold"]
        assert names(found.faster) == ["commit"]

    @pytest.mark.parametrize("loops", [(None, LOOPS), (LOOPS, None), (LOOPS, {"version": 2})])
    def test_durations_of_an_unknown_speed_are_not_compared(self, loops: Any) -> None:
        found = compare([INBOX, FOLD], [INBOX, slower(FOLD, 3)], *loops)
        assert names(found.unknown) == ["fold"]
        assert names(found.same) == ["inbox"]
        assert "not comparable, since" in list(told(found))[-1]

    def test_the_largest_change_comes_first(self) -> None:
        old = [Row(name, 1.0, "x", 1.0, 1.0) for name in ("some", "most", "least")]
        new = [
            row._replace(value=value, low=value, high=value)
            for row, value in zip(old, (2.0, 3.0, 1.5), strict=True)
        ]
        assert names(compare(old, new).slower) == ["most", "some", "least"]

    def test_zero_is_no_error(self) -> None:
        zero = Row("wait", 0.0, "ms", 0.0, 0.0)
        assert names(against(zero).same) == ["wait"]
        assert names(against(zero, value=1.0, low=1.0, high=1.0).slower) == ["wait"]


def test_the_text_names_the_values_their_spreads_and_the_factor() -> None:
    found = against(INBOX, value=2.60, low=2.5, high=2.7)
    lines = [" ".join(line.split()) for line in told(found)]
    assert lines == [
        "slower: 1",
        "inbox 1.30 x (1.25 to 1.35) -> 2.60 x (2.50 to 2.70), 2.00 x",
        "faster: 0",
        "within the noise: 0",
    ]


def test_the_loops_that_are_measured_are_those_that_rows_name() -> None:
    found = calibration.document(calibration.measure())
    assert found.keys() == LOOPS.keys()
    assert all(loop["low"] > 0 for loop in found.values() if isinstance(loop, dict))


class TestRows:
    def test_a_row_is_the_median_with_the_tenth_and_the_ninetieth_percentile(self) -> None:
        row = results.of("one", [float(number) for number in range(21)], "ms")
        assert (row.low, row.value, row.high) == (2, 10, 18)

    def test_one_measurement_has_no_spread(self) -> None:
        assert results.of("one", [3.0], "s") == Row("one", 3.0, "s", None, None)

    def test_a_row_prints_its_spread_its_goal_and_its_note(self) -> None:
        row = INBOX._replace(goal=1.3, note="60 ms of 46")
        assert str(row) == "1.30 x (1.25 to 1.35), goal 1.30; 60 ms of 46"
        assert str(Row("pull", 0.8, "s")) == "0.80 s"

    def test_a_file_gives_back_what_was_written(self, tmp_path: Path) -> None:
        rows = [INBOX, Row("pull", 0.8, "s", goal=1.0, note="once")]
        path = tmp_path / "deep" / "bench.json"
        results.write(str(path), rows)
        kept = json.loads(path.read_text(encoding="utf-8"))
        assert results.rows_of(kept) == rows
        assert set(kept) == {"machine", "versions", "date", "load", "calibration", "rows"}

    def test_two_rows_of_one_name_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="inbox"):
            results.write(str(tmp_path / "bench.json"), [INBOX, INBOX])


class TestTheCommand:
    def compared(self, *files: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bench.compare", *map(str, files)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    def test_a_slower_run_is_told_and_is_no_failure(self, tmp_path: Path) -> None:
        old, new = tmp_path / "old.json", tmp_path / "new.json"
        results.write(str(old), [INBOX])
        results.write(str(new), [INBOX._replace(value=9, low=8, high=10)])
        done = self.compared(old, new)
        assert (done.returncode, done.stderr) == (0, "")
        assert "slower: 1" in done.stdout
        assert "6.92 x" in done.stdout

    def test_a_file_that_cannot_be_read_is_a_visible_failure(self, tmp_path: Path) -> None:
        broken = tmp_path / "broken.json"
        broken.write_text("{")
        done = self.compared(broken, broken)
        assert done.returncode != 0
        assert "JSONDecodeError" in done.stderr

    def test_the_kept_table_can_be_compared(self) -> None:
        kept = ROOT / "bench" / "results" / "release.json"
        done = self.compared(kept, kept)
        assert (done.returncode, done.stderr) == (0, "")
        assert "slower: 0" in done.stdout
        assert "within the noise: 0" not in done.stdout


class TestOtherTools:
    def told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        path = tmp_path / "peers"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv("QUEEN_BENCH_PEERS", str(path))

    def test_a_file_names_the_command_of_each_work(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.told(
            tmp_path,
            monkeypatch,
            "# a comment\nmail\tsetup\tmail init\n"
            "mail\treserve\tmail hold {agent} 'a b/{number}'\n",
        )
        (tool,) = peer_commands.tools()
        assert tool.works == {"reserve"}
        command = tool.command("reserve", number=7, agent="a1", count=0)
        assert command == ["mail", "hold", "a1", "a b/7"]
        assert peer_commands.inboxes() == {}

    def test_a_line_of_two_fields_lists_an_inbox(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.told(tmp_path, monkeypatch, "mail\tmail list --all\n")
        assert peer_commands.inboxes() == {"mail": ["mail", "list", "--all"]}

    def test_an_unknown_work_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.told(tmp_path, monkeypatch, "mail\tfly\tmail fly\n")
        with pytest.raises(ValueError, match="fly"):
            peer_commands.tools()

    @pytest.mark.parametrize(
        "kind", [peers.Queen, pytest.param(peers.QueenServer, marks=pytest.mark.thorough)]
    )
    @pytest.mark.slow
    def test_one_of_two_gets_a_file_and_an_issue(
        self, tmp_path: Path, kind: type[peers.Queen] | type[peers.QueenServer]
    ) -> None:
        """The measurement does what it says: a refusal is told apart from a grant."""
        peer = kind(str(tmp_path / "hive"), 3)
        try:
            for work in (peers.RESERVE, peers.CLAIM):
                assert [peer.do(work, 5, agent) for agent in (0, 1)] == [True, False]
            for work in (peers.SEND, peers.INBOX):
                assert peer.do(work, 5, 0)
        finally:
            peer.close()
