"""What a person can do about a thing that is shown: each act is one call of the library, which is
what the command of `queen` in its row does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from queenbee._hashing import sha256
from queenbee.core.text import printable
from queenbee.errors import Conflict, InvalidInput
from queenbee.library.hive import Hive
from queenbee.store.trust import Proposal, Trust
from queenbee.watch.cells import Row, Target
from queenbee.watch.facts import Facts
from queenbee.workflows.running import run_gate


@dataclass(frozen=True, slots=True)
class Act:
    """Something that can be done: `name` is a key of `CALLS`, `about` what it is done to."""

    name: str
    about: str
    label: str
    question: str = ""
    """What is asked before, as others may not like it."""
    wants_text: bool = False


def answer(message_id: str, label: str = "Answer") -> Act:
    """Returns the answer to a message; a no, too, says why."""
    return Act("answer", message_id, label, wants_text=True)


def give_back(target: Target) -> Act | None:
    """Returns the release of the lease or the issue of a row, or None."""
    if target.lease_id is not None:
        question = f"Release the lease of {target.droid} on {printable(target.pattern or '')}?"
        return Act("release_lease", target.lease_id, "Give back", question)
    if target.issue_id is None or not target.assigned:
        return None
    question = f"Release {printable(target.issue_id)}, which {target.droid} has, "
    about = " ".join(filter(None, (target.issue_id, target.droid)))
    return Act("release", about, "Give back", f"{question}and the leases made for it?")


def nudge(droid: str) -> Act:
    """Returns the question to a droid for a sign of life."""
    question = f"Nudge {printable(droid)}? Without an answer within a minute, anybody may take "
    return Act("nudge", droid, "Nudge", f"{question}over what it has.")


def acts_of(panel: str, row: Row, facts: Facts) -> list[Act]:
    """Returns what can be done about a row of a list."""
    target, found = row.target, list[Act | None]()
    if panel in ("droids", "leases"):
        found.append(give_back(target))
    if panel == "droids" and target.droid is not None:
        quiet = row.cells[0].state == "quiet"
        found.append(nudge(target.droid) if quiet else None)
        if target.droid != facts.status.actor:
            found.append(Act("write", target.droid, "Write", wants_text=True))
    standing = facts.status.open.get(target.issue_id or "") if panel == "issues" else None
    if standing is not None and standing.state == "on_hold" and standing.own_status:
        found += retry_or_decline(standing.issue.id)
    return [each for each in found if each is not None]


def retry_or_decline(issue_id: str) -> list[Act]:
    """Returns what a person decides about an issue that somebody has set aside."""
    retry = Act("reopen", issue_id, "Retry", f"Open {printable(issue_id)} for an agent to take?")
    return [retry, Act("close", issue_id, "Decline", wants_text=True)]


def accept(commands: list[Proposal]) -> Act:
    """Returns the consent to these commands, and to no others."""
    question = "Let these commands run here, now and later, until they change?"
    return Act("trust", _key(commands), "Accept", question)


def _key(commands: list[Proposal]) -> str:
    return sha256("".join(sorted(each.key for each in commands)).encode()).hexdigest()


def do(hive: Hive, name: str, about: str, text: str) -> str:
    """Does something as the person of this hive, and returns what was done. Raises `QueenError`."""
    if name not in CALLS:
        raise InvalidInput(f"there is no {name!r} to do", hint="reload the page")
    return CALLS[name](hive, about, text)


def _answer(hive: Hive, message_id: str, text: str) -> str:
    return f"answered {hive.messages.answer(message_id, text, as_person=True).to}"


def _read(hive: Hive, message_id: str, _: str) -> str:
    [message] = hive.messages.mark_read([message_id], as_person=True)
    return f"read what {message.from_} wrote"


def _write(hive: Hive, droid: str, text: str) -> str:
    hive.messages.send(droid, text)
    return f"sent to {droid}"


def _release(hive: Hive, about: str, _: str) -> str:
    issue_id, _, droid = about.partition(" ")
    if droid and not hive.assignments.find(issue_id=issue_id, droid=droid):
        raise Conflict(f"{droid} no longer has {issue_id}", hint="look who has it now")
    return f"released {hive.assignments.release(issue_id).issue_id}"


def _release_lease(hive: Hive, lease_id: str, _: str) -> str:
    hive.reservations.release(ids=[lease_id])
    return "released"


def _nudge(hive: Hive, droid: str, _: str) -> str:
    hive.nudges.nudge(droid)
    return f"nudged {droid}"


def _reopen(hive: Hive, issue_id: str, _: str) -> str:
    return f"opened {hive.issues.edit(issue_id, status='open').id}"


def _close(hive: Hive, issue_id: str, text: str) -> str:
    hive.issues.close(issue_id, reason=text)
    return f"closed {issue_id}"


def _run_gate(hive: Hive, gate: str, _: str) -> str:
    workflow, _, phase = gate.partition("/")
    passed = run_gate(hive, workflow, phase, env=os.environ).verdict.passed
    return f"gate {gate} {'passed' if passed else 'failed again'}"


def _trust(hive: Hive, key: str, _: str) -> str:
    commands = [*hive.documents.unseen_commands()]
    if _key(commands) != key:
        raise Conflict("the commands are no longer those that were shown", hint="look again")
    Trust(hive.layout).add(commands)
    return f"{len(commands)} commands may run now"


CALLS: dict[str, Callable[[Hive, str, str], str]] = {
    "answer": _answer,  # queen answer ID TEXT
    "read": _read,  # queen msg read ID
    "write": _write,  # queen msg send DROID TEXT
    "release": _release,  # queen release ISSUE
    "release_lease": _release_lease,  # queen reserve release ID
    "nudge": _nudge,  # queen msg nudge DROID
    "reopen": _reopen,  # queen issue edit ISSUE --status open
    "close": _close,  # queen issue close ISSUE --reason TEXT
    "run_gate": _run_gate,  # queen gate run
    "trust": _trust,  # queen config trust --yes
}
