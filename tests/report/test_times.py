"""Who had what when, waiting times, conflicts met and avoided."""

from __future__ import annotations

import pytest
from hives import START_MS, write_lines
from stamps import format_ms

from queenbee.core.records import Assignment, Reservation
from queenbee.report.drawing import lanes, tick_marks, time_span, timeline_drawing
from queenbee.report.gathering import gather
from queenbee.report.times import bars, conflicts, handovers
from queenbee.report.values import Bar

MINUTE_MS = 60_000


def at(minutes: float) -> str:
    return format_ms(START_MS + int(minutes * MINUTE_MS))


def lease(droid: str, pattern: str, begin: float, end: float, **fields: object) -> Reservation:
    """Returns a lease that was released; times in minutes."""
    return Reservation(
        {
            "id": f"qr-{droid}-{pattern}-{begin}",
            "droid": droid,
            "pattern": pattern,
            "created_at": at(begin),
            "expires_at": at(end + 60),
            "released_at": at(end),
            "status": "released",
            **fields,
        }
    )


def assignment(droid: str, issue_id: str, begin: float, end: float, **fields: object) -> Assignment:
    return Assignment(
        {
            "id": f"qa-{droid}-{issue_id}-{begin}",
            "droid": droid,
            "issue_id": issue_id,
            "created_at": at(begin),
            "updated_at": at(end),
            "status": "completed",
            **fields,
        }
    )


class TestBars:
    def test_a_bar_goes_from_the_beginning_to_the_end(self):
        found = bars([assignment("ui", "qb-1", 0, 30)], [lease("ui", "a", 10, 20)], START_MS * 2)
        assert [(each.kind, each.what, each.how) for each in found] == [
            ("issue", "qb-1", "completed"),
            ("exclusive", "a", "released"),
        ]
        assert found[1].begin_ms == START_MS + 10 * MINUTE_MS
        assert found[1].end_ms == START_MS + 20 * MINUTE_MS

    def test_what_is_held_ends_now(self):
        live = lease("ui", "a", 0, 0, status="active", released_at=None)
        now_ms = START_MS + 5 * MINUTE_MS
        assert [(each.end_ms, each.how) for each in bars([], [live], now_ms)] == [(now_ms, "held")]

    def test_a_wrong_clock_makes_no_bar_that_ends_before_it_begins(self):
        ahead = assignment("ui", "qb-1", 90, 30)
        (found,) = bars([ahead], [], START_MS + 60 * MINUTE_MS)
        assert START_MS < found.begin_ms <= found.end_ms

    def test_what_has_no_readable_beginning_has_no_bar(self):
        assert bars([Assignment({"id": "qa-1", "issue_id": "x", "created_at": 7})], [], 1) == []


class TestConflicts:
    def test_a_grant_that_lost_names_who_won(self):
        won = assignment("api", "qb-1", 0, 9)
        lost = assignment("ui", "qb-1", 1, 9, superseded_by=won.id)
        (met,) = conflicts([won, lost], [], 0)
        assert (met.kind, met.what, met.droid, met.other) == ("superseded", "qb-1", "ui", "api")

    def test_a_grant_that_the_remote_refused_is_met(self):
        lost = lease("ui", "src/**", 1, 9, lost_to="qr-elsewhere")
        (met,) = conflicts([], [lost], 0)
        assert (met.kind, met.what, met.other) == ("withdrawn", "src/**", None)

    def test_a_takeover_says_who_and_why(self):
        taken = lease("ui", "a", 0, 5, released_by="human", release_reason="urgent")
        (met,) = conflicts([], [taken], 0)
        assert (met.kind, met.other, met.reason) == ("taken over", "human", "urgent")
        assert met.at_ms == START_MS + 5 * MINUTE_MS

    def test_an_issue_that_another_got_says_why(self, quick, repo):
        quick("claim", "qb-1", "--new", as_="ui")
        quick("issue", "assign", "qb-1", "api", "--force", "--new", "--reason", "gone", as_="human")
        quick("complete", "qb-1", "--reason", "all is in", as_="api")
        (met,) = quick("report", "--json").json["met"]
        assert (met["kind"], met["droid"], met["other"]) == ("reassigned", "ui", "api")
        assert "gone" in met["reason"]

    def test_what_the_holder_ended_itself_is_no_conflict(self):
        assert conflicts([assignment("ui", "qb-1", 0, 5)], [lease("ui", "a", 0, 5)], 0) == []

    def test_what_happened_before_is_left_out(self):
        taken = lease("ui", "a", 0, 5, released_by="human")
        assert conflicts([], [taken], START_MS + 6 * MINUTE_MS) == []


