"""`queen init`, `where`, `whoami`, `version`: the hive itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hives import (
    Queen,
    QuickQueen,
    at_a_terminal,
    commit_file,
    git,
    records,
    snapshot,
    write_lines,
)

import queenbee

TOOK_BACK = "ui took back a message to api: late"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A repository that has no hive yet."""
    tree = tmp_path / "fresh"
    tree.mkdir()
    git(tree, "init", "-q")
    commit_file(tree, "README.md")
    return tree


def test_init_makes_settings_and_attributes_and_says_so(quick: QuickQueen, bare: Path) -> None:
    made = quick("init", "--json", cwd=bare).json
    beads = bare / ".beads"
    assert made["beads_dir"] == str(beads)
    assert set(made["made"]) == {str(beads / "queen.toml"), str(beads / ".gitattributes")}
    attributes = (beads / ".gitattributes").read_text()
    assert attributes.endswith("\nqueen_*.jsonl text eol=lf merge=union\n")
    git(bare, "add", "-A")
    shown = git(bare, "check-attr", "merge", "eol", "--", ".beads/queen_messages.jsonl")
    assert "merge: union" in shown
    assert "eol: lf" in shown


def test_init_run_twice_changes_nothing(quick: QuickQueen, bare: Path) -> None:
    quick("init", cwd=bare)
    quick("msg", "send", "b", "x", as_="a", cwd=bare)
    before = snapshot(bare)
    again = quick("init", cwd=bare)
    assert (again.code, "it already exists\n" in again.out) == (0, True)
    assert snapshot(bare) == before


def test_init_says_how_what_it_made_and_set_is_committed(quick: QuickQueen, bare: Path) -> None:
    (bare / "own.txt").write_text("x\n")
    git(bare, "add", "own.txt")
    for arguments, subject in (((), "hive"), (("--check", "true"), "settings")):
        shown = quick("init", *arguments, cwd=bare)
        assert "nothing" not in shown.out.partition("next:")[0]
        *_, said = shown.out.splitlines()
        command, why = said.split("  so that ")
        assert why == "clones and worktrees have it"
        subprocess.run(command, shell=True, check=True, capture_output=True, cwd=bare)
        assert git(bare, "log", "-1", "--format=%s") == f"{subject}\n"
    assert git(bare, "status", "--porcelain") == "A  own.txt\n"
    assert quick("init", "--json", cwd=bare).json["to_commit"] == ""
    below = bare / "below"
    below.mkdir()
    git(bare, "rm", "-q", "--cached", "-r", ".beads")
    assert f"git -C {bare} add .beads && git -C" in quick("init", cwd=below).out
    (bare / ".gitignore").write_text(".beads\n")
    assert quick("init", "--json", cwd=bare).json["to_commit"] == ""


def test_init_keeps_settings_and_attributes_that_were_there(quick: QuickQueen, bare: Path) -> None:
    beads = bare / ".beads"
    beads.mkdir()
    (beads / "queen.toml").write_text('ttl = "1h"\n')
    (beads / ".gitattributes").write_text("*.bin binary")
    (beads / "issues.jsonl").write_text('{"id":"qb-1","title":"x"}\n')
    quick("init", cwd=bare)
    assert (beads / "queen.toml").read_text() == 'ttl = "1h"\n'
    assert (beads / ".gitattributes").read_text().splitlines()[-1] == "*.bin binary"
    assert (beads / "issues.jsonl").read_text() == '{"id":"qb-1","title":"x"}\n'


def test_init_below_the_root_makes_the_hive_at_the_root(quick: QuickQueen, bare: Path) -> None:
    (bare / "src").mkdir()
    assert quick("init", "--json", cwd=bare / "src").json["beads_dir"] == str(bare / ".beads")


def test_the_first_write_beside_a_tracker_needs_no_init(quick: QuickQueen, bare: Path) -> None:
    (bare / ".beads").mkdir()
    assert quick("claim", "--new", "qb-1", as_="a", cwd=bare).code == 0


def test_git_sees_only_the_tracked_files_of_a_new_hive(quick: QuickQueen, bare: Path) -> None:
    quick("init", cwd=bare)
    quick("reserve", "README.md", as_="a", cwd=bare)
    untracked = git(bare, "status", "--porcelain", "-uall").split()
    assert set(untracked) - {"??"} == {
        ".beads/.gitattributes",
        ".beads/queen.toml",
        ".beads/queen_reservations.jsonl",
    }


# Where


