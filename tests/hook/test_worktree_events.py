"""Worktrees that Claude Code makes and removes: named, protected, and their leases end with them.

The shapes are those of code.claude.com/docs/en/hooks (sections WorktreeCreate and WorktreeRemove),
as read on 2026-11-22.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from agent_inputs import recorded
from hives import QuickQueen, commit_file, git, write_lines
from made_worktrees import remove

from queenbee import Hive
from queenbee.errors import Conflict
from queenbee.store.droids import roster
from queenbee.store.droids.liveness import described


@pytest.fixture
def made(repo: Path) -> Path:
    """What the hook made when it was asked for `feature-auth`."""
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    status, out, err = ran(recorded("claude/worktree-create", repo), repo)
    assert (status, err) == (0, "")
    return Path(out.removesuffix("\n"))


def ran(event: bytes, cwd: Path) -> tuple[int, str, str]:
    """Runs the hook as its process; returns status, output and errors."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "queenbee.hook.main"], cwd=cwd, input=event,
        capture_output=True,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def removed(repo: Path, tree: Path, **changes: object) -> tuple[int, str, str]:
    return ran(recorded("claude/worktree-remove", repo, worktree_path=str(tree), **changes), repo)


def test_a_worktree_is_made_with_a_name_and_a_branch(repo: Path, made: Path) -> None:
    assert made == repo.parent / "repo-feature-auth"
    assert git(made, "branch", "--show-current") == "feature-auth\n"
    assert Hive.open(made, env={}).actor == "feature-auth"
    assert ran(recorded("claude/worktree-create", repo), repo)[1] == f"{made}\n"


def asked_for(repo: Path, name: str) -> Path:
    """Returns what the hook makes when it is asked for a name."""
    event = json.loads(recorded("claude/worktree-create", repo))
    status, out, err = ran(json.dumps({**event, "name": name}).encode(), repo)
    assert status == 0, err
    return Path(out.removesuffix("\n"))


def test_a_name_with_a_slash_is_one_that_a_droid_can_have(repo: Path) -> None:
    made = asked_for(repo, "../x y/é")
    assert made.name.startswith("repo-x-y-")
    assert git(made, "branch", "--show-current") == f"{made.name.removeprefix('repo-')}\n"


def test_each_name_gets_a_worktree_of_its_own(repo: Path) -> None:
    names = ("é", "ü", "agent", "a b", "a-b", "a_b", f"{'x' * 64}1", f"{'x' * 64}2")
    assert len({asked_for(repo, each) for each in (*names, *names)}) == len(names)


@pytest.mark.parametrize("name", ["human", "queen"])
def test_none_has_the_name_of_a_person(repo: Path, name: str) -> None:
    actor = Hive.open(asked_for(repo, name), env={}).actor
    assert actor.startswith(f"{name}-")


def test_if_it_cannot_be_made_no_path_is_printed(repo: Path) -> None:
    git(repo, "branch", "feature-auth")
    status, out, err = ran(recorded("claude/worktree-create", repo), repo)
    assert (status, out) == (0, "")
    assert "needs the branch feature-auth, which QueenBee did not make" in err


def test_removed_it_gives_back_its_issues_and_leases(repo: Path, made: Path) -> None:
    hive = Hive.open(made, env={})
    hive.assignments.claim("qb-1")
    hive.reservations.reserve(["a"], session="s")
    (made / "draft").write_text("x")
    assert removed(repo, made, cwd=str(made))[0] == 0
    assert not made.exists()
    left = Hive.open(repo, droid="lead", env={})
    assert left.assignments.active("qb-1") is None
    assert not left.reservations.find()
    kept = "unfinished/repo-feature-auth"
    assert git(repo, "branch", "--format=%(refname:short)") == f"main\n{kept}\n"
    assert git(repo, "show", f"{kept}:draft") == "x"


