"""What credentials of known services look like.

`credentials.json` holds the expressions of detect-secrets (github.com/Yelp/detect-secrets, Apache
License 2.0), which `tests/credential_rules.py` writes; a test compares them with its latest
version. The library itself would bring five packages that we have no use for.
"""

from __future__ import annotations

import base64
import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PATH = os.path.join(os.path.dirname(__file__), "credentials.json")
FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_SIGNED = "JSON Web Token"

_rules: list[tuple[str, re.Pattern[str]]] = []


def kinds_in(line: str) -> list[str]:
    """Returns the kinds of credentials that a line seems to hold, each once."""
    if not _rules:
        _rules.extend((kind, re.compile(pattern, flags)) for kind, pattern, flags in rules())
    return list(dict.fromkeys(kind for kind, rule in _rules if _matches(kind, rule, line)))


def rules() -> Iterable[tuple[str, str, int]]:
    """Yields the kind, the expression and its flags of each rule."""
    with open(PATH, "rb") as file:
        for rule in json.load(file):
            yield rule["kind"], rule["pattern"], sum(FLAGS[each] for each in rule["flags"])


def _matches(kind: str, rule: re.Pattern[str], line: str) -> bool:
    if kind == _SIGNED:
        return any(_is_web_token(found[0]) for found in rule.finditer(line))
    return rule.search(line) is not None


def _is_web_token(text: str) -> bool:
    """Returns whether all parts are base64, and the first two JSON: RFC 7519, section 3."""
    try:
        parts = [
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in text.split(".")
        ]
        for part in parts[:2]:
            json.loads(part.decode())
    except (ValueError, RecursionError):
        return False
    return True
