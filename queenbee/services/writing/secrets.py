"""Refuses text that looks like a credential: once committed, it stays in git.

The rules for known services are in `credentials`, which is loaded only for text that could hold
one; `_ASSIGNED` finds assignments to names like `password`. The time is linear in the length of
the text: `docs/security.md` says how long.
"""

from __future__ import annotations

import json
import re
from itertools import islice

from queenbee.core.kinds import KINDS
from queenbee.errors import InvalidInput

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

OVERRIDE = "QUEEN_ALLOW_SECRET"
"""When this environment variable is 1, every text is accepted."""

_ASSIGNMENT = "Secret Keyword"
_KEYWORDS = ("pass", "pw", "secret", "token", "key", "auth", "credential", "contrase")
_ASSIGNS = (":", "=", '"', "'")
_QUOTES = ('"', "'", "`")
_SHORTEST = 16
"""The detectors only see a line that has a word as long as a credential with both letters and
digits, assigns something to one of these keywords, or holds one of these marks. On other lines
no detector finds anything (a test).
"""
_MARKS = ("PRIVATE KEY", "://", "hf_")
_PREFIXES = "|".join(kind.prefix for kind in KINDS.values() if kind.prefix)
_HARMLESS = re.compile(
    rf"[0-9a-f]{{7,64}}|(?:(?:{_PREFIXES})-)?[0-7][0-9A-HJKMNP-TV-Z]{{25}}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]{8,18}Z"
)
"""Commit hashes, our own ids, UUIDs and instants are common in messages and rows."""
_PATH = re.compile(r"[\w:./*?{}\[\],!@+~\\-]+")
_EXTENSION = re.compile(r"\.[a-z]{1,5}(?::\d+)*$")
"""So are file names and patterns, if no part of one could be a credential."""
_CREDENTIAL = re.compile(
    r"A3T|A[BKS]IA|ACCA|AIza|hf_|GOCSPX|do[opr]_v1|dckr|gh[a-z]_|github_pat|gl[a-z]+-|xox|[sr]k[_-]|SG\.|npm_|pypi-|eyJ|sq0|EAAA"
    r"|-us\d|A[KP]C?[\dA-F]{6}|A[CS][\da-z]{32}"
)
"""The beginnings of known kinds of credentials."""
_PART = re.compile(r"[A-Za-z0-9]+")
_WINDOW = 2_000
"""Longer lines are checked in pieces, which overlap by half: no detector needs more context, and
some of their expressions take quadratic time.
"""
_SPACES = re.compile(r"\s{3,}")
"""Some expressions take a power of the length of these, and none needs more than two."""

_MOST_PIECES = 200
"""A megabyte of key-like words would take seconds; this keeps it to half a second."""

_CREDENTIAL_FILE = (
    r"(?:^|/)(?:\.env(?:\.(?!example$|sample$|template$)[\w.-]+)?|\.netrc|\.pgpass|\.pypirc"
    r"|\.git-credentials|\.aws/credentials|\.docker/config\.json|\.kube/config|id_[a-z0-9]+"
    r"|terraform\.tfstate|[^/]+\.(?:p12|pfx|key))$"
)
"""Compiled where it is first asked for: most commands never do."""

_NO_TEXT = ("_at", "session", "worktree")
"""The endings of fields that nobody writes as text: instants and the names of an agent's session.
"""

# In linear time, in contrast to detect-secrets' own: a name is taken whole and once, however many
# keywords are in it, and a value ends at the next quotation mark.
_NAME = (
    r"(?<!\w)(?=\w*?(?:(?:api|auth|service|account|db|database|priv|private|client)_?key"
    r"|(?:db|database|key)_?pass|password|passwd|pwd|secret|contrase[ñn]a))\w++"
)
_VALUE = r"""(?:(?P<q{0}>["'])(?=\w)[^\v'"]*+(?<![,`])(?P=q{0})|`(?=\w)[^\v'"`]*+(?<!,)`)"""
_ASSIGNED = re.compile(
    "|".join(
        (
            rf"""{_NAME}[\]'"]{{0,2}}(?::\s*|\s*(?:={{1,3}}|!==?|=>)\s*){_VALUE.format(1)}""",
            rf"{_NAME}\S{{0,50}}?\s*{_VALUE.format(2)};",
            rf"{_VALUE.format(3)}\s*[!=]{{2,3}}\s*{_NAME}",
        )
    ),
    re.IGNORECASE,
)

_passed: dict[int, None] = {}
"""The hashes of texts that passed lately, such as those of a thousand messages sent at once. What
was looked at before a transaction is not looked at again under its lock.
"""
_MOST_PASSED = 4_096


class LooksLikeSecret(InvalidInput):
    """A text that seems to hold a credential; `kinds` names the detectors that matched."""

    code = "secret"
    field: str = ""
    kinds: Sequence[str] = ()


def refuse_secrets(fields: Mapping[str, object]) -> None:
    """Raises `LooksLikeSecret` if a text in the record, at any depth, looks like a credential.

    Call it before a lock is taken; the transaction, which asks again, then finds the answer.
    """
    for name, text in _texts(fields):
        if kinds := sorted(set(_found(text))):
            raise LooksLikeSecret(
                f"the {name} seems to hold a secret ({', '.join(kinds)}); nothing was recorded",
                hint=f"remove it, or if it is not a secret: {OVERRIDE}=1 queen …",
                field=name,
                kinds=kinds,
            )
        if len(_passed) >= _MOST_PASSED:
            _passed.pop(next(iter(_passed)), None)
        _passed[hash(text)] = None


