"""A team of agents: what has to be so before it starts, and how it is looked after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.checks.consent import Consent
from queenbee.errors import InvalidInput, NothingLands
from queenbee.git.beforehand.hindrances import hindrances, unborn
from queenbee.git.landing.leading import seen_check
from queenbee.git.landing.work import Rules
from queenbee.git.outside import outside_git
from queenbee.git.remote.terms import Terms
from queenbee.git.upstream import pushing
from queenbee.git.worktrees.preparing import seen_setup
from queenbee.library.plans import Plans
from queenbee.services import unasked
from queenbee.store import giving_up
from queenbee.store.git_trees import git_tree
from queenbee.store.trust import of_setting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.starting.ending import Ended
    from queenbee.starting.team import Team
    from queenbee.store.droids.roster import Entry
    from queenbee.store.giving_up import Event
    from queenbee.workflows.complete_hive import Hive


def issues_of(
    hive: Hive, only: Sequence[str], plan: str | None, prefix: str | None
) -> list[str] | None:
    """Returns the issues to do, after importing those of a plan; None for all. Raises `NotFound`,
    `InvalidPlan`.
    """
    found = [hive.issue_id(each, recorded=True) for each in only]
    for each in found:
        hive.issues.get(each)
    if plan is not None:
        plans = Plans(hive)
        plans.import_(plan, prefix=prefix)
        found += plans.issues(plan).values()
    return found or None


def options_of(hive: Hive, given: Sequence[str] | None) -> list[str]:
    """Returns the options for the clients. Those of queen.toml may be another's: a clone's, so that
    they count once a person here has seen them. Raises `Untrusted`.
    """
    if given is not None:
        return list(given)
    said = list(hive.layout.settings.team_args)
    Consent.of(hive).require(of_setting("team.args", said))
    return said


def prepare(hive: Hive, tell: Callable[[str], None], *, unchecked: bool) -> None:
    """Tells what is in the way of landings. Raises as `refuse_hindered` and `ask_unseen`."""
    refuse_hindered(hive, tell)
    ask_unseen(hive, unchecked=unchecked)


def ask_unseen(hive: Hive, *, unchecked: bool) -> None:
    """Asks for what nobody here has seen. Raises `InvalidInput` if there is no check and it is not
    meant to be `unchecked`, and `Untrusted`.
    """
    if not unchecked and not hive.layout.settings.land_check:
        raise InvalidInput(
            "no check is set, so nothing that the agents make would land",
            hint="queen config set land.check COMMAND",
        )
    seen_check(hive, Rules.of(hive))
    seen_setup(hive.layout)
    Consent.of(hive).require(pushing(hive.layout))
    if Terms(hive).confirm:
        unasked.require(hive.layout)


def refuse_hindered(hive: Hive, tell: Callable[[str], None]) -> None:
    """Tells what is in the way of some landings. Raises `NothingLands` if nothing could land, and
    `InvalidInput` outside git.
    """
    if git_tree(hive.layout.tree) is None:
        raise outside_git(hive.layout.tree)
    found = [*hindrances(hive.layout), *unborn(hive.layout)]
    for each in found:
        if not each.stops:
            tell(each.sentence)
    if stops := [each for each in found if each.stops]:
        raise NothingLands(
            "; ".join(each.what for each in stops),
            hint=stops[0].hint,
            hindrances=[each.to_dict() for each in stops],
        )


def look_after(
    team: Callable[[Callable[[], int]], Team],
    *,
    on_progress: Callable[[Sequence[Entry]], None] | None,
    finish: Event | None,
    cancel: Event | None,
) -> Ended:
    """Returns how a team ended that is made with what says how often it was asked to end."""

    def requests() -> int:
        """How often it was asked to end, as by Ctrl-C."""
        if cancel is not None and cancel.is_set():
            return 2
        return int(finish is not None and finish.is_set())

    def tick(team: Team) -> None:
        if on_progress is not None:
            on_progress([each.entry for each in team.workers])

    with giving_up.not_now():  # What stops the agents keeps nobody from noting it.
        return team(requests).run(tick)
