"""Threads, and checks with their history."""

from __future__ import annotations

from hives import START_MS
from stamps import format_ms

from queenbee.core.records import Message
from queenbee.report import caps
from queenbee.report.gathering import checks, threads


def message(number: int, **fields: object) -> Message:
    return Message(
        {
            "id": f"qm-{number:04}",
            "created_at": format_ms(START_MS + number * 1_000),
            "from": "ui",
            "to": "api",
            "subject": f"about {number}",
            "body": f"body {number}",
            **fields,
        }
    )


def run(number: int, verdict: str, *results: object, **fields: object) -> dict[str, object]:
    return {
        "id": f"qv-{number}",
        "subject_kind": "bead",
        "subject_id": "gt-1",
        "started_at": format_ms(START_MS + number * 10_000),
        "finished_at": format_ms(START_MS + number * 10_000 + 2_000),
        "verdict": verdict,
        "results": list(results),
        **fields,
    }


class TestThreads:
    def test_replies_are_with_the_message_that_they_answer(self):
        told = [message(1), message(2), message(3, thread_id="qm-0001", issue_id="qb-1")]
        first, second = threads(told)
        assert [each.body for each in first.messages] == ["body 1", "body 3"]
        assert (first.subject, first.issue_id, first.droids) == ("about 1", "qb-1", ["api", "ui"])
        assert [each.body for each in second.messages] == ["body 2"]

    def test_a_message_to_several_is_said_once(self):
        told = [
            message(1),
            message(1, id="qm-copy", to="reviewer", thread_id="qm-0001"),
        ]
        (thread,) = threads(told)
        assert len(thread.messages) == 1
        assert thread.droids == ["api", "reviewer", "ui"]

    def test_a_long_thread_keeps_its_newest_messages(self):
        told = [message(n, thread_id="qm-0000") for n in range(caps.SAID + 5)]
        (thread,) = threads(told)
        assert thread.earlier == 5
        assert thread.messages[-1].body == f"body {caps.SAID + 4}"

    def test_long_bodies_are_cut_and_all_of_them_are_bounded(self):
        told = [message(n, body=str(n % 10) * 90_000) for n in range(1_000)]
        found = threads(told)
        bodies = [each for thread in found for each in thread.messages]
        assert len(found) == caps.THREADS
        assert all(each.cut for each in bodies)
        assert sum(len(each.body) for each in bodies) <= caps.BODIES


class TestChecks:
    def test_runs_are_in_order_with_what_failed(self):
        (found,) = checks(
            [
                run(2, "passed", {"name": "tests", "status": "passed"}),
                run(1, "failed", {"name": "tests", "status": "failed", "reason": "exit code 1"}),
            ]
        )
        assert [(each.verdict, each.failed, each.seconds) for each in found.runs] == [
            ("failed", ["tests: exit code 1"], 2.0),
            ("passed", [], 2.0),
        ]

    def test_only_the_last_runs_are_kept(self):
        (found,) = checks([run(n, "passed") for n in range(caps.RUNS + 3)])
        assert (len(found.runs), found.earlier) == (caps.RUNS, 3)

    def test_odd_records_are_no_trouble(self):
        odd = run(1, "passed", "x", {"status": 5}, results=7, droid=[], started_at="soon")
        known = {key: value for key, value in odd.items() if key != "finished_at"}
        (found,) = checks([known, run(1, 5, {"status": 5}), run(2, "x", subject_kind="dog")])
        assert found.subject == "gt-1"
        assert {each.verdict for each in found.runs} == {"passed", "?"}