def test_removed_it_takes_nothing_of_another_in_a_folder_of_that_name(
    repo: Path, made: Path
) -> None:
    """Also on another machine, and of a version that did not say which worktree it was."""
    rows = [{"id": f"qb-{number}", "title": "x", "status": "open"} for number in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    other = repo.parent / "elsewhere" / made.name
    git(repo, "worktree", "add", "-q", "-b", "bob", str(other))
    bob = Hive.open(other, droid="bob", env={})
    bob.assignments.claim("qb-1")
    bob.reservations.reserve(["a"], session="s", issue_id="qb-1")
    bob.reservations.reserve(["b"], exclusive=False, issue_id="")
    Hive.open(repo, droid="bob", env={}).assignments.claim("qb-2", worktree=made.name)
    assert removed(repo, made)[0] == 0
    left = Hive.open(repo, droid="lead", env={})
    assert [each.droid for each in left.assignments.find()] == ["bob", "bob"]
    assert [each.pattern for each in left.reservations.find()] == ["a", "b"]


def test_made_anew_and_removed_it_gives_back_its_issues_and_leases(repo: Path, made: Path) -> None:
    hive = Hive.open(made, env={})
    hive.assignments.claim("qb-1")
    hive.reservations.reserve(["a"], session="s")
    shutil.rmtree(made)
    git(repo, "worktree", "prune")
    assert ran(recorded("claude/worktree-create", repo), repo)[0] == 0
    with pytest.raises(Conflict, match="feature-auth works on qb-1"):
        remove(Hive.open(repo, droid="lead", env={}), made.name)
    assert removed(repo, made)[0] == 0
    left = Hive.open(repo, droid="lead", env={})
    assert not left.assignments.find() and not left.reservations.find()


def test_removed_it_takes_nothing_of_its_droid_in_another_folder_of_that_name(
    repo: Path, made: Path
) -> None:
    other = repo.parent / "elsewhere" / made.name
    git(repo, "worktree", "add", "-q", "-b", "other", str(other))
    Hive.open(other, droid="feature-auth", env={}).assignments.claim("qb-1")
    assert removed(repo, made)[0] == 0
    assert Hive.open(repo, droid="lead", env={}).assignments.active("qb-1") is not None


def test_removed_it_gives_back_what_others_took_in_it(repo: Path, made: Path) -> None:
    bob = Hive.open(made, droid="bob", env={})
    bob.assignments.claim("qb-1")
    bob.reservations.reserve(["a"], session="s")
    assert removed(repo, made)[0] == 0
    left = Hive.open(repo, droid="lead", env={})
    assert not left.assignments.find() and not left.reservations.find()


def test_commits_that_have_not_landed_stay_on_their_branch(repo: Path, made: Path) -> None:
    commit_file(made, "new", "x")
    assert removed(repo, made)[0] == 0
    assert "feature-auth" in git(repo, "branch")


def test_what_cannot_be_removed_is_not_said_to_be(repo: Path, made: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "lock", str(made))
    status, out, err = removed(repo, made)
    assert (status, out) == (1, "") and "locked" in err
    other = tmp_path / "other"
    other.mkdir()
    status, _, err = removed(repo, other)
    assert status == 1 and "not a worktree" in err and other.exists()
    status, _, err = removed(repo, repo)
    assert status == 1 and "main worktree" in err
    assert made.exists() and repo.exists()


def test_a_file_outside_of_a_sparse_checkout_is_kept(repo: Path, made: Path) -> None:
    """Changed, new, and with an index that is sparse, too."""
    for name in ("d/a.txt", "e/c.txt", "e/f/d.txt"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        commit_file(made, name, "old\n")
    git(made, "sparse-checkout", "set", "--cone", "--sparse-index", "d")
    (made / "e" / "f").mkdir(parents=True)
    for name in ("e/c.txt", "e/f/d.txt", "e/new.txt", 'e/"x\ny'):
        (made / name).write_text("precious\n")
    (made / "e" / "link").symlink_to("c.txt")
    assert removed(repo, made) == (0, "", "")
    assert not made.exists()
    for name in ("e/c.txt", "e/f/d.txt", "e/new.txt", 'e/"x\ny'):
        assert git(repo, "show", f"unfinished/repo-feature-auth:{name}") == "precious\n"


def test_a_change_that_no_time_shows_is_kept(repo: Path, made: Path) -> None:
    commit_file(made, "a.txt", "old\n")
    for name, value in (("checkStat", "minimal"), ("trustctime", "false")):
        git(made, "config", f"core.{name}", value)
    os.utime(made / "a.txt", ns=(10**18, 10**18))
    git(made, "update-index", "--refresh")
    (made / "a.txt").write_text("new\n")
    os.utime(made / "a.txt", ns=(10**18, 10**18))
    assert git(made, "status", "--porcelain") == ""
    assert removed(repo, made) == (0, "", "")
    assert git(repo, "show", "unfinished/repo-feature-auth:a.txt") == "new\n"


def test_one_that_a_person_made_is_left_alone(repo: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    git(repo, "worktree", "add", "-q", str(own), "-b", "own")
    (own / "typed").write_text("x")
    status, out, err = removed(repo, own)
    assert (status, out) == (1, "") and f"QueenBee did not make {own}" in err
    assert (own / "typed").read_text() == "x"
    assert git(repo, "branch", "--format=%(refname:short)") == "main\nown\n"


def test_that_of_an_agent_of_a_running_team_is_neither_given_out_nor_removed(
    repo: Path, made: Path
) -> None:
    hive = Hive.open(made, env={})
    hive.assignments.claim("qb-1")
    team = {"path": str(made), "supervisor": described(os.getpid())}
    roster.write(hive.layout, roster.Entry(made.name.removeprefix("repo-"), team))
    said = [removed(repo, made), ran(recorded("claude/worktree-create", repo), repo)]
    assert said[0][0] == 1
    for _, out, err in said:
        assert out == "" and "which queen start looks after, works in" in err
    assert made.exists() and hive.assignments.active("qb-1") is not None


def test_nor_does_a_client_get_or_remove_it_that_types_its_name(
    repo: Path, quick: QuickQueen
) -> None:
    assert quick("worktree", "add", "ui").code == 0
    hive = Hive.open(repo.with_name("repo-ui"), env={})
    team = {"path": hive.layout.tree, "supervisor": described(os.getppid())}
    roster.write(hive.layout, roster.Entry("ui", team))
    for does in ("add", "remove"):  # Between two issues, too.
        refused = quick("worktree", does, "ui", env={"CLAUDECODE": "1"})
        assert (refused.code, "works in" in refused.err, refused.out) == (5, True, ""), refused
    assert quick("worktree", "add", "api", env={"CLAUDECODE": "1"}).code == 0
    assert quick("worktree", "add", "ui").code == 0
    assert quick("worktree", "remove", "ui").code == 0


def test_a_repository_in_it_that_git_ignores_is_not_removed(repo: Path, made: Path) -> None:
    (made / ".gitignore").write_text("*.ign\n")
    (made / "built.ign").write_text("x")
    nested = made / "r.ign"
    git(made, "init", "-q", str(nested))
    commit_file(nested, "only", "x")
    status, out, err = removed(repo, made)
    assert (status, out) == (1, "") and "has commits that no remote has" in err
    assert (nested / "only").exists() and (made / "built.ign").exists()
    assert git(repo, "branch", "--format=%(refname:short)") == "feature-auth\nmain\n"


def test_one_that_is_gone_counts_as_removed(repo: Path, tmp_path: Path) -> None:
    assert removed(repo, tmp_path / "gone")[0] == 0


def test_an_event_without_a_worktree_makes_nothing(repo: Path) -> None:
    fields = json.loads(recorded("claude/worktree-create", repo))
    del fields["name"]
    status, out, err = ran(json.dumps(fields).encode(), repo)
    assert (status, out) == (0, "") and "names no worktree" in err


def test_it_is_set_up_before_the_path_is_printed(repo: Path) -> None:
    commit_file(repo, ".gitignore", ".env\nready\n")
    (repo / ".env").write_text("1")
    settings = repo / ".beads" / "queen.toml"
    settings.write_text('[worktree]\ncopy = [".env"]\nsetup = "echo noise; cp .env ready"\n')
    status, out, err = ran(recorded("claude/worktree-create", repo), repo)
    assert (status, out) == (0, f"{repo.parent / 'repo-feature-auth'}\n")
    assert (repo.parent / "repo-feature-auth" / "ready").read_text() == "1"
    assert "queen-hook: setting up" in err


def test_if_the_set_up_fails_no_path_is_printed_and_the_next_call_goes_on(repo: Path) -> None:
    settings = repo / ".beads" / "queen.toml"
    settings.write_text('[worktree]\nsetup = "echo no network; test -e ../go"\n')
    status, out, err = ran(recorded("claude/worktree-create", repo), repo)
    assert (status, out) == (0, "")
    assert "repo-feature-auth was made, but is not ready: the set-up of" in err
    assert "no network" in err
    assert "queen worktree setup" in err
    (repo.parent / "go").touch()
    status, out, _ = ran(recorded("claude/worktree-create", repo), repo)
    assert (status, out) == (0, f"{repo.parent / 'repo-feature-auth'}\n")


def test_a_command_that_nobody_has_seen_makes_no_worktree(repo: Path, asking: Path) -> None:
    (repo / ".beads" / "queen.toml").write_text('[worktree]\nsetup = "touch ../ran"\n')
    status, out, err = ran(recorded("claude/worktree-create", repo), repo)
    assert (status, out) == (0, "")
    assert "nobody on this machine has seen" in err
    assert not (repo.parent / "repo-feature-auth").exists()
    assert not (repo.parent / "ran").exists()
