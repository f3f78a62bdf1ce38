"""Done means done: what was completed in the hive is done for everything that asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from acting import answer
from extent import examples
from hives import Clock, git, write_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stamps import format_ms

from queenbee import Hive
from queenbee.errors import IssueClosed

pytestmark = pytest.mark.both_engines(thorough=True)

START_MS = 1_734_172_200_000


@pytest.fixture
def tracked(beads: Path) -> Path:
    path = beads / "issues.jsonl"
    row = {"status": "open", "updated_at": "2024-12-14T10:00:00Z"}
    write_lines(
        path,
        {"id": "qb-1", "title": "first", **row},
        {"id": "qb-2", "title": "then", **row, "dependencies": ["qb-1"]},
    )
    return path


def work_off(hive: Hive) -> None:
    hive.assignments.claim("qb-1")
    hive.assignments.complete("qb-1")


def test_what_waited_for_a_completed_issue_is_ready(hive: Hive, tracked: Path) -> None:
    assert [each.id for each in hive.issues.ready(actor="reviewer")] == ["qb-1"]
    work_off(hive)
    assert [each.id for each in hive.issues.ready(actor="reviewer")] == ["qb-2"]
    assert answer(hive, "show", "qb-2")["blocked_by"] == []
    assert hive.issues.get("qb-1").done


def test_a_completed_issue_is_not_claimed_again(hive: Hive, reviewer: Hive, tracked: Path) -> None:
    work_off(hive)
    with pytest.raises(IssueClosed, match="qb-1 was completed by ui-engineer") as refusal:
        reviewer.assignments.claim("qb-1")
    assert refusal.value.hint == "queen next; to work on it again: queen issue reopen qb-1"


def test_a_row_that_was_opened_again_is_open(hive: Hive, tracked: Path, clock: Clock) -> None:
    work_off(hive)
    clock.advance(1)
    row = {"id": "qb-1", "status": "open", "updated_at": format_ms(clock.now_ms)}
    write_lines(tracked, row)
    assert not hive.issues.get("qb-1").done
    assert hive.assignments.claim("qb-1").status == "active"


def test_a_row_of_a_clock_that_is_ahead_is_done_all_the_same(
    hive: Hive, tracked: Path, clock: Clock
) -> None:
    row = {"id": "qb-1", "status": "open", "updated_at": format_ms(clock.now_ms + 60_000)}
    write_lines(tracked, row)
    work_off(hive)
    assert hive.issues.get("qb-1").done


def test_an_issue_that_no_tracker_knows_is_done_too(hive: Hive, reviewer: Hive) -> None:
    work_off(hive)
    with pytest.raises(IssueClosed, match="was completed"):
        reviewer.assignments.claim("qb-1")
    assert reviewer.assignments.claim("qb-1", anyway=True).droid == "reviewer"


EVENTS = st.lists(st.sampled_from(["complete", "close", "reopen"]), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    numbers = iter(range(100_000))

    def fresh() -> Path:
        tree = tmp_path_factory.mktemp(f"done{next(numbers)}")
        (tree / ".beads").mkdir()
        return tree

    return fresh


@given(events=EVENTS, chance=st.randoms(use_true_random=False))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_order_of_the_lines_changes_the_answer(
    places: Callable[[], Path], events: Sequence[str], chance
) -> None:
    """The last event decides, in whatever order a merge leaves the lines of both files."""
    rows: list[dict[str, object]] = [
        {"id": "qb-1", "status": "open", "updated_at": format_ms(START_MS)}
    ]
    lines: list[dict[str, object]] = []
    for number, event in enumerate(events):
        at = format_ms(START_MS + 1000 * (number + 1))
        if event == "complete":
            lines += _assignment(number, at)
        else:
            status = "closed" if event == "close" else "open"
            rows.append({"id": "qb-1", "status": status, "updated_at": at})
    tree = places()
    waiting = {"id": "qb-2", "status": "open", "dependencies": ["qb-1"]}
    write_lines(tree / ".beads" / "issues.jsonl", *chance.sample([*rows, waiting], len(rows) + 1))
    if lines:
        ledger = tree / ".beads" / "queen_assignments.jsonl"
        write_lines(ledger, *chance.sample(lines, len(lines)))
    hive = Hive.open(tree, droid="reviewer", env={}, clock=Clock())
    done = events[-1] != "reopen"
    assert hive.issues.get("qb-1").done == done
    assert [each.id for each in hive.issues.ready(actor="reviewer")] == (
        ["qb-2"] if done else ["qb-1"]
    )
    assert hive.issues.blockers(hive.issues.get("qb-2")) == ([] if done else ["qb-1"])
    hive.close()


def _assignment(number: int, at: str) -> list[dict[str, object]]:
    begun = {
        "id": f"qa-{number:026}",
        "created_at": format_ms(START_MS + 1000 * number),
        "updated_at": format_ms(START_MS + 1000 * number),
        "issue_id": "qb-1",
        "droid": "ui",
        "assigned_by": "ui",
        "status": "active",
        "rev": 1,
    }
    return [begun, {**begun, "updated_at": at, "status": "completed", "rev": 2}]


@pytest.mark.only_files  # It merges files.
def test_a_merge_of_two_clones_brings_the_completion(
    hive: Hive, repo: Path, tracked: Path, tmp_path: Path
) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "start")
    git(tmp_path, "clone", "-q", str(repo), "other")
    other = Hive.open(tmp_path / "other", droid="api", env={})
    assert [each.id for each in other.issues.ready(actor="api")] == ["qb-1"]
    work_off(hive)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "done")
    git(tmp_path / "other", "pull", "-q")
    assert [each.id for each in other.issues.ready(actor="api")] == ["qb-2"]
