"""What `queen doctor` says of this clone's memory: whether it has what the ledgers have.

It reads everything, as no other command does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.fold import Table
from queenbee.core.ids import end_key
from queenbee.core.kinds import kind_of
from queenbee.core.text import shell_word
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.services.diagnosis import Diagnosis
from queenbee.store.codec import decode, named
from queenbee.store.memory.recorded import value_of
from queenbee.store.memory.salvage import salvaged
from queenbee.store.memory.tables import table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.core.fold import Fields
    from queenbee.services.hive import Services


def of_kind(hive: Services, kind: str) -> Iterator[Diagnosis]:
    """Compares the lines of a kind with those of its ledger, and its records with what the lines
    fold to.
    """
    memory, state = hive.engine.memory, hive.state(kind)
    lines = memory.lines(kind)
    table = Table(kind_of(kind).aliases)
    for line in lines:
        if named(line):
            table.add(line, decode(line))
    truth = {str(fields["id"]): fields for fields in table}
    held = {str(fields["id"]): fields for fields in state.everything()}
    columns = _columns(hive, kind)
    wrong = sorted(
        key
        for key in truth.keys() | held.keys() | columns.keys()
        if key not in truth
        or truth[key] != held.get(key)
        or columns.get(key) != _expected(kind, truth[key])
    )
    if wrong:
        text = f"differs from its lines in {len(wrong)} records, first {wrong[0]}"
        yield _differs(memory.database.path, text)
    if count := memory.differing(kind):
        text = f"differs from the tracked files in {count} lines of {kind}"
        yield _differs(memory.database.path, text)


def set_aside(hive: Services) -> Iterator[Diagnosis]:
    """Names the files that were set aside, and says what may be lost with them."""
    for path in hive.engine.memory.database.aside():
        moment = path.rpartition("-")[2]
        at = f" at {format_ms(int(moment))}" if moment.isdecimal() and len(moment) < 15 else ""
        text = f"a memory that was damaged or changed was set aside{at}"
        if salvaged(path).is_whole:
            text += "; all its lines are in the new one"
        else:
            text += (
                "; part of it cannot be read: a line that git had removed, and that only this "
                "file had, is lost"
            )
        hint = f"if you do not need it: rm {shell_word(path)}"
        yield Diagnosis("set_aside", path, text, hint=hint, severity="note")


def _differs(path: str, text: str) -> Diagnosis:
    return Diagnosis("index", path, f"the memory {text}", hint="queen hive index rebuild")


def _columns(hive: Services, kind: str) -> dict[str, tuple[object, ...]]:
    """Returns what records are selected by, as the memory has it."""
    memory = hive.engine.memory
    names = ("id", "created_ms", "read", "deleted", "end_key", *kind_of(kind).columns)
    listed = ", ".join(f'"{name}"' for name in names)
    query = f"SELECT {listed} FROM {table_of(kind)}"  # noqa: S608
    rows = memory.asked(lambda: memory.database.ask(query))
    return {str(identifier): tuple(rest) for identifier, *rest in rows}


def _expected(kind: str, fields: Fields) -> tuple[object, ...]:
    return (
        instant_ms(fields.get("created_at")) or 0,
        int(fields.get("read") is True),
        int(fields.get("deleted") is True),
        end_key(str(fields["id"])),
        *(
            value if isinstance(value := value_of(fields, name), str) else None
            for name in kind_of(kind).columns
        ),
    )
