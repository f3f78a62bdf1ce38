"""What docs/threats.md promises of hives, names, hooks and broken files, and code without it.

Each check passes with the code as it is and fails with one line of it broken.
"""

from __future__ import annotations

import os
import subprocess
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import commit_file, git, write_lines
from mutants import mutant

from queenbee import Hive
from queenbee.core.glob import pattern
from queenbee.errors import QueenError
from queenbee.git import hook_scripts, hooks
from queenbee.hook import editing, events
from queenbee.services.leases import paths
from queenbee.store import issues_file, layout


@pytest.fixture
def place(repo: Path, tmp_path: Path) -> Path:
    """A repository with nested hives, a submodule, broken `.git`s, a link, and included config."""
    (repo / "src" / ".beads").mkdir(parents=True)
    for name, text in (("empty", None), ("nowhere", "gitdir: /nowhere\n")):
        (repo / name).mkdir()
        dot_git = repo / name / ".git"
        dot_git.mkdir() if text is None else dot_git.write_text(text)
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    commit_file(library, "z.py")
    local = ("-c", "protocol.file.allow=always")
    git(repo, *local, "submodule", "--quiet", "add", str(library), "vendor/lib")
    (repo / "other" / "deep").mkdir(parents=True)
    (repo / "link").symlink_to("other/deep")
    (tmp_path / "inc").write_text("[core]\n\tignorecase = true\n")
    git(repo, "config", "include.path", str(tmp_path / "inc"))
    git(repo, "config", "core.precomposeunicode", "true")
    return repo


def check_hives(module: types.ModuleType, place: Path) -> None:
    top = str(place / ".beads")
    for folder, wanted in (
        ("src", [str(place / "src" / ".beads"), top]),
        ("empty", [top]),
        ("nowhere", [top]),
        ("vendor/lib", [top]),
    ):
        found = [each.beads_dir for each in module.hives_above(str(place / folder), {})]
        assert found == wanted, folder


def check_trees(module: types.ModuleType, place: Path) -> None:
    found = module.git_tree(str(place / "empty"))
    assert found.tree == str(place)


def check_torn_rows(module: types.ModuleType, place: Path) -> None:
    path = place / ".beads" / "issues.jsonl"
    write_lines(path, '{"id":"qb-1","status":"op', {"id": "qb-2", "title": "x"})
    found = module.read(str(path))
    assert [row["id"] for row in found.rows] == ["qb-2", "qb-1"]
    assert [number for number, _ in found.unusable] == [1]
    assert not found.anonymous
    write_lines(path, '"title":"its beginning is gone"}')
    assert module.read(str(path)).anonymous


def check_case(module: types.ModuleType, place: Path) -> None:
    assert module.folds_case(str(place / ".git"))


def check_links(module: types.ModuleType, place: Path) -> None:
    found = module.path_of("link/../a.py", tree=str(place), cwd=str(place))
    assert found == "other/a.py"


def check_forms(module: types.ModuleType, place: Path) -> None:
    found = module.path_of("cafe\u0301.py", tree=str(place), cwd=str(place))
    assert found == "caf\u00e9.py"


def check_escapes(module: types.ModuleType, place: Path) -> None:
    assert module.escape("a\nb") == r"a\u000ab"


def check_patch(module: types.ModuleType, place: Path) -> None:
    patch = "*** Begin Patch\n  *** Update File: a.py\n+x\n"
    event = {"hook_event_name": "PreToolUse", "tool_name": "apply_patch", "cwd": str(place)}
    assert module.Event({**event, "tool_input": {"command": patch}}, "/").files == [
        str(place / "a.py")
    ]


def check_unknown_tool(module: types.ModuleType, place: Path) -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "mcp__files__move_file"}
    given = {"source": "/a", "destination": "/b"}
    assert module.Event({**event, "tool_input": given}, "/").files == ["/a", "/b"]


