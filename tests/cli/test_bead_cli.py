"""`queen bead`, `verify`, `run` and `complete`: beads of both kinds on the command line."""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from bead_files import ATTEMPT, FIXTURES, JUDGEMENT, put_bead, ralph_bead, sprint_row
from hives import COMMAND, Queen, QuickQueen, exported, git, records, snapshot, write_lines

from queenbee import Hive

GOOD = json.dumps(ralph_bead("gt-1", "true"))


@pytest.fixture
def tracker(beads: Path) -> Path:
    return beads / "issues.jsonl"


def verifications(beads: Path) -> list[dict[str, Any]]:
    return records(beads / "queen_verifications.jsonl")


class TestValidateOthers:
    """What a target may be, and what becomes of the other targets."""

    def test_every_target_is_judged_and_the_worst_status_counts(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        (repo / "good.json").write_text(GOOD)
        (repo / "bad.json").write_text("{}")
        done = quick("bead", "validate", "gone.json", "good.json", "bad.json", "--json")
        assert done.code == 4
        assert [(one["source"], one["valid"]) for one in done.json] == [
            ("gone.json", False),
            ("good.json", True),
            ("bad.json", False),
        ]
        assert done.json[0]["findings"][0]["message"] == "gone.json does not exist"
        assert quick("bead", "validate", "good.json", "bad.json").code == 1

    def test_of_a_trackers_file_only_the_rows_that_count_are_judged(
        self, quick: QuickQueen, tracker: Path
    ) -> None:
        new = sprint_row("bd-1") | {"updated_at": "2026-02-09T10:00:00Z"}
        gone = sprint_row("bd-2") | {"status": "tombstone", "branch": 5}
        old = sprint_row("bd-1", branch="a b") | {"updated_at": "2026-02-08T10:00:00Z"}
        write_lines(tracker, new, old, gone)
        done = quick("bead", "validate", str(tracker), "--json")
        assert [(one["source"], one["valid"]) for one in done.json] == [(f"{tracker}:1", True)]

    @pytest.mark.parametrize("words", [("show",), ("bead", "show")])
    def test_what_show_prints_is_accepted(
        self, quick: QuickQueen, tracker: Path, words: tuple[str, ...]
    ) -> None:
        write_lines(tracker, sprint_row("bd-1"))
        shown = quick(*words, "bd-1", "--json").out
        done = quick("bead", "validate", "-", "--json", stdin=shown)
        assert [(one["kind"], one["id"], one["valid"]) for one in done.json] == [
            ("sprint", "bd-1", True)
        ]
        assert quick("bead", "validate", "-", stdin=shown.replace("main/1-2", "a b")).code == 1

    def test_an_empty_list_is_not_valid(self, quick: QuickQueen) -> None:
        done = quick("bead", "validate", "-", stdin="[]")
        assert (done.code, "there is no bead in it" in done.out) == (1, True)

    def test_agents_without_a_folder_are_a_warning_and_strictly_an_error(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        (repo / "bead.json").write_text(json.dumps(sprint_row("bd-1")))
        done = quick("bead", "validate", "bead.json")
        assert (done.code, "warning bead.json" in done.out) == (0, True)
        assert "there is no .claude/agents/: .claude/agents/backend-dev" in done.out
        assert quick("bead", "validate", "bead.json", "--strict").code == 1

    @pytest.mark.parametrize("path", ["README", ".claude/agents/../../dev.md", "/etc/dev.md"])
    @pytest.mark.parametrize("name", ["dev_agent_path", "qa_agents"])
    def test_an_agent_outside_of_the_folder_is_none_also_without_the_folder(
        self, quick: QuickQueen, repo: Path, path: str, name: str
    ) -> None:
        bead = sprint_row("bd-1")
        judge = {**bead["metadata"]["qa_agents"][0], "agent_path": path}
        bead["metadata"][name] = path if name == "dev_agent_path" else [judge]
        (repo / "bead.json").write_text(json.dumps(bead))
        done = quick("bead", "validate", "bead.json")
        assert (done.code, f"'{path}' is not in .claude/agents/" in done.out) == (1, True)

    @pytest.mark.parametrize(
        ("branch", "why"),
        [
            ("unfinished/foo", "names that begin with unfinished are kept"),
            ("up/x", "names that begin with up are kept"),
            ("v1", "it could be taken for refs/tags/v1"),
        ],
    )
    def test_a_branch_that_nobody_can_make_here_is_a_warning_and_strictly_an_error(
        self, quick: QuickQueen, repo: Path, branch: str, why: str
    ) -> None:
        git(repo, "commit", "-q", "--allow-empty", "-m", "begin")
        git(repo, "tag", "v1")
        git(repo, "remote", "add", "up", "/nowhere")
        bead = sprint_row("bd-1")
        bead["metadata"]["branch"] = branch
        (repo / "bead.json").write_text(json.dumps(bead))
        done = quick("bead", "validate", "bead.json", "--json")
        (found,) = (f for f in done.json[0]["findings"] if f["path"] == "metadata.branch")
        assert (done.code, found["severity"]) == (0, "warning")
        assert why in found["message"]
        strictly = quick("bead", "validate", "bead.json", "--json", "--strict").json[0]["findings"]
        assert {**found, "severity": "error"} in strictly
        closed = bead | {"status": "closed", "closed_at": "2026-02-07T10:00:00Z"}
        (repo / "bead.json").write_text(json.dumps(closed))
        assert why not in quick("bead", "validate", "bead.json").out


class TestFailures:
    def test_a_failed_verifier_shows_the_end_of_its_output(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "seq 1 9; echo broken >&2; false"))
        shown = quick("bead", "verify", "gt-1", as_="ui").out
        assert shown.splitlines()[1:6] == [f"            {n}" for n in (6, 7, 8, 9, "broken")]
        assert quick("bead", "verify", "gt-1", as_="ui").out.count("exit code 1") == 1

    def test_a_dry_run_shows_what_a_failure_does(self, quick: QuickQueen, repo: Path) -> None:
        bead = ralph_bead("gt-1", "true", "false")
        bead["dod"]["verifiers"][0]["on_failure"] = "continue"
        put_bead(repo, bead)
        one, two = quick("bead", "verify", "gt-1", "--dry-run").out.splitlines()
        assert one.endswith("on failure: continue")
        assert two.endswith("on failure: stop")

    def test_a_verifier_may_name_its_shell(self, quick: QuickQueen, repo: Path) -> None:
        bead = ralph_bead("gt-1", '[[ "$BASH_VERSION" ]]')
        bead["dod"]["verifiers"][0]["shell"] = "bash"
        path = put_bead(repo, bead)
        assert quick("bead", "verify", "gt-1", as_="ui").code == 0
        bead["dod"]["verifiers"][0]["shell"] = "fish"
        path.write_text(json.dumps(bead))
        refused = quick("bead", "validate", str(path))
        assert (refused.code, "'fish' is not a shell" in refused.out) == (1, True)


class TestSprintBeads:
    def test_verify_says_that_it_is_a_sprint_bead(self, quick: QuickQueen, tracker: Path) -> None:
        write_lines(tracker, sprint_row("bd-1"))
        refused = quick("bead", "verify", "bd-1", as_="ui")
        assert refused.code == 2
        assert "bd-1 is a sprint bead and has no checks" in refused.err


class TestValidate:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("ralph/simple-task.json", "ralph"),
            ("ralph/gate.json", "ralph"),
            ("ralph/multiple-verifiers.json", "ralph"),
            ("sprint/work-bead.json", "sprint"),
            ("sprint/merge-bead.json", "sprint"),
        ],
    )
    def test_the_documents_examples_are_valid(
        self, quick: QuickQueen, name: str, kind: str
    ) -> None:
        done = quick("bead", "validate", str(FIXTURES / name), "--json")
        assert done.code == 0
        assert [(one["kind"], one["valid"]) for one in done.json] == [(kind, True)]

    @pytest.mark.parametrize(
        ("text", "kind", "path"),
        [
            ('{"intent": 5, "dod": {"verifiers": []}}', "ralph", "intent"),
            ('{"intent": "x"}', "ralph", "dod"),
            ('{"dod": {"verifiers": []}}', "ralph", "intent"),
            ('{"intent": "x", "dod": {"verifiers": [{"name": "a"}]}}', "ralph",
             "dod.verifiers[0].command"),
            ('{"intent": "x", "dod": {"verifiers": []}, "id": "../x"}', "ralph", "id"),
            ('{"intent": "x", "dod": {"verifiers": []}, "phase_gate": "no-slash"}', "ralph",
             "phase_gate"),
            ('{"intent": "x", "dod": {"verifiers": []}, "phase_gate": ["a/b", 3]}', "ralph",
             "phase_gate"),
            ('{"issue_type": "beads-ralph-work"}', "sprint", "metadata"),
            ('{"metadata": {}}', "sprint", "metadata.branch"),
            ('{"title": "neither"}', None, ""),
            ("[5]", None, ""),
            ("not json", None, ""),
            ('{"intent": "x", "intent": "y"}', None, ""),
            ("", None, ""),
            ("[" * 200 + "]" * 200, None, ""),
        ],
    )  # fmt: skip
    def test_each_problem_is_shown_with_its_path(
        self, quick: QuickQueen, text: str, kind: str | None, path: str
    ) -> None:
        done = quick("bead", "validate", "-", "--json", stdin=text)
        assert done.code == 1
        (found,) = done.json
        assert (found["kind"], found["valid"]) == (kind, False)
        assert path in [one["path"] for one in found["findings"] if one["severity"] == "error"]

    def test_the_kind_of_bead_can_be_given(self, quick: QuickQueen) -> None:
        done = quick("bead", "validate", "-", "--kind", "sprint", "--json", stdin=GOOD)
        assert done.code == 1
        assert done.json[0]["kind"] == "sprint"

    def test_strict_reports_missing_teams_and_agents_as_errors(self, quick: QuickQueen) -> None:
        path = str(FIXTURES / "sprint" / "work-bead.json")
        assert quick("bead", "validate", path).code == 0
        done = quick("bead", "validate", path, "--strict", "--json")
        assert done.code == 1
        errors = [one["path"] for one in done.json[0]["findings"] if one["severity"] == "error"]
        assert "metadata.team_name" in errors

    def test_agents_are_looked_for_in_the_repository(self, quick: QuickQueen, repo: Path) -> None:
        text = json.dumps(sprint_row(dev_agent_path=".claude/agents/backend-dev"))
        assert quick("bead", "validate", "-", stdin=text).code == 0
        (repo / ".claude" / "agents").mkdir(parents=True)
        refused = quick("bead", "validate", "-", stdin=text)
        assert refused.code == 1
        message = "Agent path '.claude/agents/backend-dev' does not exist in .claude/agents/"
        assert message in refused.out
        (repo / ".claude" / "agents" / "backend-dev.md").touch()
        assert quick("bead", "validate", "-", stdin=text).code == 0

    def test_agents_can_be_in_another_folder_and_claude_always_exists(
        self, quick: QuickQueen, tmp_path: Path
    ) -> None:
        agents = tmp_path / "agents"
        agents.mkdir()
        text = json.dumps(sprint_row())
        assert quick("bead", "validate", "-", "--agents-dir", str(agents), stdin=text).code == 1
        row = sprint_row(dev_agent_path="claude")
        done = quick("bead", "validate", "-", "--agents-dir", str(agents), stdin=json.dumps(row))
        assert done.code == 0
        assert quick("bead", "validate", "-", "--agents-dir", "nowhere", stdin=text).code == 4

    def test_several_targets_are_validated_at_once(
        self, quick: QuickQueen, repo: Path, tracker: Path
    ) -> None:
        path = put_bead(repo, ralph_bead("gt-1", "true"))
        write_lines(tracker, sprint_row("bd-1"), {"id": "qb-1", "title": "plain"}, "torn {")
        done = quick("bead", "validate", "gt-1", "bd-1", str(path), str(tracker), "--json")
        assert done.code == 1
        assert [(one["source"], one["id"], one["valid"]) for one in done.json] == [
            (str(path), "gt-1", True),
            ("bd-1", "bd-1", True),
            (str(path), "gt-1", True),
            (f"{tracker}:1", "bd-1", True),
            (f"{tracker}:3", None, False),
        ]

    def test_each_element_of_the_trackers_list_is_a_bead(self, quick: QuickQueen) -> None:
        text = json.dumps([sprint_row("bd-1"), sprint_row("bd-2")])
        done = quick("bead", "validate", "-", "--json", stdin=text)
        assert [one["id"] for one in done.json] == ["bd-1", "bd-2"]

    def test_a_byte_order_mark_is_accepted(self, quick: QuickQueen) -> None:
        assert quick("bead", "validate", "-", stdin=b"\xef\xbb\xbf" + GOOD.encode()).code == 0
        assert quick("bead", "validate", "-", stdin=GOOD.encode("utf-16")).code == 0

    def test_a_sprint_bead_of_ten_megabytes_is_refused_and_not_shown(
        self, quick: QuickQueen
    ) -> None:
        row = {**sprint_row(), "description": "x" * 10_000_000}
        done = quick("bead", "validate", "-", stdin=json.dumps(row))
        assert done.code == 1
        assert "a bead has at most 1,048,576" in done.out
        assert len(done.out) < 1_000

    @pytest.mark.parametrize("name", ["gone.json", "no/such/file", "gt-unknown"])
    def test_what_does_not_exist_is_not_found(
        self, quick: QuickQueen, tracker: Path, name: str
    ) -> None:
        write_lines(tracker, sprint_row())
        assert quick("bead", "validate", name).code == 4

    def test_a_folder_is_refused_as_a_bead(self, quick: QuickQueen) -> None:
        assert quick("bead", "validate", ".").code == 7

    def test_files_need_no_hive(self, quick: QuickQueen, tmp_path: Path) -> None:
        (tmp_path / "bead.json").write_text(GOOD)
        done = quick("bead", "validate", "bead.json", cwd=tmp_path)
        assert (done.code, done.out) == (0, "valid: bead.json (gt-1)\n")


