"""Any bytes in place of a ledger: read, folded, judged and shown without a crash.

The bytes are drawn at random from seeds of nasty lines, a million in three minutes; with
`--guided`, by coverage, where atheris is installed. An execution that raises anything is a failure.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Sequence

import orjson

from queenbee.core.beads import read_rows
from queenbee.core.fold import Table, explicit_rev
from queenbee.core.kinds import KINDS
from queenbee.core.leases import as_of
from queenbee.core.readiness import missing_blockers, standings, startable
from queenbee.core.records import Assignment, Message, Reservation
from queenbee.core.standing import superseded_assignments, superseded_leases
from queenbee.services.history import revisions
from queenbee.store import codec
from queenbee.store.codec import Unusable, encode
from queenbee.store.files import split_lines
from queenbee.store.layout import discover
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.memory.recorded import Recorded
from tests.torture.places import require

NOW_MS = 1_734_172_200_000
AT = b'"created_at":"2024-12-14T10:30:00Z"'
LINES = {
    "sent": b'{"id":"qm-1","rev":1,%s,"from":"ui","to":"api","read":false}' % AT,
    "read": b'{"id":"qm-1","rev":2,"read":true,"read_at":"2024-12-14T10:36:00Z"}',
    "leased": b'{"id":"qr-1","rev":1,%s,"expires_at":"2024-12-14T12:30:00Z","pattern":"src/**",'
    b'"droid":"ui","status":"active","exclusive":true}' % AT,
    "leased by a foreign tool": b'{"id":"qr-2","created_at":"2024-12-14T10:31:00+01:00",'
    b'"pattern":"src/*","agent":"b"}',
    "given": b'{"id":"qa-1","issue_id":"qb-1","droid":"ui","status":"active",%s}' % AT,
    "ended": b'{"id":"qa-2","issue_id":"qb-1","droid":"api","status":"completed"}',
    "issue": b'{"id":"qb-1","status":"open","priority":0,"dependencies":[{"issue_id":"qb-1",'
    b'"depends_on_id":"qb-2","type":"blocks"},"qb-3"],"updated_at":"2024-12-14T10:30:00.123456Z"}',
    "conflict": b'<<<<<<< HEAD\n{"id":"a","rev":3}\n=======\n{"id":"a","rev":3,"x":1}\n>>>>>>> x',
    "migration": b'{"_migration":"v1_to_v2","at":"2024-12-14T10:00:00Z"}',
    "deep": b'{"id":"a","x":' + b"[" * 200 + b"]" * 200 + b"}",
}
SEEDS = tuple(line + b"\n" for line in LINES.values())
TOKENS = (
    *(bytes([byte]) for byte in b'{}[]",:\\\n\r\t 0123456789-+.eE'),
    b"\0",
    b"\0" * 64,
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\\ud83d",
    b"\\u0000",
    b'"rev":',
    b'"id":"qm-1",',
    b'"created_at":',
    b'"deleted":true,',
    b'"status":"released",',
    b"NaN",
    b"1e999",
    b"-0.0",
    b"9" * 40,
    b"18446744073709551616",
    b"9007199254740993",
    b"null",
    b"true",
    b"<<<<<<< HEAD\n",
    b"9999-12-31T23:59:59-23:59",
    b"0001-01-01T00:00:00+23:59",
    b"[" * 300,
    b'{"a":' * 300,
)


def execute(data: bytes) -> None:
    """Reads bytes as a ledger and as issues; raises where anything goes wrong."""
    usable: list[tuple[bytes, dict[str, object]]] = []
    for line in split_lines(data):
        fields = _decoded(line)
        if fields is not None:
            usable.append((line, fields))
    records = [pair for pair in usable if "_migration" not in pair[1]]
    table = _folded(records)
    if all(explicit_rev(fields) is not None for _, fields in records):
        again = _folded([*reversed(records), *records])
        require(
            {key: entry.fields for key, entry in again.entries.items()}
            == {key: entry.fields for key, entry in table.entries.items()},
            "the fold depends on the order of the lines",
        )
    _show(table)
    issues = read_rows(fields for _, fields in records)
    startable(standings(issues, holders={}, now_ms=NOW_MS, held_back={}).values(), "ui")
    missing_blockers(issues)
    for issue in issues.values():
        issue.to_dict()


def _decoded(line: bytes) -> dict[str, object] | None:
    found: list[object] = []
    for loads in (orjson.loads, codec._strict_loads):
        try:
            found.append(codec._checked(line, loads))
        except Unusable as error:
            found.append(str(error))
    require(repr(found[0]) == repr(found[1]), f"the decoders differ: {found}")
    fields = found[0]
    return fields if isinstance(fields, dict) else None


def _folded(records: list[tuple[bytes, dict[str, object]]]) -> Table:
    table = Table(KINDS["reservations"].aliases)
    for raw, fields in records:
        table.add(raw, fields)
    return table


def _show(table: Table) -> None:
    leases, given = [], []
    for entry in table.entries.values():
        for kind in (Message, Assignment, Reservation):
            record = kind(entry.fields)
            record.to_dict()
            require(isinstance(record.created_ms, int), "a record without an age")
        Message(entry.fields).thread  # noqa: B018 - must not raise
        leases.append(as_of(entry.fields, NOW_MS))
        given.append(Assignment(entry.fields))
        encode(entry.fields)
        lines = [{**line.fields, "rev": line.rev} for line in entry.lines]
        for kind_name in ("messages", "assignments", "reservations"):
            for revision in revisions(kind_name, lines):
                revision.to_dict()
    superseded_leases(leases)
    superseded_assignments(given)


def execute_on_disk(folder: str, data: bytes, later: bytes) -> None:
    """Lets bytes stand in a ledger; reads, lets others append, writes, and reads again."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, ".beads"))
    layout = discover(folder, {})
    os.makedirs(layout.state_dir)
    path = layout.ledger_path("reservations")
    with open(path, "wb") as file:
        file.write(data)
    memory = FilesMemory(layout)
    state = Recorded("reservations", memory)
    state.refresh()
    with open(path, "ab") as file:
        file.write(later)
    state.refresh()
    before = {fields["id"] for fields in state.everything()}
    memory.write({"reservations": [b'{"id":"fresh","rev":1}']})
    state.refresh()
    after = Recorded("reservations", FilesMemory(layout))
    after.refresh()
    seen = {fields["id"] for fields in after.everything()}
    require(seen == before | {"fresh"}, f"a write changed what is seen: {before ^ seen}")
    require(
        {fields["id"] for fields in state.everything()} == seen, "a follower sees something else"
    )
    memory.close()
    with open(path, "rb") as file:
        require(file.read().startswith(data + later), "bytes of others were changed")


