"""Credentials: a text that holds one is refused, wherever in the text it stands."""

from __future__ import annotations

import os
import re
from pathlib import Path

import credential_rules
import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.keyword import KeywordDetector
from hypothesis import given
from hypothesis import strategies as st

from queenbee.errors import Busy, InvalidInput
from queenbee.services.hive import Services
from queenbee.services.writing import credentials, secrets
from queenbee.services.writing.secrets import LooksLikeSecret, refuse_secrets
from queenbee.store.lock import KernelLock

pytestmark = pytest.mark.both_engines(thorough=True)

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
"""In the form of a GitHub token, of 40 characters."""
WINDOW = secrets._WINDOW


def refused(text: str) -> bool:
    try:
        secrets.refuse_secrets({"body": text})
    except LooksLikeSecret:
        return True
    return False


def check_a_token_at_any_edge() -> None:
    """Each length ends the last window elsewhere, and each offset puts the token on an edge."""
    for edge in (WINDOW // 2, WINDOW, 3 * WINDOW // 2, 2 * WINDOW):
        for begin in (edge - len(TOKEN), edge - len(TOKEN) // 2, edge - 1, edge):
            for behind in (0, 1, WINDOW // 2, WINDOW):
                text = "x" * (begin - 1) + " " + TOKEN + " " + "y" * behind
                assert refused(text), (begin, behind)


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
    check_a_token_at_any_edge()


@pytest.mark.parametrize("name", ["created_at", "session", "worktree"])
def test_a_field_that_holds_nobodys_words_is_not_looked_at(name: str) -> None:
    refuse_secrets({name: TOKEN})


def test_a_hive_refuses_credentials_unless_it_is_told_to_take_them(hive: Services) -> None:
    with pytest.raises(LooksLikeSecret), Services(hive.layout, actor="ui-engineer") as strict:
        strict.messages.send("reviewer", f"use {TOKEN}")
    with Services(hive.layout, actor="ui-engineer", allow_secrets=True) as trusting:
        assert trusting.messages.send("reviewer", f"use {TOKEN}")


# What is looked at


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE.txt",
        f"{TOKEN}.md",
        "qm-AKIAIOSFODNN7EXAMPLE",
        f"src/{TOKEN}/**",
        "keys/AKIAIOSFODNN7EXAMPLE/**/*.py:12",
        f"({TOKEN}.json).",
    ],
)
def test_a_credential_that_ends_like_a_file_or_begins_like_an_id_is_found(text: str) -> None:
    assert refused(text)


def test_names_that_are_common_in_messages_do_not_load_the_detectors() -> None:
    for text in (
        "qm-01JF3Z8T6K5N7Q2R4V8X0B1C3D",
        "0f3a9c2d1e4b5a69788796a5b4c3d2e1f0a9b8c7",
        "123e4567-e89b-42d3-a456-426614174000",
        "src/components/checkout_form2_validation.test.ts:120:5",
        "packages/ui2/**/sprint_12_report_final.md",
        "https-less/path/with-2-parts/[id]/{a,b}.tsx",
    ):
        assert not secrets._worth_a_look(text), text


@pytest.mark.parametrize("name", ["issue_id", "pattern", "reason", "verifier"])
def test_every_text_of_a_record_is_looked_at(name: str) -> None:
    for fields in ({name: TOKEN}, {"results": [{name: TOKEN}]}, {"rows": [{"a": {name: TOKEN}}]}):
        with pytest.raises(LooksLikeSecret) as caught:
            refuse_secrets(fields)
        assert caught.value.details["field"] == name


class TestInAHive:
    def test_an_issue_id_a_pattern_and_a_reason_are_refused(self, hive: Services) -> None:
        for write in (
            lambda: hive.assignments.claim(TOKEN),
            lambda: hive.assignments.claim("qb-1", reason=TOKEN),
            lambda: hive.reservations.reserve([f"keys/{TOKEN}.txt"]),
            lambda: hive.reservations.reserve(["a"], reason=TOKEN),
            lambda: hive.reservations.reserve(["a"], issue_id=TOKEN),
            lambda: hive.messages.send("reviewer", "hello", issue_id=TOKEN),
        ):
            with pytest.raises(LooksLikeSecret):
                write()
        assert not hive.assignments.find()
        assert not hive.reservations.find()

    def test_a_text_is_looked_at_before_the_lock_is_taken(self, hive: Services) -> None:
        hive.layout.settings.lock_timeout_s = 0.1
        hive.messages.send("reviewer", "the first makes the folders")
        with KernelLock(hive.layout.lock_path, holder="another", timeout_s=1):
            for write in (
                lambda: hive.messages.send("reviewer", TOKEN),
                lambda: hive.reservations.reserve([f"keys/{TOKEN}.txt"]),
                lambda: hive.reservations.reserve(["a"], reason=TOKEN),
            ):
                with pytest.raises(LooksLikeSecret):
                    write()

    def test_under_the_lock_a_text_is_not_looked_at_again(
        self, hive: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked: list[bool] = []
        body, worth = "a body that nobody has sent before", secrets._worth_a_look

        def noting(line: str) -> bool:
            if line == body:
                looked.append(os.path.exists(hive.layout.lock_path) and is_locked(hive))
            return worth(line)

        monkeypatch.setattr(secrets, "_passed", {})
        monkeypatch.setattr(secrets, "_worth_a_look", noting)
        hive.messages.send("reviewer", body)
        assert looked
        assert not any(looked)


def is_locked(hive: Services) -> bool:
    try:
        with KernelLock(hive.layout.lock_path, holder="test", timeout_s=0):
            return False
    except Busy:
        return True


# How long it takes: each of these would take minutes or years with detect-secrets' expressions


@pytest.mark.parametrize(
    "piece",
    ["secret" * 332 + "=", "softlayer_api_key" + " " * 1_900, "secret=", "secret:'", "`a`==pwd "],
)
def test_a_long_text_of_almost_credentials_is_answered(piece: str) -> None:
    assert refused(piece * (100_000 // len(piece)) + TOKEN) in (True, False)


_BITS = st.sampled_from(
    ["secret", "pwd", "api_key", "my", "x", "1", "'", '"', "=", "==", "!=", "=>", ":", ";", ",",
     " ", "   ", "]", "[", "(", "-", "_", "value9", "Secret"]
)  # fmt: skip


@given(st.lists(_BITS, max_size=14).map("".join))
def test_what_detect_secrets_finds_as_an_assignment_is_found(text: str) -> None:
    theirs = any(KeywordDetector().analyze_string(text))
    if theirs:
        assert secrets._ASSIGNMENT in set(secrets._found(text)), text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('password = "hunter2"', True),
        ("api_key: 'abc'", True),
        ("my_secret_2 => `abc`", True),
        ('if "abc" == password:', True),
        ('private_key "abc";', True),
        ("password = hunter2", False),
        ('the password is "good"', False),
        ("secret keys: a, b", False),
    ],
)
def test_assignments_to_names_of_secrets_are_found(text: str, found: bool) -> None:
    assert refused(text) is found


_WORDS = st.sampled_from(
    ["password", "api_key", "auth", "it's", "=", ": ", " ", "   ", "\n", "\x1c", "'", '"', "`", "x",
     "AKIAIOSFODNN7EXAMPLE", "src/auth/login.py", "9f86d081884c7d659a2feaa0c55ad015", "ab12" * 5,
     "https://", "bob:pw1@host", "PRIVATE KEY", "hunter2"]
)  # fmt: skip


def found_line_by_line(text: str) -> set[str]:
    """Returns what is found in a text that is too long to be looked at as a whole."""
    return set(secrets._found(f"{text}\n{'x ' * secrets._WINDOW}"))


@given(st.lists(_WORDS, max_size=12).map("".join))
def test_looking_at_a_whole_text_first_misses_nothing(text: str) -> None:
    found = set(secrets._found(text))
    assert found == found_line_by_line(text)
    lines = [line for line in text.splitlines() if secrets._assigns(line)]
    assigned = any(secrets._ASSIGNED.search(secrets._SPACES.sub("  ", line)) for line in lines)
    assert (secrets._ASSIGNMENT in found) is assigned


# The rules for known services


def test_the_rules_are_those_of_the_latest_detect_secrets() -> None:
    """If not: `python tests/credential_rules.py --write`, and read what changed."""
    assert Path(credentials.PATH).read_text(encoding="utf-8") == credential_rules.text()


THEIRS = {
    kind: make()
    for kind, make in get_mapping_from_secret_type_to_class().items()
    if kind not in credential_rules.LEFT_OUT
}
RULES = [re.compile(pattern, flags) for _, pattern, flags, _ in credentials.rules()]
WEB_TOKENS = ("eyJhbGciOiJub25lIn0", "eyJhIjoxfQ", "eyJ", "e30", "bm8", "a", "", "_-", "c2ln")


@given(
    st.one_of(
        st.sampled_from(RULES).flatmap(lambda rule: st.from_regex(rule)),
        st.lists(st.sampled_from(WEB_TOKENS), min_size=2, max_size=4).map(".".join),
        st.text(max_size=80),
    )
)
def test_what_detect_secrets_finds_in_a_line_is_found_and_nothing_else(text: str) -> None:
    for line in text.splitlines():
        theirs = {kind for kind, plugin in THEIRS.items() if any(plugin.analyze_string(line))}
        # It overlooks a token in which an optional part of the expression is empty.
        overlooked = {
            kind
            for (kind, *_), rule in zip(credentials.rules(), RULES, strict=True)
            if any(rule.findall(line)) is False and rule.search(line)
        }
        ours = set(credentials.kinds_in(line))
        assert theirs <= ours <= theirs | overlooked


@given(
    st.lists(
        st.one_of(
            st.sampled_from(RULES).flatmap(lambda rule: st.from_regex(rule, fullmatch=True)),
            st.text(max_size=80),
            st.sampled_from(["key: ", "  ", "a" * 3_000, TOKEN]),
        ),
        max_size=8,
    )
)
def test_many_lines_at_a_time_hold_what_each_of_them_holds(lines: list[str]) -> None:
    each = {kind for line in "\n".join(lines).splitlines() for kind in secrets._found(line)}
    assert set(secrets.credentials_in("\n".join(lines))) == each - {secrets._ASSIGNMENT}


def check_web_tokens() -> None:
    assert credentials.kinds_in("use eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2ln now") == ["JSON Web Token"]
    assert not credentials.kinds_in("use eyJhbGciOiJub25lIn0.bm8.c2ln now")


def test_a_web_token_is_one_if_its_parts_can_be_read() -> None:
    check_web_tokens()


@pytest.mark.parametrize("text", ["glpat-a1b2_c3d4-e5f6_a7b8_.txt", "qm-AKIAIOSFODNN7EXAMPLE"])
def test_a_secret_that_looks_like_a_file_name_or_an_id_is_refused(text: str) -> None:
    assert refused(text)


def test_a_token_among_plain_words_is_refused() -> None:
    assert refused(f"see {TOKEN} there")


MIXED = "a1B2c3D4e5F6" * 9


@pytest.mark.parametrize(
    "key",
    [
        f"github_pat_11{MIXED[:80]}",
        f"sk-ant-api03-{MIXED[:93]}AA",
        f"sk-proj-{MIXED[:48]}",
        f"AIza{MIXED[:35]}",
        f"npm_{MIXED[:36]}",
        f"hf_{MIXED[:34]}",
        "hf_" + "AbCdEfGhIjKlMnOpQ" * 2,
        f"GOCSPX-{MIXED[:28]}",
        f"dckr_pat_{MIXED[:27]}",
        "dop_v1_" + "a1" * 32,
        f"DB_PASSWORD={MIXED[:24]}",
    ],
)
def test_kinds_of_today_are_found_without_quotes_too(key: str) -> None:
    assert refused(key) and refused(f"use {key}, please") and refused(f"src/{key}")


@pytest.mark.parametrize(
    "text",
    ["TOKEN=$(cat file)", "API_KEY=os.environ[1]", "TOKEN=read_token_of_the_user", "npm_config"],
)
def test_a_variable_without_a_value_passes(text: str) -> None:
    assert not refused(text)


def test_a_text_that_is_too_large_is_refused_before_it_is_looked_through(
    hive: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(secrets, "refuse_secrets", look)
    with pytest.raises(InvalidInput, match="a line holds at most"):
        hive.messages.send("api", "token x1 " * 200_000)
