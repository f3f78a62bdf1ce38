"""The four rule types in both spellings: what is wrong with one, and what comes of one."""

from __future__ import annotations

import json
import os
import pathlib

import pytest

from queenbee.checks import run_checks
from queenbee.documents.gates.rule_types import (
    gate_result,
    judged,
    rule_check,
    rule_findings,
)

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "gates"
ENV = {"PATH": os.environ["PATH"]}
NOW_MS = 1_763_217_020_000


def example(name):
    return json.loads((FIXTURES / f"{name}.json").read_text())


def rule(rule_type, config, **members):
    return {"rule_id": "it", "rule_type": rule_type, "rule_config": config} | members


def findings(rule_type, config):
    return [
        (finding.severity, finding.path)
        for finding in rule_findings(rule(rule_type, config), "rules[0]")
    ]


def run(one, cwd):
    (checked,) = run_checks([rule_check(one)], cwd=str(cwd), env=ENV)
    return gate_result(one, judged(checked), result_id="res_1", now_ms=NOW_MS, evidence=None)


def script(folder, text):
    path = folder / "validate.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("rule_type", "config"),
    [
        pytest.param("file_exists", {"path": "/a", "type": "directory"}, id="path-and-type"),
        pytest.param(
            "content_match",
            {"file_path": "/a", "pattern": "x", "match_type": "literal", "case_sensitive": False},
            id="pattern-and-match-type",
        ),
        pytest.param(
            "test_pass",
            {"command": "true", "working_directory": "/tmp", "expected_exit_code": 1},
            id="command-and-working-directory",
        ),
        pytest.param("custom", {"script_path": "/a", "script_args": ["x"]}, id="script-args"),
        pytest.param("custom", {"script_path": "/a", "type": "coverage"}, id="an-unknown-key"),
        pytest.param("test_pass", {"test_command": "true", "timeout_seconds": None}, id="null"),
        pytest.param("test_pass", {"test_command": "true", "env": ["CI"]}, id="variables"),
        pytest.param("file_exists", {"path": "/a", "file_path": "/a"}, id="both-say-the-same"),
        pytest.param("coverage", {"anything": 1}, id="a-type-of-a-later-version"),
    ],
)
def test_the_validators_own_spelling_is_read_too(rule_type, config):
    assert findings(rule_type, config) == []


WRONG = {
    "no path": ("file_exists", {}, "file_path"),
    "an empty path": ("file_exists", {"file_path": ""}, "file_path"),
    "a path with a NUL": ("file_exists", {"path": "/a\0"}, "path"),
    "a path that is a list": ("file_exists", {"file_path": ["/a"]}, "file_path"),
    "an unknown file type": ("file_exists", {"path": "/a", "type": "socket"}, "type"),
    "two paths": ("file_exists", {"path": "/a", "file_path": "/b"}, "path"),
    "no patterns": ("content_match", {"file_path": "/a"}, "patterns"),
    "an empty list of patterns": ("content_match", {"file_path": "/a", "patterns": []}, "patterns"),
    "an empty pattern": ("content_match", {"file_path": "/a", "patterns": ["x", ""]}, "patterns"),
    "patterns that are text": ("content_match", {"file_path": "/a", "patterns": "x"}, "patterns"),
    "an unknown way to match": (
        "content_match",
        {"file_path": "/a", "pattern": "x", "match_type": "glob"},
        "match_type",
    ),
    "case as text": (
        "content_match",
        {"file_path": "/a", "pattern": "x", "case_sensitive": "no"},
        "case_sensitive",
    ),
    "no command": ("test_pass", {}, "test_command"),
    "a command with a NUL": ("test_pass", {"test_command": "a\0"}, "test_command"),
    "a command that is a list": ("test_pass", {"command": ["x"]}, "command"),
    "an exit code as text": (
        "test_pass",
        {"test_command": "x", "expected_exit_code": "0"},
        "expected_exit_code",
    ),
    "no time": ("test_pass", {"test_command": "x", "timeout_seconds": 0}, "timeout_seconds"),
    "time as text": (
        "test_pass",
        {"test_command": "x", "timeout_seconds": "30"},
        "timeout_seconds",
    ),
    "time that is true": (
        "test_pass",
        {"test_command": "x", "timeout_seconds": True},
        "timeout_seconds",
    ),
    "a folder that is a number": (
        "test_pass",
        {"test_command": "x", "working_directory": 5},
        "working_directory",
    ),
    "no script": ("custom", {"args": []}, "script_path"),
    "arguments as text": ("custom", {"script_path": "/a", "args": "x"}, "args"),
    "an argument that is a number": ("custom", {"script_path": "/a", "args": [5]}, "args"),
    "an argument with a NUL": (
        "custom",
        {"script_path": "/a", "script_args": ["\0"]},
        "script_args",
    ),
    "a variable with a NUL": ("custom", {"script_path": "/a", "env": {"A": "\0"}}, "env"),
}


