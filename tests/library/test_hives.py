"""Several hives: who works where, and what waits for a person, in all that this user has opened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, at_a_terminal, environment, git, write_lines

from queenbee import Hive


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Another repository with a hive, in which an agent asks something."""
    tree = tmp_path / "shop"
    tree.mkdir()
    git(tree, "init", "-q")
    with Hive.init(tree, droid="ada", env={}) as hive:
        write_lines(tree / ".beads" / "issues.jsonl", {"id": "s-1", "status": "open"})
        hive.assignments.claim("s-1")
        hive.messages.send("human", "Which currency?", ack_within_s=600)
    return tree


def everywhere(quick: QuickQueen) -> list[dict[str, object]]:
    ran = quick("--json", "hive", "list", env=environment())
    assert ran.code == 0, ran
    found: list[dict[str, object]] = ran.json
    return found


def test_hives_that_a_person_looked_at_are_shown_together(
    quick: QuickQueen, repo: Path, shop: Path
) -> None:
    assert everywhere(quick) == []
    assert QuickQueen(repo)("status").code == 0  # Of a script: nobody sees it.
    for tree in (repo, shop, shop):
        assert at_a_terminal(Queen(tree), "", "status", **environment())[0] == 0
    first, second = sorted(everywhere(quick), key=lambda each: str(each["root"]))
    assert [first["root"], second["root"]] == [str(repo), str(shop)]
    assert second["at_work"] == [{"droid": "ada", "issue_id": "s-1"}]
    [want] = second["wants"]  # type: ignore[misc]
    assert want["text"] == "ada wants your answer: “Which currency?”"
    shown = quick("status", "--all", env=environment()).out
    assert "  ada has s-1\n" in shown
    assert f"  how to see to it: cd {shop} && queen\n" in shown


def test_a_folder_without_a_hive_names_the_way_to_them(
    quick: QuickQueen, shop: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env = environment()
    asked = ("answer", "5W6X", "Euros")
    assert quick(*asked, cwd=elsewhere, env=env).err.endswith("  try: queen init\n")
    at_a_terminal(Queen(shop), "", "status", **env)
    hint = "  try: for one of your hives: queen status --all, and cd there; or queen init\n"
    assert quick(*asked, cwd=elsewhere, env=env).err.endswith(hint)


def test_what_agents_look_at_is_not_noted(quick: QuickQueen, shop: Path) -> None:
    marked = {**environment(), "CLAUDECODE": "1"}
    assert at_a_terminal(Queen(shop), "", "status", **marked)[0] == 0
    assert everywhere(quick) == []


def test_one_that_is_gone_says_so_and_is_forgotten_when_asked(
    quick: QuickQueen, shop: Path
) -> None:
    at_a_terminal(Queen(shop), "", "status", **environment())
    shutil.rmtree(shop)
    [gone] = everywhere(quick)
    assert f"queen hive forget {shop}" in str(gone["problem"])
    assert quick("hive", "forget", str(shop)).code == 0
    assert everywhere(quick) == []
    refused = quick("hive", "forget", str(shop))
    assert (refused.code, "queen status --all" in refused.err) == (4, True)


@pytest.mark.slow
def test_the_screen_opens_the_hive_that_is_chosen(repo: Path, shop: Path) -> None:
    import asyncio

    from textual.widgets import DataTable, Static

    from queenbee.library.hives import glimpses
    from queenbee.tui.hives import Hives

    places = [str(repo), str(shop), str(shop.parent / "nowhere")]
    app = Hives(lambda: glimpses(places))

    async def drive() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            table = app.query_one(DataTable)
            async with asyncio.timeout(60):
                while table.row_count < len(places):
                    await pilot.pause(0.05)
            assert table.get_row_at(1)[:3] == ["shop", "1", "ada s-1"]
            assert "shop: ada wants your answer" in str(app.query_one(Static).render())
            table.focus()
            await pilot.press("down", "down", "enter")
            assert app.return_value is None  # It is no hive.
            await pilot.press("up", "enter")
            await pilot.pause()

    asyncio.run(drive())
    assert app.return_value == str(shop)
