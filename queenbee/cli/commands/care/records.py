"""`queen hive history`, `index`, `stats`, `rotate`: the lines of a record, the hive's files."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, cast

import click

from queenbee.cli.app import QueenGroup, command, group
from queenbee.cli.options import seconds
from queenbee.cli.rendering import table
from queenbee.cli.terminal import aside, say
from queenbee.core.kinds import KINDS
from queenbee.core.text import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Record
    from queenbee.library.hive import Hive
    from queenbee.services.history import Revision


def _show(revisions: Sequence[Revision]) -> None:
    rows = [
        [
            str(each.rev),
            each.at or "?",
            each.by or "?",
            shortened(json.dumps(each.changes, ensure_ascii=False), 90),
        ]
        for each in revisions
    ]
    table(["REV", "WHEN", "WHO", "WHAT"], rows, empty="No lines.", text=["WHAT"])


@command(show=_show, example="queen hive history 5W6X")
@click.argument("identifier", metavar="ID")
def history(hive: Hive, identifier: str) -> list[Revision]:
    """Show every line of a record, in order, with who and when

    What happened to all records: queen log.
    """
    return hive.history(identifier)


def _show_deleted(records: Sequence[Record]) -> None:
    for each in records:
        say(f"deleted {printable(each.id)}")


@command(show=_show_deleted, example="queen hive delete qa-5W6X")
@click.argument("identifiers", nargs=-1, required=True, metavar="ID...")
def delete(hive: Hive, identifiers: tuple[str, ...]) -> list[Record]:
    """Hide messages, and what has ended: assignments, reservations

    The lines stay in the ledger and in git, and queen hive history shows them.
    """
    from queenbee.services.care.deleting import delete as hidden  # noqa: PLC0415 - start-up

    return [hidden(hive, each) for each in identifiers]


def _show_migrated(kinds: Sequence[str]) -> None:
    say(f"recorded in {', '.join(kinds)}" if kinds else "It was recorded before.")


@command(show=_show_migrated, example="queen hive migrate v1_to_v2 messages")
@click.argument("name", metavar="NAME")
@click.argument("kinds", nargs=-1, type=click.Choice([*KINDS]), metavar="[LEDGER]...")
def migrate(hive: Hive, name: str, kinds: tuple[str, ...]) -> list[str]:
    """Record that the schema of the ledgers was upgraded, once

    Appends a line with _migration to each LEDGER; default: messages, assignments, reservations.
    New fields are optional and old lines stay valid, so no line is rewritten.
    """
    wanted = kinds or [kind.name for kind in KINDS.values() if kind.everywhere]
    return [kind for kind in wanted if hive.migrate(kind, name)]


def _show_status(rows: Sequence[dict[str, object]]) -> None:
    cells = [
        [str(r["kind"]), _size(r["ledger_bytes"]), str(r["lines"]), str(r["records"])] for r in rows
    ]
    table(["LEDGER", "SIZE", "LINES", "RECORDS"], cells, empty="No ledgers.")


@command(show=_show_status, example="queen hive index status")
def status(hive: Hive) -> list[dict[str, object]]:
    """Show how many lines and records this clone remembers"""
    from queenbee.services.care import indexes  # noqa: PLC0415 - start-up

    return indexes.status(hive)


@command(show=_show_status, example="queen hive index rebuild")
def rebuild(hive: Hive) -> list[dict[str, object]]:
    """Make every record again from its lines; nothing else changes"""
    from queenbee.services.care import indexes  # noqa: PLC0415 - start-up

    return indexes.rebuild(hive)


@command(
    show=lambda paths: say("\n".join(f"wrote {path}" for path in paths) or "No ledgers."),
    example="queen hive index export",
)
@click.option("--watch", is_flag=True, help="Write them again after every change, until Ctrl-C")
def export(hive: Hive, watch: bool) -> list[str]:
    """Write queen_<kind>.idx.json beside each ledger, for other tools

    Git ignores these files, by a line in .beads/.gitignore.
    """
    from queenbee.services.care import indexes  # noqa: PLC0415 - start-up

    if watch:
        indexes.keep_exported(hive, lambda paths: aside(f"wrote {_files(paths)}"))
    return indexes.export(hive)


def _files(paths: Sequence[str]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"


index: QueenGroup = group(
    "index",
    [status, rebuild, export],
    help="What this clone remembers of the ledgers",
    example="queen hive index status",
)


_SIZES = ("size_bytes", "archive_bytes")


def _show_stats(rows: Sequence[dict[str, object]]) -> None:
    cells = [
        [
            str(row["kind"]),
            str(row["records"]),
            str(row["last_week"]),
            *(_size(row[name]) for name in _SIZES),
        ]
        for row in rows
    ]
    headings = ["LEDGER", "RECORDS", "LAST 7 DAYS", "SIZE", "ARCHIVE"]
    table(headings, cells, empty="No ledgers.", spare=["ARCHIVE"])


@command(show=_show_stats, example="queen hive stats")
def stats(hive: Hive) -> list[dict[str, object]]:
    """Show how many records there are, and how they grow"""
    from queenbee.services.care.indexes import statistics  # noqa: PLC0415 - start-up

    return statistics(hive)


def _show_rotation(rows: Sequence[dict[str, object]]) -> None:
    cells = [
        [
            str(row["kind"]),
            str(row["records"]),
            str(row["lines"]),
            _size(row["left_bytes"]),
            _first_and_last(cast("list[str]", row["segments"])),
        ]
        for row in rows
    ]
    headings = ["LEDGER", "MOVED", "LINES", "LEFT", "TO"]
    table(headings, cells, empty="No ledgers.", text=["TO"])


def _first_and_last(paths: list[str]) -> str:
    names = [os.path.basename(path) for path in paths]
    return names[0] if len(names) == 1 else " to ".join((names[0], names[-1])) if names else ""


@command(show=_show_rotation, example="queen hive rotate --older-than 7d")
@click.option(
    "--older-than",
    callback=seconds,
    metavar="DURATION",
    help="How long ago they were closed  [default: archive_after in queen.toml]",
)
def rotate(hive: Hive, older_than: int | None) -> list[dict[str, object]]:
    """Move closed records from the ledgers to .beads/archive/

    Large ledgers rotate automatically: see rotate_at in queen.toml. Every command still finds
    archived records.
    """
    return [
        {
            "kind": kind,
            "records": moved.records,
            "lines": moved.lines,
            "left_bytes": moved.left_bytes,
            "segments": moved.segments,
        }
        for kind, moved in hive.rotate(older_than_s=older_than).items()
    ]


def _size(value: object) -> str:
    assert isinstance(value, int)
    amount = float(value)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"
