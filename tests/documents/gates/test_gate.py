"""What is a valid gate, what the verdict on it is, and how it goes from one status to the next."""

from __future__ import annotations

import copy
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.checks.check import MAX_CHECKS
from queenbee.documents.gates.gate import (
    TRANSITIONS,
    add_results,
    add_rule,
    begin_attempt,
    end_attempt,
    history,
    new_gate,
    remove_rule,
    validate_gate,
)
from queenbee.documents.gates.judgement import attempt_of, judge
from queenbee.errors import Conflict, InvalidInput, NotFound

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "gates"
NOW_MS = 1_763_217_020_000
NOW = "2025-11-15T14:30:20.000Z"


def example(name):
    return json.loads((FIXTURES / f"{name}.json").read_text())


def rule(rule_id="a", severity=None, **members):
    made = {"rule_id": rule_id, "rule_type": "test_pass", "rule_config": {"test_command": "true"}}
    return made | ({"severity": severity} if severity else {}) | members


def result(rule_id="a", status="passed", at="2025-11-15T14:00:00Z", **members):
    made = {"result_id": f"res_{rule_id}_{at}", "rule_id": rule_id, "validated_at": at}
    return made | {"status": status} | members


def gate(rules=(), results=(), status="in_progress", **members):
    document = example("new-gate")
    document["validation_config"]["rules"] = list(rules)
    document["validation_execution"]["results"] = list(results)
    document["status"] |= {"current_status": status, "total_count": len(rules)}
    return document | members


def put(document, path, value):
    """Returns a copy with one value replaced, or removed where the value is `...`."""
    changed = copy.deepcopy(document)
    *steps, last = path
    place = changed
    for step in steps:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return changed


def found(document, severity):
    return [finding.path for finding in validate_gate(document) if finding.severity == severity]


VALID = {
    "no rules": gate(),
    "an unknown key anywhere": put(gate([rule(x=1)], x=1), ("metadata", "x"), None),
    "times that are absent": put(gate(), ("metadata", "started_at"), ...),
    "seven digits of a second": put(
        gate(), ("metadata", "created_at"), "2025-11-15T14:30:22.1234567+01:00"
    ),
    "no errors": put(gate(), ("status", "errors"), ...),
    "a rule of each severity": gate([rule("a", "error"), rule("b", "warning")]),
    "a rule without a severity": gate([rule()]),
    "a result of each status": gate(
        [rule("a"), rule("b"), rule("c")],
        [result("a"), result("b", "failed"), result("c", "skipped")],
    ),
    "a later minor version": gate(schema_version="1.7"),
    "a rule type of a later version": gate([rule(rule_type="coverage")], schema_version="1.1"),
    "a status of a later version": put(
        gate(schema_version="1.1"), ("status", "current_status"), "waived"
    ),
}


@pytest.mark.parametrize("document", VALID.values(), ids=VALID)
def test_is_valid(document):
    assert found(document, "error") == []


