"""Where work lands is a setting: the main worktree may have any branch, or none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hives import QuickQueen, Ran, commit_file, git, write_lines

from queenbee.git.landing import commands


@pytest.fixture
def tree(quick: QuickQueen, repo: Path, tmp_path: Path) -> Path:
    """A worktree with a commit, of a repository whose work is to land on `main`."""
    quick("config", "set", "land.target", "main")
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    commit_file(tmp_path / "ui", "a", "x\n")
    return tmp_path / "ui"


def landing(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", "--check", "test -e a", *more, as_="ui", cwd=tree)


def on(repo: Path, branch: str) -> list[str]:
    return git(repo, "ls-tree", "--name-only", branch).split()


@pytest.mark.parametrize(
    "leaves",
    [
        lambda repo: git(repo, "switch", "-q", "-c", "mine"),
        lambda repo: git(repo, "switch", "-q", "--detach"),
    ],
    ids=["another branch", "none"],
)
def test_the_main_worktree_is_not_touched_on_another_branch(
    quick: QuickQueen, repo: Path, tree: Path, leaves: Callable[[Path], object]
) -> None:
    leaves(repo)
    (repo / "README.md").write_text("my work\n")
    before = git(repo, "rev-parse", "HEAD")
    done = landing(quick, tree)
    assert (done.code, "landed on main" in done.out) == (0, True), done
    assert "a" in on(repo, "main")
    assert git(repo, "rev-parse", "HEAD") == before
    assert (repo / "README.md").read_text() == "my work\n"
    assert not (repo / "a").exists()
    assert git(tree, "rev-parse", "HEAD") == git(repo, "rev-parse", "main")


def test_the_main_worktree_follows_if_it_has_the_target(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    assert landing(quick, tree).code == 0
    assert (repo / "a").exists()
    assert git(repo, "status", "--porcelain", "--", "a") == ""


def test_no_record_is_committed_to_a_branch_of_somebody(
    quick: QuickQueen, repo: Path, beads: Path, tree: Path
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "a hive")
    git(repo, "switch", "-q", "-c", "mine")
    before = git(repo, "rev-parse", "HEAD")
    quick("claim", "qb-1", as_="ui", cwd=tree)
    ended = landing(quick, tree)
    assert (ended.code, "is on another branch than main" in ended.out) == (0, True)
    assert git(repo, "rev-parse", "HEAD") == before
    (done,) = quick("issue", "assignments", "--status", "completed", "--json").json
    assert done["landed"] == git(repo, "rev-parse", "main").strip()


def test_a_new_worktree_begins_there(quick: QuickQueen, repo: Path, tree: Path) -> None:
    landing(quick, tree)
    git(repo, "switch", "-q", "-c", "mine", "HEAD~1")
    made = quick("worktree", "add", "api", "--json").json
    assert (Path(made["path"]) / "a").exists()


def test_a_worktree_that_has_it_checked_out_is_named(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    git(repo, "switch", "-q", "-c", "mine")
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"), "main")
    done = landing(quick, tree)
    assert (done.code, f"{tmp_path / 'other'} has main checked out" in done.err) == (2, True)


def test_a_branch_that_is_not_there_is_named(quick: QuickQueen, repo: Path, tree: Path) -> None:
    quick("config", "set", "land.target", "nowhere")
    done = landing(quick, tree)
    assert (done.code, "there is no branch nowhere" in done.err) == (2, True)
    for name, way in {
        "nowhere": "if it is called main now: queen config set land.target main; "
        "or git branch nowhere",
        "gone/x": "git remote -v; then queen config set land.target REMOTE/x",
    }.items():
        quick("config", "set", "land.target", name)
        made = quick("worktree", "add", "new")
        assert (made.code, f"try: {way}" in made.err) == (4, True), made


@pytest.mark.parametrize("name", ["-x", "a b", "a..b", "/a", "a/", "a:b"])
def test_what_is_no_name_of_a_branch_is_refused(quick: QuickQueen, name: str) -> None:
    assert quick("config", "set", "--", "land.target", name).code == 2


OPENED = {
    "rebase": ("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1"),
    "rebase with patches": ("-c", "core.editor=true", "rebase", "-q", "--apply", "mine"),
    "rebase of several": (
        *("-c", "sequence.editor=sed -i 1s/pick/edit/"),
        *("rebase", "-q", "-i", "--update-refs", "main~1", "above"),
    ),
}


@pytest.mark.parametrize("where", ["main", "linked"])
@pytest.mark.parametrize("what", OPENED)
def test_it_does_not_move_below_a_rebase(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, what: str, where: str
) -> None:
    place = repo
    git(repo, "branch", "mine")
    commit_file(repo, "both", "main\n")
    commit_file(repo, "more", "main\n")
    git(repo, "switch", "-q", "mine")
    commit_file(repo, "both", "mine\n")
    if where == "linked":
        place = tmp_path / "other"
        git(repo, "worktree", "add", "-q", str(place), "main")
    git(place, "switch", "-q", "-C", "above", "main") if what.endswith("several") else None
    git(place, "switch", "-q", "main") if what != "rebase of several" else None
    subprocess.run(["git", *OPENED[what]], cwd=place, capture_output=True, check=False)
    before, ran = git(repo, "rev-parse", "main"), tmp_path / "ran"
    done = quick("land", "--check", f"touch {ran}", as_="ui", cwd=tree)
    assert (done.code, f"of main, on which work lands, is not finished in {place}" in done.err) == (
        5,
        True,
    ), done
    assert not ran.exists()
    assert git(repo, "rev-parse", "main") == before
    git(place, what.split()[0], "--abort")
    git(repo, "switch", "-q", "--detach")
    git(place, "switch", "-q", "--detach")
    assert landing(quick, tree).code == 0


def test_it_does_not_move_below_a_rebase_that_began_during_the_check(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    commit_file(repo, "b", "x\n")
    began = "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~1"
    before = git(repo, "rev-parse", "main")
    done = quick("land", "--check", f"cd {repo} && {began} || true", as_="ui", cwd=tree)
    assert (done.code, "git rebase of main" in done.err) == (5, True), done
    assert git(repo, "rev-parse", "main") == before


def test_it_does_not_move_below_a_worktree_that_got_it_during_the_check(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    git(repo, "switch", "-q", "-c", "mine")
    before, hotfix = git(repo, "rev-parse", "main"), tmp_path / "hotfix"
    check = f"git -C {repo} worktree add -q {hotfix} main || true"
    done = quick("land", "--check", check, as_="ui", cwd=tree)
    assert (done.code, f"{hotfix} has main checked out" in done.err) == (2, True), done
    assert git(repo, "rev-parse", "main") == before


@pytest.fixture
def switching(repo: Path, tree: Path, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Begins a `git switch` in the main worktree, between the branches `main` and `mine`, which
    ends half a second after the file `end` is there.
    """
    smudge = tmp_path / "smudge"
    smudge.write_text(
        f"#!/bin/sh\n[ ! -e {tmp_path}/slow ] || {{ rm {tmp_path}/slow; touch {tmp_path}/begun;\n"
        f"until [ -e {tmp_path}/end ]; do sleep 0.01; done; sleep 0.5; }}\ncat\n"
    )
    smudge.chmod(0o755)
    git(repo, "config", "filter.slow.smudge", str(smudge))
    git(repo, "config", "filter.slow.clean", "cat")
    commit_file(repo, ".gitattributes", "slow filter=slow\n")
    commit_file(repo, "slow", "1\n")
    git(repo, "branch", "mine")
    commit_file(repo, "slow", "2\n")
    git(tree, "merge", "-q", "main")
    begun: list[subprocess.Popen[bytes]] = []

    def switch(branch: str) -> None:
        (tmp_path / "slow").touch()
        begun.append(subprocess.Popen(["git", "switch", "-q", branch], cwd=repo))
        while not (tmp_path / "begun").exists():
            assert begun[0].poll() is None

    yield switch
    assert [each.wait(timeout=20) for each in begun] == [0] * len(begun)


