"""Bodies of every kind: stored exactly, one line each, given back exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import Queen, QuickQueen, records

BODIES = {
    "newlines": "one\ntwo\r\nthree\rfour\n\n",
    "nul": "before\0after",
    "emoji": "👩‍💻 🏳️‍🌈 é",
    "line separators": "a\u2028b\u2029c\u0085d\x0be\x0c",
    "terminal escapes": "\x1b[2J\x1b]0;title\x07\x9b31m\x1b[1A",
    "bidi overrides": "\u202e\u2066gnp.exe\u2069",
    "quotes and backslashes": '"\\" \\u0000 {"id":"qm-forged"}',
    "a body that looks like a line": '{"id":"qm-forged","from":"human","to":"reviewer"}\n',
    "conflict markers": "<<<<<<< HEAD\n=======\n>>>>>>> theirs\n",
    "unassigned and private": "\ue000\U0010ffff\ufffe\ufeff",
    "a dash": "-",
}
MEBIBYTE = "x" * 1_000_000 + "\n" + "é" * 20_000
"""A megabyte, and near the longest that one line may hold."""


def test_an_answer_is_what_somebody_wants_to_say_and_once_more_if_they_insist(
    quick: QuickQueen,
) -> None:
    [asked] = quick("msg", "send", "human", "which port?", "--json", as_="api").json
    shown = quick("status", as_="api").out
    assert "'YOUR ANSWER'" in shown
    refused = quick("answer", asked["id"], "YOUR ANSWER", as_="human")
    assert (refused.code, "stands for what you want to say" in refused.err) == (2, True)
    refused = quick("answer", asked["id"], as_="human")
    hint = f"  try: queen answer {asked['id']} 'what you want to say'\n"
    assert (refused.code, refused.err.endswith(f"the answer is missing\n{hint}")) == (2, True)
    assert "answered before" not in quick("answer", asked["id"], "8080", as_="human").err
    assert "it was answered before, at 20" in quick("answer", asked["id"], "81", as_="human").err
    assert "“Re: which port?” “8080”" in quick("status", as_="api").err


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_from_standard_input_is_stored_exactly_on_one_line(
    quick: QuickQueen, beads: Path, body: str
) -> None:
    sent = quick("msg", "send", "reviewer", "-", "--json", as_="ui-engineer", stdin=body)
    assert (sent.code, sent.json[0]["body"]) == (0, body)
    [line] = records(beads / "queen_messages.jsonl")
    assert line["body"] == body
    [read] = quick("msg", "read", sent.json[0]["id"], "--json", as_="reviewer").json
    assert read["body"] == body
    assert [row["body"] for row in records(beads / "queen_messages.jsonl")] == [body, body]


@pytest.mark.parametrize(
    "body", [body for body in BODIES.values() if "\0" not in body and body not in ("", "-")]
)
def test_a_body_on_the_command_line_is_stored_exactly(
    quick: QuickQueen, beads: Path, body: str
) -> None:
    assert quick("msg", "send", "reviewer", "--", body, as_="ui-engineer").code == 0
    assert [row["body"] for row in records(beads / "queen_messages.jsonl")] == [body]


@pytest.mark.slow
def test_a_body_of_a_megabyte_survives_the_real_command(queen: Queen, beads: Path) -> None:
    sent = queen("msg", "send", "reviewer", "-", "--json", as_="ui-engineer", stdin=MEBIBYTE)
    assert (sent.code, sent.json[0]["body"] == MEBIBYTE) == (0, True)
    [inbox] = queen("msg", "inbox", "--json", as_="reviewer").json
    assert inbox["body"] == MEBIBYTE
    assert (beads / "queen_messages.jsonl").read_bytes().count(b"\n") == 1


def test_a_nul_character_survives_the_real_command(queen: Queen, beads: Path) -> None:
    body = "a\0b\x1b[2J\u202e\u2028👩‍💻"
    assert queen("msg", "send", "reviewer", "-", as_="ui-engineer", stdin=body).code == 0
    [inbox] = queen("msg", "inbox", "--json", as_="reviewer").json
    assert inbox["body"] == body


def test_a_reply_takes_its_body_from_standard_input_too(quick: QuickQueen) -> None:
    sent = quick("msg", "send", "reviewer", "x", "--json", as_="ui-engineer").json[0]
    reply = quick("msg", "reply", sent["id"], "-", "--json", as_="reviewer", stdin="a\nb\0")
    assert reply.json["body"] == "a\nb\0"


@pytest.mark.parametrize(
    "arguments", [("msg", "send", "reviewer", "-"), ("msg", "reply", "qm-x", "-")]
)
def test_standard_input_that_is_not_utf8_is_refused(
    quick: QuickQueen, beads: Path, arguments: tuple[str, ...]
) -> None:
    refused = quick(*arguments, "--json", as_="ui-engineer", stdin=b"\xff\xfe")
    assert refused.code in (2, 4)
    assert not (beads / "queen_messages.jsonl").exists()


def test_an_argument_that_is_not_utf8_is_refused(queen: Queen, beads: Path) -> None:
    refused = queen("msg", "send", "reviewer", b"\xff\xfe", "--json", as_="ui-engineer")
    assert refused.code == 2
    assert "cannot be written as JSON" in refused.error["message"]
    assert not (beads / "queen_messages.jsonl").exists()


def test_a_body_that_is_too_long_is_refused_with_a_way_out(queen: Queen, beads: Path) -> None:
    refused = queen("msg", "send", "a", "-", "--json", as_="b", stdin="x" * 2**20)
    assert refused.code == 2
    assert "at most 1,048,576" in refused.error["message"]
    assert "send its path" in refused.error["hint"]
    assert not (beads / "queen_messages.jsonl").exists()
