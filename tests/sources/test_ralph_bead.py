"""Ralph Bead Schema"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from bead_files import FIXTURES, put_bead, ralph_bead
from hives import QuickQueen, write_lines

from queenbee import Hive

EXAMPLES = ("simple-task", "gate", "multiple-verifiers")


def example(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FIXTURES / "ralph" / f"{name}.json").read_text())
    return document


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


class TestGateBead:
    """Gate Bead"""

    def test_what_depends_on_it_waits_until_it_is_completed(self, hive: Hive, repo: Path) -> None:
        bead = example("gate")
        put_bead(repo, bead)
        put_bead(repo, ralph_bead("gt-2", "true", depends_on=[bead["id"]]))
        assert [each.id for each in hive.issues.ready()] == [bead["id"]]


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
