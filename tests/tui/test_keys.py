"""What the keys do: each does what the command of the same name does, once it is confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest
from boards import Open, drive, shows, text_of, until
from hives import Clock
from textual.pilot import Pilot
from textual.widgets import Input

from queenbee import Hive
from queenbee.tui.application import Board
from queenbee.tui.listing import Listing
from queenbee.watch.facts import Reader

pytestmark = pytest.mark.slow


def listing(pilot: Pilot[None], name: str) -> Listing:
    return pilot.app.screen.query_one(f"#{name}", Listing)


def keys_of(pilot: Pilot[None], name: str) -> list[str]:
    return [row.key for row in listing(pilot, name).panel.rows]


def test_an_issue_is_released_once_that_is_confirmed(team: Hive) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("2", "x")
        await shows(pilot, "Release shop-1, which ui has")
        await pilot.press("n")
        assert team.assignments.active("shop-1") is not None
        await pilot.press("x", "y")
        await until(pilot, lambda: team.assignments.active("shop-1") is None, "still taken")
        assert [lease.pattern for lease in team.reservations.find()] == ["docs/**"]
        await until(
            pilot, lambda: keys_of(pilot, "droids") == ["api shop-2", "tester", "human", "ui"], ""
        )

    drive(team, steps)


def test_a_refusal_is_shown_with_its_hint_and_changes_nothing(team: Hive) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("3", "x", "y")
        await shows(pilot, "is reserved by api")
        assert len(team.reservations.find()) == 2

    drive(team, steps)


def test_a_droid_that_is_active_is_not_nudged_and_a_quiet_one_is(team: Hive, frozen: Clock) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("1", "n", "y")
        await shows(pilot, "api was last seen")
        frozen.advance(3600)
        await pilot.press("n", "y")
        await until(
            pilot,
            lambda: any(each.fields.get("nudge") for each in team.messages.recent(limit=5)),
            "no nudge",
        )

    drive(team, steps)


def test_a_message_is_written_to_the_droid_of_the_row_about_its_issue(team: Hive) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("1", "m")
        await shows(pilot, "A message about shop-2")
        await pilot.press(*"hello", "enter", *"there", "ctrl+s")
        await shows(pilot, "sent to api")
        newest = team.messages.recent(limit=1)[0]
        assert (newest.from_, newest.to, newest.body) == ("human", "api", "hello\nthere")
        assert newest.issue_id == "shop-2"
        await until(pilot, lambda: newest.id in keys_of(pilot, "mail"), "not in the mail")

    drive(team, steps)


def test_a_message_is_opened_marked_as_read_and_answered(team: Hive) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        assert team.messages.inbox(unread=True)
        await pilot.press("4", "enter")
        await shows(pilot, "Blue or orange?")
        await until(pilot, lambda: not team.messages.inbox(unread=True), "still unread")
        await pilot.press("r")
        await shows(pilot, "Answer: Which color?")
        await pilot.press(*"blue", "ctrl+s")
        await shows(pilot, "human → ui")
        thread = team.messages.thread(team.messages.recent(limit=1)[0].id)
        assert [each.body for each in thread] == ["Which color?\n\nBlue or orange?", "blue"]

    drive(team, steps)


def test_a_draft_that_is_given_up_is_not_sent(team: Hive) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        before = team.messages.recent(limit=9)
        await pilot.press("1", "m", *"hello", "escape")
        await shows(pilot, "1 Droids")
        assert team.messages.recent(limit=9) == before

    drive(team, steps)


def test_a_filter_keeps_the_rows_with_its_words_until_escape(team: Hive) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"SHOP-1 ui", "enter")
        await until(pilot, lambda: keys_of(pilot, "issues") == ["shop-1"], "not filtered")
        assert keys_of(pilot, "droids") == ["ui shop-1"]
        await pilot.press("escape")
        await until(pilot, lambda: len(keys_of(pilot, "issues")) == 4, "still filtered")
        assert not pilot.app.screen.query_one("#filter", Input).display

    drive(team, steps)


def test_the_cursor_stays_with_its_row_when_others_come_and_go(team: Hive, open_as: Open) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("2", "down")
        assert listing(pilot, "issues").row.key == "shop-2"  # type: ignore[union-attr]
        open_as("ui").assignments.release("shop-1")
        await until(pilot, lambda: keys_of(pilot, "issues")[0] == "shop-2", "nothing changed")
        assert listing(pilot, "issues").row.key == "shop-2"  # type: ignore[union-attr]

    drive(team, steps)


def test_what_others_write_appears_without_a_key(team: Hive, repo: Path, open_as: Open) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        open_as("tester").messages.send("human", "The build is red")
        await shows(pilot, "The build is red")
        open_as("reviewer").reservations.reserve(["guide.md"], ttl_s=3600)
        await shows(pilot, "guide.md")
        with (repo / ".beads" / "issues.jsonl").open("a") as file:
            file.write('{"id":"shop-9","title":"A late idea","status":"open"}\n')
        await shows(pilot, "A late idea")

    drive(team, steps)


def test_a_lease_runs_out_on_the_screen_without_anything_being_written(
    team: Hive, frozen: Clock
) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await shows(pilot, "████░░░░░░ 30s")
        frozen.advance(20)
        await shows(pilot, "██░░░░░░░░ 10s")
        frozen.advance(20)
        await until(pilot, lambda: len(keys_of(pilot, "leases")) == 1, "still there")

    drive(team, steps)


@pytest.mark.some(1)
@pytest.mark.parametrize("keys", [("2", "down", "down", "enter"), ("4", "down", "enter")])
def test_texts_of_others_stay_text(team: Hive, keys: tuple[str, ...]) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        for name in ("issues", "mail"):
            shown = " ".join(
                each.text for row in listing(pilot, name).panel.rows for each in row.cells
            )
            assert "[red]paint[/red] [@click=app.quit]here[/]" in shown
        await pilot.press(*keys)
        await shows(pilot, r"[red]paint[/red] [@click=app.quit]here[/] \x1b[2J\x07 \u202eevil")
        await pilot.press("r" if keys[0] == "4" else "m")
        await shows(pilot, "ctrl+s send")

    drive(team, steps)


def test_no_text_reaches_the_screen_as_it_is(team: Hive) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("2")
        assert "\x1b" not in "".join(text_of(pilot.app))  # type: ignore[arg-type]
        shown = [each.text for row in listing(pilot, "issues").panel.rows for each in row.cells]
        assert all(text.isprintable() for text in shown)

    drive(team, steps)


def test_a_name_in_a_question_is_text_too(team: Hive, open_as: Open) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("3", "end", "x")
        await shows(pilot, r"on \[red]paint.py?")

    open_as("human").reservations.reserve([r"\[red\]paint.py"], ttl_s=7200)
    drive(team, steps)


def test_facts_that_arrive_while_the_screen_is_taken_down_disturb_nobody(team: Hive) -> None:
    async def steps(pilot: Pilot[None]) -> None:
        board = pilot.app
        assert isinstance(board, Board)
        read = Reader(team).read()
        pilot.app.screen.query_one("#panels").remove()
        await pilot.pause()
        board._team.take(read, team.now_ms())
        board._team.foresee(None, "nothing to compare")
        board._tick()
        await pilot.pause()

    drive(team, steps)
