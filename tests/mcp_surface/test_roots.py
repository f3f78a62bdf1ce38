"""Where a client works: in the roots of its workspace, each with the hive that it is in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, git
from mcp_clients import called, error_of, inside, result_of, roots_at


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A repository without a hive."""
    (tmp_path / "elsewhere").mkdir()
    git(tmp_path / "elsewhere", "init", "-q")
    return tmp_path / "elsewhere"


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Another repository with a hive."""
    (tmp_path / "second" / ".beads").mkdir(parents=True)
    git(tmp_path / "second", "init", "-q")
    return tmp_path / "second"


def in_roots(folders: list[Path], *calls: tuple[str, dict[str, Any]], **more: Any) -> list[Any]:
    """Returns the answers to a client that works in these folders, not where it was started."""
    return called(
        Path("/"),
        *calls,
        mode="legacy",
        list_roots_callback=roots_at(folders),
        env={"QUEEN_DROID": "ui"},
        **more,
    )


def test_the_hive_is_that_of_the_root_and_patterns_are_relative_to_it(
    repo: Path, elsewhere: Path
) -> None:
    (repo / "src").mkdir()
    (answer,) = in_roots([elsewhere, repo / "src"], ("reserve", {"patterns": ["*.py"]}))
    assert [each["pattern"] for each in result_of(answer)] == ["src/*.py"]


def test_two_roots_in_one_working_tree_are_one_hive(repo: Path) -> None:
    (repo / "src").mkdir()
    (answer,) = in_roots([repo, repo / "src"], ("status", {}))
    assert result_of(answer)["actor"] == "ui"


def test_with_several_hives_each_tool_takes_the_root(repo: Path, second: Path) -> None:
    reserve = {"patterns": ["x"]}
    roots = [str(repo), str(second)]
    answers = in_roots(
        [repo, second],
        ("reserve", reserve),
        ("reserve", {**reserve, "root": str(second)}),
        ("reserve", {**reserve, "root": "/etc"}),
        ("reserve", {**reserve, "root": 5}),
        ("check", {"paths": ["x"], "root": str(repo)}),
        ("check", {"paths": ["x"], "root": str(second)}),
    )
    assert error_of(answers[0])["code"] == "invalid_input"
    assert all(each in error_of(answers[0])["hint"] for each in roots)
    assert result_of(answers[1])[0]["pattern"] == "x"
    assert [error_of(each)["code"] for each in answers[2:4]] == ["invalid_input"] * 2
    assert [result_of(each)[0]["status"] for each in answers[4:]] == ["free", "mine"]

    async def tools(client: Any) -> Any:
        return (await client.list_tools()).tools

    listed = inside(Path("/"), tools, mode="legacy", list_roots_callback=roots_at([repo, second]))
    assert all(each.input_schema["properties"]["root"]["enum"] == roots for each in listed)
    assert all("root" in each.input_schema["required"] for each in listed)


def test_a_resource_of_several_hives_names_its_root(repo: Path, second: Path) -> None:
    async def read(client: Any) -> Any:
        found = await client.read_resource(f"queen://inbox?root={second}")
        return found.contents[0].text

    asked = {"list_roots_callback": roots_at([repo, second]), "env": {"QUEEN_DROID": "ui"}}
    assert inside(Path("/"), read, mode="legacy", **asked) == "[]"


def test_a_client_without_roots_works_where_it_was_started(repo: Path, quick: QuickQueen) -> None:
    (answer,) = called(repo, ("status", {}), env={"QUEEN_DROID": "ui"})
    assert result_of(answer)["actor"] == "ui"


def test_without_a_hive_every_tool_says_so(elsewhere: Path) -> None:
    answers = called(elsewhere, ("status", {}), ("next", {}), ("check", {"paths": ["x"]}))
    assert [error_of(each)["code"] for each in answers] == ["no_hive"] * 3


def test_a_hive_that_is_made_later_is_found(elsewhere: Path, quick: QuickQueen) -> None:
    async def act(client: Any) -> None:
        assert error_of(await client.call_tool("status", {}))["code"] == "no_hive"
        quick("init", cwd=elsewhere)
        assert result_of(await client.call_tool("status", {}))["unread"] == 0

    inside(elsewhere, act)


def test_settings_that_change_count_at_once(repo: Path) -> None:
    async def act(client: Any) -> None:
        assert not (await client.call_tool("claim", {"issue": "anything"})).is_error
        (repo / ".beads" / "queen.toml").write_text('issues = "strict"\n')
        answer = await client.call_tool("claim", {"issue": "other"})
        assert error_of(answer)["code"] == "not_found"

    inside(repo, act, env={"QUEEN_DROID": "ui"})
