"""The state of a record is a function of the set of its lines."""

from __future__ import annotations

import json
import os
from itertools import permutations

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from record_lines import any_lines, encoded, lines_with_rev, lines_without_rev

from queenbee.core import fold as fold_module
from queenbee.core.fold import MAX_REV, Table
from queenbee.core.records import Record

DOCUMENT = os.path.join(os.path.dirname(__file__), "fixtures", "records-document")


def folded(lines, aliases=None):
    """Returns what a reader would print for these lines, by id."""
    table = fold_module.Table(aliases)
    for raw in lines:
        table.add(raw, json.loads(raw))
    return {key: json.dumps(Record(entry.fields).to_dict()) for key, entry in table.entries.items()}


def fold(lines):
    """Returns the folded fields of every record in these lines, by id."""
    table = Table()
    for raw, fields in lines:
        table.add(raw, fields)
    return {fields["id"]: fields for fields in table}


def one(*lines):
    """Returns the folded fields of the only record in these lines."""
    (fields,) = fold((json.dumps(line).encode(), line) for line in lines).values()
    return fields


def record_in(raw):
    """Returns the fields of a line that holds a record, or None."""
    try:
        fields = json.loads(raw)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and "id" in fields else None


def latest_line_wins(lines):
    """Folds as the records document says, without a word of the product's own code."""
    state = {}
    for fields in map(json.loads, lines):
        known = state.setdefault(fields["id"], {})
        born = known.get("created_at")
        known.update(fields)
        if born:
            known["created_at"] = born
    return state


def document_records(kind):
    """Returns the records document's own examples, folded, by id."""
    with open(os.path.join(DOCUMENT, f"queen_{kind}.jsonl"), "rb") as file:
        return fold((line, json.loads(line)) for line in file.read().splitlines())


def all_at_once(lines, *, once=False):
    """Returns the same as `one_by_one`, from lines that are added together."""
    table = fold_module.Table({"agent": "droid"})
    return told(table, table.add_all(lines, once=once), lines)


def one_by_one(lines, *, once=False):
    """Returns all that a table says about lines, as text, so that the order of fields counts."""
    table, arrived = fold_module.Table({"agent": "droid"}), []
    for raw, fields in lines:
        entry = table.entry(fields["id"])
        known = len(entry.arrived) if entry else 0
        identifier = table.add(raw, fields, once=once)
        if len(table.entry(identifier).arrived) > known:
            arrived.append((identifier, raw))
    return told(table, arrived, lines)


def told(table, arrived, lines):
    ids = [fields["id"] for _, fields in lines]
    # Before `entry` unfolds any of them.
    before = repr([table.told(each["id"], raw) for raw, each in lines])
    history = [
        (key, entry.fields, entry.arrived, entry.last_rev, [line.raw for line in entry.lines])
        for key, entry in table.entries.items()
    ]
    return before, arrived, ids, list(table.ids()), len(table), repr(history)


class TestLinesAddedTogether:
    @given(any_lines(), st.booleans())
    @settings(max_examples=examples(500))
    def test_fold_as_when_added_one_by_one(self, raws, once):
        usable = [(raw, fields) for raw in raws if (fields := record_in(raw))]
        assert all_at_once(usable, once=once) == one_by_one(usable, once=once)

    def test_fold_so_whatever_is_odd_about_them(self):
        ledgers = [
            [{"id": "a", "rev": 1}, {"id": "a", "rev": 2, "read": True}],
            [{"id": "a", "rev": rev, "body": rev} for rev in (2, 3, 3, 1)],
            [{"id": "a", "rev": 1, "body": "b"}, {"id": "a", "rev": 2}],
            [{"id": "a", "rev": rev, "created_at": f"2026-01-0{rev}"} for rev in (1, 2)],
            [{"id": "a", "rev": 1.0}],
            [{"id": "a", "rev": 2**60}],
            [{"id": "a", "rev": 1, "agent": "ui"}],
        ]
        usable = [[(json.dumps(line).encode(), line) for line in lines] for lines in ledgers]
        assert all(all_at_once(lines) == one_by_one(lines) for lines in usable)


