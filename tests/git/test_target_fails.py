"""A check that is red on the target itself: said as such, and blamed on nobody."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hives import Queen, QuickQueen, Ran, commit_file, git, write_lines

from queenbee.git.landing.together import target_verdict

Lines = list[dict[str, Any]]


class Red:
    """A repository with a check that counts its runs, and fails on the target."""

    def __init__(self, quick: QuickQueen, repo: Path, beads: Path) -> None:
        self.quick, self.repo = quick, repo
        self.log = repo.parent / "runs"
        self.log.touch()
        rows = [{"id": f"q-{n}", "title": f"Issue {n}", "status": "open"} for n in range(1, 5)]
        write_lines(beads / "issues.jsonl", *rows)
        assert quick("init").code == 0
        self.set_check("test ! -f bad || { echo bad is there; exit 1; }")
        commit_file(repo, "f", "f\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "a hive")

    def set_check(self, check: str) -> None:
        said = f"echo run >> {self.log}; {check}"
        assert self.quick("config", "set", "--", "land.check", said).code == 0

    def breaks(self) -> str:
        """Makes the target red, by git alone; returns its commit."""
        commit_file(self.repo, "bad")
        return git(self.repo, "rev-parse", "HEAD").strip()

    def tree(self, name: str, file: str = "") -> Path:
        path = self.repo.parent / name
        if not path.exists():
            git(self.repo, "worktree", "add", "-q", str(path), "-b", name)
        commit_file(path, file or name, "x\n")
        return path

    def land(self, name: str, *more: str) -> Ran:
        return self.quick("land", "--json", *more, as_=name, cwd=self.repo.parent / name)

    @property
    def runs(self) -> int:
        return len(self.log.read_text().splitlines())


@pytest.fixture
def red(quick: QuickQueen, repo: Path, beads: Path) -> Red:
    return Red(quick, repo, beads)


def test_is_said_and_blames_no_branch(red: Red) -> None:
    commit = red.breaks()
    red.tree("ui")
    assert red.quick("claim", "q-1", as_="ui", cwd=red.repo.parent / "ui").code == 0
    done = red.land("ui")
    assert (done.code, done.error["code"]) == (3, "target_fails"), done
    assert done.error["message"] == (
        f"the check fails on main itself ({commit[:7]}), not because of this branch, after "
        "“bad is there”; nothing was landed"
    )
    assert (done.error["target"], done.error["commit"]) == ("main", commit)
    assert (done.error["step"], done.error["output"]) == ("check", "bad is there")
    assert red.runs == 2
    assert git(red.repo, "rev-parse", "main").strip() == commit
    (issue,) = red.quick("issue", "assignments", "--json").json
    assert (issue["issue_id"], issue["status"]) == ("q-1", "active")
    pace = next((red.repo / ".git" / "queenbee-private" / "landing").rglob("pace"), None)
    assert pace is None  # Nobody is suspected, and nobody has failed.


def test_names_what_git_ignores_in_the_main_worktree_and_the_command_that_copies_it(
    red: Red,
) -> None:
    (red.repo / ".git" / "info").mkdir(exist_ok=True)
    (red.repo / ".git" / "info" / "exclude").write_text(".env\n")
    (red.repo / ".env").write_text("KEY=1\n")
    red.set_check("test -e .env")
    git(red.repo, "commit", "-qam", "a check")
    red.tree("ui")
    done = red.land("ui")
    assert (done.code, done.error["code"]) == (3, "target_fails"), done
    way = "queen config set --add worktree.copy /.env && queen worktree setup"
    assert f"and not .env; if the check needs it: {way}" in done.error["message"]
    assert done.error["hint"].startswith("if it fails for another reason, mend main")
    assert red.quick("config", "set", "--add", "worktree.copy", "/.env").code == 0
    git(red.repo, "commit", "-qam", "copy")
    assert red.land("ui").code == 0


def test_is_checked_once_for_all_and_everybody_is_told_once(red: Red) -> None:
    red.breaks()
    for name in ("ui", "api", "docs"):
        red.tree(name)
        assert red.land(name).error["code"] == "target_fails"
    assert red.runs == 4  # Three branches, and the target.
    mail: Lines = red.quick("msg", "inbox", "--json", as_="docs").json
    assert [each["subject"] for each in mail] == ["main itself fails its check"]
    assert "mend main: a branch with which the check passes lands as ever" in mail[0]["body"]


def unread(red: Red, name: str) -> list[str]:
    mail: Lines = red.quick("msg", "inbox", "--unread", "--json", as_=name).json
    return [each["subject"] for each in mail]


def test_goes_on_once_the_target_has_moved_and_what_was_told_is_taken_back(red: Red) -> None:
    assert red.quick("msg", "send", "@all", "hello", as_="boss").code == 0
    red.breaks()
    red.tree("ui")
    assert red.land("ui").code == 3
    assert unread(red, "api") == ["main itself fails its check", "hello"]
    git(red.repo, "rm", "-q", "bad")
    git(red.repo, "commit", "-qm", "mended")
    assert red.land("ui").code == 0
    assert unread(red, "api") == ["hello"]
    assert (red.repo / "ui").exists()


def test_a_branch_that_mends_it_lands_and_the_others_after_it(red: Red) -> None:
    red.breaks()
    red.tree("ui")
    assert red.land("ui").code == 3
    mender = red.tree("api")
    git(mender, "rm", "-q", "bad")
    git(mender, "commit", "-qm", "mended")
    assert red.land("api").code == 0
    assert red.land("ui").code == 0


def test_a_branch_that_fails_on_a_target_that_passes_is_blamed(red: Red) -> None:
    red.tree("ui", "bad")
    done = red.land("ui")
    assert (done.code, done.json["landing"]["output"]) == (1, "bad is there")
    assert red.runs == 2
    assert red.land("ui").code == 1
    assert red.runs == 3  # It is known that the target passes.


def test_what_has_landed_is_known_to_pass(red: Red) -> None:
    red.tree("ui")
    assert red.land("ui").code == 0
    red.tree("api", "bad")
    assert red.land("api").code == 1
    assert red.runs == 2


def test_records_alone_change_nothing_of_that(red: Red) -> None:
    red.tree("ui")
    assert red.land("ui").code == 0
    assert red.quick("msg", "send", "api", "hello", "--new", as_="boss").code == 0
    git(red.repo, "add", ".beads")
    git(red.repo, "commit", "-qm", "records")
    red.tree("api", "bad")
    assert red.land("api").code == 1
    assert red.runs == 2


def test_several_that_fail_alike_have_the_target_asked_again(red: Red) -> None:
    """Something outside of git has broken it since."""
    broken = red.repo.parent / "broken"
    red.set_check(f"test ! -f {broken}")
    git(red.repo, "commit", "-qam", "another check")
    red.tree("ui")
    assert red.land("ui").code == 0
    broken.touch()
    codes = []
    for name in ("api", "docs", "web"):
        red.tree(name)
        codes.append(red.land(name).code)
    assert codes == [1, 3, 3]
    assert red.runs == 5


def test_a_failure_does_not_count_for_ever(red: Red, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = red.repo.parent / "broken"
    red.set_check(f"test ! -f {broken} && test ! -f bad")
    git(red.repo, "commit", "-qam", "another check")
    broken.touch()
    red.tree("ui", "bad")
    assert red.land("ui").code == 3
    broken.unlink()
    assert red.land("ui").code == 3
    monkeypatch.setattr(target_verdict, "_FAILS_FOR_S", 0.0)
    assert red.land("ui").code == 1


def test_a_check_that_is_asked_for_once_is_none_of_the_target(red: Red) -> None:
    red.tree("ui")
    assert red.land("ui", "--check", "false").code == 1
    assert red.runs == 2


def test_a_changed_check_of_the_branch_is_none_of_the_target(red: Red) -> None:
    tree = red.tree("ui")
    text = (tree / ".beads" / "queen.toml").read_text()
    check = next(each for each in text.splitlines() if each.startswith("check = "))
    (tree / ".beads" / "queen.toml").write_text(text.replace(check, 'check = "test -f none"'))
    git(tree, "commit", "-qam", "a check")
    assert red.land("ui").code == 1
    assert red.runs == 2  # Once for the branch, and once for the target.


@pytest.mark.some(2)
@pytest.mark.parametrize("said", ["[]", "{}", '{"commit": 3}', "x", '{"passed": true}'])
def test_a_note_that_says_nothing_is_none(red: Red, said: str) -> None:
    red.breaks()
    red.tree("ui")
    assert red.land("ui").code == 3
    (note,) = (red.repo / ".git" / "queenbee-private" / "landing").rglob("target")
    note.write_text(said)
    assert red.land("ui").code == 3
    assert red.runs == 4
    assert [each for each in red.quick("doctor", "--json").json if each["code"] == "landing"] == []


@pytest.mark.thorough
@pytest.mark.slow
def test_a_batch_is_not_halved_and_its_mender_lands(red: Red, queen: Queen) -> None:
    red.breaks()
    names = ["ui", "api", "docs", "web"]
    for name in names:
        red.tree(name)
    git(red.repo.parent / "web", "rm", "-q", "bad")
    commit_file(red.repo.parent / "web", "worse")
    red.set_check("test ! -f worse || exit 1; test ! -f bad || exit 1; sleep 0.5")
    git(red.repo, "commit", "-qam", "a check")
    codes: dict[str, int] = {}

    def land(name: str) -> None:
        tree, env = red.repo.parent / name, {"QUEEN_LAND_ATTACHED": "1"}
        codes[name] = queen("land", as_=name, cwd=tree, env={**os.environ, **env}).code

    threads = [threading.Thread(target=land, args=(name,)) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert codes == dict.fromkeys(names, 3)
    assert red.runs <= 2 * len(names) + 1


def test_what_a_check_left_fails_neither_the_target_nor_who_comes_next(red: Red) -> None:
    """An ignored file that a check reads, which an earlier one has written."""
    commit_file(red.repo, ".gitignore", "left\n")
    red.set_check("test ! -f left || exit 1; test ! -f leaves || { touch left; exit 1; }")
    git(red.repo, "commit", "-qam", "a check")
    red.tree("api", "leaves")
    red.tree("ui")
    assert red.land("api").code == 1
    assert red.land("ui").code == 0
    assert red.land("api").code == 1
