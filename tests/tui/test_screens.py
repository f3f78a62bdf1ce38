"""What the board looks like, as text: the smallest window it is made for, and a large one.

Textual's own pictures of a screen change with each of its releases, and we pin none. To accept what
is shown now: QUEEN_SNAPSHOTS=write pytest tests/tui/test_screens.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from boards import drive, shows, text_of, until
from textual.pilot import Pilot

from queenbee import Hive

pytestmark = pytest.mark.slow

PICTURES = Path(__file__).with_name("snapshots")


def compare(name: str, shown: str) -> None:
    """Compares a screen with what was accepted."""
    picture = PICTURES / f"{name}.txt"
    # The folder of a test has a name of another length each time; its column keeps its width.
    shown = re.sub(r"(?<=File not found: )\S+ *", lambda path: "·" * len(path[0]), shown)
    if os.environ.get("QUEEN_SNAPSHOTS") == "write":
        picture.write_text(shown)
    assert shown == picture.read_text()


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("name", "size", "keys"),
    [
        ("all-80x24", (80, 24), ()),
        ("all-160x50", (160, 50), ()),
        ("leases-80x24", (80, 24), ("3",)),
        ("mail-80x24", (80, 24), ("4",)),
        ("waiting-80x24", (80, 24), ("5",)),
        ("landings-80x24", (80, 24), ("6",)),
        ("conflicts-80x24", (80, 24), ("7",)),
        ("checks-80x24", (80, 24), ("8",)),
        ("checks-44x40", (44, 40), ("8",)),
        ("keys-80x24", (80, 24), ("question_mark",)),
        ("release-80x24", (80, 24), ("x",)),
        ("write-80x24", (80, 24), ("m",)),
    ],
)
def test_the_board_looks_as_it_was_accepted(
    team: Hive, name: str, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press(*keys)
        await pilot.pause()
        compare(name, text_of(pilot.app))  # type: ignore[arg-type]

    drive(team, steps, size)


@pytest.mark.some(1)
@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_an_issue_opens_with_its_whole_thread(team: Hive, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("2", "enter")
        await shows(pilot, "holds src/**")
        compare(f"issue-{size[0]}x{size[1]}", text_of(pilot.app))  # type: ignore[arg-type]

    drive(team, steps, size)


@pytest.mark.thorough
def test_a_window_that_grows_gets_all_lists_and_one_that_shrinks_loses_none_of_the_keys(
    team: Hive,
) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        lists = pilot.app.screen.query(".panel")
        assert [each.id for each in lists if each.display] == ["droids", "issues"]
        await pilot.resize_terminal(160, 50)
        await until(pilot, lambda: all(each.display for each in lists), "not all lists")
        await pilot.resize_terminal(80, 24)
        await pilot.press("7")
        await until(
            pilot,
            lambda: [each.id for each in lists if each.display] == ["droids", "conflicts"],
            "not the list of the key",
        )

    drive(team, steps, (80, 24))


USUAL = (80, 24), (60, 12)


@pytest.mark.parametrize(
    "size",
    [(20, 5), (300, 90), *(pytest.param(each, marks=pytest.mark.thorough) for each in USUAL)],
)
def test_no_size_of_a_window_breaks_the_board(team: Hive, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        for key in ("2", "end", "3", "enter", "escape", "8", "question_mark", "escape", "q"):
            await pilot.press(key)

    drive(team, steps, size)
