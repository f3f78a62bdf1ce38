"""What is asked of a landing, kept while it is not done: a conflict must not drop a promise."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from queenbee.core.text import named, quotation, suggested
from queenbee.core.timestamps import parse_duration_s
from queenbee.errors import InvalidInput, QueenError, Untrusted
from queenbee.git.landing.commands import is_commit
from queenbee.git.landing.judged.check_files import SHOWN_CHECK
from queenbee.git.landing.refusals import NotLanded
from queenbee.git.run import is_ancestor
from queenbee.services.writing.seeing import note_typed
from queenbee.store import safe_open
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.store.trust import CHECK, Proposal
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.checks.consent import Consent
    from queenbee.services.hive import Services
    from queenbee.services.waiting.landing_record import LandingRecord
    from queenbee.store.layout import Layout

WAIT = "10m"
"""How long one waits for the next issue, if nothing else is said."""
TURN = "1d"
"""The same for its turn: with many branches and a long check, each that gave up its place would
only come again.
"""
_MOST_BYTES, _SAID_CHARS = 2**16, 120
STOPPED = "queenbee-land-stopped"
"""The file, in the git directory of a worktree, that lists what a landing was stopped for."""


class Request(NamedTuple):
    """What is asked of a landing: for which issue, with which check, and how long to wait.

    The issue is the one that the actor has, by default. `check` is added to the one that is set.
    With `confirm`, or the setting `sync.confirm`, the remote first confirms that the actor has the
    issue, and what it has of others' reservations is taken in before the target moves.
    """

    issue_id: str | None = None
    check: str | None = None
    reason: str | None = None
    wait: str | None = None
    """A duration."""
    go_on: bool = False
    confirm: bool = False
    unchecked: bool = False
    """Whether it may land although there is no check at all."""
    take_next: bool = False
    message: str | None = None
    """With what to commit all changes of the worktree first."""
    alone: bool = False
    """Whether it lands in a step of its own, and not with those who wait."""
    accept_check: str | None = None
    """The key of the change of the check that a person accepts."""
    also: Sequence[str] = ()
    """Further issues of the actor that are done with it."""

    @property
    def wait_s(self) -> int:
        """How long to wait for the next issue, in seconds."""
        return parse_duration_s(self.wait or WAIT)

    @property
    def turn_s(self) -> int:
        """How long to wait for the turn, in seconds."""
        return parse_duration_s(self.wait or TURN)

    def keep(self, layout: Layout) -> None:
        """Keeps it in the git directory of this worktree until the landing is done."""
        said = {name: getattr(self, name) for name in _KEPT if getattr(self, name)}
        keep(_path(layout), said)  # Without it, going on is refused if no check is given anew.
        note_typed(layout, _judged_by(layout, said))

    def resumed(self, consent: Consent, tell: Callable[[str], None]) -> Request:
        """Returns it with what was asked before the conflict and is not asked anew. An agent can
        write that down, too, so a person is asked for a check that only an agent typed. Raises
        `Untrusted`.
        """
        layout = consent.trust.layout
        kept = _kept(layout)
        before = {name: kept[name] for name in kept if not getattr(self, name)}
        for told, dropped in _INSTEAD:
            if getattr(self, told):
                before.pop(dropped, None)
        if before:
            tell(f"going on as asked before: {_shown(before)}")
        if not is_by_agent(layout):
            try:
                consent.require(_judged_by(layout, before))
            except Untrusted as error:
                error.hint = "the check that you want: queen land --continue --check COMMAND"
                raise
        return self._replace(**before)


_KEPT_IN = "queenbee-land"
_KEPT = {
    "issue_id": str, "check": str, "reason": str, "wait": str, "confirm": bool, "unchecked": bool,
    "take_next": bool, "alone": bool, "also": list,
}  # fmt: skip


_INSTEAD = (("check", "unchecked"), ("unchecked", "check"), ("issue_id", "also"))
"""What is asked anew, in place of what before."""


def _judged_by(layout: Layout, said: dict[str, Any]) -> list[Proposal]:
    """Returns the check that was typed for one landing, or that there is to be none."""
    path, check = _path(layout), said.get("check")
    if said.get("unchecked"):
        return [Proposal(CHECK, "", ("nothing is checked",), "queen land --unchecked", path)]
    return [replace(typed_check(check), path=path)] if check else []


def typed_check(check: str) -> Proposal:
    """Returns a check that is typed for one landing, beside the one that is set: a yes to it is
    none to that as the check.
    """
    return Proposal(CHECK, check, ("beside the check that is set",), "queen land --check")


def kept_issues(layout: Layout) -> list[str]:
    """Returns the issues that the unfinished landing of this worktree is to complete."""
    kept = _kept(layout)
    return [kept["issue_id"], *kept.get("also", ())] if "issue_id" in kept else []


def kept_next(layout: Layout) -> bool:
    """Returns whether it is to take the next issue."""
    return "take_next" in _kept(layout)


def _kept(layout: Layout) -> dict[str, Any]:
    kept = recall(_path(layout), _MOST_BYTES)
    kept = kept if isinstance(kept, dict) else {}
    return {name: kept[name] for name, type_ in _KEPT.items() if isinstance(kept.get(name), type_)}


def forget(layout: Layout) -> None:
    """Removes what was kept: the landing is done, or was taken back. Never fails."""
    for name in (_KEPT_IN, STOPPED, SHOWN_CHECK):
        with suppress(OSError, QueenError):
            safe_open.unlink(_path(layout, name))


def refuse_fallen(hive: Services, record: LandingRecord, issues: Sequence[str], head: str) -> None:
    """Raises `NotLanded` for a commit that stands on one which did not land, of issues that the
    actor still has: they land together, or not at all.
    """
    said = record.read()
    held = {each.issue_id for each in hive.assignments.find(droid=hive.own_actor)}
    left = [each for each in record.issues if each in held and each not in issues]
    before = said.get("head")
    if not left or said.get("landed") or record.is_under_way or not is_commit(before):
        return
    if not is_ancestor(str(before), head, cwd=hive.layout.tree):
        return
    record.is_new(hive.actor)
    why = quotation(record.last_line(), _SAID_CHARS)
    raise NotLanded(
        f"this stands on the work on {named(left, len(left))}, which did not land: {why}; nothing "
        "was landed",
        hint=f"queen land --result; mend it, then {suggested('queen land', *left, *issues)}",
        issues=left,
    )


def refuse_unchecked(check: str | None, asked: Request) -> None:
    """Raises `InvalidInput` for a request to do without the check that there is."""
    if asked.unchecked and check is not None:
        raise InvalidInput(
            f"there is a check, which always runs: {check}",
            hint="queen land, without --unchecked",
        )


def no_check(layout: Layout) -> InvalidInput:
    """Returns the refusal of a landing without any check, with those that the files name. An agent
    is not told to type one, which would wait for a person.
    """
    from queenbee.checks.finding import check_setting, found_checks  # noqa: PLC0415 - start-up

    found, by, once = found_checks(layout.tree), "", "once: queen land --check COMMAND; or "
    if is_by_agent(layout):
        by, once = "a person, ", ""
    known = f"; the files name {', '.join(found)}" if found else ""
    return InvalidInput(
        f"no check is set, so nothing shows that main still works{known}",
        hint=f"{by}for everybody: {check_setting(found)}; or {once}without: queen land --unchecked",
        found=found,
    )


def _path(layout: Layout, name: str = _KEPT_IN) -> str:
    return os.path.join(layout.git_dir or layout.state_dir, name)


def _shown(said: dict[str, Any]) -> str:
    options = {name.replace("take_next", "next"): value for name, value in said.items()}
    words = [options.pop("issue_id", None), *options.pop("also", ())]
    words = [each for each in words if isinstance(each, str)]
    return suggested("queen land", *words, **options).removeprefix("queen land ")
