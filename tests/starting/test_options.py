"""`queen start` with ids and titles that look like options, or like nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import postgres_server
import pytest
from hives import commit_file, git, write_lines
from sync_worlds import until
from teams import WORKS, Team

from queenbee import Hive
from queenbee.core.command_lines import shell_line
from queenbee.documents.issue_rows import new_row
from queenbee.starting.interactive import open_clients
from queenbee.starting.landing_result import land_line
from queenbee.store.git_files.host_tokens import NAMES

WORK = WORKS.replace("$FILE", "work.txt")


pytestmark = pytest.mark.slow


class Elsewhere:
    """Another clone, in which somebody writes rows that `queen` would not."""

    def __init__(self, team: Team, folder: Path) -> None:
        self.path = folder / "eve"
        bare = folder / "remote.git"
        subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
        git(team.repo, "remote", "add", "origin", f"file://{bare}")
        git(team.repo, "push", "-q", "origin", "HEAD:main")
        subprocess.run(["git", "clone", "-q", f"file://{bare}", str(self.path)], check=True)
        git(self.path, "config", "user.email", "eve@example.com")
        git(self.path, "config", "user.name", "eve")
        (self.path / ".beads").mkdir(exist_ok=True)
        self._team = team

    def issue(self, issue_id: str, title: str, *, holder: str = "") -> None:
        """Has an issue arrive, in the hands of somebody."""
        hive = Hive.open(self.path, droid=holder or "eve", env=postgres_server.environment())
        with hive.transaction() as tx:
            hive.issues.put(tx, {**new_row(issue_id, "eve", tx.now, issue_type="task"),
                                 "title": title, "description": "x"})  # fmt: skip
        if holder:
            hive.assignments.claim(issue_id, anyway=True)
        queen = self._team.queen
        assert queen("sync", as_="eve", cwd=self.path).code == 0
        assert queen("sync", as_="lead").code == 0


@pytest.fixture
def elsewhere(team: Team, tmp_path: Path) -> Elsewhere:
    git(team.repo, "add", "--all")
    git(team.repo, "commit", "-qm", "settings")
    return Elsewhere(team, tmp_path)


def messages(team: Team) -> str:
    return git(team.repo, "log", "--format=%s", "main")


class TestAnIdFromAnotherClone:
    def test_is_left_alone_by_a_team(self, team: Team, elsewhere: Elsewhere) -> None:
        elsewhere.issue("-m", "--check=id > PWNED", holder="amber")
        ran = team.start("amber", "--agent", team.agent(WORK))
        assert not list(team.repo.parent.glob("**/PWNED"))
        assert (ran.code, "amber leaves -m alone" in ran.out) == (1, True), ran
        assert team.done() == {}

    def test_is_no_option_of_the_line_that_lands_it(self) -> None:
        line = land_line("-m", "--check=id > PWNED")
        assert line[-3:] == ("--message=--check=id > PWNED", "--", "-m")

    @pytest.mark.some(1)
    @pytest.mark.parametrize("issue_id", ["-m", "--abort", "--unchecked", "--check=id"])
    def test_of_any_option_is_landed_as_an_id(
        self, team: Team, elsewhere: Elsewhere, issue_id: str
    ) -> None:
        elsewhere.issue(issue_id, "--check=id > PWNED", holder="amber")
        assert team.queen("worktree", "add", "amber").code == 0
        tree = team.repo.with_name("repo-amber")
        commit_file(tree, "a.txt", "x\n")
        ran = team.queen("land", "--", issue_id, as_="amber", cwd=tree)
        assert ran.code == 0, ran
        assert team.done() == {issue_id: ["amber"]}
        assert not list(team.repo.parent.glob("**/PWNED"))

    def test_is_not_taken_unless_somebody_has_it(self, team: Team, elsewhere: Elsewhere) -> None:
        elsewhere.issue("-m", "--check=id > PWNED")
        team.start("amber", "--agent", team.agent(WORK))
        assert not list(team.repo.parent.glob("**/PWNED"))
        assert '"because":"its id begins with a dash"' in team.queen("issues", "--json").out

    @pytest.mark.parametrize(
        "issue_id", ["../../x", "..", "/tmp/x", ".git/x", "a/../x", "HEAD", "@", "refs/heads/main"]
    )
    def test_that_is_a_path_or_a_reference_of_git_is_not_taken(
        self, team: Team, elsewhere: Elsewhere, issue_id: str
    ) -> None:
        """A program of somebody's own makes a file of that name."""
        elsewhere.issue(issue_id, "a title")
        found = team.queen("issues", "--json").json
        why = {each["id"]: each["because"] for each in found}
        assert why[issue_id] == "its id is a path or a reference of git"
        assert team.queen("next", "--as", "ui").code != 0


