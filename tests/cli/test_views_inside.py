"""What people see: the parts inside."""

from __future__ import annotations

import pytest

from queenbee.cli.rendering import ago, left, table
from queenbee.cli.terminal import width


@pytest.mark.parametrize(
    ("instant_ms", "said"),
    [(0, "?"), (100_000, "0s ago"), (40_000, "1m ago"), (99_000, "1s ago"), (130_000, "in 30s")],
)
def test_a_time_is_shown_relative_to_now(instant_ms: int, said: str) -> None:
    assert ago(instant_ms, 100_000) == said


@pytest.mark.parametrize(
    ("until_ms", "said"), [(100_000, "ended"), (99_999, "ended"), (7_300_000, "2h")]
)
def test_the_time_left_is_shown_relative_to_now(until_ms: int, said: str) -> None:
    assert left(until_ms, 100_000) == said


def test_columns_stay_aligned_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["日本", "x"], ["ab", "x"], ["é" + "e\u0301", "x"], ["\x1b[1m", "x"], ["👩‍💻", "x"]]
    table(["A", "B"], rows, empty="nothing")
    shown = capsys.readouterr().out.splitlines()
    assert len({width(line[: line.rindex("x")]) for line in shown[1:]}) == 1
