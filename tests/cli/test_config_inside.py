"""`queen config`: the parts inside."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hives import Queen, QuickQueen

from queenbee.store.settings import SETTINGS, load


def test_a_setting_is_set_shown_and_removed(quick: QuickQueen, repo: Path, toml: Path) -> None:
    assert quick("config", "set", "land.check", "make test", cwd=repo).out == (
        'land.check = "make test"\n'
    )
    assert load(str(toml.parent), {}).land_check == "make test"
    assert quick("config", "get", "land.check", cwd=repo).out == "make test\n"
    assert toml.read_text().startswith('# ours\nttl = "1h"  # short\n')
    assert quick("config", "unset", "land.check", cwd=repo).out == (
        'land.check = "" again, by default\n'
    )
    assert toml.read_text() == '# ours\nttl = "1h"  # short\n'


def test_all_settings_are_listed_with_what_the_file_says(
    quick: QuickQueen, repo: Path, toml: Path
) -> None:
    rows = quick("config", "list", "--json", cwd=repo).json
    assert [each["name"] for each in rows] == [each.name for each in SETTINGS]
    assert {each["name"]: each["value"] for each in rows if each["is_set"]} == {"ttl": "1h"}


def test_settings_that_several_set_at_once_are_all_there(
    queen: Queen, repo: Path, toml: Path
) -> None:
    names = [f"N{number}.md" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        done = pool.map(
            lambda name: queen("config", "set", "--add", "land.union", name, cwd=repo).code, names
        )
        assert list(done) == [0] * 6
    assert sorted(load(str(toml.parent), {}).land_union) == names
