"""What docs/threats.md promises of hives, names, hooks and broken files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from acting import install_guard
from hives import add_submodule, commit_file, git, write_lines

from queenbee import Hive
from queenbee.core.glob import pattern
from queenbee.hook import editing, events
from queenbee.services.leases import paths
from queenbee.store import git_trees, layout


@pytest.fixture
def place(repo: Path, tmp_path: Path) -> Path:
    """A repository with nested hives, a submodule, broken `.git`s, a link, and included config."""
    (repo / "src" / ".beads").mkdir(parents=True)
    (repo / "none" / ".git").mkdir(parents=True)
    (repo / "none" / ".git" / "HEAD").touch()
    for name, text in (
        ("empty", None),
        ("nowhere", "gitdir: /nowhere\n"),
        ("astray", f"gitdir: {tmp_path}\n"),
    ):
        (repo / name).mkdir()
        dot_git = repo / name / ".git"
        dot_git.mkdir() if text is None else dot_git.write_text(text)
    add_submodule(repo, tmp_path / "library", "vendor/lib")
    (repo / "other" / "deep").mkdir(parents=True)
    (repo / "link").symlink_to("other/deep")
    (tmp_path / "inc").write_text("[core]\n\tignorecase = true\n")
    git(repo, "config", "include.path", str(tmp_path / "inc"))
    git(repo, "config", "core.precomposeunicode", "true")
    return repo


@pytest.mark.slow
def test_the_hives_above_a_folder_are_found_whatever_lies_between(place: Path) -> None:
    top = str(place / ".beads")
    for folder, wanted in (
        ("src", [str(place / "src" / ".beads"), top]),
        ("empty", [top]),
        ("none", [top]),
        ("nowhere", [top]),
        ("astray", [top]),
        ("vendor/lib", [top]),
    ):
        found = [each.beads_dir for each in layout.hives_above(str(place / folder), {})]
        assert found == wanted, folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["empty", "none"])
def test_a_git_folder_that_is_none_hides_no_repository(place: Path, name: str) -> None:
    found = git_trees.git_tree(str(place / name))
    assert found.tree == str(place)


@pytest.mark.slow
def test_a_torn_row_of_an_issue_blocks_it(place: Path) -> None:
    path = place / ".beads" / "issues.jsonl"
    write_lines(path, '{"id":"qb-1","status":"op', {"id": "qb-2", "title": "x"})
    hive = Hive.open(place)
    assert {key: each.status for key, each in hive.issues.all().items()} == {
        "qb-1": "unreadable", "qb-2": "open",
    }  # fmt: skip
    assert hive.issues.unusable_lines == [1]
    assert not hive.tracker().is_anonymous
    write_lines(path, '"title":"its beginning is gone"}')
    assert hive.tracker().is_anonymous


@pytest.mark.slow
def test_included_settings_say_whether_case_counts(place: Path) -> None:
    assert git_trees.folds_case(str(place / ".git"))


@pytest.mark.slow
def test_a_way_up_out_of_a_link_is_followed_as_the_system_does(place: Path) -> None:
    found = paths.path_of("link/../a.py", tree=str(place), cwd=str(place))
    assert found == "other/a.py"


@pytest.mark.slow
def test_two_forms_of_a_letter_are_one_name(place: Path) -> None:
    found = paths.path_of("cafe\u0301.py", tree=str(place), cwd=str(place))
    assert found == "caf\u00e9.py"


@pytest.mark.slow
def test_a_line_break_in_a_name_is_escaped(place: Path) -> None:
    assert pattern.escape("a\nb") == r"a\u000ab"


@pytest.mark.slow
def test_an_indented_marker_of_a_patch_names_a_file(place: Path) -> None:
    patch = "*** Begin Patch\n  *** Update File: a.py\n+x\n"
    event = {"hook_event_name": "PreToolUse", "tool_name": "apply_patch", "cwd": str(place)}
    assert events.Event({**event, "tool_input": {"command": patch}}, "/").files == [
        str(place / "a.py")
    ]


@pytest.mark.parametrize(
    ("tool", "given", "edits"),
    [
        ("str_replace_based_edit_tool", {}, False),
        ("str_replace_based_edit_tool", {"new_str": "x"}, True),
        ("Edit", {}, True),
    ],
)
def test_an_edit_is_no_look_because_it_says_so(tool: str, given: dict, *, edits: bool) -> None:
    said = {"command": "view", "path": "/a", **given}
    event = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": said}
    assert events.Event(event, "/").files == ["/a"] * edits


@pytest.mark.slow
def test_the_files_of_an_unknown_tool_are_found(place: Path) -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "mcp__files__move_file"}
    given = {"source": "/a", "destination": "/b"}
    assert events.Event({**event, "tool_input": given}, "/").files == ["/a", "/b"]


@pytest.mark.slow
def test_a_file_that_cannot_be_judged_lets_no_held_file_pass(place: Path) -> None:
    """A file that cannot be judged lets no held file pass, and none of the others be leased."""
    env = {"QUEEN_DROID": "mo", "QUEEN_DURABILITY": "buffered"}
    (place / "src" / ".beads" / "queen_reservations.jsonl").mkdir()
    fields = {"hook_event_name": "PreToolUse", "tool_name": "Write", "cwd": str(place)}
    named = {"file_path": "src/a.py", "files": ["free.py"]}
    with pytest.raises(Exception, match="regular file"):
        editing.answer(events.Event({**fields, "tool_input": named}, "/"), env)
    assert not Hive.open(place, env={}).reservations.find()
    Hive.open(place, droid="bob", env=env).reservations.reserve(["held.py"])
    named = {"file_path": "src/a.py", "files": ["held.py"]}
    assert editing.answer(events.Event({**fields, "tool_input": named}, "/"), env) is not None


@pytest.mark.slow
def test_a_replay_is_checked_and_a_rebase_passes(place: Path) -> None:
    """A cherry-pick of a held file is refused; a rebase and `--no-verify` pass."""
    install_guard(place)
    git(place, "add", "--all", ".gitmodules", "vendor")
    git(place, "commit", "-q", "--no-verify", "-m", "all")
    git(place, "checkout", "-qb", "topic")
    commit_file(place, "held.py")
    git(place, "checkout", "-q", "main")
    commit_file(place, "free.py")
    env = {"QUEEN_DURABILITY": "buffered"}
    Hive.open(place, droid="bob", env=env).reservations.reserve(["held.py"])
    for command in ("cherry-pick topic", "cherry-pick --edit topic"):
        with pytest.raises(AssertionError, match="held by bob"):
            run_git(place, *command.split())
        run_git(place, "commit", "--no-verify", "-m", "mine")
        git(place, "reset", "-q", "--hard", "HEAD~1")
    run_git(place, "rebase", "-q", "main", "topic")


def run_git(tree: Path, *arguments: str) -> None:
    env = {**os.environ, "GIT_EDITOR": "true"}
    done = subprocess.run(["git", *arguments], cwd=tree, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