def test_where_says_what_was_found_and_why(quick: QuickQueen, repo: Path) -> None:
    found = quick("hive", "where", "--json", as_="ui-engineer").json
    assert found["beads_dir"] == str(repo / ".beads")
    assert found["state_dir"] == str(repo / ".git" / "queenbee")
    assert (found["tree"], found["worktree"]) == (str(repo), None)
    assert (found["actor"], found["actor_from"]) == ("ui-engineer", "QUEEN_DROID")
    assert (found["droids"], found["issues"], found["durability"]) == ("auto", "auto", "buffered")
    assert found["how"] == ["the nearest .beads/, here or above"]


def test_where_tells_a_linked_worktree_from_the_main_one(
    quick: QuickQueen, repo: Path, tmp_path: Path
) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "feature-ui"))
    found = quick("hive", "where", "--json", cwd=tmp_path / "feature-ui").json
    assert found["beads_dir"] == str(repo / ".beads")
    assert (found["tree"], found["worktree"]) == (str(tmp_path / "feature-ui"), "feature-ui")
    assert found["how"] == [f"a linked worktree shares the .beads/ of the main one ({repo})"]


@pytest.mark.parametrize("way", ["option", "environment", "redirect"])
def test_where_says_how_a_hive_elsewhere_was_found(quick: QuickQueen, repo: Path, way: str) -> None:
    elsewhere = repo / "tools" / ".beads"
    elsewhere.mkdir(parents=True)
    arguments, env, why = ("hive", "where", "--json"), {}, ""
    if way == "option":
        arguments, why = (*arguments, "--beads-dir", "tools/.beads"), "--beads-dir names it"
    elif way == "environment":
        env, why = {"BEADS_DIR": "tools/.beads"}, "BEADS_DIR names it"
    else:
        (repo / ".beads" / "redirect").write_text("# moved\ntools/.beads\n")
        why = f"redirect leads to {elsewhere}"
    found = quick(*arguments, env=env).json
    assert found["beads_dir"] == str(elsewhere)
    assert why in found["how"][-1]


def test_an_assignment_says_in_which_worktree_it_was_claimed(
    quick: QuickQueen, repo: Path, tmp_path: Path
) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "feature-ui"))
    claimed = quick("claim", "--new", "qb-1", "--json", as_="a", cwd=tmp_path / "feature-ui").json
    assert claimed[0]["worktree"] == "feature-ui"
    assert "worktree" not in quick("claim", "--new", "qb-2", "--json", as_="a").json[0]
    given = quick(
        "issue", "assign", "qb-3", "b", "--json", as_="a", cwd=tmp_path / "feature-ui"
    ).json
    assert "worktree" not in given  # Where another droid works is not for us to guess.


# Who


def test_a_name_is_remembered_for_one_worktree(
    quick: QuickQueen, repo: Path, tmp_path: Path
) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    quick("hive", "whoami", "--set", "ui-engineer")
    quick("hive", "whoami", "--set", "reviewer", cwd=tmp_path / "linked")
    assert quick("hive", "whoami", "--json").json["droid"] == "ui-engineer"
    assert quick("hive", "whoami", "--json", cwd=tmp_path / "linked").json["droid"] == "reviewer"
    assert quick("hive", "whoami", "--json", as_="tester").json["droid"] == "tester"
    assert git(repo, "status", "--porcelain") == ""


def test_commands_act_under_a_remembered_name(quick: QuickQueen) -> None:
    quick("hive", "whoami", "--set", "ui-engineer")
    assert quick("claim", "--new", "qb-1", "--json").json[0]["droid"] == "ui-engineer"


def test_an_invalid_remembered_name_can_be_replaced(quick: QuickQueen, repo: Path) -> None:
    (repo / ".git" / "queenbee-droid").write_text("two words\n")
    assert quick("reserve", "list").code == 2
    assert quick("hive", "whoami", "--set", "ui-engineer").code == 0
    assert quick("hive", "whoami", "--json").json["droid"] == "ui-engineer"


def test_a_name_that_is_not_listed_is_not_remembered(quick: QuickQueen, repo: Path) -> None:
    (repo / ".factory" / "droids").mkdir(parents=True)
    (repo / ".factory" / "droids" / "reviewer.md").touch()
    assert quick("hive", "whoami", "--set", "ui-engineer").code == 4
    assert not (repo / ".git" / "queenbee-droid").exists()


# Version


