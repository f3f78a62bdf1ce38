"""What a client gets can always be sent, whatever is in it."""

from __future__ import annotations

import json
import sys

import pytest
from hives import QuickQueen

from queenbee.errors import Bug, QueenError
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


@pytest.mark.parametrize("missing", ["mcp", "mcp_types"])
def test_without_the_extra_the_command_says_what_to_install(
    quick: QuickQueen, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    ran = quick("mcp", "--json")
    assert ran.code == 8
    assert ran.out == ""
    assert ran.error == {
        "code": "missing_package",
        "message": "queen mcp needs the Python package mcp 2.0 or later",
        "hint": "pip install 'queenbee-hive[mcp]'",
        "package": "mcp",
        "extra": "mcp",
    }
    assert "queenbee-hive[mcp]" in quick("mcp").err


def test_a_name_that_cannot_be_is_refused_before_it_serves(quick: QuickQueen) -> None:
    ran = quick("--as", "bad name", "mcp")
    assert ran.code == 2
    assert "bad name" in ran.err
