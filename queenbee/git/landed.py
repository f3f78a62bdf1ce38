"""What of one's work is on the branch of the main worktree, and what follows once it is: announced
edits end, and a completed issue says what has not landed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.glob.pattern import literal_path
from queenbee.core.text import named
from queenbee.errors import ExternalFailure, QueenError, Unreadable
from queenbee.git.contents.hive_files import is_record
from queenbee.git.contents.uncommitted import uncommitted
from queenbee.git.objects import Objects
from queenbee.git.run import UPKEEP_LATER, as_the_user, git, line, names_in, without_programs
from queenbee.git.upstream import Upstream
from queenbee.services.care.exporting import export_issues
from queenbee.services.leases import edits
from queenbee.store.git_files.worktrees import Worktree, target_branch, target_ref
from queenbee.store.git_trees import git_tree, name_in_index
from queenbee.store.layout import Layout
from queenbee.store.trust import builds_on_target
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.checks.executing import Progress
    from queenbee.core.records import Reservation
    from queenbee.services.hive import Services
    from queenbee.services.open_store import Store
    from queenbee.services.work import Nothing
    from queenbee.workflows.complete_hive import Hive
    from queenbee.workflows.completing import Completion

_TRIES, _AGAIN_S = 10, 0.1
_LOOKS = 3
"""What is in the way of records is looked at so often again: it may be another's landing."""
_NAMES = ("--name-only", "-z", "--no-renames", "--no-relative", "--no-ext-diff", "--no-textconv")


