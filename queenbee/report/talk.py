"""Threads of messages, and checks with their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.records import Record
from queenbee.core.timestamps import instant_ms
from queenbee.report import limits
from queenbee.report.values import Checked, Run, Said, Thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.core.records import Message

_SUBJECTS = ("bead", "gate")


def threads(messages: Sequence[Message]) -> list[Thread]:
    """Returns the threads of these messages, the one with the newest message first.

    Long bodies are cut; once all of them together are too long, further ones are empty.
    """
    by_thread: dict[str, list[Message]] = {}
    for each in sorted(messages, key=lambda each: each.age):
        by_thread.setdefault(each.thread, []).append(each)
    newest_first = sorted(by_thread.values(), key=lambda each: each[-1].age, reverse=True)
    room = limits.BODIES
    found = []
    for thread in newest_first[: limits.THREADS]:
        # A message to several is a record for each: it is said once.
        once = list({_said_once(each): each for each in thread}.values())
        said = [_said(each, room) for each in once[-limits.SAID :]]
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
        shown = runs[-limits.RUNS :]
        found.append(Checked(kind, subject, shown, len(runs) - len(shown)))
    return sorted(found, key=lambda each: (-each.runs[-1].at_ms, each.kind, each.subject))


def _said_once(message: Message) -> tuple[object, ...]:
    return message.from_, message.created_ms, message.subject, message.body


def _said(message: Message, room: int) -> Said:
    most = min(limits.BODY, room)
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