def is_like_secret(text: str) -> bool:
    """Returns whether a short text, such as an id, looks like a credential."""
    return (len(text) >= _SHORTEST or any(map(text.__contains__, _ASSIGNS))) and any(_found(text))


def refuse_secrets_in_row(row: Mapping[str, object]) -> None:
    """Raises `LooksLikeSecret` as `refuse_secrets` does for a row that may be somebody's own: also
    for the names of its fields, and for what stands under a name like `password`.
    """
    refuse_secrets(row)
    hidden = " ".join(_hidden(row))
    lowered = hidden.lower()
    if _worth_a_look(hidden) or any(word in lowered for word in _KEYWORDS):
        refuse_secrets({"row": json.dumps(row, ensure_ascii=False)})


def redacted(text: str) -> str:
    """Returns a text with other words in place of each line that looks like a credential."""
    kept = []
    for each in text.split("\n"):
        try:
            refuse_secrets({"line": each})
        except LooksLikeSecret:
            each = "(left out: it looks like a secret)"
        kept.append(each)
    return "\n".join(kept)


def has_secret_name(path: str) -> bool:
    """Returns whether files of this name have secrets, such as `.env`."""
    return re.search(_CREDENTIAL_FILE, path, re.IGNORECASE) is not None


def credentials_in(text: str) -> list[str]:
    """Returns the kinds of credentials that a text holds by their form, such as the keys of a known
    service; not what code only assigns to a name like `password`.

    Lines are looked at many at a time; only those of a window that holds something, one by one.
    """
    from queenbee.services.writing.credentials import kinds_in  # noqa: PLC0415 - start-up

    found: set[str] = set()
    for lines in _windows(text):
        if kinds_in("\n".join(lines)):
            found.update(kind for line in lines for kind in _found(line))
    return sorted(found - {_ASSIGNMENT})


def _texts(fields: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    """Returns every text in a record that a person or agent wrote, with the name of its field, but
    not those that passed lately.
    """
    found: list[tuple[str, str]] = []
    waiting: list[tuple[str, object]] = [("", fields)]
    for name, value in waiting:  # It grows meanwhile.
        if isinstance(value, str):
            if hash(value) not in _passed:
                found.append((name, value))
        elif isinstance(value, (list, tuple)):
            waiting += [(name, each) for each in value]
        elif value and hasattr(value, "items"):
            waiting += [
                (str(key), each) for key, each in value.items() if not str(key).endswith(_NO_TEXT)
            ]
    return found


def _hidden(row: Mapping[str, object]) -> Iterator[str]:
    """Yields what `_texts` leaves out: the names of fields, and the values that nobody writes."""
    waiting: list[object] = [row]
    for value in waiting:  # It grows meanwhile.
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            for name, each in value.items():
                is_hidden = name.endswith(_NO_TEXT) and isinstance(each, str)
                yield from (name, each) if is_hidden else (name,)
                waiting.append(each)


def _found(text: str) -> Iterable[str]:
    # Most texts have no line that is worth a look, which shows in all lines together: they hold the
    # same words. The pieces of a longer text may cut a word.
    if len(text) <= _WINDOW and not _worth_a_look(text):
        return
    for line in text.splitlines():
        line = _SPACES.sub("  ", line)
        # A value is between two marks of one kind, and `it's` has one.
        quoted = any(line.count(mark) > 1 for mark in _QUOTES)
        if quoted and _assigns(line) and _ASSIGNED.search(line):
            yield _ASSIGNMENT
    for piece in islice(filter(_worth_a_look, _pieces(text)), _MOST_PIECES):
        from queenbee.services.writing.credentials import kinds_in  # noqa: PLC0415 - start-up

        yield from kinds_in(piece)


def _windows(text: str) -> Iterable[list[str]]:
    """Yields the lines of a text, and the pieces of long ones, as many at a time as a window has
    room for.
    """
    window: list[str] = []
    left = _WINDOW
    for piece in _pieces(text):
        if len(piece) > left and window:
            yield window
            window, left = [], _WINDOW
        window.append(piece)
        left -= len(piece) + 1
    yield window


def _pieces(text: str) -> Iterable[str]:
    for line in text.splitlines():
        line = _SPACES.sub("  ", line)
        for begin in range(0, max(1, len(line) - _WINDOW // 2), _WINDOW // 2):
            yield line[begin : begin + _WINDOW]


def _worth_a_look(line: str) -> bool:
    if any(mark in line for mark in _MARKS) or _assigns(line):
        return True
    return any(_mixed(word) for word in line.split() if len(word) >= _SHORTEST)


def _assigns(line: str) -> bool:
    if not any(sign in line for sign in _ASSIGNS):
        return False
    lowered = line.lower()
    return any(word in lowered for word in _KEYWORDS)


def _mixed(word: str) -> bool:
    """Returns whether a word has both letters and digits, and is nothing that is common."""
    if word.isalpha() or not any(map(str.isdigit, word)) or not any(map(str.isalpha, word)):
        return False
    if len(word) > _WINDOW:
        return True
    word = word.strip("()[]{},;:.'\"`")
    if _HARMLESS.fullmatch(word):
        return False
    named = _PATH.fullmatch(word) and ("/" in word or _EXTENSION.search(word))
    if not named or _CREDENTIAL.search(word):
        return True
    parts = (part for part in _PART.findall(word) if len(part) >= _SHORTEST)
    return any(
        not (part.isalpha() or part.isdigit() or _HARMLESS.fullmatch(part)) for part in parts
    )