class TestSchema:
    @pytest.mark.parametrize("kind", ["ralph", "sprint"])
    def test_the_schema_is_accepted_by_a_validator(self, quick: QuickQueen, kind: str) -> None:
        from jsonschema.validators import validator_for

        schema = json.loads(quick("bead", "schema", kind).out)
        validator_for(schema).check_schema(schema)
        assert quick("--json", "bead", "schema", kind).json == schema

    def test_strict_requires_a_team(self, quick: QuickQueen) -> None:
        required = quick("bead", "schema", "sprint", "--strict").json["$defs"]["SprintMetadata"]
        assert "team_name" in required["required"]


class TestShowListReady:
    def test_a_bead_is_shown_with_its_checks_and_what_it_waits_for(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-gate", "true", type="gate"))
        put_bead(repo, ralph_bead("gt-1", "make test", depends_on=["gt-gate"]))
        told = quick("bead", "show", "gt-1", "--json").json
        assert told["kind"] == "ralph"
        assert told["file"] == ".beads/active/gt-1.json"
        assert told["waits_for"] == ["gt-gate"]
        assert told["waits"] == "gt-gate is a gate that has not passed: it is pending"
        assert "sh -c make test" in told["checks"][0]
        assert told["document"]["intent"] == "do gt-1"
        assert "not ready: gt-gate" in quick("bead", "show", "gt-1").out

    def test_a_sprint_bead_says_what_comes_next(self, quick: QuickQueen, tracker: Path) -> None:
        write_lines(tracker, sprint_row())
        told = quick("bead", "show", "bd-1", "--json").json
        assert (told["kind"], told["team"]) == ("sprint", "sprint-1.2-auth")
        assert (told["sprint"]["next_step"], told["sprint"]["attempts_left"]) == ("develop", 3)

    def test_an_issue_is_refused_as_a_bead(self, quick: QuickQueen, tracker: Path) -> None:
        write_lines(tracker, {"id": "qb-1", "title": "x"})
        refused = quick("bead", "show", "qb-1", "--json")
        assert (refused.code, refused.error["hint"]) == (2, "queen show qb-1")
        assert quick("bead", "show", "qb-2").code == 4

    def test_the_list_has_every_kind_and_says_why_one_is_not_ready(
        self, quick: QuickQueen, repo: Path, tracker: Path
    ) -> None:
        waits = [{"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "blocks"}]
        write_lines(
            tracker,
            sprint_row("bd-1"),
            {**sprint_row("bd-2"), "dependencies": waits},
            {"id": "bd-3", "title": "T-1", "status": "open", "metadata": {"session_task": "T-1"}},
            {"id": "qb-1", "title": "plain", "status": "open"},
        )
        put_bead(repo, ralph_bead("gt-1", "true"))
        found = {one["id"]: one for one in quick("bead", "list", "--json").json}
        assert {name: one["kind"] for name, one in found.items()} == {
            "gt-1": "ralph", "bd-1": "sprint", "bd-2": "sprint", "bd-3": "session",
        }  # fmt: skip
        assert (found["bd-1"]["waits"], found["bd-2"]["waits"]) == (None, "waits for bd-1")
        only = quick("bead", "list", "--kind", "ralph", "--json").json
        assert [one["id"] for one in only] == ["gt-1"]
        assert quick("bead", "list", "--status", "closed").out == "No beads.\n"

    def test_ready_beads_are_grouped_by_team_in_the_order_of_their_sprints(
        self, quick: QuickQueen, repo: Path, tracker: Path
    ) -> None:
        write_lines(
            tracker,
            sprint_row("bd-a", team_name="late", sprint="1.10", plan_sprint_id="1.10"),
            sprint_row("bd-b", team_name="early", sprint="1.9", plan_sprint_id="1.9"),
            sprint_row("bd-c", team_name="early", sprint="1.2", plan_sprint_id="1.2"),
            {"id": "qb-1", "title": "plain", "status": "open"},
        )
        put_bead(repo, ralph_bead("gt-1", "true"))
        teams = quick("bead", "ready", "--json").json
        assert [(each["team"], [one["id"] for one in each["beads"]]) for each in teams] == [
            ("early", ["bd-c", "bd-b"]),
            ("late", ["bd-a"]),
            (None, ["gt-1"]),
        ]
        only = quick("bead", "ready", "--team", "late", "--json").json
        assert [each["team"] for each in only] == ["late"]
        assert quick("bead", "ready", "--team", "none").out == "No beads are ready.\n"


class TestRecord:
    @pytest.fixture(autouse=True)
    def _row(self, tracker: Path) -> None:
        write_lines(tracker, {**sprint_row(), "serial": 2**70})

    def test_an_attempt_and_its_review_lead_to_the_next_step(
        self, quick: QuickQueen, tracker: Path
    ) -> None:
        told = quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT), "--json").json
        assert told["sprint"]["next_step"] == "judge"
        failed = {**JUDGEMENT, "status": "fail", "message": "test_login failed"}
        told = quick("bead", "record", "qa", "bd-1", "-", "--json", stdin=json.dumps(failed)).json
        assert told["sprint"]["next_step"] == "develop"
        assert told["sprint"]["feedback"] == "claude: test_login failed"
        (row,) = exported(tracker)
        assert row["serial"] == 2**70
        assert row["metadata"]["attempt_count"] == 1

    def test_recording_the_same_entry_again_adds_nothing(
        self, quick: QuickQueen, tracker: Path
    ) -> None:
        assert quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT)).code == 0
        before = tracker.read_bytes()
        for entry in (ATTEMPT, {**ATTEMPT, "attempt": 1}):
            done = quick("bead", "record", "dev", "bd-1", json.dumps(entry))
            assert (done.code, "2 attempts left" in done.out) == (0, True)
            assert tracker.read_bytes() == before

    def test_an_entry_that_another_droid_added_meanwhile_counts(
        self, quick: QuickQueen, tracker: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        turn, record = Hive.transaction, ("bead", "record", "dev", "bd-1")
        other = json.dumps({**ATTEMPT, "session_id": "s-2"})

        def late(hive: Hive) -> object:
            if hive.actor_or_none == "ui-engineer":
                assert quick(*record, other, as_="reviewer").code == 0
            return turn(hive)

        monkeypatch.setattr(Hive, "transaction", late)
        done = quick(*record, json.dumps(ATTEMPT), "--json", as_="ui-engineer")
        metadata = done.json["document"]["metadata"]
        sessions = [one["session_id"] for one in metadata["dev_agent_executions"]]
        assert (sessions, metadata["attempt_count"]) == (["s-2", "s-1"], 2)
        assert exported(tracker)[-1]["metadata"] == metadata

    def test_a_pull_request_must_be_a_url(self, quick: QuickQueen, tracker: Path) -> None:
        url = "https://github.com/org/repo/pull/42"
        assert quick("bead", "record", "pr", "bd-1", url).code == 0
        assert exported(tracker)[-1]["metadata"]["pr_number"] == 42
        entry = json.dumps({"pr_url": url, "pr_number": 43})
        assert quick("bead", "record", "pr", "bd-1", entry).code == 0
        assert exported(tracker)[-1]["metadata"]["pr_number"] == 43

    def test_a_result_is_kept_with_its_pull_request(self, quick: QuickQueen, tracker: Path) -> None:
        result = {
            "bead_id": "bd-1", "success": True, "pr_url": "https://github.com/o/r/pull/7",
            "bead_updated": True, "attempt_count": 1, "fatal": False,
        }  # fmt: skip
        assert quick("bead", "record", "result", "bd-1", json.dumps(result)).code == 0
        assert exported(tracker)[-1]["metadata"]["pr_number"] == 7

    @pytest.mark.parametrize(
        ("what", "entry", "code"),
        [
            ("dev", "{", "invalid_input"),
            ("dev", "[]", "invalid_input"),
            ("dev", "{}", "invalid_record"),
            ("dev", json.dumps({**ATTEMPT, "attempt": 5}), "invalid_record"),
            ("qa", json.dumps({**JUDGEMENT, "attempt": 1}), "not_found"),
            ("result", json.dumps({"bead_id": "bd-1"}), "invalid_record"),
            ("pr", "nowhere", "invalid_input"),
            ("pr", '{"pr_url": 5}', "invalid_input"),
            ("pr", '{"pr_url": "https://x/pull/1", "pr_number": "1"}', "invalid_input"),
        ],
    )
    def test_a_malformed_entry_is_refused_and_adds_nothing(
        self, quick: QuickQueen, tracker: Path, what: str, entry: str, code: str
    ) -> None:
        before = tracker.read_bytes()
        refused = quick("bead", "record", what, "bd-1", entry, "--json")
        assert refused.error["code"] == code
        assert tracker.read_bytes() == before

    def test_a_report_must_fit_the_agents_schema(self, quick: QuickQueen) -> None:
        quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT))
        odd = json.dumps({**JUDGEMENT, "details": {"coverage": "high"}})
        refused = quick("bead", "record", "qa", "bd-1", odd, "--json")
        assert (refused.code, refused.error["code"]) == (2, "invalid_record")
        assert "coverage" in refused.error["message"]

    def test_a_bead_without_attempts_left_is_not_offered_again(
        self, quick: QuickQueen, tracker: Path
    ) -> None:
        tracker.unlink()
        write_lines(tracker, sprint_row(max_retry_attempts=1))
        assert quick("bead", "ready", "--json").json != []
        quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT))
        failed = {**JUDGEMENT, "status": "fail", "message": "no"}
        quick("bead", "record", "qa", "bd-1", json.dumps(failed))
        another = json.dumps({**ATTEMPT, "session_id": "s-2"})
        refused = quick("bead", "record", "dev", "bd-1", another, "--json")
        assert (refused.code, refused.error["code"]) == (5, "no_attempt_left")
        assert quick("issue", "ready", "--json").json == []
        assert quick("bead", "ready", "--json").json == []
        assert quick("bead", "show", "bd-1", "--json").json["waits"] == "it has no attempt left"

    def test_a_fatal_result_ends_the_bead(self, quick: QuickQueen, tracker: Path) -> None:
        result = {
            "bead_id": "bd-1", "success": False, "bead_updated": True, "attempt_count": 0,
            "fatal": True, "error": "the API is gone",
        }  # fmt: skip
        done = quick("bead", "record", "result", "bd-1", json.dumps(result))
        assert done.out == "recorded; bd-1: next step: give up, 0 attempts left\n"
        refused = quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT), "--json")
        assert refused.error["message"] == "its result is fatal: bd-1 is not retried"
        assert quick("issue", "ready", "--json").json == []
        quick("claim", "bd-1", "--anyway", as_="ui")
        assert quick("complete", "bd-1", as_="ui").code == 1
        again = {**result, "fatal": False}
        assert quick("bead", "record", "result", "bd-1", json.dumps(again)).code == 0
        assert quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT)).code == 0

    def test_what_agents_did_and_said_is_in_the_comments(
        self, quick: QuickQueen, tracker: Path
    ) -> None:
        for what, entry in (("dev", ATTEMPT), ("qa", JUDGEMENT), ("qa", JUDGEMENT)):
            quick("bead", "record", what, "bd-1", json.dumps(entry))
        (row,) = exported(tracker)
        assert [(one["author"], one["text"]) for one in row["comments"]] == [
            ("claude", "attempt 1: completed"), ("claude", "attempt 1: pass: all pass"),
        ]  # fmt: skip
        assert len({one["id"] for one in row["comments"]}) == 2
        assert all(type(one["id"]) is int and one["issue_id"] == "bd-1" for one in row["comments"])

    def test_a_ralph_bead_keeps_its_own_history(self, quick: QuickQueen, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        refused = quick("bead", "record", "dev", "gt-1", json.dumps(ATTEMPT), "--json")
        assert (refused.code, refused.error["hint"]) == (2, "queen bead verify gt-1")


class TestEdit:
    @pytest.fixture(autouse=True)
    def bead(self, tracker: Path) -> None:
        write_lines(tracker, sprint_row())

    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            ("max_retry_attempts=5", 5),
            ("agent_type=docs", "docs"),
            ("sprint=1.3", "1.3"),
            ("scrum_master_session_id=null", None),
            ("docker_image=python:3", "python:3"),
        ],
    )
    def test_a_field_of_the_metadata_is_set_as_its_schema_has_it(
        self, quick: QuickQueen, tracker: Path, setting: str, value: object
    ) -> None:
        assert quick("bead", "edit", "bd-1", "--set", f"metadata.{setting}").code == 0
        (row,) = exported(tracker)
        assert row["metadata"][setting.partition("=")[0]] == value
        shown = quick("show", "bd-1", "--json").json
        assert shown["metadata"] == row["metadata"]

    @pytest.mark.parametrize(
        ("setting", "words"),
        [
            ("metadata.max_retry_attempts=0", "metadata.max_retry_attempts"),
            ("metadata.agent_type=cook", "metadata.agent_type"),
            ("metadata.sprint=2.1", "sprint"),
            ("metadata.max_retry_attemps=5", "is not a field"),
            ("metadata.attempt_count=0", "is not set, but recorded"),
            ("max_retry_attempts=5", "is not metadata.NAME=VALUE"),
        ],
    )
    def test_what_its_schema_refuses_is_refused_and_nothing_changes(
        self, quick: QuickQueen, tracker: Path, setting: str, words: str
    ) -> None:
        before = tracker.read_bytes()
        done = quick("bead", "edit", "bd-1", "--set", "metadata.rig=x", "--set", setting, "--json")
        assert (done.code, words in done.error["message"]) == (2, True)
        assert tracker.read_bytes() == before


