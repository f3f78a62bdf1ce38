"""The laws: what the pages promise, asked of what droids noted and of what is there at the end.

Each returns what was broken, in words; nothing if it holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from glob_reference import share_a_path

from tests.checker.history import NEVER, Call, Hold, for_nothing, in_order, together

SECOND = 10**9
_TAKEN_OVER = re.compile(r"^your lease on (\S+) was taken over by \S+ [(“](take-[\w-]+)[)”]")
"""A command puts the reason into parentheses, the hook into quotation marks."""


@dataclass
class End:
    """What is there when all is over."""

    lists: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What `queen` lists: `messages`, `assignments`, `reservations` and `issues`."""
    elsewhere: dict[str, dict[str, str]] = field(default_factory=dict)
    """The same lists in each clone, as they were printed."""
    doctor: int = 0
    steps: list[str] = field(default_factory=list)
    """The fingerprint of each first-parent commit of the main branch since the beginning."""
    passed: frozenset[str] = frozenset()
    """The fingerprints of the trees that a check saw and passed."""
    added: Counter[str] = field(default_factory=Counter)
    """How often each file came to the main branch."""
    undone: frozenset[str] = frozenset()
    """The files that somebody's `git reset` took from the main branch while it moved."""
    dirt: list[str] = field(default_factory=list)
    """What worktrees have beside their commits."""


def answers(calls: list[Call], end: End) -> Iterator[str]:
    """Each answer has a documented status, is one JSON document, and names the reason."""
    for call in calls:
        if call.status is None:
            continue
        if call.status not in (0, 1, 2, 4, 5, 6, 7, 8, 130):
            yield f"{call}: {call.said}"
        elif call.status > 1 and not call.code:
            yield f"{call}: no reason"
        elif (call.status == 2 and call.kind != "abort") or (call.status == 7 and not call.is_open):
            yield f"{call}: {call.said}"
    if end.doctor:
        yield f"doctor ends with status {end.doctor}"


# Reservations.


def _exclude(one: Hold, other: Hold) -> bool:
    alone = one.exclusive or other.exclusive or one.tree == other.tree
    return alone and share_a_path(one.what, other.what)


def leases(calls: list[Call]) -> list[Hold]:
    """Returns what was reserved, from when to when."""
    found: list[Hold] = []
    known: dict[str, Hold] = {}
    for call in in_order(calls, "reserve"):
        exclusive, ttl = bool(call.more["exclusive"]), int(call.more["ttl_s"]) * SECOND
        if call.done:
            granted = [str(each["id"]) for each in call.answer]
        elif call.is_open or "wait" in call.more:
            granted = [""]  # It may have it, and who waits is served first.
        else:
            continue
        for identifier in granted:
            if identifier in known:  # It is extended, and never shortened.
                hold = known[identifier]
                hold.until = max(hold.until, call.asked + ttl)
                hold.gone = max(hold.gone, call.answered + ttl)
                continue
            certain = call.answered if identifier else NEVER
            hold = Hold(call.droid, call.what, call.tree, exclusive, call.asked, certain)
            hold.identifier, hold.until = identifier, call.asked + ttl
            waited = not identifier and not call.is_open
            hold.gone = call.answered + (0 if waited else ttl)
            found.append(hold)
            if identifier:
                known[identifier] = hold
    for call in in_order(calls, "unreserve"):
        if call.what in known:
            known[call.what].ends(call)
    for call in in_order(calls, "renew"):
        if call.what in known and not (call.status and not call.is_open):
            known[call.what].gone = max(known[call.what].gone, call.answered + 7200 * SECOND)
    _ended_by_takeovers(found, in_order(calls, "reserve"))
    _ended_by_recovery(found, calls)
    return found


def _ended_by_takeovers(found: list[Hold], asked: list[Call]) -> None:
    for call in asked:
        if call.more.get("force") and (call.done or call.is_open):
            taker = Hold(call.droid, call.what, call.tree, bool(call.more["exclusive"]), 0, 0)
            for hold in found:
                if hold.droid != call.droid and _exclude(hold, taker):
                    if hold.since < call.answered:
                        hold.may_end(max(call.asked, hold.since))
                    if hold.certain < call.asked:
                        hold.ends(call)


def _ended_by_recovery(found: Iterable[Hold], calls: list[Call]) -> None:
    for call in in_order(calls, "recover"):
        for hold in found:
            if hold.droid == call.droid and hold.since < call.asked:
                hold.may_end(call.asked)
                hold.gone = min(hold.gone, call.answered)


