"""A hive with a past.

Written by us, by foreign tools and by other clones; rotated, merged, damaged; with lines that
only the ledger, only the memory, or only the archive has. It is made alike each time, so that
what commands say of two of them can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bead_files import PLAN, put_bead, ralph_bead, sprint_row
from hives import START_MS, Clock, QuickQueen, write_lines
from raw_files import record
from session_folders import build
from stamps import format_ms

DROIDS = ("ui-engineer", "reviewer", "tester", "writer")
KINDS = ("messages", "assignments", "reservations")
_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS
_WORDS = ("button", "login", "guide", "build", "cache", "token", "header", "größe")

Row = dict[str, Any]


def write_past(
    quick: QuickQueen, clock: Clock, then: Callable[[], None], *, is_taken: bool = True
) -> None:
    """Makes the hive in `quick.cwd`, and calls `then` half way. With `is_taken`, git takes lines
    away in the end, which are in the memory alone from then on.
    """
    repo = quick.cwd
    beads = repo / ".beads"
    _documents(repo)
    write_lines(beads / "issues.jsonl", *(_issue(n) for n in range(1, 51)))
    rows = {"messages": _messages(), "assignments": _assignments(), "reservations": _leases()}
    for kind, lines in rows.items():
        record(repo, kind, *(json.dumps(line).encode() for line in lines))
    _work(quick, clock, 1)
    then()
    _work(quick, clock, 5)
    quick("hive", "rotate", "--older-than", "20h")
    _work(quick, clock, 9)
    _foreign_lines(beads)
    _pulled_segments(beads)
    _rewritten_by_git(beads / "queen_messages.jsonl")
    _work(quick, clock, 13)
    if is_taken:
        _taken_by_git(beads)


def ids(repo: Path) -> dict[str, str]:
    """Returns records of a kind each, for the commands that take an id."""
    return {
        "message": _id("qm", 79),
        "other": _id("qm", 77),
        "old": _id("qm", 3),
        "assignment": _id("qa", 79),
        "lease": _id("qr", 89),
        "plan": str(repo / "accounts.md"),
        "issues": str(repo / "issues.csv"),
        "session": str(repo / ".workflow" / "TC-auth"),
    }


def _id(prefix: str, number: int) -> str:
    return f"{prefix}-01JF0000000000000000{number:06}"


def _at(number: int, of: int) -> str:
    """Returns an instant of the two days before the present, by the number of a record."""
    return format_ms(START_MS - 2 * _DAY_MS + number * (2 * _DAY_MS // of))


def _issue(number: int) -> Row:
    status = "closed" if number in (7, 14, 21) else "open"
    return {"id": f"qb-{number}", "title": f"Issue {number}", "status": status, "priority": 2}


def _messages() -> list[Row]:
    lines: list[Row] = []
    for n in range(80):
        words = f"{_WORDS[n % 8]} and {_WORDS[n // 8 % 8]}, said {_WORDS[n % 3]} " * (1 + n % 5)
        lines.append(
            {
                "id": _id("qm", n),
                "created_at": _at(n, 80),
                "from": DROIDS[n % 4],
                "to": DROIDS[(n // 4 + n + 1) % 4],
                "subject": f"{_WORDS[n % 5]} {n}",
                "body": words,
                "issue_id": f"qb-{1 + n % 20}" if n % 3 else None,
                "thread_id": _id("qm", n - n % 6) if n % 6 else None,
                "importance": "normal",
                "ack_by": _at(n + 2, 80) if n % 9 == 0 else None,
                "read": False,
                "rev": 1,
            }
        )
    seen = {"read": True, "rev": 2}
    lines += [
        {**line, **seen, "read_at": _at(77, 80)} for line in lines if int(line["id"][-3:]) % 4 == 0
    ]
    gone = [{**lines[n], "deleted": True, "deleted_at": _at(78, 80), "rev": 2} for n in (5, 50, 78)]
    return [
        {key: value for key, value in line.items() if value is not None} for line in lines + gone
    ]


def _assignments() -> list[Row]:
    lines = []
    for n in range(80):
        over = n < 70
        begun = {
            "id": _id("qa", n),
            "created_at": _at(n, 80),
            "issue_id": f"qb-{1 + n % 20}" if over else f"qb-{n - 49}",
            "droid": DROIDS[n % 4],
            "assigned_by": DROIDS[(n + n // 7) % 4],
            "status": "active",
            "rev": 1,
        }
        lines.append(begun)
        if over:
            how = ("completed", "released", "reassigned")[n % 3]
            end = {"status": how, "updated_at": _at(n + 1, 80), "rev": 2}
            lines.append({**begun, **end, "reason": f"reason {n}"})
    return lines


def _leases() -> list[Row]:
    lines = []
    for n in range(90):
        live = n >= 60
        begun = {
            "id": _id("qr", n),
            "created_at": _at(n, 90),
            "expires_at": format_ms(START_MS + (n - 59) * 9 * _MINUTE_MS)
            if live
            else _at(n + 9, 90),
            "pattern": f"src/part{n}/**" if n % 2 else f"docs/{n}*.md",
            "droid": DROIDS[n % 4],
            "exclusive": n % 5 != 0,
            "issue_id": f"qb-{1 + n % 20}",
            "reason": f"work on {_WORDS[n % 8]}",
            "status": "active",
            "rev": 1,
        }
        lines.append(begun)
        if not live and n % 3 == 0:
            by = DROIDS[n // 3 % 4]
            end = {"status": "released", "released_at": _at(n + 5, 90), "released_by": by}
            lines.append({**begun, **end, "rev": 2})
    return lines


def _documents(repo: Path) -> None:
    (repo / "accounts.md").write_text(PLAN)
    (repo / "issues.csv").write_text("number,title,state\n7,Search,open\n8,Find,closed\n")
    (repo / "src" / "part61").mkdir(parents=True)
    (repo / "src" / "part61" / "x.py").touch()
    put_bead(repo, ralph_bead("gt-1", "true"))
    put_bead(repo, ralph_bead("gt-2", "false"))
    write_lines(repo / ".beads" / "issues.jsonl", sprint_row("bd-1"))
    build(repo / ".workflow" / "TC-auth")


def _work(quick: QuickQueen, clock: Clock, number: int) -> None:
    """Does an hour's work, with commands."""
    clock.advance(15 * 60)
    for words, droid in (
        (f"msg send --new reviewer,tester header-{number} --issue qb-{number}", "ui-engineer"),
        (f"msg reply {_id('qm', 70 + number // 2)} noted-{number}", "writer"),
        (f"claim qb-{number + 31}", "tester"),
        (f"reserve lib/{number}/** --ttl 1h", "reviewer"),
        (f"reserve lib/{number}.py --ttl 10m", "ui-engineer"),
        (f"release qb-{number + 31} --reason later", "tester"),
    ):
        assert quick(*words.split(" "), as_=droid).code == 0, words
        clock.advance(60)


