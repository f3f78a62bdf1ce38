"""What is a valid bead, and what its fields mean."""

from __future__ import annotations

import copy
import json
import pathlib

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.checks.check import MAX_CHECKS, Command
from queenbee.core.timestamps import instant_ms
from queenbee.documents.fields import id_problem
from queenbee.documents.findings import MAX_FINDINGS
from queenbee.documents.json_documents import format_json, parse_json
from queenbee.documents.ralph.ralph_bead import (
    backoff_s,
    bead_checks,
    bead_dependencies,
    bead_limits,
    ralph_schema,
    validate_bead,
)

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "ralph"


def example(name):
    return json.loads((FIXTURES / f"{name}.json").read_text())


def bead(**members):
    return {"intent": "Do it", "dod": {"verifiers": [{"name": "It", "command": "true"}]}} | members


def with_verifier(**members):
    return bead(dod={"verifiers": [{"name": "It", "command": "true"} | members]})


def found(document, severity):
    return [
        (finding.path, finding.message)
        for finding in validate_bead(document)
        if finding.severity == severity
    ]


VALID = {
    "nothing but what is required": bead(),
    "no verifiers": bead(dod={"verifiers": []}),
    "an unknown key": bead(owner="ui", nested={"a": [1, None]}),
    "an unknown key in a verifier": with_verifier(shell="bash"),
    "an unknown key in dod": bead(dod={"verifiers": [], "notes": "x"}),
    "every type": bead(type="bugfix"),
    "the highest priority": bead(priority=0),
    "the lowest priority": bead(priority=5),
    "a whole number written as a float": bead(priority=2.0),
    "every lane": bead(lane="experimental"),
    "every status": bead(status="blocked"),
    "a negative exit code": with_verifier(expect={"exit_code": -15}),
    "an empty expectation": with_verifier(expect={}),
    "the shortest timeout": with_verifier(timeout_seconds=1),
    "an enormous timeout": with_verifier(timeout_seconds=10**30),
    "on failure continue": with_verifier(on_failure="continue"),
    "one iteration": bead(constraints={"max_iterations": 1}),
    "a deadline in UTC": bead(constraints={"deadline": "2030-01-01T00:00:00Z"}),
    "a deadline with an offset": bead(constraints={"deadline": "2030-01-01T00:00:00+05:30"}),
    "seven digits of a second": bead(constraints={"deadline": "2030-01-01T00:00:00.1234567Z"}),
    "seven digits and an offset": bead(
        ralph_meta={"last_attempt": "2025-11-15T14:30:22.1234567+01:00"}
    ),
    "results of any shape": bead(ralph_meta={"verifier_results": [{"Name": "x"}, 5]}),
    "dependencies as ids": bead(dependencies=["gt-1", "gt-2"]),
    "dependencies as Beads writes them": bead(
        dependencies=[{"issue_id": "a", "depends_on_id": "b", "type": "blocks"}]
    ),
    "variables by name": with_verifier(env=["API_TOKEN"]),
    "variables by value": with_verifier(env={"CI": "1", "API_TOKEN": None}),
    "text in any script": bead(title="Ünïcödé 漢字 🐝", intent="日本語"),
}


@pytest.mark.parametrize("document", VALID.values(), ids=VALID)
def test_is_valid(document):
    assert found(document, "error") == []


