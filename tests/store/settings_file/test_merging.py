"""Two versions of the settings are merged by key, and one table in two parts becomes one."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.store.settings import is_readable
from queenbee.store.settings_file.merging import mended, merged

CHECK, UNION = '[land]\ncheck = "make test"  # ours\n', '[land]\nunion = ["A.md"]\n'


def test_different_keys_of_one_table_are_both_kept() -> None:
    text = merged("", CHECK, UNION)
    assert text == '[land]\ncheck = "make test"  # ours\nunion = ["A.md"]\n'


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "value"),
    [
        ('ttl = "1h"', 'ttl = "2h"', 'ttl = "1h"', "2h"),
        ('ttl = "1h"', 'ttl = "1h"', 'ttl = "2h"', "2h"),
        ('ttl = "1h"', 'ttl = "2h"', 'ttl = "2h"', "2h"),
        ('ttl = "1h"', 'ttl = "1h"', "", None),
        ('ttl = "1h"', "", 'ttl = "1h"', None),
    ],
)
def test_whoever_changed_it_counts(base: str, ours: str, theirs: str, value: str | None) -> None:
    text = merged(base, ours, theirs)
    assert text is not None
    assert tomllib.loads(text).get("ttl") == value


def test_what_both_changed_in_different_ways_is_a_conflict() -> None:
    assert merged('ttl = "1h"', 'ttl = "2h"', 'ttl = "3h"') is None
    assert merged("", 'ttl = "2h"', 'ttl = "3h"') is None
    assert merged('ttl = "1h"', "", 'ttl = "3h"') is None
    assert merged("", '[land]\nunion = ["a"]', "[land]\nunion = 3") is None


def test_lists_get_what_either_added_and_a_removal_is_a_conflict() -> None:
    def union(*names: str) -> str:
        return f"[land]\nunion = {list(names)}\n"

    text = merged(union("a"), union("a", "b"), union("a", "c"))
    assert text is not None
    assert tomllib.loads(text)["land"]["union"] == ["a", "b", "c"]
    assert merged(union("a"), union(), union("a", "c")) is None
    assert merged(union("a"), union("a", "c"), union()) is None


@pytest.mark.parametrize("text", ["[land", "ttl = 3\n", 'ttl = "1h"\nttl = "2h"\n'])
def test_what_cannot_be_read_is_not_merged(text: str) -> None:
    assert merged("", text, UNION) is None
    assert merged("", UNION, text) is None


VALUES = st.dictionaries(
    st.sampled_from(["ttl", "quiet_after", "land.check_timeout"]), st.sampled_from(["1m", "2m"])
)


def _text(values: dict[str, str]) -> str:
    return "".join(f'{name} = "{value}"\n' for name, value in values.items())


@given(VALUES, VALUES, VALUES)
def test_a_merge_says_the_same_from_either_side(
    base: dict[str, str], ours: dict[str, str], theirs: dict[str, str]
) -> None:
    one, other = (
        merged(_text(base), _text(a), _text(b)) for a, b in ((ours, theirs), (theirs, ours))
    )
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert tomllib.loads(one) == tomllib.loads(other)


def test_parts_of_a_table_become_one_with_their_comments() -> None:
    again = '[land]\n# why\nunion = ["A.md"] # b\ncheck = "make test"\n'
    text = f'# a\n{CHECK}\n[hook]\nstop = "off"\n\n{again}'
    made = mended(text)
    assert made is not None
    assert is_readable(made)
    for kept in ("# a\n", "# ours\n", "# why\n", "# b\n"):
        assert made.count(kept) == 1
    assert tomllib.loads(made) == {
        "land": {"check": "make test", "union": ["A.md"]},
        "hook": {"stop": "off"},
    }


def test_lists_in_two_parts_are_joined_and_marks_of_a_conflict_go() -> None:
    made = mended(f'<<<<<<< HEAD\n{UNION}=======\n[land]\nunion = ["B.md"]\n>>>>>>> b\n')
    assert made is not None
    assert tomllib.loads(made) == {"land": {"union": ["A.md", "B.md"]}}


@pytest.mark.parametrize(
    "text",
    [f'{CHECK}[land]\ncheck = "x"\n', "[land", "ttl = 3\n", 'note = """\n[land]\n"""\n[land]\nx'],
)
def test_anything_else_is_left_to_people(text: str) -> None:
    assert mended(text) is None


def test_no_character_but_a_newline_begins_a_table() -> None:
    text = 'note = "a\u2028[land]\u2028b"\n[land]\ncheck = "x"\n'
    made = mended(f'{text}[land]\nby = "pr"\n')
    assert made is not None
    assert tomllib.loads(made)["note"] == "a\u2028[land]\u2028b"
