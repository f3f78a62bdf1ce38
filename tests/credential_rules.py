"""Writes the rules for credentials from those of detect-secrets, with the option `--write`.

`tests/services/writing/test_secrets.py` fails when they differ from the version that is installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

from queenbee.services.writing import credentials

LEFT_OUT = {
    "Base64 High Entropy String",
    "Hex High Entropy String",
    "Public IP (ipv4)",
    "Secret Keyword",
}
"""The first two judge by entropy and would refuse every commit hash, an address is no credential,
and the last takes cubic time: `secrets._ASSIGNED` finds what it finds.
"""


def rules() -> list[dict[str, object]]:
    """Returns what detect-secrets looks for, as the file holds it."""
    found = []
    for kind, plugin in sorted(get_mapping_from_secret_type_to_class().items()):
        if kind in LEFT_OUT:
            continue
        for expression in plugin.denylist:
            flags = "".join(
                letter for letter, flag in credentials.FLAGS.items() if expression.flags & flag
            )
            needs = needed(parser.parse(expression.pattern, expression.flags))
            rule = {"kind": kind, "pattern": expression.pattern, "flags": flags, "needs": needs}
            found.append(rule)
    return found


def needed(parsed: Iterable[tuple[object, object]]) -> list[list[str]]:
    """Returns lists of words, in lower case, of each of which every match has at least one."""
    found: list[list[str]] = []
    word = ""
    for kind, value in [*parsed, (None, None)]:
        if kind is op.SUBPATTERN and all(each[0] is op.LITERAL for each in value[-1]):
            word += "".join(chr(each[1]) for each in value[-1])
        elif kind is op.LITERAL:
            word += chr(value)
        else:
            found += [[word.lower()]] if word else []
            word = ""
        if kind is op.SUBPATTERN and not all(each[0] is op.LITERAL for each in value[-1]):
            found += needed(value[-1])
        elif kind is op.BRANCH:
            ways = [needed(each) for each in value[1]]
            if all(ways):  # Else one of them needs nothing.
                found.append(sorted({one for each in ways for one in max(each, key=_shortest)}))
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT) and value[0]:
            found += needed(value[2])
    return [each for each in found if _shortest(each) > 1]


def _shortest(words: list[str]) -> int:
    return min(map(len, words))


def text() -> str:
    """Returns the whole file."""
    lines = ",\n".join(f"  {json.dumps(rule)}" for rule in rules())
    return f"[\n{lines}\n]\n"


if __name__ == "__main__" and "--write" in sys.argv:
    Path(credentials.PATH).write_text(text(), encoding="utf-8")
