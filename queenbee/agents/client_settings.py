"""What a repository's own settings have a client run: hooks, servers, plugins, helpers, variables.

Clients run much of it unasked where nobody sits before them, so that `queen start` asks for it, by
content. What `queen setup` writes is left out, as are texts that only the model reads. ADR 0041.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.agents.launch import HOOK
from queenbee.agents.setup import AGENTS, place_of
from queenbee.documents.json_text import loads
from queenbee.errors import QueenError
from queenbee.git.landing.judged.client_files import (
    MOST_FILES,
    client_files,
    ignored_of,
    is_of_client,
    is_of_git,
)
from queenbee.services.writing.seeing import note_typed
from queenbee.store import safe_open
from queenbee.store.git_trees import git_tree
from queenbee.store.layout import discover
from queenbee.store.trust import CLIENT, Proposal, Trust

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queenbee.agents.files.file_edits import Part
    from queenbee.store.layout import Layout

_MOST_BYTES = 2**16
"""A longer file is shown by its hash: nobody would read it."""
_KEY = re.compile(
    r"(name|description|model|color|version|license|tags|when_to_use|argument-hint|mode|"
    r"temperature|disallowed-?tools):",
    re.IGNORECASE,
)
"""What the head of a skill, a command or an agent may say: it runs and permits nothing."""
_RUNS = re.compile(r"![^\s!`{]*[`{]|```[^\s!`]*!")
"""A command in the text of a skill or a command: its output stands there when the model reads. What
stands in between may be arguments, which are empty then.
"""
_HEAD = re.compile(r"[\s\ufeff]*---")
_LATER_HEAD = re.compile(r"""^---\s+[\w"'-]+\s*:""", re.MULTILINE)
"""Where the first head is empty, some clients take a later one."""
_MOST_BEHIND_BYTES = 2**28
_BLANK = re.compile(r"\s*", re.ASCII)
_NOTHING = re.compile(
    r'\s*(\{\s*(("(\$schema|version)"\s*:\s*("[\w./:#-]*"|\d+)|'
    r'"enabledMcpjsonServers"\s*:\s*\[\s*"queenbee"\s*\])\s*(,\s*)?)*+\})?\s*',
    re.ASCII,
)
"""JSON without a comment: where that ends, and what is code, each client decides for itself. Claude
Code writes that it may use the server `queenbee`, which is asked for where it is defined.
"""


def unseen_settings(
    layout: Layout, tree: str, env: Mapping[str, str], clients: Sequence[str] = ("",)
) -> list[Proposal]:
    """Returns what nobody here has seen of what clients run in a working tree, one for each file:
    of these clients, or of all. A name that is no client's is a program, which may start any. What
    git ignores counts as seen if the main worktree has the same: that is the user's own.
    """
    trust = Trust(layout)
    if trust.asks_nothing:
        return []
    names = sorted({each for client in clients for each in client_files(tree, client)})
    ours = _ours(tree, env)
    unseen = trust.unseen([each for name in names if (each := _proposal(tree, name, ours))])
    own = _of_main(tree, unseen, env) if unseen else []
    note_typed(layout, own)  # They still count once the main worktree has others.
    return [each for each in unseen if each not in own]


@contextmanager
def typed_settings(tree: str, env: Mapping[str, str]) -> Iterator[None]:
    """What is written meanwhile into files of clients counts as seen, unless an agent writes it, or
    nobody had seen what was there before.
    """
    layout = discover(tree, env, must_exist=False)
    before = {each.origin for each in unseen_settings(layout, tree, env)}
    yield
    after = unseen_settings(layout, tree, env)
    note_typed(layout, [each for each in after if each.origin not in before])


def _of_main(tree: str, proposals: Sequence[Proposal], env: Mapping[str, str]) -> list[Proposal]:
    """Returns those that the main worktree has just so, where git ignores it."""
    here = git_tree(tree)
    main = here.main_tree if here is not None else None
    if main is None:
        return []
    real = {each.origin: _real_name(main, each.origin) for each in proposals}
    names = ignored_of(main, [each for each in real.values() if each])
    ours = _ours(main, env)
    return [
        each
        for each in proposals
        if real[each.origin] in names and each == _proposal(main, each.origin, ours)
    ]


def _real_name(tree: str, name: str) -> str:
    """Returns the name of a file without links to folders; empty if it is not in the tree."""
    above, base = os.path.split(os.path.join(tree, name))
    found = os.path.relpath(os.path.join(os.path.realpath(above), base), os.path.realpath(tree))
    return "" if found.startswith(os.pardir) else found


