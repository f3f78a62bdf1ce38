"""Who goes first, and who waits in a circle."""

from __future__ import annotations

import pytest

from queenbee.core import queue as module
from queenbee.core.queue import Waiter, Want, ahead, circle, clash, ordinal


def waiter(name: str, droid: str, *patterns: str, exclusive: bool = True) -> Waiter:
    want = Want(patterns, exclusive=exclusive)
    return Waiter(name, droid, want, since_ms=0, until_ms=60_000, pid=1)


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (Want(["src/**"]), Want(["src/a.py"]), "src/a.py"),
        (Want(["src/*/a.py"]), Want(["x", "src/b/*.py"]), "src/b/a.py"),
        (Want(["src/*.py"]), Want(["src/*.js"]), None),
        (Want(["a"], exclusive=False), Want(["a"], exclusive=False), None),
        (Want(["a"], exclusive=False), Want(["a"]), "a"),
        (Want(issue_id="qb-1"), Want(issue_id="qb-1"), "qb-1"),
        (Want(issue_id="qb-1"), Want(issue_id="qb-2"), None),
        (Want(issue_id="qb-1"), Want(any_issue=True), None),
        (Want(any_issue=True), Want(any_issue=True), "any issue"),
        (Want(["a"]), Want(issue_id="a"), None),
        (Want(["a["]), Want(["**"]), None),
    ],
)
def test_wishes_clash_if_both_cannot_be_granted(one: Want, other: Want, common: str | None) -> None:
    assert clash(one, other) == common
    assert clash(other, one) == common


def test_case_is_folded_where_the_file_system_does() -> None:
    assert clash(Want(["A.py"]), Want(["a.py"])) is None
    assert clash(Want(["A.py"]), Want(["a.py"]), fold_case=True) == "a.py"


LINE = [
    waiter("1", "birch", "src/**"),
    waiter("2", "oak", "docs/**"),
    waiter("3", "fir", "src/a.py"),
]


def who_is_ahead(of: type[object] = module, **where: str) -> list[str]:
    found = of.ahead(Want(["src/a.py"]), where.pop("droid", "elm"), LINE, **where)  # type: ignore[attr-defined]
    return [each.droid for each in found]


def test_a_newcomer_is_behind_everybody_who_wants_the_same() -> None:
    assert who_is_ahead() == ["birch", "fir"]


def test_a_waiter_is_behind_those_who_came_before() -> None:
    assert who_is_ahead(before="3") == ["birch"]


def test_a_droid_is_never_behind_itself() -> None:
    assert who_is_ahead(droid="birch") == ["fir"]


def in_circle(first: list[str | Waiter], line: list[Waiter], held: dict[str, list[str]]) -> str:
    """Returns the circle that elm would close; `held` are the holders that each waiter needs."""

    def blockers(each: Waiter) -> list[str | Waiter]:
        earlier = ahead(each.want, each.droid, line, before=each.name)
        return [*held.get(each.name, []), *earlier]

    return " ".join(each.droid for each in circle("elm", first, line, blockers))


def test_two_that_hold_what_the_other_wants_are_a_circle() -> None:
    assert in_circle(["birch"], LINE, {"1": ["elm"]}) == "birch"


def test_a_circle_may_be_long() -> None:
    assert in_circle(["birch"], LINE, {"1": ["oak"], "2": ["fir"], "3": ["elm"]}) == "birch oak fir"


def test_a_circle_may_lead_through_the_line() -> None:
    # fir is behind birch, and birch waits for what elm holds.
    assert in_circle(["fir"], LINE, {"1": ["elm"]}) == "fir birch"


def test_waiting_for_one_that_does_not_wait_is_no_circle() -> None:
    assert in_circle(["hazel"], LINE, {"1": ["elm"]}) == ""


def test_a_circle_of_others_is_none_of_ours() -> None:
    assert in_circle(["birch"], LINE, {"1": ["oak"], "2": ["birch"]}) == ""


def test_being_behind_ones_own_waiter_is_no_circle() -> None:
    line = [waiter("0", "elm", "src/a.py"), *LINE]
    assert in_circle([line[1]], line, {"0": ["hazel"]}) == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"),
     (21, "21st"), (22, "22nd"), (111, "111th")],
)  # fmt: skip
def test_places_are_counted_as_people_do(number: int, text: str) -> None:
    assert ordinal(number) == text


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"droid": 1, "since": "2024-12-14T10:30:00Z", "until": "2024-12-14T10:30:00Z"},
        {"droid": "a", "since": "yesterday", "until": "2024-12-14T10:30:00Z"},
    ],
)
def test_an_entry_that_says_nothing_usable_is_no_waiter(fields: dict[str, object]) -> None:
    assert Waiter.read("1", fields) is None


def test_an_entry_is_read_as_it_was_written() -> None:
    for want in (Want(["a", "b"], exclusive=False), Want(issue_id="qb-1"), Want(any_issue=True)):
        written = Waiter("1", "elm", want, since_ms=1000, until_ms=2000, pid=7).to_dict()
        read = Waiter.read("1", written)
        assert read is not None and read.to_dict() == written