def reservations(calls: list[Call], end: End) -> Iterator[str]:
    """No two droids have what excludes each other (promise 2)."""
    yield from together(leases(calls), _exclude)


def refusals(calls: list[Call], end: End) -> Iterator[str]:
    """Nobody is refused what was free all the time: an end is visible at once."""
    refused = [each for each in in_order(calls, "reserve") if each.code in ("held", "busy")]
    refused = [each for each in refused if "holders" in each.said["error"]]
    yield from for_nothing(refused, leases(calls), _exclude)
    taken = [each for each in in_order(calls, "claim") if each.code == "taken"]
    yield from for_nothing(taken, claims(calls), _one_issue)


def told(calls: list[Call], end: End) -> Iterator[str]:
    """Whoever lost a reservation to a takeover is told so once (promise 7)."""
    said = Counter(
        (call.droid, pattern, name)
        for call in calls
        for notice in call.said.get("notices", [])
        for pattern, name in _TAKEN_OVER.findall(notice)
    )
    for (droid, pattern, name), times in said.items():
        if times > 1:
            yield f"{droid} was told {times} times of {name}, which took {pattern}"
    for call in in_order(calls, "reserve"):
        if not (call.done and call.more.get("force")):
            continue
        taker = Hold(call.droid, call.what, call.tree, bool(call.more["exclusive"]), 0, 0)
        near = [each for each in calls if abs(each.asked - call.asked) < _NEAR]
        for hold in leases([each for each in near if each is not call]):
            sure = hold.certain < call.asked and hold.until > call.answered
            if sure and hold.droid != call.droid and not _got_lost(calls, call, hold.droid, _TELL):
                name = str(call.more["reason"])
                if _exclude(hold, taker) and not said[hold.droid, hold.what, name]:
                    yield f"{hold}, until {call}, and was not told"


_NEAR = 30 * SECOND
"""What was held for longer when it was taken over is not looked at: a long run would never end."""
_TELL = ("reserve", "claim", "send")
_READ = ("read", "next", "complete", "land")


def _got_lost(calls: list[Call], since: Call, droid: str, told: tuple[str, ...]) -> bool:
    """Whether a droid may have been told what was so `since` a call by an answer that it never got.

    After an answer of the kinds that certainly tell it, no other one did.
    """
    # The calls of one droid are in order.
    for call in (each for each in calls if each.droid == droid and each.answered > since.asked):
        if call.is_open and (told is _TELL or call.kind in _READ):
            return True
        if call.done and call.asked > since.answered and call.kind in told:
            return False
    return False


# Issues.


def claims(calls: list[Call]) -> list[Hold]:
    """Returns which issues were somebody's, from when to when."""
    found: list[Hold] = []
    have: dict[tuple[str, str], Hold] = {}
    for call in in_order(calls, "claim", "next", "give", "complete", "land", "recover"):
        key = call.droid, call.what
        may_end = call.kind in ("give", "complete", "land") and (call.done or call.is_open)
        if may_end and key in have:
            have.pop(key).ends(call)
        may_have = call.what if call.kind == "claim" else "*"  # It may have taken any.
        given = _given(call) or (
            may_have if call.is_open and call.kind in ("claim", "next", "complete") else ""
        )
        if given and (call.droid, given) not in have:
            certain = NEVER if call.is_open else call.answered
            hold = Hold(call.droid, given, call.tree, True, call.asked, certain)
            found.append(hold)
            have[call.droid, given] = hold
        if call.kind == "recover":  # It has given everything back.
            have = {each: hold for each, hold in have.items() if each[0] != call.droid}
    _ended_by_recovery(found, calls)
    return found


def _one_issue(one: Hold, other: Hold) -> bool:
    return one.what == other.what or "*" in (one.what, other.what)


def _given(call: Call) -> str:
    if call.done and call.kind == "claim":
        return str(call.answer[0]["issue_id"])
    if not call.done or not isinstance(call.answer, dict):
        return ""
    begun = call.answer if call.kind == "next" else call.answer.get("next")
    return str((begun or {}).get("issue_id") or "")