class TestTurns:
    def test_files_that_were_handed_over_name_a_file_and_the_gap(self):
        first, then = lease("ui", "src/**", 0, 10), lease("api", "src/a.py", 11, 20)
        (turn,) = handovers([first, then], fold_case=False)
        assert (turn.first, turn.then, turn.witness, turn.gap_s) == ("ui", "api", "src/a.py", 60)

    @pytest.mark.parametrize(
        "then",
        [
            lease("ui", "src/a.py", 11, 20),
            lease("api", "docs/**", 11, 20),
            lease("api", "src/a.py", 26, 30),
            lease("api", "src/a.py", 5, 30),
            lease("api", "src/[", 11, 20),
        ],
        ids=["own", "elsewhere", "much later", "at once", "unreadable"],
    )
    def test_others_are_no_turn(self, then):
        assert handovers([lease("ui", "src/**", 0, 10), then], fold_case=False) == []

    def test_two_shared_leases_are_no_turn(self):
        two = [lease("ui", "a", 0, 5, exclusive=False), lease("api", "a", 6, 9, exclusive=False)]
        assert handovers(two, fold_case=False) == []

    def test_what_was_taken_over_was_not_avoided(self):
        taken = lease("ui", "a", 0, 5, released_by="api")
        assert handovers([taken, lease("api", "a", 5, 9)], fold_case=False) == []


class TestWaits:
    def test_an_issue_waits_from_when_it_could_be_started(self, hive, repo, clock):
        write_lines(
            repo / ".beads" / "issues.jsonl",
            {"id": "qb-1", "title": "one", "status": "open", "created_at": at(0)},
            {"id": "qb-2", "title": "two", "status": "open", "created_at": at(0)}
            | {"dependencies": ["qb-1"]},
        )
        clock.advance(60)
        hive.assignments.claim("qb-1")
        clock.advance(120)
        hive.assignments.complete("qb-1")
        clock.advance(300)
        hive.assignments.claim("qb-2")
        found = gather(hive, with_git=False)
        assert [(each.issue_id, each.waited_s, each.worked_s) for each in found.waits] == [
            ("qb-2", 300, None),
            ("qb-1", 60, 120),
        ]
        assert found.usual_wait_s == 300

    def test_what_was_begun_before_is_left_out(self, hive, repo, clock):
        write_lines(
            repo / ".beads" / "issues.jsonl",
            {"id": "qb-1", "status": "open", "created_at": at(0)},
        )
        hive.assignments.claim("qb-1")
        clock.advance(60)
        assert gather(hive, since_ms=clock.now_ms, with_git=False).waits == []


class TestTheTimeLine:
    def bar(self, begin: float, end: float, how: str = "released", droid: str = "ui") -> Bar:
        begin_ms, end_ms = (START_MS + int(each * MINUTE_MS) for each in (begin, end))
        return Bar(droid, "exclusive", "a", begin_ms, end_ms, how, None, None)

    def test_bars_that_overlap_are_in_rows_of_their_own(self):
        rows = lanes(
            [self.bar(0, 10), self.bar(5, 15), self.bar(10, 20), self.bar(0, 1, droid="x")]
        )
        assert [len(row) for row in rows["ui"]] == [2, 1]
        assert list(rows) == ["ui", "x"]

    def test_a_droid_has_a_bounded_number_of_rows(self):
        assert len(lanes([self.bar(0, 10)] * 50)["ui"]) == 8

    def test_it_ends_with_the_last_event_if_that_is_long_ago(self):
        last = [self.bar(0, 10), self.bar(5, 500_000, "held")]
        assert time_span(last, START_MS + 500_000 * MINUTE_MS) == (
            START_MS,
            START_MS + 10 * MINUTE_MS,
        )
        assert time_span(last, START_MS + 12 * MINUTE_MS)[1] == START_MS + 12 * MINUTE_MS

    def test_a_record_of_the_year_1970_does_not_hide_the_rest(self):
        old = Bar("ui", "issue", "x", 1, 2, "completed", None, None)
        begin_ms, end_ms = time_span([old, self.bar(0, 10)], START_MS + 20 * MINUTE_MS)
        assert end_ms - begin_ms < 401 * 86_400_000
        assert "NaN" not in timeline_drawing([old, self.bar(0, 10)], START_MS)

    def test_an_instant_alone_can_be_drawn(self):
        assert "<rect" in timeline_drawing([self.bar(0, 0)], START_MS)

    @pytest.mark.parametrize("minutes", [1, 7, 60, 900, 20_000, 576_000, 50_000_000])
    def test_ticks_are_few_and_within_the_time(self, minutes):
        end_ms = START_MS + minutes * MINUTE_MS
        marks = tick_marks(START_MS, end_ms)
        assert 0 <= len(marks) <= 8
        assert all(START_MS <= each <= end_ms for each in marks)
