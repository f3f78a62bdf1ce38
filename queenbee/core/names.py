"""Names of droids, issues and commits: which are well formed, and what a mistyped one meant."""

from __future__ import annotations

from queenbee.core.text import visible
from queenbee.errors import InvalidInput

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PERSON = "human"
"""Who acts where nobody has a name and none is needed; people get mail under it."""
QUEEN = "queen"
"""Who acts where nobody has a name and it is no person."""
ALWAYS_KNOWN = frozenset({PERSON, QUEEN})
EVERYONE = "@all"
NOBODYS = frozenset({"you", "me", "i", "all", "everyone", "everybody", "nobody"})
"""Words that no droid can have as its name, however they are written."""
MAX_LENGTH = 64
MAX_ISSUE_ID_LENGTH = 128
_ID_CHARS = 8
"""What a name made for a session has of the session's id."""

_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_REST = _FIRST | frozenset("._-")
_HEX = frozenset("0123456789abcdef")
_MARKS = (
    "CLAUDECODE",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "COPILOT_AGENT_SESSION_ID",
    "COPILOT_CLI",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
    "QUEEN_TEAM_LOG",
    "QWEN_CODE",
)
"""What clients put into the environment of the commands that their agents run, and `queen start`
into that of its agents.
"""


def several(names: str | Sequence[str]) -> Sequence[str]:
    """Returns the names; a single string counts as one name, not as its letters."""
    return [names] if isinstance(names, str) else names


def is_name(text: str) -> bool:
    """Returns whether this is `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`."""
    return 0 < len(text) <= MAX_LENGTH and text[0] in _FIRST and _REST.issuperset(text)


def checked_agent(name: str) -> str:
    """Returns the name unchanged. Raises `InvalidInput` for one under which people act: an agent
    could end what others do, and read their mail.
    """
    if name in ALWAYS_KNOWN:
        raise InvalidInput(
            f"no agent can be named {name}: people act under that name",
            hint="choose another, such as ui",
        )
    return name


def checked_name(text: str) -> str:
    """Returns the name unchanged: QueenBee never renames a caller. Raises `InvalidInput`."""
    if text.lower() in NOBODYS:
        raise InvalidInput(
            f"{text!r} cannot be the name of a droid: it means another one to each who reads it",
            hint="choose a name that only one of you has, such as ada; to reach everybody, write "
            f"to {EVERYONE}",
        )
    if not is_name(text):
        raise InvalidInput(
            f"{text!r} is not a droid name",
            hint="a name is 1 to 64 letters, digits, '.', '_' or '-', and begins with a letter "
            "or a digit",
        )
    return text


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that is most like this one, or None."""
    from difflib import get_close_matches  # noqa: PLC0415 - start-up

    lowered = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def session_name(agent: str, session: str | None) -> str | None:
    """Returns a name made for a session, such as `claude-1b4e28ba`, or None without an id."""
    part = part_of(session)
    if not part:
        return None
    prefix = agent if is_name(agent) and len(agent) < MAX_LENGTH - _ID_CHARS else "agent"
    return f"{prefix}-{part}"


def part_of(session: str | None) -> str:
    """Returns the part of an id that tells it from others, or "" if there is none.

    It is the start of a random UUID, as agents show it, or the end of any other id: ids that start
    with the time are alike if the sessions started together.
    """
    letters = "".join(char for char in session or "" if char.isascii() and char.isalnum())
    random = session is not None and len(letters) == 32 and session[14:15] == "4"
    return letters[:_ID_CHARS] if random else letters[-_ID_CHARS:]


def joined(name: str, separator: str, part: str) -> str:
    """Returns a name with a part behind it, which stays whole if both are too long."""
    return f"{name[: MAX_LENGTH - len(separator) - len(part)]}{separator}{part}"


def checked_new_id(text: str, noun: str = "issue") -> str:
    """Returns an id to be made, unchanged. Raises `InvalidInput` for one that a program could take
    for something else; where such an id arrives from elsewhere, it is shown and left alone.
    """
    if fault := id_fault(text):
        raise InvalidInput(
            f"{text[:80]!r} cannot be the id of a new {noun}: it {fault}",
            hint="begin it with a letter or a digit, such as qb-42",
        )
    return text


def id_fault(text: str) -> str:
    """Returns what an id is to programs that get it as an argument or in the name of a file, for a
    sentence; empty if it is only an id.
    """
    if text.startswith("-"):
        return "begins with a dash"
    is_path = text.startswith((".", "/")) or "/." in text
    is_ref = text.startswith("refs/") or text in ("HEAD", "@")
    return "is a path or a reference of git" if is_path or is_ref else ""


def is_commit_id(said: object) -> bool:
    """Returns whether this is the whole id of a commit: git takes any other word for a name."""
    return isinstance(said, str) and len(said) in (40, 64) and _HEX.issuperset(said)


def is_issue_id(text: str) -> bool:
    """Returns whether this is one visible word, and not too long."""
    return 0 < len(text) <= MAX_ISSUE_ID_LENGTH and visible(text) and " " not in text


def checked_issue_id(issue_id: str) -> str:
    """Returns the id unchanged. Raises `InvalidInput` if no tracker would print it."""
    if not is_issue_id(issue_id):
        hint = "queen issues; an id is one word, such as qb-42"
        raise InvalidInput(f"{issue_id!r} is not an issue id", hint=hint)
    return issue_id


def is_of_agent(env: Mapping[str, str]) -> bool:
    """Returns whether an environment is that of an agent, and not of a person's shell."""
    return any(env.get(each) for each in _MARKS)
