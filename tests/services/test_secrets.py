"""Credentials: a text that holds one is refused, wherever in the text it stands."""

from __future__ import annotations

import types

import pytest
from mutants import mutant

from queenbee.services import secrets
from queenbee.services.hive import Services
from queenbee.services.secrets import LooksLikeSecret, refuse_secrets

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
"""In the form of a GitHub token, of 40 characters."""
WINDOW = secrets._WINDOW


def refused(text: str, module: types.ModuleType = secrets) -> bool:
    try:
        module.refuse_secrets({"body": text})
    except (LooksLikeSecret, module.LooksLikeSecret):  # A mutant has a class of its own.
        return True
    return False


def check_a_token_at_any_edge(module: types.ModuleType) -> None:
    """Each length ends the last window elsewhere, and each offset puts the token on an edge."""
    for edge in (WINDOW // 2, WINDOW, 3 * WINDOW // 2, 2 * WINDOW):
        for begin in (edge - len(TOKEN), edge - len(TOKEN) // 2, edge - 1, edge):
            for behind in (0, 1, WINDOW // 2, WINDOW):
                text = "x" * (begin - 1) + " " + TOKEN + " " + "y" * behind
                assert refused(text, module), (begin, behind)


def test_a_text_without_a_credential_passes() -> None:
    refuse_secrets({"body": "Totals are rounded now, see 3f2a9c1 and src/cart/total.py:12"})


def test_a_refusal_names_the_field_and_the_kind() -> None:
    with pytest.raises(LooksLikeSecret) as caught:
        refuse_secrets({"subject": "hello", "body": f"use {TOKEN}"})
    assert caught.value.details["field"] == "body"
    assert caught.value.details["kinds"] == ["GitHub Token"]
    assert TOKEN not in caught.value.message


def test_a_credential_on_any_line_is_found() -> None:
    assert refused(f"one\ntwo\n{TOKEN}\nthree")


def test_a_credential_across_the_edge_of_a_window_is_found() -> None:
    check_a_token_at_any_edge(secrets)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_WINDOW // 2), _WINDOW // 2):", "_WINDOW // 2), _WINDOW):"),
        ("line[begin : begin + _WINDOW]", "line[begin : begin + _WINDOW // 2]"),
        ("max(1, len(line) - _WINDOW // 2)", "max(1, len(line) - _WINDOW)"),
    ],
    ids=["windows side by side", "windows of half the size", "no last window"],
)
def test_windows_that_leave_a_gap_are_caught(old: str, new: str) -> None:
    with pytest.raises(AssertionError):
        check_a_token_at_any_edge(mutant(secrets, old, new))


@pytest.mark.parametrize("name", ["created_at", "issue_id", "session", "pattern"])
def test_a_field_that_holds_nobodys_words_is_not_looked_at(name: str) -> None:
    refuse_secrets({name: TOKEN})


def test_a_hive_refuses_credentials_unless_it_is_told_to_take_them(hive: Services) -> None:
    with pytest.raises(LooksLikeSecret), Services(hive.layout, actor="ui-engineer") as strict:
        strict.messages.send("reviewer", f"use {TOKEN}")
    with Services(hive.layout, actor="ui-engineer", allow_secrets=True) as trusting:
        assert trusting.messages.send("reviewer", f"use {TOKEN}")
