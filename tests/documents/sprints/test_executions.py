"""What happens to a sprint bead, in the order of the document's completed example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stamps import parse_ms

from queenbee.documents.sprints.executions import (
    InvalidRecord,
    attempts_left,
    feedback,
    next_step,
    record_dev_execution,
    record_pull_request,
    record_qa_execution,
    record_scrum_result,
)
from queenbee.documents.sprints.sprint_bead import DEFAULT_ATTEMPTS
from queenbee.errors import InvalidInput, NotFound

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sprint"
NOW = parse_ms("2026-02-07T11:00:00Z")
UNIT = ".claude/agents/qa-unit-tests"
SECURITY = ".claude/agents/qa-security-scan"


def bead() -> dict[str, Any]:
    return json.loads((FIXTURES / "work-bead.json").read_text())


def completed() -> dict[str, Any]:
    return json.loads((FIXTURES / "completed-bead.json").read_text())["metadata"]


def dev(**fields: Any) -> dict[str, Any]:
    return completed()["dev_agent_executions"][0] | {"session_id": "s1"} | fields


def without_attempt(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in dev(**fields).items() if key != "attempt"}


def qa(**fields: Any) -> dict[str, Any]:
    return completed()["qa_agent_executions"][0] | {"session_id": "q1"} | fields


def attempted(times: int = 1) -> dict[str, Any]:
    found = bead()
    for attempt in range(1, times + 1):
        found = record_dev_execution(found, dev(attempt=attempt), now_ms=NOW)
    return found


def scrum(**fields: Any) -> dict[str, Any]:
    return completed()["scrum_result"] | fields


class TestWholeHistory:
    def test_unknown_keys_survive(self) -> None:
        start = bead() | {"wisp": 1}
        start["metadata"]["docker_image"] = "x"

        found = record_dev_execution(start, dev(cost=3), now_ms=NOW)

        assert found["wisp"] == 1
        assert found["metadata"]["docker_image"] == "x"
        assert found["metadata"]["dev_agent_executions"][0]["cost"] == 3

    def test_each_record_makes_the_bead_later(self) -> None:
        first = record_dev_execution(bead(), dev(), now_ms=NOW)
        second = record_qa_execution(first, qa(), now_ms=NOW - 3_600_000)

        assert first["updated_at"] == "2026-02-07T11:00:00.000Z"
        assert second["updated_at"] == "2026-02-07T11:00:00.001Z"

    def test_an_issue_of_another_kind_has_no_history(self) -> None:
        with pytest.raises(InvalidInput, match="bd-1 is not a sprint bead"):
            record_dev_execution({"id": "bd-1", "issue_type": "task"}, dev(), now_ms=NOW)


class TestDevExecutions:
    def test_a_left_out_attempt_is_the_next(self) -> None:
        found = record_dev_execution(attempted(), without_attempt(session_id="s2"), now_ms=NOW)

        assert [each["attempt"] for each in found["metadata"]["dev_agent_executions"]] == [1, 2]

    def test_repeating_an_earlier_record_is_not_another_attempt(self) -> None:
        found = record_dev_execution(attempted(), dev(attempt=2, session_id="s2"), now_ms=NOW)

        assert record_dev_execution(found, without_attempt(), now_ms=NOW + 5) is found

    @pytest.mark.parametrize(
        ("fields", "path"),
        [
            ({"status": "pass"}, "status"),
            ({"model": "gpt"}, "model"),
            ({"started_at": "today"}, "started_at"),
            ({"session_id": ""}, "session_id"),
            ({"attempt": 0}, "attempt"),
            ({"attempt": "1"}, "attempt"),
            ({"agent_path": None}, "agent_path"),
        ],
    )
    def test_a_malformed_record_is_refused_whole(self, fields: dict[str, Any], path: str) -> None:
        with pytest.raises(InvalidRecord) as caught:
            record_dev_execution(bead(), dev(**fields), now_ms=NOW)

        assert [finding.path for finding in caught.value.details["findings"]] == [path]  # type: ignore[attr-defined]


class TestQAExecutions:
    def test_a_left_out_attempt_is_the_last(self) -> None:
        record = {key: value for key, value in qa().items() if key != "attempt"}

        found = record_qa_execution(attempted(2), record, now_ms=NOW)

        assert found["metadata"]["qa_agent_executions"][0]["attempt"] == 2

    def test_a_judgement_told_again_does_not_judge_the_next_attempt(self) -> None:
        told = {key: value for key, value in qa().items() if key != "attempt"}
        judged = record_qa_execution(attempted(), told, now_ms=NOW)
        found = record_dev_execution(judged, dev(attempt=2, session_id="s2"), now_ms=NOW)

        assert record_qa_execution(found, told, now_ms=NOW + 5) is found

    def test_an_attempt_that_was_never_made_cannot_be_judged(self) -> None:
        with pytest.raises(NotFound, match="no attempt 2"):
            record_qa_execution(attempted(), qa(attempt=2), now_ms=NOW)

    def test_without_an_attempt_the_refusal_names_no_attempt_number(self) -> None:
        judgement = {key: value for key, value in qa().items() if key != "attempt"}

        with pytest.raises(NotFound, match="has no attempt to judge yet"):
            record_qa_execution(bead(), judgement, now_ms=NOW)

    def test_nothing_can_be_judged_before_the_first_attempt(self) -> None:
        with pytest.raises(NotFound, match="no attempt 1"):
            record_qa_execution(bead(), qa(), now_ms=NOW)

    def test_an_agent_that_the_bead_does_not_name_cannot_judge(self) -> None:
        with pytest.raises(NotFound, match="qa-other") as caught:
            record_qa_execution(attempted(), qa(agent_path=".claude/agents/qa-other"), now_ms=NOW)

        assert UNIT in str(caught.value.hint)

    def test_a_report_may_be_nested_in_details_as_the_template_has_it(self) -> None:
        start = attempted()
        schema = start["metadata"]["qa_agents"][0]["output_schema"]
        schema["properties"]["details"] = {"type": "object", "required": ["total"]}

        with pytest.raises(InvalidRecord, match=r"details\.total: is required, but missing"):
            record_qa_execution(start, qa(details={"passed": 1}), now_ms=NOW)
        assert record_qa_execution(start, qa(), now_ms=NOW)

    def test_a_schema_that_allows_no_more_refuses_more(self) -> None:
        start = attempted()
        start["metadata"]["qa_agents"][0]["output_schema"]["additionalProperties"] = False

        with pytest.raises(InvalidRecord, match="total"):
            record_qa_execution(start, qa(), now_ms=NOW)

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ({"$ref": "#"}, "refers to itself without end"),
            ({"$ref": "http://localhost:9/x"}, "which is not in it"),
            ({"type": "objekt"}, "is not a JSON Schema"),
            (None, "the agent has none"),
        ],
    )
    def test_a_hostile_schema_is_refused_and_nothing_is_fetched(
        self, schema: object, message: str
    ) -> None:
        start = attempted()
        start["metadata"]["qa_agents"][0]["output_schema"] = schema

        with pytest.raises(InvalidRecord, match=message):
            record_qa_execution(start, qa(), now_ms=NOW)


class TestScrumResult:
    def test_the_same_result_again_changes_nothing(self) -> None:
        found = record_scrum_result(attempted(2), scrum(), now_ms=NOW)

        assert record_scrum_result(found, scrum(), now_ms=NOW + 5) is found

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"bead_id": "bd-other"}, "bd-other"),
            ({"attempt_count": 4}, "exceeds max_retry_attempts, 3"),
            ({"attempt_count": 1}, "less than the 2 recorded attempts"),
            ({"success": "yes"}, "success: must be true or false"),
            ({"fatal": True}, "must be false if success is true"),
            ({"qa_results": [{"agent_path": UNIT, "status": "fail"}]}, "is not a pass"),
            ({"qa_results": [{"agent_path": UNIT, "status": "ok"}]}, r"qa_results\[0\]\.status"),
            ({"pr_number": 0}, "pr_number: must be at least 1"),
        ],
    )
    def test_a_contradiction_is_refused(self, fields: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidRecord, match=message):
            record_scrum_result(attempted(2), scrum(**fields), now_ms=NOW)

    def test_a_success_needs_a_verdict_if_the_last_attempt_did_not_end(self) -> None:
        timed_out = record_dev_execution(bead(), dev(status="timeout"), now_ms=NOW)
        alone = scrum(attempt_count=1, qa_results=[])

        with pytest.raises(InvalidRecord, match="the last attempt ended as timeout"):
            record_scrum_result(timed_out, alone, now_ms=NOW)

        assert record_scrum_result(timed_out, alone | {"success": False}, now_ms=NOW)
        assert record_scrum_result(attempted(), alone, now_ms=NOW)
        assert record_scrum_result(timed_out, scrum(attempt_count=1), now_ms=NOW)

    def test_a_failure_may_have_failed_judgements(self) -> None:
        result = scrum(
            success=False,
            error="gave up",
            fatal=True,
            qa_results=[{"agent_path": UNIT, "status": "fail", "message": "x"}],
        )

        assert record_scrum_result(attempted(2), result, now_ms=NOW)["metadata"]["scrum_result"]


class TestPullRequest:
    @pytest.mark.parametrize(
        ("url", "number"),
        [
            ("https://github.com/user/repo/pull/42", 42),
            ("https://github.com/user/repo/pull/42/", 42),
            ("https://gitlab.com/g/r/-/merge_requests/7", 7),
            ("https://forge.example/x", None),
        ],
    )
    def test_the_number_is_read_from_the_url(self, url: str, number: int | None) -> None:
        found = record_pull_request(bead(), url, now_ms=NOW)

        assert found["metadata"]["pr_url"] == url
        assert found["metadata"]["pr_number"] == number
        assert found["external_ref"] == url

    def test_a_given_number_counts(self) -> None:
        found = record_pull_request(bead(), "https://forge.example/x", number=9, now_ms=NOW)

        assert found["metadata"]["pr_number"] == 9

    def test_another_pull_request_replaces_the_number(self) -> None:
        first = record_pull_request(bead(), "https://github.com/u/r/pull/1", now_ms=NOW)
        second = record_pull_request(first, "https://forge.example/x", now_ms=NOW)

        assert second["metadata"]["pr_number"] is None


class TestNextStep:
    def judged(self, *statuses: str) -> dict[str, Any]:
        found = attempted()
        for agent, status in zip((UNIT, SECURITY), statuses, strict=False):
            found = record_qa_execution(found, qa(agent_path=agent, status=status), now_ms=NOW)
        return found

    def test_all_agents_have_to_judge_it(self) -> None:
        assert next_step(self.judged("pass")) == "judge"

    def test_a_failed_dev_agent_is_tried_again(self) -> None:
        found = record_dev_execution(bead(), dev(status="timeout"), now_ms=NOW)

        assert next_step(found) == "develop"

    def test_no_attempt_follows_the_last_one(self) -> None:
        found = attempted(3)
        found = record_qa_execution(found, qa(attempt=3), now_ms=NOW)

        assert next_step(found) == "give up"
        assert attempts_left(found) == 0

    def test_feedback_is_what_the_last_attempt_failed_at(self) -> None:
        found = self.judged("fail", "pass")

        assert feedback(found) == f"{UNIT}: Unit tests failed: test_signup_duplicate_email FAILED"
        assert feedback(bead()) is None

    def test_a_limit_that_is_not_a_number_becomes_the_default(self) -> None:
        start = bead()
        start["metadata"]["max_retry_attempts"] = "many"

        assert attempts_left(start) == DEFAULT_ATTEMPTS
