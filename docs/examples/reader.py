"""Reads a hive without QueenBee, by the rules of docs/format.md: python reader.py, at its top."""

import glob
import hashlib
import json
import os
import sqlite3
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ALIASES = {"agent": "droid", "previous_agent": "previous_droid"}


def usable(raw):
    """Returns the fields of a line, or None."""
    try:
        fields = json.loads(raw.decode())
        json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
        if len(raw) >= 1024 * 1024 or not isinstance(fields, dict) or depth(fields) > 128:
            return None
    except (ValueError, RecursionError):
        return None
    if "_migration" in fields or not (isinstance(fields.get("id"), str) and fields["id"]):
        return None
    return fields


def depth(value):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (1 if isinstance(value, dict | list) else 0) + max(map(depth, inside), default=0)


def instant(value):
    """Returns a timestamp in ms since 1970, or -1."""
    try:
        when = datetime.fromisoformat(value.upper())
    except (AttributeError, ValueError):
        return -1
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return (when - EPOCH) // timedelta(milliseconds=1) if len(value) >= 19 else -1


def fold(lines, aliases=ALIASES):
    """Returns the records of these lines, by id."""
    arrived = {}
    for raw in lines:
        fields = usable(raw)
        if fields is None:
            continue
        for theirs, ours in aliases.items():
            if theirs in fields:
                fields.setdefault(ours, fields[theirs])
        seen = arrived.setdefault(fields["id"], [])
        rev = fields.get("rev")
        if type(rev) is int and 1 <= rev < 2**53:
            if any(raw == other for _, other, _ in seen):
                continue
        elif seen and seen[-1][1] == raw:
            continue
        else:
            rev = seen[-1][0] + 1 if seen else 1
        seen.append((rev, raw, fields))
    return {identifier: merge(sorted(seen, key=place)) for identifier, seen in arrived.items()}


def place(line):
    rev, raw, fields = line
    status = fields.get("status", "active")
    final = {"active": 0, "expired": 1}.get(status, 2) if isinstance(status, str) else 0
    final = final if rev < 2**53 - 1 else 0
    newest = max((instant(v) for k, v in fields.items() if k.endswith("_at")), default=-1)
    return rev, final, newest, hashlib.sha256(raw).digest()


def merge(lines):
    record, last, raised = {}, 0, set()
    for rev, _, fields in lines:
        raised = raised if rev == last else set()
        raised |= {flag for flag in ("read", "deleted") if fields.get(flag) is True}
        record |= fields | dict.fromkeys(raised, True)
        last = rev
    born = [fields["created_at"] for _, _, fields in lines if fields.get("created_at")]
    return record | ({"created_at": born[0]} if born else {}) | {"rev": last}


def content(path):
    return open(path, "rb").read() if os.path.exists(path) else b""


def lines_of(data):
    return [line.removesuffix(b"\r") for line in data.split(b"\n") if line.strip()]


def read(beads, state, kind):
    """Returns all lines of a kind: those of the memory, then what only the tracked files have."""
    known = []
    if os.path.exists(f"{state}/hive.sqlite3"):
        memory = sqlite3.connect(f"{state}/hive.sqlite3")
        rows = memory.execute(
            "SELECT raw FROM lines WHERE kind = ? AND loose = 0 ORDER BY seq", [kind]
        )
        known = [raw for (raw,) in rows]
    archive = f"{beads}/archive/queen_{kind}"
    segments = sorted(glob.glob(f"{archive}.*.jsonl"), key=lambda name: int(name.split(".")[-2]))
    there = [line for name in segments for line in lines_of(content(name))]
    there += lines_of(content(f"{beads}/queen_{kind}.jsonl"))
    return known + [line for line in there if line not in set(known)]


if __name__ == "__main__":
    for kind in ("assignments", "reservations"):
        for record in fold(read(".beads", ".git/queenbee", kind)).values():
            print(record["rev"], record["droid"], record["status"], record["issue_id"])