INVALID = {
    "a list": ([], ""),
    "nothing": (None, ""),
    "no intent": ({"dod": {"verifiers": []}}, "intent"),
    "no dod": ({"intent": "x"}, "dod"),
    "no list of verifiers": (bead(dod={}), "dod.verifiers"),
    "an intent that is a number": (bead(intent=5), "intent"),
    "an intent that is null": (bead(intent=None), "intent"),
    "an id that is a number": (bead(id=7), "id"),
    "an unknown type": (bead(type="epic"), "type"),
    "a type in another case": (bead(type="Task"), "type"),
    "a negative priority": (bead(priority=-1), "priority"),
    "a priority of 6": (bead(priority=6), "priority"),
    "priority true": (bead(priority=True), "priority"),
    "priority as text": (bead(priority="1"), "priority"),
    "half a priority": (bead(priority=1.5), "priority"),
    "an unknown status": (bead(status="done"), "status"),
    "verifiers that are an object": (bead(dod={"verifiers": {}}), "dod.verifiers"),
    "more verifiers than one run can record": (
        bead(dod={"verifiers": [{"name": "x", "command": "true"}] * (MAX_CHECKS + 1)}),
        "dod.verifiers",
    ),
    "a verifier that is text": (bead(dod={"verifiers": ["true"]}), "dod.verifiers[0]"),
    "a verifier without a command": (
        bead(dod={"verifiers": [{"name": "x"}]}),
        "dod.verifiers[0].command",
    ),
    "a command that is a list": (with_verifier(command=["true"]), "dod.verifiers[0].command"),
    "a NUL in a command": (with_verifier(command="tr\0ue"), "dod.verifiers[0].command"),
    "an exit code as text": (
        with_verifier(expect={"exit_code": "0"}),
        "dod.verifiers[0].expect.exit_code",
    ),
    "an expectation that is null": (with_verifier(expect=None), "dod.verifiers[0].expect"),
    "an expected text that is null": (
        with_verifier(expect={"stdout_contains": None}),
        "dod.verifiers[0].expect.stdout_contains",
    ),
    "no time at all": (with_verifier(timeout_seconds=0), "dod.verifiers[0].timeout_seconds"),
    "evidence as text": (
        bead(dod={"verifiers": [], "evidence_required": "yes"}),
        "dod.evidence_required",
    ),
    "no iteration": (bead(constraints={"max_iterations": 0}), "constraints.max_iterations"),
    "a budget as text": (
        bead(constraints={"time_budget_minutes": "60"}),
        "constraints.time_budget_minutes",
    ),
    "a deadline that is none": (bead(constraints={"deadline": "soon"}), "constraints.deadline"),
    "a deadline without a time": (
        bead(constraints={"deadline": "2030-01-01"}),
        "constraints.deadline",
    ),
    "a deadline on 30 February": (
        bead(constraints={"deadline": "2030-02-30T00:00:00Z"}),
        "constraints.deadline",
    ),
    "ralph_meta that is a list": (bead(ralph_meta=[]), "ralph_meta"),
    "attempts as text": (bead(ralph_meta={"attempt_count": "3"}), "ralph_meta.attempt_count"),
    "results that are an object": (
        bead(ralph_meta={"verifier_results": {}}),
        "ralph_meta.verifier_results",
    ),
    "an empty id": (bead(id=""), "id"),
    "an id that leaves its folder": (bead(id="../../etc/passwd"), "id"),
    "an id with a backslash": (bead(id="..\\x"), "id"),
    "an id that is the parent": (bead(id=".."), "id"),
    "an id with a NUL": (bead(id="a\0b"), "id"),
    "an id with an escape sequence": (bead(id="a\x1b[2J"), "id"),
    "an id that is half a surrogate pair": (bead(id="\ud800"), "id"),
    "an id of 201 bytes": (bead(id="ä" * 100 + "x"), "id"),
    "dependencies that are text": (bead(dependencies="gt-1"), "dependencies"),
    "a dependency that is a number": (bead(depends_on=[5]), "depends_on[0]"),
    "a dependency that leaves its folder": (bead(depends_on=["../x"]), "depends_on[0]"),
    "a dependency object without an id": (bead(dependencies=[{}]), "dependencies[0]"),
    "variables that are text": (with_verifier(env="CI"), "dod.verifiers[0].env"),
    "a variable with a NUL": (with_verifier(env={"CI": "\0"}), "dod.verifiers[0].env"),
    "a variable with an equals sign": (with_verifier(env=["A=B"]), "dod.verifiers[0].env"),
    "a variable that is a number": (with_verifier(env={"CI": 1}), "dod.verifiers[0].env"),
}


@pytest.mark.parametrize(("document", "path"), INVALID.values(), ids=INVALID)
def test_is_not_valid(document, path):
    assert [place for place, _ in found(document, "error")] == [path]


ODD = {
    "a lane of the author's own schema": (bead(lane="gate"), "lane"),
    "on failure retry": (with_verifier(on_failure="retry"), "dod.verifiers[0].on_failure"),
    "a last attempt that is none": (
        bead(ralph_meta={"last_attempt": None}),
        "ralph_meta.last_attempt",
    ),
    "a verifier without a name": (
        bead(dod={"verifiers": [{"command": "true"}]}),
        "dod.verifiers[0].name",
    ),
    "no verifiers": (bead(dod={"verifiers": []}), "dod.verifiers"),
    "an empty intent": (bead(intent=""), "intent"),
    "an empty command": (with_verifier(command=" "), "dod.verifiers[0].command"),
    "a budget of nothing": (
        bead(constraints={"time_budget_minutes": 0}),
        "constraints.time_budget_minutes",
    ),
    "a backoff below nothing": (
        bead(ralph_meta={"retry_backoff_seconds": -5}),
        "ralph_meta.retry_backoff_seconds",
    ),
    "a deadline without an offset": (
        bead(constraints={"deadline": "2030-01-01T00:00:00"}),
        "constraints.deadline",
    ),
}


@pytest.mark.parametrize(("document", "path"), ODD.values(), ids=ODD)
def test_is_valid_but_warned_of(document, path):
    assert found(document, "error") == []
    assert [place for place, _ in found(document, "warning")] == [path]


def test_everything_wrong_is_reported_at_once():
    document = {
        "id": "../x",
        "priority": 9.5,
        "dod": {"verifiers": [{"command": 1, "on_failure": "x"}]},
        "constraints": {"max_iterations": 0, "deadline": "soon"},
    }
    assert {place for place, _ in found(document, "error")} == {
        "id",
        "intent",
        "priority",
        "dod.verifiers[0].command",
        "constraints.max_iterations",
        "constraints.deadline",
    }


