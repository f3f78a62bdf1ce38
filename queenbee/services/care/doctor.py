"""`queen doctor`: what is wrong with a hive's files, and the repairs that cannot lose anything.

It looks at the files themselves, with file and line number, and is the oracle of the tests.
"""

from __future__ import annotations

import os

from queenbee.core import beads
from queenbee.core.glob import pattern as globs
from queenbee.core.records import Message, Reservation
from queenbee.core.timestamps import instant_ms
from queenbee.errors import BadPattern, QueenError
from queenbee.services.care.rotation import MOST_BYTES
from queenbee.services.transaction import Transaction
from queenbee.store import setup
from queenbee.store.files import START, Original, read_after, size_of
from queenbee.store.ledger.codec import CONFLICT_MARKERS, Unusable, decoder
from queenbee.store.state import Folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.services.hive import Hive

_CLOCK_SLACK_MS = 24 * 3_600_000


class Finding:
    """One thing that is wrong, where, and what to do about it."""

    __slots__ = ("code", "file", "fixed", "hint", "line", "message", "severity")

    def __init__(
        self,
        code: str,
        file: str,
        message: str,
        *,
        line: int | None = None,
        hint: str | None = None,
        severity: str = "error",
    ) -> None:
        self.code = code
        self.file = file
        self.line = line
        self.message = message
        self.hint = hint
        self.severity = severity
        """`error`: something is wrong; `note`: worth knowing, nothing is."""
        self.fixed = False

    def to_dict(self) -> dict[str, object]:
        """Returns the finding as plain values."""
        return {name: getattr(self, name) for name in sorted(self.__slots__)}


def examine(hive: Hive) -> list[Finding]:
    """Returns everything that is wrong or worth knowing; an empty list for a sound hive."""
    found: list[Finding] = []
    try:
        found += _settings(hive)
    except QueenError as error:
        path = os.path.join(hive.layout.beads_dir, ".gitattributes")
        found.append(Finding(error.code, path, error.message, hint=error.hint))
    for kind in hive.kinds():
        try:
            for path in _tracked_files(hive, kind):
                found += _tracked_file(path)
            found += _size(hive, kind)
            found += _two_files(hive, kind)
            found += _records(hive, kind)
            found += _index(hive, kind)
        except QueenError as error:
            path = hive.layout.ledger_path(kind)
            found.append(Finding(error.code, path, error.message, hint=error.hint))
    try:
        found += _issues(hive)
        found += _conflicts(hive)
        found += hive.documents.examine()
    except QueenError as error:
        found.append(Finding(error.code, hive.layout.issues_path, error.message, hint=error.hint))
    return found


def repair(hive: Hive) -> list[Finding]:
    """Repairs what can be repaired without losing a byte that counts; returns all findings,
    those that no longer stand marked as fixed.

    Heals journal and ledgers, ends torn lines, takes conflict markers out (and nothing else),
    restores `.gitattributes`, builds an index anew that says what the ledger does not.
    """
    before = examine(hive)
    with hive.transaction() as tx:
        setup.add_attributes(hive.layout)
        for kind in hive.kinds():
            if any(each.code == "conflict_marker" for each in before):
                for path in _tracked_files(hive, kind):
                    _without_markers(path)
            _heal(tx, kind)
    if any(each.code == "index" for each in before):
        hive.rebuild_indexes()
    hive.documents.repair()
    left = {_key(finding) for finding in examine(hive)}
    for finding in before:
        finding.fixed = _key(finding) not in left
    return before


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.file, finding.message


def _heal(tx: Transaction, kind: str) -> None:
    tx.touch(kind)


def _tracked_files(hive: Hive, kind: str) -> list[str]:
    archive = hive.ledger(kind).archive
    return [hive.layout.ledger_path(kind), *map(archive.path, archive.listing())]


def _without_markers(path: str) -> None:
    original = Original(path)
    try:
        lines = original.data.split(b"\n")
        kept = [line for line in lines if not line.startswith(CONFLICT_MARKERS)]
        if len(kept) != len(lines):
            original.replace_by(b"\n".join(kept))
    finally:
        original.close()


def _settings(hive: Hive) -> Iterator[Finding]:
    places = hive.layout
    path = os.path.join(places.beads_dir, ".gitattributes")
    lines = [line.strip() for line in setup.read_attributes(places).splitlines()]
    if setup.ATTRIBUTES not in lines:
        yield Finding(
            "attributes",
            path,
            "git does not know how to merge the ledgers: two branches will conflict",
            hint="queen doctor --fix",
        )
    for name in places.settings.unknown:
        yield Finding(
            "unknown_setting",
            os.path.join(places.beads_dir, "queen.toml"),
            f"the setting {name!r} is unknown to this version and has no effect",
            severity="note",
        )


def _tracked_file(path: str) -> Iterator[Finding]:
    chunk = read_after(path, START)
    lines = (chunk.lines + chunk.rest).split(b"\n")
    if chunk.rest:
        yield Finding(
            "torn",
            path,
            "the last line has no end: a write was cut off, or an editor left it out",
            line=len(lines),
            hint="queen doctor --fix ends it; nothing is taken away",
        )
    decode = decoder(len(chunk.lines))
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix(b"\r")
        if not line or line.isspace():
            continue
        try:
            fields = decode(line)
        except Unusable as error:
            marker = line.startswith(CONFLICT_MARKERS)
            hint = "queen doctor --fix takes the marker out" if marker else "it is left alone"
            code = "conflict_marker" if marker else "unusable_line"
            yield Finding(code, path, f"not a record: {error}", line=number, hint=hint)
            continue
        if "_migration" in fields:
            text = f"migrated {fields['_migration']!s} at {fields.get('at')!s}"
            yield Finding("migration", path, text, line=number, severity="note")


