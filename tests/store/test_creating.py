"""`queen init` makes what is missing, and never unmakes anything."""

from __future__ import annotations

import os

import pytest
from hives import commit_file, git, snapshot

from queenbee import Hive
from queenbee.errors import Unreadable
from queenbee.store import creating
from queenbee.store.layout import discover


@pytest.fixture
def places(repo):
    (repo / ".beads").rmdir()
    return discover(str(repo), {}, must_exist=False)


def test_makes_the_folder_its_settings_and_its_attributes(places, repo):
    made = creating.init(places)
    assert made == [str(repo / ".beads" / "queen.toml"), str(repo / ".beads" / ".gitattributes")]
    assert (repo / ".beads" / ".gitattributes").read_text().splitlines() == [*creating.ATTRIBUTES]


def test_makes_the_state_that_git_never_sees(places, repo):
    creating.init(places)
    assert (repo / ".git" / "queenbee").is_dir()
    assert "queenbee" not in git(repo, "status", "--porcelain", "-uall")


def test_run_twice_changes_nothing(places, repo):
    creating.init(places)
    before = snapshot(repo)
    assert creating.init(places) == []
    assert snapshot(repo) == before


def test_keeps_what_is_there(places, repo):
    (repo / ".beads").mkdir()
    (repo / ".beads" / "queen.toml").write_text('ttl = "1h"\n')
    (repo / ".beads" / ".gitattributes").write_text("issues.jsonl merge=union")
    (repo / ".beads" / "issues.jsonl").write_text('{"id":"qb-1"}\n')
    creating.init(places)
    assert (repo / ".beads" / "queen.toml").read_text() == 'ttl = "1h"\n'
    assert (repo / ".beads" / ".gitattributes").read_text().splitlines() == [
        *creating.ATTRIBUTES,
        "issues.jsonl merge=union",
    ]
    assert (repo / ".beads" / "issues.jsonl").read_text() == '{"id":"qb-1"}\n'


def test_settings_as_made_say_nothing_but_the_defaults(places):
    creating.init(places)
    again = discover(places.root, {})
    assert (again.settings.state, again.settings.ttl_s, again.settings.unknown) == (
        "git",
        7_200,
        (),
    )


def test_the_attributes_let_git_merge_two_branches_without_conflict(places, repo):
    creating.init(places)
    Hive.open(repo, droid="ui", env={}).messages.send("api", "before")
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a hive")
    for branch, body in (("one", "from one"), ("two", "from two")):
        git(repo, "checkout", "-q", "-b", branch, "main")
        with open(places.ledger_path("messages"), "a", encoding="utf-8") as file:
            file.write(f'{{"id":"qm-{branch}","rev":1,"body":"{body}"}}\n')
        commit_file(repo, f"{branch}.txt")
        git(repo, "commit", "-qam", body)
    git(repo, "merge", "-q", "--no-edit", "one")
    with open(places.ledger_path("messages"), encoding="utf-8") as file:
        text = file.read()
    assert "<<<<<<<" not in text
    assert all(body in text for body in ("before", "from one", "from two"))


def test_the_attributes_keep_windows_line_ends_out_of_the_ledgers(places, repo):
    creating.init(places)
    git(repo, "config", "core.autocrlf", "true")
    Hive.open(repo, droid="ui", env={}).messages.send("api", "hello")
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a hive")
    os.unlink(places.ledger_path("messages"))
    git(repo, "checkout", "-q", ".beads")
    with open(places.ledger_path("messages"), "rb") as file:
        assert b"\r" not in file.read()


def test_in_a_place_that_cannot_be_written_is_refused(repo, queen):
    (repo / ".beads").rmdir()
    repo.chmod(0o555)
    refused = queen("init", unprivileged=True)
    repo.chmod(0o755)
    assert refused.code == 7
    assert str(repo / ".beads") in refused.err


def test_attributes_that_are_not_a_file_are_refused(places, repo):
    (repo / ".beads" / ".gitattributes").mkdir(parents=True)
    with pytest.raises(Unreadable, match="gitattributes"):
        creating.init(places)


def test_attributes_that_would_hang_are_refused(places, repo):
    (repo / ".beads").mkdir(exist_ok=True)
    os.mkfifo(repo / ".beads" / ".gitattributes")
    with pytest.raises(Unreadable, match="not a regular file"):
        creating.init(places)


@pytest.mark.parametrize("taken", ["queen.toml", ".gitattributes"])
def test_killed_half_way_it_is_finished_by_the_next_run(places, repo, taken):
    creating.init(places)
    whole = snapshot(repo)
    os.unlink(repo / ".beads" / taken)
    creating.init(places)
    assert snapshot(repo) == whole


def test_what_to_grant_is_the_state_or_the_ledgers(places):
    assert places.state_dir in creating.what_to_grant(places, places.state_dir)
    assert "git config queenbee.state beads" in creating.what_to_grant(places, places.state_dir)
    assert creating.what_to_grant(places, places.beads_dir).endswith(places.beads_dir)
