"""The doctor: what it finds, where, and repairs that cannot lose anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import Clock, records, snapshot, write_lines
from raw_files import remembered

from queenbee import Hive
from queenbee.services.care.doctor import examine, repair
from queenbee.services.diagnosis import Diagnosis
from queenbee.store import creating
from queenbee.store.codec import SCANNED_LINE_BYTES, encode

MESSAGE = {"id": "qm-1", "created_at": "2024-12-14T10:00:00Z", "from": "a", "to": "b", "body": ""}
LEASE = {
    "id": "qr-1",
    "created_at": "2024-12-14T10:00:00Z",
    "expires_at": "2024-12-14T12:00:00Z",
    "pattern": "a.py",
    "droid": "x",
    "status": "active",
}


@pytest.fixture(autouse=True)
def _sound(hive: Hive) -> None:
    creating.init(hive.layout)


@pytest.fixture
def messages(beads: Path) -> Path:
    return beads / "queen_messages.jsonl"


def codes(found: list[Diagnosis]) -> list[str]:
    return [each.code for each in found]


def only(hive: Hive) -> Diagnosis:
    [finding] = examine(hive)
    return finding


def test_a_hive_in_use_is_sound(hive: Hive, reviewer: Hive) -> None:
    reviewer.assignments.claim("qb-1")
    hive.assignments.assign("qb-1", "tester", reassign=True)
    hive.reservations.reserve(["a.py"])
    hive.messages.send("@all", "x")
    assert examine(hive) == []


@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        (b"not json", "unusable_line", "not JSON"),
        (b'["a list"]', "unusable_line", "not a JSON object"),
        (b'{"no":"id"}', "unusable_line", "no id"),
        (b'{"id":"qm-\xff"}', "unusable_line", "not valid UTF-8"),
        (b'{"id":"qm-9"}\0', "unusable_line", "NUL bytes"),
        (b'{"id":"qm-9","body":"' + b"x" * 2**20 + b'"}', "unusable_line", "longer than"),
        (b"<<<<<<< HEAD", "conflict_marker", "a conflict marker"),
        (b"=======", "conflict_marker", "a conflict marker"),
        (b">>>>>>> theirs", "conflict_marker", "a conflict marker"),
    ],
)
def test_a_line_without_a_record_is_reported_with_file_line_and_reason(
    hive: Hive, messages: Path, line: bytes, code: str, why: str
) -> None:
    write_lines(messages, MESSAGE, line, {**MESSAGE, "id": "qm-2"})
    hive.messages.send("b", "brings the ledger up to date")
    finding = only(hive)
    assert (finding.code, finding.file, finding.line) == (code, str(messages), 2)
    assert why in finding.message
    assert finding.severity == "error"


def test_a_torn_last_line_is_found_and_ended_without_taking_a_byte(
    hive: Hive, messages: Path
) -> None:
    hive.messages.send("b", "whole")
    with messages.open("ab") as file:
        file.write(b'{"id":"qm-torn","bo')
    before = messages.read_bytes()
    assert "torn" in codes(examine(hive))
    repair(hive)
    assert messages.read_bytes() == before + b"\n"
    assert codes(examine(hive)) == ["unusable_line"]


def test_conflict_markers_are_taken_out_and_nothing_else(hive: Hive, messages: Path) -> None:
    write_lines(messages, "<<<<<<< HEAD", MESSAGE, "=======", "garbage", ">>>>>>> theirs")
    found = repair(hive)
    assert [each.fixed for each in found if each.code == "conflict_marker"] == [True] * 3
    assert [each.fixed for each in found if each.code == "unusable_line"] == [False]
    lines = messages.read_bytes().split(b"\n")
    assert lines[1:] == [b"garbage", b""]
    assert [m.id for m in hive.messages.inbox(droid="b")] == ["qm-1"]


def test_a_marker_before_a_torn_line_is_taken_out_too(hive: Hive, messages: Path) -> None:
    write_lines(messages, "<<<<<<< HEAD", MESSAGE)
    with messages.open("ab") as file:
        file.write(b'{"id":"qm-torn","bo')
    repair(hive)
    assert b"<<<<<<<" not in messages.read_bytes()
    assert b'{"id":"qm-torn","bo\n' in messages.read_bytes()


def test_a_carriage_return_within_a_line_ends_no_line(hive: Hive, messages: Path) -> None:
    odd = b'{"id":"qm-2",\r=======\r"body":"x"}'
    write_lines(messages, "=======", odd)
    repair(hive)
    assert odd + b"\n" in messages.read_bytes()


def test_lines_that_git_took_away_are_found_and_brought_back(hive: Hive, messages: Path) -> None:
    for number in range(3):
        hive.messages.send("b", str(number))
    whole = records(messages)
    messages.write_bytes(b"")
    finding = only(hive)
    assert finding.code == "behind"
    assert finding.message.startswith("3 recorded lines are missing")
    assert [each.fixed for each in repair(hive)] == [True]
    assert records(messages) == whole
    assert examine(hive) == []


def test_attributes_that_are_missing_are_found_and_restored(hive: Hive, beads: Path) -> None:
    (beads / ".gitattributes").write_text("*.bin binary")
    assert only(hive).code == "attributes"
    assert [each.fixed for each in repair(hive)] == [True]
    assert (beads / ".gitattributes").read_text().splitlines() == [
        *creating.ATTRIBUTES,
        "*.bin binary",
    ]


def test_a_setting_that_nobody_knows_is_noted(open_as: object, beads: Path, repo: Path) -> None:
    (beads / "queen.toml").write_text('color = "red"\n')
    finding = only(Hive.open(repo, env={}))
    assert (finding.code, finding.severity) == ("unknown_setting", "note")
    assert "'color'" in finding.message


def test_a_migration_is_noted(hive: Hive) -> None:
    assert hive.migrate("messages", "v1_to_v2")
    finding = only(hive)
    assert (finding.code, finding.severity) == ("migration", "note")
    assert "v1_to_v2" in finding.message


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"created_at": None}, "created_at is missing or not a timestamp"),
        ({"created_at": "yesterday"}, "created_at is missing or not a timestamp"),
        ({"created_at": "2030-01-01T00:00:00Z"}, "in the future"),
        ({"id": "qm-01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "more than a day apart"),
        ({"to": None}, "no sender or no recipient"),
        ({"from": ""}, "no sender or no recipient"),
        ({"reply_to": "qm-nowhere"}, "replies to qm-nowhere, which does not exist"),
    ],
)
def test_oddities_of_a_message_are_noted(
    hive: Hive, messages: Path, changes: dict[str, object], said: str
) -> None:
    row = {key: each for key, each in {**MESSAGE, **changes}.items() if each is not None}
    write_lines(messages, row)
    notes = [each for each in examine(hive) if each.code == "record"]
    assert [said in each.message for each in notes] == [True]
    assert notes[0].severity == "note"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"droid": None}, "no droid"),
        ({"expires_at": "2024-12-14T09:00:00Z"}, "ends before it begins"),
        ({"pattern": "src/["}, "protects nothing"),
    ],
)
def test_oddities_of_a_reservation_are_noted(
    hive: Hive, beads: Path, changes: dict[str, object], said: str
) -> None:
    row = {key: each for key, each in {**LEASE, **changes}.items() if each is not None}
    write_lines(beads / "queen_reservations.jsonl", row)
    assert any(said in each.message for each in examine(hive) if each.code == "record")


def test_an_assignment_of_nothing_to_nobody_is_noted(hive: Hive, beads: Path) -> None:
    row = {"id": "qa-1", "created_at": "2024-12-14T10:00:00Z", "status": "active"}
    write_lines(beads / "queen_assignments.jsonl", row)
    said = [each.message for each in examine(hive) if each.code == "record"]
    assert said == ["qa-1: no issue_id", "qa-1: no droid"]


def test_a_blocker_that_does_not_exist_is_noted(hive: Hive, beads: Path) -> None:
    row = {"title": "x", "status": "open", "priority": 1}
    related = {"depends_on_id": "qb-8", "type": "related"}
    write_lines(
        beads / "issues.jsonl",
        {"id": "qb-1", **row, "dependencies": ["qb-9", "qb-2", related]},
        {"id": "qb-2", **row, "status": "closed", "dependencies": ["qb-9"]},
    )
    finding = only(hive)
    assert (finding.code, finding.severity) == ("missing_blocker", "note")
    assert finding.message == ("qb-1 waits for qb-9, which does not exist and so does not block it")


@pytest.mark.parametrize("other", [1, 2])
def test_a_note_says_what_an_absent_priority_means(hive: Hive, beads: Path, other: int) -> None:
    write_lines(
        beads / "issues.jsonl",
        {"id": "qb-1", "title": "x", "status": "open"},
        {"id": "qb-2", "title": "x", "status": "open", "priority": other},
    )
    finding = only(hive)
    assert (finding.code, finding.severity) == ("absent_priority", "note")
    assert finding.message.endswith("no priority, which means 2")


ROW = {"title": "x", "priority": 1, "status": "open", "updated_at": "2026-01-01T00:00:00Z"}
DOUBLED = (
    {"id": "qb-1", **ROW},
    {"id": "qb-2", **ROW, "external_ref": "gh-1"},
    {"id": "qb-1", **ROW, "status": "closed", "updated_at": "2026-01-02T00:00:00Z"},
)


def test_doubled_rows_are_counted_and_the_newest_of_each_is_kept(hive: Hive, beads: Path) -> None:
    path = beads / "issues.jsonl"
    write_lines(path, *DOUBLED)
    finding = only(hive)
    assert (finding.code, finding.hint) == ("doubled_row", "queen doctor --fix")
    assert finding.message.startswith("1 issues have several rows, first qb-1")
    assert [each.fixed for each in repair(hive)] == [True]
    assert records(path) == [*DOUBLED[1:]]
    assert examine(hive) == []


def test_doubled_rows_of_another_program_are_left_to_it(hive: Hive, beads: Path) -> None:
    write_lines(beads / "issues.jsonl", *DOUBLED)
    (beads / "metadata.json").write_text("{}")
    before = (beads / "issues.jsonl").read_bytes()
    assert [(each.code, each.hint, each.fixed) for each in repair(hive)] == [
        ("doubled_row", None, False)
    ]
    assert (beads / "issues.jsonl").read_bytes() == before


def test_a_conflict_in_the_tracker_keeps_both_sides(hive: Hive, beads: Path) -> None:
    old, new = ({"id": "qb-1", "title": title, "status": "open", "priority": 1,
        "updated_at": f"2026-01-0{day}T00:00:00Z"}
        for title, day in (("Old", 1), ("New", 2)))  # fmt: skip
    ours, theirs = ({"id": f"qb-{n}", "title": "x", "priority": 1} for n in (2, 3))
    path = beads / "issues.jsonl"
    write_lines(path, "<<<<<<< HEAD", new, ours, "=======", old, theirs, ">>>>>>> api")
    assert {each.code for each in repair(hive) if not each.fixed} == set()
    assert [row["id"] for row in records(path)] == ["qb-1", "qb-2", "qb-3"]
    assert hive.issues.get("qb-1").title == "New"


def test_two_issues_with_one_reference_are_found(hive: Hive, beads: Path) -> None:
    row = {"title": "x", "priority": 1, "external_ref": "gh-1"}
    write_lines(beads / "issues.jsonl", {"id": "qb-1", **row}, {"id": "qb-2", **row})
    finding = only(hive)
    assert (finding.code, finding.message) == (
        "doubled_ref",
        "qb-1, qb-2 have one external_ref, gh-1: Beads refuses such a file",
    )


@pytest.mark.parametrize("field", ["created_by", "created_at", "status", "external_ref"])
@pytest.mark.parametrize("value", [["mallory"], {"a": 1}], ids=["list", "object"])
def test_a_field_of_any_shape_ends_no_examination(
    hive: Hive, beads: Path, field: str, value: object
) -> None:
    row = {"id": "qb-1", "title": "x", "rev": 1, "created_at": "2024-12-14T10:00:00Z"}
    write_lines(beads / "queen_issues.jsonl", row, {**row, field: value})
    write_lines(beads / "issues.jsonl", {**row, field: value})
    assert examine(hive)


def test_of_two_issues_with_one_reference_the_oldest_stays(hive: Hive, beads: Path) -> None:
    row = {"title": "x", "priority": 1, "external_ref": "gh-1", "status": "open"}
    path = beads / "issues.jsonl"
    write_lines(
        path,
        {"id": "qb-1", **row, "created_at": "2026-01-02T00:00:00Z"},
        {"id": "qb-2", **row, "created_at": "2026-01-01T00:00:00Z"},
        {"id": "qb-3", **row, "created_at": "2026-01-03T00:00:00Z"},
    )
    (finding,) = (each for each in repair(hive) if each.code == "doubled_ref")
    assert (finding.fixed, finding.hint) == (True, "queen doctor --fix keeps qb-2, the oldest")
    gone, kept, also = records(path)
    assert (kept["status"], kept["external_ref"]) == ("open", "gh-1")
    for each in (gone, also):
        assert (each["status"], each["delete_reason"]) == ("tombstone", "the same as qb-2")
        assert "external_ref" not in each


def test_ids_of_any_text_stay_one_word_of_its_commands(hive: Hive, beads: Path) -> None:
    same = {"title": "x", "priority": 1, "rev": 1, "external_ref": "gh-1"}
    first = {"id": "qb-1;sh", **same, "created_at": "2026-01-01T00:00:00Z"}
    twice = {**first, "created_at": "2026-01-02T00:00:00Z", "created_by": "mallory"}
    write_lines(beads / "queen_issues.jsonl", first, twice)
    write_lines(
        beads / "issues.jsonl", first, {**first, "id": "qb-2", "created_at": "2026-01-03T00:00:00Z"}
    )
    hints = {each.code: str(each.hint) for each in examine(hive)}
    assert " 'qb-1;sh'" in hints["doubled_ref"]
    assert hints["made_twice"].startswith("queen hive history 'qb-1;sh' has both")


@pytest.mark.parametrize("why", ["held", "needed", "closed"])
def test_a_second_issue_with_a_reference_that_counts_is_left_to_people(
    hive: Hive, beads: Path, why: str
) -> None:
    row = {"title": "x", "priority": 1, "external_ref": "gh-1"}
    second = {"id": "qb-2", **row, "status": "closed" if why == "closed" else "open"}
    rows = [{"id": "qb-1", **row}, second]
    if why == "needed":
        rows.append({"id": "qb-3", "title": "y", "priority": 1, "dependencies": ["qb-2"]})
    write_lines(beads / "issues.jsonl", *rows)
    if why == "held":
        hive.assignments.claim("qb-2")
    (finding,) = (each for each in repair(hive) if each.code == "doubled_ref")
    hint = "queen issue delete qb-2 --reason 'the same as qb-1'"
    assert (finding.fixed, finding.hint) == (False, hint)
    assert records(beads / "issues.jsonl")[1]["status"] == second["status"]


def test_lines_of_the_tracker_that_are_not_issues_are_named(hive: Hive, beads: Path) -> None:
    write_lines(beads / "issues.jsonl", "<<<<<<< HEAD", '{"_type":"memory"}', "", "{torn")
    found = [(each.code, each.line, each.severity) for each in examine(hive)]
    assert found == [("conflict_marker", 1, "error"), ("unusable_line", 4, "error")]
    assert examine(hive)[1].hint == "correct or delete the line; git diff shows what it was"


def test_two_grants_that_a_merge_brought_together_are_found(hive: Hive, beads: Path) -> None:
    hive.reservations.reserve(["a.py"])
    write_lines(beads / "queen_reservations.jsonl", LEASE)
    assert "conflict" in codes(examine(hive))


def test_a_ledger_that_cannot_be_read_is_a_finding_not_a_failure(hive: Hive, beads: Path) -> None:
    (beads / "queen_messages.jsonl").mkdir()
    found = examine(hive)
    assert any(each.file.endswith("queen_messages.jsonl") for each in found)
    assert {each.code for each in found} == {"unreadable"}


def test_a_tracker_that_cannot_be_read_is_a_finding_not_a_failure(hive: Hive, beads: Path) -> None:
    (beads / "issues.jsonl").mkdir()
    finding = only(hive)
    assert (finding.code, finding.file) == ("unreadable", str(beads / "issues.jsonl"))


def test_examining_changes_nothing(hive: Hive, beads: Path, messages: Path) -> None:
    write_lines(messages, "garbage", MESSAGE)
    before = snapshot(beads, Path(hive.layout.state_dir))
    examine(hive)
    assert snapshot(beads, Path(hive.layout.state_dir)) == before


def test_repairing_twice_changes_nothing_more(hive: Hive, beads: Path, messages: Path) -> None:
    write_lines(messages, "<<<<<<< HEAD", MESSAGE, "garbage")
    repair(hive)
    recorded = remembered(hive.layout.state_dir, "messages")
    before = snapshot(beads, Path(hive.layout.state_dir))
    repair(hive)
    assert snapshot(beads, Path(hive.layout.state_dir)) == before
    assert remembered(hive.layout.state_dir, "messages") == recorded


def test_a_finding_as_plain_values_has_all_its_parts(hive: Hive, messages: Path) -> None:
    write_lines(messages, "garbage")
    plain = examine(hive)[0].to_dict()
    assert set(plain) == {"code", "file", "line", "message", "hint", "severity", "fixed"}


def test_kinds_that_this_version_does_not_know_are_examined_too(
    hive: Hive, beads: Path, clock: Clock
) -> None:
    write_lines(beads / "queen_plans.jsonl", {"id": "qp-1", "created_at": "2024-12-14T10:00:00Z"})
    assert codes(examine(hive)) == []
    write_lines(beads / "queen_plans.jsonl", "garbage")
    assert codes(examine(hive)) == ["unusable_line"]


def test_a_line_that_the_go_tool_cannot_read_is_told(hive: Hive, reviewer: Hive) -> None:
    """`bufio.Scanner` has 64 KiB for a line and its ending."""
    (short,) = hive.messages.send("reviewer", "x", subject="s")
    room = SCANNED_LINE_BYTES - len(encode(short.fields))
    hive.messages.send("reviewer", "x" * (room + 1), subject="s")
    assert hive.notes() == []
    assert examine(hive) == []
    (long,) = hive.messages.send("reviewer", "x" * (room + 2), subject="s")
    (note,) = hive.notes()
    assert note.startswith(f"{long.id} took a line of 64 KiB or more: the Go tool cannot read it")
    assert hive.notes() == []
    (found,) = examine(hive)
    assert (found.code, found.line, found.severity) == ("long_line", 3, "note")
    reviewer.messages.mark_read([long.id])
    assert reviewer.notes()[0].startswith(long.id)


def test_several_long_lines_are_told_at_once(hive: Hive, reviewer: Hive) -> None:
    hive.messages.send("reviewer,human", "x" * 70_000)
    (note,) = hive.notes()
    assert " and 1 more took a line" in note