def _size(hive: Hive, kind: str) -> Iterator[Finding]:
    path = hive.layout.ledger_path(kind)
    size = size_of(path)
    if size > MOST_BYTES:
        yield Finding(
            "large",
            path,
            f"it has {size // 2**20} MiB; git keeps a copy of it with every commit, and hosts "
            "refuse files of 100 MiB",
            hint="queen rotate",
            severity="note",
        )


def _two_files(hive: Hive, kind: str) -> Iterator[Finding]:
    missing = hive.ledger(kind).missing()
    if missing:
        # Each worktree of a bare repository has a ledger of its own, and one journal serves all.
        shared = hive.layout.worktree is not None and hive.layout.root == hive.layout.tree
        yield Finding(
            "behind",
            hive.layout.ledger_path(kind),
            f"{len(missing)} recorded lines are missing from this ledger "
            f"({'written in another worktree' if shared else 'git took them away'}); "
            "they are in the journal",
            hint="the next write brings them here, or: queen doctor --fix",
            severity="note" if shared else "error",
        )


def _index(hive: Hive, kind: str) -> Iterator[Finding]:
    """Proves that an index that is in use says what the ledger says."""
    indexed, folded = hive.state(kind), Folded(kind, hive.ledger(kind))
    if isinstance(indexed, Folded):
        return
    folded.refresh()
    truth = {str(fields["id"]): fields for fields in folded.everything()}
    told = {str(fields["id"]): fields for fields in indexed.everything()}
    wrong = sorted(key for key in truth.keys() | told.keys() if truth.get(key) != told.get(key))
    if wrong:
        yield Finding(
            "index",
            hive.layout.index_path(kind),
            f"the index differs from the ledger in {len(wrong)} records, first {wrong[0]}",
            hint="queen index rebuild",
        )


def _records(hive: Hive, kind: str) -> Iterator[Finding]:
    path = hive.layout.ledger_path(kind)
    state = hive.state(kind)
    for fields in sorted(state.everything(), key=lambda fields: str(fields["id"])):
        wrong = [*_common(hive, fields)]
        if kind == "messages":
            wrong += _message(Message(fields), state.get)
        elif kind == "reservations":
            wrong += _reservation(Reservation(fields))
        elif kind == "assignments":
            wrong += [f"no {name}" for name in ("issue_id", "droid") if not fields.get(name)]
        for message in wrong:
            yield Finding("record", path, f"{fields['id']}: {message}", severity="note")


def _common(hive: Hive, fields: dict[str, object]) -> Iterator[str]:
    created_ms = instant_ms(fields.get("created_at"))
    if created_ms is None:
        yield "created_at is missing or no timestamp"
    elif created_ms > hive.now_ms() + _CLOCK_SLACK_MS:
        yield f"created at {fields['created_at']}, in the future: a clock was wrong"
    elif (minted_ms := _minted_ms(str(fields["id"]))) is not None and abs(
        minted_ms - created_ms
    ) > _CLOCK_SLACK_MS:
        yield "its id was minted more than a day from its created_at"


def _minted_ms(identifier: str) -> int | None:
    from ulid import ULID

    try:
        return ULID.from_str(identifier.partition("-")[2]).milliseconds
    except ValueError:
        return None  # Any string serves as an id; the document's own examples are no ULIDs.


def _message(message: Message, get: object) -> Iterator[str]:
    if not message.to or not message.from_:
        yield "no sender or no recipient"
    if message.reply_to and get(message.reply_to) is None:  # type: ignore[operator]
        yield f"it answers {message.reply_to}, which does not exist"


def _reservation(lease: Reservation) -> Iterator[str]:
    if not lease.droid:
        yield "no droid"
    if lease.expires_ms <= lease.created_ms:
        yield "it ends before it begins"
    try:
        globs.normalise(lease.pattern)
    except BadPattern as error:
        yield f"{error.message}: the lease protects nothing"


def _issues(hive: Hive) -> Iterator[Finding]:
    path = hive.layout.issues_path
    if not os.path.exists(path):
        return
    tracked = hive.issues.tracked()
    issues = {key: issue for key, issue in tracked.items() if issue.status != "tombstone"}
    if hive.issues.unusable:
        text = f"{hive.issues.unusable} lines are no issues; they are left alone"
        yield Finding("unusable_line", path, text, hint="bd doctor")
    for issue_id, blocker in beads.missing_blockers({**hive.documents.issues(), **issues}):
        if issue_id not in issues:
            continue
        text = f"{issue_id} waits for {blocker}, which does not exist; it does not block"
        yield Finding("missing_blocker", path, text, severity="note")
    absent = sum(1 for issue in issues.values() if issue.fields.get("priority") is None)
    if absent:
        meant = next(i.priority for i in issues.values() if i.fields.get("priority") is None)
        text = f"{absent} issues have no priority; in this file that is read as {meant}"
        yield Finding("absent_priority", path, text, severity="note")


def _conflicts(hive: Hive) -> Iterator[Finding]:
    for name, pairs in (
        ("assignments", hive.assignments.conflicts()),
        ("reservations", hive.reservations.conflicts()),
    ):
        for winner, loser in pairs:
            text = f"{loser.id} ({loser.droid}) lost to the older {winner.id} ({winner.droid})"
            hint = "queen conflicts"
            yield Finding("conflict", hive.layout.ledger_path(name), text, hint=hint)