def test_it_does_not_move_while_git_is_about_to_check_it_out(
    quick: QuickQueen,
    repo: Path,
    tree: Path,
    tmp_path: Path,
    switching: Callable[[str], None],
) -> None:
    git(repo, "switch", "-q", "mine")
    switching("main")
    done = quick("land", "--check", f"touch {tmp_path}/end", as_="ui", cwd=tree)
    assert done.code == 0
    assert git(repo, "branch", "--show-current") == "main\n"
    assert (repo / "a").exists()
    assert git(repo, "status", "--porcelain", "--", "a") == ""


def test_it_does_not_move_while_git_changes_files_for_long(
    quick: QuickQueen,
    repo: Path,
    tree: Path,
    tmp_path: Path,
    switching: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QUEEN_LAND_ATTACHED", "1")
    monkeypatch.setattr(commands, "PATIENCE_S", 0.1)
    git(repo, "switch", "-q", "mine")
    before = git(repo, "rev-parse", "main")
    switching("main")
    refused = landing(quick, tree)
    assert (refused.code, f"git is at work in {repo}" in refused.err) == (5, True), refused
    assert git(repo, "rev-parse", "main") == before
    (tmp_path / "end").touch()


def test_it_moves_while_somebody_writes_the_message_of_a_commit(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEEN_LAND_ATTACHED", "1")
    monkeypatch.setattr(commands, "PATIENCE_S", 0.1)
    git(repo, "switch", "-q", "-c", "mine")
    (repo / "README.md").write_text("mine\n")
    editor = tmp_path / "editor"
    editor.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/begun\n"
        f"until [ -e {tmp_path}/end ]; do sleep 0.01; done\necho message > $1\n"
    )
    editor.chmod(0o755)
    command = ("git", "-c", f"core.editor={editor}", "commit", "-qa")
    with subprocess.Popen(command, cwd=repo) as commit:
        while not (tmp_path / "begun").exists():
            assert commit.poll() is None
        done = landing(quick, tree)
        (tmp_path / "end").touch()
    assert (done.code, commit.returncode) == (0, 0), done
    assert "a" in on(repo, "main")


def test_another_branch_that_is_checked_out_meanwhile_stays(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    """By a hook here: somebody else's `git switch` may have had the lock of the index."""
    git(repo, "branch", "mine")
    commit_file(repo, "b", "1\n")
    git(tree, "merge", "-q", "main")
    before = git(repo, "rev-parse", "mine")
    hook = repo / ".git" / "hooks" / "reference-transaction"
    hook.write_text(
        "#!/bin/sh\n[ $1 = aborted ] && grep -q refs/heads/main || exit 0\n"
        f"cd {repo} && git switch -q mine\n"
    )
    hook.chmod(0o755)
    done = landing(quick, tree)
    assert (done.code, git(repo, "rev-parse", "mine")) == (0, before), done
    assert git(repo, "branch", "--show-current") == "mine\n"
    assert "a" in on(repo, "main")
    assert git(repo, "status", "--porcelain", "--untracked-files=no", "--", ":!.beads") == ""


@pytest.mark.parametrize("how", ["the branch behind it", "amid a rebase", "another name of it"])
def test_what_a_linked_worktree_works_on_is_not_moved_below_it(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, how: str
) -> None:
    commit_file(repo, "b", "1\n")
    git(repo, "switch", "-q", "-c", "mine")
    theirs = tmp_path / "theirs"
    if how == "the branch behind it":
        git(repo, "branch", "release", "main")
        git(repo, "symbolic-ref", "refs/heads/main", "refs/heads/release")
        git(repo, "worktree", "add", "-q", str(theirs), "release")
    elif how == "another name of it":
        git(repo, "symbolic-ref", "refs/heads/trunk", "refs/heads/main")
        git(repo, "worktree", "add", "-q", str(theirs), "trunk")
    else:
        git(repo, "worktree", "add", "-q", str(theirs), "main")
        git(theirs, "-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
    before = git(repo, "rev-parse", "main")
    done = landing(quick, tree)
    assert (done.code in (2, 5), "on which work lands" in done.err) == (True, True), done
    assert git(repo, "rev-parse", "main") == before
    if how == "amid a rebase":
        git(theirs, "rebase", "--continue")
    git(theirs, "checkout", "-q", "--detach")
    assert landing(quick, tree).code == 0


def test_the_main_worktree_follows_under_another_name(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    git(repo, "symbolic-ref", "refs/heads/trunk", "refs/heads/main")
    git(repo, "symbolic-ref", "HEAD", "refs/heads/trunk")
    assert landing(quick, tree).code == 0
    assert (repo / "a").exists()
    assert git(repo, "status", "--porcelain", "--", "a") == ""


def mine(path: Path) -> None:
    path.write_text("mine\n")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    mine(path / "mine")


def repository(path: Path) -> None:
    path.unlink()
    git(path.parent, "init", "-q", path.name)
    commit_file(path, "mine", "mine\n")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("README.md")


def in_place_of_its_folder(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    mine(path.parent)


IN_ITS_PLACE = {
    "a folder": (folder, lambda path: (path / "mine").read_text() == "mine\n"),
    "a repository": (repository, lambda path: (path / ".git" / "HEAD").exists()),
    "a FIFO": (fifo, lambda path: path.is_fifo()),
    "a link": (link, lambda path: path.is_symlink()),
    "an edit": (mine, lambda path: path.read_text() == "mine\n"),
    "a mode": (lambda path: path.chmod(0o755), lambda path: os.access(path, os.X_OK)),
    "a file in place of its folder": (
        in_place_of_its_folder,
        lambda path: path.parent.read_text() == "mine\n",
    ),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("removes", [False, True], ids=["changed", "removed"])
@pytest.mark.parametrize(("puts", "is_there"), IN_ITS_PLACE.values(), ids=IN_ITS_PLACE)
def test_what_somebody_has_in_place_of_a_file_stays_in_the_main_worktree(
    quick: QuickQueen,
    repo: Path,
    tree: Path,
    removes: bool,
    puts: Callable[[Path], None],
    is_there: Callable[[Path], bool],
) -> None:
    commit_file(repo, "d/b", "1\n")
    git(tree, "merge", "-q", "main")
    if removes:
        git(tree, "rm", "-q", "d/b")
        git(tree, "commit", "-qm", "removed")
    else:
        commit_file(tree, "d/b", "theirs\n")
    puts(repo / "d" / "b")
    for _ in range(2):
        assert landing(quick, tree).code in (0, 5)
        assert is_there(repo / "d" / "b")


@pytest.mark.parametrize("is_refused", [False, True], ids=["alone", "beside an edit"])
def test_a_link_in_place_of_a_folder_stays(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, is_refused: bool
) -> None:
    commit_file(repo, "d/b", "1\n")
    git(tree, "merge", "-q", "main")
    commit_file(tree, "d/b", "theirs\n")
    commit_file(tree, "README.md", "theirs\n")
    (repo / "d").rename(tmp_path / "elsewhere")
    (repo / "d").symlink_to(tmp_path / "elsewhere")
    if is_refused:
        mine(repo / "README.md")
    before = git(repo, "rev-parse", "main")
    refused = landing(quick, tree)
    assert (refused.code, "links are where git has folders: d" in refused.err) == (5, True)
    assert git(repo, "rev-parse", "main") == before
    assert (repo / "d").is_symlink()
    assert ((repo / "README.md").read_text() == "mine\n") == is_refused
    (repo / "d").unlink()
    (tmp_path / "elsewhere").rename(repo / "d")
    git(repo, "restore", "README.md")
    assert landing(quick, tree).code == 0


MEANWHILE = {
    "a folder": ("rm d/b; mkdir d/b; echo mine > d/b/mine", "test -f d/b/mine"),
    "a FIFO": ("rm d/b; mkfifo d/b", "test -p d/b"),
    "an edit": ("echo mine > d/b", "grep -q mine d/b"),
    "a mode": ("chmod +x d/b", "test -x d/b"),
    "a link in place of its folder": ("mv d ../elsewhere; ln -s ../elsewhere d", "test -L d"),
}


@pytest.mark.parametrize(("does", "is_there"), MEANWHILE.values(), ids=MEANWHILE)
def test_what_comes_while_git_moves_the_main_worktree_stays(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, does: str, is_there: str
) -> None:
    """A filter, which fails, runs in the midst of it."""
    commit_file(repo, ".gitattributes", "z filter=odd\n")
    commit_file(repo, "d/b", "1\n")
    git(tree, "merge", "-q", "main")
    commit_file(tree, "d/b", "theirs\n")
    commit_file(tree, "z", "z\n")
    odd = tmp_path / "odd"
    odd.write_text(f"#!/bin/sh\n[ $PWD != {repo} ] || {{ {does}; exit 1; }}\ncat\n")
    odd.chmod(0o755)
    git(repo, "config", "filter.odd.smudge", str(odd))
    git(repo, "config", "filter.odd.clean", "cat")
    git(repo, "config", "filter.odd.required", "true")
    assert landing(quick, tree).code == 5
    assert subprocess.run(is_there, shell=True, cwd=repo).returncode == 0


def test_a_link_beside_a_sparse_checkout_is_in_nobodys_way(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    commit_file(repo, "d/b", "1\n")
    commit_file(repo, ".beads/x", "x\n")
    git(tree, "merge", "-q", "main")
    commit_file(tree, "d/b", "theirs\n")
    git(repo, "sparse-checkout", "set", ".beads")
    (repo / "d").symlink_to(tmp_path)
    assert landing(quick, tree).code == 0
    assert (repo / "d").is_symlink()
    assert git(repo, "show", "main:d/b") == "theirs\n"


def test_a_link_that_git_tracks_makes_room_for_a_folder(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    (repo / "d").symlink_to("README.md")
    git(repo, "add", "d")
    git(repo, "commit", "-qm", "a link")
    git(tree, "merge", "-q", "main")
    git(tree, "rm", "-q", "d")
    commit_file(tree, "d/b", "1\n")
    landing(quick, tree)  # It takes back what landed, which is asked once.
    assert landing(quick, tree).code == 0
    assert (repo / "d" / "b").read_text() == "1\n"


def test_what_git_did_not_write_is_not_taken_back(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    """Even if git would have written it, or a part of it."""
    for name in ("cut", "d/gone", "same"):
        commit_file(repo, name, "1\n2\n")
    git(tree, "merge", "-q", "main")
    for name in ("cut", "d/gone", "same"):
        commit_file(tree, name, "1\n2\n3\n")
    commit_file(tree, "README.md", "theirs\n")
    mine(repo / "README.md")
    (repo / "cut").write_text("1\n")
    (repo / "d" / "gone").unlink()
    (repo / "same").write_text("1\n2\n3\n")
    for _ in range(2):
        assert landing(quick, tree).code == 5
        assert (repo / "cut").read_text() == "1\n"
        assert not (repo / "d" / "gone").exists()
        assert (repo / "same").read_text() == "1\n2\n3\n"


def unseen(repo: Path, how: str) -> None:
    """Has git not look closely at the files of the main worktree."""
    if how == "a monitor":
        monitor = repo.parent / "monitor"
        monitor.write_text("#!/bin/sh\nprintf 'tok\\0'\n")
        monitor.chmod(0o755)
        git(repo, "config", "core.fsmonitor", str(monitor))
        git(repo, "update-index", "--fsmonitor")
    else:
        git(repo, "config", "core.checkStat", "minimal")
        git(repo, "config", "core.trustctime", "false")
    os.utime(repo / "README.md", (1, 1))
    for _ in range(2):
        git(repo, "status")
    text = (repo / "README.md").read_text()
    (repo / "new").write_text("M" + text[1:])
    os.utime(repo / "new", (1, 1))
    (repo / "new").replace(repo / "README.md")  # As an editor does.
    assert " M README.md" not in git(repo, "status", "--porcelain")


@pytest.mark.parametrize("how", ["size and time", "a monitor"])
def test_an_edit_that_git_does_not_see_stays_in_the_main_worktree(
    quick: QuickQueen, repo: Path, tree: Path, how: str
) -> None:
    commit_file(tree, "README.md", "theirs\n")
    unseen(repo, how)
    done = landing(quick, tree)
    assert (done.code, "README.md" in done.err) == (5, True), done
    assert (repo / "README.md").read_text().startswith("M")


class TestATargetThatNobodyHereHasAgreedTo:
    """Where work lands is no setting that a landing or a clone can change by itself."""

    @pytest.fixture
    def tree(self, asking: Path, quick: QuickQueen, repo: Path, tmp_path: Path) -> Path:
        """A worktree of a hive with settings in git, and a branch `mine` of a person."""
        assert quick("init").code == 0
        git(repo, "add", "--all")
        git(repo, "commit", "-qm", "a hive")
        git(repo, "branch", "mine")
        git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
        commit_file(tmp_path / "ui", "a", "x\n")
        return tmp_path / "ui"

    def changed(self, tree: Path, before: str, after: str) -> None:
        path = tree / ".beads" / "queen.toml"
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))

    @pytest.mark.parametrize("on_mine", [False, True], ids=["not checked out", "checked out"])
    @pytest.mark.parametrize("after", ['target = "mine"\n', ""])
    def test_is_asked_for_where_a_landing_brings_it(
        self, quick: QuickQueen, repo: Path, tree: Path, after: str, on_mine: bool
    ) -> None:
        self.changed(tree, 'target = "main"\n', after)
        assert landing(quick, tree, "-m", "settings").code == 0
        if on_mine or not after:
            git(repo, "switch", "-q", "mine")
            git(repo, "merge", "-q", "main")
        before = git(repo, "rev-parse", "mine")
        commit_file(tree, "b", "x\n")
        refused = landing(quick, tree, "--json")
        assert (refused.code, refused.error["code"]) == (5, "untrusted"), refused
        text = "mine" if after else "HEAD"
        assert refused.error["commands"] == [
            {"kind": "branch", "from": "land.target", "text": text, "more": []}
        ]
        assert git(repo, "rev-parse", "mine") == before
        shown = quick("config", "trust", "--yes")
        assert (shown.code, "you agreed before to “main”" in shown.err) == (0, True), shown
        assert landing(quick, tree).code == 0
        assert "b" in on(repo, "mine")

    def test_is_asked_for_before_a_worktree_begins_at_it(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        """It would have what somebody works on."""
        self.changed(tree, 'target = "main"\n', 'target = "mine"\n')
        assert landing(quick, tree, "-m", "settings").code == 0
        refused = quick("worktree", "add", "api", "--json")
        assert (refused.code, refused.error["code"]) == (5, "untrusted"), refused
        assert quick("config", "set", "land.check", "true").code == 0
        refused = quick("start", "api", "--agent", "true", "--json")
        assert (refused.code, refused.error["code"]) == (5, "untrusted"), refused
        assert not repo.with_name("repo-api").exists()
        commit_file(repo, "unfinished", "x\n")
        git(repo, "branch", "-q", "--force", "mine", "main")
        git(repo, "reset", "-q", "--hard", "HEAD~")
        assert quick("issue", "new", "T", "--id", "q-2").code == 0
        assert quick("next", as_="ui", cwd=tree).code == 0
        assert not (tree / "unfinished").exists()
        assert quick("config", "trust", "--yes").code == 0
        assert quick("worktree", "add", "api").code == 0
        assert (repo.with_name("repo-api") / "unfinished").exists()

    def test_is_not_asked_for_where_a_person_has_typed_it(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        quick("config", "set", "land.target", "mine")
        assert landing(quick, tree).code == 0
        quick("config", "unset", "land.target")
        commit_file(tree, "b", "x\n")
        assert landing(quick, tree).code == 0
        assert "b" in on(repo, "main")

    def test_is_asked_for_where_an_agent_has_typed_it(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        quick.env["CLAUDECODE"] = "1"
        quick("config", "set", "land.target", "mine", as_="ui")
        assert landing(quick, tree).code == 5
        assert "a" not in on(repo, "mine")

    def test_is_asked_for_in_a_clone_unless_it_is_the_default_branch(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        clone = tmp_path / "clone"
        git(repo, "clone", "-q", str(repo), str(clone))
        git(clone, "switch", "-q", "-c", "mine")
        git(clone, "worktree", "add", "-q", str(tmp_path / "api"), "-b", "api")
        commit_file(tmp_path / "api", "a", "x\n")
        assert landing(quick, tmp_path / "api").code == 0
        assert "a" in on(clone, "main")
        git(clone, "branch", "other")
        self.changed(clone, '"main"', '"other"')
        git(clone, "commit", "-qam", "as if it were pulled")
        commit_file(tmp_path / "api", "b", "x\n")
        refused = landing(quick, tmp_path / "api")
        assert (refused.code, "branch “other” of land.target" in refused.err) == (5, True), refused

    def test_of_this_repository_is_not_that_of_a_remote(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        git(repo, "branch", "origin/main", "main")
        quick("config", "set", "land.target", "origin/main")
        assert landing(quick, tree).code == 0
        git(repo, "clone", "-q", "--bare", str(repo), str(tmp_path / "hub"))
        git(repo, "remote", "add", "origin", str(tmp_path / "hub"))
        git(repo, "fetch", "-q", "origin")
        commit_file(tree, "b", "x\n")
        refused = landing(quick, tree)
        assert (refused.code, "push “git push origin main”" in refused.err) == (5, True), refused
        assert "b" not in on(tmp_path / "hub", "main")
