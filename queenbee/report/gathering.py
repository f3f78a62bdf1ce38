"""Reads a hive once, and returns what a report says of it. Everything is bounded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.records import Message
from queenbee.errors import QueenError
from queenbee.git.collisions.comparing import compare
from queenbee.report import limits
from queenbee.report.plan import graph, open_issues, phases, totals
from queenbee.report.talk import checks, threads
from queenbee.report.times import bars, conflicts, median, newest, turns, waits
from queenbee.report.values import Foreseen, GateLine, Report, Waiting
from queenbee.workflows.gating.gates import gate_views

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from queenbee.report.values import Bar
    from queenbee.workflows.hive import Hive

    T = TypeVar("T")


def gather(hive: Hive, *, since_ms: int | None = None, with_git: bool = True) -> Report:
    """Returns what a report says of a hive; with `since_ms`, only of what happened since then.

    How the plan stands is always as of now. Without `with_git`, worktrees are not compared.
    """
    left_out: list[str] = []
    now_ms, begin_ms = hive.now_ms(), since_ms or 0

    def first(found: Sequence[T], most: int, what: str) -> Sequence[T]:
        if len(found) > most:
            left_out.append(f"{most:,} of {len(found):,} {what} are shown.")
        return found[:most]

    found = hive.issues.standings()
    gates = _gates(hive)
    issues_held = hive.assignments.find(status="all")
    leases = hive.reservations.find(ended=True)
    waited = waits(issues_held, found, begin_ms)
    shown_graph = graph(found)
    if shown_graph.left_out:
        left_out.append(f"{shown_graph.left_out:,} issues are not in the graph.")
    talk, messages = _messages(hive, begin_ms)
    said = threads(talk)
    if messages > len(talk):
        left_out.append(f"Threads are made of the newest {len(talk):,} of {messages:,} messages.")
    foreseen, trouble = _foreseen(hive) if with_git else ([], None)
    if trouble is not None:
        left_out.append(f"Worktrees were not compared: {trouble}.")
    recent = newest([each for each in leases if each.created_ms >= begin_ms])
    runs = hive.state("verifications").select(
        {}, since_ms=since_ms, newest_first=True, limit=limits.RECORDS
    )
    return Report(
        name=os.path.basename(os.path.dirname(hive.layout.beads_dir)) or "hive",
        made_ms=now_ms,
        since_ms=since_ms,
        counts=totals(found.values()),
        phases=first(phases(found, gates), limits.PHASES, "phases"),
        open=first(open_issues(found), limits.ISSUES, "open issues"),
        graph=shown_graph,
        bars=_newest_bars(
            [each for each in bars(issues_held, leases, now_ms) if each.end_ms >= begin_ms],
            left_out,
        ),
        waits=first(waited, limits.WAITS, "waiting times"),
        usual_wait_s=median([each.waited_s for each in waited]),
        waiting=[
            Waiting(each.droid, str(each.want), each.since_ms) for each in hive.queue.everything()
        ],
        met=first(
            conflicts(issues_held, leases, begin_ms), limits.CONFLICTS, "conflicts that were met"
        ),
        avoided=first(
            turns(recent, fold_case=hive.reservations.fold_case), limits.TURNS, "files handed over"
        ),
        foreseen=first(foreseen, limits.CONFLICTS, "pairs of worktrees that would conflict"),
        gates=first(gates, limits.SUBJECTS, "gates"),
        checks=first(checks(runs), limits.SUBJECTS, "beads and gates with checks"),
        threads=said,
        messages=messages,
        left_out=left_out,
    )


def _gates(hive: Hive) -> list[GateLine]:
    found = []
    for view in gate_views(hive):
        known = view.to_dict()
        blocking = known["blocking"]
        assert isinstance(blocking, list)
        found.append(
            GateLine(
                str(known["workflow_id"] or "?"),
                str(known["phase_id"] or "?"),
                str(known["status"]),
                blocking,
            )
        )
    return sorted(found, key=lambda each: (each.workflow_id, each.phase_id))


def _messages(hive: Hive, begin_ms: int) -> tuple[list[Message], int]:
    """Returns the newest messages, oldest first, and how many there are."""
    state = hive.state("messages")
    rows = state.select({}, since_ms=begin_ms or None, newest_first=True, limit=limits.MESSAGES)
    if len(rows) < limits.MESSAGES:
        return [Message(fields) for fields in reversed(rows)], len(rows)
    count = len(state.project(("id",), {"deleted": False}))
    return [Message(fields) for fields in reversed(rows)], count


def _foreseen(hive: Hive) -> tuple[list[Foreseen], str | None]:
    """Returns which worktrees would conflict, or why that is not known."""
    try:
        pairs = compare(hive.layout).pairs
    except QueenError as error:
        return [], error.message
    return [
        Foreseen(pair.a.name, pair.b.name, [each.path for each in pair.files]) for pair in pairs
    ], None


def _newest_bars(found: Sequence[Bar], left_out: list[str]) -> list[Bar]:
    """Returns the newest bars of the droids that were active last, oldest first."""
    last_ms: dict[str, int] = {}
    for each in found:
        last_ms[each.droid] = max(last_ms.get(each.droid, 0), each.end_ms)
    droids = set(sorted(last_ms, key=lambda each: (-last_ms[each], each))[: limits.DROIDS])
    kept = [each for each in found if each.droid in droids]
    live = [each for each in kept if each.how == "held"]
    shown = set(live[-limits.BARS :])
    shown.update(kept[-max(0, limits.BARS - len(shown)) :] if len(shown) < limits.BARS else ())
    if len(shown) < len(found):
        left_out.append(
            f"The time line has {len(shown):,} of {len(found):,} assignments and leases."
        )
    return [each for each in kept if each in shown]
