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
# Kinds that detect-secrets does not know yet, in the form that their makers document.
_NEWER = (
    ("GitHub Token", r"(?<!\w)github_pat_[A-Za-z0-9_]{36,}"),
    ("Anthropic Key", r"(?<!\w)sk-ant-[A-Za-z0-9]+-[A-Za-z0-9_-]{32,}"),
    ("OpenAI Key", r"(?<!\w)sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}"),
    ("Google API Key", r"(?<!\w)AIza[A-Za-z0-9_-]{35}"),
    ("npm Token", r"(?<!\w)npm_[A-Za-z0-9]{36}"),
    ("Hugging Face Token", r"(?<!\w)hf_[A-Za-z0-9]{34}"),
    ("Google OAuth Secret", r"(?<!\w)GOCSPX-[A-Za-z0-9_-]{28}"),
    ("DigitalOcean Token", r"(?<!\w)do[opr]_v1_[a-f0-9]{64}"),
    ("Docker Token", r"(?<!\w)dckr_[po]at_[A-Za-z0-9_-]{27,}"),
    # As in a file `.env`: without quotes, a value may be code, so it must look random as well.
    (
        "Secret Variable",
        (
            r"(?<!\w)[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY)=(?=\w*[a-z])"
            r"(?=\w*[A-Z])(?=\w*\d)[A-Za-z0-9_+/=-]{20,}(?![\w.(\[])"
        ),
    ),
)

_rules: list[tuple[str, re.Pattern[str]]] = []


def kinds_in(line: str) -> list[str]:
    """Returns the kinds of credentials that a line seems to hold, each once."""
    if not _rules:
        _rules.extend((kind, re.compile(pattern, flags)) for kind, pattern, flags in rules())
        _rules.extend((kind, re.compile(pattern)) for kind, pattern in _NEWER)
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
