"""Reads a hive once, and returns what a report says of it. Everything is bounded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.records import Message, Record
from queenbee.core.timestamps import instant_ms
from queenbee.errors import QueenError
from queenbee.git.collisions.comparing import compare
from queenbee.report import caps
from queenbee.report.plan_section import graph, open_issues, phases, totals
from queenbee.report.times import bars, conflicts, handovers, median, newest, waits
from queenbee.report.values import Checked, Foreseen, GateLine, Report, Run, Said, Thread, Waiting
from queenbee.store.droids import roster, spending
from queenbee.workflows.gating.gates import gate_views

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    from queenbee.core.fold import Fields
    from queenbee.core.records import Reservation
    from queenbee.report.values import Bar, Handover
    from queenbee.store.droids.spending import Spent
    from queenbee.workflows.complete_hive import Hive

    T = TypeVar("T")


class _LeftOut(list[str]):
    """What is not in the report because there is too much of it, a sentence each."""

    def first(self, found: Sequence[T], most: int, what: str) -> Sequence[T]:
        """Returns the first of the things found; a sentence says if there are more."""
        if len(found) > most:
            self.append(f"{most:,} of {len(found):,} {what} are shown.")
        return found[:most]


def gather(hive: Hive, *, since_ms: int | None = None, with_git: bool = True) -> Report:
    """Returns what a report says of a hive; with `since_ms`, only of what happened since then.

    How the plan stands is always as of now. Without `with_git`, worktrees are not compared.
    """
    left_out, begin_ms = _LeftOut(), since_ms or 0
    found, gates = hive.issues.standings(), _gates(hive)
    held, leases = hive.assignments.find(status="all"), hive.reservations.find(ended=True)
    waited, met = waits(held, found, begin_ms), conflicts(held, leases, begin_ms)
    shown = graph(found)
    if shown.left_out:
        left_out.append(f"{shown.left_out:,} issues are not in the graph.")
    said, messages = _threads(hive, begin_ms, left_out)
    foreseen = _foreseen(hive, left_out) if with_git else []
    return Report(
        name=os.path.basename(os.path.dirname(hive.layout.beads_dir)) or "hive",
        made_ms=hive.now_ms(),
        since_ms=since_ms,
        counts=totals(found.values()),
        phases=left_out.first(phases(found, gates), caps.PHASES, "phases"),
        open=left_out.first(open_issues(found), caps.ISSUES, "open issues"),
        graph=shown,
        bars=newest_bars(bars(held, leases, hive.now_ms()), begin_ms, left_out),
        waits=left_out.first(waited, caps.WAITS, "waiting times"),
        usual_wait_s=median([each.waited_s for each in waited]),
        waiting=[
            Waiting(one.droid, str(one.want), one.since_ms) for one in hive.queue.everything()
        ],
        met=left_out.first(met, caps.CONFLICTS, "conflicts that were met"),
        avoided=_handed_over(hive, leases, begin_ms, left_out),
        foreseen=left_out.first(foreseen, caps.CONFLICTS, "pairs of worktrees that would conflict"),
        gates=left_out.first(gates, caps.SUBJECTS, "gates"),
        checks=_checks(hive, since_ms, left_out),
        threads=said,
        messages=messages,
        left_out=left_out,
        started=roster.sentences(hive.layout, begin_ms),
        spent=left_out.first(_spent(hive, begin_ms), caps.ISSUES, "costs"),
    )


def _spent(hive: Hive, begin_ms: int) -> list[Spent]:
    return [each for each in reversed(spending.spent(hive.layout)) if each.at_ms >= begin_ms]


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


def _checks(hive: Hive, since_ms: int | None, left_out: _LeftOut) -> Sequence[Checked]:
    runs = hive.state("verifications").select(
        {}, since_ms=since_ms, newest_first=True, limit=caps.RECORDS
    )
    return left_out.first(checks(runs), caps.SUBJECTS, "beads and gates with checks")


def _threads(hive: Hive, begin_ms: int, left_out: list[str]) -> tuple[list[Thread], int]:
    """Returns the threads of the newest messages, and how many messages there are."""
    state = hive.state("messages")
    rows = state.select({}, since_ms=begin_ms or None, newest_first=True, limit=caps.MESSAGES)
    count = len(rows)
    if count >= caps.MESSAGES:
        count = state.count({"deleted": False})
        if count > len(rows):
            read = f"{len(rows):,} of {count:,} messages"
            left_out.append(f"Threads are made of the newest {read}.")
    return threads([Message(fields) for fields in reversed(rows)]), count


def _foreseen(hive: Hive, left_out: list[str]) -> list[Foreseen]:
    try:
        pairs = compare(hive.layout).pairs
    except QueenError as error:
        left_out.append(f"Worktrees were not compared: {error.message}.")
        return []
    return [
        Foreseen(pair.a.name, pair.b.name, [each.path for each in pair.files]) for pair in pairs
    ]


def _handed_over(
    hive: Hive, leases: Sequence[Reservation], begin_ms: int, left_out: _LeftOut
) -> Sequence[Handover]:
    recent = newest([each for each in leases if each.created_ms >= begin_ms])
    found = handovers(recent, fold_case=hive.reservations.fold_case)
    return left_out.first(found, caps.TURNS, "files handed over")


def newest_bars(every: Sequence[Bar], begin_ms: int, left_out: list[str]) -> list[Bar]:
    """Returns the newest bars of the droids that were active last, oldest first."""
    found = [each for each in every if each.end_ms >= begin_ms]
    last_ms: dict[str, int] = {}
    for each in found:
        last_ms[each.droid] = max(last_ms.get(each.droid, 0), each.end_ms)
    droids = set(sorted(last_ms, key=lambda each: (-last_ms[each], each))[: caps.DROIDS])
    kept = [each for each in found if each.droid in droids]
    # What is still held comes last, and so is shown before anything else.
    shown = set(sorted(kept, key=lambda each: each.how == "held")[-caps.BARS :])
    if len(shown) < len(found):
        left_out.append(
            f"The time line has {len(shown):,} of {len(found):,} assignments and leases."
        )
    return [each for each in kept if each in shown]


_SUBJECTS = ("bead", "gate")


def threads(messages: Sequence[Message]) -> list[Thread]:
    """Returns the threads of these messages, the one with the newest message first.

    Long bodies are cut; once all of them together are too long, further ones are empty.
    """
    by_thread: dict[str, list[Message]] = {}
    for each in sorted(messages, key=lambda each: each.age):
        by_thread.setdefault(each.thread, []).append(each)
    newest_first = sorted(by_thread.values(), key=lambda each: each[-1].age, reverse=True)
    room = caps.BODIES
    found = []
    for thread in newest_first[: caps.THREADS]:
        # A message to several is a record for each: it is said once.
        once = list(
            {
                (each.from_, each.created_ms, each.subject, each.body): each for each in thread
            }.values()
        )
        said = [_said(each, room) for each in once[-caps.SAID :]]
        room = max(0, room - sum(len(each.body) for each in said))
        found.append(
            Thread(
                next((each.subject for each in thread if each.subject), ""),
                next((each.issue_id for each in thread if each.issue_id), None),
                thread[-1].created_ms,
                sorted({name for each in thread for name in (each.from_, each.to) if name}),
                said,
                len(once) - len(said),
            )
        )
    return found


def checks(records: Sequence[Fields]) -> list[Checked]:
    """Returns the runs of checks by what they checked, the one that ran last first."""
    by_subject: dict[tuple[str, str], list[Run]] = {}
    for fields in records:
        record = Record(fields)
        kind, subject = fields.get("subject_kind"), fields.get("subject_id")
        if kind in _SUBJECTS and isinstance(subject, str):
            by_subject.setdefault((str(kind), subject), []).append(_run(record))
    found = []
    for (kind, subject), runs in by_subject.items():
        runs.sort(key=lambda each: each.at_ms)
        shown = runs[-caps.RUNS :]
        found.append(Checked(kind, subject, shown, len(runs) - len(shown)))
    return sorted(found, key=lambda each: (-each.runs[-1].at_ms, each.kind, each.subject))


def _said(message: Message, room: int) -> Said:
    most = min(caps.BODY, room)
    return Said(
        message.created_ms,
        message.from_,
        message.to,
        message.subject,
        message.body[:most],
        cut=len(message.body) > most,
    )


def _run(record: Record) -> Run:
    fields = record.fields
    begun_ms, ended_ms = (instant_ms(fields.get(f"{name}_at")) for name in ("started", "finished"))
    verdict, droid = fields.get("verdict"), fields.get("droid")
    results = fields.get("results")
    failed = [
        _failure(each)
        for each in (results if isinstance(results, list) else ())
        if isinstance(each, dict) and each.get("status") != "passed"
    ]
    return Run(
        ended_ms or record.created_ms,
        verdict if isinstance(verdict, str) else "?",
        droid if isinstance(droid, str) else None,
        max(0, (ended_ms or 0) - (begun_ms or 0)) / 1000 if begun_ms and ended_ms else 0.0,
        failed,
    )


def _failure(result: Mapping[str, object]) -> str:
    parts = [result.get(name) for name in ("name", "reason")]
    return ": ".join(each for each in parts if isinstance(each, str) and each) or "?"