class TestVerify:
    @pytest.mark.parametrize(("command", "code", "verdict"), [
        ("true", 0, "passed"), ("false", 1, "failed"), ("exit 3", 1, "failed"),
    ])  # fmt: skip
    def test_a_passed_verification_is_recorded_with_its_evidence(
        self, quick: QuickQueen, repo: Path, beads: Path, command: str, code: int, verdict: str
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", f"echo said; {command}"))
        done = quick("bead", "verify", "gt-1", "--json", as_="ui")
        assert done.code == code
        (kept,) = verifications(beads)
        assert done.json == kept
        assert kept["id"].startswith("qv-")
        assert (kept["subject_kind"], kept["subject_id"], kept["verdict"], kept["droid"]) == (
            "bead", "gt-1", verdict, "ui",
        )  # fmt: skip
        assert "said" in (beads / kept["results"][0]["evidence"]).read_text()
        assert (beads / "evidence" / ".gitignore").read_text() == "*\n"

    def test_a_dry_run_shows_every_command_and_runs_none(
        self, quick: QuickQueen, repo: Path, beads: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "touch made", "rm -rf \x1b[31m made"))
        before = snapshot(beads)
        done = quick("bead", "verify", "gt-1", "--dry-run")
        assert done.code == 0
        assert "sh -c touch made" in done.out
        assert "\x1b" not in done.out
        assert not (repo / "made").exists()
        assert snapshot(beads) == before
        assert quick("bead", "verify", "gt-1", "--dry-run", "--json").json["dry_run"] is True

    def test_checks_run_at_the_top_of_the_tree_from_any_folder(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "pwd > where"))
        (repo / "deep" / "er").mkdir(parents=True)
        assert quick("bead", "verify", "gt-1", cwd=repo / "deep" / "er").code == 0
        assert (repo / "where").read_text() == f"{repo}\n"

    def test_a_file_from_elsewhere_can_be_verified(self, quick: QuickQueen, tmp_path: Path) -> None:
        path = tmp_path / "my-bead.json"
        path.write_text(json.dumps(ralph_bead("mine", "true")))
        done = quick("bead", "verify", str(path), "--json")
        assert (done.code, done.json["subject_id"]) == (0, "mine")

    @pytest.mark.parametrize(
        ("bead", "code", "said"),
        [
            (ralph_bead("gt-1"), 2, "dod.verifiers is empty"),
            ({"id": "gt-1", "dod": {"verifiers": []}}, 2, "not a valid bead"),
            ({"id": "gt-1", "intent": "x", "dod": {"verifiers": [{}]}}, 2, "not a valid bead"),
        ],
    )
    def test_a_bead_that_cannot_be_verified_is_refused_with_the_reason(
        self, quick: QuickQueen, repo: Path, bead: dict[str, Any], code: int, said: str
    ) -> None:
        put_bead(repo, bead)
        refused = quick("bead", "verify", "gt-1", "--json")
        assert refused.code == code
        assert said in refused.error["message"]

    @pytest.mark.parametrize("name", ["gt-2", "../../etc/passwd", "nowhere.json", ""])
    def test_what_does_not_exist_is_not_found(
        self, quick: QuickQueen, repo: Path, name: str
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        assert quick("bead", "verify", name).code == 4

    def test_an_issue_without_checks_is_refused(self, quick: QuickQueen, tracker: Path) -> None:
        write_lines(tracker, {"id": "qb-1", "title": "x"}, sprint_row())
        for name in ("qb-1", "bd-1"):
            refused = quick("bead", "verify", name, "--json")
            assert refused.code == 2
            assert f"/.beads/active/{name}.json;" in refused.error["hint"]

    def test_a_reason_that_looks_like_a_credential_stays_out_of_the_ledger(
        self, quick: QuickQueen, repo: Path, beads: Path
    ) -> None:
        secret = "AKIAIOSFODNN7EXAMPLQ"
        bead = ralph_bead("gt-1")
        bead["dod"]["verifiers"] = [
            {"name": "key", "command": "true", "expect": {"stdout_contains": secret}}
        ]
        path = put_bead(repo, bead)
        assert quick("bead", "verify", "gt-1").code == 1
        assert secret not in (beads / "queen_verifications.jsonl").read_text()
        meta = json.loads(path.read_text())["ralph_meta"]
        assert secret not in json.dumps(meta)

    @pytest.mark.slow
    def test_a_command_that_ignores_signals_and_prints_for_ever_is_killed(
        self, quick: QuickQueen, repo: Path, beads: Path
    ) -> None:
        bead = ralph_bead("gt-1")
        loop = "trap '' TERM; (trap '' TERM; yes) & yes"
        bead["dod"]["verifiers"] = [{"name": "loop", "command": loop, "timeout_seconds": 1}]
        put_bead(repo, bead)
        assert quick("bead", "verify", "gt-1").code == 1
        (kept,) = verifications(beads)
        assert kept["results"][0]["reason"] == "timed out after 1 s"
        assert (beads / kept["results"][0]["evidence"]).stat().st_size < 2 * 1024 * 1024 + 4096

    def test_an_interrupt_ends_the_check_and_is_recorded(
        self, queen: Queen, repo: Path, beads: Path
    ) -> None:
        os.mkfifo(repo / "begun")
        put_bead(repo, ralph_bead("gt-1", "echo yes > begun; sleep 60", "true"))
        process = queen.start("bead", "verify", "gt-1", as_="ui")
        # Opening waits until the check has opened the other end: it runs by then.
        assert (repo / "begun").read_text() == "yes\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "Traceback" not in err
        (kept,) = verifications(beads)
        assert kept["verdict"] == "interrupted"
        assert [one["status"] for one in kept["results"]] == ["interrupted", "skipped"]


class TestRun:
    def test_the_loop_continues_until_the_checks_pass(
        self, quick: QuickQueen, repo: Path, beads: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "grep -q hello greeting"))
        agent = 'test "$QUEEN_ATTEMPT" = 1 || echo hello > greeting'
        done = quick("bead", "run", "gt-1", "--agent-cmd", agent, "--json", as_="ui")
        assert (done.code, done.json["status"], done.json["attempts"]) == (0, "completed", 2)
        assert (beads / "completed" / "gt-1.json").exists()
        assert not (beads / "active" / "gt-1.json").exists()
        assert [one["verdict"] for one in verifications(beads)] == ["failed", "passed"]

    def test_it_claims_the_bead_and_completes_its_assignment(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        quick("issue", "assign", "gt-1", "ui", as_="lead")
        quick("reserve", "src/**", "--issue", "gt-1", as_="ui")
        assert quick("bead", "run", "gt-1", "--agent-cmd", "true", as_="ui").code == 0
        (ended,) = quick("issue", "assignments", "--status", "completed", "--json").json
        assert (ended["droid"], ended["reason"]) == ("ui", "verified in attempt 1")
        assert quick("reserve", "list", "--json").json == []
        (mail,) = quick("msg", "inbox", "--json", as_="lead").json
        assert mail["subject"] == "[gt-1] Completed"

    @pytest.mark.slow
    def test_an_agent_may_complete_its_bead_itself(
        self, queen: Queen, repo: Path, beads: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "test -e made"))
        complete = " ".join(f"'{word}'" for word in (*COMMAND, "complete", "gt-1"))
        done = queen(
            "bead", "run", "gt-1", "--agent-cmd", f"touch made; {complete}", "--json", as_="ui"
        )
        assert (done.code, done.json["status"]) == (0, "completed")
        assert (beads / "completed" / "gt-1.json").exists()
        (ended,) = queen("issue", "assignments", "--status", "all", "--json").json
        assert (ended["status"], ended["reason"]) == ("completed", "verified: 1 check passed")

    def test_a_bead_that_another_droid_has_is_not_run(self, quick: QuickQueen, repo: Path) -> None:
        path = put_bead(repo, ralph_bead("gt-1", "true"))
        before = path.read_bytes()
        quick("claim", "gt-1", as_="other")
        refused = quick("bead", "run", "gt-1", "--agent-cmd", "touch made", "--json", as_="ui")
        assert (refused.code, refused.error["code"]) == (5, "taken")
        assert path.read_bytes() == before
        assert not (repo / "made").exists()

    def test_a_bead_that_fails_stays_assigned(self, quick: QuickQueen, repo: Path) -> None:
        path = put_bead(repo, ralph_bead("gt-1", "false", constraints={"max_iterations": 2}))
        done = quick("bead", "run", "gt-1", "--agent-cmd", "true", "--json", as_="ui")
        assert (done.code, done.json["status"], done.json["why"]) == (
            1, "failed", "max_iterations",
        )  # fmt: skip
        assert json.loads(path.read_text())["status"] == "failed"
        assert [one["droid"] for one in quick("issue", "assignments", "--json").json] == ["ui"]

    def test_a_blocked_bead_is_neither_run_nor_claimed(self, quick: QuickQueen, repo: Path) -> None:
        path = put_bead(repo, ralph_bead("gt-1", "true", depends_on=["gt-0"]))
        done = quick("bead", "run", "gt-1", "--agent-cmd", "touch made", "--json", as_="ui")
        assert (done.code, done.json["status"]) == (1, "blocked")
        assert json.loads(path.read_text())["status"] == "blocked"
        assert quick("issue", "assignments", "--json").json == []
        assert not (repo / "made").exists()

    def test_a_bead_behind_a_gate_is_ready_when_the_gate_has_passed(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true", phase_gate="wf/p1"))
        gate = ("-w", "wf", "-p", "p1")
        quick("gate", "new", *gate)
        quick("gate", "add-rule", *gate, "--test", "true")
        assert quick("bead", "run", "gt-1", "--agent-cmd", "true", as_="ui").code == 1
        assert quick("issue", "ready", "--json").json == []
        assert quick("gate", "run", *gate).code == 0
        assert [one["id"] for one in quick("issue", "ready", "--json").json] == ["gt-1"]

    @pytest.mark.slow
    def test_a_second_loop_over_one_bead_is_refused(
        self, queen: Queen, repo: Path, beads: Path
    ) -> None:
        os.mkfifo(repo / "begun")
        os.mkfifo(repo / "go")
        put_bead(repo, ralph_bead("gt-1", "true"))
        agent = "echo yes > begun; cat go"
        first = queen.start("bead", "run", "gt-1", "--agent-cmd", agent, as_="ui")
        assert (repo / "begun").read_text() == "yes\n"
        second = queen("bead", "run", "gt-1", "--agent-cmd", "touch made", "--json", as_="ui")
        assert (second.code, second.error["code"]) == (6, "busy")
        assert second.error["message"] == f"gt-1 is being run by ui (process {first.pid})"
        (repo / "go").write_text("on\n")
        first.communicate(timeout=30)
        assert (first.returncode, (repo / "made").exists()) == (0, False)
        third = queen("bead", "run", "gt-1", "--agent-cmd", "true", as_="ui")
        assert third.code == 5

    def test_an_actor_is_required(self, quick: QuickQueen, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        assert (
            quick("bead", "run", "gt-1", "--agent-cmd", "true", "--json").error["code"]
            == "no_actor"
        )

    def test_a_bead_file_outside_the_hive_is_not_claimed(
        self, quick: QuickQueen, tmp_path: Path
    ) -> None:
        path = tmp_path / "my-bead.json"
        path.write_text(json.dumps(ralph_bead("mine", "true")))
        assert quick("bead", "run", str(path), "--agent-cmd", "true").code == 0
        assert json.loads(path.read_text())["status"] == "completed"
        assert quick("issue", "assignments", "--status", "all", "--json").json == []

    def test_a_dry_run_shows_the_agent_and_the_checks(self, quick: QuickQueen, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "make test"))
        done = quick("bead", "run", "gt-1", "--agent-cmd", "touch made", "--dry-run")
        assert "agent: sh -c touch made" in done.out
        assert "make test" in done.out
        assert not (repo / "made").exists()

    def test_an_issue_without_a_ralph_bead_cannot_be_run(
        self, quick: QuickQueen, tracker: Path
    ) -> None:
        write_lines(tracker, {"id": "qb-1", "title": "x"})
        assert quick("bead", "run", "qb-1", "--agent-cmd", "true", as_="ui").code == 2
        assert quick("bead", "run", "qb-9", "--agent-cmd", "true", as_="ui").code == 4

    def test_a_completed_bead_is_not_run_again(self, quick: QuickQueen, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "true", status="completed"), ".beads/completed")
        assert quick("bead", "run", "gt-1", "--agent-cmd", "true", as_="ui").code == 5


