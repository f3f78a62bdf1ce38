"""The line of `queen prompt`: safe for what shows it, whatever others called their issues.

Shells and tmux run commands in their text, and no number of escapes is right everywhere: what they
would act on is shown as its full-width twin.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from queenbee.core.text import one_line, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

TARGETS = {
    "plain": "",
    "bash": "$`\\!",
    "zsh": "%$`\\!",
    "tmux": "#%$`\\",
    "claude": "",
}
"""What shows the line, each with the characters that it would act on."""
MOST_UNREAD = 99
_TO_TWIN = 0xFF01 - ord("!")
"""From a visible ASCII character to the full-width one."""
_ISSUE_CHARS = 24
_INSTEAD = "_"


@dataclass(frozen=True, slots=True)
class Glance:
    """What one line says about a droid, or about all of them for somebody without a name."""

    droid: str | None
    _: KW_ONLY
    issues: Sequence[str]
    """What it works on, oldest first."""
    unread: int
    """Messages to it; without a name, those to `human`."""
    waits: int
    """How many droids wait for what it has; without a name, how many wait at all."""
    at_work: int
    """How many droids have an issue; 0 if there is a name."""


def line_of(glance: Glance, *, target: str = "plain", ascii_only: bool = False) -> str:
    """Returns the line, such as `amber ▸ shop-3 · 2 unread · 1 waits`."""
    arrow, dot = (">", ",") if ascii_only else ("▸", " ·")
    parts = [_work(glance, target, ascii_only)]
    if glance.unread:
        many = f"{MOST_UNREAD}+" if glance.unread > MOST_UNREAD else str(glance.unread)
        parts.append(f"{many} unread")
    if glance.waits:
        parts.append(f"{glance.waits} {'waits' if glance.waits == 1 else 'wait'}")
    who = inert(glance.droid or "hive", target, ascii_only=ascii_only)
    return f"{who} {arrow} {f'{dot} '.join(parts)}"


def inert(text: str, target: str, *, ascii_only: bool = False) -> str:
    """Returns a text on one line in which a target finds nothing to act on."""
    shown = printable(one_line(text))
    return "".join(_inert(char, TARGETS[target], ascii_only) for char in shown)


def _inert(char: str, special: str, ascii_only: bool) -> str:
    if ascii_only:
        return char if char.isascii() and char not in special else _INSTEAD
    return chr(ord(char) + _TO_TWIN) if char in special else char


def _work(glance: Glance, target: str, ascii_only: bool) -> str:
    if glance.droid is None:
        return f"{glance.at_work} at work"
    if not glance.issues:
        return "no issue"
    more = f" +{len(glance.issues) - 1}" if len(glance.issues) > 1 else ""
    first = " ".join(one_line(glance.issues[0]).split())
    return inert(shortened(first, _ISSUE_CHARS), target, ascii_only=ascii_only) + more
