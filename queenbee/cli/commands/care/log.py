"""`queen log`: what happened, the newest last, and what happens."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import click

from queenbee.cli.app import command, invocation
from queenbee.cli.options import since_option
from queenbee.cli.rendering import Streamed, paragraph
from queenbee.core.kinds import KINDS
from queenbee.core.text import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from queenbee.library.hive import Hive
    from queenbee.services.changes import Change

_CHARS = 70


def _show(changes: Streamed) -> None:
    for each in cast("Iterable[Change]", changes.values):
        if each.kind == "issues" and each.before is None and each.by is None:
            continue  # It is as it was before QueenBee first changed it.
        at, what = (each.at or "?")[:19].replace("T", " "), _WORDS.get(each.kind, _other)(each)
        # Rows of issues do not say who changed them.
        who = each.by or ("somebody" if each.kind != "issues" else "")
        paragraph(printable(f"{at:19}  {f'{who} {what}'.strip()}"))
        sys.stdout.flush()


def _message(change: Change) -> str:
    now = change.after
    to, subject = now.get("to"), shortened(str(now.get("subject") or ""), _CHARS)
    if change.before is None:
        return f"wrote to {to}: {subject}"
    if "deleted" in change.fields:
        if now.get("deleted_by") == now.get("from"):
            return f"took back a message to {to}: {subject}"
        did = "hid" if now.deleted else "restored"
        return f"{did} a message of {now.get('from')}: {subject}"
    did = "acknowledged" if "acked_at" in str(change.fields) else "read"
    did = did if now.get("read") is not False else "has yet to read"
    return f"{did} a message of {now.get('from')}: {subject}"


def _assignment(change: Change) -> str:
    now, status = change.after, change.after.get("status")
    issue, droid = now.get("issue_id"), now.get("droid")
    if status == "active":
        if change.before is not None:
            return f"goes on with {issue}: {now.get('note') or ', '.join(change.fields)}"
        return f"took {issue}" if change.by in (None, droid) else f"gave {issue} to {droid}"
    verb = {"completed": "completed", "released": "gave back"}.get(str(status))
    reason = f": {shortened(str(now.get('reason')), _CHARS)}" if now.get("reason") else ""
    return f"{verb} {issue}{reason}" if verb else f"took {issue} from {droid}{reason}"


def _reservation(change: Change) -> str:
    now = change.after
    if now.get("status") != "active":
        return f"released {now.get('pattern')}"
    verb = "edits" if now.get("tree_id") else "reserved"
    return f"{verb if change.before is None else 'renewed'} {now.get('pattern')}"


def _issue(change: Change) -> str:
    now = change.after
    if change.before is None and now.get("title"):
        return f"described {now.id}: {shortened(str(now.get('title')), _CHARS)}"
    if now.get("status") == "tombstone":
        return f"{now.id} was deleted by {now.get('deleted_by') or 'somebody'}"
    if "status" in change.fields:
        return f"{now.id} is {now.get('status')}"
    changed = [each for each in change.fields if each not in ("id", "updated_at")]
    return f"changed {now.id}: {', '.join(changed)}"


def _other(change: Change) -> str:
    return f"{change.kind} {change.id}: {', '.join(change.fields)}"


_WORDS: dict[str, Callable[[Change], str]] = {
    "messages": _message,
    "assignments": _assignment,
    "reservations": _reservation,
    "issues": _issue,
}


@command(show=_show, example="queen log\nqueen log --issue qb-42 --since 2h\nqueen log -f --json")
@click.option("--droid", metavar="NAME", help="Only what NAME did, or what is about or for NAME")
@click.option("--issue", "issue_id", metavar="ISSUE", help="Only what is about ISSUE")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice([*KINDS]), help="Only such records"
)
@click.option("--path", metavar="FILE", help="Only reservations that cover FILE")
@since_option("what was written")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The last N"
)
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C")
def log(hive: Hive, issue_id: str | None, limit: int, follow: bool, **wanted: Any) -> Streamed:
    """Show what happened, the newest last

    With --json, it prints one document for each change, on a line of its own, with the record
    before and after it, and the cursor with which a program goes on.
    """
    if issue_id is not None:
        wanted["issue_id"] = hive.issue_id(issue_id, recorded=True)
    behind = hive.cursor()
    found = hive.log(limit, **wanted)
    if not follow:
        # Programs go on behind the last one that arrived.
        in_time = found if invocation().json else sorted(found, key=lambda each: each.at or "")
        return Streamed(in_time)
    del wanted["since_ms"]
    return Streamed(chain(found, _further(hive, behind, {each.cursor for each in found}, wanted)))


def _further(hive: Hive, behind: str, shown: set[str], wanted: dict[str, Any]) -> Iterator[Change]:
    """Yields what arrives behind a cursor, without what was shown already."""
    return (each for each in hive.changes(behind, **wanted) if each.cursor not in shown)