def mutated(rng: random.Random) -> bytes:
    """Returns a seed after a few random changes."""
    data = bytearray(rng.choice(SEEDS))
    while rng.random() < 0.5:
        data += rng.choice(SEEDS)
    return with_changes(rng, data, TOKENS)


def with_changes(rng: random.Random, data: bytearray, tokens: Sequence[bytes]) -> bytes:
    """Returns bytes after a few random changes; `tokens` are what is put in."""
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        what = rng.random()
        if what < 0.35:
            data[at:at] = rng.choice(tokens)
        elif what < 0.6 and at < len(data):
            data[at] = rng.randrange(256)
        elif what < 0.8:
            del data[at : at + rng.randrange(1, 12)]
        else:
            data[at:at] = data[at : at + rng.randrange(1, 60)]
    return bytes(data)


def run(executions: int, folder: str, *, seed: int = 1) -> dict[str, object]:
    """Executes so often; returns the figures. Raises at the first failure, which it prints."""
    rng = random.Random(seed)
    begun = time.monotonic()
    on_disk = 0
    for number in range(executions):
        data = mutated(rng)
        try:
            execute(data)
            if number % 200 == 0:
                on_disk += 1
                execute_on_disk(folder, data, mutated(rng))
        except BaseException:
            print(f"execution {number} (seed {seed}): {data!r}", file=sys.stderr)
            raise
    seconds = round(time.monotonic() - begun, 1)
    return {"executions": executions, "on_disk": on_disk, "crashes": 0, "seconds": seconds}


def run_guided(executions: int, folder: str) -> None:
    """The same, guided by coverage. Ends the process when done."""
    import atheris

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], f"-runs={executions}", folder], execute)
    for number, data in enumerate(SEEDS):
        with open(os.path.join(folder, f"seed-{number}"), "wb") as file:
            file.write(data)
    atheris.Fuzz()