def test_the_version_is_that_of_the_package(quick: QuickQueen) -> None:
    assert quick("version").out == f"queen {queenbee.__version__}\n"
    assert quick("version", "--json").json == {"version": queenbee.__version__, "format": 1}


def test_the_version_is_an_option_too(quick: QuickQueen) -> None:
    asked = quick("--version")
    assert (asked.code, asked.out) == (0, quick("version").out)


def test_the_version_needs_no_hive(quick: QuickQueen, tmp_path: Path) -> None:
    assert quick("version", cwd=tmp_path).code == 0


def test_the_real_command_does_what_the_quick_one_does(
    queen: Queen, quick: QuickQueen, repo: Path, tmp_path: Path
) -> None:
    quick("reserve", "README.md", as_="ui-engineer")
    copy = tmp_path / "copy"
    shutil.copytree(repo, copy)
    for arguments in (
        ("reserve", "list", "--json"),
        ("reserve", "check", "README.md"),
        ("claim", "--new", "two words"),
    ):
        real, fast = queen(*arguments, as_="reviewer"), quick(*arguments, as_="reviewer")
        assert (real.code, real.out, real.err) == (fast.code, fast.out, fast.err)


def test_init_sets_the_check_that_it_is_told(queen: Queen, repo: Path) -> None:
    with Path(repo, "out").open("wb") as out:
        shown = at_a_terminal(queen, "a line that was pasted\n", "init", stdout=out)[1]
    assert "Which command" not in shown
    assert "set: land.check = make test" in queen("init", "--check", "make test").err
    assert queen("config", "get", "land.check").out == "make test\n"
    seen = queen("config", "trust", "--list", "--json").json["seen"]
    assert [each["text"] for each in seen if each["kind"] == "check"] == ["make test"]


def test_outside_git_init_names_what_makes_a_repository_first(
    quick: QuickQueen, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    assert "\nnext: git init  " in quick("init", cwd=tmp_path / "plain").out


def test_a_person_without_a_name_is_told_how_work_begins(quick: QuickQueen) -> None:
    quick("init")
    assert "queen worktree add NAME, and there: queen next; or queen start" in quick("next").err
    assert "Missing argument 'ISSUE'" in quick("show").err


def test_the_log_is_in_order_of_time_and_says_who_took_back_and_deleted_what(
    quick: QuickQueen, beads: Path
) -> None:
    first = {"id": "qm-1", "from": "ui", "to": "api", "subject": "early", "rev": 1}
    quick("msg", "send", "api", "late", "--new", as_="ui")
    lines = [{**first, "created_at": "2024-01-01T00:00:00.000Z"}]
    write_lines(beads / "queen_messages.jsonl", *records(beads / "queen_messages.jsonl"), *lines)
    quick("undo", "--yes", as_="ui")
    quick("issue", "new", "x", "--id", "qb-1", as_="ui")
    quick("issue", "delete", "qb-1", as_="ui")
    shown = [line[21:] for line in quick("log").out.splitlines()]
    assert shown[:3] == ["ui wrote to api: early", "ui wrote to api: late", TOOK_BACK]
    assert shown[-1] == "qb-1 was deleted by ui"


def test_many_files_that_a_shell_made_of_a_pattern_are_told(quick: QuickQueen, repo: Path) -> None:
    quick("init")
    files = [f"{name}.py" for name in "abcdef"]
    for each in files:
        (repo / each).write_text("")
    assert "quote a pattern" not in quick("reserve", *files[:5], as_="ui").err
    assert "these are 6 reservations: quote a pattern" in quick("reserve", *files, as_="ui").err


def test_init_in_a_clone_of_a_hive_that_synchronizes_says_to_fetch_first(
    quick: QuickQueen, repo: Path
) -> None:
    quick("init")
    quick("config", "set", "land.check", "true")
    git(repo, "add", ".beads")
    git(repo, "commit", "-q", "-m", "records")
    assert "next: queen worktree add NAME  to work on an issue there\n" in quick("init").out
    git(repo, "update-ref", "refs/remotes/origin/queenbee/hive", "HEAD")
    for pack in ((), ("pack-refs", "--all")):
        if pack:
            git(repo, *pack)
        assert quick("init").out.splitlines()[-3:-1] == [
            "next: queen sync               to take in what is on the remote",
            "      queen worktree add NAME  to work on an issue there",
        ]
    (Path(quick("hive", "where", "--json").json["state_dir"]) / "remote").mkdir(parents=True)
    assert "queen sync" not in quick("init").out