class TestLinesThatStateTheirRevision:
    @pytest.mark.slow
    @given(lines_with_rev(), st.randoms(use_true_random=False), st.data())
    @settings(max_examples=examples(300))
    def test_fold_to_the_same_in_any_order_and_however_often(self, lines, random, data):
        repeats = data.draw(st.lists(st.sampled_from(lines), max_size=4)) if lines else []
        shuffled = [*lines, *repeats]
        random.shuffle(shuffled)
        assert folded(shuffled) == folded(lines)

    @given(lines_with_rev(max_size=6))
    @settings(max_examples=examples(100))
    def test_have_the_same_history_in_any_order(self, lines):
        def history(each):
            table = Table()
            for raw in each:
                table.add(raw, json.loads(raw))
            return {key: [line.raw for line in entry.lines] for key, entry in table.entries.items()}

        assert history([*reversed(lines), *lines]) == history(lines)

    def test_are_ordered_by_revision_before_time(self):
        late = {"id": "q", "rev": 1, "subject": "old", "updated_at": "2030-01-01T00:00:00Z"}
        early = {"id": "q", "rev": 2, "subject": "new", "updated_at": "2020-01-01T00:00:00Z"}
        assert one(early, late)["subject"] == "new"

    def test_of_one_revision_are_ordered_by_their_newest_timestamp(self):
        older = {"id": "q", "rev": 2, "subject": "a", "read_at": "2024-01-01T00:00:00Z"}
        newer = {"id": "q", "rev": 2, "subject": "b", "read_at": "2024-01-01T01:00:01+01:00"}
        assert one(newer, older)["subject"] == "b"

    def test_of_one_revision_and_time_sort_by_their_bytes(self):
        lines = [{"id": "q", "rev": 2, "subject": text} for text in "abc"]
        assert len({one(*order)["subject"] for order in permutations(lines)}) == 1

    def test_merge_field_by_field(self):
        whole = {"id": "q", "rev": 1, "subject": "kept", "read": False}
        receipt = {"id": "q", "rev": 2, "read": True}
        assert one(whole, receipt) == {"id": "q", "rev": 2, "subject": "kept", "read": True}

    @pytest.mark.parametrize(
        "lines",
        [
            [{"rev": 2, "subject": "new"}, {"rev": 1, "subject": "old"}],
            [{"rev": 1, "subject": "a"}, {"rev": 1, "subject": "b"}],
            [{"rev": 1, "created_at": ""}, {"rev": 2, "created_at": "2024-12-14T10:00:00Z"}],
        ],
        ids=["revisions", "bytes", "an empty birth"],
    )
    def test_fold_to_the_same_in_either_order(self, lines):
        lines = [{"id": "q", **line} for line in lines]
        assert one(*lines) == one(*reversed(lines))

    @pytest.mark.parametrize("rev", [True, 1.5, 0, -1, "7", [1], None, 10**30])
    def test_state_a_whole_positive_number_or_none(self, rev):
        assert fold_module.explicit_rev({"id": "q", "rev": rev}) is None

    def test_give_the_record_their_highest_revision(self):
        assert one({"id": "q", "rev": 7}, {"id": "q", "rev": 3})["rev"] == 7


class TestLinesWithoutARevision:
    def test_follow_the_line_before_them_not_the_highest_revision(self):
        lines = {"rev": 7, "subject": "newest"}, {"rev": 3}, {"subject": "of whoever saw 3"}
        assert one(*({"id": "q", **line} for line in lines))["subject"] == "newest"

    @pytest.mark.slow
    @given(lines_without_rev())
    @settings(max_examples=examples(300))
    def test_fold_as_the_latest_line_wins(self, lines):
        ours = fold((raw, json.loads(raw)) for raw in lines)
        without_rev = {
            key: {name: value for name, value in fields.items() if name != "rev"}
            for key, fields in ours.items()
        }
        assert without_rev == latest_line_wins(lines)

    def test_take_the_revision_after_the_line_before_them(self):
        assert one({"id": "q", "rev": 4}, {"id": "q", "subject": "foreign"})["rev"] == 5

    def test_count_once_where_they_repeat_the_line_before_them(self):
        line = {"id": "q", "subject": "said twice by a merge"}
        assert one(line, line)["rev"] == 1

    def test_may_say_again_what_was_said_before(self):
        first, second = {"id": "q", "subject": "a"}, {"id": "q", "subject": "b"}
        assert one(first, second, first)["subject"] == "a"

    @pytest.mark.parametrize("rev", [0, -1, True, 1.0, "2", None, MAX_REV + 1, 10**40])
    def test_include_those_without_a_usable_revision(self, rev):
        assert one({"id": "q", "rev": 3}, {"id": "q", "rev": rev, "subject": "x"})["rev"] == 4


class TestCreatedAt:
    def test_keeps_the_value_of_the_first_line(self):
        first = {"id": "q", "rev": 1, "created_at": "2024-01-01T00:00:00Z"}
        second = {"id": "q", "rev": 2, "created_at": "2025-01-01T00:00:00Z"}
        assert one(second, first)["created_at"] == "2024-01-01T00:00:00Z"

    def test_comes_from_the_first_line_that_has_one(self):
        lines = [
            {"id": "q", "rev": 1, "created_at": ""},
            {"id": "q", "rev": 2, "created_at": "2025-01-01T00:00:00Z"},
        ]
        assert one(*lines)["created_at"] == "2025-01-01T00:00:00Z"
        assert one(*reversed(lines))["created_at"] == "2025-01-01T00:00:00Z"


