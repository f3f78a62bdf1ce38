"""An index of leases reads only those whose paths can be near: whatever shares a path is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from queenbee.core.glob.index import scan_covering, scan_meeting
from queenbee.core.glob.places import places_of_path, places_of_pattern
from queenbee.store.index import records as index
from queenbee.store.index.records import Indexed
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.state import Folded

ACTIVE = {"status": "active"}
HELD = [
    "src/auth/login.py",
    "src/auth/**",
    "src/auth",
    "src/auth/core/*.py",
    "src/authors/x.py",
    "SRC/Auth/x.md",
    "src/**/*.md",
    "**/*.py",
    "docs/*.md",
    "./src//auth/./y.py",
    "{src,lib}/auth/z.py",
    r"app/\[id]/page.tsx",
    "läuft/ä.md",
    "",
    "src/[",
]
QUESTIONS = [
    "src/auth/login.py",
    "src/auth/**",
    "src/auth/*.py",
    "src/*",
    "**/*.md",
    "**",
    "{src/auth,docs}/*",
    r"app/\[id]/page.tsx",
    "läuft/*",
]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    found = Ledger(str(tmp_path / "queen_reservations.jsonl"), str(tmp_path / "journal.jsonl"))
    lines = [
        json.dumps({"id": f"qr-{n}", "pattern": text, "status": "active", "rev": 1}).encode()
        for n, text in enumerate(HELD)
    ]
    lines.append(b'{"id":"qr-none","status":"active","rev":1}')
    lines.append(b'{"id":"qr-gone","pattern":"src/auth/**","status":"released","rev":1}')
    found.append(lines, Folded("reservations", found).agreed).close()
    yield found


def indexed(ledger: Ledger, tmp_path: Path) -> Indexed:
    records = index.Indexed("reservations", ledger, str(tmp_path / "leases.sqlite3"))
    records.refresh()
    return records


def near(records, places) -> list[tuple[str, str]]:
    rows = records.project(("id", "pattern"), ACTIVE, places=places)
    assert len(rows) == len(set(rows))
    return [(key, pattern) for key, pattern in rows if isinstance(pattern, str)]


def check_nothing_is_lost(records: Indexed, folded: Folded) -> None:
    """Asserts that the index leads to the leases that a comparison with each finds."""
    everything = near(folded, None)
    for fold_case in (False, True):
        for pattern in QUESTIONS:
            found = scan_meeting(pattern, near(records, places_of_pattern(pattern)), fold_case)
            assert sorted(found) == sorted(scan_meeting(pattern, everything, fold_case))
        for path in ("src/auth/login.py", "src/auth", "docs/a.md", "app/[id]/page.tsx", "läuft/b"):
            found = scan_covering(path, near(records, places_of_path(path)), fold_case)
            assert sorted(found) == sorted(scan_covering(path, everything, fold_case))


def folded(ledger: Ledger) -> Folded:
    records = Folded("reservations", ledger)
    records.refresh()
    return records


def test_nothing_that_shares_a_path_is_left_out(ledger: Ledger, tmp_path: Path) -> None:
    records = indexed(ledger, tmp_path)
    check_nothing_is_lost(records, folded(ledger))
    records.close()


def test_a_lease_whose_pattern_changes_is_found_where_it_is_now(
    ledger: Ledger, tmp_path: Path
) -> None:
    records = indexed(ledger, tmp_path)
    moved = b'{"id":"qr-8","pattern":"lib/new/*.md","status":"active","rev":2}'
    ledger.append([moved], records.agreed).close()
    records.refresh()
    check_nothing_is_lost(records, folded(ledger))
    assert ("qr-8", "lib/new/*.md") in near(records, places_of_path("lib/new/a.md"))
    records.close()


def test_what_lies_elsewhere_is_not_read(ledger: Ledger, tmp_path: Path) -> None:
    records = indexed(ledger, tmp_path)
    patterns = {pattern for _, pattern in near(records, places_of_path("docs/a.md"))}
    assert patterns == {"docs/*.md", "./src//auth/./y.py", ""}
    records.close()


def test_the_question_goes_by_the_sorted_heads(ledger: Ledger, tmp_path: Path) -> None:
    records = indexed(ledger, tmp_path)
    for places in (places_of_path("src/auth/a.py"), places_of_pattern("src/auth/*.py")):
        for term, values in index._terms(places):
            query = (
                f"EXPLAIN QUERY PLAN SELECT id, pattern FROM records WHERE status = ? AND {term}"
            )
            plan = " ".join(str(row[-1]) for row in records._ask(query, "active", *values))
            assert "USING COVERING INDEX" in plan
            assert "status=? AND head" in plan
    records.close()


def test_a_path_that_is_not_utf_8_is_asked_for_without_harm(ledger: Ledger, tmp_path: Path) -> None:
    records = indexed(ledger, tmp_path)
    rows = near(records, places_of_path("src/auth/\udce9"))
    assert ("qr-1", "src/auth/**") in rows
    records.close()
