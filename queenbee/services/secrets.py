"""Refuses text that looks like a credential: once committed, it stays in git.

The detectors are those of detect-secrets, except the two that judge by entropy, which would
refuse every commit hash. They are loaded only for text that could hold a credential.
"""

from __future__ import annotations

import re
from itertools import islice

from queenbee.core.kinds import KINDS
from queenbee.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

OVERRIDE = "QUEEN_ALLOW_SECRET"
"""When this environment variable is 1, every text is accepted."""

_GUESSES = frozenset({"Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)"})
_KEYWORDS = ("pass", "pwd", "secret", "token", "key", "auth", "credential")
_ASSIGNS = (":", "=")
_SHORTEST = 16
"""The detectors only see a line that has a word as long as a credential with both letters and
digits, assigns something to one of these keywords, or holds one of these marks. On other lines
no detector finds anything (a test).
"""
_MARKS = ("PRIVATE KEY", "://")
_PREFIXES = "|".join(kind.prefix for kind in KINDS.values())
_HARMLESS = rf"[0-9a-f]{{7,64}}|({_PREFIXES})-[0-9A-Z]{{20,26}}|[\w./-]*\.[a-z]{{1,5}}(?::\d+)*"
"""Commit hashes, our own ids and file names are common in messages."""
_WINDOW = 2_000
"""Longer lines are checked in pieces, which overlap by half: no detector needs more context, and
some of their expressions take quadratic time.
"""

_MOST_PIECES = 200
"""A megabyte of key-like words would take seconds; this keeps it to half a second."""

_NO_TEXT = ("_at", "_id", "session", "pattern")
"""The endings of fields that hold an instant, an id or file names: long, with letters and digits,
and not written by a person. Each would load the detectors, which cost more than the write.
"""


class LooksLikeSecret(InvalidInput):
    """A text that seems to hold a credential; `kinds` names the detectors that matched."""

    code = "secret"


def refuse_secrets(fields: Mapping[str, object]) -> None:
    """Raises `LooksLikeSecret` if a text in the record looks like a credential."""
    for name, value in fields.items():
        if name.endswith(_NO_TEXT):
            continue
        if isinstance(value, str) and (kinds := sorted(set(_found(value)))):
            raise LooksLikeSecret(
                f"the {name} seems to hold a secret ({', '.join(kinds)}); nothing was recorded",
                hint=f"remove it, or if it is not a secret: {OVERRIDE}=1 queen …",
                field=name,
                kinds=kinds,
            )


def _found(text: str) -> Iterable[str]:
    for piece in islice(filter(_worth_a_look, _pieces(text)), _MOST_PIECES):
        yield from _detected(piece)


def _pieces(text: str) -> Iterable[str]:
    for line in text.splitlines():
        for begin in range(0, max(1, len(line) - _WINDOW // 2), _WINDOW // 2):
            yield line[begin : begin + _WINDOW]


def _worth_a_look(line: str) -> bool:
    if any(mark in line for mark in _MARKS):
        return True
    lowered = line.lower()
    if any(word in lowered for word in _KEYWORDS) and any(sign in line for sign in _ASSIGNS):
        return True
    return any(len(word) >= _SHORTEST and _mixed(word) for word in line.split())


def _mixed(word: str) -> bool:
    if word.isalpha() or not any(map(str.isdigit, word)) or not any(map(str.isalpha, word)):
        return False
    return len(word) > _WINDOW or not re.fullmatch(_HARMLESS, word.strip("()[]{},;:.'\"`"))


def _detected(line: str) -> Iterable[str]:
    if not _plugins:
        from detect_secrets.core.plugins.util import (  # noqa: PLC0415 - start-up
            get_mapping_from_secret_type_to_class,
        )

        known: Mapping[str, Any] = get_mapping_from_secret_type_to_class()
        _plugins.update((kind, make()) for kind, make in known.items() if kind not in _GUESSES)
    return [kind for kind, plugin in _plugins.items() if any(plugin.analyze_string(line))]


_plugins: dict[str, Any] = {}