def complete(
    hive: Hive,
    issue_id: str,
    *,
    env: Mapping[str, str],
    reason: str | None = None,
    unverified: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Completion:
    """Completes an issue as `workflows.completing` does; `issue_id` may be a part of an id.

    In a linked worktree, a note says what is not landed yet.
    """
    from queenbee.git.contents.judging_bead import judging_bead  # noqa: PLC0415 - start-up
    from queenbee.workflows.completing import complete as complete_issue  # noqa: PLC0415 - start-up

    issue_id = hive.issue_id(issue_id, recorded=True)
    bead, differs = judging_bead(hive, issue_id)
    done = complete_issue(
        hive,
        issue_id,
        bead=bead,
        env=env,
        reason=reason,
        unverified=unverified,
        on_progress=on_progress,
    )
    if differs:
        done = done.with_note(f"the checks of {issue_id} on the main branch counted: they differ")
    left = unlanded(hive.layout) if done.completed else None
    if left is None:
        return done
    return done.with_note(f"{done.assignment.issue_id} is completed, but {left}")


def say_what_is_left(hive: Services, found: Nothing) -> None:
    """Adds what is left in this worktree for whoever has no more to do."""
    found.unlanded = unlanded(hive.layout)
    if hive.layout.settings.land_by == "pr":
        from queenbee.git.proposing.standing import proposals  # noqa: PLC0415 - start-up

        found.proposed = proposals(hive.layout)
    if found.state == "done":
        found.uncommitted_records = uncommitted_records(hive.layout)


def unlanded(layout: Layout) -> str | None:
    """Returns what is neither on the main worktree's branch nor proposed for it, in words, with the
    next command; None if nothing is, or if this is not a linked worktree of a repository whose main
    worktree has a branch.
    """
    here = git_tree(layout.tree)
    if here is None or layout.worktree is None:
        return None
    if os.path.exists(os.path.join(here.git_dir, "MERGE_HEAD")):
        return "a merge is not finished in this worktree; try: queen land --continue"
    target = target_branch(layout)
    if target is None:
        return None
    try:
        count = _count_ahead(layout)
        files = [*uncommitted(layout.tree, layout.tree)]
    except (ValueError, ExternalFailure, Unreadable):
        return None
    dirty = [each for each in files if not edits.is_exempt(layout, each)]
    verb = "commit of this worktree is" if count == 1 else "commits of this worktree are"
    left = [f"{count} {verb} not on {target} yet"] if count else []
    left += [f"not committed: {named(dirty)}"] if dirty else []
    way = "queen land -m 'WHAT YOU DID'" if dirty else "queen land"
    return f"{'; '.join(left)}; try: {way}" if left else None


def _count_ahead(layout: Layout) -> int:
    if layout.settings.land_by == "pr":
        from queenbee.git.proposing.standing import count_unproposed  # noqa: PLC0415 - start-up

        return count_unproposed(layout)
    commits = f"{target_ref(layout)}..HEAD"
    return int(git("rev-list", "--count", "--end-of-options", commits, cwd=layout.tree))


def uncommitted_records(layout: Layout) -> str | None:
    """Returns the folder of the hive's records if git tracks it, or would, and something in it is
    not committed; else None.
    """
    return layout.beads_dir if any(map(is_record, _left(layout, as_the_user=False))) else None


def _left(layout: Layout, *, as_the_user: bool = True) -> dict[str, str]:
    if layout.common_dir is not None:
        with suppress(OSError, ExternalFailure):
            config = None if as_the_user else without_programs(layout.root, {})
            return uncommitted(layout.beads_dir, layout.root, config, "all")
    return {}


def carries_records(layout: Layout) -> bool:
    """Returns whether git has the records on the branches of the code, and they may be committed
    unasked.
    """
    said = layout.settings
    is_on_code = said.land_records and said.sync_ledgers == "code" and said.problem is None
    # Records of several machines meet on a branch of their own: queen sync.
    return is_on_code and Upstream.of_target(layout) is None


def commit_records(hive: Services, *, is_end: bool) -> str:
    """Commits the records that are left after a landing in the main worktree, as the user would,
    and nothing else; returns why not, in words, the first time that this is so.

    While others land, they carry them. At the end of all work, beads are committed too, and records
    also where git does not have them yet.
    """
    from queenbee.services.waiting.landing_turn import landers  # noqa: PLC0415 - start-up

    layout = hive.layout
    may = carries_records(layout) and (is_end or (is_tracked(layout) and not landers(hive)))
    left = left_records(hive) if may else {}
    is_any = left is None or any(_is_carried(each, is_end=is_end) for each in left)
    before = _head(layout.root) if is_any and builds_on_target(layout) else None
    tried = _committed(hive, before, left, is_end=is_end) if before is not None else None
    if tried is None:
        return ""
    waits, before = tried
    if layout.worktree and _head(layout.tree) == before:
        with suppress(ExternalFailure):
            target = str(target_ref(layout))
            how = ("merge", "-q", "--ff-only", "--no-overwrite-ignore", no_dash(target))
            as_the_user(*how, cwd=layout.tree, config=UPKEEP_LATER)
    return _once(layout, waits)


def _committed(
    hive: Services, before: str, left: Mapping[str, str] | None, *, is_end: bool
) -> tuple[list[str], str] | None:
    """Commits records; returns why some are left, a sentence each, and the commit before. None if
    they cannot be read.
    """
    from queenbee.git.contents.landing_messages import (  # noqa: PLC0415 - start-up
        Messages,
        other_message,
    )
    from queenbee.git.contents.record_blobs import in_the_way, records_of, under_way  # noqa: PLC0415 - start-up

    layout, root, waits, wanted = hive.layout, hive.layout.root, list[str](), list[str]()
    messages = Messages.of(layout.settings, root)
    target = target_branch(layout)
    message = messages.records(target or "", hive.author)
    with Objects(root) as objects:
        for tried in range(_TRIES):
            # The commit looks at what is staged, too.
            if why := (in_the_way if tried else under_way)(root, target):
                if tried == _LOOKS:
                    return [f"the records are not committed: {why}"], before
                time.sleep(_AGAIN_S)  # A landing moves the branch, and then the files.
                continue
            wanted = wanted or to_carry(hive, left, is_end=is_end)
            try:
                records = records_of(hive, objects, root, before, wanted)
            except QueenError:
                return None
            waits = records.left_out
            refused = records.commit(objects, target, message) if records.blobs else ""
            if refused:
                way = other_message("land.message")
                return [*waits, f"the records are not committed: {refused}; try: {way}"], before
            if refused is not None:
                break
            time.sleep(_AGAIN_S)  # Somebody else commits.
            before = _head(root) or before
    return waits, before


def left_records(store: Store) -> Mapping[str, str] | None:
    """Returns what of the hive is not committed; None if the tracker's file has first to get its
    rows.
    """
    return None if store.tracker().has_unfiled else _left(store.layout)


def to_carry(store: Store, left: Mapping[str, str] | None, *, is_end: bool = False) -> list[str]:
    """Returns the records to commit of what is left, once the tracker's file has its rows."""
    if left is None:
        with suppress(QueenError):  # The ledger has all of it.
            export_issues(store)
        left = _left(store.layout)
    return [each for each in left if _is_carried(each, is_end=is_end)]


def _is_carried(path: str, *, is_end: bool) -> bool:
    if is_record(path):
        return True
    if not is_end:
        return False
    from queenbee.git.contents.record_blobs import is_bead  # noqa: PLC0415 - start-up

    return is_bead(path)


def _once(layout: Layout, waits: Sequence[str]) -> str:
    """Returns what is to be said, unless that was the last thing said."""
    path = os.path.join(layout.state_dir, "records-left.json")
    if waits == (recall(path) or []):
        return ""
    keep(path, waits)
    return "; ".join(waits)


def is_tracked(layout: Layout) -> bool:
    """Returns whether git has files of the hive, as its index says."""
    here = git_tree(layout.root)
    if here is None:
        return False
    folder = os.path.relpath(layout.beads_dir, here.tree)
    return name_in_index(here.git_dir, f"{folder}{os.sep}") is not None


def _head(tree: str) -> str | None:
    here = git_tree(tree)
    known = Worktree(here.tree, here.git_dir, here.common_dir).head if here is not None else None
    return known or line("rev-parse", "HEAD", cwd=tree, repository={})


def end_landed(hive: Services) -> list[Reservation]:
    """Ends what the actor's edits announced in this working tree, as far as the files are now as
    on the branch of the main worktree; returns the leases that ended.

    A file counts as changed if it is committed differently here, or not committed, or not tracked
    there. What a droid reserved by name stays. Raises `ExternalFailure`.
    """
    layout = hive.layout
    target = target_ref(layout)
    announced = edits.announced_here(hive.reservations)
    by_path = {path: each for each in announced if (path := literal_path(each.pattern))}
    if target is None or not by_path:
        return []
    found = _changed(layout.tree, target, list(by_path))
    return edits.end(
        hive.reservations, [each.id for path, each in by_path.items() if path not in found]
    )


def _changed(tree: str, target: str, paths: list[str]) -> set[str]:
    """Returns those of these paths whose content in the tree is not that of the target."""
    literal = "--literal-pathspecs"
    # Without its filters, a file that has some counts as changed: it stays announced.
    config = without_programs(tree)
    differing = git(
        literal, "diff", *_NAMES, no_dash(target), "--", *paths, cwd=tree, config=config
    )
    untracked = git(literal, "ls-files", "--others", "-z", "--", *paths, cwd=tree)
    return set(names_in(differing + untracked))
