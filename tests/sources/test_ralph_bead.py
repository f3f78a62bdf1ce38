"""Ralph Bead Schema"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from bead_files import FIXTURES, put_bead, ralph_bead
from hives import QuickQueen, write_lines
from stamps import parse_ms

from queenbee import Hive
from queenbee.checks import Command
from queenbee.documents.ralph.ralph_bead import bead_checks, bead_limits, validate_bead
from queenbee.workflows import loop
from queenbee.workflows.running import verify

EXAMPLES = ("simple-task", "gate", "multiple-verifiers")


def example(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FIXTURES / "ralph" / f"{name}.json").read_text())
    return document


def verified(hive: Hive, repo: Path, **verifier: object) -> str:
    """Returns the verdict on a bead with this one verifier."""
    dod = {"verifiers": [{"name": "It", "command": "true", **verifier}]}
    put_bead(repo, ralph_bead("gt-1") | {"dod": dod})
    return verify(hive, "gt-1", env=os.environ)["verdict"]


class TestOverview:
    """Overview"""

    def test_a_bead_is_a_json_file_with_a_definition_of_done(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        path = put_bead(repo, ralph_bead("gt-1", "true"))
        assert quick("bead", "validate", str(path)).code == 0


class TestSchemaDefinition:
    """Schema Definition"""

    def test_the_schema_that_is_printed_is_the_documents(self, quick: QuickQueen) -> None:
        wanted = json.loads((FIXTURES / "ralph" / "schema.json").read_text())
        assert quick("bead", "schema", "ralph", "--json").json == wanted


class TestSimpleTaskBead:
    """Simple Task Bead"""

    def test_it_is_valid_and_its_checks_are_read(self) -> None:
        bead = example("simple-task")
        assert validate_bead(bead) == []
        assert [(each.name, each.timeout_s) for each in bead_checks(bead)] == [
            ("Build succeeds", 120), ("Tests pass", 60),
        ]  # fmt: skip
        assert (bead_limits(bead).max_iterations, bead_limits(bead).time_budget_s) == (5, 3600)


class TestGateBead:
    """Gate Bead"""

    def test_what_depends_on_it_waits_until_it_is_completed(self, hive: Hive, repo: Path) -> None:
        bead = example("gate")
        put_bead(repo, bead)
        put_bead(repo, ralph_bead("gt-2", "true", depends_on=[bead["id"]]))
        assert [each.id for each in hive.issues.ready()] == [bead["id"]]


class TestBeadWithMultipleVerifiers:
    """Bead with Multiple Verifiers"""

    def test_one_that_continues_lets_the_next_run(self) -> None:
        checks = bead_checks(example("multiple-verifiers"))
        assert [each.on_failure for each in checks] == ["stop", "continue", "stop", "stop"]

    def test_after_one_that_stops_no_other_runs(self, hive: Hive, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "false", "true"))
        record = verify(hive, "gt-1", env=os.environ)
        assert [one["status"] for one in record["results"]] == ["failed", "skipped"]


class TestRequiredFields:
    """Required Fields"""

    @pytest.mark.parametrize("missing", ["intent", "dod"])
    def test_each_is_required(self, missing: str) -> None:
        bead = {key: value for key, value in example("gate").items() if key != missing}
        assert [each.severity for each in validate_bead(bead)] == ["error"]

    @pytest.mark.differs(
        'no verifiers are "missing verifiers"',
        "valid, with a warning; verifying refuses it",
        "the schema allows it",
    )
    def test_a_bead_without_verifiers_cannot_be_verified(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1"))
        assert quick("bead", "validate", "gt-1").code == 0
        assert quick("bead", "verify", "gt-1", as_="ui").code == 2


class TestVerifierFields:
    """Verifier Fields"""

    def test_the_defaults_are_the_documents(self) -> None:
        (check,) = bead_checks(ralph_bead("gt-1", "true"))
        assert (check.expect.exit_code, check.expect.stdout_contains) == (0, None)
        assert (check.timeout_s, check.on_failure) == (300, "stop")

    @pytest.mark.differs(
        "commands run in PowerShell",
        "in `/bin/sh -c`, or in the verifier's `shell`",
        "the document's own examples are shell commands",
    )
    def test_a_command_runs_in_a_shell(self) -> None:
        (check,) = bead_checks(ralph_bead("gt-1", "echo a | grep a && true"))
        assert check.what == Command("echo a | grep a && true", "sh")

    @pytest.mark.parametrize(
        ("command", "expect", "verdict"),
        [
            ("exit 3", {"exit_code": 3}, "passed"),
            ("echo yes", {"stdout_contains": "yes"}, "passed"),
            ("echo yes", {"stdout_contains": "no"}, "failed"),
            ("echo no >&2", {"stderr_contains": "no"}, "passed"),
        ],
    )
    def test_what_is_expected_decides(
        self, hive: Hive, repo: Path, command: str, expect: dict[str, object], verdict: str
    ) -> None:
        assert verified(hive, repo, command=command, expect=expect) == verdict

    def test_a_command_that_takes_longer_than_its_timeout_fails(
        self, hive: Hive, repo: Path
    ) -> None:
        assert verified(hive, repo, command="sleep 60", timeout_seconds=1) == "failed"


class TestConstraintFields:
    """Constraint Fields"""

    def test_each_ends_the_loop(self) -> None:
        bead = ralph_bead("gt-1", "true")
        bead["constraints"] = {
            "max_iterations": 2, "time_budget_minutes": 5, "deadline": "2026-02-07T10:00:00Z",
        }  # fmt: skip
        limits = bead_limits(bead)
        assert (limits.max_iterations, limits.time_budget_s) == (2, 300)
        assert limits.deadline_ms == parse_ms("2026-02-07T10:00:00Z")

    @pytest.mark.differs(
        "the executor doubles `retry_backoff_seconds` before its first wait",
        "the first wait is as long as the field says, and the field keeps its value",
        "that is what the name means",
    )
    def test_the_loop_ends_after_its_iterations(self, hive: Hive, repo: Path) -> None:
        bead = ralph_bead("gt-1", "false", constraints={"max_iterations": 2})
        put_bead(repo, bead)
        outcome = loop.run(hive, "gt-1", lambda: "true", env=os.environ)
        assert (outcome.why, outcome.attempts) == ("max_iterations", 2)
        assert outcome.bead.document["ralph_meta"]["retry_backoff_seconds"] == 0

    @pytest.mark.differs(
        "results in `verifier_results` are `Name`, `Passed`, `Reason`, `Timestamp`",
        "the fields of a record's results",
        "they lead to the evidence; the schema leaves them open",
    )
    def test_the_bead_keeps_its_results(self, hive: Hive, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        verify(hive, "gt-1", env=os.environ)
        (bead,) = hive.documents.ralph_beads().files  # type: ignore[union-attr]
        (result,) = bead.document["ralph_meta"]["verifier_results"]
        assert (result["name"], result["status"]) == ("check 1", "passed")


class TestValidation:
    """Validation"""

    def test_a_missing_intent_is_named(self, quick: QuickQueen, tmp_path: Path) -> None:
        path = tmp_path / "my-bead.json"
        path.write_text('{"dod": {"verifiers": []}}')
        done = quick("bead", "validate", str(path))
        assert (done.code, "intent is required" in done.out) == (1, True)


class TestStorageLocations:
    """Storage Locations"""

    def test_full_managed_by_the_tracker(self, quick: QuickQueen, hive: Hive, beads: Path) -> None:
        dod = ralph_bead("gt-abc", "false")["dod"]
        write_lines(
            beads / "issues.jsonl", {"id": "gt-abc", "title": "x", "status": "open", "dod": dod}
        )
        quick("claim", "gt-abc", as_="ui")
        assert quick("complete", "gt-abc", as_="ui").code == 1

    @pytest.mark.parametrize("folder", [".ralph/beads", ".beads/active", ".beads/completed"])
    def test_in_files(self, quick: QuickQueen, repo: Path, folder: str) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"), folder)
        assert quick("bead", "validate", "gt-1").code == 0

    @pytest.mark.differs(
        "moving a bead keeps a backup of its file",
        "none; the old file is the backup until the new one exists",
        "a crash leaves one bead, and no leftover files",
    )
    def test_a_completed_bead_moves(self, quick: QuickQueen, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        quick("claim", "gt-1", as_="ui")
        assert quick("complete", "gt-1", as_="ui").code == 0
        assert os.listdir(repo / ".beads" / "active") == []
        assert os.listdir(repo / ".beads" / "completed") == ["gt-1.json"]


class TestSeeAlso:
    """See Also"""

    @pytest.mark.differs(
        "the schema is in `.beads/schemas/`",
        "`queen bead schema ralph` prints it",
        "a copy in the hive would go stale",
    )
    def test_the_schema_is_printed(self, quick: QuickQueen) -> None:
        assert quick("bead", "schema", "ralph", "--json").json["title"] == "Ralph Bead"
