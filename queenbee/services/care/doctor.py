"""`queen doctor`: finds what is wrong with a hive's files, and makes repairs that lose nothing.

It reads the files themselves and reports file and line. It is also the oracle of the tests.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.beads import DEFAULT_PRIORITY, newest
from queenbee.core.glob import pattern as glob
from queenbee.core.ids import ulid_ms
from queenbee.core.kinds import ISSUES, kind_of
from queenbee.core.leases import CLOCKS_DIFFER_MS, changed_absurdly, is_absurd
from queenbee.core.readiness import missing_blockers
from queenbee.core.records import Message, Reservation
from queenbee.core.row_edits import tombstone
from queenbee.core.text import quotation, shell_word, suggested
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.errors import BadPattern, QueenError
from queenbee.services.archiving import MOST_BYTES
from queenbee.services.care import memory_findings
from queenbee.services.care.exporting import export_issues
from queenbee.services.diagnosis import Diagnosis
from queenbee.services.waiting.landing_turn import odd_files
from queenbee.store import creating, issues_file
from queenbee.store.codec import (
    CONFLICT_MARKERS,
    MAX_LINE_BYTES,
    SCANNED_LINE_BYTES,
    Unusable,
    decoder,
    without_collection,
)
from queenbee.store.files import START, Original, read_after, size_of
from queenbee.store.git_files.ignore_files import is_ignored_by_git
from queenbee.store.lock import excludes, no_lock
from queenbee.store.memory.archive import Archive
from queenbee.store.safe_open import names_in
from queenbee.store.settings import last_good_path, load
from queenbee.store.settings_file.changing_text import changed_under_lock
from queenbee.store.tracker.issue_owner import owner_in
from queenbee.store.whole_files import read_own

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.fold import Fields
    from queenbee.errors import Unreadable
    from queenbee.services.hive import Services
    from queenbee.services.writing.transaction import Transaction


def examine(hive: Services) -> list[Diagnosis]:
    """Returns everything that is wrong or worth knowing; an empty list for a sound hive."""
    found = [
        Diagnosis(each.code, each.place, each.message, hint=each.hint, severity=each.severity)
        for each in hive.engine.faults()
    ]
    try:
        hive.kinds()
    except QueenError:
        if found:
            return found  # They say why the records cannot be read.
        raise
    try:
        found += _settings(hive)
    except QueenError as error:
        path = os.path.join(hive.layout.beads_dir, ".gitattributes")
        found.append(Diagnosis(error.code, path, error.message, hint=error.hint))
    for kind in hive.kinds():
        try:
            found += _of_kind(hive, kind)
        except QueenError as error:
            path = hive.layout.ledger_path(kind)
            found.append(Diagnosis(error.code, path, error.message, hint=error.hint))
    try:
        found += _issues(hive)
        found += _conflicts(hive)
        found += _clocks(hive)
        found += memory_findings.set_aside(hive)
        found += hive.documents.examine()
        found += _notes_of_sync(hive.layout.remote_dir)
        found += [
            Diagnosis("landing", path, what, hint=hint, severity="note")
            for path, what, hint in odd_files(hive)
        ]
    except QueenError as error:
        found.append(Diagnosis(error.code, hive.layout.issues_path, error.message, hint=error.hint))
    return found


def _of_kind(hive: Services, kind: str) -> Iterator[Diagnosis]:
    hive.state(kind)
    compared = memory_findings.Compared(hive, kind)
    with without_collection(MOST_BYTES):
        wrong = hive.engine.memory.asked(lambda: _records(hive, kind, compared.records()))
    for path in _tracked_files(hive, kind):
        yield from _tracked_file(path, compared.known)
        if kind_of(kind).everywhere and path == hive.layout.ledger_path(kind):
            yield from _long_lines(path)
    yield from _size(hive, kind)
    yield from _two_files(hive, kind)
    yield from wrong
    yield from compared.findings()


def _notes_of_sync(folder: str) -> Iterator[Diagnosis]:
    """Yields what has the name of a note of `queen sync`, and is none."""
    # Versions up to 0.2 had a folder of requests there.
    for path in (os.path.join(folder, name) for name in names_in(folder) if name != "pending"):
        if os.path.islink(path) or (os.path.lexists(path) and not os.path.isfile(path)):
            text = "queen sync cannot use it: it is no note of it, but a folder or the like"
            yield Diagnosis("note", path, text, hint=f"rm -r {shell_word(path)}; queen sync")


def repair(hive: Services) -> list[Diagnosis]:
    """Makes every repair that loses no data; returns all findings from before, those that are
    gone marked as fixed.

    Heals memory and ledgers, ends torn lines, removes conflict markers (and nothing else),
    restores `.gitattributes`, and folds a memory anew that differs from its ledger. Of several rows
    of an issue, keeps the newest, and of several issues with one `external_ref`, the oldest, if
    nobody works on the others or waits for them; unless another program owns the tracker. Ends
    leases that a wrong clock granted, and adds lines that give a sensible end to what ended in the
    future.
    """
    before = examine(hive)
    if not _mend_settings(hive):
        return _with_fixed(hive, before)
    if any(each.code == "index" for each in before):
        hive.rebuild_memory()  # First: what is written goes by it.
    with hive.transaction() as tx:
        creating.add_attributes(hive.layout)
        is_marked = any(each.code == "conflict_marker" for each in before)
        for kind in hive.kinds():
            if is_marked:
                for path in _tracked_files(hive, kind):
                    _without_markers(path)
            tx.touch(kind)
        if is_marked and owner_in(hive.layout.beads_dir) is None:
            _without_markers(hive.layout.issues_path)
        _stage_without_spares(hive, tx)
        if any(each.code == "clock" for each in before):
            hive.reservations.stage_repair(tx, by=hive.actor_or_none or "queen")
            hive.assignments.stage_repair(tx)
    if {each.code for each in before} & {"doubled_row", "doubled_ref"}:
        export_issues(hive, again=_doubled(hive))
    hive.documents.repair()
    return _with_fixed(hive, before)


def _mend_settings(hive: Services) -> bool:
    """Merges the parts of a table that is in the settings twice; returns whether the rest of the
    hive can be repaired: not by guessed settings, nor in another engine than the settings say now.
    """
    layout = hive.layout
    if layout.settings.problem is None:
        return True
    from queenbee.store.settings_file.merging import mended  # noqa: PLC0415 - start-up

    holder = hive.actor_or_none or "queen doctor"
    before = layout.settings
    with suppress(QueenError):
        changed_under_lock(layout, lambda text: mended(text) or text, holder=holder)
        layout.settings = load(layout.beads_dir, {})
        layout.settings.database = before.database
    now = layout.settings
    return now.is_known and now.engine_kind == before.engine_kind


def _with_fixed(hive: Services, before: list[Diagnosis]) -> list[Diagnosis]:
    left = {(each.code, each.file, each.message) for each in examine(hive)}
    for each in before:
        each.fixed = (each.code, each.file, each.message) not in left
    return before


def _tracked_files(hive: Services, kind: str) -> list[str]:
    archive = Archive(hive.layout.ledger_path(kind))
    return [hive.layout.ledger_path(kind), *map(archive.path, archive.listing())]


def _content(path: str) -> bytes:
    original = Original(path)
    try:
        return original.data
    finally:
        original.close()


def _without_markers(path: str) -> None:
    original = Original(path)
    try:
        lines = original.data.split(b"\n")
        kept = [line for line in lines if not line.startswith(CONFLICT_MARKERS)]
        if len(kept) != len(lines):
            original.replace_by(b"\n".join(kept))
    finally:
        original.close()


def _settings(hive: Services) -> Iterator[Diagnosis]:
    layout = hive.layout
    if (problem := layout.settings.problem) is not None:
        path, line = os.path.join(layout.beads_dir, "queen.toml"), problem.details.get("line")
        yield Diagnosis(
            problem.code,
            path,
            problem.message.removeprefix(f"{path}: ").removeprefix(f"{path} "),
            line=line if isinstance(line, int) else None,
            hint=_way_back(hive, path, problem),
        )
    path = os.path.join(layout.beads_dir, ".gitattributes")
    lines = [line.strip() for line in creating.read_attributes(layout).split("\n")]
    if creating.ATTRIBUTES[-1] not in lines:
        yield Diagnosis(
            "attributes",
            path,
            "git does not know how to merge the ledgers: two branches will conflict",
            hint="queen doctor --fix",
        )
    if layout.settings.sync_ledgers == "code":  # Else git is meant to ignore them.
        yield from _ignored(hive)
    if not excludes(layout.lock_path):
        broken = no_lock(layout.lock_path)
        yield Diagnosis("lock", layout.lock_path, broken.message, hint=broken.hint)
    for name in layout.settings.unknown:
        yield Diagnosis(
            "unknown_setting",
            os.path.join(layout.beads_dir, "queen.toml"),
            f"the setting {name!r} is unknown to this version and has no effect",
            severity="note",
        )


def _way_back(hive: Services, path: str, problem: Unreadable) -> str | None:
    """Returns how to get settings that can be read: where no repair can mend the text, the last
    good ones.
    """
    from queenbee.store.settings_file.merging import mended  # noqa: PLC0415 - start-up

    if problem.hint is None or problem.details.get("setting"):
        return problem.hint
    with suppress(UnicodeDecodeError):
        if mended(read_own(path).decode()) is not None:
            return problem.hint
    if not hive.layout.settings.is_known:
        return "correct the file"
    kept = shell_word(last_good_path(hive.layout.state_dir))
    return f"correct the file, or take the last good settings back: cp {kept} {shell_word(path)}"


def _ignored(hive: Services) -> Iterator[Diagnosis]:
    """Returns the ledgers that git ignores: clones would never get them."""
    layout = hive.layout
    for path in map(layout.ledger_path, hive.kinds()):
        name = os.path.relpath(path, layout.tree)
        # A linked worktree has none of them; the doctor says so in the main one.
        is_here = os.path.exists(path) and name.split(os.sep)[0] != os.pardir
        if is_here and is_ignored_by_git(layout, name, os.environ):
            text = "git ignores this ledger, so clones do not get it"
            hint = f"see the rule: {suggested('git check-ignore -v', path)}"
            yield Diagnosis("ignored", path, text, hint=hint, severity="note")


def _tracked_file(path: str, known: Collection[int]) -> Iterator[Diagnosis]:
    chunk = read_after(path, START)
    lines = (chunk.lines + chunk.rest).split(b"\n")
    if chunk.rest:
        yield Diagnosis(
            "torn",
            path,
            "the last line has no newline: a write was cut off, or an editor removed it",
            line=len(lines),
            hint="queen doctor --fix adds it and removes nothing",
        )
    decode = decoder(len(chunk.lines))
    others = [each for each in enumerate(lines, start=1) if hash(each[1]) not in known]
    for number, raw in others:
        line = raw.removesuffix(b"\r")
        if hash(line) in known or not line or line.isspace():
            continue
        try:
            fields = decode(line)
        except Unusable as error:
            marker = line.startswith(CONFLICT_MARKERS)
            hint = "queen doctor --fix removes the marker" if marker else "it is left alone"
            code = "conflict_marker" if marker else "unusable_line"
            yield Diagnosis(code, path, f"not a record: {error}", line=number, hint=hint)
            continue
        if "_migration" in fields:
            text = f"migrated {fields['_migration']!s} at {fields.get('at')!s}"
            yield Diagnosis("migration", path, text, line=number, severity="note")


def _long_lines(path: str) -> Iterator[Diagnosis]:
    """Returns the lines that make the Go tool give up on a ledger which it also reads."""
    chunk = read_after(path, START)
    lines = (chunk.lines + chunk.rest).split(b"\n")
    # A line that QueenBee cannot use either is reported as such.
    long = [
        number
        for number, raw in enumerate(lines, start=1)
        if SCANNED_LINE_BYTES < len(raw) < MAX_LINE_BYTES
    ]
    if long:
        yield Diagnosis(
            "long_line",
            path,
            f"{len(long)} lines have 64 KiB or more: the Go tool reads the ledger only up to here",
            line=long[0],
            hint="queen hive rotate moves old messages to the archive, which it does not read",
            severity="note",
        )


def _size(hive: Services, kind: str) -> Iterator[Diagnosis]:
    path = hive.layout.ledger_path(kind)
    size = size_of(path)
    if size > MOST_BYTES:
        yield Diagnosis(
            "large",
            path,
            f"it is {size // 2**20} MiB: git stores a copy with every commit, and git hosts refuse "
            "files of 100 MiB",
            hint="queen hive rotate",
            severity="note",
        )


def _two_files(hive: Services, kind: str) -> Iterator[Diagnosis]:
    missing = hive.engine.memory.lacking(kind)
    if missing:
        # Each worktree of a bare repository has a ledger of its own, and one memory serves all.
        shared = hive.layout.worktree is not None and hive.layout.root == hive.layout.tree
        yield Diagnosis(
            "behind",
            hive.layout.ledger_path(kind),
            f"{len(missing)} recorded lines are missing from this ledger "
            f"({'written in another worktree' if shared else 'git removed them'}); "
            "this clone remembers them",
            hint="the next write adds them, or: queen doctor --fix",
            severity="note" if shared else "error",
        )


def _records(hive: Services, kind: str, records: Iterable[Fields]) -> list[Diagnosis]:
    path, state = hive.layout.ledger_path(kind), hive.state(kind)
    latest_ms = max(hive.now_ms(), hive.present_ms())
    view, required = kind_of(kind).view, kind_of(kind).required
    found: dict[str, list[str]] = {}
    for fields in records:
        if kind == ISSUES:
            continue
        wrong = _common(fields, latest_ms)
        wrong += [f"no {name}" for name in required if not fields.get(name)]
        if view is Message:
            wrong += _message(Message(fields), state.get)
        elif view is Reservation:
            wrong += _reservation(Reservation(fields))
        if wrong:
            found[str(fields["id"])] = wrong
    return [
        Diagnosis("record", path, f"{each}: {message}", severity="note")
        for each in sorted(found)
        for message in found[each]
    ]


def _common(fields: Fields, latest_ms: int) -> list[str]:
    created_ms = instant_ms(fields.get("created_at"))
    if created_ms is None:
        return ["created_at is missing or not a timestamp"]
    if is_absurd(created_ms, latest_ms):
        return [f"created at {fields['created_at']}, in the future: a clock was wrong"]
    minted_ms = ulid_ms(str(fields["id"]).partition("-")[2])  # Any string is allowed as an id.
    if minted_ms >= 0 and abs(minted_ms - created_ms) > CLOCKS_DIFFER_MS:
        return ["its id and its created_at are more than a day apart"]
    return []


def _message(message: Message, get: Callable[[str], Fields | None]) -> Iterator[str]:
    if not message.to or not message.from_:
        yield "no sender or no recipient"
    if message.reply_to and get(message.reply_to) is None:
        yield f"it replies to {message.reply_to}, which does not exist"


def _reservation(lease: Reservation) -> Iterator[str]:
    if lease.expires_ms <= lease.created_ms:
        yield "it ends before it begins"
    try:
        glob.normalise(lease.pattern)
    except BadPattern as error:
        yield f"{error.message}: the lease protects nothing"


def _issues(hive: Services) -> Iterator[Diagnosis]:
    path = hive.rows_path()
    yield from _origin(hive, path)
    tracked = hive.issues.tracked()
    is_owned = owner_in(hive.layout.beads_dir) is not None
    issues = {key: issue for key, issue in tracked.items() if issue.status != "tombstone"}
    for number, line in issues_file.unusable(_content(path)) if hive.issues.unusable_lines else ():
        if line.startswith(CONFLICT_MARKERS):
            text, by_hand = "not an issue: a conflict marker", "resolve the conflict"
            keeps = "queen doctor --fix keeps the rows of both sides, the newest of each issue"
            hint = by_hand if is_owned else keeps
            yield Diagnosis("conflict_marker", path, text, line=number, hint=hint)
        else:
            text = "not an issue; it is left alone, and what waits for it stays blocked"
            hint = "correct or delete the line; git diff shows what it was"
            yield Diagnosis("unusable_line", path, text, line=number, hint=hint)
    yield from _not_unique(hive, issues, is_owned=is_owned)
    yield from _made_twice(hive, issues)
    for issue_id, blocker in missing_blockers({**hive.documents.issues(), **issues}):
        if issue_id not in issues:
            continue
        text = f"{issue_id} waits for {blocker}, which does not exist and so does not block it"
        yield Diagnosis("missing_blocker", path, text, severity="note")
    absent = sum(1 for issue in issues.values() if issue.get("priority") is None)
    if absent:
        text = f"{absent} issues have no priority, which means {DEFAULT_PRIORITY}"
        yield Diagnosis("absent_priority", path, text, severity="note")


def _origin(hive: Services, path: str) -> Iterator[Diagnosis]:
    """Yields where the rows are from, if another program has them in a database of its own."""
    origin = hive.origin()
    if origin is not None and origin.why is not None:
        said = origin.sentence(hive.now_ms())
        yield Diagnosis("owner_not_asked", path, said, hint=origin.hint)
    elif origin is not None:
        said = origin.sentence(hive.now_ms())
        said += "; issues.jsonl does not count" if path != hive.layout.issues_path else ""
        yield Diagnosis("owned_elsewhere", path, said, severity="note")


def _not_unique(
    hive: Services, issues: Mapping[str, Issue], *, is_owned: bool
) -> Iterator[Diagnosis]:
    """Returns what makes Beads' programs refuse the file or read another state in it."""
    path, doubled = hive.layout.issues_path, _doubled(hive)
    if doubled:
        text = (
            f"{len(doubled)} issues have several rows, first {next(iter(doubled))}: the newest "
            "counts, but other programs use another one or refuse the file"
        )
        yield Diagnosis("doubled_row", path, text, hint=None if is_owned else "queen doctor --fix")
    spare = {each.id for each, _ in _spare(hive)} if not is_owned else set[str]()
    for ref, same in _same_refs(issues).items():
        oldest, *others = (each.id for each in same)
        ids = ", ".join([oldest, *others])
        text = f"{ids} have one external_ref, {ref}: Beads refuses such a file"
        younger = next((each for each in others if each not in spare), None)
        hint = f"queen doctor --fix keeps {shell_word(oldest)}, the oldest"
        if younger is not None:
            hint = suggested("queen issue delete", younger, reason=f"the same as {oldest}")
        yield Diagnosis("doubled_ref", path, text, hint=hint)


