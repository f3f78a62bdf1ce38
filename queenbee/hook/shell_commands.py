"""Git in a shell command, before an agent runs it: some commands take away, or take along, what
others have in the same working tree and have not committed. Those are refused, as their edits are.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, one_line, some, suggested
from queenbee.git.contents.uncommitted import uncommitted
from queenbee.git.run import without_programs
from queenbee.hook import answers
from queenbee.hook.session_events import open_hive
from queenbee.store import safe_open
from queenbee.store.git_files.tree_id import branch_of, is_of_tree, read_tree_id
from queenbee.store.git_files.worktrees import are_several
from queenbee.store.layout import discover

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from queenbee.core.records import Reservation
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout

_ENDS = frozenset(";&|()\n<>")
_BEFORE = frozenset((
    "!", "{", "builtin", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup",
    "sudo", "then", "time", "timeout", "until", "while",
))  # fmt: skip
"""What may be before a command, with options and variables."""
_OPTION_VALUE = re.compile(r"-[CTUghnsu]|--(?:chdir|group|signal|unset|user)")
"""Those of their options that have a word as their value."""
_DURATION = re.compile(r"[\d.]+[smhd]?")
_COMMENT = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*"|\\.)|(?<![^\s;&|()])#[^\n]*""", re.DOTALL)
_HERE = re.compile(r"""(?<!<)<<-?[ \t]*(["']?)\\?(\w+)\1""")
_MAGIC = frozenset("*?[")
_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace")
_ALL = frozenset((".", "./", "..", "../"))
_PATH_CHARS = 4096
"""A folder has no longer name, and each `cd` would have to copy it."""
_SHOWN = 3
_NAME_CHARS = 80


def answer(event: Event, env: Mapping[str, str]) -> Answer | None:
    """Returns the refusal of a command, or None. The files that it restores become those of the
    event: an edit.
    """
    passed, restored = set[tuple[str, str]](), dict.fromkeys(event.files)
    for folder, words in _git_calls(event.command, event.cwd):
        what, files = _of_call(folder, words)
        restored |= dict.fromkeys(files)
        if not what or (what, folder) in passed:  # Asked once: a command may have thousands.
            continue
        if what == "pop":
            reason = _of_pop(discover(folder, env))
        else:
            reason = _of_tree(folder, " ".join(["git", *words[:2]]), event, env)
        if reason:
            return answers.denial(event, reason)
        passed.add((what, folder))
    event.files = [*restored]
    return None


def _git_calls(text: str, cwd: str) -> Iterator[tuple[str, list[str]]]:
    """Yields where git is called, and with which words. What a shell fills in is not known, nor
    what is behind a quote that does not end.
    """
    folder = cwd
    for words in map(_without_wrappers, _simple_commands(_without_asides(text))):
        if words[:1] == ["cd"] and len(words) == 2:
            there = os.path.join(folder, os.path.expanduser(words[1]))
            folder = there if len(there) <= _PATH_CHARS else folder
        if os.path.basename(words[0] if words else "") != "git":
            continue
        place, at = folder, 1
        while at < len(words) and words[at].startswith("-"):
            if words[at] == "-C" and len(words) > at + 1 and len(place) <= _PATH_CHARS:
                place = os.path.join(place, words[at + 1])
            at += 2 if words[at] in _WITH_VALUE else 1
        if at < len(words) and os.path.isdir(place):
            yield os.path.normpath(place), words[at:]


def _without_wrappers(words: list[str]) -> list[str]:
    """Returns a command without the variables and the programs that it is run by."""
    is_wrapped, is_value = False, False
    for number, word in enumerate(words):
        if is_value:
            is_value = False
        elif os.path.basename(word) in _BEFORE:
            is_wrapped = True
        elif is_wrapped and word.startswith("-"):
            is_value = _OPTION_VALUE.fullmatch(word) is not None
        elif "=" not in word and not (is_wrapped and _DURATION.fullmatch(word)):
            return words[number:]
    return []


def _without_asides(text: str) -> str:
    """Returns a shell command without its comments and the bodies of its here-documents, in which
    an apostrophe quotes nothing.
    """
    lines, kept, ends = text.split("\n"), list[str](), deque[str]()
    words = {each.strip("\t") for each in lines}
    for line in lines:
        if ends:
            if line.strip("\t") == ends[0]:
                ends.popleft()
        else:
            kept.append(line)
            ends.extend(word for _, word in _HERE.findall(line) if word in words)
    return _COMMENT.sub(lambda found: found[1] or "", "\n".join(kept))


def _simple_commands(text: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars="".join(_ENDS))
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    with suppress(ValueError):  # A quote that does not end.
        for word in lexer:
            if _ENDS.issuperset(word):
                yield words
                words = []
            else:
                words.append(word)
    yield words