def check_all_or_none(module: types.ModuleType, place: Path) -> None:
    """A file that cannot be judged lets no held file pass, and none of the others be leased."""
    env = {"QUEEN_DROID": "me", "QUEEN_DURABILITY": "buffered"}
    (place / "src" / ".beads" / "queen_reservations.jsonl").mkdir()
    fields = {"hook_event_name": "PreToolUse", "tool_name": "Write", "cwd": str(place)}
    named = {"file_path": "src/a.py", "files": ["free.py"]}
    with pytest.raises(Exception, match="regular file"):
        module.answer(events.Event({**fields, "tool_input": named}, "/"), env)
    assert not Hive.open(place, env={}).reservations.find()
    Hive.open(place, droid="bob", env=env).reservations.reserve(["held.py"])
    named = {"file_path": "src/a.py", "files": ["held.py"]}
    assert module.answer(events.Event({**fields, "tool_input": named}, "/"), env) is not None


def check_replays(module: types.ModuleType, place: Path) -> None:
    """A cherry-pick of a held file is refused; a rebase and `--no-verify` pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "whole_hook", module.whole_hook)
        hooks.install(hooks.HookFolder(str(place)))
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


CHECKS: dict[str, tuple[Callable[[types.ModuleType, Path], None], types.ModuleType, str, str]] = {
    "hives above are not asked": (
        check_hives, layout, "_upward(cwd, here)[1:]", "_upward(cwd, here)[:0]",
    ),
    "superprojects are not asked": (
        check_hives, layout, "        folder = above\n", "        return\n",
    ),
    "an empty .git hides the repository": (
        check_trees, layout, 'os.path.lexists(os.path.join(own, "HEAD"))', "own",
    ),
    "a .git that leads nowhere hides it": (
        check_hives, layout, 'os.path.basename(dot_git) != ".git"', "True",
    ),
    "includes are not read": (check_case, layout, 'current == "include"', "False"),
    "link/.. is read as text": (check_links, paths, 'if ".." in path.split("/"):', "if False:"),
    "forms of a letter are two names": (check_forms, paths, "return composed if", "return path if"),
    "no pattern names a line break": (
        check_escapes, pattern, '(unwritable(char) and char != "\\0")', "False",
    ),
    "indented markers are overlooked": (check_patch, events, "line.strip()", "line"),
    "unknown tools are overlooked": (
        check_unknown_tool, events, "not _CHANGING.intersection(words)", "True",
    ),
    "half of an edit is leased": (
        check_all_or_none, editing, "    if not errors:\n", "    if True:\n",
    ),
    "one bad file lets the others pass": (
        check_all_or_none, editing,
        "    # Decided before", "    for error in errors:\n        raise error\n    #",
    ),
    "a torn row blocks nothing": (
        check_torn_rows, issues_file, "rows.append(unreadable_row(identifier))", "pass",
    ),
    "a torn row without an id is nobody's": (
        check_torn_rows, issues_file, "self.anonymous or identifier is None", "False",
    ),
    "no replay is looked at": (check_replays, hook_scripts, "    message)\n", "    nothing)\n"),
    "no replay with an editor is looked at": (
        check_replays, hook_scripts, "revert* | cherry-pick*)", "revert*)",
    ),
    "every message is a replay": (
        check_replays, hook_scripts,
        '[ "$(cat "$1")" = "$(cat "$queenbee_dir/MERGE_MSG")" ]', "true",
    ),
    "a rebase is a replay": (
        check_replays, hook_scripts, '[ -d "$queenbee_dir/rebase-merge" ] || ', "",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("check", dict.fromkeys(check for check, *_ in CHECKS.values()))
def test_what_is_promised_holds(
    check: Callable[[types.ModuleType, Path], None], place: Path
) -> None:
    check(next(module for each, module, *_ in CHECKS.values() if each is check), place)


@pytest.mark.slow
@pytest.mark.parametrize("fault", CHECKS)
def test_code_without_it_is_noticed(fault: str, place: Path) -> None:
    check, module, old, new = CHECKS[fault]
    broken = mutant(module, old, new)
    with pytest.raises((AssertionError, QueenError, pytest.fail.Exception)):
        check(broken, place)
