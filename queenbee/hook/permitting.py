"""Writes a permit: which files a session may edit, and all that this rests on. ADR 0044.

Whatever the decision depended on was looked at before it (`permits.look`), so that what changes
during the decision makes the next edit ask again. So a session's first edits write what is to be
looked at, and only a later one writes how it was.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.hook import answers
from queenbee.hook.acting_names import given_name
from queenbee.hook.neighbours import told_path
from queenbee.hook.permits import Permit, is_plain
from queenbee.services.leases.edits import kept_until_ms
from queenbee.services.leases.live import KIND
from queenbee.store import safe_open
from queenbee.store.droids import agent_processes, agent_sessions, presence
from queenbee.store.git_files.worktrees import are_several
from queenbee.store.git_trees import git_tree, upward
from queenbee.store.memory.archive import Archive
from queenbee.store.memory.connecting import uri_of
from queenbee.store.settings import FILE_NAME, last_good_path
from queenbee.store.whole_files import forget_old, keep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.hook.events import Event
    from queenbee.hook.permits import Entry, Sight
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus
    from queenbee.store.layout import Layout

_MOST_FILES = 500
_MOST_SESSIONS = 50
_KEPT_S = 7 * 86_400
_TICK_NS = 100_000_000
"""A file that was written just now may be written again without a change of its stamp."""


def note(
    event: Event,
    env: Mapping[str, str],
    hive: Services,
    statuses: Sequence[PathStatus],
    sight: Sight,
) -> None:
    """Writes what lets the next edit of these files pass at once, if it is certain enough. They are
    all the files of an edit that was just let pass. Never fails.
    """
    with suppress(QueenError, OSError, ValueError):
        process = _process(hive)
        if not process or not _is_plain(hive.layout, sight) or len(statuses) != len(event.files):
            return
        # A name from a user needs no note of the session.
        is_given = given_name(hive.layout, env) is not None
        session = "" if is_given else agent_sessions.path_of(hive.layout, event.session or "")
        places = {**_places(event, hive), "session": session, "process": process}
        permit = Permit(places, _rests_on(hive, session))
        if _was_seen(permit, sight):
            permit.basis = sight.basis
            known = sight.permit.files if sight.permit and _is_same(sight) else {}
            permit.files = {**known, **_entries(event, hive, statuses, sight)}
            for file in [*permit.files][:-_MOST_FILES]:
                del permit.files[file]
        if sight.permit is None:
            safe_open.make_folder(os.path.dirname(sight.path))
            forget_old(os.path.dirname(sight.path), most=_MOST_SESSIONS, kept_s=_KEPT_S)
        if sight.permit is None or vars(permit) != vars(sight.permit):
            keep(sight.path, vars(permit))


def _is_plain(layout: Layout, sight: Sight) -> bool:
    """Returns whether a hive is where most are: at the top of its repository, in files."""
    here = git_tree(layout.tree)
    settings = layout.settings
    if here is None or (layout.tree, layout.git_dir) != (sight.tree, _git_dir(sight)):
        return False
    usual = (here.main_tree, os.path.join(here.common_dir, "queenbee"), "files")
    if (layout.root, layout.state_dir, settings.engine_kind) != usual or settings.problem:
        return False
    configs = [os.path.join(here.common_dir, name) for name in ("config", "config.worktree")]
    return not any("include" in _content(path).lower() for path in configs)


def _git_dir(sight: Sight) -> str:
    return os.path.dirname(os.path.dirname(sight.path))


def _process(hive: Services) -> str:
    """Returns the process of the agent, or "" if it is not certain."""
    noted = _content(agent_processes.path_of(hive.layout, hive.actor))
    return noted.removesuffix(agent_processes.SURE) if noted.endswith(agent_processes.SURE) else ""


def _places(event: Event, hive: Services) -> dict[str, str]:
    layout = hive.layout
    is_told = are_several(layout) and answers.reads_context(event)
    return {
        "root": layout.root,
        "memory": uri_of(layout.memory_path),
        "ledger": layout.ledger_path(KIND),
        "presence": presence.path_of(layout, hive.actor),
        "told": told_path(layout, event.session) if is_told else "",
    }


def _rests_on(hive: Services, session: str) -> dict[str, list[str]]:
    """Returns the files that say which hive governs the files of an edit, who acts, and what is
    reserved, but for the memory and its ledger.
    """
    layout = hive.layout
    common, own = str(layout.common_dir), str(layout.git_dir)
    gits = [os.path.join(folder, ".git") for folder in upward(layout.tree)]
    pointers = {path for path in gits if os.path.isfile(path)}
    archive = Archive(layout.ledger_path(KIND))
    return {
        "kinds": [
            *(path for path in gits if path not in pointers), common, own,
            os.path.join(own, "HEAD"), layout.beads_dir, layout.state_dir, layout.memory_path,
        ],
        "stamps": [
            *pointers, *(f"{path}modules" for path in gits[1:]),
            *(os.path.join(common, name) for name in ("config", "config.worktree", "worktrees")),
            *(os.path.join(layout.beads_dir, name) for name in (FILE_NAME, "redirect")),
            archive.folder, *map(archive.path, archive.listing()),
            os.path.join(own, "commondir"), layout.journal_path(KIND), layout.engine_path,
            layout.identity_path, *layout.tree_id_paths, layout.droids_dir,
            last_good_path(layout.state_dir),
        ],
        "texts": [*filter(None, [session]), agent_processes.path_of(layout, hive.actor)],
    }  # fmt: skip


def _was_seen(permit: Permit, sight: Sight) -> bool:
    """Returns whether all that a permit rests on was looked at before the decision, and would show
    a change since then.
    """
    stamps = sight.basis.get("stamps")
    if sight.permit is None or not isinstance(stamps, dict):
        return False
    written_ns = max((each[2] for each in stamps.values() if each), default=0)
    known = sight.permit.places, sight.permit.rests_on
    is_settled = written_ns + _TICK_NS < sight.at_ms * 1_000_000
    return is_settled and (permit.places, permit.rests_on) == known


def _is_same(sight: Sight) -> bool:
    return sight.permit is not None and sight.permit.basis == sight.basis


def _entries(
    event: Event, hive: Services, statuses: Sequence[PathStatus], sight: Sight
) -> dict[str, Entry]:
    """Returns for each file how long its session may edit it without asking."""
    found: dict[str, Entry] = {}
    for status, file in zip(statuses, event.files, strict=True):
        end_ms = kept_until_ms(hive.reservations, status, event.session)
        is_there = file == os.path.join(sight.tree, status.path) and is_plain(status.path)
        if is_there and status.status != "held" and end_ms >= sight.at_ms:
            found[file] = (status.path, sight.change, sight.at_ms, end_ms)
    return found


def _content(path: str) -> str:
    try:
        return safe_open.read(path, 1 << 20).decode(errors="replace")
    except OSError:
        return ""