FORMATS = jsonschema.FormatChecker(formats=[])
FORMATS.checks("date-time")(
    lambda value: not isinstance(value, str) or instant_ms(value) is not None
)
PATHS = [
    ("intent",),
    ("type",),
    ("priority",),
    ("lane",),
    ("status",),
    ("dod",),
    ("dod", "verifiers"),
    ("dod", "verifiers", 0),
    ("dod", "verifiers", 0, "name"),
    ("dod", "verifiers", 0, "command"),
    ("dod", "verifiers", 0, "expect"),
    ("dod", "verifiers", 0, "expect", "exit_code"),
    ("dod", "verifiers", 0, "timeout_seconds"),
    ("dod", "evidence_required"),
    ("constraints",),
    ("constraints", "max_iterations"),
]
VALUES = [None, True, 0, -1, 7, 1.5, "", "task", "a", [], {}, [1], {"a": 1}]


@given(st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(VALUES)), max_size=3))
def test_a_bead_is_valid_exactly_when_the_schema_says_so(changes):
    document = example("simple-task")
    for path, value in changes:
        _put(document, path, value)
    library = jsonschema.Draft7Validator(ralph_schema(), format_checker=FORMATS)
    faults = found(document, "error") + [
        each for each in found(document, "warning") if _decides_nothing(each[0])
    ]
    assert (not faults) == library.is_valid(document)


def _decides_nothing(path):
    return path == "lane" or path.endswith((".name", ".on_failure"))


def test_what_decides_nothing_still_gives_checks():
    (check,) = bead_checks(
        bead(dod={"verifiers": [{"command": "make test", "on_failure": "retry"}]}), "pwsh"
    )
    assert (check.name, check.on_failure) == ("make test", "stop")
    assert check.what == Command("make test", "pwsh")
    own = with_verifier(shell="bash")
    assert bead_checks(own, "pwsh")[0].what == Command("true", "bash")


def _put(document, path, value):
    *steps, last = path
    place = document
    for step in steps:
        try:
            place = place[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(place, dict) or (isinstance(place, list) and place and last == 0):
        place[last] = copy.deepcopy(value)


def test_a_rewritten_example_keeps_every_key_in_its_order():
    data = (FIXTURES / "multiple-verifiers.json").read_bytes()
    document = parse_json(data, "it") | {"x-unknown": {"z": 1, "a": 2}}
    again = format_json(parse_json(format_json(document), "it"))
    assert json.loads(again, object_pairs_hook=list) == json.loads(
        format_json(document), object_pairs_hook=list
    )


def test_a_bead_of_ten_megabytes_is_judged():
    document = bead(intent="x" * 10_000_000, priority="x" * 10_000_000)
    (finding,) = validate_bead(parse_json(format_json(document), "it"))
    assert (finding.path, len(finding.message) < 200) == ("priority", True)


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"dod": {"verifiers": [{}] * 100_000}}, "dod.verifiers"),
        ({"dependencies": [{}] * 100_000}, "dependencies"),
    ],
)
def test_only_the_first_faults_of_a_bead_are_reported(members, path):
    paths = [place for place, _ in found(bead(**members), "error")]
    assert len(paths) <= MAX_FINDINGS + 2
    assert path in paths


@pytest.mark.parametrize(
    ("first", "waits"),
    [
        pytest.param(30, [30, 60, 120, 240, 300, 300], id="the-default"),
        pytest.param(1, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300], id="one-second"),
        pytest.param(0, [0, 0, 0], id="none"),
        pytest.param(1000, [300, 300], id="over-the-longest"),
        pytest.param(-5, [0, 0], id="below-nothing"),
        pytest.param(10**400, [300], id="astronomic"),
    ],
)
def test_the_wait_doubles_to_five_minutes(first, waits):
    limits = bead_limits(bead(ralph_meta={"retry_backoff_seconds": first}))
    assert [backoff_s(limits, failed) for failed in range(1, len(waits) + 1)] == waits


def test_the_wait_stays_at_five_minutes_forever():
    assert backoff_s(bead_limits(bead()), 10**9) == 300


def test_dependencies_are_read_from_both_keys_and_both_shapes():
    document = bead(
        dependencies=[
            "gt-1",
            {"issue_id": "me", "depends_on_id": "gt-2", "type": "blocks"},
            {"issue_id": "me", "depends_on_id": "gt-9", "type": "related"},
            {"depends_on_id": "gt-3"},
        ],
        depends_on=["gt-4", "gt-1"],
    )
    assert bead_dependencies(document) == ["gt-1", "gt-2", "gt-3", "gt-4"]


@pytest.mark.parametrize("bead_id", ["gt-feature-login-001", "a", "ä" * 100, "x y", "1.2_3"])
def test_can_be_the_id_of_a_bead(bead_id):
    assert id_problem(bead_id) is None
