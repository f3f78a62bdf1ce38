"""Taking back the last step of a droid: what follows from that, and the lines that do it.

Nothing is removed. A claim is released, and what was released is claimed and leased again by the
rules for everybody; an issue gets back the fields that the step changed. All or nothing, and only
while nobody has built on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.timestamps import format_ms
from queenbee.errors import Conflict, NotFound
from queenbee.services.undo.of_grants import of_assignments, of_reservations
from queenbee.services.undo.of_settings import of_settings
from queenbee.services.undo.of_texts import of_issues, of_messages
from queenbee.services.undo.step import Step
from queenbee.services.undo.whose import refuse_another, refuse_unproved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.services.hive import Services
    from queenbee.services.undo.reversal import Reversal


@dataclass(frozen=True, slots=True)
class Undone:
    """What was taken back, or would be: the command, when it ran, and what follows."""

    command: str
    at: str
    reversals: Sequence[Reversal]
    dry_run: bool
    to_commit: str = ""
    """The command that commits the settings, if they are not as they are committed now: the library
    adds it."""


def undo(hive: Services, refuse_end: Callable[[str], None], *, dry_run: bool = False) -> Undone:
    """Takes back the last step of the actor, and returns what follows from that; with `dry_run`,
    what would. An undo is a step as well. `refuse_end` is asked of each issue that it ends.

    Raises `NotFound` if there is none, `Conflict` if others have built on it, `Held` and `Taken`
    for what others have by now, what a claim raises for an issue that is given again, and
    `NotYours` for an agent that takes back another's step, or a setting.
    """
    refuse_another(hive)
    step = _last(hive)
    if step.settings:
        found = of_settings(hive, step, dry_run=dry_run)
    elif dry_run:
        found = _reversals(hive, step, refuse_end)
    else:
        with hive.reservations.transaction() as tx:
            found = _reversals(hive, step, refuse_end)
            for each in found:
                each.stage(tx)
    return Undone(step.command, format_ms(step.at_ms), found, dry_run)


def _last(hive: Services) -> Step:
    step = Step.last(hive.layout, hive.actor_or_none)
    if step is None:
        raise NotFound(
            f"nothing is known here that {hive.author} wrote and could take back",
            hint="what happened: queen log",
        )
    if step.program:
        raise Conflict(
            f"{step.program} wrote the last change of {hive.author} to its own database",
            hint=f"change it with {step.program}; what happened: queen log",
            program=step.program,
        )
    return step


def _reversals(hive: Services, step: Step, refuse_end: Callable[[str], None]) -> list[Reversal]:
    hive.check_rows()
    refuse_unproved(hive, step)
    assignments, freed = of_assignments(hive, step)
    leases = of_reservations(hive, step, freed)
    found = [*of_issues(hive, step, refuse_end), *assignments, *leases, *of_messages(hive, step)]
    if all(each.action == "stays" for each in found):
        raise NotFound(
            f"nothing of {step.command or 'the last change'} is left to be taken back",
            hint="what happened: queen log",
        )
    return found
