"""Records are values: whatever a caller does to one, the hive stays as it is."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from hives import records, write_lines

from queenbee import Assignment, Hive, Issue, Message, Reservation

ROW = {
    "id": "qb-1", "title": "x", "status": "open", "labels": ["a"], "metadata": {"own": {"n": [1]}},
}  # fmt: skip

Made = tuple[Issue, Assignment, Reservation, Message]


@pytest.fixture
def made(repo: Path, hive: Hive) -> Made:
    """One record of each kind."""
    write_lines(repo / ".beads" / "issues.jsonl", ROW)
    assignment = hive.assignments.claim("qb-1")
    (lease,) = hive.reservations.reserve(["src/**"], issue_id="qb-1")
    (message,) = hive.messages.send("ui-engineer", "text")
    return hive.issues.get("qb-1"), assignment, lease, message


def test_a_record_is_copied_and_pickled_as_an_equal_one(made: Made) -> None:
    for each in made:
        for again in (pickle.loads(pickle.dumps(each)), copy.copy(each), copy.deepcopy(each)):
            assert again == each
            assert type(again) is type(each)
            assert hash(again) == hash(each)
            assert again.to_dict() == each.to_dict()
    assert len({*made, *map(copy.copy, made)}) == len(made)


def test_a_completed_issue_keeps_who_completed_it(made: Made, hive: Hive) -> None:
    open_ = made[0]
    hive.assignments.complete("qb-1")
    done = hive.issues.get("qb-1")
    assert done.completion is not None
    assert pickle.loads(pickle.dumps(done)) == done != open_
    assert "completed_by='ui-engineer'" in repr(done)


def test_what_is_done_to_a_record_is_not_done_to_the_hive(
    made: Made, hive: Hive, beads: Path
) -> None:
    issue, _, lease, _ = made
    with pytest.raises(TypeError):
        hive.reservations.find()[0].fields["reason"] = "EDITED"  # type: ignore[index]
    with pytest.raises(AttributeError, match="Reservation is a value: droid cannot be changed"):
        lease.droid = "evil"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del lease.fields  # type: ignore[misc]
    for handed in (issue.to_dict(), issue.fields):
        handed["labels"].append("b")  # type: ignore[union-attr, attr-defined]
        handed["metadata"]["own"]["n"].append(2)  # type: ignore[index]
    labels = issue.get("labels")
    assert isinstance(labels, list)
    labels.append("c")
    assert hive.issues.get("qb-1").to_dict() == issue.to_dict()
    assert issue.to_dict()["labels"] == ["a"]
    assert issue.to_dict()["metadata"] == ROW["metadata"]
    hive.reservations.find()[0].to_dict()["reason"] = "EDITED"
    hive.reservations.renew(["src/**"])
    assert "EDITED" not in str(records(beads / "queen_reservations.jsonl"))


def test_what_to_dict_returns_is_the_callers(made: Made, hive: Hive) -> None:
    (lease,) = hive.reservations.reserve(["docs/**"])
    own = Reservation({**lease.fields, "waiters": [{"droid": "api"}]})
    own.to_dict()["waiters"].append("x")  # type: ignore[attr-defined]
    assert own.get("waiters") == [{"droid": "api"}]


def test_a_repr_says_what_it_is(made: Made) -> None:
    issue, assignment, lease, message = made
    assert repr(issue) == "Issue(id='qb-1', title='x', status='open')"
    assert repr(assignment) == (
        f"Assignment(id={assignment.id!r}, issue_id='qb-1', droid='ui-engineer', "
        "status='active', rev=1)"
    )
    assert "pattern='src/**', droid='ui-engineer', status='active'" in repr(lease)
    assert "from='ui-engineer', to='ui-engineer', subject='text'" in repr(message)


def find(root: Path) -> list[Reservation]:
    with Hive.open(root, env={}) as hive:
        return hive.reservations.find(ended=True)


def test_records_come_back_from_a_pool_of_processes(
    made: Made, repo: Path, open_as: Callable[[str], Hive]
) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        (lease,) = pool.submit(find, repo).result(timeout=60)
    assert lease.pattern == "src/**"


def test_one_text_is_one_name_and_not_its_letters(hive: Hive) -> None:
    first = hive.issues.new("one")
    second = hive.issues.new("two", depends_on=first, labels="api")
    found = hive.issues.get(second)
    assert ([key for key, _ in found.dependencies], found.to_dict()["labels"]) == ([first], ["api"])
    hive.issues.edit(second, add_labels="ui")
    assert hive.issues.get(second).to_dict()["labels"] == ["api", "ui"]
