"""Stores of any size for the benchmarks, and the two baselines they are measured against."""

from __future__ import annotations

import glob
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

from queenbee.core.ids import RANDOM_BYTES, ulid
from queenbee.core.timestamps import format_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

DROIDS = [f"droid-{number}" for number in range(20)]
_BORN_MS = 1_700_000_000_000
_FAR_AHEAD_MS = 4_000_000_000_000


def make_hive(folder: str, *, messages: int = 0, leases: int = 0, rotate: bool = True) -> None:
    """Makes a git repository with a hive of so many messages and live reservations in it, and a
    hundred issues.

    The messages are old, and with `rotate` archived as they would be by then.
    """
    os.makedirs(os.path.join(folder, ".beads"), exist_ok=True)
    subprocess.run(["git", "init", "-q", folder], check=True)
    rng = random.Random(7)
    with open(os.path.join(folder, ".beads", "issues.jsonl"), "w", encoding="utf-8") as file:
        rows = ({"id": f"qb-{n}", "title": f"issue {n}", "status": "open"} for n in range(100))
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    if messages:
        with open(os.path.join(folder, ".beads", "queen_messages.jsonl"), "wb") as file:
            file.writelines(message_line(number, rng) for number in range(messages))
    if leases:
        with open(os.path.join(folder, ".beads", "queen_reservations.jsonl"), "wb") as file:
            file.writelines(lease_line(number, rng) for number in range(leases))
    queen(folder, "init")
    if messages and rotate:
        queen(folder, "hive", "rotate")


def everything(folder: str, path: str) -> None:
    """Writes all messages of a hive to one file: for the baseline that reads everything."""
    beads = os.path.join(folder, ".beads")
    segments = sorted(glob.glob(os.path.join(beads, "archive", "*")))
    with open(path, "wb") as file:
        for each in (*segments, *glob.glob(os.path.join(beads, "queen_messages.jsonl"))):
            with open(each, "rb") as part:
                shutil.copyfileobj(part, file)


def message_line(number: int, rng: random.Random) -> bytes:
    """Returns one line of a plausible message, about 320 bytes."""
    instant_ms = _BORN_MS + number * 1000
    sender, to = rng.sample(DROIDS, 2)
    return _line(
        {
            "id": f"qm-{ulid(instant_ms, rng.randbytes(RANDOM_BYTES))}",
            "created_at": format_ms(instant_ms),
            "from": sender,
            "to": to,
            "subject": f"[qb-{number % 5000}] Subject number {number}",
            "body": "Some text of ordinary length, about a task. " * 2,
            "issue_id": f"qb-{number % 5000}",
            "importance": "normal",
            "read": False,
            "rev": 1,
        }
    )


def lease_line(number: int, rng: random.Random) -> bytes:
    """Returns one line of a live reservation; none of them overlap."""
    instant_ms = _BORN_MS + number * 1000
    return _line(
        {
            "id": f"qr-{ulid(instant_ms, rng.randbytes(RANDOM_BYTES))}",
            "created_at": format_ms(instant_ms),
            "expires_at": format_ms(_FAR_AHEAD_MS),
            "pattern": lease_pattern(number),
            "droid": DROIDS[number % len(DROIDS)],
            "issue_id": f"qb-{number % 5000}",
            "status": "active",
            "exclusive": True,
            "rev": 1,
        }
    )


def make_years(beads: str, issues: int) -> None:
    """Adds to a hive so many issues that were done, and a hundred that were not; 2.5 times as many
    assignments and leases, which have ended, and ten times as many messages, which were read.
    """
    rng = random.Random(7)
    with open(os.path.join(beads, "issues.jsonl"), "w", encoding="utf-8") as file:
        for number in range(issues + 100):
            status = "closed" if number < issues else "open"
            row = {"id": f"qb-{number}", "title": f"issue {number}", "status": status}
            file.write(f"{json.dumps(row)}\n")
    endings = {
        "assignments": ("qa", {"assigned_by": "lead"}, {"status": "completed", "reason": "done"}),
        "reservations": ("qr", {"exclusive": True}, {"status": "released"}),
    }
    for kind, (prefix, given, ended) in endings.items():
        with open(os.path.join(beads, f"queen_{kind}.jsonl"), "ab") as file:
            for number in range(issues * 5 // 2):
                file.writelines(_ended_lines(number, issues, prefix, given, ended, rng))
    with open(os.path.join(beads, "queen_messages.jsonl"), "ab") as file:
        for number in range(issues * 10):
            sent = json.loads(message_line(number, rng))
            file.write(_line(sent))
            file.write(_line({**sent, "read": True, "rev": 2}))


def _ended_lines(
    number: int,
    issues: int,
    prefix: str,
    given: dict[str, object],
    ended: dict[str, object],
    rng: random.Random,
) -> Iterator[bytes]:
    begun_ms = _BORN_MS + number * 1000
    fields = {
        "id": f"{prefix}-{ulid(begun_ms, rng.randbytes(RANDOM_BYTES))}",
        "created_at": format_ms(begun_ms),
        "issue_id": f"qb-{number % issues}",
        "droid": DROIDS[number % len(DROIDS)],
        "status": "active",
        **given,
        "rev": 1,
    }
    end = format_ms(begun_ms + 500)
    if prefix == "qr":
        fields |= {"pattern": lease_pattern(number), "expires_at": format_ms(begun_ms + 3_600_000)}
        ended = {**ended, "released_at": end}
    yield _line(fields)
    yield _line({**fields, **ended, "updated_at": end, "rev": 2})


def lease_pattern(number: int) -> str:
    """Returns a pattern that overlaps with none of another number."""
    kind = ("src/app{0}/module{1}.py", "src/app{0}/part{1}/**", "docs/{0}/{1}/*.md")[number % 3]
    return kind.format(number % 100, number)


def queen(folder: str, *arguments: str) -> None:
    """Runs one `queen` command in a folder and fails if it does."""
    command = [sys.executable, "-c", "from queenbee.cli.main import main; main()", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


# The baselines: the same inbox from plain SQLite with an index, and by reading everything. Each is
# a program of its own that runs as one process per question, as `queen` does.

SQLITE_INBOX = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
query = 'SELECT body FROM messages WHERE "to" = ? ORDER BY at DESC LIMIT 20'
rows = db.execute(query, (sys.argv[2],))
for (body,) in rows: print(body)
"""

SQLITE_SEND = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
db.execute('PRAGMA synchronous = FULL')
with db: db.execute('INSERT INTO messages VALUES (?, ?, ?)', (sys.argv[2], time.time(), 'hello'))
"""

NAIVE_INBOX = """
import json, sys
latest = {}
with open(sys.argv[1]) as file:
    for line in file:
        record = json.loads(line)
        latest[record["id"]] = record
mine = [record for record in latest.values() if record["to"] == sys.argv[2]]
mine.sort(key=lambda record: record["created_at"], reverse=True)
for record in mine[:20]: print(record["subject"])
"""


def make_sqlite(path: str, messages: int) -> None:
    """Makes the plain SQLite baseline with the same messages."""
    if os.path.exists(path):
        os.unlink(path)
    database = sqlite3.connect(path)
    database.execute('CREATE TABLE messages ("to" TEXT, at REAL, body TEXT)')
    rng = random.Random(7)
    rows = (json.loads(message_line(number, rng)) for number in range(messages))
    database.executemany(
        "INSERT INTO messages VALUES (?, ?, ?)",
        ((row["to"], number, row["body"]) for number, row in enumerate(rows)),
    )
    database.execute('CREATE INDEX by_to ON messages ("to", at)')
    database.commit()
    database.close()


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
