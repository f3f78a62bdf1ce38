"""Tells an agent, when it edits a file, who else has unmerged work in it: once for each branch.

What was told is kept in the state folder, by session. Without a session, nothing is told.
"""

from __future__ import annotations

import os
import time

from queenbee._light import suppress
from queenbee.core.text import one_line, suggested
from queenbee.errors import NoHive, QueenError
from queenbee.hook import answers
from queenbee.store import safe_open
from queenbee.store.documents import keep, recall
from queenbee.store.git_files.worktrees import are_several
from queenbee.store.layout import discover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.git.touched import Touch
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.store.layout import Layout

_BUDGET_S = 0.04
"""An agent waits for the hook at each edit. What there is no time for is told at a later one."""
_AGAIN_S = 60
"""A series of edits of one file asks once a minute."""
_SHOWN = 3
_MOST_CHARS = 600
_REST = 180
"""What is said around the sentences."""
_KEPT_S = 7 * 86_400
_MOST_SESSIONS = 50


def answer(event: Event, env: Mapping[str, str]) -> Answer | None:
    """Returns what an agent should know about the files of an edit, or None if it is nothing."""
    if not answers.reads_context(event) or not _file_name(event.session):
        return None
    new: list[Touch] = []
    actor = None
    for layout, files in _by_layout(event.files, env):
        from queenbee.hook.names import find_actor  # noqa: PLC0415 - start-up

        actor = find_actor(layout, env, event).name
        new += _new(layout, files, event, actor)
    return answers.context(event, _text(new, actor)) if new else None


def _by_layout(
    files: Iterable[str], env: Mapping[str, str]
) -> Iterable[tuple[Layout, Sequence[str]]]:
    """Returns the hives of files whose repository has several worktrees; nearly always one."""
    found: dict[tuple[str, str], tuple[Layout, list[str]]] = {}
    for file in files:
        folder = os.path.dirname(os.path.realpath(file))
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        with suppress(NoHive):
            layout = discover(folder, env)
            if are_several(layout):
                found.setdefault((layout.beads_dir, layout.tree), (layout, []))[1].append(file)
    return found.values()


def _new(layout: Layout, files: Sequence[str], event: Event, actor: str | None) -> list[Touch]:
    """Returns the unmerged work in files that this session has not been told of."""
    from queenbee.services.leases.edits import changed_paths  # noqa: PLC0415 - start-up

    now_s = time.time()
    kept = os.path.join(layout.state_dir, "neighbours", f"{_file_name(event.session)}.json")
    told = _load(kept)
    paths = [
        path
        for path in changed_paths(layout, files)
        if not 0 <= now_s - told.get(path, (0, []))[0] < _AGAIN_S
    ]
    if not paths:
        return []
    from queenbee.git.touched import by_others  # noqa: PLC0415 - start-up
    from queenbee.services.hive import Services  # noqa: PLC0415 - start-up

    seen = by_others(Services(layout, actor=actor), paths, budget_s=_BUDGET_S)
    new = []
    for path in paths:
        known = told.get(path, (0, []))[1]
        for touch in seen.of(path):
            if touch.branch_or_folder not in known:
                known = [*known, touch.branch_or_folder]
                new.append(touch)
        told[path] = (now_s if not seen.unlooked else 0, known)
    _keep(kept, told)
    return new


def _text(touches: Sequence[Touch], actor: str | None) -> str:
    shown: list[str] = []
    for touch in touches[:_SHOWN]:
        sentence = touch.sentence()
        if not shown or len("; ".join([*shown, sentence])) < _MOST_CHARS - _REST:
            shown.append(sentence)  # Not cut, since what is in it may be in quotes.
    more = f"; and {len(touches) - len(shown)} more" if len(touches) > len(shown) else ""
    advice = "Git merges edits of other lines; for the same lines, agree first"
    droid = touches[0].droid
    ask = ""
    if droid is not None:
        about = f"About {one_line(touches[0].path, 80)}: ..."
        ask = f": {suggested('queen msg send', droid, about, as_=actor)}"
    text = f"Not merged yet: {'; '.join(shown)}{more}. {advice}"
    return f"{text}{ask}." if len(text) + len(ask) < _MOST_CHARS else f"{text}."


def _load(path: str) -> dict[str, tuple[float, list[str]]]:
    """Returns for each file when this was asked, and of which branches the session was told."""
    kept = recall(path, 1 << 20)
    try:
        return {str(key): (float(at), [str(one) for one in known]) for key, (at, known) in kept}
    except (ValueError, TypeError):
        return {}


def _keep(path: str, told: Mapping[str, tuple[float, list[str]]]) -> None:
    folder = os.path.dirname(path)
    with suppress(OSError, QueenError):
        if safe_open.make_folder(folder) or not os.path.exists(path):
            _forget_old(folder)
    keep(path, list(told.items()))


def _forget_old(folder: str) -> None:
    names = os.listdir(folder)
    for name in names if len(names) > _MOST_SESSIONS else ():
        path = os.path.join(folder, name)
        with suppress(OSError):
            if time.time() - os.lstat(path).st_mtime > _KEPT_S:
                safe_open.unlink(path)


def _file_name(session: str | None) -> str:
    return "".join(char for char in session or "" if char.isascii() and char.isalnum())[:100]