INVALID = {
    "a list": ([], ""),
    "no version": (put(gate(), ("schema_version",), ...), "schema_version"),
    "version 2.0": (gate(schema_version="2.0"), "schema_version"),
    "version 0.9": (gate(schema_version="0.9"), "schema_version"),
    "version one": (gate(schema_version="1"), "schema_version"),
    "a version with a newline": (gate(schema_version="1.0\n"), "schema_version"),
    "a version with other digits": (gate(schema_version="١.٠"), "schema_version"),
    "a version of a thousand digits": (gate(schema_version="1." + "9" * 5000), ""),
    "a version that is a number": (gate(schema_version=1.0), "schema_version"),
    "no metadata": (put(gate(), ("metadata",), ...), "metadata"),
    "no phase": (put(gate(), ("metadata", "phase_id"), ...), "metadata.phase_id"),
    "no workflow": (put(gate(), ("metadata", "workflow_id"), ...), "metadata.workflow_id"),
    "no time of creation": (put(gate(), ("metadata", "created_at"), ...), "metadata.created_at"),
    "a time of creation that is null": (
        put(gate(), ("metadata", "created_at"), None),
        "metadata.created_at",
    ),
    "a time that is none": (
        put(gate(), ("metadata", "started_at"), "yesterday"),
        "metadata.started_at",
    ),
    "rules that are an object": (
        put(gate(), ("validation_config", "rules"), {}),
        "validation_config.rules",
    ),
    "a rule that is text": (gate(["x"]), "validation_config.rules[0]"),
    "a rule without an id": (
        gate([put(rule(), ("rule_id",), ...)]),
        "validation_config.rules[0].rule_id",
    ),
    "two rules with one id": (gate([rule(), rule()]), "validation_config.rules[1].rule_id"),
    "an unknown rule type": (
        gate([rule(rule_type="coverage")]),
        "validation_config.rules[0].rule_type",
    ),
    "an unknown severity": (gate([rule("a", "fatal")]), "validation_config.rules[0].severity"),
    "a rule without a config": (
        gate([put(rule(), ("rule_config",), ...)]),
        "validation_config.rules[0].rule_config",
    ),
    "a rule with a wrong config": (
        gate([rule(rule_config={})]),
        "validation_config.rules[0].rule_config.test_command",
    ),
    "no results": (
        put(gate(), ("validation_execution", "results"), ...),
        "validation_execution.results",
    ),
    "a result without a status": (
        gate([rule()], [put(result(), ("status",), ...)]),
        "validation_execution.results[0].status",
    ),
    "an unknown result": (
        gate([rule()], [result(status="ok")]),
        "validation_execution.results[0].status",
    ),
    "a result without a time": (
        gate([rule()], [result(at="now")]),
        "validation_execution.results[0].validated_at",
    ),
    "details that are text": (
        gate([rule()], [result(details="x")]),
        "validation_execution.results[0].details",
    ),
    "an unknown status": (
        put(gate(), ("status", "current_status"), "open"),
        "status.current_status",
    ),
    "no counter": (put(gate(), ("status", "passed_count"), ...), "status.passed_count"),
    "a counter below nothing": (put(gate(), ("status", "failed_count"), -1), "status.failed_count"),
    "a counter that is true": (put(gate(), ("status", "total_count"), True), "status.total_count"),
    "an error without a message": (
        put(gate(), ("status", "errors"), [{"error_id": "e", "timestamp": NOW}]),
        "status.errors[0].message",
    ),
}


@pytest.mark.parametrize(("document", "path"), INVALID.values(), ids=INVALID)
def test_is_not_valid(document, path):
    assert found(document, "error") == ([path] if path or document == [] else [])


ODD = {
    "a passed count that is wrong": (
        put(gate([rule()]), ("status", "passed_count"), 1),
        "status.passed_count",
    ),
    "a total that is wrong": (
        put(gate([rule()]), ("status", "total_count"), 5),
        "status.total_count",
    ),
    "a status that the results do not bear out": (
        gate([rule()], status="passed"),
        "status.current_status",
    ),
    "a result of no rule": (
        gate([rule()], [result("gone")]),
        "validation_execution.results[0].rule_id",
    ),
    "two results with one id": (
        put(gate([rule()], [result(), result()], status="passed"), ("status", "passed_count"), 1),
        "validation_execution.results[1].result_id",
    ),
    "a pattern of another dialect": (
        gate(
            [rule(rule_type="content_match", rule_config={"file_path": "/a", "patterns": ["*x"]})]
        ),
        "validation_config.rules[0].rule_config.patterns",
    ),
    "a path that is not absolute": (
        gate([rule(rule_type="file_exists", rule_config={"file_path": "a"})]),
        "validation_config.rules[0].rule_config.file_path",
    ),
}


@pytest.mark.parametrize(("document", "path"), ODD.values(), ids=ODD)
def test_is_valid_but_warned_of(document, path):
    assert (found(document, "error"), found(document, "warning")) == ([], [path])


