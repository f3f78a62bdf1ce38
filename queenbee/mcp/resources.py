"""What a client can read without calling a tool: the inbox, and any issue."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

from queenbee.core.names import EVERYONE
from queenbee.errors import NotFound
from queenbee.services.changes import Change, Wanted
from queenbee.services.work.overview import overview
from queenbee.workflows.complete_hive import Hive

INBOX = "queen://inbox"
ISSUE = "queen://issues/{id}"
_ISSUES = "queen://issues/"


def root_of(uri: str) -> str | None:
    """Returns the root that an address asks for by `?root=`, or None."""
    try:
        return parse_qs(urlsplit(uri).query).get("root", [None])[0]
    except ValueError:
        return None


def concerns(change: Change, uri: str, actor: str | None) -> bool:
    """Returns whether a change of the hive may change what is at an address."""
    address = uri.partition("?")[0]
    if address == INBOX:
        return change.kind == "messages" and change.after.get("to") in (actor, EVERYONE)
    wanted = Wanted(issue_id=unquote(address.removeprefix(_ISSUES)))
    return wanted.fits(change, fold_case=False)


def read(hive: Hive, uri: str) -> object:
    """Returns what is at an address. Raises `NotFound`.

    The inbox is what `queen msg inbox` lists, an issue what `queen show` shows.
    """
    address = uri.partition("?")[0]
    if address == INBOX:
        return hive.messages.inbox(limit=20)
    issue_id = unquote(address.removeprefix(_ISSUES)) if address.startswith(_ISSUES) else ""
    if not issue_id:
        raise NotFound(f"there is no resource {uri[:200]!r}", hint=f"{INBOX}, or {ISSUE}")
    return overview(hive, issue_id)
