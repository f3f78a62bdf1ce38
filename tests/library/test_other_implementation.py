"""Another implementation, in JavaScript and from docs/format.md alone, reads and writes a hive."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import written_documents
from hives import Queen, write_lines

PROGRAM = Path(__file__).with_name("hive.mjs")
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None, reason="node is not installed"),
]


def javascript(repo: Path, what: str, *arguments: str) -> str:
    """Runs it under the lock, as the page says that a writer does."""
    lock = repo / ".git" / "queenbee" / "lock"
    line = ["flock", str(lock), str(NODE), str(PROGRAM), what, str(repo / ".beads"), *arguments]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.strip()


def read(repo: Path, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(javascript(repo, "read", kind))
    return found


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock(1) is not installed")
def test_it_reads_what_queen_wrote_and_queen_reads_what_it_wrote(repo: Path, queen: Queen) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "Tax", "status": "open"})
    assert queen("claim", "qb-1", as_="ui").code == 0
    assert queen("reserve", "src/**", "--issue", "qb-1", as_="ui").code == 0
    assert queen("reserve", "renew", "--all", as_="ui").code == 0
    said = queen("msg", "send", "api", "größer \u2028 “so”", "--new", "--json", as_="ui").json[0]
    assert queen("msg", "read", as_="api").code == 0

    ledger = repo / ".beads" / "queen_assignments.jsonl"
    foreign = {"id": "qa-2", "agent": "api", "issue_id": "qb-2", "status": "active"}
    with ledger.open("ab") as file:
        file.write(b'{"id":"torn\r\n\n<<<<<<< HEAD\n' + json.dumps(foreign).encode())

    (lease,) = queen("reserve", "list", "--json").json
    shown = read(repo, "reservations")[lease["id"]]
    assert {name: lease[name] for name in shown} == shown
    assert read(repo, "messages")[said["id"]]["body"] == said["body"]
    assert read(repo, "messages")[said["id"]]["read"] is True
    (held, other) = read(repo, "assignments").values()
    assert (held["droid"], held["status"], other["droid"]) == ("ui", "active", "api")
    assert [each["id"] for each in queen("issue", "assignments", "--json").json] == [
        "qa-2", held["id"],
    ]  # fmt: skip

    sent = javascript(repo, "message", "api", "ui", "from elsewhere")
    javascript(repo, "release", held["id"])
    (mail,) = queen("msg", "inbox", "--json", as_="ui").json
    assert (mail["id"], mail["from"], mail["body"]) == (sent, "api", "from elsewhere")
    active = queen("issue", "assignments", "--json").json
    assert [each["id"] for each in active] == ["qa-2"]
    assert queen("claim", "qb-1", as_="api").code == 0
    for name in ("messages", "assignments"):
        path = repo / ".beads" / f"queen_{name}.jsonl"
        written_documents.check_line(path.read_bytes().splitlines()[-1], path.name)
