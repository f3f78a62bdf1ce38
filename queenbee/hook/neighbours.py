"""Tells an agent, when it edits a file, who else has unmerged work in it: one warning per edit.

If its change would conflict with one of theirs, it is told where, and again if other lines meet;
else it is told of the work, once for each branch. What was told is kept in the state folder, by
session. Without a session, nothing is told.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, one_line, suggested
from queenbee.errors import QueenError
from queenbee.git.lines import shown
from queenbee.hook import answers
from queenbee.hook.events import AFTER_EDIT
from queenbee.store import safe_open
from queenbee.store.git_files.tree_id import is_of_tree, read_tree_id
from queenbee.store.whole_files import forget_old, keep, recall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.git.lines import Overlap
    from queenbee.git.touched import Touch
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus
    from queenbee.store.layout import Layout

_BUDGET_S = 0.04
"""An agent waits for the hook at each edit. What there is no time for is told at a later one."""
_AGAIN_S = 60
"""A series of edits of one file asks once a minute, as long as nobody else is known there."""
_MOST_COMPARED = 4
"""Worktrees that one edit is compared with."""
_SHOWN = 3
_MOST_CHARS = 600
_REST = 180
"""What is said around the sentences."""
_NAME_CHARS, _PATH_CHARS = 80, 200
_KEPT_S = 7 * 86_400
_MOST_SESSIONS = 50


def answer(event: Event, hive: Services, statuses: Sequence[PathStatus]) -> Answer | None:
    """Returns what an agent should know about the files of an edit, or None if it is nothing."""
    if not answers.reads_context(event) or not _file_name(event.session):
        return None
    is_after = event.kind == AFTER_EDIT
    told = _Told(hive.layout, event.session)
    paths = [
        status.path
        for status in statuses
        if not told.lately(status.path)
        or (is_after and (told.of(status.path) or _is_announced(status, hive)))
    ]
    if not paths:
        return None
    from queenbee.git.touched import by_others  # noqa: PLC0415 - start-up

    seen = by_others(hive, paths, budget_s=_BUDGET_S)
    conflicts, new = [], []
    for number, touch in enumerate(seen.touches):
        met = seen.conflict(touch) if is_after and number < _MOST_COMPARED else None
        known = told.of(touch.path).get(touch.branch_or_folder)
        if met is not None and known != _where(met):
            conflicts.append((touch, met))
        elif known is None:
            new.append(touch)
    for touch, met in conflicts:
        told.of(touch.path)[touch.branch_or_folder] = _where(met)
    for touch in new if not conflicts else ():
        told.of(touch.path)[touch.branch_or_folder] = ""
    told.keep(paths, whole=not seen.unlooked)
    actor = hive.actor_or_none
    if conflicts:
        return answers.context(event, "\n".join(_conflict(*each, actor) for each in conflicts))
    return answers.context(event, _text(new, actor)) if new else None


def _is_announced(status: PathStatus, hive: Services) -> bool:
    """Returns whether somebody edits a file in another worktree."""
    droid, folder, tree_id = hive.actor_or_none, hive.layout.worktree, read_tree_id(hive.layout)
    return any(
        not lease.exclusive
        and not (lease.droid == droid and is_of_tree(lease, tree_id, droid=droid, folder=folder))
        for lease in status.leases
    )


def _where(met: Sequence[Overlap]) -> str:
    return repr([one.base for one in met])


def _conflict(touch: Touch, met: Sequence[Overlap], actor: str | None) -> str:
    what = "both of you added it"
    if met:
        pairs = [f"your lines {shown(one.a)} against theirs {shown(one.b)}" for one in met]
        more = [f"and {len(pairs) - _SHOWN} more"] if len(pairs) > _SHOWN else []
        what = "; ".join([*pairs[:_SHOWN], *more])
    whose = _safe(touch.branch_or_folder)
    if touch.droid is not None:
        whose = f"that of {_safe(touch.droid)} on {whose}"
    else:
        whose = f"the one on {whose}"
    ask = _ask(touch, actor)
    return (
        f"Your change of {mentioned(one_line(touch.path, _PATH_CHARS))} would conflict with "
        f"{whose}: {what}. Nothing is lost, but one of you will have to merge it."
        f"{f' Agree on it now: {ask}' if ask else ''}"
    )


def _text(touches: Sequence[Touch], actor: str | None) -> str:
    shown: list[str] = []
    for touch in touches[:_SHOWN]:
        sentence = touch.sentence()
        if not shown or len("; ".join([*shown, sentence])) < _MOST_CHARS - _REST:
            shown.append(sentence)  # Not cut, since what is in it may be in quotes.
    more = f"; and {len(touches) - len(shown)} more" if len(touches) > len(shown) else ""
    advice = "Git merges edits of other lines; for the same lines, agree first"
    text = f"Not merged yet: {'; '.join(shown)}{more}. {advice}"
    ask = _ask(touches[0], actor)
    return f"{text}: {ask}." if ask and len(text) + len(ask) < _MOST_CHARS else f"{text}."


def _ask(touch: Touch, actor: str | None) -> str:
    """Returns the command that asks whose work it is; empty if no record says."""
    if touch.droid is None:
        return ""
    about = f"About {one_line(touch.path, _PATH_CHARS)}: ..."
    return suggested("queen msg send", one_line(touch.droid, _NAME_CHARS), about, as_=actor)


def _safe(text: str) -> str:
    return mentioned(one_line(text, _NAME_CHARS))


class _Told:
    """What a session was told: for each file when it was asked about, and for each branch in it
    which lines conflict, or an empty text.
    """

    def __init__(self, layout: Layout, session: str | None) -> None:
        self._now_s = time.time()
        self._path = told_path(layout, session)
        self._of: dict[str, tuple[float, dict[str, str]]] = {}
        kept = recall(self._path, 1 << 20)
        with suppress(ValueError, TypeError):
            self._of = {str(path): (float(at_s), dict(known)) for path, (at_s, known) in kept}

    def lately(self, path: str) -> bool:
        """Returns whether somebody asked about a file just now."""
        return path in self._of and 0 <= self._now_s - self._of[path][0] < _AGAIN_S

    def of(self, path: str) -> dict[str, str]:
        """Returns what was told of a file."""
        return self._of.setdefault(path, (0, {}))[1]

    def keep(self, paths: Sequence[str], *, whole: bool) -> None:
        """Keeps it, with the time at which these files were asked about if that was `whole`."""
        for path in paths:
            self._of[path] = (self._now_s if whole else 0, self.of(path))
        folder = os.path.dirname(self._path)
        with suppress(OSError, QueenError):
            if safe_open.make_folder(folder) or not os.path.exists(self._path):
                forget_old(folder, most=_MOST_SESSIONS, kept_s=_KEPT_S)
        keep(self._path, list(self._of.items()))


def told_path(layout: Layout, session: str | None) -> str:
    """Returns the file of what a session was told."""
    return os.path.join(layout.state_dir, "neighbours", f"{_file_name(session)}.json")


def _file_name(session: str | None) -> str:
    return "".join(char for char in session or "" if char.isascii() and char.isalnum())[:100]
