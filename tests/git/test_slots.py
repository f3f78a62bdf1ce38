"""The number of a worktree, which no other one has, and the variables that come with it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hives import COMMAND, git
from made_worktrees import add, opened, remove

from queenbee.git.worktrees.slots import known_variables, variables


def slot(tree: Path) -> int:
    return int(variables(opened(tree, None).layout, str(tree))["QUEEN_SLOT"])


def test_the_smallest_free_number_is_taken_and_kept(repo: Path) -> None:
    trees = [Path(add(opened(repo), name).path) for name in ("one", "two", "three")]
    assert [slot(each) for each in trees] == [1, 2, 3]
    assert slot(repo) == 0
    remove(opened(repo), "two")
    assert [slot(trees[2]), slot(trees[0])] == [3, 1]
    assert slot(Path(add(opened(repo), "four").path)) == 2


@pytest.mark.slow
def test_worktrees_that_ask_at_once_get_different_numbers(repo: Path) -> None:
    trees = [repo.parent / f"t{number}" for number in range(6)]
    for each in trees:
        git(repo, "worktree", "add", "-q", "--detach", str(each))
    code = (
        "import json, sys; from queenbee import Hive; "
        "from queenbee.git.worktrees.slots import variables; "
        "layout = Hive.open(sys.argv[1], env={}).layout; sys.stdin.read(); "
        "print(variables(layout, sys.argv[1])['QUEEN_SLOT'])"
    )
    asked = [
        subprocess.Popen(
            [COMMAND[0], "-c", code, str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in trees
    ]
    for each in asked:
        assert each.stdin is not None
        each.stdin.close()
    slots = []
    for each in asked:
        with each:
            assert each.stdout is not None
            slots.append(int(each.stdout.read()))
        assert each.returncode == 0
    assert sorted(slots) == [1, 2, 3, 4, 5, 6]
    assert [slot(each) for each in trees] == slots


def test_they_say_where_and_which_ports(repo: Path) -> None:
    tree = Path(add(opened(repo), "ui").path)
    layout = opened(tree, None).layout
    assert known_variables(layout, str(tree)) == {}
    named = variables(layout, str(tree / ".git" / ".."))
    assert known_variables(layout, str(tree)) == named == {
        "QUEEN_WORKTREE": str(tree),
        "QUEEN_ROOT": str(repo),
        "QUEEN_SLOT": "1",
        "QUEEN_PORT": "3020",
    }  # fmt: skip


def test_the_names_of_another_tool_work_where_its_file_is(repo: Path) -> None:
    tree = Path(add(opened(repo), "ui").path)
    (repo / ".cursor").mkdir()
    (repo / ".cursor" / "worktrees.json").write_text(json.dumps({}))
    (repo / "conductor.json").write_text(json.dumps({}))
    named = variables(opened(tree, None).layout, str(tree))
    assert named["ROOT_WORKTREE_PATH"] == named["CONDUCTOR_ROOT_PATH"] == str(repo)
    assert named["CONDUCTOR_WORKSPACE_PATH"] == str(tree)
    assert named["CONDUCTOR_PORT"] == "3020"
    assert "CODEX_WORKTREE_PATH" not in named


def test_a_number_that_cannot_be_read_is_given_anew(repo: Path) -> None:
    tree = Path(add(opened(repo), "ui").path)
    assert slot(tree) == 1
    place = repo / ".git" / "worktrees" / tree.name / "queenbee-slot"
    for text in ("x", "-1", "0", "", "9" * 40):
        place.write_text(text)
        assert slot(tree) == 1
