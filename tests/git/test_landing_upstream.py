"""Work lands on the branch of a remote: it is done when the remote has it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hives import QuickQueen, Ran, add_hook, commit_file, git, write_lines


@pytest.fixture
def tree(quick: QuickQueen, repo: Path, hub: Path, tmp_path: Path) -> Path:
    """A worktree with a commit, of a repository whose work is to land on `origin/main`."""
    quick("config", "set", "land.target", "origin/main")
    assert quick("worktree", "add", "ui", cwd=repo).code == 0
    commit_file(tmp_path / "repo-ui", "a", "x\n")
    return tmp_path / "repo-ui"


def landing(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", "--check", "test -e a", *more, as_="ui", cwd=tree)


def elsewhere(hub: Path, name: str, content: str = "theirs\n") -> str:
    """Has somebody else push a file to the hub."""
    other = hub.with_name("other")
    if not other.exists():
        git(hub, "clone", "-q", str(hub), str(other))
    git(other, "pull", "-q")
    commit_file(other, name, content)
    git(other, "push", "-q", "origin", "main")
    return git(other, "rev-parse", "HEAD").strip()


def on(repo: Path, branch: str = "main") -> list[str]:
    return git(repo, "ls-tree", "-r", "--name-only", branch).split()


def test_the_remote_has_what_landed_and_the_main_worktree_follows(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    done = landing(quick, tree)
    assert (done.code, "landed on origin/main as" in done.out) == (0, True), done
    assert "a" in on(hub)
    at = git(hub, "rev-parse", "main")
    assert {git(repo, "rev-parse", each) for each in ("origin/main", "main")} == {at}
    assert git(tree, "rev-parse", "HEAD") == at
    assert (repo / "a").read_text() == "x\n"


def test_what_others_pushed_comes_in_first(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    theirs = elsewhere(hub, "b")
    done = quick("land", "--check", "test -e a && test -e b", as_="ui", cwd=tree)
    assert done.code == 0, done
    assert {"a", "b"} <= {*on(hub)}
    assert git(hub, "rev-parse", "main^1").strip() == theirs


def test_who_is_overtaken_by_a_push_lands_on_top_of_it(
    quick: QuickQueen, hub: Path, tree: Path, tmp_path: Path
) -> None:
    elsewhere(hub, "b")
    other = hub.with_name("other")
    commit_file(other, "c", "theirs\n")
    push = f"git -C {other} push -q origin main 2>/dev/null; echo run >> {tmp_path}/ran; test -e a"
    done = quick("land", "--check", push, as_="ui", cwd=tree)
    assert done.code == 0, done
    assert "was moved" in done.err + done.out
    assert {"a", "b", "c"} <= {*on(hub)}
    assert (tmp_path / "ran").read_text().count("run") == 2


def test_nothing_is_done_while_the_remote_is_away(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-1", "title": "t", "status": "open"})
    quick("claim", "q-1", as_="ui", cwd=tree)
    hub.rename(hub.with_name("away"))
    refused = landing(quick, tree, "--json")
    assert (refused.code, refused.error["code"]) == (6, "unreachable")
    assert '"completed"' not in (repo / ".beads" / "queen_assignments.jsonl").read_text()
    hub.with_name("away").rename(hub)
    assert landing(quick, tree).code == 0
    assert '"completed"' in (repo / ".beads" / "queen_assignments.jsonl").read_text()


def test_no_record_is_committed_beside_what_the_remote_has(
    quick: QuickQueen, repo: Path, hub: Path
) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-1", "title": "t", "status": "open"})
    quick("config", "set", "land.target", "origin/main")
    git(repo, "add", "-f", ".beads")
    git(repo, "commit", "-qm", "a hive")
    git(repo, "push", "-q", "origin", "main")
    quick("worktree", "add", "ui", "q-1")
    commit_file(repo.with_name("repo-ui"), "a", "x\n")
    done = landing(quick, repo.with_name("repo-ui"))
    assert (done.code, "records" in done.out + done.err) == (0, False), done
    assert git(repo, "rev-parse", "main") == git(hub, "rev-parse", "main")


def test_that_no_records_go_there_is_told_until_they_have_a_branch(
    quick: QuickQueen, repo: Path, hub: Path
) -> None:
    def noted() -> list[str | None]:
        found = quick("doctor", "--json").json
        return [each["hint"] for each in found if each["code"] == "records_stay"]

    assert quick("init").code == 0
    assert noted() == []
    said = quick("config", "set", "land.target", "origin/main").err
    assert "records do not travel with what lands on origin/main: queen sync setup" in said
    assert noted() == ["queen sync setup"]
    assert quick("msg", "send", "ui", "hello", as_="api").code == 0
    assert quick("sync", "setup").code == 0
    assert noted() == []


def test_a_remote_that_refuses_is_quoted(quick: QuickQueen, hub: Path, tree: Path) -> None:
    hook = hub / "hooks" / "update"
    hook.write_text("#!/bin/sh\necho main is protected >&2\nexit 1\n")
    hook.chmod(0o755)
    refused = landing(quick, tree, "--json")
    assert (refused.code, refused.error["code"]) == (5, "push_refused")
    assert "main is protected" in refused.error["message"]
    assert refused.error["hint"] == "do what it asks for, then queen land"
    assert "a" not in on(hub)
    hook.unlink()
    assert landing(quick, tree).code == 0


def test_a_main_worktree_that_cannot_follow_stays(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    (repo / "a").write_text("mine\n")
    done = landing(quick, tree)
    assert (done.code, "a" in on(hub)) == (0, True)
    assert (repo / "a").read_text() == "mine\n"
    [way] = re.findall(" stays behind origin/main, for .*: a; try: (.*)", done.out + done.err)
    subprocess.run(way, shell=True, check=True, cwd=tree)
    assert git(repo, "rev-parse", "HEAD") == git(hub, "rev-parse", "main")
    assert git(repo, "stash", "list") != ""


def test_commits_of_the_person_are_not_pushed(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    commit_file(repo, "own", "mine\n")
    head = git(repo, "rev-parse", "HEAD")
    done = landing(quick, tree)
    assert done.code == 0
    assert (git(repo, "rev-parse", "HEAD"), "own" in on(hub)) == (head, False)
    [way] = re.findall(" has not, and stays there; try: (.*)", done.out + done.err)
    subprocess.run(way, shell=True, check=True, cwd=tree)
    assert {"a", "own"} <= {*on(hub)}


def test_commits_that_only_the_main_worktree_has_are_named(
    quick: QuickQueen, repo: Path, hub: Path
) -> None:
    commit_file(repo, "own", "mine\n")
    commit_file(repo, "own", "mine too\n")
    said = quick("config", "set", "land.target", "origin/main").err
    assert "main has 2 commits that origin/main lacks; try: git -C " in said
    [finding] = [x for x in quick("doctor", "--json").json if x["code"] == "not_pushed"]
    subprocess.run(finding["hint"], shell=True, check=True, cwd=repo)
    assert "own" in on(hub)
    assert "origin/main lacks" not in quick("doctor").out


def test_a_new_worktree_begins_at_what_the_remote_has_now(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    quick("config", "set", "sync.max_age", "0s")
    theirs = elsewhere(hub, "b")
    assert quick("worktree", "add", "api").code == 0
    assert git(repo.with_name("repo-api"), "rev-parse", "HEAD").strip() == theirs


@pytest.mark.usefixtures("asking")
def test_nobody_pushes_where_nobody_here_has_agreed(
    quick: QuickQueen, repo: Path, hub: Path, tmp_path: Path
) -> None:
    with (repo / ".beads" / "queen.toml").open("a") as file:
        file.write('[land]\ntarget = "origin/main"\n')
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    commit_file(tmp_path / "ui", "a", "x\n")
    refused = landing(quick, tmp_path / "ui", "--json")
    assert (refused.code, refused.error["code"]) == (5, "untrusted")
    assert quick("worktree", "add", "begins", "--json").error["code"] == "untrusted"
    git(repo, "remote", "set-head", "origin", "main")  # As a clone has it.
    assert quick("worktree", "add", "begins").code == 0
    assert "git push origin main" in refused.error["message"]
    assert quick("config", "trust", "--yes").code == 0
    assert landing(quick, tmp_path / "ui").code == 0


@pytest.mark.parametrize("command", [("worktree", "add", "api"), ("land", "--check", "true")])
def test_a_branch_that_is_behind_its_remote_is_told(
    quick: QuickQueen, repo: Path, hub: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    git(repo, "branch", "-q", "--set-upstream-to=origin/main", "main")
    elsewhere(hub, "b")
    quick("worktree", "add", "ui")
    commit_file(repo.with_name("repo-ui"), "a", "x\n")
    said = quick(*command, cwd=repo.with_name("repo-ui"), as_="ui")
    assert said.code == 0
    way = f"git -C {repo} pull"
    assert f"main is 1 commit behind origin/main; try: {way}" in said.out + said.err


@pytest.fixture
def pushing(quick: QuickQueen, repo: Path, hub: Path, tmp_path: Path) -> Path:
    """A worktree whose landings are pushed."""
    git(repo, "branch", "-q", "--set-upstream-to=origin/main", "main")
    quick("config", "set", "land.push", "true")
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    commit_file(tmp_path / "ui", "a", "x\n")
    return tmp_path / "ui"


def test_a_landing_here_can_be_pushed(
    quick: QuickQueen, repo: Path, hub: Path, pushing: Path
) -> None:
    assert landing(quick, pushing).code == 0
    assert git(hub, "rev-parse", "main") == git(repo, "rev-parse", "main")


@pytest.mark.parametrize(
    "what",
    ["git commit -q --amend --no-edit", "git commit -qm more"],
    ids=["made otherwise", "on top of it"],
)
def test_what_a_hook_makes_of_a_landing_is_not_pushed_unchecked(
    quick: QuickQueen, repo: Path, hub: Path, pushing: Path, what: str
) -> None:
    only = f'[ "$PWD" = {repo} ] || exit 0'
    add_hook(repo, "post-merge", f"{only}\necho x > evil; git add evil; {what}\nexit 0\n")
    done = landing(quick, pushing)
    assert (done.code, "evil" in on(hub)) == (0, False), done
    is_amended = "amend" in what
    assert ("a" in on(hub), "not pushed: a hook made" in done.out) == (not is_amended, is_amended)


def test_a_landing_that_cannot_be_pushed_has_landed(
    quick: QuickQueen, repo: Path, hub: Path, pushing: Path
) -> None:
    elsewhere(hub, "b")
    done = landing(quick, pushing)
    assert (done.code, "a" in on(repo), "a" in on(hub)) == (0, True, False)
    assert "not pushed to origin/main" in done.out + done.err


def test_commits_that_were_taken_off_the_remote_do_not_come_back_unnamed(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    before = git(hub, "rev-parse", "main").strip()
    gone = elsewhere(hub, "secret")
    git(repo, "fetch", "-q", "origin")
    git(tree, "merge", "-q", "--no-edit", "origin/main")
    git(hub, "update-ref", "refs/heads/main", before)
    refused = landing(quick, tree)
    assert (refused.code, f"taken off origin/main: {gone[:10]}" in refused.err) == (5, True)
    assert "secret" not in on(hub)
    assert landing(quick, tree).code == 0  # It is meant.


def test_a_branch_that_the_remote_has_no_more_is_not_advised_to_be_fetched(
    quick: QuickQueen, hub: Path, tree: Path
) -> None:
    git(hub, "branch", "-m", "main", "trunk")
    refused = landing(quick, tree)
    assert (refused.code, "queen config set land.target origin/BRANCH" in refused.err) == (6, True)
    assert "git ls-remote --heads origin" in refused.err
    assert "git fetch" not in refused.err


def test_a_remote_with_another_history_says_what_was_taken_off_and_how_to_go_on(
    quick: QuickQueen, hub: Path, tree: Path, tmp_path: Path
) -> None:
    git(tree, "init", "-q", str(tmp_path / "other"))
    commit_file(tmp_path / "other", "z", "z\n")
    git(tmp_path / "other", "push", "-qf", str(hub), "HEAD:refs/heads/main")
    assert "taken off origin/main" in landing(quick, tree).err
    refused = landing(quick, tree)
    said = " ".join(refused.err.split())
    assert (refused.code, "they have no commit in common" in said) == (5, True)
    assert "git rebase --onto origin/main" in said


def test_nothing_lands_on_a_remote_that_is_pushed_to_elsewhere(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path, tmp_path: Path
) -> None:
    git(repo, "clone", "-q", "--bare", str(hub), str(tmp_path / "fork"))
    git(repo, "remote", "set-url", "--push", "origin", str(tmp_path / "fork"))
    refused = landing(quick, tree)
    assert (refused.code, "git remote set-url --push origin" in refused.err) == (2, True)
    assert "a" not in on(tmp_path / "fork")


@pytest.mark.usefixtures("asking")
def test_a_yes_to_pushing_names_the_branch(
    quick: QuickQueen, repo: Path, hub: Path, pushing: Path
) -> None:
    assert quick("config", "trust", "--yes").code == 0  # What is checked by the fixture's command.
    assert landing(quick, pushing).code == 0
    git(hub, "branch", "prod", "main")
    git(repo, "fetch", "-q", "origin")
    git(repo, "branch", "-q", "--set-upstream-to=origin/prod", "main")
    commit_file(pushing, "b", "x\n")
    refused = landing(quick, pushing)
    assert (refused.code, "git push origin main:prod" in refused.err) == (5, True)


def test_a_push_takes_no_tags_along(quick: QuickQueen, repo: Path, hub: Path, tree: Path) -> None:
    git(repo, "config", "push.followTags", "true")
    git(tree, "tag", "-am", "mine", "mine")
    assert landing(quick, tree).code == 0
    assert git(hub, "tag") == ""


def test_a_fetch_moves_no_branch_of_this_repository(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    git(repo, "branch", "mine", "main")
    git(repo, "symbolic-ref", "refs/remotes/origin/main", "refs/heads/mine")
    elsewhere(hub, "b")
    before = git(repo, "rev-parse", "mine")
    refused = landing(quick, tree)
    assert (refused.code, "leads to another branch" in refused.err) == (2, True)
    assert git(repo, "rev-parse", "mine") == before


def test_a_remote_of_another_name_is_not_taken_for_a_branch_to_make(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    git(repo, "remote", "rename", "origin", "upstream")
    refused = landing(quick, tree)
    assert (refused.code, "no remote origin" in refused.err) == (2, True)
    assert "queen config set land.target REMOTE/main" in refused.err
    assert "git branch" not in refused.err
    refused = quick("worktree", "add", "api")
    assert (refused.code, "no branch origin/main" in refused.err) == (4, True)


@pytest.mark.parametrize("name", ["pre-commit", "pre-push", "pre-merge-commit", "post-merge"])
def test_hooks_that_are_files_of_the_branch_get_no_tokens(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path, tmp_path: Path, name: str
) -> None:
    hook = tree / ".githooks" / name
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\nprintf '%s' \"ran $GH_TOKEN$SSH_AUTH_SOCK\" > {tmp_path}/said\n")
    hook.chmod(0o755)
    git(repo, "config", "core.hooksPath", ".githooks")
    elsewhere(hub, "b")
    quick.env |= {"GH_TOKEN": "secret", "SSH_AUTH_SOCK": "/socket"}
    done = quick("land", "-m", "hooks", "--check", "test -e a", as_="ui", cwd=tree)
    assert (done.code, (tmp_path / "said").read_text()) == (0, "ran "), done
    assert "a" in on(hub)


@pytest.mark.parametrize("by", ["its path", "a link", "the guard"])
def test_a_hook_of_the_main_worktree_that_git_tracks_gets_no_tokens(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path, tmp_path: Path, by: str
) -> None:
    """`core.hooksPath` may name that folder by its whole path, and a link may lead there."""
    hook = repo / ".githooks" / "pre-push"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\nprintf '%s' \"ran $GH_TOKEN$SSH_AUTH_SOCK\" > {tmp_path}/said\n")
    hook.chmod(0o755)
    if by == "its path":
        git(repo, "config", "core.hooksPath", str(hook.parent))
    else:
        (repo / ".git" / "hooks" / "pre-push").symlink_to(hook)
    if by == "the guard":
        assert quick("guard", "install").code == 0
    quick.env |= {"GH_TOKEN": "secret", "SSH_AUTH_SOCK": "/socket"}
    done = landing(quick, tree)
    assert (done.code, (tmp_path / "said").read_text()) == (0, "ran "), done


def test_a_tracked_hook_can_refuse_a_push(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    commit_file(tree, ".githooks/pre-push", "#!/bin/sh\necho not today; exit 1\n")
    (tree / ".githooks" / "pre-push").chmod(0o755)
    git(tree, "commit", "-qam", "can be run")
    git(repo, "config", "core.hooksPath", ".githooks")
    refused = landing(quick, tree)
    assert (refused.code, "not today" in refused.err, "a" in on(hub)) == (5, True, False)
