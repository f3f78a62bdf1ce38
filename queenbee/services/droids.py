"""Droids: who exists in this hive."""

from __future__ import annotations

import os

from queenbee.core.names import ALWAYS_KNOWN, checked_name, is_name, nearest
from queenbee.errors import UnknownDroid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.services.hive import Hive


_NAMED_IN = {"messages": ("from", "to"), "assignments": ("droid",), "reservations": ("droid",)}


class Droids:
    """The names in `.factory/droids/`, and those that have acted in this hive."""

    def __init__(self, hive: Hive) -> None:
        self._hive = hive

    def listed(self) -> set[str]:
        """Returns the names that `.factory/droids/*.md` gives; empty where there are none."""
        try:
            files = os.listdir(self._hive.layout.droids_dir)
        except OSError:
            return set()
        return {
            name for file in files if file.endswith(".md") and is_name(name := file[: -len(".md")])
        }

    def check(self, name: str) -> str:
        """Returns the name unchanged. Raises `InvalidInput` or `UnknownDroid`.

        A name must be listed where the setting `droids` is `strict`, or `auto` (the default) and
        the list has any; `human` and `queen` always exist.
        """
        checked_name(name)
        setting = self._hive.layout.settings.droids
        if setting == "off" or name in ALWAYS_KNOWN:
            return name
        listed = self.listed()
        if name in listed or (setting == "auto" and not listed):
            return name
        close = nearest(name, listed | ALWAYS_KNOWN)
        raise UnknownDroid(
            f"there is no droid {name!r} in {self._hive.layout.droids_dir}",
            hint=f"did you mean {close!r}?" if close else f"known: {', '.join(sorted(listed))}",
            droid=name,
            known=sorted(listed | ALWAYS_KNOWN),
        )

    def known(self) -> list[str]:
        """Returns every name of this hive, sorted: those listed, and where any name serves,
        those that wrote, were written to, or held anything; `human` and `queen` where they
        took part.
        """
        seen: set[str] = set()
        for kind, columns in _NAMED_IN.items():
            state = self._hive.state(kind)
            for column in columns:
                seen.update(each for each in state.distinct(column) if isinstance(each, str))
        listed = self.listed()
        setting = self._hive.layout.settings.droids
        if listed and setting != "off":
            seen &= ALWAYS_KNOWN
        return sorted({name for name in seen if is_name(name)} | listed)