@pytest.mark.parametrize(("rule_type", "config", "name"), WRONG.values(), ids=WRONG)
def test_a_wrong_config_is_reported_with_its_path(rule_type, config, name):
    assert findings(rule_type, config) == [("error", f"rules[0].rule_config.{name}")]


@pytest.mark.parametrize(
    ("rule_type", "config", "name"),
    [
        pytest.param("file_exists", {"file_path": "a/b"}, "file_path", id="relative-path"),
        pytest.param("custom", {"script_path": "check.sh"}, "script_path", id="relative-script"),
        pytest.param(
            "content_match", {"file_path": "/a", "patterns": ["("]}, "patterns", id="bad-pattern"
        ),
    ],
)
def test_an_odd_config_is_warned_of(rule_type, config, name):
    assert findings(rule_type, config) == [("warning", f"rules[0].rule_config.{name}")]


def test_rules_have_the_limits_of_their_config():
    checks = [
        rule_check(rule("test_pass", example("test-pass-config"))),
        rule_check(rule("custom", example("custom-config"))),
        rule_check(rule("content_match", example("content-match-config"))),
        rule_check(rule("test_pass", {"test_command": "x"})),
    ]
    assert [check.timeout_s for check in checks] == [30, 60, 30, 300]


@pytest.mark.parametrize(
    ("config", "status"),
    [
        pytest.param({"file_path": "folder"}, "failed", id="file_path-means-a-file"),
        pytest.param({"path": "folder"}, "passed", id="path-means-anything"),
        pytest.param({"file_path": "folder", "type": "directory"}, "passed", id="asked-for"),
        pytest.param({"path": "folder", "type": "file"}, "failed", id="not-asked-for"),
    ],
)
def test_a_folder_is_a_file_only_in_the_validators_spelling(config, status, tmp_path):
    (tmp_path / "folder").mkdir()
    assert run(rule("file_exists", config), tmp_path)["status"] == status


@pytest.mark.parametrize(
    ("config", "status"),
    [
        pytest.param({"patterns": ["def add\\(", "class Cal"]}, "passed", id="patterns"),
        pytest.param({"patterns": ["def add\\(", "gone"]}, "failed", id="one-missing"),
        pytest.param({"pattern": "def add("}, "passed", id="a-pattern-is-plain-text"),
        pytest.param({"pattern": "def .*"}, "failed", id="unless-it-says-regex"),
        pytest.param({"pattern": "def .*", "match_type": "regex"}, "passed", id="regex"),
        pytest.param({"pattern": "CLASS"}, "failed", id="case-matters"),
        pytest.param({"pattern": "CLASS", "case_sensitive": False}, "passed", id="or-not"),
        pytest.param({"patterns": ["def ."], "match_type": "literal"}, "failed", id="literal"),
    ],
)
def test_content_is_matched_in_both_spellings(config, status, tmp_path):
    (tmp_path / "a.py").write_text("class Calculator:\n    def add(a, b): ...\n")
    found = run(rule("content_match", {"file_path": "a.py"} | config), tmp_path)
    assert found["status"] == status, found["message"]
    assert set(example("content-match-details")) <= set(found["details"])


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        pytest.param("exit 0", "passed", "exit code 0", id="exit-0"),
        pytest.param("exit 1", "failed", "exit code 1", id="exit-1"),
        pytest.param("""echo '{"status": "passed"}'""", "passed", "exit code 0", id="says-passed"),
        pytest.param(
            """echo '{"status": "failed", "message": "79 %"}'""", "failed", "79 %", id="says-failed"
        ),
        pytest.param("""echo '{"status": "skipped"}'""", "skipped", "skipped", id="says-skipped"),
        pytest.param("""echo '{"status": 5}'""", "failed", "says 5", id="says-nonsense"),
        pytest.param(
            """echo '{"status": "passed"}'; exit 1""", "failed", "exit code 1", id="but-exit-1"
        ),
        pytest.param(
            """echo '{"status": "skipped"}'; exit 1""", "failed", "exit code 1", id="skipped-exit-1"
        ),
        pytest.param("echo '{torn'", "passed", "exit code 0", id="says-no-json"),
        pytest.param("echo '[]'", "passed", "exit code 0", id="says-a-list"),
        pytest.param("""echo '{"total": 5}'""", "passed", "exit code 0", id="says-no-status"),
    ],
)
def test_a_script_can_take_its_pass_back_by_what_it_prints(text, status, message, tmp_path):
    found = run(rule("custom", {"script_path": script(tmp_path, text)}), tmp_path)
    assert (found["status"], message in found["message"]) == (status, True), found["message"]


def test_a_script_gets_its_arguments_in_either_spelling(tmp_path):
    path = script(tmp_path, 'test "$1" = "a b"')
    for name in ("args", "script_args"):
        config = {"script_path": path, name: ["a b"]}
        assert run(rule("custom", config), tmp_path)["status"] == "passed"