def assignments(calls: list[Call], end: End) -> Iterator[str]:
    """No issue is two droids' at once, and what was completed stays completed (promise 2)."""
    holds = claims(calls)
    yield from together(holds, _one_issue)
    completed: dict[str, int] = {}
    for call in in_order(calls, "complete", "land"):
        if call.done and _completes(call):
            completed[call.what] = min(call.answered, completed.get(call.what, NEVER))
    for hold in holds:
        if hold.certain < NEVER and hold.since > completed.get(hold.what, NEVER):
            yield f"{hold} after it was completed"


def _completes(call: Call) -> bool:
    return bool(call.what) and (call.kind == "complete" or bool(call.answer.get("completed")))


def order(calls: list[Call], end: End) -> Iterator[str]:
    """Nobody gets an issue before what it depends on may be done, unless he may have that too, nor
    before its gate may have passed; and nobody is refused it afterwards.
    """
    holds = claims(calls)
    needs = {call.what: str(call.more["needs"]) for call in calls if call.more.get("needs")}
    may: dict[str, int] = {}
    sure: dict[str, int] = {}
    for call in in_order(calls, "complete", "land"):
        if call.what and (call.done or call.is_open):
            may[call.what] = min(call.asked, may.get(call.what, NEVER))
        if call.done and _completes(call):
            sure[call.what] = min(call.answered, sure.get(call.what, NEVER))
    for call in in_order(calls, "claim", "next"):
        issue = _given(call)
        too_soon = issue in needs and may.get(needs[issue], NEVER) > call.answered
        has_it = call.kind == "next" and call.done and call.answer.get("again")
        if too_soon and not (has_it or _may_have(holds, call, needs[issue])):
            yield f"{call}: {issue} was given before {needs[issue]} was done"
        waits = call.said.get("error", {}).get("waits_for", [])
        need = needs.get(call.what, "")
        if call.kind == "claim" and waits == [need] and sure.get(need, NEVER) < call.asked:
            yield f"{call}: {need} was done"
    yield from _gated(calls, holds)


def _may_have(holds: list[Hold], call: Call, issue: str, before: int = 0) -> bool:
    """Returns whether a droid may have had an issue before its call was answered, or was made."""
    return any(
        each.droid == call.droid
        and each.what in (issue, "*")
        and each.since < (before or call.answered)
        and each.gone > call.asked
        for each in holds
    )


def _gated(calls: list[Call], holds: list[Hold]) -> Iterator[str]:
    """A gate is open from a run that passed to the next one that did not."""
    runs = in_order(calls, "gate")
    gated = {each.what for each in calls if each.more.get("gated")}
    for call in in_order(calls, "claim", "next", "complete"):
        if call.what not in gated and _given(call) not in gated:
            continue
        if _may_have(holds, call, _given(call), before=call.asked):
            continue  # It has it since the gate was open.
        before = [run for run in runs if run.asked < call.answered]
        failed = max((run.asked for run in before if run.status == 1
                      and run.answered < call.asked), default=0)  # fmt: skip
        if _given(call) and not any(
            (run.done or run.is_open) and run.answered > failed for run in before
        ):
            yield f"{call}: its gate had not passed"
        passed = max((run.asked for run in before if run.done
                      and run.answered < call.asked), default=0)  # fmt: skip
        may_fail = any(
            (run.status == 1 or run.is_open or run.answered > call.asked) and run.answered > passed
            for run in before
        )
        if call.kind == "claim" and call.code == "not_ready" and passed and not may_fail:
            yield f"{call}: its gate had passed"


def tracker(calls: list[Call], end: End) -> Iterator[str]:
    """An issue is one row, keeps what was last written to it, and is done if it was completed."""
    rows = Counter(str(each["id"]) for each in end.lists.get("issues", []))
    yield from (f"{issue} has {count} rows" for issue, count in rows.items() if count > 1)
    fields = {str(each["id"]): each for each in end.lists.get("issues", [])}
    titles: dict[str, set[str]] = {}
    for call in in_order(calls, "new", "edit"):
        if call.done and call.what not in fields:
            yield f"{call}: it is not there"
        if call.done:
            titles[call.what] = {str(call.more["title"])}
        elif call.is_open and call.what in titles:
            titles[call.what].add(str(call.more["title"]))
    for issue, possible in titles.items():
        if issue in fields and fields[issue]["title"] not in possible:
            yield f"{issue} is called {fields[issue]['title']}, not {sorted(possible)}"
    for call in in_order(calls, "complete", "land"):
        status = fields.get(call.what, {"status": "closed"})["status"]
        if call.done and _completes(call) and status != "closed":
            yield f"{call}: it is {status}"


