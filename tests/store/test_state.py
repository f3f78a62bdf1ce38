"""A state that is followed says what a state that is read from the start says."""

from __future__ import annotations

import json
import os
import threading

import pytest
from extent import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from record_lines import IDS, any_lines, encoded

from queenbee.core import fold
from queenbee.store import state as state_module
from queenbee.store.index.indexed import Indexed
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.state import Folded


def open_ledger(folder):
    (folder / "journal").mkdir(exist_ok=True)
    return Ledger(str(folder / "queen_messages.jsonl"), str(folder / "journal" / "messages.jsonl"))


def cold(ledger, kind="messages"):
    state = state_module.Folded(kind, Ledger(ledger.path, ledger.journal_path))
    state.refresh()
    return state


def said(state):
    """Returns all that a state answers, as text, so that the order of fields counts too."""
    return json.dumps(
        {
            "records": {fields["id"]: fields for fields in state.everything()},
            "history": {each: state.history(each) for each in IDS},
            "active": sorted(each["id"] for each in state.select({"status": "active"})),
            "unusable": state.unusable,
            "migrations": len(state.migrations),
        },
        sort_keys=False,
    )


def sorted_said(state):
    return json.dumps(json.loads(said(state)), sort_keys=True)


def put(path, data, mode="wb"):
    with open(path, mode) as file:
        file.write(data)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("ours", "foreign", "half", "stash", "replace", "reverse", "reset journal")
        ),
        any_lines(max_size=4),
    ),
    max_size=6,
)
"""What may happen to the two files between two looks of a follower."""


