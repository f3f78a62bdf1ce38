"""Beads, plans and gates on disk, as tests of `queen` and of whole runs need them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hives import exported

FIXTURES = Path(__file__).parent / "documents" / "fixtures"

PLAN = """\
# Accounts

## Phase 1: Foundation

### Sprint 1.1: Setup

**Dev Agents:** `claude`
**QA Agents:** `claude` - Run the tests
**Tasks:**
- Create the project

## Phase 2: Login

### Sprint 2.1a: API

**Dev Agents:** `claude`
**QA Agents:** `claude` - Run the tests
**Tasks:**
- Write the endpoint

### Sprint 2.1b: Page

**Dev Agents:** `claude`
**QA Agents:** `claude` - Run the tests
**Tasks:**
- Build the page
"""

ATTEMPT = {
    "session_id": "s-1",
    "agent_path": "claude",
    "model": "sonnet",
    "started_at": "2026-02-07T10:00:00Z",
    "completed_at": "2026-02-07T10:15:00Z",
    "status": "completed",
}
JUDGEMENT = {**ATTEMPT, "session_id": "q-1", "status": "pass", "message": "all pass"}


def ralph_bead(identifier: str = "gt-1", *commands: str, **more: object) -> dict[str, Any]:
    """Returns a Ralph bead whose verifiers are these commands."""
    verifiers = [{"name": f"check {n}", "command": text} for n, text in enumerate(commands, 1)]
    bead = {"id": identifier, "intent": f"do {identifier}", "dod": {"verifiers": verifiers}}
    return {**bead, "ralph_meta": {"retry_backoff_seconds": 0}, **more}


def put_bead(repo: Path, bead: dict[str, Any], folder: str = ".beads/active") -> Path:
    """Writes a bead where beads are looked for, and returns its file."""
    path = repo / folder / f"{bead['id']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bead))
    return path


def sprint_row(identifier: str = "bd-1", **metadata: object) -> dict[str, Any]:
    """Returns the document's work bead with the fields that its example lacks."""
    row = json.loads((FIXTURES / "sprint" / "work-bead.json").read_text())
    row |= {"id": identifier, "dependencies": []}
    row["metadata"] |= {"team_name": "sprint-1.2-auth", "agent_type": "dev"}
    for agent in row["metadata"]["qa_agents"]:
        agent |= {"agent_type": "qa", "agent_path": "claude"}
    row["metadata"]["qa_agents"] = row["metadata"]["qa_agents"][:1]
    row["metadata"]["qa_agents"][0]["output_schema"] = {
        "type": "object",
        "properties": {
            "status": {"enum": ["pass", "fail", "stop"]},
            "message": {"type": "string"},
            "coverage": {"type": "number"},
        },
        "required": ["status", "message"],
    }
    row["metadata"] |= metadata
    return row


def ids_by_sprint(issues: Path) -> dict[str, str]:
    """Returns the bead of each sprint in the tracker's file, once the hive has written it."""
    rows = exported(issues)
    return {row["metadata"]["plan_sprint_id"]: row["id"] for row in rows if "metadata" in row}
