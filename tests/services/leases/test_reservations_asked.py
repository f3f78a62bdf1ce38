"""Reservations: what may be asked about them, and lines that others wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, environment, records, write_lines
from waiters import waits

from queenbee import Hive
from queenbee.errors import BadPattern, Held, InvalidInput

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]
DAY_S = 86_400


def ledger(beads: Path) -> Path:
    return beads / "queen_reservations.jsonl"


def patterns(hive: Hive) -> list[str]:
    return [lease.pattern for lease in hive.reservations.find()]


# Asking


def test_a_path_is_free_or_mine_or_held(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["mine/**"])
    reviewer.reservations.reserve(["theirs/**"])
    statuses = hive.reservations.check(["mine/a", "theirs/a", "free/a"])
    assert [(each.path, each.status) for each in statuses] == [
        ("mine/a", "mine"),
        ("theirs/a", "held"),
        ("free/a", "free"),
    ]
    assert [[lease.droid for lease in each.leases] for each in statuses] == [
        ["ui-engineer"],
        ["reviewer"],
        [],
    ]


def test_without_an_identity_everything_reserved_is_held(hive: Hive, repo: Path) -> None:
    hive.reservations.reserve(["a.py"])
    nobody = Hive.open(repo, env=environment(), clock=hive.now_ms)
    assert [each.status for each in nobody.reservations.check(["a.py", "b.py"])] == ["held", "free"]


def test_checked_paths_are_literal(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/a.py"])
    assert reviewer.reservations.check(["src/*"])[0].status == "free"


def test_a_path_that_another_announces_in_this_tree_is_held(hive: Hive, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["a.py"], exclusive=False)
    [status] = hive.reservations.check(["a.py"])
    assert (status.status, [lease.droid for lease in status.leases]) == ("held", ["reviewer"])


def test_a_path_that_another_announces_in_its_own_tree_is_free_and_says_who(
    hive: Hive, open_beside: Opener
) -> None:
    open_beside("reviewer").reservations.reserve(["a.py"], exclusive=False)
    [status] = hive.reservations.check(["a.py"])
    assert (status.status, [lease.droid for lease in status.leases]) == ("free", ["reviewer"])
    hive.reservations.reserve(["a.py"], exclusive=False)
    [status] = hive.reservations.check(["a.py"])
    assert status.status == "mine"
    assert [lease.droid for lease in status.leases] == ["ui-engineer", "reviewer"]


def test_an_exclusive_lease_is_the_first_of_those_that_hold_a_path(
    hive: Hive, reviewer: Hive
) -> None:
    reviewer.reservations.reserve(["src/a.py"], exclusive=False)
    reviewer.reservations.reserve(["src/**"])
    [status] = hive.reservations.check(["src/a.py"])
    assert [lease.exclusive for lease in status.leases] == [True, False]


@pytest.mark.parametrize("path", ["", "a\0b", ".", "../x", "/etc/passwd"])
def test_only_files_of_the_repository_can_be_checked(hive: Hive, path: str) -> None:
    with pytest.raises(InvalidInput):
        hive.reservations.check([path])


def test_listing_keeps_a_droid_or_a_path_and_shows_ended_leases_on_request(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    hive.reservations.reserve(["old.py"], ttl_s=1)
    clock.advance(1)
    hive.reservations.reserve(["src/**"])
    clock.advance(1)
    reviewer.reservations.reserve(["docs/**"])

    def listed(**filters: object) -> list[str]:
        return [each.pattern for each in hive.reservations.find(**filters)]  # type: ignore[arg-type]

    assert listed() == ["src/**", "docs/**"]
    assert listed(ended=True) == ["old.py", "src/**", "docs/**"]
    assert listed(droid="reviewer") == ["docs/**"]
    assert listed(path="src/deep/a.py") == ["src/**"]
    assert listed(path="src/deep/a.py", droid="reviewer") == []


def test_overlap_gives_a_path_in_both_or_nothing(hive: Hive) -> None:
    assert hive.reservations.overlap("src/*/a.py", "src/b/*.py") == "src/b/a.py"
    assert hive.reservations.overlap("src/main.go", "**/*.md") is None
    with pytest.raises(BadPattern):
        hive.reservations.overlap("src/[", "x")


def test_many_paths_are_looked_up_as_one_is(repo: Path, open_as: Opener, clock: Clock) -> None:
    with (repo / ".git" / "config").open("a") as config:
        config.write("[core]\n\tignorecase = true\n")
    hive = open_as("ui-engineer")
    for pattern in ("SRC/a*.py", "**", "src/{a1,A2}.py"):
        hive.reservations.reserve([pattern])
        clock.advance(1)
    paths = [f"src/A{number}.py" for number in range(20)]
    together = hive.reservations.covering(paths)
    alone = {path: hive.reservations.covering([path])[path] for path in paths}
    assert [[each.pattern for each in together[path]] for path in paths] == [
        [each.pattern for each in alone[path]] for path in paths
    ]
    assert [each.pattern for each in together["src/A1.py"]] == ["SRC/a*.py", "**", "src/{a1,A2}.py"]


# A hive that is asked often, and answers from an index


@pytest.fixture
def often(hive: Hive, reviewer: Hive) -> Hive:
    """A hive that has asked so often that it keeps an index, with one lease of each droid."""
    hive.reservations.reserve(["mine/**"])
    reviewer.reservations.reserve(["theirs/**"])
    for _ in range(10):
        hive.reservations.check(["theirs/a", "mine/a", "free/a"])
    return hive


def answers(hive: Hive, *paths: str) -> list[str]:
    """Returns the status of each path, by path and by the patterns that overlap it."""
    statuses = [each.status for each in hive.reservations.check(paths)]
    overlapping = [bool(hive.reservations.overlapping(path)) for path in paths]
    assert overlapping == [status != "free" for status in statuses]
    return statuses


def test_it_sees_what_others_reserve(often: Hive, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["more/*.py"])
    assert answers(often, "more/a.py", "more/a.md", "theirs/a") == ["held", "free", "held"]
    with pytest.raises(Held):
        often.reservations.reserve(["**/*.py"])


def test_it_sees_what_others_release_and_reserve_again(often: Hive, reviewer: Hive) -> None:
    reviewer.reservations.release(["theirs/**"])
    assert answers(often, "theirs/a") == ["free"]
    reviewer.reservations.reserve(["theirs/b"])
    assert answers(often, "theirs/a", "theirs/b") == ["free", "held"]


def test_it_sees_leases_end_and_renewed_ones_live_on(
    often: Hive, reviewer: Hive, clock: Clock
) -> None:
    reviewer.reservations.renew(["theirs/**"], ttl_s=3 * 3600)
    clock.advance(2.5 * 3600)
    assert answers(often, "mine/a", "theirs/a") == ["free", "held"]
    often.reservations.reserve(["mine/**"])
    assert answers(often, "mine/a") == ["mine"]


def test_it_sees_a_foreign_line_change_what_a_lease_covers(often: Hive, beads: Path) -> None:
    [lease] = often.reservations.find(droid="reviewer")
    moved = {**lease.to_dict(), "pattern": "elsewhere/**", "rev": 2}
    write_lines(ledger(beads), moved)
    assert answers(often, "theirs/a", "elsewhere/a") == ["free", "held"]


@pytest.mark.only_files  # Git has no lines there.
def test_it_starts_anew_where_git_rewrote_the_ledger(often: Hive, beads: Path) -> None:
    lines = ledger(beads).read_bytes()
    ledger(beads).unlink()
    write_lines(ledger(beads), lines.splitlines()[1])
    assert answers(often, "mine/a", "theirs/a", "free/a") == ["mine", "held", "free"]


# Foreign lines and merges


def test_a_malformed_foreign_pattern_protects_nothing_and_breaks_nothing(
    hive: Hive, beads: Path
) -> None:
    row = {"created_at": "2024-12-14T10:00:00Z", "expires_at": "2099-01-01T00:00:00Z"}
    for number, pattern in enumerate(("src/[", "", "../x", "!a", 7, None)):
        write_lines(
            ledger(beads),
            {"id": f"qr-{number}", **row, "pattern": pattern, "droid": "x", "status": "active"},
        )
    for _ in range(2):  # Once by scanning, once by the index.
        assert hive.reservations.reserve(["src/a.py"])
        assert hive.reservations.check(["src/b.py"])[0].status == "free"
        assert hive.reservations.find(path="src/a.py")
    assert hive.reservations.release(everything=True)


def test_a_foreign_writers_agent_is_read_as_droid(hive: Hive, beads: Path) -> None:
    row = {"created_at": "2024-12-14T10:00:00Z", "expires_at": "2099-01-01T00:00:00Z"}
    row = {"id": "qr-go", **row, "agent": "ui-engineer", "pattern": "a", "status": "active"}
    write_lines(ledger(beads), {**row, "x": 1})
    hive.reservations.renew(ids=["qr-go"])
    assert records(ledger(beads))[-1]["x"] == 1


def test_the_documents_example_folds_to_what_the_document_says(hive: Hive, beads: Path) -> None:
    line = (
        '{"id":"qr-01HZ3A","created_at":"2024-12-14T10:30:00Z","expires_at":"2024-12-14T12:30:00Z"'
        ',%s"pattern":"src/components/Button/**","droid":"ui-engineer","issue_id":"qb-42",'
        '"status":"%s","exclusive":true}'
    )
    write_lines(
        ledger(beads),
        line % ("", "active"),
        line % ('"released_at":"2024-12-14T11:45:00Z",', "released"),
    )
    assert hive.reservations.find() == []
    assert [each.status for each in hive.reservations.find(ended=True)] == ["released"]


def test_a_merge_of_two_leases_keeps_the_older(hive: Hive, reviewer: Hive, beads: Path) -> None:
    [mine] = hive.reservations.reserve(["src/**"])
    row = {"created_at": "2024-12-14T10:00:00Z", "expires_at": "2024-12-14T18:00:00Z"}
    write_lines(
        ledger(beads),
        {"id": "qr-theirs", **row, "pattern": "src/a.py", "droid": "reviewer", "status": "active"},
    )
    [(winner, loser)] = hive.reservations.conflicts()
    assert (winner.id, loser.id) == ("qr-theirs", mine.id)
    assert patterns(hive) == ["src/a.py"]
    assert reviewer.reservations.check(["src/a.py"])[0].status == "mine"
    assert hive.reservations.check(["src/b.py"])[0].status == "free"


def test_a_refusal_says_that_the_holder_only_edits_there_and_that_sharing_would_be_granted(
    hive: Hive, open_beside: Opener
) -> None:
    open_beside("reviewer").reservations.reserve(["a.py"], exclusive=False)
    with pytest.raises(Held, match="only edits there: git merges that") as refused:
        hive.reservations.reserve(["a.py"])
    assert (refused.value.hint or "").startswith("queen reserve a.py --shared, or queen reserve")
    assert refused.value.details["may_share"] is True
    assert hive.reservations.reserve(["a.py"], exclusive=False)


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_refusal_offers_no_sharing_that_would_be_refused_too(
    hive: Hive, reviewer: Hive, exclusive: bool
) -> None:
    reviewer.reservations.reserve(["a.py"], exclusive=False)
    with pytest.raises(Held) as refused:
        hive.reservations.reserve(["a.py"], exclusive=exclusive)
    assert "may_share" not in refused.value.details


def test_an_exclusive_request_waits_for_what_others_announced(
    hive: Hive, open_beside: Opener
) -> None:
    """And those who would announce it meanwhile come after it."""
    reviewer, tester = open_beside("reviewer").reservations, open_beside("tester").reservations
    reviewer.reserve(["a.py"], exclusive=False)
    with waits(hive, "a.py"):
        with pytest.raises(Held):
            tester.reserve(["a.py"], exclusive=False)
        assert reviewer.reserve(["a.py"], exclusive=False)
