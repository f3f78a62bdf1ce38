"""Which files git ignores, or the setting `ignore` of `[hook]` names: their edits are not leased.

Nearly always the answer is no, so names are compared first, and pathspec is loaded only where a
line may match. No git process is started. ADR 0023.
"""

from __future__ import annotations

import os
import re
import warnings
from typing import TYPE_CHECKING

from queenbee.core.glob.chars import fold
from queenbee.errors import QueenError
from queenbee.store import safe_open
from queenbee.store.git_trees import config_files, config_value, folds_case, name_in_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from queenbee.store.git_trees import GitTree
    from queenbee.store.layout import Layout

    Rules = tuple[str, Sequence[str]]
    """The folder that an ignore file is for, from the root with a final `/`, and its lines."""

_MOST_BYTES = 1 << 20
_MOST_STARS = 3
"""A regular expression tries every way to share a name among its stars: a clone could name a
pattern that takes for ever. Lines with more of them count for nothing."""


def ignored(layout: Layout, paths: Iterable[str], env: Mapping[str, str]) -> set[str]:
    """Returns those of these paths, from the root, that git ignores and does not track, and those
    that the setting names, tracked or not.

    Where an ignore file cannot be read, it counts as empty: too many leases do less harm than too
    few.
    """
    fold_case = folds_case(layout.common_dir)
    set_here: list[Rules] = [("", layout.settings.hook_ignore)]
    found = set()
    for path in paths:
        if _is_ignored(path, set_here, fold_case) or is_ignored_by_git(layout, path, env):
            found.add(path)
    return found


def is_ignored_by_git(layout: Layout | GitTree, path: str, env: Mapping[str, str]) -> bool:
    """Returns whether git ignores a path, from the root, and does not track it."""
    return (
        layout.git_dir is not None
        and _is_ignored(path, list(_files(layout, path, env)), folds_case(layout.common_dir))
        and name_in_index(layout.git_dir, f"{path}\0") is None
    )


def _files(layout: Layout | GitTree, path: str, env: Mapping[str, str]) -> Iterator[Rules]:
    """Yields the rules that git would ask about a path, the strongest first."""
    folders = path.split("/")[:-1]
    for count in range(len(folders), -1, -1):
        base = "".join(f"{name}/" for name in folders[:count])
        yield base, _lines(os.path.join(layout.tree, base, ".gitignore"))
    if layout.common_dir is not None:
        yield "", _lines(os.path.join(layout.common_dir, "info", "exclude"))
        user = _of_the_user(layout.common_dir, env)
        # It is the user's own file, and may be a link.
        yield "", _lines(os.path.realpath(os.path.join(layout.tree, user))) if user else ()


def _of_the_user(common_dir: str, env: Mapping[str, str]) -> str | None:
    """Returns the file that `core.excludesFile` names, or git's default for it."""
    home = env.get("HOME")
    own = env.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else None)
    files = config_files(common_dir, env)
    named = (config_value(path, "core", "excludesfile") for path in files)
    said = next((each for each in named if each is not None), None)
    if said is None:
        return os.path.join(own, "git", "ignore") if own else None
    if said.startswith("~/"):
        return os.path.join(home, said[2:]) if home else None
    return said or None


def _lines(path: str) -> Sequence[str]:
    try:
        data = safe_open.read(path, _MOST_BYTES)
    except (OSError, QueenError):
        return ()
    text = data.decode(errors="surrogateescape").removeprefix("\ufeff")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _is_ignored(path: str, rules: Sequence[Rules], fold_case: bool) -> bool:
    if fold_case:
        path, rules = fold(path), [(fold(base), list(map(fold, lines))) for base, lines in rules]
    names = path.split("/")
    if not any(_may_match(line, names) for _, lines in rules for line in lines):
        return False
    # A file in an ignored folder is ignored, whatever later rules say about it.
    for count in range(1, len(names) + 1):
        each = "/".join(names[:count]) + ("/" if count < len(names) else "")
        for base, lines in rules:
            inside = each.removeprefix(base)
            if not each.startswith(base) or not inside:
                continue
            last = next((line for line in reversed(lines) if _matches(line, inside)), None)
            if last is not None:
                if not last.startswith("!"):
                    return True
                break
    return False


def _matches(line: str, path: str) -> bool:
    """Returns whether a line names this very file or folder (with a final `/`).

    pathspec also matches what is inside of what a line names. Git does not: it has asked about the
    folders above already, and a line that takes one of them back says nothing about their files.
    """
    text = line.removeprefix("!")
    if text != line and text[:1] in ("#", "!"):
        text = f"\\{text}"
    names = path.rstrip("/").split("/")
    if not _may_match(text, names[-1:] if text.count("/") == 0 else names):
        return False
    body = text.rstrip(" ")
    plain = body.strip("/")
    if body.endswith("/") and not path.endswith("/"):
        return False
    end = "/" if path.endswith("/") else ""
    if "/" not in body.rstrip("/") or (plain[:3] == "**/" and "/" not in plain[3:]):
        return _named(body, names[-1] + end)
    if "**" not in plain:
        return len(plain.split("/")) == len(names) and _named(body, path)
    last = plain.rpartition("/")[2]
    return _named(body, path) and (last == "**" or _named(last, names[-1] + end))


def _named(pattern: str, path: str) -> bool:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - start-up

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of what is odd in somebody else's pattern.
        try:
            return GitIgnoreSpec.from_lines([pattern]).check_file(path).include is not None
        except ValueError:  # Git takes no notice of a line that is no pattern.
            return False


def has_many_stars(pattern: str) -> bool:
    """Returns whether a pattern may take for ever to compare."""
    return sum(a != "*" == b for a, b in zip(f" {pattern}", pattern, strict=False)) > _MOST_STARS


def _may_match(line: str, names: Sequence[str]) -> bool:
    """Returns False if a line cannot make git ignore a path with these names in it.

    Of a pattern, each part that is not `**` must match one of the names: the last part is asked.
    """
    text = line.rstrip(" ")
    if not text or text[0] in "#!":
        return False
    if has_many_stars(text):
        return False
    if "\\" in text:
        return True
    last = next((part for part in reversed(text.split("/")) if part not in ("", "**")), "*")
    wild = [at for char in "*?[" if (at := last.find(char)) >= 0]
    if not wild:
        return last in names
    head = last[: min(wild)]
    if "[" not in last:
        tail = last[max(last.rfind("*"), last.rfind("?")) + 1 :]
        return any(
            name.startswith(head) and name.endswith(tail) and len(name) >= len(head) + len(tail)
            for name in names
        )
    if not any(name.startswith(head) for name in names):
        return False
    plain = re.sub(r"\[[^]\[]+\]", "?", last)
    if "[" in plain or "]" in plain:
        return True
    wanted = re.compile(re.escape(plain).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    return any(wanted.fullmatch(name) for name in names)