class TestWhatIsOnceTrueStaysTrue:
    """Two replicas wrote the same revision apart."""

    BEFORE = "2024-12-14T10:00:00Z"
    AFTER = "2024-12-14T11:00:00Z"

    @pytest.mark.parametrize("flag", ["read", "deleted"])
    def test_for_a_flag(self, flag):
        true = {"id": "q", "rev": 2, flag: True, "at_at": self.BEFORE}
        false = {"id": "q", "rev": 2, flag: False, "at_at": self.AFTER}
        assert one(true, false)[flag] is True
        assert one(false, true)[flag] is True

    @pytest.mark.parametrize("final", ["completed", "released", "reassigned"])
    def test_for_a_final_status(self, final):
        ended = {"id": "q", "rev": 2, "status": final, "updated_at": self.BEFORE}
        renewed = {"id": "q", "rev": 2, "status": "active", "updated_at": self.AFTER}
        assert one(ended, renewed)["status"] == final
        assert one(renewed, ended)["status"] == final

    def test_of_two_final_statuses_the_newer_wins(self):
        first = {"id": "q", "rev": 2, "status": "released", "updated_at": self.BEFORE}
        second = {"id": "q", "rev": 2, "status": "completed", "updated_at": self.AFTER}
        assert one(second, first)["status"] == "completed"

    def test_until_a_later_revision_says_otherwise(self):
        true = {"id": "q", "rev": 2, "read": True}
        false = {"id": "q", "rev": 3, "read": False}
        assert one(true, false)["read"] is False


class TestTheDocumentsExamples:
    def test_a_message_is_read_and_keeps_its_subject_and_first_created_at(self):
        message = document_records("messages")["qm-01HZ1A"]
        assert message["read"] is True
        assert message["read_at"] == "2024-12-14T10:36:00Z"
        assert message["subject"] == "[qb-42] Assigned: Button component"
        assert message["created_at"] == "2024-12-14T10:30:00Z"

    def test_an_assignment_is_completed(self):
        assignment = document_records("assignments")["qa-01HZ2A"]
        assert assignment["status"] == "completed"
        assert assignment["reason"] == "Implementation complete"

    def test_a_reservation_is_released(self):
        lease = document_records("reservations")["qr-01HZ3A"]
        assert lease["status"] == "released"
        assert lease["released_at"] == "2024-12-14T11:45:00Z"
        assert lease["reason"] == "Implementing Button component"


class TestForeignNames:
    ALIASES: dict[str, str] = {"agent": "droid"}  # noqa: RUF012

    def test_are_read_as_ours(self):
        (text,) = folded([encoded("q", {"agent": "ui"}, 1)], aliases=self.ALIASES).values()
        assert json.loads(text) == {"id": "q", "agent": "ui", "droid": "ui", "rev": 1}

    def test_do_not_override_ours(self):
        line = encoded("q", {"agent": "old", "droid": "new"}, 1)
        (text,) = folded([line], aliases=self.ALIASES).values()
        assert json.loads(text)["droid"] == "new"

    def test_in_a_later_line_move_the_record(self):
        lines = [encoded("q", {"agent": "ui"}), encoded("q", {"agent": "api"})]
        (text,) = folded(lines, aliases=self.ALIASES).values()
        assert json.loads(text)["droid"] == "api"


def test_a_view_of_the_old_state_stays_whole_when_a_line_arrives():
    table = Table()
    table.add(b"1", {"id": "q", "rev": 1, "subject": "a"})
    before = table.get("q")
    table.add(b"2", {"id": "q", "rev": 2, "subject": "b"})
    assert before == {"id": "q", "rev": 1, "subject": "a"}


@pytest.mark.parametrize("status", [None, 7, ["completed"]])
def test_a_status_that_is_not_text_is_no_more_final_than_an_active_one(status):
    fields = {"id": "qa-1", "rev": 2, "droid": "ui", "status": status}
    active = {**fields, "status": "active", "updated_at": "2026-01-05T10:00:00.000Z"}
    for order in (fields, active), (active, fields):
        (text,) = folded([json.dumps(each).encode() for each in order]).values()
        assert json.loads(text)["status"] == "active"


@given(lines_with_rev() | lines_without_rev())
@settings(max_examples=examples(300))
def test_a_line_that_tells_all_reads_as_the_record_does(lines):
    table = Table()
    for raw in lines:
        table.add(raw, json.loads(raw))
    for key, entry in table.entries.items():
        for raw in filter(entry.is_told, entry.arrived):
            assert folded([raw])[key] == json.dumps(Record(entry.fields).to_dict())


def test_a_line_tells_all_unless_an_earlier_one_decides():
    table, first = Table(), {"id": "q", "rev": 1, "created_at": "2026-01-05T10:00:00.000Z"}
    table.add(b"1", first)
    table.add(b"2", {**first, "rev": 2, "x": True})
    assert table.entry("q").is_told(b"2")
    table.add(b"3", {**first, "rev": 3, "created_at": "2026-01-06T10:00:00.000Z", "x": True})
    assert not table.entry("q").is_told(b"3")