def _made_twice(hive: Services, issues: Mapping[str, Issue]) -> Iterator[Diagnosis]:
    """Returns the issues that two clones made under one id: only the fields of the later show."""
    changed = {str(each) for (each,) in hive.state(ISSUES).project(("id",), {})}
    for issue_id in filter(changed.__contains__, issues):
        made: dict[tuple[str, str], Fields] = {}
        for each in hive.state(ISSUES).history(issue_id):
            if each.get("rev") == 1 and "created_at" in each:
                made[str(each["created_at"]), str(each.get("created_by"))] = each
        titles = [f"{quotation(str(each.get('title')))} by {by}" for (_, by), each in made.items()]
        if len(titles) > 1:
            text = f"{issue_id} is two issues, of two clones: {' and '.join(titles)}; they mix"
            both = suggested("queen hive history", issue_id)
            hint = f"{both} has both; make one again: queen issue new TITLE"
            yield Diagnosis("made_twice", hive.layout.issues_path, text, hint=hint)


def _same_refs(issues: Mapping[str, Issue]) -> dict[str, list[Issue]]:
    """Returns the issues that have one `external_ref`, the oldest first, by it."""
    having: dict[str, list[Issue]] = {}
    for issue in issues.values():
        if isinstance(ref := issue.get("external_ref"), str) and ref:
            having.setdefault(ref, []).append(issue)
    return {ref: sorted(same, key=lambda each: (instant_ms(each.get("created_at")) or 0,
            each.id)) for ref, same in having.items() if len(same) > 1}  # fmt: skip


