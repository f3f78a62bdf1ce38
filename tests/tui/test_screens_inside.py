"""What the board looks like: the parts inside."""

from __future__ import annotations

import os

import pytest
from boards import drive, shows
from textual.color import Color
from textual.pilot import Pilot

from queenbee import Hive
from queenbee.core.timestamps import format_ms
from queenbee.services.waiting.landing_turn import Lander
from queenbee.services.work import screen
from queenbee.store import safe_open
from queenbee.store.droids import presence, roster
from queenbee.store.droids.liveness import described
from queenbee.tui.listing import Listing
from queenbee.tui.team import shares

pytestmark = pytest.mark.slow


def test_an_agent_of_a_started_team_has_a_line(team: Hive) -> None:
    entry = roster.Entry("robin", {"client": "claude", "state": "between", "landed": 2})
    entry.supervisor = described(os.getpid())
    safe_open.make_folder(roster.folder(team.layout))
    roster.write(team.layout, entry)

    async def steps(pilot: Pilot[None]) -> None:
        await shows(pilot, "robin (claude): between, 2 landed")

    drive(team, steps, (160, 50))


def test_an_agent_of_a_team_that_has_ended_has_its_client(team: Hive) -> None:
    presence.note(team.layout, "robin", team.now_ms())
    safe_open.make_folder(roster.folder(team.layout))
    roster.note_end(team.layout, team.now_ms(), [], {"robin": "codex"})

    async def steps(pilot: Pilot[None]) -> None:
        await shows(pilot, "no issue, no lease · codex")

    drive(team, steps, (160, 50))


def test_a_landing_says_how_long_the_last_check_took(
    team: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = format_ms(team.now_ms() - 3000)
    under_way = Lander("amber", "main", since, "landing", "12 passed", 41.6)
    monkeypatch.setattr(screen, "_landing", lambda _: [under_way])

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("6")
        await shows(pilot, "on main, last check 42 s: 12 passed")

    drive(team, steps, (160, 50))


def luminance(color: Color) -> float:
    """Returns the relative luminance of WCAG 2."""
    parts = [
        each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4
        for each in color.normalized
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize(
    ("needed", "room", "given"),
    [
        ([8, 8, 3, 3, 6], 28, [8, 8, 3, 3, 6]),
        ([8, 40, 3, 3, 6], 28, [8, 8, 3, 3, 6]),
        ([4, 5, 3, 3, 3], 24, [7, 8, 3, 3, 3]),
        ([3, 3], 10, [5, 5]),
    ],
)
def test_each_list_gets_the_lines_that_it_needs_and_an_empty_one_no_more(
    needed: list[int], room: int, given: list[int]
) -> None:
    assert shares(needed, room) == given


@pytest.mark.some(4)
@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("number", range(1, 9))
def test_the_selected_row_can_be_read(team: Hive, number: int, theme: str) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        pilot.app.theme = f"textual-{theme}"
        await pilot.press(str(number))
        board = pilot.app
        panel = board.screen.focused
        assert isinstance(panel, Listing)
        strips = [panel.render_line(row) for row in range(1, panel.size.height)]
        (selected,) = [each for each in strips if each.text.startswith("▸")] or [strips[0]]
        for text, style, _ in selected:
            if text.strip() and style is not None and style.color and style.bgcolor:
                both = (Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor))
                low, high = sorted(map(luminance, both))
                ratio = (high + 0.05) / (low + 0.05)
                assert ratio >= 4.5, (text, ratio)

    drive(team, steps)