def test_commands_that_show_beads_run_nothing(quick: QuickQueen, repo: Path) -> None:
    put_bead(repo, ralph_bead("gt-1", "touch owned"))
    gate = ("--workflow", "wf", "--phase", "p1")
    quick("gate", "new", *gate)
    quick("gate", "add-rule", *gate, "--test", "touch owned")
    for words in (
        "ready", "issues", "bead list", "bead ready", "doctor", "doctor --fix", "show gt-1",
        "bead show gt-1", "bead validate gt-1", "claim gt-1", "release gt-1", "gate status",
        "verify gt-1 --dry-run", "run gt-1 --agent-cmd 'touch owned' --dry-run",
        *(f"gate {name} -w wf -p p1" for name in ("check", "hook", "history", "run --dry-run")),
    ):  # fmt: skip
        assert quick(*shlex.split(words), as_="ui").code in (0, 1, 2), words
        assert not (repo / "owned").exists(), words
    assert quick("bead", "verify", "gt-1").code == 0
    assert (repo / "owned").exists()


class TestHumanViews:
    def test_control_characters_of_a_bead_are_harmless(self, quick: QuickQueen, repo: Path) -> None:
        evil = "\x1b]0;owned\x07"
        bead = ralph_bead("gt-1", f"echo {evil}", title=evil, intent=evil)
        bead["dod"]["verifiers"][0]["name"] = evil
        put_bead(repo, bead)
        for words in (
            ("bead", "list"), ("bead", "ready"), ("bead", "show", "gt-1"), ("show", "gt-1"),
            ("bead", "verify", "gt-1"), ("bead", "verify", "gt-1", "--dry-run"),
            ("bead", "validate", "gt-1"),
        ):  # fmt: skip
            done = quick(*words)
            assert "\x1b" not in done.out + done.err, words
            assert "\x07" not in done.out + done.err, words

    def test_a_record_of_the_ledger_has_a_history(
        self, quick: QuickQueen, repo: Path, beads: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        quick("bead", "verify", "gt-1", as_="ui")
        identifier = verifications(beads)[0]["id"]
        (revision,) = quick("hive", "history", identifier, "--json").json
        assert (revision["by"], revision["line"]["verdict"]) == ("ui", "passed")
