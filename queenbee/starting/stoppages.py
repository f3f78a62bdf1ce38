"""What keeps a client from working at all: a limit of its account, or no account. Such an end is
not the fault of an issue, and costs it no attempt.

Claude Code says so in fields; the others only in a line of their own, at the end of what they
print. The lines are those of `tests/starting/shapes/`, recorded from the clients.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from queenbee.core.text import one_line, quotation, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    Code = Literal["not_logged_in", "credit", "usage_limit", "rate_limited", "overloaded"]

USELESS = "the command does not work"
_LAST_LINES = 60
_MOST_TEXT = 160
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_OF_CLAUDE: dict[str, Code] = {
    "authentication_failed": "not_logged_in",
    "oauth_org_not_allowed": "not_logged_in",
    "billing_error": "credit",
    "rate_limit": "rate_limited",
    "overloaded": "overloaded",
    "server_error": "overloaded",
}
"""What Claude Code names an error of a turn, in `SDKAssistantMessageError` of its SDK."""
_GEMINI = re.compile(r"Error when talking to \w+ API .*?(\w+Error: .+)")
_OPENCODE = re.compile(r"Error: (.+)")
_OF_LINES = {
    "codex": re.compile(r"ERROR: (.+)"),
    "opencode": _OPENCODE,
    "kilo": _OPENCODE,
    "gemini": _GEMINI,
    "qwen": _GEMINI,
    "copilot": re.compile(
        r"(?:Failed to get response from the AI model; .*Last error: )?"
        r"(Authentication failed with provider .+|[45]\d\d .+)"
    ),
}
"""The line with which a client says why it ends."""
_CAUSES: tuple[tuple[Code, re.Pattern[str]], ...] = (
    ("usage_limit", re.compile(r"usage limit|daily quota", re.IGNORECASE)),
    (
        "credit",
        re.compile(r"credit balance|quota exceeded|exceeded your current quota", re.IGNORECASE),
    ),
    (
        "not_logged_in",
        re.compile(r"\b401\b|authentication failed|not logged in|api.key", re.IGNORECASE),
    ),
    ("overloaded", re.compile(r"\b5(?:03|29)\b|overloaded|at capacity", re.IGNORECASE)),
    ("rate_limited", re.compile(r"\b429\b|rate.limit|QuotaError", re.IGNORECASE)),
)
_IN = re.compile(r"try again in (\d+(?:\.\d+)?)s\b")
_AT = re.compile(r"try again at (?:(\w{3} \d+)\w\w, (\d{4}) )?(\d{1,2}:\d\d [AP]M)")
_FIRST_WAIT_S, _MOST_WAIT_S = 60.0, 1800.0
_PATIENCE_S = 6 * 3600.0
"""So long a team waits for a client: the limits of a few hours end meanwhile, those of a week do
not.
"""


@dataclass(frozen=True, slots=True)
class Stoppage:
    """What keeps a client from working."""

    code: Code
    said: str
    """The client's own words, on one line."""
    until_s: float = 0.0
    """When it ends, in seconds since 1970, if the client says so; else 0."""

    @property
    def can_end(self) -> bool:
        """Whether it ends without a person."""
        return self.code not in ("not_logged_in", "credit")


def stoppage_in(client: str, output: bytes, now_s: float) -> Stoppage | None:
    """Returns what kept a client from working, as the end of what it printed says, or None; to be
    asked if it has not ended with success.
    """
    lines = _COLORS.sub("", output.decode(errors="replace")).splitlines()[-_LAST_LINES:]
    if client == "claude":
        return _of_events([*_events(lines)], now_s)
    pattern = _OF_LINES.get(client)
    found = (pattern.match(each.strip()) for each in reversed(lines)) if pattern else ()
    said = next((each[1] for each in found if each is not None), "")
    code = next((code for code, cause in _CAUSES if cause.search(said)), None)
    return Stoppage(code, _short(said), _until(said, now_s)) if code is not None else None


def _events(lines: list[str]) -> Iterator[dict[str, Any]]:
    for each in lines:
        try:
            event = json.loads(each)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def _of_events(events: list[dict[str, Any]], now_s: float) -> Stoppage | None:
    """Returns what stopped the last turn of Claude Code."""
    if not events or events[-1].get("is_error") is not True:
        return None
    errors = (str(each.get("error")) for each in reversed(events) if each["type"] == "assistant")
    code = _OF_CLAUDE.get(next(errors, ""))
    limits = [each["rate_limit_info"] for each in events if "rate_limit_info" in each]
    said = _short(str(events[-1].get("result") or ""))
    if code == "rate_limited" and limits and limits[-1].get("status") == "rejected":
        until_s = limits[-1].get("resetsAt")
        is_known = isinstance(until_s, int | float) and until_s > now_s
        return Stoppage("usage_limit", said, float(until_s) if is_known else 0.0)
    return Stoppage(code, said) if code is not None else None


def _short(text: str) -> str:
    return shortened(one_line(text), _MOST_TEXT)


def _until(said: str, now_s: float) -> float:
    """Returns the instant that a client names in its local time, or 0."""
    if found := _IN.search(said):
        return now_s + float(found[1])
    found = _AT.search(said)
    if found is None:
        return 0.0
    day = f"{found[1]} {found[2]}" if found[1] else time.strftime("%b %d %Y", time.localtime(now_s))
    try:
        until_s = time.mktime(time.strptime(f"{day} {found[3]}", "%b %d %Y %I:%M %p"))
    except (ValueError, OverflowError):
        return 0.0
    return until_s if until_s > now_s or found[1] else until_s + 24 * 3600.0


class Pause:
    """How long the agents of one client wait, since none of them would fare better."""

    def __init__(self, client: str, *, is_patient: bool) -> None:
        """`is_patient`: whether they wait however long it takes."""
        self._client = client
        self._is_patient = is_patient
        self._since_s = self._until_s = self._wait_s = 0.0
        self.is_final: bool = False
        """Whether nobody needs to wait: a person has to see to it."""
        self.why: str = ""
        """What they wait for, for people; empty if they do not."""
        self._failed_on = ""
        """The issue on which its last process failed at once."""

    def begin(self, stoppage: Stoppage, now_s: float) -> bool:
        """Has all wait, or end; returns whether that is news."""
        if now_s < self._until_s or self.is_final:  # Others have met it, too.
            return False
        is_news = not self._wait_s
        self._since_s = self._since_s or now_s
        self._wait_s = min(2 * self._wait_s or _FIRST_WAIT_S, _MOST_WAIT_S)
        self._until_s = stoppage.until_s or now_s + self._wait_s
        waits_s = self._until_s - self._since_s
        self.is_final = not stoppage.can_end or (waits_s > _PATIENCE_S and not self._is_patient)
        self.why = f"{self._client} cannot work: {quotation(stoppage.said)}"
        if stoppage.until_s and not self.is_final:
            self.why += time.strftime("; it goes on at %H:%M", time.localtime(self._until_s))
        return is_news or self.is_final

    def fail_at_once(self, issue_id: str, why: str) -> bool:
        """Has all end who run a program that fails at once, on two issues one after the other;
        returns whether this is such an end. Without an issue, it has worked.
        """
        if self._failed_on and issue_id and issue_id != self._failed_on:
            self.is_final, self.why = True, f"{USELESS}: {why}"
        self._failed_on = issue_id
        return self.is_final and bool(issue_id)

    def end(self) -> None:
        """Notes that the client has worked again."""
        self._since_s = self._until_s = self._wait_s = 0.0
        self.why = ""

    def holds(self, now_s: float) -> bool:
        """Returns whether no agent is to begin now."""
        return now_s < self._until_s
