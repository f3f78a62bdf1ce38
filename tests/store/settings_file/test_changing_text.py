"""Values are changed in the text of the settings; all else, comments included, stays."""

from __future__ import annotations

import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from queenbee.errors import InvalidInput, QueenError, Unreadable, Unwritable
from queenbee.store.creating import template
from queenbee.store.settings import SETTINGS, by_name
from queenbee.store.settings_file import changing_text
from queenbee.store.settings_file.changing_text import parsed, setting_named, with_values

VALUES = {"engine.kind": "postgres", "engine.hive": "shop"}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", '[engine]\nkind = "postgres"\nhive = "shop"\n'),
        (
            '# ours\n[engine]\nhook = "warn"  # a\nkind = "files" # b\n[land]\n',
            '# ours\n[engine]\nhook = "warn"  # a\nkind = "postgres" # b\nhive = "shop"\n[land]\n',
        ),
        ('engine = {kind = "files"}\n', 'engine = {kind = "postgres", hive = "shop"}\n'),
        ('engine.kind = "files" # x\n', 'engine.kind = "postgres" # x\nengine.hive = "shop"\n'),
    ],
    ids=["no table", "a table", "an inline table", "a dotted key"],
)
def test_values_are_written_and_the_rest_stays(text: str, changed: str) -> None:
    assert with_values(text, VALUES).replace(",hive", ", hive") == changed


def test_values_that_are_removed_take_an_empty_table_along() -> None:
    text = with_values('ttl = "1h"\n', VALUES)
    assert with_values(text, dict.fromkeys(VALUES)) == 'ttl = "1h"\n'


def test_a_text_that_is_no_toml_is_refused_with_its_line() -> None:
    with pytest.raises(Unreadable, match=r"queen\.toml is not TOML") as refused:
        with_values("\n[engine\n", VALUES)
    assert refused.value.details["line"] == 2


def test_what_would_change_anything_else_is_left_to_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tomlkit, "dumps", lambda _: '[engine]\nkind = "postgres"\nhive = "x"\n')
    with pytest.raises(Unwritable, match="automatically"):
        with_values("", VALUES)


def said(text: str) -> dict[str, object]:
    return by_name("queen.toml", tomllib.loads(text))


CHANGES = st.dictionaries(
    st.sampled_from([each.name for each in SETTINGS]),
    st.one_of(st.none(), st.text(max_size=6), st.integers(), st.booleans(), st.lists(st.text())),
)


@given(st.lists(CHANGES, max_size=4))
def test_after_any_changes_the_file_says_the_last_of_each(changes: list[dict[str, object]]) -> None:
    text, wanted = template(), dict[str, object]()
    for change in changes:
        wanted = {**wanted, **change}
        text = with_values(text, change)
        assert said(text) == {name: value for name, value in wanted.items() if value is not None}
    comments = [each for each in text.split("\n") if each.startswith("#")]
    assert comments == [each for each in template().split("\n") if each.startswith("#")]


def test_what_a_shell_says_becomes_a_value_of_the_settings_type() -> None:
    assert parsed(setting_named("land.union"), ["a", "b"]) == ["a", "b"]
    assert parsed(setting_named("gate_results"), ["7"]) == 7
    assert parsed(setting_named("close_on_complete"), ["false"]) is False
    with pytest.raises(InvalidInput, match="takes one value"):
        parsed(setting_named("land.check"), ["make", "test"])


@pytest.mark.parametrize("name", sorted(changing_text._OTHER_WAY))
def test_what_another_command_writes_is_not_set_alone(name: str) -> None:
    setting = setting_named(name)
    with pytest.raises(QueenError, match="is not set by itself") as refused:
        changing_text.put_value(None, name, setting.default, holder="x")  # type: ignore[arg-type]
    assert refused.value.hint
