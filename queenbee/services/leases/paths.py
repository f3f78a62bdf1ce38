"""Turns what a user types into a pattern from the root of the repository.

Core decides what a pattern means. This module looks at the tree: an existing name is taken
literally, and the name of a directory means everything below it. `docs/format.md`, "Patterns".
"""

from __future__ import annotations

import os

from queenbee.core.glob import pattern as glob
from queenbee.errors import BadPattern, InvalidInput
from queenbee.store import safe_open
from queenbee.store.git_trees import composes_names, git_tree

_SPECIAL = frozenset("*?[{")


class Resolved:
    """A pattern from the root, and a note for the user about how it was read."""

    __slots__ = ("note", "pattern")

    def __init__(self, pattern: str, note: str | None = None) -> None:
        self.pattern: str = pattern
        self.note: str | None = note


def pattern_of(text: str, *, tree: str, cwd: str) -> Resolved:
    """Returns the pattern that `text` means, typed in `cwd`, for the tree at `tree`.

    Raises `BadPattern`, also for a path outside the tree.
    """
    found = _pattern_of(text, tree=tree, cwd=cwd)
    return Resolved(_as_git_stores(found.pattern, tree), found.note)


def _pattern_of(text: str, *, tree: str, cwd: str) -> Resolved:
    if not text or text.startswith("!"):
        glob.normalise(text)  # Refuses both, with the reason.
    typed = os.path.join(cwd, text)
    if "\0" not in text and os.path.lexists(typed):
        return _existing(text, typed, tree)
    known, rest = _known_folders(text, cwd)
    text = "/".join([glob.escape(known), rest]) if known else text
    if os.path.isabs(text):
        relative = _below(text, tree, text)
    else:
        prefix = _from_root(cwd, tree, or_root=True)
        relative = f"{glob.escape(prefix)}/{text}" if prefix else text
    pattern = glob.normalise(_resolved(relative, tree, text))
    if _SPECIAL.isdisjoint(rest) and "\\" not in rest and not rest.endswith("/"):
        return Resolved(pattern, f"{pattern} does not exist yet; it is treated as a file")
    return Resolved(pattern)


def _existing(text: str, typed: str, tree: str) -> Resolved:
    is_dir = os.path.isdir(typed)
    if is_dir and os.path.islink(typed):
        path = _from_root(typed, tree, typed=text)
        note = f"{path} is a symbolic link; this reserves the link, not its target. For the target"
        return Resolved(glob.normalise(glob.escape(path)), f"{note}: {path}/")
    if is_dir:
        path = _from_root(safe_open.real_path(typed), tree, typed=text)
        return Resolved(glob.normalise(glob.escape(path) + "/**" if path else "**"))
    return Resolved(glob.normalise(glob.escape(_from_root(typed, tree, typed=text))))


def _known_folders(text: str, cwd: str) -> tuple[str, str]:
    """Returns the leading folders that exist although their names look like patterns, and the
    rest: `app/[id]` and `*.tsx` for `app/[id]/*.tsx`. Without any, returns `""` and the text.
    """
    parts = text.split("/")
    for count in range(len(parts) - 1, 0, -1):
        head = "/".join(parts[:count])
        if not _SPECIAL.isdisjoint(head) and "\0" not in head:
            known = os.path.isdir(os.path.join(cwd, head))
            if known and ".." not in parts[:count] and not os.path.isabs(head):
                return head.removeprefix("./"), "/".join(parts[count:])
    return "", text


def path_of(text: str, *, tree: str, cwd: str) -> str:
    """Returns a literal path from the root, whether or not it exists.

    Raises `InvalidInput` if it is empty or outside the tree.
    """
    if not text or "\0" in text:
        raise InvalidInput(f"{text!r} is not a path", hint="name a file, such as src/app.py")
    path = _from_root(os.path.join(cwd, text), tree, typed=text)
    if not path:
        raise InvalidInput(
            f"{text!r} is the root of the repository, not a file in it",
            hint="name a file in it, or see: queen reserve list",
        )
    return _as_git_stores(path, tree)


def _as_git_stores(path: str, tree: str) -> str:
    """Returns a path or pattern as git stores it where the file system takes the composed and the
    decomposed form of a character for one: composed.
    """
    if path.isascii():
        return path
    from unicodedata import normalize  # noqa: PLC0415 - start-up

    composed = normalize("NFC", path)
    if composed == path:
        return path
    home = git_tree(tree)
    return composed if home is not None and composes_names(home.common_dir) else path


def _from_root(path: str, tree: str, *, or_root: bool = False, typed: str | None = None) -> str:
    """Returns the path relative to the tree; links above its last part are resolved."""
    if ".." in path.split("/"):
        # As the kernel does: `link/..` is beside the link's target.
        folder, name = os.path.split(path.rstrip("/"))
        path = os.path.join(safe_open.real_path(folder), name)
        path = safe_open.real_path(path) if name in ("", ".", "..") else path
    folder, name = os.path.split(os.path.normpath(path))
    if name in ("", ".."):
        folder, name = path, ""
    real = os.path.normpath(os.path.join(safe_open.real_path(folder), name))
    tree = safe_open.real_path(tree)
    if real == tree or safe_open.real_path(path) == tree:
        return ""
    if not real.startswith(tree.rstrip("/") + "/"):
        if or_root:
            return ""
        raise outside(path if typed is None else typed, tree)
    return real[len(tree.rstrip("/")) + 1 :]


def _below(text: str, tree: str, typed: str) -> str:
    for top in dict.fromkeys((tree, safe_open.real_path(tree))):
        if text == top or text.startswith(top.rstrip("/") + "/"):
            return text[len(top.rstrip("/")) + 1 :] or "**"
    raise outside(typed, tree)


def _resolved(pattern: str, tree: str, typed: str) -> str:
    """Returns the pattern with links among its leading literal folders resolved."""
    parts = pattern.split("/")
    literal = 0
    while (
        literal < len(parts) - 1
        and _SPECIAL.isdisjoint(parts[literal])
        and ("\\" not in parts[literal] and parts[literal] not in ("", ".", ".."))
    ):
        literal += 1
    named = os.path.join(safe_open.real_path(tree), *parts[:literal])
    real = safe_open.real_path(named)
    if real == named:
        return pattern
    path = _from_root(real, tree, typed=typed)
    return "/".join([*([glob.escape(path)] if path else []), *parts[literal:]])


def outside(typed: str, tree: str) -> BadPattern:
    """Returns the error for a path that is not in the repository."""
    return BadPattern(typed, 1, f"it is outside the repository {tree}", hint="queen hive where")
