"""Completes an issue, and says what of its work is not on the main worktree's branch yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.workflows.completing import complete as complete_issue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queenbee.checks.engine import Progress
    from queenbee.workflows.completing import Completion
    from queenbee.workflows.hive import Hive


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
    done = complete_issue(
        hive,
        hive.issue_id(issue_id, recorded=True),
        env=env,
        reason=reason,
        unverified=unverified,
        on_progress=on_progress,
    )
    if not done.completed or hive.layout.worktree is None:
        return done
    from queenbee.git.landed import unlanded  # noqa: PLC0415 - start-up

    left = unlanded(hive.layout)
    if left is None:
        return done
    return done.with_note(f"{done.assignment.issue_id} is completed, but {left}")
