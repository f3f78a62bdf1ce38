"""Beads are found by id wherever they lie, and no crash of a move loses or doubles one."""

from __future__ import annotations

import contextlib
import json
import os

import pytest
from bead_folders import bead_folders
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.documents.json_documents import edited
from queenbee.documents.ralph import bead_files as ralph_store
from queenbee.documents.ralph.bead_files import (
    bead_in_row,
    find_bead,
    list_beads,
    read_bead,
    update_bead,
)
from queenbee.errors import Conflict, InvalidInput, NotFound, Unreadable, Unwritable

DOD = {"verifiers": []}


@pytest.fixture
def folders(tmp_path):
    folders = bead_folders(tmp_path)
    folders.notes = str(tmp_path / "beads.json")
    return folders


def put(folder, name, **members):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"intent": "Do it", "dod": DOD} | members, file)
    return path


def on_disk(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def set_status(status):
    def change(document):
        document["status"] = status

    return change


def test_a_bead_without_an_id_is_found_by_the_name_of_its_file(folders):
    path = put(folders.standalone, "my-bead")
    assert find_bead(folders, "my-bead").path == path


def test_the_id_in_the_content_goes_before_the_name_of_a_file(folders):
    named = put(folders.standalone, "other", id="gt-1")
    put(folders.active, "gt-1")
    assert find_bead(folders, "gt-1").path == named


def test_a_bead_with_an_id_is_not_found_by_the_name_of_its_file(folders):
    put(folders.standalone, "my-bead", id="gt-1")
    with pytest.raises(NotFound):
        find_bead(folders, "my-bead")


def test_a_missing_bead_is_reported_with_the_unreadable_files(folders):
    put(folders.active, "a", id="gt-1")
    with open(os.path.join(folders.active, "b.json"), "w") as file:
        file.write("{torn")
    with pytest.raises(NotFound, match=r"gt-2.*1 files there cannot be read.*b\.json"):
        find_bead(folders, "gt-2")


@pytest.mark.parametrize(
    "bead_id",
    ["", "..", ".", "../x", "../../etc/passwd", "a/b", "a\\b", "a\0b", "\x1b[2J", ".hidden"],
)
def test_an_id_that_leaves_its_folder_is_refused(bead_id, folders):
    put(folders.active, "x", id="x")
    with pytest.raises(InvalidInput):
        find_bead(folders, bead_id)


def test_a_folder_given_by_another_way_is_the_same_folder(folders, tmp_path):
    put(folders.active, "a", id="gt-1", status="in_progress")
    (tmp_path / "link").symlink_to(tmp_path / ".beads")
    bead = read_bead(str(tmp_path / "link" / "active" / "a.json"))
    assert update_bead(bead, set_status("completed"), folders).path == os.path.join(
        folders.completed, "a.json"
    )


def test_an_update_keeps_unknown_keys_and_their_order(folders):
    path = put(folders.standalone, "a", id="gt-1", zebra=1, apple={"z": 1, "a": 10**30})
    update_bead(read_bead(path), set_status("in_progress"), folders)
    assert list(on_disk(path)) == ["intent", "dod", "id", "zebra", "apple", "status"]
    assert on_disk(path)["apple"] == {"z": 1, "a": 10**30}


def test_an_update_applies_to_what_is_on_disk_now(folders):
    path = put(folders.standalone, "a", id="gt-1")
    bead = read_bead(path)
    put(folders.standalone, "a", id="gt-1", title="written meanwhile")
    update_bead(bead, set_status("in_progress"), folders)
    assert on_disk(path)["title"] == "written meanwhile"


def test_an_update_holds_the_lock_from_reading_to_writing(folders):
    path = put(folders.active, "a", id="gt-1", status="pending")
    seen = []

    @contextlib.contextmanager
    def lock():
        put(folders.active, "a", id="gt-1", status="pending", title="before")
        yield
        seen.append(on_disk(os.path.join(folders.completed, "a.json")))

    folders.lock = lock
    bead = update_bead(read_bead(path), set_status("completed"), folders)
    assert seen == [bead.document]
    assert bead.document["title"] == "before"


def test_a_completed_bead_moves_and_a_reopened_one_moves_back(folders):
    old = put(folders.active, "a", id="gt-1", status="in_progress")
    bead = update_bead(read_bead(old), set_status("completed"), folders)
    assert (bead.path, os.path.exists(old)) == (os.path.join(folders.completed, "a.json"), False)
    again = update_bead(bead, set_status("pending"), folders)
    assert (again.path, os.path.exists(bead.path)) == (old, False)


def test_a_move_does_not_overwrite_another_bead(folders):
    path = put(folders.active, "a", id="gt-1", status="in_progress")
    other = put(folders.completed, "a", id="gt-2", status="completed")
    with pytest.raises(Conflict, match="is another bead's"):
        update_bead(read_bead(path), set_status("completed"), folders)
    assert (on_disk(path)["status"], on_disk(other)["id"]) == ("in_progress", "gt-2")


class Crash(BaseException):
    """The machine stops here: nothing catches it, and nothing cleans up."""


def crash_at(monkeypatch, name, number):
    """Makes the `number`th call of a function the point at which the machine stops."""
    calls = iter(range(1, 100))
    real = getattr(ralph_store, name)

    def call(*arguments):
        if next(calls) == number:
            raise Crash
        return real(*arguments)

    monkeypatch.setattr(ralph_store, name, call)


STEPS = [
    pytest.param("write_document", 1, id="before-the-first-write"),
    pytest.param("_remove", 1, id="before-the-old-one-goes"),
]


@pytest.mark.parametrize(("step", "number"), STEPS)
def test_after_a_crash_while_completing_the_bead_is_there_once(step, number, folders, monkeypatch):
    put(folders.active, "a", id="gt-1", status="in_progress")
    with monkeypatch.context() as patch, pytest.raises(Crash):
        crash_at(patch, step, number)
        update_bead(find_bead(folders, "gt-1"), set_status("completed"), folders)
    status = find_bead(folders, "gt-1").document["status"]
    assert status == ("completed" if step == "_remove" else "in_progress")


@pytest.mark.parametrize(
    ("step", "number"),
    [*STEPS, pytest.param("write_document", 2, id="before-the-new-one-is-written")],
)
def test_after_a_crash_while_reopening_the_bead_is_there_once(step, number, folders, monkeypatch):
    put(folders.completed, "a", id="gt-1", status="completed")
    with monkeypatch.context() as patch, pytest.raises(Crash):
        crash_at(patch, step, number)
        update_bead(find_bead(folders, "gt-1"), set_status("pending"), folders)
    status = find_bead(folders, "gt-1").document["status"]
    assert status == ("completed" if (step, number) == ("write_document", 1) else "pending")


@pytest.mark.parametrize("then", ["completed", "in_progress"])
@pytest.mark.parametrize("place", ["active", "completed"])
def test_the_next_update_finishes_a_move_that_a_crash_cut_short(place, then, folders, monkeypatch):
    to = "completed" if place == "active" else "pending"
    put(getattr(folders, place), "a", id="gt-1", status=place.replace("active", "in_progress"))
    with monkeypatch.context() as patch, pytest.raises(Crash):
        crash_at(patch, "_remove", 1)
        update_bead(find_bead(folders, "gt-1"), set_status(to), folders)
    update_bead(find_bead(folders, "gt-1"), set_status(then), folders)
    beads, _ = list_beads(folders)
    assert [(bead.document["status"], bead.stale) for bead in beads] == [(then, None)]


@pytest.mark.parametrize("status", ["completed", "pending", None])
@pytest.mark.parametrize("moved_before", [False, True])
def test_two_files_that_no_move_left_are_refused_and_stay(folders, moved_before, status):
    ours = put(folders.active, "a", id="gt-1")
    if moved_before:
        update_bead(read_bead(ours), set_status("completed"), folders)
        put(folders.active, "a", id="gt-1", intent="Again")
    theirs = os.path.join(folders.completed, "a.json")
    if not moved_before or status != "completed":
        put(folders.completed, "a", id="gt-1", **({"status": status} if status else {}))
    before = (on_disk(ours), on_disk(theirs))
    for path in (ours, theirs):
        with pytest.raises(Conflict, match=f"more than one file: {ours}, {theirs}"):
            update_bead(read_bead(path), set_status("completed"), folders)
    assert (on_disk(ours), on_disk(theirs)) == before


def test_a_bead_that_a_move_takes_away_while_beads_are_read_is_there_once(folders, monkeypatch):
    old = put(folders.active, "a", id="gt-1")
    new = put(folders.completed, "a", id="gt-1", status="completed")
    found = [read_bead(old), read_bead(new)]
    os.unlink(old)
    monkeypatch.setattr(ralph_store, "read_bead", lambda _: found.pop(0))
    monkeypatch.setattr(
        ralph_store, "json_files", lambda folder: [folder] * ("ralph" not in folder)
    )
    assert [bead.path for bead in list_beads(folders)[0]] == [new]


def test_a_name_that_can_be_no_id_needs_an_id_in_the_content(tmp_path):
    path = put(str(tmp_path), "a\x07b")
    with pytest.raises(Unreadable, match="has no id"):
        read_bead(path)


def test_an_id_that_no_database_can_hold_makes_a_file_unreadable_and_no_other(folders):
    put(folders.active, "half", id="a\ud800b")
    put(folders.active, "whole", id="a")
    beads, [problem] = list_beads(folders)
    assert [each.bead_id for each in beads] == ["a"]
    assert problem.message.endswith("has half of a character in its id")


def test_a_folder_that_cannot_be_written_is_reported(folders):
    path = put(folders.active, "a", id="gt-1")
    with open(folders.completed, "w") as file:
        file.write("not a folder")
    with pytest.raises(Unwritable):
        update_bead(read_bead(path), set_status("completed"), folders)
    assert on_disk(path).get("status") is None


@pytest.mark.slow
def test_a_bead_of_ten_megabytes_is_found_and_rewritten(folders):
    path = put(folders.active, "a", id="gt-1", intent="x" * 10_000_000)
    update_bead(find_bead(folders, "gt-1"), set_status("in_progress"), folders)
    assert len(on_disk(path)["intent"]) == 10_000_000


def test_a_bead_of_seventeen_megabytes_is_refused(folders):
    path = put(folders.active, "a", id="gt-1", intent="x" * 17_000_000)
    with pytest.raises(Unreadable, match="larger than"):
        read_bead(path)


def test_a_bead_in_a_row_has_the_id_of_the_row():
    bead = bead_in_row({"id": "qb-1", "title": "x", "dod": {"verifiers": []}}, "issues.jsonl")
    assert bead.document["id"] == bead.bead_id == "qb-1"


class TestBytes:
    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
    def test_a_change_leaves_all_but_its_fields(self, tmp_path, mark):
        text = (
            '{\r\n    "id": "gt-1",  \r\n    "dod": {"verifiers": [ {"name":"x", "command":"y"} ]},'
            '\r\n    "n": 1.50, "status": "pending",\r\n    "ralph_meta": {"attempt_count": 0}\r\n}'
        )
        path = tmp_path / "gt-1.json"
        path.write_bytes(mark + text.encode())
        folders = bead_folders(tmp_path)

        def change(document):
            document["status"] = "failed"
            document["ralph_meta"]["attempt_count"] = 2

        update_bead(read_bead(str(path)), change, folders)
        wanted = text.replace('"pending"', '"failed"').replace('_count": 0', '_count": 2')
        assert path.read_bytes() == mark + wanted.encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


@settings(max_examples=examples(300))
@given(OBJECTS, OBJECTS, st.sampled_from([None, 1, 4, "\t"]))
def test_an_edited_document_says_what_it_should_and_keeps_what_did_not_change(one, other, indent):
    data = json.dumps(one, indent=indent).encode()
    assert json.loads(edited(data, other)) == other
    assert edited(data, json.loads(data)) == data