@pytest.fixture
def tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of tmux that somebody with a token has started."""
    if (program := shutil.which("tmux")) is None:
        pytest.skip("needs tmux")
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.chdir(tmp_path)
    env = {**os.environ, "GH_TOKEN": "secret", "SSH_AUTH_SOCK": "/agent"}
    subprocess.run([program, "new-session", "-d", "exec sleep 60"], env=env, check=True)
    yield program
    subprocess.run([program, "kill-server"], check=True)


def said_in_windows(tmp_path: Path, words: str, env: Mapping[str, str]) -> list[str]:
    """Returns what two clients in windows say by `echo`, sorted."""
    trees = [tmp_path / "a#(touch PWNED)", tmp_path / "b;"]
    for tree in trees:
        tree.mkdir()
    notes = shell_line(f'echo "{words}" >> "{tmp_path}/places"; exec sleep 60')
    places = tmp_path / "places"
    clients = {
        each.name[0]: (str(each), notes, {"QUEEN_SLOT": f"{each.name[0]};"}) for each in trees
    }
    open_clients(clients, env, os.defpath)
    until(lambda: places.exists() and places.read_text().count("\n") == len(trees))
    return sorted(places.read_text().splitlines())


@pytest.mark.usefixtures("tmux")
def test_a_path_is_no_command_of_tmux(tmp_path: Path) -> None:
    said = said_in_windows(tmp_path, "$PWD $QUEEN_SLOT", os.environ)
    assert said == [f"{tmp_path}/a#(touch PWNED) a;", f"{tmp_path}/b; b;"]
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.usefixtures("tmux")
def test_a_window_has_no_token_that_the_server_of_tmux_has(tmp_path: Path) -> None:
    env = {key: value for key, value in os.environ.items() if key not in NAMES}
    words = "$QUEEN_SLOT ${GH_TOKEN-none} ${SSH_AUTH_SOCK-none}"
    assert said_in_windows(tmp_path, words, env) == ["a; none none", "b; none none"]


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("title", "said"),
    [
        (" \u3000\u00a0 ", "x-1"), ("-", "-"), ("-" * 10_000, "-" * 71), ("\n\n", "x-1"),
        ("one\ntwo", "one⏎two"), ("\x1b[31mred\x07", r"\x1b[31mred\x07"), ("🐝🐝", "🐝🐝"),
        ("#1 is a comment", "#1 is a comment"), ("--check=false", "--check=false"),
    ],
)  # fmt: skip
def test_any_title_is_landed(team: Team, elsewhere: Elsewhere, title: str, said: str) -> None:
    elsewhere.issue("x-1", title)
    ran = team.start("amber", "--agent", team.agent(WORKS))
    assert ran.code == 0, ran
    assert said in messages(team)
    assert sorted(team.done()) == ["x-1"]


def test_a_title_that_looks_like_a_secret_is_left_out_and_lands(team: Team) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    row = {"id": "x-1", "title": f"use {token}", "status": "open"}
    write_lines(team.repo / ".beads" / "issues.jsonl", row)
    git(team.repo, "add", "--all")
    git(team.repo, "commit", "-qm", "somebody wrote it by hand")
    ran = team.start("amber", "--agent", team.agent(WORKS))
    assert ran.code == 0, ran
    assert "(left out: it looks like a secret)" in messages(team)
    assert token not in messages(team)


@pytest.mark.parametrize("made", ["../x", "refs/heads/main"])
def test_no_id_that_is_a_path_or_a_reference_is_made_here(team: Team, made: str) -> None:
    refused = team.queen("issue", "new", "a title", "--id", made, "--json", as_="lead")
    assert refused.code == 2
    assert "is a path or a reference of git" in refused.error["message"]


@pytest.mark.parametrize("made", ["-m", "--check=id", "-", "--"])
def test_no_such_id_is_made_here(team: Team, made: str) -> None:
    refused = team.queen("issue", "new", "a title", f"--id={made}", "--json", as_="lead")
    assert refused.code == 2
    assert "begins with a dash" in refused.error["message"]
    assert team.queen("claim", "--", made, as_="lead").code == 2
    gate = team.queen("gate", "new", f"--workflow={made}", "--phase=one", as_="lead")
    assert (gate.code, "starts with a dash" in gate.err) == (2, True)
