"""Conflicts between worktrees: what is compared, what is said, and that nothing is touched."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, commit_file, git

from queenbee.errors import ExternalFailure, InvalidInput
from queenbee.git.collisions import comparing, order, snapshots
from queenbee.git.collisions.found import Collisions
from queenbee.git.lines import Hunk, hunks, overlaps, shown
from queenbee.store.layout import discover

TEXT = "".join(f"line {number}\n" for number in range(1, 31))
AddTree = Callable[[str], Path]


@pytest.fixture
def base(repo: Path) -> Path:
    """The repository with a few files."""
    commit_file(repo, "src/app.py", TEXT)
    commit_file(repo, "docs/log.md", "# Changes\n")
    return repo


@pytest.fixture
def add_tree(base: Path, tmp_path: Path) -> AddTree:
    """Adds a worktree with a branch of its name."""

    def added(name: str) -> Path:
        tree = tmp_path / name
        git(base, "worktree", "add", "-q", "-b", name, str(tree))
        return tree

    return added


@pytest.fixture
def api(add_tree: AddTree) -> Path:
    return add_tree("api")


@pytest.fixture
def ui(add_tree: AddTree) -> Path:
    return add_tree("ui")


def compared(tree: Path, *, with_order: bool = False) -> Collisions:
    return comparing.compare(discover(str(tree), {}), with_order=with_order)


def conflicts(found: Collisions) -> dict[tuple[str, str], dict[str, str]]:
    """Returns the kind of conflict by file, for each pair of names."""
    return {(p.a.name, p.b.name): {f.path: f.kind for f in p.files} for p in found.pairs}


def change(tree: Path, line: int, text: str, path: str = "src/app.py") -> None:
    """Replaces one line of a file."""
    lines = (tree / path).read_text().splitlines(keepends=True)
    lines[line - 1] = f"{text}\n"
    (tree / path).write_text("".join(lines))


def everything(*folders: Path) -> dict[str, object]:
    """Returns all files below these folders with content, mode and time of change."""
    found: dict[str, object] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            status = path.lstat()
            if ".git/queenbee/" in f"{path}/":
                continue
            # Making the state's folder is a change of the folder that it is in. And git renews the
            # time of an object that it was about to make, so that nobody prunes it.
            times = 0 if path.is_dir() or ".git/objects" in str(path) else status.st_mtime_ns
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path)] = (status.st_mode, status.st_ino, times, data)
    return found


class TestWhatIsCompared:
    def test_commits_of_both(self, base: Path, api: Path, ui: Path) -> None:
        for tree in (api, ui):
            change(tree, 5, tree.name)
            git(tree, "commit", "-qam", "work")
        assert conflicts(compared(base)) == {("api", "ui"): {"src/app.py": "content"}}

    def test_changes_that_are_not_committed(self, base: Path, api: Path, ui: Path) -> None:
        change(api, 5, "api")
        change(ui, 5, "ui")
        git(ui, "add", "-A")
        assert conflicts(compared(base)) == {("api", "ui"): {"src/app.py": "content"}}

    def test_the_file_counts_and_not_what_is_staged(self, base: Path, api: Path, ui: Path) -> None:
        change(api, 5, "api")
        change(ui, 5, "ui")
        git(ui, "add", "-A")
        change(ui, 5, "line 5")
        assert conflicts(compared(base)) == {}

    def test_untracked_files(self, base: Path, api: Path, ui: Path) -> None:
        for tree in (api, ui):
            (tree / "new dir").mkdir()
            (tree / "new dir" / "fresh.py").write_text(tree.name)
        assert conflicts(compared(base)) == {("api", "ui"): {"new dir/fresh.py": "add/add"}}

    def test_ignored_files_do_not_count(self, base: Path, api: Path, ui: Path) -> None:
        (base / ".git" / "info" / "exclude").write_text("*.log\n")
        for tree in (api, ui):
            (tree / "x.log").write_text(tree.name)
        assert conflicts(compared(base)) == {}

    def test_files_that_git_was_told_to_track_although_it_ignores_them(
        self, base: Path, api: Path, ui: Path
    ) -> None:
        (base / ".git" / "info" / "exclude").write_text("*.log\n")
        for tree in (api, ui):
            (tree / "x.log").write_text(tree.name)
            git(tree, "add", "-f", "x.log")
        assert conflicts(compared(base)) == {("api", "ui"): {"x.log": "add/add"}}

    def test_a_worktree_against_the_main_branch(self, base: Path, api: Path) -> None:
        change(api, 5, "api")
        change(base, 5, "main")
        git(base, "commit", "-qam", "work")
        assert conflicts(compared(api)) == {("main", "api"): {"src/app.py": "content"}}

    def test_what_the_main_worktree_has_not_committed_is_a_side_of_its_own(
        self, base: Path, api: Path
    ) -> None:
        change(api, 5, "api")
        change(base, 5, "main")
        found = compared(api)
        assert [each.name for each in found.sides] == ["main", "main (uncommitted)", "api"]
        assert conflicts(found) == {("main (uncommitted)", "api"): {"src/app.py": "content"}}

    def test_the_records_of_the_hive_do_not_count(self, base: Path, api: Path, ui: Path) -> None:
        for tree in (base, api, ui):
            (tree / ".beads").mkdir(exist_ok=True)
            (tree / ".beads" / "issues.jsonl").write_text(tree.name)
        found = compared(base)
        assert conflicts(found) == {}
        assert [each.uncommitted for each in found.sides] == [0, 0, 0]

    def test_changes_elsewhere_in_the_file_and_equal_changes(
        self, base: Path, api: Path, ui: Path
    ) -> None:
        for tree, own in ((api, 5), (ui, 25)):
            change(tree, own, tree.name)
            change(tree, 15, "the same")
        assert conflicts(compared(base)) == {}

    def test_a_merge_under_way_leaves_out_what_is_not_committed(
        self, base: Path, api: Path, ui: Path
    ) -> None:
        for tree in (api, ui):
            change(tree, 5, tree.name)
            git(tree, "commit", "-qam", "work")
        done = subprocess.run(["git", "merge", "-q", "ui"], cwd=api, capture_output=True)
        assert done.returncode == 1
        found = compared(base)
        assert conflicts(found) == {("api", "ui"): {"src/app.py": "content"}}
        assert "a merge is under way" in found.sides[1].notes[0]

    def test_a_merge_that_is_resolved_counts_as_one(self, base: Path, api: Path, ui: Path) -> None:
        for tree in (api, ui):
            change(tree, 5, tree.name)
            git(tree, "commit", "-qam", "work")
        subprocess.run(["git", "merge", "-q", "ui"], cwd=api, capture_output=True)
        (api / "src" / "app.py").write_text(TEXT.replace("line 5\n", "both\n"))
        git(api, "add", "-A")
        assert conflicts(compared(base)) == {}

    def test_a_worktree_in_a_worktree(self, base: Path, api: Path) -> None:
        git(base, "worktree", "add", "-q", "-b", "inner", str(base / "trees" / "inner"))
        change(base / "trees" / "inner", 5, "inner")
        change(api, 5, "api")
        found = compared(base)
        assert conflicts(found) == {("api", "inner"): {"src/app.py": "content"}}
        assert found.sides[0].uncommitted == 0

    def test_a_repository_without_commits_in_the_tree(self, base: Path, api: Path) -> None:
        git(api, "init", "-q", "other")
        (api / "other" / "x").write_text("x")
        change(api, 5, "api")
        assert [each.notes for each in compared(base).sides] == [[], []]

    def test_a_detached_worktree_has_the_name_of_its_folder(
        self, base: Path, api: Path, tmp_path: Path
    ) -> None:
        git(base, "worktree", "add", "-q", "--detach", str(tmp_path / "loose"))
        for tree in (api, tmp_path / "loose"):
            change(tree, 5, tree.name)
        assert conflicts(compared(base)) == {("api", "loose"): {"src/app.py": "content"}}

    def test_branches_without_a_common_commit(self, base: Path, api: Path, ui: Path) -> None:
        git(ui, "checkout", "-q", "--orphan", "apart")
        git(ui, "commit", "-qm", "a new beginning")
        change(ui, 5, "ui")
        change(api, 5, "api")
        assert ("api", "apart") in conflicts(compared(base))

    def test_a_worktree_without_a_commit_is_named(self, base: Path, ui: Path) -> None:
        git(ui, "checkout", "-q", "--orphan", "apart")
        found = compared(base)
        assert found.sides[1].notes == ["it has no commit"]
        assert found.sides[1].commit is None

    def test_a_large_file_is_left_out_and_named(
        self, base: Path, api: Path, ui: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(snapshots, "MOST_BYTES", 1000)
        for tree in (api, ui):
            (tree / "large.bin").write_bytes(tree.name.encode() * 1000)
            change(tree, 5, tree.name)
        found = compared(base)
        assert conflicts(found) == {("api", "ui"): {"src/app.py": "content"}}
        assert found.sides[1].notes == ["left out, because it is large: large.bin"]

    def test_too_many_files_are_left_out_and_told(
        self, base: Path, api: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(snapshots, "MOST_FILES", 2)
        for number in range(3):
            (api / f"new{number}").write_text("x")
        assert compared(base).sides[1].notes == [
            "uncommitted changes are left out: 3 files, more than 2"
        ]

    def test_no_commit_is_made_of_what_shares_no_file(
        self, base: Path, api: Path, ui: Path
    ) -> None:
        change(api, 5, "api")
        (ui / "other.py").write_text("ui\n")
        for side in compared(base).sides[1:]:
            assert (side.uncommitted, side.commit) == (1, side.head)

    def test_a_folder_that_was_moved_and_not_committed(
        self, base: Path, api: Path, ui: Path
    ) -> None:
        (api / "src").rename(api / "lib")
        (ui / "src" / "new.py").write_text("ui\n")
        assert conflicts(compared(base)) == {("api", "ui"): {"lib/new.py": "directory rename"}}

    def test_a_file_that_cannot_be_read_is_told(
        self, base: Path, api: Path, ui: Path, queen: Queen
    ) -> None:
        change(api, 5, "api")
        change(ui, 5, "ui")
        (api / "src" / "app.py").chmod(0)
        ran = queen("worktree", "collisions", "--json", unprivileged=True)
        assert ran.code == 0, ran
        notes = json.loads(ran.out)["sides"][1]["notes"]
        assert notes[0].startswith("uncommitted changes are left out: ")

    def test_outside_git_there_is_nothing_to_compare(self, tmp_path: Path) -> None:
        (tmp_path / "alone" / ".beads").mkdir(parents=True)
        with pytest.raises(InvalidInput, match="not a git repository"):
            compared(tmp_path / "alone")


class TestWhatIsSaid:
    def test_lines_of_both_sides_and_of_their_base(self, base: Path, api: Path, ui: Path) -> None:
        (api / "src" / "app.py").write_text("top\n" + TEXT.replace("line 5\n", "a\nb\n"))
        (ui / "src" / "app.py").write_text(TEXT.replace("line 4\nline 5\nline 6\n", "c\n"))
        (file,) = compared(base).pairs[0].files
        assert [each.to_dict() for each in file.lines] == [
            {"base": [4, 6], "a": [6, 7], "b": [4, 4], "section": None}
        ]
        assert not file.only_added

    def test_lists_to_which_both_only_added(self, base: Path, api: Path, ui: Path) -> None:
        for tree in (api, ui):
            (tree / "docs" / "log.md").write_text(f"# Changes\n- {tree.name}\n")
        (file,) = compared(base).pairs[0].files
        assert file.only_added
        assert [each.to_dict() for each in file.lines] == [
            {"base": [2, 1], "a": [2, 2], "b": [2, 2], "section": None}
        ]

    def test_a_file_that_everybody_adds_to_is_named_the_second_time(
        self, base: Path, api: Path, ui: Path, queen: Queen
    ) -> None:
        for tree in (api, ui):
            (tree / "docs" / "log.md").write_text(f"# Changes\n- {tree.name}\n")
        assert compared(base).everybody_adds_to == []
        (ui / "docs" / "log.md").write_text("# Changes\n- ui, a little later\n")
        assert compared(base).everybody_adds_to == ["docs/log.md"]
        said = queen("worktree", "collisions").out
        assert "queen config set --add land.union docs/log.md" in " ".join(said.split())
        (base / ".beads" / "queen.toml").write_text('[land]\nunion = ["log.md"]\n')
        assert compared(base).everybody_adds_to == []
        assert compared(base).pairs == []

    def test_a_change_log_conflicts_only_where_landing_does_not_join_it(
        self, base: Path, api: Path, ui: Path
    ) -> None:
        commit_file(base, "CHANGES.md", "# Changes\n")
        for tree in (api, ui):
            git(tree, "merge", "-q", "main")
            (tree / "CHANGES.md").write_text(f"# Changes\n- {tree.name}\n")
        assert compared(base, with_order=True).pairs == []
        assert not any(step.files for step in compared(base, with_order=True).order or ())
        (ui / "CHANGES.md").write_text("# Changes\n## 2.0\n- ui\n")
        (pair,) = compared(base).pairs
        assert [each.path for each in pair.files] == ["CHANGES.md"]

    def test_the_function_is_named(self, base: Path, api: Path, ui: Path) -> None:
        text = "def tax(n):\n    a = 1\n    b = 2\n    return n\n"
        commit_file(base, "tax.py", text)
        for tree in (api, ui):
            git(tree, "merge", "-q", "main")
            (tree / "tax.py").write_text(text.replace("b = 2", f"b = '{tree.name}'"))
        (file,) = compared(base).pairs[0].files
        assert [each.section for each in file.lines] == ["tax"]

    def test_a_file_in_which_lines_were_changed_is_not(
        self, base: Path, api: Path, ui: Path
    ) -> None:
        for number in range(3):
            change(api, 5, "api")
            change(ui, 5, f"ui {number}")
            assert compared(base).everybody_adds_to == []
            (ui / "src" / "app.py").write_text(TEXT)

    @pytest.mark.parametrize("binary", ["attributes", "content"])
    def test_binary_files(self, base: Path, api: Path, ui: Path, binary: str) -> None:
        commit_file(base, "logo", "\0one" if binary == "content" else "one\n")
        if binary == "attributes":
            commit_file(base, ".gitattributes", "logo binary\n")
        for tree in (api, ui):
            git(tree, "merge", "-q", "main")
            (tree / "logo").write_text(f"\0{tree.name}" if binary == "content" else tree.name)
        (file,) = compared(base).pairs[0].files
        assert (file.path, file.kind, file.lines) == ("logo", "binary", [])

    def test_deletions_renames_and_modes(self, base: Path, api: Path, ui: Path) -> None:
        commit_file(base, "one", TEXT)
        commit_file(base, "two", TEXT.upper())
        commit_file(base, "three", TEXT.title())
        for tree in (api, ui):
            git(tree, "merge", "-q", "main")
        (api / "one").unlink()
        change(ui, 5, "x", "one")
        (api / "two").rename(api / "two-a")
        (ui / "two").rename(ui / "two-b")
        (api / "three").rename(api / "three-a")
        (ui / "three").unlink()
        assert conflicts(compared(base)) == {
            ("api", "ui"): {
                "one": "modify/delete",
                "three-a": "rename/delete",
                "two": "rename/rename",
                "two-a": "rename/rename",
                "two-b": "rename/rename",
            }
        }

    def test_a_folder_in_place_of_a_file(self, base: Path, api: Path, ui: Path) -> None:
        (api / "README.md").unlink()
        (api / "README.md").mkdir()
        (api / "README.md" / "x").write_text("x")
        change(ui, 1, "ui", "README.md")
        assert conflicts(compared(base))["api", "ui"]["README.md"] in (
            "modify/delete",
            "file/directory",
        )

    def test_who_it_is(self, base: Path, api: Path, ui: Path, quick: QuickQueen) -> None:
        quick("hive", "whoami", "--set", "api-droid", cwd=api)
        change(api, 5, "api")
        side = compared(base).sides[1].to_dict()
        head = git(api, "rev-parse", "HEAD").strip()
        assert side == {
            "name": "api",
            "worktree": str(api),
            "branch": "api",
            "droid": "api-droid",
            "head": head,
            "uncommitted": 1,
            "compared": True,
            "notes": [],
        }


class TestNothingIsTouched:
    @pytest.fixture
    def busy(self, base: Path, api: Path, ui: Path) -> tuple[Path, Path, Path]:
        """Worktrees with everything that git could want to write down."""
        for tree in (api, ui):
            change(tree, 5, tree.name)
            (tree / "fresh").write_text(tree.name)
            git(tree, "add", "-A")
            change(tree, 6, tree.name)
            (tree / "later").write_text(tree.name)
        os.utime(base / "README.md")  # Its entry in the index is out of date.
        return base, api, ui

    def test_no_file_of_git_and_of_a_worktree(self, busy: tuple[Path, Path, Path]) -> None:
        before = everything(*busy)
        for _ in range(2):
            assert conflicts(compared(busy[1], with_order=True))
            assert everything(*busy) == before

    def test_also_while_somebody_else_has_the_lock(self, busy: tuple[Path, Path, Path]) -> None:
        base = busy[0]
        (base / ".git" / "worktrees" / "api" / "index.lock").touch()
        assert not [note for side in compared(base).sides for note in side.notes]


def test_a_worktree_in_which_git_does_not_answer_holds_up_nobody(
    base: Path, api: Path, ui: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "LIMIT_S", 0.5)
    change(api, 5, "api")
    change(base, 5, "main")
    os.mkfifo(ui / ".gitignore")
    found = compared(base)
    assert len(found.pairs) == 1
    side = next(each for each in found.sides if each.name == "ui")
    assert side.commit == git(base, "rev-parse", "ui").strip()
    assert "did not answer" in side.notes[0]


class TestPrograms:
    @pytest.fixture
    def mark(self, base: Path, tmp_path: Path) -> Path:
        """A file that appears when a filter, a merge driver or a hook runs."""
        mark = tmp_path / "mark"
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\necho ran >> {mark}\nexit 1\n")
        program.chmod(0o755)
        for key in (
            "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
            "merge.evil.driver", "core.fsmonitor", "diff.evil.textconv", "diff.external",
        ):  # fmt: skip
            git(base, "config", key, f"{program} %A" if "driver" in key else str(program))
        git(base, "config", "filter.evil.required", "true")
        for hook in ("post-index-change", "reference-transaction", "pre-commit"):
            (base / ".git" / "hooks" / hook).write_text(program.read_text())
            (base / ".git" / "hooks" / hook).chmod(0o755)
        return mark

    @pytest.mark.parametrize("where", ["ui", "main"])
    def test_none_is_run_whoever_names_it(
        self, base: Path, api: Path, ui: Path, mark: Path, where: str
    ) -> None:
        named = ui if where == "ui" else base
        (named / ".gitattributes").write_text("*.py merge=evil filter=evil diff=evil\n")
        for tree in (api, ui):
            change(tree, 5, tree.name)
        mark.unlink(missing_ok=True)
        before = everything(base, api, ui)
        found = compared(base)
        assert not mark.exists()
        assert conflicts(found)["api", "ui"] == {"src/app.py": "content"}
        assert everything(base, api, ui) == before
        (file,) = found.pairs[0].files
        assert file.program == ("merge.evil" if where == "main" else None)

    def test_files_with_a_driver_are_merged_as_text(
        self, base: Path, api: Path, ui: Path, mark: Path
    ) -> None:
        (base / ".gitattributes").write_text("*.py merge=evil\n")
        change(api, 5, "api")
        change(ui, 25, "ui")
        assert conflicts(compared(base)) == {}

    def test_the_repository_of_somebody_else_is_refused(
        self, base: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        with pytest.raises(ExternalFailure, match="belongs to another user"):
            compared(base)

    def test_a_worktree_whose_place_another_repository_took(
        self, base: Path, api: Path, mark: Path
    ) -> None:
        (api / ".git").unlink()
        git(api, "init", "-q")
        git(api, "config", "core.fsmonitor", git(base, "config", "core.fsmonitor").strip())
        git(api, "config", "filter.evil.clean", git(base, "config", "core.fsmonitor").strip())
        (api / ".gitattributes").write_text("* filter=evil\n")
        mark.unlink(missing_ok=True)
        compared(base)
        assert not mark.exists()

    def test_what_a_calling_hook_says_of_its_repository_does_not_count(
        self, base: Path, api: Path, ui: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for tree in (api, ui):
            change(tree, 5, tree.name)
        monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "elsewhere"))
        monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "nowhere"))
        assert conflicts(compared(base)) == {("api", "ui"): {"src/app.py": "content"}}
        assert not (tmp_path / "elsewhere").exists()


class TestTheFolder:
    def test_it_goes_with_the_comparison(self, base: Path, api: Path, ui: Path) -> None:
        for tree in (api, ui):
            change(tree, 5, tree.name)
        assert compared(base).pairs
        assert list((base / ".git" / "queenbee" / "collisions").iterdir()) == []

    def test_an_edit_of_the_same_size_and_time_is_noticed(
        self, base: Path, api: Path, ui: Path
    ) -> None:
        for tree in (api, ui):
            change(tree, 5, "one!")
        assert conflicts(compared(base)) == {}
        status = (api / "src" / "app.py").stat()
        change(api, 5, "two!")
        os.utime(api / "src" / "app.py", ns=(status.st_atime_ns, status.st_mtime_ns))
        assert conflicts(compared(base)) == {("api", "ui"): {"src/app.py": "content"}}

    def test_a_killed_run_is_swept_by_a_later_one(
        self, base: Path, api: Path, tmp_path: Path
    ) -> None:
        folder = base / ".git" / "queenbee" / "collisions"
        compared(base)
        old, young = folder / "run-old", folder / "run-young"
        for each in (old, young):
            each.mkdir()
            (each / "index-1").write_text("x")
        os.utime(old, (0, 0))
        compared(base)
        assert list(folder.iterdir()) == [young]

    def test_killed_anywhere_it_leaves_nothing_in_git(
        self, base: Path, api: Path, ui: Path, queen: Queen
    ) -> None:
        for tree in (api, ui):
            change(tree, 5, tree.name)
        before = everything(base, api, ui)
        for delay_s in (0.1, 0.15, 0.2, 0.25, 0.3):
            running = queen.start("worktree", "collisions", "--order")
            time.sleep(delay_s)
            running.kill()
            running.communicate()
        assert everything(base, api, ui) == before
        assert queen("worktree", "collisions").code == 1

    @pytest.mark.linux
    def test_where_the_state_cannot_be_written_it_does_without(
        self, base: Path, api: Path, ui: Path, queen: Queen, tmp_path: Path
    ) -> None:
        for tree in (api, ui):
            change(tree, 5, tree.name)
        (base / ".git").chmod(stat.S_IRUSR | stat.S_IXUSR)
        (tmp_path / "tmp").mkdir()
        try:
            ran = queen(
                "worktree", "collisions", unprivileged=True, env={"TMPDIR": str(tmp_path / "tmp")}
            )
        finally:
            (base / ".git").chmod(0o755)
        assert (ran.code, ran.err) == (1, "")
        assert list((tmp_path / "tmp").iterdir()) == []


def test_an_older_git_is_a_clear_error(
    base: Path, api: Path, ui: Path, tmp_path: Path, queen: Queen
) -> None:
    (tmp_path / "bin").mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True).stdout.strip()
    shim = tmp_path / "bin" / "git"
    shim.write_text(
        '#!/bin/sh\nfor each in "$@"; do\n  case $each in\n'
        "    merge-tree) echo usage >&2; exit 129 ;;\n"
        "    version) echo git version 2.30.1; exit 0 ;;\n  esac\ndone\n"
        f'exec {real} "$@"\n'
    )
    shim.chmod(0o755)
    change(api, 5, "api")
    change(ui, 5, "ui")
    ran = queen("worktree", "collisions", env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    assert ran.code == 8
    assert "git 2.30.1 cannot merge in memory" in ran.err
    assert "git 2.38 or later" in ran.err


class TestLines:
    def test_hunks_of_a_diff(self) -> None:
        said = [b"@@ -3,2 +3 @@ def x", b"-a", b"-b", b"+c", b"@@ -9,0 +9,2 @@", b"+d", b"+e"]
        assert [(h.base, h.base_count, h.after, h.after_count) for h in hunks(said)] == [
            (3, 2, 3, 1),
            (10, 0, 9, 2),
        ]

    @pytest.mark.parametrize(
        ("a", "b", "met"),
        [
            ((3, 2), (5, 1), True),  # No unchanged line between them.
            ((3, 2), (6, 1), False),
            ((3, 0), (3, 0), True),
            ((2, 0), (3, 0), False),
            ((3, 2), (1, 9), True),
        ],
    )
    def test_hunks_that_touch_meet(self, a: tuple[int, int], b: tuple[int, int], met: bool) -> None:
        one, other = Hunk(*a, 1, 1), Hunk(*b, 1, 1)
        one.text, other.text = [b"+a"], [b"+b"]
        assert bool(overlaps([one], [other])) == met
        assert bool(overlaps([other], [one])) == met

    def test_equal_hunks_do_not(self) -> None:
        one, other = Hunk(3, 1, 3, 1), Hunk(3, 1, 4, 1)
        one.text = other.text = [b"+a"]
        assert overlaps([one], [other]) == []

    def test_for_people(self) -> None:
        assert [shown(each) for each in ((3, 3), (3, 5), (4, 3), (1, 0))] == [
            "3",
            "3-5",
            "after 3",
            "at the top",
        ]


class TestOrder:
    def test_those_that_meet_nobody_come_first(self) -> None:
        files = {("a", "b"): ["x"], ("b", "a"): ["x"], ("a", "c"): ["y"], ("c", "a"): ["y"]}
        assert order.best(["a", "b", "c", "d"], files) == ["d", "b", "c", "a"]

    def test_a_row_is_merged_and_not_only_pairs(
        self, base: Path, api: Path, ui: Path, add_tree: AddTree
    ) -> None:
        """Clean in pairs is not clean in a row."""
        zed = add_tree("zed")
        for line in range(1, 10):
            change(api, line, f"Line {line}")
            change(ui, line + 20, f"LINE {line}")
        # Both together leave too little for git to see that the file was renamed.
        (api / "src" / "app.py").rename(api / "src" / "moved.py")
        change(zed, 15, "zed")
        found = compared(base, with_order=True)
        assert conflicts(found) == {}
        assert [(each.side.name, list(each.files)) for each in found.order or ()] == [
            ("zed", []),  # Behind the other two, it would conflict.
            ("api", []),
            ("ui", []),
        ]

    def test_each_step_names_who_it_meets(self, base: Path, api: Path, ui: Path) -> None:
        change(api, 5, "api")
        change(ui, 5, "ui")
        found = compared(base, with_order=True)
        assert [each.to_dict() for each in found.order or ()] == [
            {"name": "api", "conflicts": [], "after": {}},
            {"name": "ui", "conflicts": ["src/app.py"], "after": {"api": ["src/app.py"]}},
        ]

    def test_what_the_main_branch_has_is_not_landed(self, base: Path, api: Path, ui: Path) -> None:
        change(ui, 5, "ui")
        found = compared(base, with_order=True)
        assert [each.side.name for each in found.order or ()] == ["ui"]


class TestTheCommand:
    def test_conflicts_exit_with_1(
        self, base: Path, api: Path, ui: Path, quick: QuickQueen
    ) -> None:
        quick("hive", "whoami", "--set", "api-droid", cwd=api)
        change(api, 5, "api")
        change(ui, 5, "ui")
        ran = quick("worktree", "collisions", "--order")
        assert ran.code == 1
        assert ran.out == (
            "api (api-droid) and ui conflict in 1 file\n"
            "  src/app.py  lines 5 of both  content\n"
            "an order to land on main\n"
            "  1  clean      api (api-droid)\n"
            "  2  conflicts  ui  src/app.py\n"
            "who before whom\n"
            "  api  ──▶  ui  src/app.py\n"
        )

    def test_without_conflicts_it_exits_with_0(
        self, base: Path, api: Path, quick: QuickQueen
    ) -> None:
        ran = quick("worktree", "collisions", "--order")
        assert (ran.code, ran.out) == (0, "no conflicts among 2 sides\nnothing to land\n")

    def test_json_says_everything(self, base: Path, api: Path, ui: Path, quick: QuickQueen) -> None:
        change(api, 5, "api")
        change(ui, 5, "ui")
        ran = quick("worktree", "collisions", "--json")
        assert ran.code == 1
        said = json.loads(ran.out)
        assert said["pairs"] == [
            {
                "a": "api",
                "b": "ui",
                "files": [
                    {
                        "path": "src/app.py",
                        "kind": "content",
                        "lines": [{"base": [5, 5], "a": [5, 5], "b": [5, 5], "section": None}],
                        "only_added": False,
                        "program": None,
                    }
                ],
            }
        ]
        assert (said["target"], said["order"]) == ("main", None)

    def test_names_of_others_cannot_act_on_a_terminal(
        self, base: Path, api: Path, ui: Path, quick: QuickQueen
    ) -> None:
        for tree in (api, ui):
            (tree / "a\x1b[2Jb").write_text(tree.name)
        ran = quick("worktree", "collisions")
        assert "\x1b" not in ran.out
        assert "a\\x1b[2Jb" in ran.out


class TestTheCheckOnAllTogether:
    @pytest.fixture
    def checked(self, repo: Path, tmp_path: Path) -> Path:
        """The check: it logs, and fails where two files are there that do not go together."""
        log = tmp_path / "checks"
        text = f"echo x >> {log}; if [ -e b.txt ] && [ -e f.txt ]; then echo b with f; exit 1; fi"
        (repo / ".beads" / "queen.toml").write_text(f"[land]\ncheck = {json.dumps(text)}\n")
        return log

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_finds_which_do_not_go_together_with_few_checks(
        self, base: Path, beads: Path, add_tree: AddTree, checked: Path, queen: Queen, jobs: int
    ) -> None:
        with (beads / "queen.toml").open("a") as file:
            file.write(f"jobs = {jobs}\n")
        trees = [add_tree(name) for name in "abcdefgh"]
        for tree in trees[:-1]:
            commit_file(tree, f"{tree.name}.txt", "x\n")
        (trees[-1] / "h.txt").write_text("not committed\n")
        before = everything(base / "src", base / ".git" / "refs", *trees)
        said = queen("worktree", "collisions", "--check", "--json", cwd=base)
        assert said.code == 1
        found = said.json["check"]
        assert found["sides"] == list("abcdefgh")
        assert found["failing"] == [{"sides": ["b", "f"], "output": "b with f"}]
        assert found["checks"] == len(checked.read_text().split()) <= 14  # Of 28 pairs.
        assert everything(base / "src", base / ".git" / "refs", *trees) == before
        assert git(base, "worktree", "list").count("\n") == 9
        shown = queen("worktree", "collisions", "--check", cwd=base)
        assert "the check fails on b with f" in shown.out

    def test_passes_and_leaves_out_what_conflicts(
        self, base: Path, api: Path, ui: Path, checked: Path, queen: Queen
    ) -> None:
        change(api, 3, "api")
        change(ui, 3, "ui")
        said = queen("worktree", "collisions", "--check", cwd=base)
        assert "not checked, because they conflict: ui" in said.out
        assert "the check passes on all together (1 check): api" in said.out
        assert said.code == 1  # They conflict.

    def test_says_that_the_main_branch_fails_by_itself(
        self, base: Path, api: Path, checked: Path, queen: Queen
    ) -> None:
        for name in "bf":
            commit_file(base, f"{name}.txt", "x\n")
        commit_file(api, "api.txt", "x\n")
        said = queen("worktree", "collisions", "--check", "--json", cwd=base)
        assert said.json["check"]["failing"] == [{"sides": [], "output": "b with f"}]

    def test_is_refused_without_a_check(self, base: Path, queen: Queen) -> None:
        refused = queen("worktree", "collisions", "--check", cwd=base)
        assert (refused.code, "no check is set" in refused.err) == (2, True)
