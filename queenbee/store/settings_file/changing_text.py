"""Changing values in the text of `queen.toml`: comments and order stay. ADR 0035."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import tomlkit

from queenbee.core.names import nearest
from queenbee.core.text import suggested, utf8
from queenbee.errors import InvalidInput, NotFound, QueenError, Unreadable, Unwritable
from queenbee.store.creating import make_state_dir
from queenbee.store.lock import KernelLock
from queenbee.store.machine import CHOOSE
from queenbee.store.settings import (
    FILE_NAME,
    SETTINGS,
    Setting,
    by_name,
    keep_good,
    loaded,
    not_toml,
    toml_of,
)
from queenbee.store.whole_files import read_own, write_document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queenbee.store.layout import Layout

_OTHER_WAY = {
    "state": f"{CHOOSE} beads, or {CHOOSE} git",
    "engine.kind": "queen hive engine use",
    "engine.hive": "queen hive engine use",
    "sync.ledgers": "queen sync setup",
}
"""Settings that mean nothing, or lose records, without what the command does besides."""
_PLACEHOLDER = "COMMAND"
"""What hints and the help have in place of a command."""


def with_values(text: str, values: Mapping[str, object]) -> str:
    """Returns the settings with these values by name, such as `land.check`; None removes one.

    Raises `Unreadable` for a text that is not TOML, and `Unwritable` if the text would say anything
    else than what it said and these values.
    """
    wanted = by_name(FILE_NAME, toml_of(FILE_NAME, text))
    document = tomlkit.parse(text)
    for name, value in values.items():
        _put(document, name, value)
        wanted.pop(name, None)
        if value is not None:
            wanted[name] = value
    changed = tomlkit.dumps(document)
    if None in values.values() and changed.endswith("\n\n"):  # Of a table that is gone.
        changed = changed.rstrip("\n") + "\n"
    try:
        found = by_name(FILE_NAME, tomllib.loads(changed))
    except (ValueError, Unreadable):
        found = {}
    if found != wanted:
        raise Unwritable(
            f"{FILE_NAME} cannot be changed automatically", hint="change it by hand", path=FILE_NAME
        )
    return changed


def _put(document: tomlkit.TOMLDocument, name: str, value: object) -> None:
    table, _, key = name.rpartition(".")
    within: Any = document
    if table:
        if value is not None and table not in document:
            document[table] = tomlkit.table()
        within = document.get(table, {})
    if value is not None:
        within[key] = value
    elif key in within:
        del within[key]
        if table and not within:
            del document[table]


def setting_named(name: str) -> Setting:
    """Returns a setting. Raises `InvalidInput`, with the one that was probably meant."""
    found = next((each for each in SETTINGS if each.name == name), None)
    if found is not None:
        return found
    typed, _, value = name.partition("=")
    close = nearest(typed, [each.name for each in SETTINGS])
    way = suggested("queen config set", close, value) if close and value else "queen config list"
    hint = f"did you mean {close!r}? {way}" if close else way
    raise InvalidInput(f"there is no setting {name!r}", hint=hint)


def values_in(path: str) -> dict[str, object]:
    """Returns what a file says, by the names of settings. Raises `Unreadable`."""
    return by_name(path, toml_of(path, text_of(path)))


def text_of(path: str) -> str:
    """Returns the text of the settings, or "" without a file. Raises `Unreadable`."""
    try:
        return read_own(path).decode()
    except NotFound:
        return ""
    except UnicodeDecodeError as error:
        raise not_toml(path, error) from error


def replace(layout: Layout, change: Callable[[str], str], path: str | None = None) -> bool:
    """Replaces the text of the settings by what `change` makes of it, for a caller that has the
    hive's lock; returns whether it is another. `path` is that of a branch, in place of the hive's.
    Raises as `change` does, and `Unwritable`.
    """
    own = os.path.join(layout.beads_dir, FILE_NAME)
    path = path or own
    before = text_of(path)
    after = change(before)
    data = utf8(after)
    if after != before:
        write_document(path, data)
        if path == own:  # The next command may find a file that cannot be read.
            with suppress(QueenError):
                keep_good(layout.state_dir, loaded(path, data, os.environ))
    return after != before


def changed_under_lock(
    layout: Layout, change: Callable[[str], str], *, holder: str, path: str | None = None
) -> bool:
    """Does as `replace`, under the hive's lock. Raises `Busy` too."""
    with KernelLock(
        layout.lock_path,
        holder=holder,
        timeout_s=layout.settings.lock_timeout_s,
        prepare=lambda: make_state_dir(layout),
    ):
        return replace(layout, change, path)


def put_value(
    layout: Layout,
    name: str,
    value: object,
    *,
    holder: str,
    add: bool = False,
    path: str | None = None,
) -> bool:
    """Sets a setting, or removes it with None; returns whether that changed the file. With `add`,
    a list keeps what it has. `path` is the file of a branch, in place of the hive's.

    A command does not count as seen by that. Raises `InvalidInput` for a value that is not allowed,
    and for a setting that another command writes; and as `changed_under_lock` does.
    """
    setting = setting_named(name)
    if name in _OTHER_WAY:
        raise InvalidInput(f"{name} is not set by itself", hint=_OTHER_WAY[name])
    if value == _PLACEHOLDER:
        raise InvalidInput(
            f"{_PLACEHOLDER} stands for a command of this repository",
            hint=f"put that in its place in quotes, such as {name} 'make test'",
            setting=name,
        )
    if value is not None and setting.type.read(value) is None:
        raise InvalidInput(
            f"{name} cannot be {setting.faulty(value)}",
            hint=f"set it to {setting.type.allowed}",
            setting=name,
        )
    if add and not isinstance(setting.default, list):
        raise InvalidInput(f"{name} is no list", hint=f"leave out --add: queen config set {name}")

    def change(text: str) -> str:
        before = by_name(FILE_NAME, toml_of(FILE_NAME, text)).get(name)
        now = value
        if add and isinstance(before, list) and isinstance(value, list):
            now = [*before, *(each for each in value if each not in before)]
        return text if now == before else with_values(text, {name: now})

    return changed_under_lock(layout, change, holder=holder, path=path)


def parsed(setting: Setting, words: list[str]) -> object:
    """Returns the value that words of a command line say, for the file. Raises `InvalidInput`."""
    if isinstance(setting.default, list):
        return words
    if len(words) != 1:
        raise InvalidInput(f"{setting.name} takes one value", hint="put quotes around it")
    (word,) = words
    if isinstance(setting.default, bool):
        return {"true": True, "false": False}.get(word, word)
    if isinstance(setting.default, int):
        return int(word) if word.isascii() and word.isdigit() else word
    return word
