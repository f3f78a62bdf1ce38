"""A hive with a long history: the page stays small, and says what it leaves out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hives import START_MS, QuickQueen
from report_worlds import Seen
from stamps import format_ms

pytestmark = pytest.mark.slow

ISSUES, MESSAGES, LEASES, RUNS = 2_000, 2_000, 1_500, 1_300
MINUTE_MS = 60_000


def at(minutes: float) -> str:
    return format_ms(START_MS - 30 * 86_400_000 + int(minutes * MINUTE_MS))


def write(path: Path, *rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def large(repo: Path) -> Path:
    beads = repo / ".beads"
    write(
        beads / "issues.jsonl",
        *(
            {
                "id": f"qb-{n}",
                "title": f"Issue {n} " * 20,
                "status": "closed" if n < 900 else "open",
                "created_at": at(n),
                "dependencies": [f"qb-{n - 1 - n % 7}", f"qb-{n // 2}"] if n else [],
                "metadata": {"phase": str(n // 10), "plan_file": "plan.md"},
            }
            for n in range(ISSUES)
        ),
    )
    write(
        beads / "queen_messages.jsonl",
        *(
            {"id": f"qm-{n}", "created_at": at(n / 20), "from": f"d{n % 50}", "to": "ui", "rev": 1}
            | {"subject": "s" * 900, "body": "text " * 900}
            for n in range(MESSAGES)
        ),
    )
    write(
        beads / "queen_reservations.jsonl",
        *(
            {
                "id": f"qr-{n}",
                "created_at": at(n),
                "expires_at": at(n + 9),
                "pattern": f"p{n % 40}/**",
            }
            | {"droid": f"droid-{n % 90}", "reason": "r" * 900, "released_by": f"d{n % 9}"}
            | {"status": "released", "released_at": at(n + 5), "rev": 1}
            for n in range(LEASES)
        ),
    )
    write(
        beads / "queen_assignments.jsonl",
        *(
            {"id": f"qa-{n}", "created_at": at(n + 3), "updated_at": at(n + 90), "rev": 1}
            | {"issue_id": f"qb-{n}", "droid": f"droid-{n % 90}", "status": "completed"}
            for n in range(900)
        ),
    )
    write(
        beads / "queen_verifications.jsonl",
        *(
            {"id": f"qv-{n}", "created_at": at(n), "subject_kind": "bead", "verdict": "failed"}
            | {"subject_id": f"bd-{n % 99}", "rev": 1}
            | {"results": [{"name": "n" * 200, "reason": "r" * 2_000}] * 9}
            for n in range(RUNS)
        ),
    )
    return repo


def test_a_page_and_a_comment_are_of_bounded_size(quick: QuickQueen, large: Path) -> None:
    page = quick("report").out
    assert len(page.encode()) < 2 * 1024 * 1024
    said = Seen(page).text
    for words in (
        "60 of 200 phases are shown.",
        "200 of 1,100 open issues are shown.",
        "Threads are made of the newest 600 of 2,000 messages.",
        "The time line has 400 of 2,400 assignments and leases.",
        "50 of 1,500 conflicts that were met are shown.",
        "60 of 99 beads and gates with checks are shown.",
        "2,000 issues are not in the graph.",
    ):
        assert words in said
    assert len(quick("report", "--format", "md").out) < 60_000