VERDICTS = {
    "every rule passed": ([rule("a"), rule("b")], [result("a"), result("b")], "passed"),
    "one failed": ([rule("a"), rule("b")], [result("a"), result("b", "failed")], "failed"),
    "one has not run": ([rule("a"), rule("b")], [result("a")], "in_progress"),
    "one was skipped": ([rule()], [result(status="skipped")], "in_progress"),
    "one failed and one has not run": ([rule("a"), rule("b")], [result("b", "failed")], "failed"),
    "a warning failed": (
        [rule("a"), rule("b", "warning")],
        [result("a"), result("b", "failed")],
        "passed",
    ),
    "a warning has not run": ([rule("a"), rule("b", "warning")], [result("a")], "passed"),
    "a warning passed, an error failed": (
        [rule("a"), rule("b", "warning")],
        [result("a", "failed"), result("b")],
        "failed",
    ),
    "only warnings, which failed": (
        [rule("a", "warning")],
        [result("a", "failed")],
        "passed",
    ),
    "only warnings, which have not run": ([rule("a", "warning")], [], "in_progress"),
    "no rules": ([], [], "in_progress"),
    "a severity of a later version": ([rule("a", "fatal")], [result("a", "failed")], "failed"),
    "a result of a later version": ([rule()], [result(status="waived")], "in_progress"),
    "failed, then passed": (
        [rule()],
        [result(status="failed"), result(at="2025-11-15T14:00:01Z")],
        "passed",
    ),
    "passed, then failed": (
        [rule()],
        [result(), result(status="failed", at="2025-11-15T14:00:01Z")],
        "failed",
    ),
    "passed, then skipped": (
        [rule()],
        [result(), result(status="skipped", at="2025-11-15T14:00:01Z")],
        "in_progress",
    ),
    "the newest does not stand last": (
        [rule()],
        [result(status="failed", at="2025-11-15T14:00:01Z"), result()],
        "failed",
    ),
    "two of one instant": ([rule()], [result(status="failed"), result()], "passed"),
    "one instant in two zones": (
        [rule()],
        [result(status="failed", at="2025-11-15T15:00:00+01:00"), result()],
        "passed",
    ),
    "a result of a rule that is gone": ([rule()], [result(), result("gone", "failed")], "passed"),
}


@pytest.mark.parametrize(("rules", "results", "status"), VERDICTS.values(), ids=VERDICTS)
def test_the_verdict_is_that_of_the_latest_results(rules, results, status):
    assert judge(gate(rules, results)).status == status


@pytest.mark.parametrize("claimed", TRANSITIONS)
def test_the_verdict_does_not_believe_the_status(claimed):
    failed = gate([rule()], [result(status="failed")], status=claimed)
    passed = gate([rule()], [result()], status=claimed)
    assert (judge(failed).status, judge(passed).status) == ("failed", "passed")


STATUSES = st.sampled_from(["passed", "failed", "skipped"])


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), STATUSES)), st.randoms())
def test_a_gate_never_passes_with_an_error_rule_that_did_not_pass_last(ran, chance):
    results = [
        result(rule_id, status, at=f"2025-11-15T14:00:00.{number:03d}Z")
        for number, (rule_id, status) in enumerate(ran)
    ]
    chance.shuffle(results)
    passed = judge(gate([rule("a"), rule("b"), rule("c", "warning")], results)).passed
    last = dict(ran)
    assert passed == (last.get("a") == "passed" and last.get("b") == "passed")


@pytest.mark.parametrize("bad", ["", "../x", "a/b", "a\0b", ".x", "x" * 201])
@pytest.mark.parametrize("noun", ["workflow_id", "phase_id"])
def test_an_id_that_is_not_a_file_name_is_refused(noun, bad):
    ids = {"workflow_id": "wf", "phase_id": "one"} | {noun: bad}
    with pytest.raises(InvalidInput, match=r"is not a (workflow|phase) id"):
        new_gate(**ids, phase_name="One", now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param(rule("a"), "rule_id: is also an earlier rule", id="a-known-id"),
        pytest.param(rule("b", rule_config={}), "test_command: is required", id="no-command"),
        pytest.param(rule("b", rule_type="x"), "rule_type: must be one of", id="unknown-type"),
        pytest.param({"rule_id": "b"}, "rule_type: is required", id="half-a-rule"),
        pytest.param(
            rule(
                "b", rule_type="content_match", rule_config={"file_path": "/a", "patterns": ["("]}
            ),
            "can never match",
            id="no-pattern",
        ),
    ],
)
def test_a_rule_that_cannot_be_used_is_not_added(wrong, message):
    with pytest.raises(InvalidInput, match=message):
        add_rule(gate([rule("a")]), wrong)


def test_a_gate_has_no_more_rules_than_one_run_can_record():
    many = [rule(f"r{number}") for number in range(MAX_CHECKS)]
    assert found(gate(many), "error") == []
    assert found(gate([*many, rule("one more")]), "error") == ["validation_config.rules"]
    with pytest.raises(InvalidInput, match="a gate can have at most 500"):
        add_rule(gate(many), rule("one more"))


def test_an_interrupted_attempt_continues():
    document = gate([rule()], status="in_progress")
    assert begin_attempt(document, NOW_MS) == document


def test_the_latest_result_of_a_rule_decides():
    results = [result(), result(status="failed", at="2025-11-15T14:00:01Z")]
    assert judge(gate([rule()], results)).status == "failed"


