"""Submodules of a worktree: what only they have is not lost, and no other issue begins with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git
from made_worktrees import add, opened, remove

from queenbee.errors import Conflict
from queenbee.git.worktrees import worktree_care
from queenbee.git.worktrees.preparing import is_prepared, prepare
from queenbee.git.worktrees.worktree_mending import WorktreeMender

FETCHES = ("-c", "protocol.file.allow=always", "submodule", "--quiet")


@pytest.fixture
def library(repo: Path, tmp_path: Path) -> Path:
    """The remote of a submodule `lib`."""
    git(repo, "init", "-q", str(tmp_path / "library"))
    commit_file(tmp_path / "library", "lib.py", "x\n")
    return tmp_path / "library"


@pytest.fixture
def tree(repo: Path, library: Path) -> Path:
    """A worktree `ui`, in which the submodule is not there yet."""
    git(repo, *FETCHES, "add", str(library), "lib")
    git(repo, "commit", "-qm", "a submodule")
    return Path(add(opened(repo), "ui").path)


@pytest.fixture
def lib(tree: Path) -> Path:
    """The submodule, there."""
    git(tree, *FETCHES, "update", "--init")
    return tree / "lib"


def modules(repo: Path) -> Path:
    return repo / ".git" / "worktrees" / "repo-ui" / "modules"


@pytest.mark.parametrize("can_fetch", [True, False])
def test_a_new_worktree_has_those_of_the_main_one(
    repo: Path,
    library: Path,
    quick: QuickQueen,
    monkeypatch: pytest.MonkeyPatch,
    *,
    can_fetch: bool,
) -> None:
    git(repo, *FETCHES, "add", str(library), "lib")
    git(repo, "commit", "-qm", "a submodule")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file" if can_fetch else "https")
    made = quick("worktree", "add", "api")
    assert made.code == 0
    assert (repo.with_name("repo-api") / "lib" / "lib.py").exists() is can_fetch
    if can_fetch:
        assert "fetched the submodules lib" in made.err
    else:
        assert "submodule update --init --recursive" in made.err
        git(repo, "submodule", "deinit", "--force", "--all")
        assert "submodule" not in quick("worktree", "add", "ui").err


def cleared(repo: Path) -> list[str]:
    """Returns what is said when the worktree is cleared for the next issue."""
    path = str(repo.with_name("repo-ui"))
    mender = WorktreeMender(opened(repo), path, "ui", lambda: add(opened(repo), "ui"))
    return [*mender.mend("work", keeps_merge=False), *mender.clear("work")]


def head(folder: Path, revision: str = "HEAD") -> str:
    return git(folder, "rev-parse", revision).strip()


def stage_and_empty(tree: Path, how: str) -> None:
    """Stages a file in the submodule, and has that be there no more."""
    (tree / "lib" / "new.py").write_text("work\n")
    git(tree / "lib", "add", "new.py")
    if how == "deinit":
        git(tree, "submodule", "--quiet", "deinit", "-f", "lib")
    else:
        shutil.rmtree(tree / "lib")
    if how == "emptied":
        (tree / "lib").mkdir()


class TestAWorktreeThatIsRemoved:
    def test_stays_with_files_in_a_submodule_that_is_not_there(
        self, repo: Path, tree: Path
    ) -> None:
        (tree / "lib" / "notes").mkdir()
        (tree / "lib" / "notes" / "a.txt").write_text("work\n")
        with pytest.raises(Conflict, match=r"not committed in .*lib/notes/a\.txt"):
            remove(opened(repo), "ui")
        assert remove(opened(repo), "ui", force=True).kept == "unfinished/repo-ui"
        assert git(repo, "show", "unfinished/repo-ui:lib/notes/a.txt") == "work\n"

    def test_keeps_what_is_written_there_meanwhile(
        self, repo: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begin = worktree_care.begin

        def writes(*arguments: object) -> object:
            (tree / "lib" / "late.txt").write_text("late\n")
            return begin(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(worktree_care, "begin", writes)
        assert remove(opened(repo), "ui").kept == "unfinished/repo-ui"
        assert git(repo, "show", "unfinished/repo-ui:lib/late.txt") == "late\n"

    @pytest.mark.parametrize("how", ["deinit", "gone", "orphan"])
    def test_stays_with_commits_of_a_submodule(
        self, repo: Path, tree: Path, lib: Path, how: str
    ) -> None:
        git(lib, "switch", "-qc", "feature")
        commit_file(lib, "b.py", "work\n")
        if how == "orphan":
            git(lib, "switch", "-q", "--orphan", "empty")
            git(lib, "rm", "-qrf", "--ignore-unmatch", ".")
        git(tree, "submodule", "--quiet", "deinit", "-f", "lib")
        if how == "gone":
            (tree / "lib").rmdir()
            git(tree, "update-index", "--assume-unchanged", "lib")
        with pytest.raises(Conflict, match="commits that no remote has") as refusal:
            remove(opened(repo), "ui")
        assert refusal.value.details["files"] == [str(modules(repo) / "lib")]

    @pytest.mark.parametrize("how", ["deinit", "emptied"])
    def test_stays_with_what_is_staged_in_a_submodule_that_is_not_there(
        self, repo: Path, tree: Path, lib: Path, how: str
    ) -> None:
        stage_and_empty(tree, how)
        with pytest.raises(Conflict, match="what is not committed") as refusal:
            remove(opened(repo), "ui")
        assert refusal.value.details["files"] == [str(modules(repo) / "lib")]

    def test_is_not_kept_by_a_submodule_that_is_not_there_and_has_nothing_of_its_own(
        self, repo: Path, tree: Path, lib: Path
    ) -> None:
        git(lib, "rm", "-q", "lib.py")
        git(tree, "submodule", "--quiet", "deinit", "-f", "lib")
        remove(opened(repo), "ui")
        assert not tree.exists()

    def test_names_what_its_submodules_ignore(self, repo: Path, lib: Path, library: Path) -> None:
        commit_file(library, ".gitignore", "*.log\n")
        git(lib, "fetch", "-q")
        git(lib, "checkout", "-q", "--detach", head(library))
        git(lib.parent, "add", "lib")
        git(lib.parent, "commit", "-qm", "newer")
        git(repo, "merge", "-q", "ui")
        (lib / "a.log").write_text("x\n")
        assert remove(opened(repo), "ui").ignored == ["lib/a.log"]


class TestAWorktreeThatIsCleared:
    def test_has_no_files_in_a_submodule_that_is_not_there(self, repo: Path, tree: Path) -> None:
        (tree / "lib" / "a.txt").write_text("work\n")
        said = cleared(repo)
        assert "repo-ui/lib was set aside as" in said[0]
        assert (repo.with_name("repo-ui.set-aside-1") / "a.txt").read_text() == "work\n"
        assert [*(tree / "lib").iterdir()] == []
        assert git(tree, "status", "--porcelain") == ""

    @pytest.mark.parametrize("how", ["edit", "untracked", "commit", "pushed and edited"])
    def test_has_nothing_of_an_issue_in_a_submodule(
        self, repo: Path, tree: Path, lib: Path, how: str
    ) -> None:
        was, aside = head(repo, "main:lib"), repo.with_name("repo-ui.set-aside-1")
        assert is_prepared(opened(tree).layout, str(tree))
        git(lib, "checkout", "-q", "--detach")
        if how in ("commit", "pushed and edited"):
            commit_file(lib, "b.py", "half\n")
        if how == "pushed and edited":
            git(lib, "push", "-q", "origin", "HEAD:refs/heads/half")
        if how != "commit":
            (lib / ("new.py" if how == "untracked" else "lib.py")).write_text("half\n")
        left = (head(lib), git(lib, "status", "--porcelain"))
        assert any("lib was set aside as" in each for each in cleared(repo))
        assert (head(aside), git(aside, "status", "--porcelain")) == left
        assert [*lib.iterdir()] == []
        assert not is_prepared(opened(tree).layout, str(tree))
        git(tree, *FETCHES, "update", "--init")
        assert (head(lib), git(tree, "status", "--porcelain")) == (was, "")
        assert (head(aside), git(aside, "status", "--porcelain")) == left

    @pytest.mark.parametrize("is_new", [False, True], ids=["of the branch", "staged"])
    def test_keeps_a_submodule_where_the_main_branch_has_a_file(
        self, repo: Path, tree: Path, lib: Path, library: Path, is_new: bool
    ) -> None:
        if is_new:
            git(tree, *FETCHES, "add", str(library), "new")
        else:
            git(repo, "rm", "-q", "lib")
        name = "new" if is_new else "lib"
        commit_file(repo, name, "a file\n")
        (tree / name / "new.py").write_text("work\n")
        assert any(f"{name} was set aside as" in each for each in cleared(repo))
        assert (tree / name).read_text() == "a file\n"
        assert (repo.with_name("repo-ui.set-aside-1") / "new.py").read_text() == "work\n"
        assert git(tree, "status", "--porcelain") == ""

    def test_that_was_on_another_branch_keeps_a_submodule_where_its_own_has_a_file(
        self, repo: Path, tree: Path, lib: Path
    ) -> None:
        git(tree, "switch", "-qc", "other")
        git(repo, "rm", "-q", "lib")
        commit_file(repo, "lib", "a file\n")
        git(repo, "branch", "-f", "ui", "main")
        (lib / "new.py").write_text("work\n")
        with pytest.raises(Conflict, match="lib is where ui has files"):
            cleared(repo)
        assert (lib / "new.py").read_text() == "work\n"

    @pytest.mark.parametrize("how", ["deinit", "gone", "emptied"])
    def test_has_nothing_that_is_staged_in_a_submodule_that_is_not_there(
        self, repo: Path, tree: Path, lib: Path, how: str
    ) -> None:
        stage_and_empty(tree, how)
        assert any("modules/lib was set aside as" in each for each in cleared(repo))
        aside = repo.with_name("repo-ui.set-aside-1")
        assert git(aside, "show", ":new.py") == "work\n"
        assert cleared(repo) == []
        git(tree, *FETCHES, "update", "--init")
        assert git(tree, "status", "--porcelain") == ""

    @pytest.mark.parametrize("is_here", [True, False])
    def test_has_each_submodule_at_the_commit_of_the_main_branch(
        self,
        repo: Path,
        tree: Path,
        lib: Path,
        library: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        is_here: bool,
    ) -> None:
        commit_file(library, "b.py", "newer\n")
        git(repo / "lib", "pull", "-q")
        if is_here:
            git(lib, "fetch", "-q")
        git(repo, "commit", "-qam", "newer")
        assert cleared(repo) == []
        assert (tree / "lib" / "b.py").exists() == is_here
        assert git(tree, "status", "--porcelain") == ""
        layout = opened(tree).layout
        assert is_prepared(layout, str(tree)) == is_here
        monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
        prepare(layout, str(tree), env={}, tell=print)
        assert is_prepared(layout, str(tree))
        assert head(lib) == head(repo, "main:lib")
        assert git(tree, "status", "--porcelain") == ""

    def test_moves_no_repository_of_a_person_to_which_a_submodule_leads(
        self, repo: Path, tree: Path, lib: Path, library: Path
    ) -> None:
        before = head(repo / "lib")
        commit_file(library, "b.py", "newer\n")
        git(repo / "lib", "pull", "-q")
        git(repo, "commit", "-qam", "newer")
        git(repo / "lib", "checkout", "-q", "--detach", before)
        (lib / ".git").write_text(f"gitdir: {repo / '.git' / 'modules' / 'lib'}\n")
        assert any("lib was set aside as" in each for each in cleared(repo))
        assert head(repo / "lib") == before
        assert git(repo / "lib", "status", "--porcelain") == ""
        assert (modules(repo) / "lib" / "HEAD").exists()

    def test_sets_new_submodules_aside_with_their_repositories(
        self, repo: Path, tree: Path, library: Path, tmp_path: Path
    ) -> None:
        git(repo, "init", "-q", str(tmp_path / "outer"))
        git(tmp_path / "outer", *FETCHES, "add", str(library), "inner")
        git(tmp_path / "outer", "commit", "-qm", "inner")
        git(tree, *FETCHES, "add", str(tmp_path / "outer"), "new")
        git(tree, *FETCHES, "update", "--init", "--recursive", "new")
        commit_file(tree / "new" / "inner", "b.py", "work\n")
        wanted = head(tree / "new" / "inner")
        cleared(repo)
        assert not (tree / "new").exists()
        aside = repo.with_name("repo-ui.set-aside-1")
        remove(opened(repo), "ui", force=True)
        assert head(aside / "inner") == wanted
        assert git(aside, "status", "--porcelain") == " M inner\n"

    def test_is_made_again_without_losing_commits_of_its_submodules(
        self, repo: Path, tree: Path, lib: Path
    ) -> None:
        commit_file(lib, "b.py", "work\n")
        wanted = head(lib)
        shutil.rmtree(tree)
        assert any("submodules have what no remote has" in each for each in cleared(repo))
        assert head(repo.with_name("repo-ui.set-aside-1") / "lib") == wanted

    def test_leaves_its_submodules_to_the_folder_that_was_moved(
        self, repo: Path, tree: Path, lib: Path
    ) -> None:
        commit_file(lib, "b.py", "work\n")
        (lib / "c.py").write_text("staged\n")
        git(lib, "add", "c.py")
        wanted = head(lib)
        moved = tree.rename(repo.with_name("moved"))
        cleared(repo)
        aside = repo.with_name("repo-ui.set-aside-1") / "lib"
        assert (head(aside), git(aside, "diff", "--cached", "--name-only")) == (wanted, "c.py\n")
        git(repo, "worktree", "repair", str(moved))
        assert head(moved / "lib") == wanted
        assert git(moved / "lib", "status", "--porcelain") == "A  c.py\n"
        assert git(moved, "status", "--porcelain") == " M lib\n"


def test_files_in_a_submodule_that_is_not_there_are_named_as_not_landed(
    quick: QuickQueen, tree: Path
) -> None:
    (tree / "lib" / "a.txt").write_text("work\n")
    (tree / "b.txt").write_text("work\n")
    quick.env["GIT_ALLOW_PROTOCOL"] = "file"
    done = quick("land", "-m", "work", "--check", "true", "--json", as_="ui", cwd=tree)
    assert (done.code, done.json["landing"]["untracked"]) == (0, ["lib/"]), done
