"""`queen reserve`, `unreserve`, `renew`, `reserved`, `check`, `overlap`, `conflicts`."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import Answer, command, tell
from queenbee.cli.options import seconds
from queenbee.cli.rendering import left, purpose, table
from queenbee.cli.terminal import say
from queenbee.core.records import Assignment, Reservation
from queenbee.core.text import printable, shortened
from queenbee.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.services.leases.reservations import PathStatus
    from queenbee.workflows.hive import Hive

_ID = re.compile(r"qr-[0-9A-Z]{26}")


def show_list(reservations: Sequence[Reservation]) -> None:
    """Shows reservations as a table."""
    now_ms = time.time_ns() // 1_000_000
    rows = [
        [
            each.pattern,
            each.droid,
            "exclusive" if each.exclusive else "shared",
            _left(each, now_ms),
            each.issue_id or "",
            each.id,
            shortened(each.reason or ""),
        ]
        for each in reservations
    ]
    headings = ["PATTERN", "DROID", "MODE", "LEFT", "ISSUE", "ID", "REASON"]
    table(headings, rows, empty="No reservations.")


def _left(lease: Reservation, now_ms: int) -> str:
    if lease.status != "active":
        return lease.status
    return "superseded" if lease.superseded_by else left(lease.expires_ms, now_ms)


def _show_statuses(statuses: Sequence[PathStatus]) -> None:
    now_ms = time.time_ns() // 1_000_000
    for each in statuses:
        say(f"{each.status:5} {printable(each.path)}")
        for lease in each.leases if each.status == "held" else ():
            say(
                f"      by {printable(lease.droid)}: {printable(lease.pattern)}{purpose(lease)}, "
                f"{left(lease.expires_ms, now_ms)} left"
            )


@command(
    "reserve",
    show=show_list,
    example="queen reserve 'src/components/Button/**' --issue qb-42\n"
    "queen reserve docs/ README.md --shared --ttl 30m --wait 60s",
)
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN...")
@click.option("--shared", is_flag=True, help="For reading: other readers may share it")
@click.option(
    "--ttl", "ttl_s", callback=seconds, metavar="2h", help="How long; default: queen.toml's, 2h"
)
@click.option("--issue", "issue_id", metavar="ID", help="The issue that it is for")
@click.option("--reason", help="Why")
@click.option("--wait", callback=seconds, metavar="60s", help="Wait until it is free")
@click.option("--force", is_flag=True, help="Take over what is in the way; needs --reason")
def reserve(
    hive: Hive, patterns: tuple[str, ...], shared: bool, wait: int | None, **terms: Any
) -> list[Reservation]:
    """Reserve files before you edit them

    All of the patterns, or none. A pattern is relative to where you are: *, ?, [abc], {a,b}, and
    ** for any number of folders. Quote it, or the shell puts in its place what is there now. The
    name of a folder means everything below it.
    """
    for place in hive.reservations.resolve(patterns):
        if place.note:
            tell(place.note)
    return hive.reservations.reserve(patterns, exclusive=not shared, wait_s=wait or 0, **terms)


def _no_ids(patterns: Sequence[str], command_name: str) -> None:
    """Raises `InvalidInput` if the id of a reservation was given as a pattern."""
    for each in patterns:
        if _ID.fullmatch(each):
            raise InvalidInput(
                f"{each} is the id of a reservation, not a pattern",
                hint=f"queen {command_name} --id {each}",
            )


def _show_released(ended: Sequence[Reservation]) -> None:
    for each in ended:
        say(f"released {printable(each.pattern)}")


@command(
    "unreserve",
    show=_show_released,
    example="queen unreserve 'src/components/Button/**'",
)
@click.argument("patterns", nargs=-1, metavar="[PATTERN...]")
@click.option("--id", "ids", multiple=True, metavar="ID", help="A reservation by its id")
@click.option("--all", "everything", is_flag=True, help="Everything that you hold")
def unreserve(
    hive: Hive, patterns: tuple[str, ...], ids: tuple[str, ...], everything: bool
) -> list[Reservation]:
    """Release what you reserved"""
    _no_ids(patterns, "unreserve")
    return hive.reservations.release(patterns, ids=ids, everything=everything)


@command("renew", show=show_list, example="queen renew --all --ttl 1h")
@click.argument("patterns", nargs=-1, metavar="[PATTERN...]")
@click.option("--id", "ids", multiple=True, metavar="ID", help="A reservation by its id")
@click.option("--all", "everything", is_flag=True, help="Everything that you hold")
@click.option("--ttl", callback=seconds, metavar="2h", help="From now; never shortens")
def renew(
    hive: Hive, patterns: tuple[str, ...], ids: tuple[str, ...], everything: bool, ttl: int | None
) -> list[Reservation]:
    """Extend what you reserved

    Without a PATTERN or an ID: everything.
    """
    _no_ids(patterns, "renew")
    return hive.reservations.renew(
        patterns, ids=ids, everything=everything or not (patterns or ids), ttl_s=ttl
    )


@command("reserved", show=show_list, example="queen reserved --path src/app.py")
@click.option("--droid", help="Only this droid's")
@click.option("--path", metavar="PATH", help="Only those that cover this file")
@click.option("--all", "ended", is_flag=True, help="Also those that have ended")
@click.option("--stale", is_flag=True, help="Only those whose droid shows no sign of life")
def reserved(
    hive: Hive, droid: str | None, path: str | None, ended: bool, stale: bool
) -> list[Reservation]:
    """List what is reserved

    --stale shows the leases whose droid has written nothing for half of their TTL.
    """
    if stale:
        return hive.reservations.stale()
    return hive.reservations.find(droid=droid, path=path, ended=ended)


@command("check", show=_show_statuses, example="queen check src/app.py src/db.py")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
def check(hive: Hive, paths: tuple[str, ...]) -> Answer:
    """Ask whether you may edit files

    Exit 0 if they are free or yours, 1 if another holds one. A PATH is a file name, never a
    pattern; of a folder it says nothing about what is in it.
    """
    statuses = hive.reservations.check(paths)
    for path, status in zip(paths, statuses, strict=True):
        if status.status == "held":
            continue
        if os.path.isdir(path) and not os.path.islink(path):
            tell(f"{path} is a folder: what is in it was not looked at; see: queen reserved")
        elif set("*?{") & set(path) and not os.path.lexists(path):
            tell(f"{path} was taken for the name of a file, not for a pattern; see: queen reserved")
    return Answer(statuses, yes=all(each.status != "held" for each in statuses))


def _show_overlap(value: dict[str, object]) -> None:
    witness = value["witness"]
    if witness is None:
        say(f"no path is covered by both: {printable(str(value['reason']))}")
    else:
        say(f"both cover {printable(str(witness))}")


@command("overlap", show=_show_overlap, example="queen overlap 'src/*/a.py' 'src/b/*.py'")
@click.argument("left_pattern", metavar="A")
@click.argument("right_pattern", metavar="B")
def overlap(hive: Hive, left_pattern: str, right_pattern: str) -> Answer:
    """Ask whether two patterns can cover one path

    Exit 0 with such a path, or 1 with the reason why there is none.
    """
    one, other = hive.reservations.resolve([left_pattern, right_pattern])
    witness = hive.reservations.overlap(left_pattern, right_pattern)
    value = {"a": one.pattern, "b": other.pattern, "overlap": witness is not None}
    reason = None
    if witness is None:
        from queenbee.core.glob.apart import why_apart  # noqa: PLC0415 - start-up

        reason = why_apart(one.pattern, other.pattern)
    return Answer({**value, "witness": witness, "reason": reason}, yes=witness is not None)


def _show_conflicts(pairs: Sequence[dict[str, Assignment | Reservation]]) -> None:
    rows = []
    for pair in pairs:
        for role in ("stands", "superseded"):
            each = pair[role]
            what = each.pattern if isinstance(each, Reservation) else each.issue_id
            rows.append([role, what, each.droid, each.created_at, each.id])
    table(["", "WHAT", "DROID", "SINCE", "ID"], rows, empty="No conflicts.")
    if pairs:
        say("What stands counts alone. Who is superseded asks, or takes something else, and ends")
        say("the other here: queen release ISSUE, queen unreserve PATTERN")


@command("conflicts", show=_show_conflicts, example="queen conflicts")
def conflicts(hive: Hive) -> Answer:
    """List grants that a merge brought together

    Exit 0 if there are none, 1 if there are some. The older grant stands; the other one no
    longer counts, and its droid was told. It is listed until that droid ends it (queen release,
    queen unreserve), or its time is over.
    """
    pairs = [*hive.assignments.conflicts(), *hive.reservations.conflicts()]
    return Answer([{"stands": w, "superseded": s} for w, s in pairs], yes=not pairs)
