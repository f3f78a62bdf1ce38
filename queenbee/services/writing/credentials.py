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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PATH = os.path.join(os.path.dirname(__file__), "credentials.json")
FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_SIGNED = "JSON Web Token"
# Kinds that detect-secrets does not know yet, in the form that their makers document, each with the
# words that a match needs.
_NEWER = (
    ("GitHub Token", r"(?<!\w)github_pat_[A-Za-z0-9_]{36,}", [["github_pat_"]]),
    ("Anthropic Key", r"(?<!\w)sk-ant-[A-Za-z0-9]+-[A-Za-z0-9_-]{32,}", [["sk-ant-"]]),
    ("OpenAI Key", r"(?<!\w)sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}", [["sk-"]]),
    ("Google API Key", r"(?<!\w)AIza[A-Za-z0-9_-]{35}", [["aiza"]]),
    ("npm Token", r"(?<!\w)npm_[A-Za-z0-9]{36}", [["npm_"]]),
    ("Hugging Face Token", r"(?<!\w)hf_[A-Za-z0-9]{34}", [["hf_"]]),
    ("Google OAuth Secret", r"(?<!\w)GOCSPX-[A-Za-z0-9_-]{28}", [["gocspx-"]]),
    ("DigitalOcean Token", r"(?<!\w)do[opr]_v1_[a-f0-9]{64}", [["_v1_"]]),
    ("Docker Token", r"(?<!\w)dckr_[po]at_[A-Za-z0-9_-]{27,}", [["dckr_"]]),
    # As in a file `.env`: without quotes, a value may be code, so it must look random as well.
    (
        "Secret Variable",
        (
            r"(?<!\w)[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY)=(?=\w*[a-z])"
            r"(?=\w*[A-Z])(?=\w*\d)[A-Za-z0-9_+/=-]{20,}(?![\w.(\[])"
        ),
        [["password=", "passwd=", "secret=", "token=", "key="]],
    ),
)

_rules: list[tuple[str, str, int, list[list[str]]]] = []


def kinds_in(line: str) -> list[str]:
    """Returns the kinds of credentials that a line, or some of them, seems to hold, each once."""
    if not _rules:
        _rules.extend(rules())
        _rules.extend((kind, pattern, 0, needs) for kind, pattern, needs in _NEWER)
    folded = line.casefold()
    found = (
        kind
        for kind, pattern, flags, needs in _rules
        # To look for a word takes a hundredth of the time that an expression does.
        if all(any(word in folded for word in words) for words in needs)
        and _matches(kind, re.compile(pattern, flags), line)
    )
    return list(dict.fromkeys(found))


def rules() -> Iterable[tuple[str, str, int, list[list[str]]]]:
    """Yields the kind and the expression of each rule of detect-secrets, with its flags, and with
    lists of words, in lower case: each match has a word of every list.
    """
    with open(PATH, "rb") as file:
        for rule in json.load(file):
            flags = sum(FLAGS[each] for each in rule["flags"])
            yield rule["kind"], rule["pattern"], flags, rule["needs"]


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
