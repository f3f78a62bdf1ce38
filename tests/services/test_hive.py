"""The open hive: the library's surface, foreign lines, the files while others write, the clock."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import (
    Clock,
    QuickQueen,
    commit_file,
    environment,
    git,
    is_open,
    records,
    snapshot,
    write_lines,
)

import queenbee
from queenbee import Hive, QueenError
from queenbee.errors import InvalidInput, NoHive

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]
LEDGERS = ("messages", "assignments", "reservations")


# The library's surface


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys; before = set(sys.modules); import queenbee; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert set(done.stdout.split()) <= {"queenbee", "queenbee._lazy", "__future__"}


@pytest.mark.parametrize(
    "use", ["Hive.open('.')", "Hive.open('.', droid='a').reservations.check(['x'])"]
)
def test_using_the_library_loads_no_command_line(repo: Path, use: str) -> None:
    program = "import sys; before = set(sys.modules); from queenbee import Hive; "
    program += f"{use}; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repo, capture_output=True, text=True, check=True
    )
    unused = {"click", "orjson", "pathspec", "sqlite3", "ulid"}
    assert unused.isdisjoint(done.stdout.split())


def test_every_public_name_is_there_and_typed() -> None:
    for name in queenbee.__all__:
        assert getattr(queenbee, name) is not None
    assert set(queenbee.__all__) <= set(dir(queenbee))
    assert (Path(str(queenbee.__file__)).parent / "py.typed").exists()


def test_a_name_that_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Bees'"):
        _ = queenbee.Bees


def test_the_readme_example_of_the_library_runs(repo: Path) -> None:
    with Hive.open(repo, droid="ui-engineer") as hive:
        hive.assignments.claim("qb-42")
        hive.reservations.reserve(["src/components/Button/**"], issue_id="qb-42")
        hive.messages.send("reviewer", "Button is ready", issue_id="qb-42")
    with Hive.open(repo, droid="reviewer") as hive:
        assert [m.body for m in hive.messages.inbox()] == ["Button is ready"]


def test_a_closed_hive_can_be_asked_again(hive: Hive) -> None:
    with hive:
        hive.messages.send("reviewer", "x")
    assert len(hive.messages.sent()) == 1


def test_a_closed_hive_leaves_no_database_open(
    hive: Hive, databases: list[sqlite3.Connection]
) -> None:
    with hive:
        hive.messages.send("reviewer", "x")
        hive.assignments.claim("qb-1")
        assert hive.messages.sent()
        assert any(map(is_open, databases))
    assert not any(map(is_open, databases))


def test_records_are_frozen_and_equal_by_their_fields(hive: Hive) -> None:
    sent = hive.messages.send("reviewer", "x")[0]
    again = hive.messages.get(sent.id)
    assert (sent, hash(sent)) == (again, hash(again))
    with pytest.raises(AttributeError, match="is a value"):
        sent.subject = "changed"  # type: ignore[misc]


def test_every_refusal_is_one_kind_of_error_with_code_and_message(hive: Hive) -> None:
    with pytest.raises(QueenError) as refusal:
        hive.messages.get("qm-nowhere")
    assert (refusal.value.code, str(refusal.value)) == ("not_found", refusal.value.message)


@pytest.mark.parametrize("start", [".", "src/deep"])
def test_a_hive_is_found_from_anywhere_in_the_repository(repo: Path, start: str) -> None:
    (repo / "src" / "deep").mkdir(parents=True)
    assert Hive.open(repo / start, env=environment()).layout.beads_dir == str(repo / ".beads")


def test_no_hive_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(NoHive, match="there is no hive here") as refusal:
        Hive.open(tmp_path, env=environment())
    assert refusal.value.hint == "queen init"


# Foreign lines


@pytest.mark.parametrize("kind", LEDGERS)
@pytest.mark.only_files  # The database takes no line that is none: test_hostile_rows.
def test_lines_that_we_did_not_write_are_never_touched(
    hive: Hive, quick: QuickQueen, beads: Path, kind: str
) -> None:
    odd = [
        b'{"_migration":"v1_to_v2","at":"2024-12-14T10:00:00Z"}',
        b'{ "id" : "x-1", "unknown": {"deep": [1e400, 12345678901234567890123]} }',
        b"garbage \xff\x00",
        b'{"id":"x-2","created_at":"2024-12-14T10:00:00Z","\\u0069d2":true}\r',
    ]
    path = beads / f"queen_{kind}.jsonl"
    write_lines(path, *odd)
    for arguments in (
        ("claim", "--new", "qb-1"),
        ("reserve", "a.py", "--issue", "qb-1"),
        ("msg", "send", "reviewer", "x"),
        ("msg", "inbox"),
        ("reserve", "renew", "--all"),
        ("complete", "qb-1"),
        ("doctor", "--fix"),
    ):
        assert quick(*arguments, as_="ui-engineer").code in (0, 1)
    assert path.read_bytes().split(b"\n")[: len(odd)] == odd


@pytest.mark.only_files  # It has no files.
def test_a_ledger_of_an_unknown_kind_is_left_alone(
    hive: Hive, quick: QuickQueen, beads: Path
) -> None:
    write_lines(beads / "queen_plans.jsonl", {"id": "qp-1", "created_at": "2024-12-14T10:00:00Z"})
    before = (beads / "queen_plans.jsonl").read_bytes()
    quick("claim", "--new", "qb-1", as_="ui-engineer")
    quick("doctor", "--fix")
    assert (beads / "queen_plans.jsonl").read_bytes() == before


@pytest.mark.only_files  # Its ledgers are.
def test_a_ledger_of_a_kind_in_capitals_is_none(hive: Hive, quick: QuickQueen, beads: Path) -> None:
    write_lines(beads / "queen_ISSUES.jsonl", {"id": "qp-1"})
    assert quick("claim", "--new", "qb-1", as_="ui-engineer").code == 0
    assert quick("doctor", "--fix").code == 0
    assert "ISSUES" not in hive.kinds()


@pytest.mark.parametrize("kind", LEDGERS)
def test_a_record_keeps_fields_that_nobody_knows_through_every_update(
    hive: Hive, reviewer: Hive, beads: Path, kind: str
) -> None:
    extra = {"x_vendor": {"nested": [True, None, "é\u2028"]}, "weight": 0.1, "big": 2**70}
    begun = {"created_at": "2024-12-14T10:00:00Z", "status": "active", "droid": "ui-engineer"}
    row = {
        "messages": {"id": "qm-x", "from": "a", "to": "ui-engineer", "body": ""},
        "assignments": {"id": "qa-x", **begun, "issue_id": "qb-1"},
        "reservations": {
            "id": "qr-x",
            **begun,
            "pattern": "a.py",
            "expires_at": "2024-12-15T10:00:00Z",
        },
    }[kind]
    path = beads / f"queen_{kind}.jsonl"
    write_lines(path, {**row, **extra})
    updates: dict[str, Callable[[], object]] = {
        "messages": lambda: hive.messages.mark_read(["qm-x"]),
        "assignments": lambda: hive.assignments.complete("qb-1"),
        "reservations": lambda: hive.reservations.renew(["a.py"], ttl_s=30 * 86_400),
    }
    updates[kind]()
    last = records(path)[-1]
    assert {name: last[name] for name in extra} == extra
    assert {name: last[name] for name in row if name not in ("status", "expires_at")} == {
        name: value for name, value in row.items() if name not in ("status", "expires_at")
    }
    assert last["rev"] == 2


@pytest.mark.only_files  # A line stands in a database once.
def test_a_file_without_revisions_folds_as_its_latest_line(hive: Hive, beads: Path) -> None:
    path = beads / "queen_messages.jsonl"
    row = {"id": "qm-1", "created_at": "2024-12-14T10:00:00Z", "from": "a", "to": "b"}
    for subject in ("first", "second", "first"):
        write_lines(path, {**row, "subject": subject})
    assert hive.messages.get("qm-1").subject == "first"
    write_lines(path, {"id": "qm-1", "subject": "latest"})
    message = hive.messages.get("qm-1")
    assert (message.subject, message.from_, message.rev) == ("latest", "a", 4)


def test_a_migration_is_recorded_once(hive: Hive, beads: Path, clock: Clock) -> None:
    assert hive.migrate("messages", "v1_to_v2")
    clock.advance(60)
    assert not hive.migrate("messages", "v1_to_v2")
    assert records(beads / "queen_messages.jsonl") == [
        {"_migration": "v1_to_v2", "at": "2024-12-14T10:30:00.000Z"}
    ]


@pytest.mark.only_files  # The doctor tells of rows.
def test_a_notice_counts_unusable_lines(hive: Hive, beads: Path) -> None:
    write_lines(beads / "queen_messages.jsonl", "garbage", {"id": "qm-1"}, "more garbage")
    hive.messages.sent()
    [note] = hive.notes()
    assert note.startswith(f"2 of the lines in {beads / 'queen_messages.jsonl'} cannot be used")
    assert note.endswith("see: queen doctor")


# The files while others write


def test_an_open_hive_sees_what_others_have_written(hive: Hive, reviewer: Hive) -> None:
    for number in range(3):
        hive.messages.send("reviewer", str(number))
        assert len(reviewer.messages.inbox()) == number + 1
        reviewer.reservations.reserve([f"{number}.py"])
        assert len(hive.reservations.find()) == number + 1


def test_an_open_hive_follows_a_foreign_writer(hive: Hive, beads: Path) -> None:
    path = beads / "queen_messages.jsonl"
    row = {"id": "qm-1", "created_at": "2024-12-14T10:00:00Z", "from": "a", "to": "ui-engineer"}
    write_lines(path, {**row, "subject": "first"})
    assert [m.subject for m in hive.messages.inbox()] == ["first"]
    write_lines(path, {**row, "subject": "second"})
    assert [m.subject for m in hive.messages.inbox()] == ["second"]


@pytest.mark.only_files  # A row is whole.
def test_a_line_counts_once_it_is_whole(hive: Hive, beads: Path) -> None:
    path = beads / "queen_messages.jsonl"
    whole = b'{"id":"qm-1","from":"a","to":"ui-engineer","subject":"s","body":"b"}\n'
    with path.open("ab") as file:
        for byte in whole[:-2]:
            file.write(bytes([byte]))
        file.flush()
        assert hive.messages.inbox() == []
        file.write(whole[-2:])
    assert [m.id for m in hive.messages.inbox()] == ["qm-1"]


@pytest.mark.only_files  # It has no files.
def test_an_open_hive_survives_a_checkout_that_takes_the_ledgers_away(
    hive: Hive, repo: Path, beads: Path
) -> None:
    git(repo, "checkout", "-q", "-b", "work")
    hive.messages.send("reviewer", "one")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "ledgers")
    git(repo, "checkout", "-q", "main")
    assert not (beads / "queen_messages.jsonl").exists()
    assert [m.body for m in hive.messages.sent()] == ["one"]
    hive.messages.send("reviewer", "two")
    assert {m.body for m in hive.messages.sent()} == {"one", "two"}
    assert len(records(beads / "queen_messages.jsonl")) == 2


def test_two_hives_of_one_repository_are_two_hives(repo: Path, clock: Clock) -> None:
    (repo / "packages" / "web" / ".beads").mkdir(parents=True)
    outer = Hive.open(repo, droid="a", env=environment(), clock=clock)
    inner = Hive.open(repo / "packages" / "web", droid="a", env=environment(), clock=clock)
    outer.messages.send("b", "outer")
    inner.messages.send("b", "inner")
    outer.messages.send("b", "outer again")
    assert [m.body for m in inner.messages.sent()] == ["inner"]
    assert {m.body for m in outer.messages.sent()} == {"outer", "outer again"}
    assert len(records(repo / "packages/web/.beads/queen_messages.jsonl")) == 1


def test_a_linked_worktree_shares_the_nested_hive_that_the_main_one_has(
    repo: Path, tmp_path: Path, clock: Clock
) -> None:
    commit_file(repo, "packages/web/index.html")
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    (repo / "packages" / "web" / ".beads").mkdir()
    linked = Hive.open(tmp_path / "linked/packages/web", droid="a", env=environment(), clock=clock)
    assert linked.layout.beads_dir == str(repo / "packages/web/.beads")


def test_a_hive_that_only_a_branch_has_does_not_give_its_worktree_another_truth(
    repo: Path, tmp_path: Path, clock: Clock
) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "linked" / "packages" / ".beads").mkdir(parents=True)
    linked = Hive.open(tmp_path / "linked" / "packages", droid="a", env=environment(), clock=clock)
    assert linked.layout.beads_dir == str(repo / ".beads")


# The clock


def test_a_clock_set_back_loses_no_message_and_no_order_of_updates(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    first = hive.messages.send("reviewer", "first")[0]
    clock.advance(-86_400)
    second = hive.messages.send("reviewer", "second")[0]
    reviewer.messages.mark_read([first.id, second.id])
    assert {(m.body, m.read) for m in reviewer.messages.inbox()} == {
        ("first", True),
        ("second", True),
    }


def test_a_clock_before_1970_does_not_crash(repo: Path, beads: Path) -> None:
    odd = Hive.open(repo, droid="a", env=environment(), clock=lambda: 0)
    odd.reservations.reserve(["a.py"])
    assert odd.reservations.check(["a.py"])[0].status == "mine"


# What goes wrong halfway


def test_an_error_inside_a_turn_writes_nothing_and_frees_the_lock(hive: Hive, beads: Path) -> None:
    hive.messages.send("reviewer", "before")
    before = snapshot(beads)

    class Oops(Exception):
        pass

    with pytest.raises(Oops), hive.transaction() as tx:
        tx.create("messages", {"from": "a", "to": "b", "body": "x"})
        raise Oops
    assert snapshot(beads) == before
    hive.messages.send("reviewer", "after")


@pytest.mark.only_files  # tests/store/carriers cut the connection instead.
def test_a_turn_that_writes_two_ledgers_writes_both_or_neither(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    hive.reservations.reserve(["a.py"])
    before = snapshot(beads, Path(hive.layout.state_dir))
    before = {name: data for name, data in before.items() if data}
    (beads / "queen_messages.jsonl").mkdir()
    for attempt in (
        lambda: hive.assignments.assign("qb-1", "tester"),
        lambda: reviewer.reservations.reserve(["a.py"], force=True, reason="x"),
    ):
        with pytest.raises(QueenError, match=r"queen_messages\.jsonl"):
            attempt()
    after = snapshot(beads, Path(hive.layout.state_dir))
    assert {name: data for name, data in after.items() if data} == before
    assert hive.assignments.find() == []
    assert [each.droid for each in hive.reservations.find()] == ["ui-engineer"]


def test_a_record_that_json_cannot_say_is_refused(hive: Hive, beads: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        hive.messages.send("reviewer", "half a pair: \ud83d")
    assert snapshot(beads) == {}
