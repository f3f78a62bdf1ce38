"""Values are changed in the text of the settings; all else, comments included, stays."""

from __future__ import annotations

import pytest

from queenbee.store.settings_text import with_values

VALUES = {"kind": '"postgres"', "hive": '"shop"'}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", '\n[engine]\nkind = "postgres"\nhive = "shop"\n'),
        (
            '# ours\n[engine]\nhook = "warn"  # why\nkind = "files"\n[land]\n',
            '# ours\n[engine]\nkind = "postgres"\nhive = "shop"\nhook = "warn"  # why\n[land]\n',
        ),
    ],
)
def test_values_are_written_and_the_rest_stays(text: str, changed: str) -> None:
    assert with_values(text, "engine", VALUES) == changed


def test_values_that_are_removed_take_an_empty_table_along() -> None:
    text = with_values('ttl = "1h"\n', "engine", VALUES)
    assert with_values(str(text), "engine", {"kind": None, "hive": None}) == 'ttl = "1h"\n'


@pytest.mark.parametrize(
    "text",
    [
        'note = """\n[engine]\n"""\n',
        '[engine]\nnote = """\nkind = "files"\n"""\n',
        'engine = {kind = "files"}\n',
        'engine.kind = "files"\n',
        "[engine\n",
    ],
    ids=["a table in a text", "a value in a text", "an inline table", "a dotted key", "no TOML"],
)
def test_what_would_change_anything_else_is_left_to_people(text: str) -> None:
    assert with_values(text, "engine", VALUES) is None