@pytest.mark.parametrize("status", ["in_progress", "failed", "passed"])
def test_a_gate_does_not_pass_because_the_rule_that_failed_is_gone(status):
    document = gate([rule("a"), rule("b")], [result("a"), result("b", "failed")], status=status)
    removed = remove_rule(document, "b")
    assert (judge(removed).status, judge(removed).passed) == ("pending", False)
    ran = end_attempt(
        add_results(
            begin_attempt(removed, NOW_MS),
            [result("a", at=NOW)],
            attempt=2,
            now_ms=NOW_MS,
        ),
        NOW_MS,
    )
    assert judge(ran).passed


def test_a_rule_is_removed_before_the_first_run_without_a_new_attempt():
    removed = remove_rule(gate([rule("a"), rule("b")], status="pending"), "a")
    assert len(history(removed)) == 1


def test_a_rule_that_does_not_exist_or_has_passed_is_not_removed():
    with pytest.raises(NotFound, match="has no rule 'x'; its rules are: a"):
        remove_rule(gate([rule()]), "x")
    with pytest.raises(Conflict, match="has passed and keeps its rules"):
        remove_rule(gate([rule()], [result()], status="passed"), "a")


@pytest.mark.parametrize(
    ("rules", "results"),
    [
        pytest.param([rule()], [], id="without-results"),
        pytest.param([rule()], [result(status="skipped")], id="skipped"),
        pytest.param([rule()], [result(status="failed")], id="failed"),
        pytest.param([rule(), rule("b")], [result()], id="with-a-rule-added-by-hand"),
    ],
)
def test_a_pass_that_the_results_do_not_bear_out_can_be_run_again(rules, results):
    document = begin_attempt(gate(rules, results, status="passed"), NOW_MS)
    assert (document["status"]["current_status"], attempt_of(document)) == ("in_progress", 2)
    assert [attempt["status"] for attempt in history(document)] == ["passed", "in_progress"]
    assert add_rule(gate(rules, results, status="passed"), rule("new"))


def test_results_of_an_earlier_attempt_do_not_pass_the_rules_that_have_not_run_again():
    """Attempt 1 passed `b` only and attempt 2, killed, `a` only: nobody saw both pass."""
    failed = gate([rule("a"), rule("b")], [result("a", "failed"), result("b")], status="failed")
    began = begin_attempt(failed, NOW_MS)
    killed = add_results(began, [result("a", at=NOW)], attempt=2, now_ms=NOW_MS)
    assert judge(killed).blocking == ("b: not run",)
    assert (judge(killed).status, killed["status"]["passed_count"]) == ("in_progress", 1)
    assert validate_gate(killed) == []


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(gate([rule()], [result()], status="passed"), id="passed"),
        pytest.param(gate([rule()], [result(status="failed")], status="failed"), id="failed"),
        pytest.param(
            begin_attempt(gate([rule()], [result(status="failed")], status="failed"), NOW_MS),
            id="in-its-next-attempt",
        ),
    ],
)
def test_results_of_an_attempt_that_another_run_ended_are_refused(document):
    with pytest.raises(Conflict, match=r"another run ended attempt 1 of "):
        end_attempt(add_results(document, [result(at=NOW)], attempt=1, now_ms=NOW_MS), NOW_MS)


def test_the_last_recorded_result_is_the_latest_even_if_the_clock_was_set_back():
    document = end_attempt(
        add_results(
            gate([rule()], [result(at="2030-01-01T00:00:00Z")]),
            [result(status="failed", at="2020-01-01T00:00:00Z", message="no", details={})],
            attempt=1,
            now_ms=NOW_MS,
        ),
        NOW_MS,
    )
    assert document["status"]["current_status"] == "failed"


def test_unknown_keys_survive_a_whole_attempt():
    document = gate([rule(x=1)], schema_version="1.4", waivers=[{"by": "human"}], status="pending")
    document["validation_execution"]["engine"] = {"z": 1, "a": 10**30}
    document["status"]["retry_count"] = 0
    finished = end_attempt(
        add_results(begin_attempt(document, NOW_MS), [result(x=2)], attempt=1, now_ms=NOW_MS),
        NOW_MS,
    )
    assert (finished["schema_version"], finished["waivers"]) == ("1.4", [{"by": "human"}])
    assert finished["validation_execution"]["engine"] == {"z": 1, "a": 10**30}
    assert finished["validation_config"]["rules"][0]["x"] == 1
    assert finished["validation_execution"]["results"][0]["x"] == 2
    assert finished["status"]["retry_count"] == 0
    assert list(finished)[:5] == list(document)[:5]
