"""What looks like a credential is not written: what is committed to git stays in git.

The detectors are those of detect-secrets, without its two that judge by entropy, which would
refuse every commit hash. They are loaded only for a text that could hold a credential at all.
"""

from __future__ import annotations

from queenbee.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

OVERRIDE = "QUEEN_ALLOW_SECRET"
"""The environment variable that lets a text through all the same, when set to 1."""

_GUESSES = frozenset({"Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)"})
_WORTH_A_LOOK = (
    r"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[A-Za-z0-9_+=:.\-/]{16,}"  # what keys and tokens look like
    r"|PRIVATE KEY|://[^\s/:@]+:[^\s/@]+@"
    r"|(?i:pass|pwd|secret|token|key|auth|credential)\w*['\"]?\s*(?:[:=]|=>)"
)
"""Without a match of this, none of the detectors finds anything (a test)."""
_WORDS = ("pass", "pwd", "secret", "token", "key", "auth", "credential", "://")
_SHORTEST = 16
_HARMLESS = r"[0-9a-f]{7,64}|q[mar]-[0-9A-Z]{20,26}|[\w./-]*\.[a-z]{1,5}(?::\d+)*"
"""Commit hashes, our own ids, and the names of files are in every other message."""


class LooksLikeSecret(InvalidInput):
    """A text that seems to hold a credential; `kinds` names what was recognised."""

    code = "secret"


def refuse_secrets(fields: Mapping[str, object]) -> None:
    """Raises `LooksLikeSecret` for a record in which a text looks like a credential."""
    for name, value in fields.items():
        if isinstance(value, str) and (kinds := sorted(set(_found(value)))):
            raise LooksLikeSecret(
                f"the {name} seems to hold a secret ({', '.join(kinds)}); nothing was recorded",
                hint=f"leave it out, or if it is none: {OVERRIDE}=1 queen …",
                field=name,
                kinds=kinds,
            )


def _found(text: str) -> Iterable[str]:
    lowered = text.lower()
    if not any(map(lowered.__contains__, _WORDS)) and all(
        len(word) < _SHORTEST for word in text.split()
    ):
        return  # Most messages: not worth the 9 ms that compiling the expressions takes.
    import re

    for line in text.splitlines():
        matches = re.findall(_WORTH_A_LOOK, line)
        if any(not re.fullmatch(_HARMLESS, match) for match in matches):
            yield from _detected(line)


def _detected(line: str) -> Iterable[str]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    plugins: Mapping[str, Any] = get_mapping_from_secret_type_to_class()
    for kind, plugin in plugins.items():
        if kind not in _GUESSES and any(plugin().analyze_string(line)):
            yield kind