def _foreign_lines(beads: Path) -> None:
    """What other programs and other people's editors leave: to two ledgers without `rev`."""
    write_lines(beads / "queen_messages.jsonl", "{torn", "<<<<<<< ours", '["no record"]')
    write_lines(
        beads / "queen_assignments.jsonl",
        {"id": "qa-go", "agent": "reviewer", "issue_id": "qb-25", "status": "active"},
        "not json at all",
        {"id": "qa-go", "agent": "reviewer", "issue_id": "qb-25", "status": "completed"},
        {"id": "qa-go", "agent": "tester", "issue_id": "qb-26", "status": "active"},
        {"id": "qa-odd", "droid": ["a"], "issue_id": 7, "status": 5, "created_at": "x", "rev": 1},
        {"_migration": "v1_to_v2", "at": "2024-12-14T10:00:00Z"},
    )
    odd = {
        "id": "qr-odd",
        "created_at": 5,
        "expires_at": 9e9,
        "pattern": {"a": 1},
        "droid": "tester",
    }
    write_lines(
        beads / "queen_reservations.jsonl",
        {"id": "qr-go", "agent": "tester", "pattern": "src/part61/x.py", "exclusive": True}
        | {"created_at": _at(89, 90), "expires_at": "2024-12-15T00:00:00Z", "status": "active"},
        {**odd, "status": "active", "rev": 1},
        "=======",
        {"id": "qr-go", "expires_at": "2024-12-16T00:00:00Z", "status": "active"},
    )


def _pulled_segments(beads: Path) -> None:
    """What another clone moved to its archive: some of it was never seen here."""
    for kind, rows in (
        ("messages", [{**_messages()[n], "id": _id("qm", 900 + n)} for n in range(8)]),
        ("reservations", [{**_leases()[n], "id": _id("qr", 900 + n)} for n in range(8)]),
    ):
        write_lines(beads / "archive" / f"queen_{kind}.7.jsonl", *rows, "{torn")


def _rewritten_by_git(path: Path) -> None:
    """A merge: what the others wrote stands in the middle, and the file is another one."""
    lines = path.read_bytes().splitlines(keepends=True)
    theirs = [{**row, "id": _id("qm", 700 + n)} for n, row in enumerate(_messages()[30:45])]
    path.unlink()
    middle = len(lines) // 2
    path.write_bytes(b"".join(lines[:middle]))
    write_lines(path, *theirs, "|||||||", ">>>>>>> theirs")
    with path.open("ab") as file:
        file.write(b"".join(lines[middle:]))


def _taken_by_git(beads: Path) -> None:
    """A checkout: the last lines are in the memory alone. One writer was cut off since."""
    for kind in KINDS:
        path = beads / f"queen_{kind}.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.unlink()
        path.write_bytes(b"".join(lines[:-6]))
    with (beads / "queen_assignments.jsonl").open("ab") as file:
        file.write(b'{"id":"qa-torn","droid":"te')