# Messages.


def mail(calls: list[Call], end: End) -> Iterator[str]:
    """Each message goes whole to one call of each who gets it, and none is lost."""
    names = {call.droid for call in calls}
    shown = Counter((call.droid, str(each["id"])) for call in calls for each in _delivered(call))
    bodies = {
        (call.droid, str(each["id"])): each.get("body")
        for call in calls
        for each in _delivered(call)
    }
    for (droid, message), times in shown.items():
        if times > 1:
            yield f"{message} was shown to {droid} {times} times"
    certainly = () if end.elsewhere else ("read",)  # To another clone, it may come late.
    for call in (each for each in in_order(calls, "send") if each.done):
        for message in call.answer if isinstance(call.answer, list) else [call.answer]:
            to = names - {call.droid} if message["to"] == "@all" else {str(message["to"])}
            for droid in to & names:
                key = droid, str(message["id"])
                if not shown[key]:
                    if not _got_lost(calls, call, droid, certainly):
                        yield f"{call}: {droid} never got {message['id']}"
                elif bodies[key] != call.more["body"]:
                    yield f"{call}: {droid} got {bodies[key]!r}"


def _delivered(call: Call) -> list[dict[str, Any]]:
    if call.kind == "read" and isinstance(call.answer, list):
        return call.answer
    if isinstance(call.answer, dict):
        begun = call.answer if call.kind == "next" else call.answer.get("next")
        return list((begun or {}).get("messages") or [])
    return []


# Everything that was written.


def kept(calls: list[Call], end: End) -> Iterator[str]:
    """What was acknowledged is there at the end, whatever git and kills did (promise 1)."""
    there = {
        kind: {str(each["id"]): each for each in end.lists.get(kind, [])}
        for kind in ("messages", "assignments", "reservations")
    }
    for call in calls:
        if not call.done:
            continue
        if call.kind == "send":
            written = call.answer if isinstance(call.answer, list) else [call.answer]
            kind = "messages"
        elif call.kind == "reserve":
            written, kind = call.answer, "reservations"
        elif call.kind == "claim":
            written, kind = call.answer, "assignments"
        else:
            continue
        for each in written:
            if str(each["id"]) not in there[kind]:
                yield f"{call}: {each['id']} is lost"


def agreement(calls: list[Call], end: End) -> Iterator[str]:
    """Clones that have exchanged everything print the same, byte for byte (promise 3)."""
    for kind in sorted({kind for lists in end.elsewhere.values() for kind in lists}):
        texts = {clone: lists[kind] for clone, lists in end.elsewhere.items()}
        if len(set(texts.values())) > 1:
            yield f"clones list other {kind}: {[(each, len(text)) for each, text in texts.items()]}"


# Landing.


def landing(calls: list[Call], end: End) -> Iterator[str]:
    """Each step of the main branch is a tree that a check passed, each landing is there once, and
    nobody is told otherwise (promise 9).
    """
    yield from (f"a step of main was not checked: {s}" for s in end.steps if s not in end.passed)
    yield from (f"left in a worktree: {each}" for each in end.dirt)
    for call in in_order(calls, "land"):
        for name in call.more["files"]:
            if name in end.undone:
                continue
            times = end.added[name]
            if name.startswith("bad"):
                if times:
                    yield f"{call}: {name} is on main"
            elif call.done and call.answer["landing"]["landed"] and times != 1:
                yield f"{call}: {name} came to main {times} times"
            elif call.status == 1 and not call.more["bad"]:
                yield f"{call}: blamed without a failing check of its own: {call.answer}"
    for name, times in end.added.items():
        if times > 1:
            yield f"{name} came to main {times} times"


LAWS: dict[str, Callable[[list[Call], End], Iterator[str]]] = {
    each.__name__: each
    for each in (
        answers,
        reservations,
        refusals,
        told,
        assignments,
        order,
        tracker,
        mail,
        kept,
        agreement,
        landing,
    )
}
"""By name."""
FOR_ALL_CLONES = ("answers", "reservations", "mail", "kept", "agreement")
"""Those that hold between clones that exchange now and then; the others need one machine."""


def judge(calls: list[Call], end: End, names: Iterable[str] = tuple(LAWS)) -> dict[str, list[str]]:
    """Returns what was broken, by law; only laws that were."""
    broken = {name: list(LAWS[name](calls, end)) for name in names}
    return {name: found for name, found in broken.items() if found}
