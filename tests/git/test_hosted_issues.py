"""Issues come from the code host, and what was completed here is closed there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, Ran, commit_file, git, write_lines, write_settings
from proposed import forget
from scripted_host import SLUG, ScriptedHost
from scripted_issues import ScriptedIssues

from queenbee.store.layout import discover

HOSTS = {"github": "github.com", "gitlab": "gitlab.com", "gitea": "git.example.org"}


@pytest.fixture
def there(quick: QuickQueen, repo: Path, host: ScriptedHost) -> ScriptedIssues:
    """Three issues at the host that `repo` is on; the second waits for the first."""
    git(repo, "config", "queenbee.host", f"github.com/{SLUG}")
    write_lines(repo / ".beads" / "issues.jsonl")
    host.issues.write(1, title="Fix the form", labels=["bug"], people=["ann"])
    host.issues.write(2, title="Ship it", needs=[1])
    host.issues.write(3, title="Old", open=False, reason="NOT_PLANNED")
    return host.issues


def rows(quick: QuickQueen) -> dict[str, Mapping[str, Any]]:
    found = quick("issues", "--all", "--json").json
    return {each["external_ref"].rpartition("/")[2]: each for each in found}


def pulled(quick: QuickQueen, *words: str) -> str:
    done = quick("issue", "pull", *words, "--prefix", "s")
    assert done.code == 0, done
    return done.out


def landed(quick: QuickQueen, repo: Path, number: str) -> str:
    """Completes an issue with a commit, which is not pushed yet; returns its id."""
    issue_id = str(rows(quick)[number]["id"])
    assert quick("worktree", "add", "ui", issue_id, cwd=repo).code == 0
    tree = repo.parent / "repo-ui"
    commit_file(tree, f"for-{number}")
    done = quick("land", "--unchecked", as_="ui", cwd=tree)
    assert done.code == 0, done
    assert rows(quick)[number]["state"] == "done"
    return issue_id


class TestAPull:
    def test_brings_issues_as_the_host_has_them(
        self, quick: QuickQueen, there: ScriptedIssues
    ) -> None:
        said = pulled(quick)
        assert said.splitlines()[0] == f"github.com/{SLUG}, 3 issues in all"
        found = rows(quick)
        assert {key: each["state"] for key, each in found.items()} == {
            "1": "ready", "2": "waits", "3": "done"
        }  # fmt: skip
        assert (found["1"]["title"], found["1"]["issue_type"]) == ("Fix the form", "bug")
        assert found["2"]["waits_for"] == [found["1"]["id"]]
        assert found["3"]["close_reason"] == "not planned"
        assert pulled(quick).splitlines()[-1] == "0 added, 0 updated, 1 kept"

    @pytest.mark.parametrize("author", ["NONE", "CONTRIBUTOR", None])
    def test_keeps_on_hold_what_a_stranger_wrote(
        self, quick: QuickQueen, there: ScriptedIssues, author: str | None
    ) -> None:
        there.write(4, title="Run this", author=author)
        there.write(5, title="No", author=author, open=False, reason="COMPLETED")
        said = pulled(quick)
        assert "kept on hold: by a stranger (1)" in said
        assert "queen issue edit ISSUE --status open" in said
        found = rows(quick)
        assert {each: found[each]["state"] for each in "145"} == {
            "1": "ready", "4": "on_hold", "5": "done"
        }  # fmt: skip
        assert quick("issue", "edit", str(found["4"]["id"]), "--status", "open").code == 0
        there.write(4, title="Run this now")
        pulled(quick)
        assert (rows(quick)["4"]["state"], rows(quick)["4"]["title"]) == ("ready", "Run this now")

    def test_reads_all_pages_and_then_what_changed(
        self, quick: QuickQueen, there: ScriptedIssues, host: ScriptedHost
    ) -> None:
        there.page = 2
        for number in range(4, 8):
            there.write(number)
        assert pulled(quick).splitlines()[-1] == "7 added, 0 updated, 0 kept"
        there.write(2, title="Ship it today", needs=[])
        there.write(1, open=False, reason="COMPLETED")
        host.requests.clear()
        said = pulled(quick)
        assert said.splitlines()[-1] == "0 added, 2 updated, 1 kept"
        assert len(host.requests) == 2, host.requests
        found = rows(quick)
        assert (found["2"]["title"], found["2"]["state"]) == ("Ship it today", "ready")
        assert found["1"]["state"] == "done"
        assert "no longer" not in said

    def test_closes_what_is_gone_there_only_if_it_is_told_so(
        self, quick: QuickQueen, there: ScriptedIssues
    ) -> None:
        pulled(quick)
        del there.by_number[1]
        pulled(quick)
        assert rows(quick)["1"]["state"] == "ready"
        would = pulled(quick, "--complete", "--dry-run")
        assert "no longer in the list" in would
        assert rows(quick)["1"]["state"] == "ready"
        pulled(quick, "--complete")
        assert rows(quick)["1"]["state"] == "done"

    @pytest.mark.parametrize("kind", ["gitlab", "gitea"])
    def test_is_the_same_from_other_hosts(
        self, quick: QuickQueen, repo: Path, host: ScriptedHost, kind: str
    ) -> None:
        slug = "me/team/shop" if kind == "gitlab" else SLUG
        host.issues = there = ScriptedIssues(slug, kind, HOSTS[kind])
        there.page = 2
        for number in range(1, 6):
            there.write(number, labels=["bug"], open=number != 5)
        git(repo, "config", "queenbee.host", f"{kind}://{HOSTS[kind]}/{slug}")
        write_lines(repo / ".beads" / "issues.jsonl")
        said = pulled(quick)
        assert said.splitlines()[-1] == "5 added, 0 updated, 0 kept"
        found = rows(quick)
        assert [found[each]["state"] for each in "15"] == ["ready", "done"]
        there.write(2, title="Changed", milestone={"title": "v1"})
        again = pulled(quick).splitlines()
        assert again[-1] == "0 added, 1 updated, 1 kept"
        assert again[1] == "warning : not imported: milestone (1)"
        assert not any("try:" in each for each in again)  # It has no --map.
        assert quick("config", "set", "host.issues", "both").code == 0
        landed(quick, repo, "1")
        git(repo, "push", "-q", "origin", "HEAD:refs/heads/work")
        done = quick("issue", "push")
        assert (done.code, there.by_number[1]["open"]) == (0, False), done
        assert len(there.by_number[1]["comments"]) == 1

    def test_of_an_older_host_is_without_what_it_does_not_know(
        self, quick: QuickQueen, there: ScriptedIssues, host: ScriptedHost
    ) -> None:
        pulled(quick)
        host.unknown, host.denied = {"blockedBy"}, set()
        there.write(2, title="Renamed")
        pulled(quick)
        assert (rows(quick)["2"]["title"], rows(quick)["2"]["state"]) == ("Renamed", "waits")


class TestAHostThatDoesNotAnswer:
    @pytest.mark.parametrize("page", [0, 1])
    def test_loses_nothing(
        self, quick: QuickQueen, there: ScriptedIssues, host: ScriptedHost, page: int
    ) -> None:
        there.page = 2

        def fail() -> None:
            host.away = True

        if page:
            host.before = lambda: setattr(host, "before", fail)
        else:
            fail()
        failed = quick("issue", "pull", "--json")
        assert (failed.code, failed.error["code"] if failed.error else "") == (6, "host_away")
        assert quick("issues", "--all", "--json").json == []
        host.away = False
        assert pulled(quick).splitlines()[-1] == "3 added, 0 updated, 0 kept"

    def test_is_left_alone_for_as_long_as_it_says(
        self, quick: QuickQueen, there: ScriptedIssues, host: ScriptedHost, repo: Path
    ) -> None:
        host.failures = [(429, {"Retry-After": "3000"})]
        assert quick("issue", "pull").code == 6
        host.requests.clear()
        assert quick("issue", "pull").code == 6
        assert host.requests == []
        forget(repo)
        pulled(quick)

    def test_says_how_to_log_in(
        self, quick: QuickQueen, there: ScriptedIssues, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GH_TOKEN", "bad")
        refused = quick("issue", "pull", "--json")
        assert (refused.code, refused.error["code"]) == (8, "not_logged_in")
        assert "gh auth login" in refused.error["hint"]

    def test_with_half_an_answer_changes_nothing(
        self, quick: QuickQueen, there: ScriptedIssues, host: ScriptedHost
    ) -> None:
        host.denied = {"issues"}
        assert quick("issue", "pull").code == 8
        assert quick("issues", "--all", "--json").json == []


class TestAPush:
    @pytest.fixture(autouse=True)
    def _set(self, quick: QuickQueen, there: ScriptedIssues) -> None:
        pulled(quick)
        assert quick("config", "set", "host.issues", "both").code == 0

    def test_closes_what_was_completed_and_names_the_commit(
        self, quick: QuickQueen, there: ScriptedIssues, repo: Path
    ) -> None:
        issue_id = landed(quick, repo, "1")
        waits = quick("issue", "push", "--json").json
        assert (waits["closed"], waits["waits"]) == ([], [issue_id])
        assert there.changes == []
        git(repo, "push", "-q", "origin", "HEAD:refs/heads/work")
        would = quick("issue", "push", "--dry-run", "--json").json
        assert (would["closed"], there.changes) == ([issue_id], [])
        assert quick("issue", "push", "--json").json["closed"] == [issue_id]
        assert there.changes == ["POST 1/comments", "PATCH 1"]
        (comment,) = there.by_number[1]["comments"]
        assert git(repo, "rev-parse", "HEAD").strip() in comment["body"]
        assert there.by_number[1]["reason"] == "COMPLETED"
        again = quick("issue", "push", "--json").json
        assert (again["closed"], again["before"]) == ([], [])
        assert len(there.changes) == 2

    @pytest.mark.parametrize("landed_as", ["HEAD", "origin/HEAD^{/|, @boss: run this}"])
    def test_says_nothing_that_came_with_a_record(
        self, quick: QuickQueen, there: ScriptedIssues, repo: Path, landed_as: str
    ) -> None:
        landed(quick, repo, "1")
        git(repo, "push", "-q", "origin", "HEAD:refs/heads/work")
        ledger = repo / ".beads" / "queen_assignments.jsonl"
        last = json.loads(ledger.read_text().splitlines()[-1])
        came = {**last, "landed": landed_as, "updated_at": f"{last['updated_at'][:-4]}999Z"}
        ledger.write_text(f"{ledger.read_text()}{json.dumps(came)}\n")
        assert quick("issue", "push").code == 0
        (comment,) = there.by_number[1]["comments"]
        assert comment["body"].startswith("Completed.\n\n<!-- queenbee ")

    @pytest.mark.parametrize("issue_id", ["x-->@boss", "x\n/confidential\n@boss: run this"])
    def test_says_no_id(
        self, quick: QuickQueen, there: ScriptedIssues, repo: Path, issue_id: str
    ) -> None:
        (ref,) = [each["external_ref"] for number, each in rows(quick).items() if number == "1"]
        row = {"id": issue_id, "title": "T", "status": "closed", "external_ref": ref}
        row |= {"closed_at": "2026-01-01T00:00:00Z", "metadata": {"source_fields": {}}}
        row["metadata"]["source_fields"]["status"] = "open"
        write_lines(repo / ".beads" / "issues.jsonl", row, {"id": "q-9", "title": "Z"})
        assert quick("claim", "q-9", as_="ui").code == 0
        assert quick("complete", "q-9", as_="ui").code == 0
        ledger = repo / ".beads" / "queen_assignments.jsonl"
        came = [json.loads(each) for each in ledger.read_text().splitlines()]
        write_lines(
            ledger, *came, *({**x, "id": f"{x['id']}x", "issue_id": issue_id} for x in came)
        )
        assert quick("issue", "push").code == 0
        (comment,) = there.by_number[1]["comments"]
        assert re.fullmatch("Completed\\.\n\n<!-- queenbee [0-9a-f]{64} -->", comment["body"])

    @pytest.mark.parametrize("lost", [1, 2])
    def test_whose_answer_is_lost_comments_once(
        self, quick: QuickQueen, there: ScriptedIssues, host: ScriptedHost, repo: Path, lost: int
    ) -> None:
        landed(quick, repo, "1")
        git(repo, "push", "-q", "origin", "HEAD:refs/heads/work")

        def lose() -> None:
            if host.requests[-1].startswith(("POST", "PATCH")[lost - 1]):
                host.changes = "lost"
            else:
                host.before = lose

        host.before = lose
        assert quick("issue", "push").code == 6
        host.before = None
        assert quick("issue", "push").code == 0
        assert there.by_number[1]["open"] is False
        assert len(there.by_number[1]["comments"]) == 1

    def test_leaves_alone_what_is_closed_there_or_open_here(
        self, quick: QuickQueen, there: ScriptedIssues, repo: Path
    ) -> None:
        there.write(1, open=False)
        issue_id = str(rows(quick)["2"]["id"])
        assert quick("issue", "close", issue_id, as_="ui").code == 0
        assert quick("issue", "push", "--json").json["closed"] == []
        assert there.changes == []

    def test_is_made_by_a_sync_after_a_pull(
        self, quick: QuickQueen, there: ScriptedIssues, repo: Path
    ) -> None:
        landed(quick, repo, "1")
        git(repo, "push", "-q", "origin", "HEAD:refs/heads/work")
        there.write(4, title="New")
        done: Ran = quick("sync")
        assert done.code == 0, done
        assert rows(quick)["4"]["title"] == "New"
        assert there.by_number[1]["open"] is False


@pytest.mark.usefixtures("asking")
def test_a_push_is_off_until_it_is_set_and_agreed_to(
    quick: QuickQueen, there: ScriptedIssues, repo: Path
) -> None:
    refused = quick("issue", "push", "--json")
    assert (refused.code, refused.error["hint"]) == (2, "queen config set host.issues both")
    write_settings(repo / ".beads", '[host]\nissues = "both"\n')
    assert quick("issue", "push", "--json").error["code"] == "untrusted"


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("value", ["pull", "both"])
def test_no_setting_of_a_clone_has_a_sync_ask_the_host(
    quick: QuickQueen, there: ScriptedIssues, host: ScriptedHost, repo: Path, value: str
) -> None:
    """The client would send the token of whoever types it."""
    write_settings(repo / ".beads", f'[host]\nissues = "{value}"\n')
    assert quick("sync").code == 0
    assert (host.requests, rows(quick)) == ([], {})
    assert quick("config", "set", "host.issues", value).code == 0
    assert quick("sync").code == 0
    assert rows(quick)


@pytest.mark.usefixtures("asking")
def test_a_target_that_nobody_agreed_to_chooses_no_repository(
    quick: QuickQueen, there: ScriptedIssues, host: ScriptedHost, repo: Path
) -> None:
    """Who may push settings would fill the list of issues from a repository of theirs."""
    git(repo, "config", "--unset", "queenbee.host")
    git(repo, "remote", "rename", "origin", "hive")
    for name, slug in (("origin", SLUG), ("pr-from-eve", "eve/shop")):
        git(repo, "remote", "add", name, f"git@github.com:{slug}.git")
    write_settings(repo / ".beads", '[sync]\nremote = "hive"\n')
    assert quick("config", "set", "host.issues", "pull").code == 0
    (agreed,) = quick("config", "trust", "--list", "--json").json["seen"]
    assert SLUG in agreed["text"]
    write_settings(repo / ".beads", '[land]\ntarget = "pr-from-eve/main"\n')
    assert quick("sync").code == 0
    assert rows(quick)
    before = len(host.requests)
    assert quick("config", "set", "land.target", "pr-from-eve/main").code == 0
    said = quick("sync")
    assert (said.code, len(host.requests)) == (0, before)
    assert "eve/shop" in said.err


def test_a_remote_that_is_no_code_host_is_said(quick: QuickQueen, repo: Path, hub: Path) -> None:
    refused = quick("issue", "pull", "--json")
    assert (refused.code, refused.error["code"]) == (2, "invalid_input")
    assert "git config queenbee.host" in refused.error["hint"]


def test_a_note_that_is_lost_asks_for_all(
    quick: QuickQueen, there: ScriptedIssues, repo: Path
) -> None:
    pulled(quick)
    note = Path(discover(str(repo), {}).state_dir, "code-host.json")
    assert json.loads(note.read_text())["issues"].keys() == {f"github.com/{SLUG}"}
    note.unlink()
    assert pulled(quick).splitlines()[-1] == "0 added, 0 updated, 3 kept"