def _proposal(tree: str, name: str, ours: Sequence[Part]) -> Proposal | None:
    """Returns what a file has its client run, or None if that is nothing but what is ours."""
    path, more = os.path.join(tree, name), [f"in {name}"]
    is_link = os.path.islink(path)
    if is_link:
        more += [f"a link to {os.readlink(path)}"]
    text = ""
    try:
        data = safe_open.read(os.path.realpath(path))
        text = data.decode(errors="surrogateescape")
        if not is_link:
            text = _without_own(path, text, ours)
        if _runs_nothing(name, text):
            return None
        if len(data) > _MOST_BYTES:
            text, more = "", [*more, f"{len(data)} bytes, SHA-256 {sha256(data).hexdigest()}"]
    except FileNotFoundError:
        if not is_link:
            return None
    except (QueenError, OSError):  # A folder: what a link leads to, or packages.
        # What is behind another link was too much to look for settings there.
        more += [_behind(path)] if os.path.isdir(path) and is_of_client(name) else []
    own = text.encode(errors="surrogateescape")
    shown = own.decode(errors="backslashreplace")
    more += [f"SHA-256 {sha256(own).hexdigest()}"] if shown != text else []
    return Proposal(CLIENT, shown, (*more,), name, path)


def _behind(path: str) -> str:
    """Returns what is in a folder that git does not have, in words that change with it."""
    hashes, size_bytes = list[str](), 0
    for name, data in _contents(path):
        size_bytes += len(data)
        hashes.append(f"{name}\0{sha256(data).hexdigest()}")
        if len(hashes) > MOST_FILES or size_bytes > _MOST_BEHIND_BYTES:
            # No yes to this one counts for the next look.
            return f"a folder with too much to look at ({os.urandom(8).hex()})"
    digest = sha256("\0".join(sorted(hashes)).encode(errors="surrogateescape")).hexdigest()
    return f"{len(hashes)} files and folders that git does not have here, SHA-256 {digest}"


def _contents(path: str) -> Iterator[tuple[str, bytes]]:
    """Yields the names of what is in a folder, each with its content; of a folder, that is where it
    really is, and what is in there comes once.
    """
    top, seen = os.path.realpath(path), set[str]()
    for folder, folders, files in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        yield f"{os.path.relpath(folder, path)}/", os.fsencode(os.path.relpath(real, top))
        folders[:] = () if real in seen else sorted(folders)
        for name in () if real in seen else files:
            file, data = os.path.join(folder, name), b""
            if is_of_git(file):
                continue
            with suppress(QueenError, OSError):
                data = safe_open.read(os.path.realpath(file), _MOST_BEHIND_BYTES)
            yield os.path.relpath(file, path), data
        seen.add(real)


def _runs_nothing(name: str, text: str) -> bool:
    """Returns whether nothing in a file runs, or permits anything."""
    if os.path.basename(name) == ".gitignore":
        return True
    if name.lower().endswith((".md", ".mdc")):
        return _is_read_only(text)
    is_data = name.lower().endswith((".json", ".jsonc"))
    return bool((_NOTHING if is_data else _BLANK).fullmatch(text))


def _is_read_only(text: str) -> bool:
    """Returns whether a skill, a command or an agent is a text for the model and nothing else."""
    if _RUNS.search(text):
        return False
    # No other ends of lines count: what hides behind one is asked for.
    lines = text.replace("\r\n", "\n").lstrip("\ufeff").split("\n")
    if lines[0] != "---":  # `---js` is a head that some clients run.
        return not _HEAD.match(text)
    head = [*takewhile(lambda each: each != "---", lines[1:])]
    is_plain = all(
        len(each.splitlines()) < 2 and (_KEY.match(each) or not each.strip() or each[0] == " ")
        for each in head
    )
    is_first = bool(head) and head[0][:1] not in (" ", "")
    return is_plain and is_first and not _LATER_HEAD.search("\n".join(lines[len(head) + 2 :]))


def _without_own(path: str, text: str, ours: Sequence[Part]) -> str:
    """Returns a file without the parts that are ours, to the byte."""
    if path.lower().endswith((".json", ".jsonc")) and not _says_once(text):
        return text
    for part in ours:
        with suppress(QueenError):
            if part.path == path and part.added(text) == text:
                text = part.removed(text) or ""
    return text


def _ours(tree: str, env: Mapping[str, str]) -> list[Part]:
    """Returns what `queen setup` writes in a tree on this machine, or where `queen` is on the
    PATH.
    """
    here = place_of(tree, env, user=False)
    places = (here, replace(here, hook=HOOK, mcp=["queen", "mcp"]))
    return [each for place in places for agent in AGENTS.values() for each in agent.parts(place)]


def _says_once(text: str) -> bool:
    """Returns whether a text is JSON in which no key is there twice: clients differ in which of the
    two counts.
    """
    with suppress(ValueError, RecursionError):
        loads(text, comments=True, once=True)
        return True
    return False
