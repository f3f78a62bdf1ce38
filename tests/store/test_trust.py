"""What somebody on this machine has seen: by content, of one repository, for one user alone."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hives import git
from hypothesis import given
from hypothesis import strategies as st

from queenbee.errors import Unwritable
from queenbee.services.writing.seeing import note_typed
from queenbee.store.layout import discover
from queenbee.store.trust import Proposal, Trust, of_setting

TEST = Proposal("check", "make test")
TEXTS = st.text(max_size=8)
PROPOSALS = st.builds(Proposal, TEXTS, TEXTS, st.lists(TEXTS, max_size=3).map(tuple))


def trust(tree: Path) -> Trust:
    return Trust(discover(str(tree), {}))


def is_seen(tree: Path, proposal: Proposal = TEST) -> bool:
    return not trust(tree).unseen([proposal])


@pytest.fixture(autouse=True)
def _asking(asking: Path) -> None:
    """Nothing is trusted at first."""


@given(PROPOSALS, PROPOSALS)
def test_two_commands_have_one_key_if_they_run_the_same(one: Proposal, other: Proposal) -> None:
    same = (one.kind, one.text, one.more) == (other.kind, other.text, other.more)
    assert (one.key == other.key) == same


def test_nothing_is_seen_until_somebody_has_seen_it(repo: Path) -> None:
    assert not is_seen(repo)
    trust(repo).add([TEST])
    assert is_seen(repo)
    assert [each["text"] for each in trust(repo).seen()] == ["make test"]


@pytest.mark.parametrize(
    "changed",
    [
        Proposal("check", "make test "),
        Proposal("gate rule", "make test"),
        Proposal("check", "make test", ("with A=1",)),
        Proposal("check", "make test", ("in docs",)),
    ],
)
def test_a_changed_command_asks_again(repo: Path, changed: Proposal) -> None:
    trust(repo).add([TEST])
    assert not is_seen(repo, changed)


def test_where_a_command_is_written_does_not_count(repo: Path) -> None:
    trust(repo).add([TEST])
    assert is_seen(repo, Proposal("check", "make test", origin="elsewhere"))


def test_a_worktree_shares_what_was_seen_and_another_clone_does_not(
    repo: Path, tmp_path: Path
) -> None:
    trust(repo).add([TEST])
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    git(tmp_path, "clone", "-q", str(repo), str(tmp_path / "clone"))
    (tmp_path / "clone" / ".beads").mkdir(exist_ok=True)
    shutil.copytree(repo, tmp_path / "copy")
    assert is_seen(tmp_path / "tree")
    assert not is_seen(tmp_path / "clone")
    assert not is_seen(tmp_path / "copy")


def test_another_clone_at_the_same_place_asks_again(repo: Path, tmp_path: Path) -> None:
    at = tmp_path / "clone"
    for _ in range(2):
        git(tmp_path, "clone", "-q", str(repo), str(at))
        (at / ".beads").mkdir(exist_ok=True)
        assert not is_seen(at)
        trust(at).add([Proposal("check", "other")])
        assert not is_seen(at)
        trust(at).add([TEST])
        assert is_seen(at)
        shutil.rmtree(at)


def test_what_was_planted_for_a_clone_that_kept_nothing_yet_does_not_count(
    repo: Path, asking: Path
) -> None:
    planted = trust(repo)
    folder = Path(planted.folder)
    folder.mkdir(0o700, parents=True)
    folder.parent.chmod(0o700)
    (folder / TEST.key).touch()
    assert not is_seen(repo)
    assert (planted.seen(), planted.before(TEST)) == ([], "")
    planted.add([TEST])
    assert is_seen(repo)


def test_what_a_setting_has_done_is_not_agreed_to_as_options_of_the_same_words(repo: Path) -> None:
    for name in ("land.signoff", "team.prune"):
        [said] = of_setting(name, True)
        [options] = of_setting("team.args", said.text.split(" "))
        assert options.text == said.text
        trust(repo).add([options])
        assert not is_seen(repo, said)


def test_what_is_forgotten_asks_again(repo: Path) -> None:
    trust(repo).add([TEST])
    trust(repo).forget()
    assert not is_seen(repo)


def test_it_is_for_this_user_alone(repo: Path, asking: Path) -> None:
    trust(repo).add([TEST])
    modes = {stat.S_IMODE(each.stat().st_mode) for each in asking.rglob("*") if each.is_dir()}
    files = {stat.S_IMODE(each.stat().st_mode) for each in asking.rglob("*") if each.is_file()}
    assert (modes, files) == ({0o700}, {0o600})


def test_a_folder_that_others_may_write_to_counts_for_nothing(repo: Path, asking: Path) -> None:
    trust(repo).add([TEST])
    (asking / "queenbee" / "trusted").chmod(0o777)
    assert not is_seen(repo)
    with pytest.raises(Unwritable, match="others may write there"):
        trust(repo).add([TEST])


@pytest.mark.parametrize("name", ["queenbee", "queenbee/trusted"])
def test_no_link_is_followed(repo: Path, asking: Path, tmp_path: Path, name: str) -> None:
    trust(repo).add([TEST])
    shutil.copytree(asking / name, tmp_path / "moved")
    shutil.rmtree(asking / name)
    (asking / name).symlink_to(tmp_path / "moved")
    assert not is_seen(repo)
    before = sorted(tmp_path.joinpath("moved").rglob("*"))
    with pytest.raises(Exception, match="symbolic link"):
        trust(repo).add([Proposal("check", "other")])
    assert sorted(tmp_path.joinpath("moved").rglob("*")) == before


@pytest.mark.parametrize("place", [".", "state"])
def test_a_folder_that_a_pull_could_write_to_is_refused(
    repo: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(repo / place))
    with pytest.raises(Unwritable, match="in this repository"):
        trust(repo).add([TEST])
    assert not is_seen(repo)


def test_a_folder_in_another_worktree_of_it_is_refused(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for tree in (one, two):
        git(repo, "worktree", "add", "-q", "--detach", str(tree))
    monkeypatch.setenv("XDG_STATE_HOME", str(two / "state"))
    for tree in (repo, one, two):
        with pytest.raises(Unwritable, match="in this repository"):
            trust(tree).add([TEST])
        assert not is_seen(tree)


@pytest.mark.parametrize("marks", [{}, {"CLAUDECODE": "1"}])
def test_a_variable_counts_for_a_job_and_not_for_an_agent(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, marks: dict[str, str]
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[queenbee]\n\ttrust = all\n")
    for name, value in marks.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert is_seen(repo) == (not marks)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    given = {"COUNT": "1", "KEY_0": "queenbee.trust", "VALUE_0": "all"}
    for name, value in given.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    assert is_seen(repo) == (not marks)
    git(repo, "config", "queenbee.trust", "all")
    assert is_seen(repo)


def test_a_folder_that_is_not_absolute_is_not_used(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(repo)
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    trust(repo).add([TEST])
    assert (tmp_path / "home" / ".local" / "state" / "queenbee" / "trusted").is_dir()


def test_without_a_home_nothing_is_trusted_and_the_error_names_the_way(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "state"))
    assert not is_seen(repo)
    with pytest.raises(Unwritable) as refused:
        trust(repo).add([TEST])
    assert "XDG_STATE_HOME" in str(refused.value.hint)
    note_typed(trust(repo).layout, [TEST])  # What was typed here is asked for later.


@pytest.mark.parametrize("scope", ["--local", "--global"])
def test_the_owner_of_a_machine_wants_no_questions(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scope: str
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    git(repo, "config", scope, "queenbee.trust", "all")
    assert is_seen(repo)


def test_a_local_setting_overrides_that_of_the_user(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    git(repo, "config", "--global", "queenbee.trust", "all")
    git(repo, "config", "queenbee.trust", "ask")
    assert not is_seen(repo)


def test_no_file_of_a_clone_sets_it(repo: Path) -> None:
    for name in (".gitconfig", "config", ".beads/config"):
        (repo / name).write_text("[queenbee]\n\ttrust = all\n")
    (repo / ".beads" / "queen.toml").write_text('trust = "all"\n')
    assert not is_seen(repo)


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\v", "\f", "\x1c", "\r"])
def test_no_address_of_a_submodule_sets_it(repo: Path, end: str) -> None:
    """Git copies it into its config, and no such character ends a line there."""
    url = end.join(("../lib", "[queenbee]", "trust = all", "[x]", ""))
    with (repo / ".gitmodules").open("w", newline="") as file:
        file.write(f'[submodule "lib"]\n\tpath = lib\n\turl = {url}\n')
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    git(repo, "submodule", "--quiet", "init")
    assert "trust = all" in (repo / ".git" / "config").read_text()
    assert not is_seen(repo)


@pytest.mark.slow
def test_several_processes_add_at_once(repo: Path) -> None:
    script = (
        "import sys\n"
        "from queenbee.store.layout import discover\n"
        "from queenbee.store.trust import Proposal, Trust\n"
        "trust = Trust(discover(sys.argv[1], {}))\n"
        "trust.add([Proposal('check', str(number)) for number in range(50)])\n"
    )
    adding = [
        subprocess.Popen([sys.executable, "-c", script, str(repo)], env=os.environ)
        for _ in range(4)
    ]
    assert [each.wait(timeout=60) for each in adding] == [0] * 4
    assert trust(repo).unseen([Proposal("check", str(number)) for number in range(50)]) == []