def _of_call(folder: str, words: list[str]) -> tuple[str, list[str]]:
    """Returns what a call of git is about, `tree` or `pop` or nothing, and the files that it sets
    back.
    """
    name, *options = words
    cut = options.index("--") if "--" in options else len(options)
    flags = {each for each in options[:cut] if each.startswith("-")}
    short = {letter for each in flags if each[1:2] != "-" for letter in each[1:]}
    paths = [each for each in options if not each.startswith("-")]
    is_all = not paths or _are_many(folder, paths)
    if name == "stash":
        verb, *_ = [*paths, "push"]
        is_push = verb in ("push", "save")
        popped = verb in ("pop", "apply") and len(paths) == 1
        return "tree" if is_push else "pop" if popped else "", []
    if name == "reset":
        return "tree" if _has(flags, "--hard", "--merge", "--keep") else "", []
    if name == "clean":
        is_dry = _has(flags, "--dry-run") or "n" in short
        return "tree" if ("f" in short or _has(flags, "--force")) and not is_dry else "", []
    if name == "add":
        takes_all = _has(flags, "--all", "--update") or {"A", "u"} & short
        return "tree" if takes_all or _are_many(folder, paths) else "", []
    if name == "restore":
        is_index = (_has(flags, "--staged") or "S" in short) and not (
            _has(flags, "--worktree") or "W" in short
        )
        return "" if is_index else "tree" if is_all else "", [] if is_index else _in(folder, paths)
    if name == "checkout":
        named = _in(folder, [each for each in options[cut + 1 :] if not each.startswith("-")])
        named = named or [each for each in _in(folder, paths) if os.path.exists(each)]
        return "tree" if is_all or not named else "", named
    return "tree" if name == "switch" else "", []


def _has(flags: Iterable[str], *names: str) -> bool:
    """Returns whether one of these options is given, also abbreviated."""
    long = [each.partition("=")[0] for each in flags if each.startswith("--") and each != "--"]
    return any(name.startswith(each) for name in names for each in long)


def _are_many(folder: str, paths: Iterable[str]) -> bool:
    """Returns whether paths name more than files: all of a tree, or what matches a pattern."""
    return any(
        each in _ALL
        or each.startswith(":")
        or (not _MAGIC.isdisjoint(each) and not os.path.lexists(os.path.join(folder, each)))
        for each in paths
    )


def _in(folder: str, paths: Sequence[str]) -> list[str]:
    return [os.path.normpath(os.path.join(folder, each)) for each in paths if each not in _ALL]


def _of_tree(folder: str, words: str, event: Event, env: Mapping[str, str]) -> str:
    """Returns why a command that is about a whole working tree is refused, or nothing."""
    layout = discover(folder, env)
    hive = open_hive(layout, env, event)
    tree_id = read_tree_id(layout)  # None if nothing was announced in it yet.
    leases = [each for each in hive.reservations.find() if not _is_own(each, hive, event)]
    others = [each for each in leases if not each.exclusive and is_of_tree(each, tree_id)]
    others += _with_changes(hive, [each for each in leases if each.exclusive])
    if not others:
        return ""
    found = {one_line(each.pattern, _NAME_CHARS): each.droid for each in others}
    named = some([f"{mentioned(path)} ({mentioned(who)})" for path, who in found.items()], _SHOWN)
    ask = suggested("queen msg send", others[0].droid, "BODY", as_=hive.actor_or_none)
    return (
        f"{one_line(words, _NAME_CHARS)} touches all of this working tree, and others have work "
        f"here that is not committed: {named}. Name your own files, or work in a worktree of your "
        f"own (queen worktree add NAME). Or ask: {ask}."
    )


def _with_changes(hive: Services, leases: Sequence[Reservation]) -> list[Reservation]:
    """Returns those exclusive leases of which a file is changed in this working tree. They are for
    all trees: one that was taken on another branch is not of work in this one.
    """
    layout = hive.layout
    branch = branch_of(layout)
    here = {each.id for each in leases if branch is not None and each.branch == branch}
    if not here:
        return []
    changed = uncommitted(".", layout.tree, without_programs(layout.tree, {}), "all")
    covering = hive.reservations.covering([*changed])
    found = {each.id for by in covering.values() for each in by}
    return [each for each in leases if each.id in here & found]


def _is_own(lease: Reservation, hive: Services, event: Event) -> bool:
    if lease.droid != hive.actor_or_none:
        return False
    return lease.session is None or event.session is None or lease.session == event.session


def _of_pop(layout: Layout) -> str:
    """Returns why the newest stash is not to be taken here, if another branch has left it."""
    own = branch_of(layout)
    path = os.path.join(str(layout.common_dir), "logs", "refs", "stash")
    if not are_several(layout) or own is None:
        return ""
    try:
        lines = safe_open.read(path).decode(errors="replace").rstrip("\n").split("\n")
    except OSError:
        return ""
    # `WIP on main: 1234567 …`, or `On main: …`.
    said = lines[-1].partition("\t")[2].removeprefix("WIP on ").removeprefix("On ") if lines else ""
    branch = said.partition(": ")[0]
    if branch in ("", own):
        return ""
    return (
        f"All worktrees share their stashes, and the newest one is of branch {mentioned(branch)}: "
        "look for yours with git stash list, and name it, as in git stash pop stash@{1}."
    )