def take(ledger, step, lines):
    data = b"".join(line + b"\n" for line in lines)
    tracked = b""
    if os.path.exists(ledger.path):
        with open(ledger.path, "rb") as file:
            tracked = file.read()
    if step == "ours":
        usable = [line for line in lines if b'"id"' in line and b"torn" not in line]
        Ledger(ledger.path, ledger.journal_path).append(usable).close()
    elif step == "foreign":
        put(ledger.path, data, "ab")
    elif step == "half":
        put(ledger.path, data[:-1], "ab")
    elif step == "stash":
        put(ledger.path, tracked[: len(tracked) // 2])
    elif step == "replace":
        put(ledger.path, data)
    elif step == "reverse":
        put(ledger.path, b"".join(line + b"\n" for line in reversed(tracked.splitlines())))
    elif os.path.exists(ledger.journal_path):
        os.unlink(ledger.journal_path)


def differs(folder, steps):
    """Returns whether a follower that looks after each step ends up with another state."""
    ledger = open_ledger(folder)
    follower = state_module.Folded("messages", Ledger(ledger.path, ledger.journal_path))
    for step, lines in steps:
        take(ledger, step, lines)
        follower.refresh()
    return sorted_said(follower) != sorted_said(cold(ledger))


class TestFollowing:
    @pytest.mark.slow
    @given(STEPS)
    @settings(max_examples=examples(300))
    @example([("foreign", [encoded("qm-1", {"subject": "a"})]), ("half", [b'{"id":"qm-1","tor'])])
    def test_comes_to_the_state_that_reading_from_the_start_comes_to(self, tmp_path_factory, steps):
        assert not differs(tmp_path_factory.mktemp("follow"), steps)

    def test_takes_a_line_again_that_had_no_end_when_it_was_read(self, tmp_path):
        ledger = open_ledger(tmp_path)
        put(ledger.path, encoded("qm-1", {"subject": "a"}, 1))
        follower = cold(ledger)
        assert follower.get("qm-1")["subject"] == "a"
        put(ledger.path, b"joined by a tool that looks at nothing\n", "ab")
        follower.refresh()
        assert follower.get("qm-1") is None
        assert follower.unusable == 1

    def test_looks_again_at_a_line_without_an_end(self, tmp_path):
        steps = [("half", [encoded("qm-1", {}, 1)]), ("foreign", [b"joined"])]
        assert not differs(tmp_path, steps)

    def test_minds_the_places_of_lines_where_they_decide(self, tmp_path):
        steps = [
            ("ours", [encoded("qm-1", {"subject": "a"})]),
            ("replace", []),
            ("foreign", [encoded("qm-1", {"subject": "b"})]),
        ]
        assert not differs(tmp_path, steps)

    def test_tells_its_followers_what_changed(self, tmp_path):
        ledger = open_ledger(tmp_path)
        ledger.append([encoded("qm-1", {}, 1)]).close()
        state = cold(ledger)
        _, cursor = state.changes(None)
        ledger.append([encoded("qm-2", {}, 1)]).close()
        state.refresh()
        assert state.changes(cursor)[0] == ["qm-2"]

    def test_tells_its_followers_to_begin_anew_where_a_file_was_rewritten(self, tmp_path):
        ledger = open_ledger(tmp_path)
        ledger.append([encoded("qm-1", {}, 1)]).close()
        state = cold(ledger)
        _, cursor = state.changes(None)
        put(ledger.path, b"")
        state.refresh()
        assert state.changes(cursor)[0] is None


def through_an_index(ledger, kind="messages"):
    path = os.path.join(os.path.dirname(ledger.journal_path), f"{kind}.sqlite3")
    state = Indexed(kind, Ledger(ledger.path, ledger.journal_path), path)
    state.refresh()
    return state


@pytest.mark.parametrize("read", [cold, through_an_index])
class TestFromTheStart:
    """In memory and through an index alike."""

    def test_lines_may_fold_to_a_record_that_no_line_could_hold(self, tmp_path, read):
        ledger = open_ledger(tmp_path)
        halves = [encoded("qm-1", {name: "x" * 700_000}, rev) for rev, name in ((1, "a"), (2, "b"))]
        put(ledger.path, b"\n".join(halves) + b"\n")
        fields = read(ledger).get("qm-1")
        assert len(fields["a"]) == len(fields["b"]) == 700_000

    @pytest.mark.parametrize("status", [b"", b',"status":null', b',"status":3'])
    def test_a_status_that_is_not_said_is_active(self, tmp_path, read, status):
        ledger = open_ledger(tmp_path)
        put(ledger.path, b'{"id":"qr-1","pattern":"a"%s}\n{"id":"qr-2","status":"odd"}\n' % status)
        state = read(ledger, "reservations")
        assert [row["id"] for row in state.select({"status": "active"})] == ["qr-1"]
        assert state.project(("id", "pattern"), {"status": "active"}) == [("qr-1", "a")]
        assert state.distinct("status") == {"active", "odd"}


class TestForeignNames:
    @pytest.mark.parametrize("kind", ["assignments", "reservations"])
    def test_are_read_as_ours(self, tmp_path, kind):
        ledger = open_ledger(tmp_path)
        put(ledger.path, b'{"id":"q","agent":"ui","previous_agent":"api"}\n')
        fields = cold(ledger, kind).get("q")
        assert (fields["droid"], fields["previous_droid"]) == ("ui", "api")

    def test_are_found_by_our_name(self, tmp_path):
        ledger = open_ledger(tmp_path)
        put(ledger.path, b'{"id":"q","agent":"ui","status":"active"}\n')
        assert cold(ledger, "reservations").select({"droid": "ui"})

    def test_stay_as_they_are_in_messages(self, tmp_path):
        ledger = open_ledger(tmp_path)
        put(ledger.path, b'{"id":"q","agent":"ui"}\n')
        assert "droid" not in cold(ledger).get("q")


class TestWritingBack:
    DIGITS = b"1234567890" * 4

    def test_a_forty_digit_number_is_given_back_digit_by_digit(self, tmp_path):
        ledger = open_ledger(tmp_path)
        put(ledger.path, b'{"id":"q","rev":1,"x":{"deep":[' + self.DIGITS + b"]}}\n")
        assert cold(ledger).exact("q")["x"] == {"deep": [int(self.DIGITS)]}

    @given(any_lines())
    @settings(max_examples=examples(150))
    def test_what_is_exact_is_what_was_folded(self, tmp_path_factory, lines):
        ledger = open_ledger(tmp_path_factory.mktemp("exact"))
        long = [line.replace(b'"id"', b'"x":%s,"id"' % self.DIGITS, 1) for line in lines]
        put(ledger.path, b"".join(line + b"\n" for line in long))
        state = cold(ledger)
        for fields in state.everything():
            exact = state.exact(fields["id"])
            assert exact["x"] == int(self.DIGITS)
            assert {**exact, "x": None} == {**fields, "x": None}


def test_bookkeeping_is_kept_apart_from_records(tmp_path):
    ledger = open_ledger(tmp_path)
    put(ledger.path, b'{"_migration":"v1_to_v2","at":"2024-12-14T10:00:00Z"}\n{"id":"q"}\n')
    state = cold(ledger)
    assert [fields["id"] for fields in state.everything()] == ["q"]
    assert state.migrations[0]["_migration"] == "v1_to_v2"
    assert state.unusable == 0


def test_records_of_an_unknown_kind_fold_like_any_others(tmp_path):
    ledger = open_ledger(tmp_path)
    put(ledger.path, b'{"id":"qz-1","rev":1,"a":1}\n{"id":"qz-1","rev":2,"b":[2]}\n')
    assert cold(ledger, "zeppelins").get("qz-1") == {"id": "qz-1", "rev": 2, "a": 1, "b": [2]}


def test_threads_that_read_and_follow_see_whole_records(tmp_path):
    ledger = open_ledger(tmp_path)
    state = Folded("messages", Ledger(ledger.path, ledger.journal_path))
    broken = []

    def follow():
        for _ in range(150):
            state.refresh()
            shown = state.select({"status": "active"})
            broken.extend(fields for fields in shown if fields["a"] != fields["b"])

    threads = [threading.Thread(target=follow) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 60):
        fields = {"status": "active", "a": number, "b": number}
        ledger.append([encoded("qm-1", fields, number)]).close()
    for thread in threads:
        thread.join()
    state.refresh()
    assert not broken
    assert state.get("qm-1")["a"] == 59


def test_a_question_looks_at_the_records_that_match_and_no_others(tmp_path, monkeypatch):
    """It used to list all records for each one that matched."""
    ledger = open_ledger(tmp_path)
    put(ledger.path, b"".join(b'{"id":"qa-%d","droid":"d%d"}\n' % (n, n % 2) for n in range(4)))
    state = cold(ledger, "assignments")
    monkeypatch.delattr(fold.Table, "entries")
    found = state.select({"droid": "d1"})
    assert [each["id"] for each in found] == ["qa-1", "qa-3"]