def _spare(hive: Services) -> Iterator[tuple[Issue, str]]:
    """Yields the issues that two clones imported twice, and on which nobody works or waits, each
    with the one that is kept.
    """
    if not _same_refs(hive.issues.tracked()):
        return
    issues = hive.issues.all()
    needed = {on for each in issues.values() for on, _ in each.dependencies}
    for oldest, *others in _same_refs(issues).values():
        for each in others:
            held = hive.assignments.active(each.id) or each.id in needed
            if each.status == "open" and not held:
                yield each, oldest.id


def _doubled(hive: Services) -> dict[str, Mapping[str, object]]:
    """Returns the row that counts of each issue that has several."""
    rows = issues_file.read_rows_exactly(hive.layout.issues_path)
    counts = Counter(row.get("id") for row in rows)
    return {key: row for key, row in newest(rows).items() if counts[key] > 1}


def _stage_without_spares(hive: Services, tx: Transaction) -> None:
    if not owner_in(hive.layout.beads_dir):
        by = hive.actor_or_none or "queen"
        for spare, kept in list(_spare(hive)):
            row = hive.issues.exact_row(spare.id) or {}
            hive.issues.put(tx, tombstone(row, tx.now_ms, by, f"the same as {kept}"))


def _clocks(hive: Services) -> Iterator[Diagnosis]:
    """Returns the grants that a wrong clock dated, and a clock that is behind."""
    now_ms, present_ms = hive.now_ms(), hive.present_ms()
    if is_absurd(present_ms, now_ms):
        yield Diagnosis(
            "clock_behind",
            hive.layout.beads_dir,
            f"the clock says {format_ms(now_ms)}, but most files here are from "
            f"{format_ms(present_ms)} or later: leases seem to last longer than they do",
            hint="set the clock of this machine",
            severity="note",
        )
    hint = "queen doctor --fix"
    held, ended = hive.reservations.absurd()
    path = hive.layout.ledger_path("reservations")
    for lease in held:
        text = (
            f"{lease.id}: {lease.droid} holds {lease.pattern} until {lease.expires_at}, "
            f"reserved at {lease.created_at}: a clock was wrong"
        )
        # Another program may have meant it: only a grant of the future is surely a mistake.
        sure = changed_absurdly(lease, present_ms)
        yield Diagnosis("clock", path, text, hint=hint, severity="error" if sure else "note")
    for lease in ended:
        text = f"{lease.id}: released at {lease.released_at}, in the future: a clock was wrong"
        yield Diagnosis("clock", path, text, hint=hint)
    path = hive.layout.ledger_path("assignments")
    for each in hive.assignments.absurd():
        text = f"{each.id}: {each.status} at {each.updated_at}, in the future: a clock was wrong"
        yield Diagnosis("clock", path, text, hint=hint)


def _conflicts(hive: Services) -> Iterator[Diagnosis]:
    for name, pairs in (
        ("assignments", hive.assignments.conflicts()),
        ("reservations", hive.reservations.conflicts()),
    ):
        for winner, loser in pairs:
            text = f"{loser.id} ({loser.droid}) lost to the older {winner.id} ({winner.droid})"
            hint = "queen reserve conflicts"
            yield Diagnosis("conflict", hive.layout.ledger_path(name), text, hint=hint)
