"""`queen reserve`, `unreserve`, `renew`, `reserved`, `check`, `overlap`, `conflicts`."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import Answer, Invocation, command, is_mine, short_ids, tell
from queenbee.cli.confirming import confirm_options, granted
from queenbee.cli.options import seconds
from queenbee.cli.rendering import ago, entry, left, paragraph, purpose, table
from queenbee.cli.terminal import say
from queenbee.core.glob.pattern import why_apart
from queenbee.core.names import nearest
from queenbee.core.records import Assignment, Reservation
from queenbee.core.text import printable, shortened, suggested
from queenbee.core.timestamps import format_duration, instant_ms
from queenbee.errors import InvalidInput
from queenbee.services.leases.edits import notes_on_checked
from queenbee.store.layout import working_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.git.touched import Checked
    from queenbee.library.hive import Hive
    from queenbee.services.leases.occupancy import Board

_ID = re.compile(r"qr-[0-9A-Z]{26}")
_TIME = re.compile(r"[0-9]+[smhd]")
_OTHERS = ("list", "release", "renew", "check", "overlap", "conflicts")
"""The commands behind `queen reserve`, none of which takes a pattern first that is such a word."""
_MANY = 5
"""So many names of files are what the shell has made of a pattern."""
_TOUCHES = 8


def show_list(reservations: Sequence[Reservation]) -> None:
    """Shows reservations as a table."""
    now_ms = time.time_ns() // 1_000_000
    seen_ms = [instant_ms(each.get("last_seen_at")) for each in reservations]
    short = short_ids("reservations", reservations)
    rows = [
        [
            each.pattern,
            each.droid,
            *([ago(at_ms, now_ms) if at_ms is not None else ""] if any(seen_ms) else []),
            each.mode,
            _left(each, now_ms),
            each.issue_id or "",
            shortened(each.reason or ""),
            short[each.id],
        ]
        for each, at_ms in zip(reservations, seen_ms, strict=True)
    ]
    seen = ["SEEN"] if any(seen_ms) else []
    headings = ["PATTERN", "DROID", *seen, "MODE", "LEFT", "ISSUE", "REASON", "ID"]
    table(
        headings,
        rows,
        empty="No reservations.",
        text=["REASON", "PATTERN"],
        spare=["SEEN", "REASON", "ISSUE"],
        mine=[is_mine(each.droid) for each in reservations],
    )


def _left(lease: Reservation, now_ms: int) -> str:
    if lease.status != "active":
        return lease.status
    if lease.superseded_by:
        return "superseded"
    return left(lease.expires_ms, now_ms) + (" unconfirmed" if lease.unconfirmed else "")


def _show_statuses(checked: Sequence[Checked]) -> None:
    now_ms = time.time_ns() // 1_000_000
    for one in checked:
        each = one.status
        entry(f"{each.status:5} ", printable(each.path), state=each.status)
        if each.status == "stale":
            paragraph(f"      a newer grant has token {max(lease.token for lease in each.leases)}")
        for lease in each.leases if each.status == "held" else ():
            sign = ", unconfirmed" if lease.unconfirmed else ""
            paragraph(
                f"      by {printable(lease.droid)}: {printable(lease.pattern)}{purpose(lease)}, "
                f"{left(lease.expires_ms, now_ms)} left{sign}"
            )
        for touch in one.others:
            paragraph(f"      not merged yet: {touch.sentence()}")


def _show_reserved(leases: Sequence[Reservation]) -> None:
    from queenbee.git import touched  # noqa: PLC0415 - start-up

    show_list(leases)
    met = list(dict.fromkeys(each for lease in leases for each in touched.of_lease(lease)))
    for touch in met[:_TOUCHES]:
        paragraph(f"not merged yet: {touch.sentence()}")
    if len(met) > _TOUCHES:
        paragraph(f"… {len(met) - _TOUCHES} more: --json shows all of them")


@command(
    show=_show_reserved,
    example="queen reserve 'src/components/Button/**' --issue qb-42\n"
    "queen reserve docs/ README.md --shared --ttl 30m --wait 60s",
    at_once=True,
)
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN...")
@click.option(
    "--shared",
    "mode",
    flag_value="shared",
    help="Others may edit the same files in their own worktrees; git merges",
)
@click.option(
    "--read",
    "mode",
    flag_value="read",
    help="Only read it: others may read and announce edits, but not reserve it exclusively",
)
@click.option(
    "--ttl", "ttl_s", callback=seconds, metavar="2h", help="How long; default: queen.toml's, 2h"
)
@click.option("--issue", "issue_id", metavar="ID", help="The issue it is for; default: yours")
@click.option("--keep", is_flag=True, help="Keep it when your issue ends")
@click.option("--reason", help="Why")
@click.option("--wait", callback=seconds, metavar="60s", help="Wait until it is free")
@click.option(
    "--force", is_flag=True, help="Take over what conflicts; needs --reason or queen msg nudge"
)
@confirm_options
def reserve(
    hive: Hive,
    patterns: tuple[str, ...],
    mode: str | None,
    wait: int | None,
    confirm: bool,
    local_if_offline: bool,
    **terms: Any,
) -> list[Reservation]:
    """Reserve files before you edit them

    Reserves all of the patterns or none. A pattern is relative to the current folder and may use
    *, ?, [abc], {a,b}, and ** for any number of folders. Quote it so that the shell does not
    expand it. The name of a folder covers everything below it.

    While you have one issue, a reservation is for that issue and is released with it. Give it back
    before with queen reserve release; there are list, renew, check, overlap and conflicts, too.
    """
    hive.refuse_two_names()
    if terms.pop("keep"):
        if terms["issue_id"] is not None:
            raise InvalidInput("--keep is for no issue", hint="leave out --issue, or --keep")
        terms["issue_id"] = ""
    elif terms["issue_id"] is not None:
        terms["issue_id"] = hive.issue_id(terms["issue_id"])
    _refuse_words(patterns)
    if len(patterns) > _MANY and all(map(os.path.isfile, patterns)):
        tell(f"these are {len(patterns)} reservations: quote a pattern, as in 'src/*.py', for one")
    for place in hive.reservations.resolve(patterns):
        if place.note:
            tell(place.note)

    terms |= {"exclusive": mode is None, "alone": mode != "read"}

    def reserved(wait_s: float, watcher: Any) -> list[Reservation]:
        return hive.reservations.reserve(patterns, timeout_s=wait_s, on_progress=watcher, **terms)

    confirming = {"confirm": confirm, "local_if_offline": local_if_offline}
    given = granted(hive, reserved, wait_s=wait, **confirming)
    leases = [each for each in given if isinstance(each, Reservation)]
    from queenbee.git import touched  # noqa: PLC0415 - start-up

    return touched.leases(hive, leases, tell=tell)


def _refuse_words(patterns: Sequence[str]) -> None:
    """Raises `InvalidInput` if the first pattern is a mistyped command, or the last one a time."""
    if not patterns[1:]:
        return
    first, last = patterns[0], patterns[-1]
    meant = nearest(first, _OTHERS) if first.isalpha() else None
    if meant and not os.path.exists(first):
        raise InvalidInput(
            f"{first} is not a file and no command of queen reserve",
            hint=suggested(f"queen reserve {meant}", *patterns[1:]),
        )
    if _TIME.fullmatch(last) and not os.path.exists(last):
        raise InvalidInput(
            f"{last} is a time, not a file",
            hint=suggested("queen reserve", *patterns[:-1], ttl=last),
        )


def _no_ids(patterns: Sequence[str], command_name: str) -> None:
    """Raises `InvalidInput` if the id of a reservation was given as a pattern."""
    for each in patterns:
        if _ID.fullmatch(each):
            raise InvalidInput(
                f"{each} is the id of a reservation, not a pattern",
                hint=suggested(f"queen {command_name}", id=each),
            )


def _show_released(ended: Sequence[Reservation]) -> None:
    for each in ended:
        say(f"released {printable(each.pattern)}")


@command(
    show=_show_released, example="queen reserve release 'src/components/Button/**'", at_once=True
)
@click.argument("patterns", nargs=-1, metavar="[PATTERN...]")
@click.option("--id", "ids", multiple=True, metavar="ID", help="A reservation by its id")
@click.option("--all", "everything", is_flag=True, help="Everything that you hold")
def reserve_release(
    hive: Hive, patterns: tuple[str, ...], ids: tuple[str, ...], everything: bool
) -> list[Reservation]:
    """Release your reservations"""
    _no_ids(patterns, "reserve release")
    return hive.reservations.release(patterns, ids=ids, everything=everything)


@command(show=show_list, example="queen reserve renew --all --ttl 1h")
@click.argument("patterns", nargs=-1, metavar="[PATTERN...]")
@click.option("--id", "ids", multiple=True, metavar="ID", help="A reservation by its id")
@click.option("--all", "everything", is_flag=True, help="Everything that you hold")
@click.option("--ttl", callback=seconds, metavar="2h", help="How long from now; never shortens")
def reserve_renew(
    hive: Hive, patterns: tuple[str, ...], ids: tuple[str, ...], everything: bool, ttl: int | None
) -> list[Reservation]:
    """Extend your reservations

    Without a PATTERN or an ID, extends all of them.
    """
    _no_ids(patterns, "reserve renew")
    return hive.reservations.renew(
        patterns, ids=ids, everything=everything or not (patterns or ids), ttl_s=ttl
    )


def _show_board(board: Board) -> None:
    """Shows reservations, and below them who waits for what."""
    show_list(board.reservations)
    if not board.waiters:
        return
    now_ms = time.time_ns() // 1_000_000
    rows = [
        [
            each.waiter.droid,
            ", ".join(each.waiter.want.patterns),
            "exclusive" if each.waiter.want.exclusive else "shared",
            format_duration((now_ms - each.waiter.since_ms) / 1000),
            ", ".join(dict.fromkeys(other.droid for other in each.behind)),
        ]
        for each in board.waiters
    ]
    say("")
    mine = [is_mine(each.waiter.droid) for each in board.waiters]
    headings = ["WAITING", "FOR", "MODE", "SINCE", "BEHIND"]
    table(headings, rows, empty="", text=["FOR"], spare=["MODE"], mine=mine)


@command(show=_show_board, example="queen reserve list --path src/app.py", at_once=True)
@click.option("--droid", help="Only this droid's reservations")
@click.option("--path", metavar="PATH", help="Only those that cover this file")
@click.option("--all", "ended", is_flag=True, help="Also those that have ended")
@click.option("--stale", is_flag=True, help="Only those whose droid seems inactive")
def reserve_list(
    hive: Hive, droid: str | None, path: str | None, ended: bool, stale: bool
) -> Board:
    """List the reservations, and who waits for what

    --stale shows the leases whose droid has written nothing for half their TTL. Those who wait are
    served in the order in which they are listed, as far as they want the same files.
    """
    from queenbee.services.leases.occupancy import board  # noqa: PLC0415 - start-up

    found = (
        hive.reservations.stale()
        if stale
        else hive.reservations.find(droid=droid, path=path, ended=ended)
    )
    return board(hive, lambda: hive.queue, hive.droids.seen_ms, found)


@command(
    show=_show_statuses,
    example="queen reserve check src/app.py src/db.py",
    opens_hive=False,
    at_once=True,
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--token", type=click.IntRange(min=1), metavar="N", help="Also refuse if a newer grant was made"
)
def reserve_check(call: Invocation, paths: tuple[str, ...], token: int | None) -> Answer:
    """Check whether you may edit files

    Exit 0 if all are free or yours, 1 if another droid holds one. A PATH is a file name, never a
    pattern; the contents of a folder are not checked.

    With --token, the number that a confirmed reservation got, it also exits 1 if a newer
    reservation has since covered a PATH, even if that one has ended.
    """

    def own() -> Hive:
        call.freshen("check")
        return call.hive

    if call.beads_dir:
        statuses = own().reservations.check(paths)
    else:
        from queenbee.services import governing  # noqa: PLC0415 - start-up

        statuses = governing.check(
            own, paths, os.environ, cwd=working_directory(), droid=call.actor
        )
    if token is not None:
        statuses = [call.hive.reservations.fenced(each, token) for each in statuses]
    for note in notes_on_checked(paths, statuses, os.curdir):
        tell(note)
    from queenbee.git import touched  # noqa: PLC0415 - start-up

    checked = touched.check(lambda: call.hive, statuses, tell=tell)
    return Answer(checked, yes=all(each.status not in ("held", "stale") for each in statuses))


def _show_overlap(value: dict[str, object]) -> None:
    witness = value["witness"]
    if witness is None:
        say(f"no path is covered by both: {printable(str(value['reason']))}")
    else:
        say(f"both cover {printable(str(witness))}")


@command(show=_show_overlap, example="queen reserve overlap 'src/*/a.py' 'src/b/*.py'")
@click.argument("left_pattern", metavar="A")
@click.argument("right_pattern", metavar="B")
def reserve_overlap(hive: Hive, left_pattern: str, right_pattern: str) -> Answer:
    """Check whether two patterns overlap

    Exit 0 with a path that both cover, or 1 with the reason why there is none.
    """
    one, other = hive.reservations.resolve([left_pattern, right_pattern])
    witness = hive.reservations.overlap(left_pattern, right_pattern)
    value = {"a": one.pattern, "b": other.pattern, "overlap": witness is not None}
    reason = None
    if witness is None:
        reason = why_apart(one.pattern, other.pattern)
    return Answer({**value, "witness": witness, "reason": reason}, yes=witness is not None)


def _show_conflicts(pairs: Sequence[dict[str, Assignment | Reservation]]) -> None:
    rows = []
    for pair in pairs:
        for role in ("stands", "superseded"):
            each = pair[role]
            what = each.pattern if isinstance(each, Reservation) else each.issue_id
            kind = "reservations" if isinstance(each, Reservation) else "assignments"
            short = short_ids(kind, [each])[each.id]
            rows.append([role, what, each.droid, each.created_at, short])
    headings = ["", "WHAT", "DROID", "SINCE", "ID"]
    mine = [is_mine(row[2]) for row in rows]
    table(headings, rows, empty="No conflicts.", text=["WHAT"], spare=["SINCE"], mine=mine)
    if pairs:
        paragraph("The older grant stands. If yours is superseded, end it:")
        paragraph("queen release ISSUE, or queen reserve release PATTERN")


@command(show=_show_conflicts, example="queen reserve conflicts")
def reserve_conflicts(hive: Hive) -> Answer:
    """List conflicting grants that a merge brought together

    Exit 0 if there are none, 1 if there are some. The older grant stands. The newer one no longer
    counts, and its droid was sent a message. A conflict is listed until that droid ends its grant
    (queen release, queen reserve release) or the grant expires.
    """
    pairs = [*hive.assignments.conflicts(), *hive.reservations.conflicts()]
    return Answer([{"stands": w, "superseded": s} for w, s in pairs], yes=not pairs)
