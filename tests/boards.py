"""The board of `queen watch` under test: driven by keys, and read as the text that it shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from hives import Clock, QuickQueen, commit_file, git, write_lines
from textual.pilot import Pilot
from waiters import waits

from queenbee import Hive
from queenbee.tui.application import Board
from queenbee.tui.listing import Listing

HOSTILE = "[red]paint[/red] [@click=app.quit]here[/] \x1b[2J\x07 \u202eevil"
_PATIENCE_S = 20.0

Open = Callable[[str], Hive]


@contextmanager
def busy_team(
    repo: Path, quick: QuickQueen, clock: Clock, open_as: Open, open_beside: Open
) -> Iterator[Hive]:
    """Fills a hive with something for every list, and returns it, open for `human`."""
    rows = [
        {"title": "Log in by e-mail", "priority": 1},
        {"title": "An API for orders", "priority": 2},
        {"title": "Write the guide", "priority": 2},
        {"title": HOSTILE, "priority": 0},
        {"title": "Ship it", "priority": 1, "dependencies": [{"depends_on_id": "shop-1"}]},
    ]
    for number, row in enumerate(rows, 1):
        fixed = {"id": f"shop-{number}", "status": "open", "issue_type": "task"}
        made = {"created_at": f"2024-12-0{number}T10:00:00Z", "updated_at": "2024-12-09T10:00:00Z"}
        write_lines(repo / ".beads" / "issues.jsonl", {**fixed, **made, **row})
    commit_file(repo, "login.py", "a\nb\nc\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "the hive")
    for rule in (("--exists", "login.py"), ("--exists", "gone.py")):
        quick("gate", "new", "--workflow", "shop", "--phase", "p1", as_="ui")
        quick("gate", "add-rule", "--workflow", "shop", "--phase", "p1", *rule, as_="ui")
    quick("gate", "run", "--workflow", "shop", "--phase", "p1", as_="ui")
    ui, api, human = open_beside("ui"), open_beside("api"), open_as("human")
    for each in (ui, api, human):
        each.note_presence()
    ui.assignments.claim("shop-1")
    ui.reservations.reserve(["src/**"], issue_id="shop-1", ttl_s=1800)
    api.assignments.claim("shop-3")
    api.assignments.complete("shop-3")
    api.assignments.claim("shop-2")
    api.reservations.reserve(["docs/"], ttl_s=90)
    clock.advance(58)
    api.messages.send("ui", f"Look {HOSTILE}", issue_id="shop-1", importance="high")
    clock.advance(1)
    ui.messages.send("human", "Which color?\n\nBlue or orange?")
    clock.advance(1)
    for droid in ("ui", "api"):
        (repo.parent / f"tree-of-{droid}" / "login.py").write_text(f"a\n{droid}\nc\n")
    with waits(open_as("tester"), "src/app.py", wait_s=600):
        yield human


def text_of(board: Board) -> str:
    """Returns what the screen shows, without its colors."""
    strips = board.screen._compositor.render_strips()
    return "\n".join("".join(part.text for part in strip).rstrip() for strip in strips) + "\n"


async def until(pilot: Pilot[None], true: Callable[[], bool], what: str) -> None:
    """Waits until something is true on the screen."""
    end_s = asyncio.get_running_loop().time() + _PATIENCE_S
    while not true():
        assert asyncio.get_running_loop().time() < end_s, f"{what}\n{text_of(pilot.app)}"  # type: ignore[arg-type]
        await pilot.pause(0.02)
    await pilot.pause()


async def shows(pilot: Pilot[None], text: str) -> None:
    """Waits until a text is on the screen."""
    await until(pilot, lambda: text in text_of(pilot.app), f"no {text!r}")  # type: ignore[arg-type]


@asynccontextmanager
async def opened(hive: Hive, size: tuple[int, int] = (160, 50)) -> AsyncIterator[Pilot[None]]:
    """Opens the board, and waits until it has read everything."""
    board = Board(hive)
    async with board.run_test(size=size, notifications=True) as pilot:
        conflicts = board.screen.query_one("#conflicts", Listing)
        droids = board.screen.query_one("#droids", Listing)
        await until(
            pilot,
            lambda: "…" not in conflicts.panel.empty and "…" not in droids.panel.empty,
            "it never read the hive",
        )
        yield pilot


def drive(
    hive: Hive, steps: Callable[[Pilot[None]], Awaitable[None]], size: tuple[int, int] = (160, 50)
) -> None:
    """Opens the board, and does these steps on it."""

    async def run() -> None:
        async with opened(hive, size) as pilot:
            await steps(pilot)

    asyncio.run(run())
