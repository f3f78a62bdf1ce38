"""What a client gets can always be sent, whatever is in it."""

from __future__ import annotations

import json

import pytest
from hives import QuickQueen

from queenbee.errors import Bug, InvalidInput, QueenError
from queenbee.mcp.arguments import count
from queenbee.mcp.results import Answer, answered, refused

ODD = {"caf\udce9": ["\ud83d", 1, 1.5, None, True, ("é", {"x": object})]}


def sent(answer: Answer) -> str:
    """Returns what goes to the client, as the bytes of the protocol do."""
    return json.dumps(answer.structured, ensure_ascii=False).encode().decode() + "".join(
        text.encode().decode() for text in answer.texts
    )


def test_what_is_no_text_is_escaped() -> None:
    text = sent(answered(ODD, ["of \udce9"]))
    assert "caf\\\\udce9" in text
    assert '"é"' in text
    assert "caf\\\\udce9" in sent(refused(QueenError("caf\udce9", x=ODD), []))


def test_an_error_that_nobody_expected_is_a_bug_and_no_end() -> None:
    document = refused(Bug.of(RecursionError("deep")), []).structured["error"]
    assert document["code"] == "bug"
    assert "RecursionError" in document["message"]


def test_a_name_that_cannot_be_is_refused_before_it_serves(quick: QuickQueen) -> None:
    ran = quick("--as", "bad name", "mcp")
    assert ran.code == 2
    assert "bad name" in ran.err


@pytest.mark.parametrize("given", ["2", True, 0, -1, 1.5, None])
def test_a_count_is_a_whole_number_of_at_least_one(given: object) -> None:
    assert count().read("limit", 2) == 2
    with pytest.raises(InvalidInput, match="limit is a whole number of at least 1"):
        count().read("limit", given)
