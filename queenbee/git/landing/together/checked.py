"""Runs the check of a repository: in a checkout, or side by side in several."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from queenbee.checks.noted_process import noted_line
from queenbee.checks.processes import Interrupts, Program, run_process
from queenbee.core.text import one_line
from queenbee.core.timestamps import format_duration
from queenbee.git.run import environment_of_user
from queenbee.store.git_files.host_tokens import for_a_landing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.checks.consent import SeenCommand
    from queenbee.git.landing.checkout import Checkout

_LAST_CHARS = 3_000
_MOST_SAID = 120
"""Characters of the last line of a check that passed, which tells how much it checked."""


class Check(NamedTuple):
    """A shell command that has to pass, and how long it may take."""

    command: SeenCommand
    timeout_s: float
    env: Mapping[str, str]

    def with_variables(self, more: Mapping[str, str]) -> Check:
        """Returns the same with further variables."""
        return self._replace(env={**self.env, **more})


class Verdict(NamedTuple):
    """What a check said: the end of what it printed if it failed, else its last line."""

    failed: str | None
    said: str
    seconds: float


def run_check(
    check: Check,
    tree: str,
    interrupts: Interrupts,
    on_tick: Callable[[float, str], None] | None = None,
    note: str = os.devnull,
    tick_s: float = 1.0,
) -> Verdict:
    """Runs a check at the top of a tree. Whatever it started ends with it, also after its time and
    after a request to end. While it runs, it is noted in a file.
    """
    program = Program(noted_line(check.command, note), tree, check.env, check.timeout_s)
    ran = run_process(program, on_tick=on_tick, tick_s=tick_s, interrupts=interrupts)
    seconds = round(ran.duration_s, 1)
    text = (ran.problem or ran.stdout.text()).strip()
    if ran.exit_code == 0:
        return Verdict(None, one_line(text.split("\n")[-1].strip(), _MOST_SAID), seconds)
    said = text[-_LAST_CHARS:]
    if ran.ended == "timed_out":
        said = f"{said}\ntimed out after {format_duration(check.timeout_s)}".strip()
    return Verdict(said or f"status {ran.exit_code}", "", seconds)


def check_in(
    checkout: Checkout,
    check: Check,
    on_tick: Callable[[float, str], None] | None = None,
    tick_s: float = 1.0,
) -> Verdict:
    """Runs a check of the commit that a checkout has. Raises `SetupFailed`."""
    ready, interrupts = check.with_variables(checkout.ready()), checkout.commands.interrupts
    note = checkout.check_note
    ran = run_check(ready, checkout.tree, interrupts, on_tick, note=note, tick_s=tick_s)
    checkout.commands.stop_if_asked()
    return ran


def side_by_side(check: Check, checkout: Checkout, commits: Sequence[str]) -> list[Verdict]:
    """Checks commits in as many checkouts, this one and further ones."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - start-up

    with ExitStack() as stack, ThreadPoolExecutor(len(commits)) as pool:
        more = (stack.enter_context(checkout.beside(n)) for n in range(1, len(commits)))
        places = [checkout, *more]
        for each, commit in zip(places, commits, strict=True):
            each.go_to(commit)
        own = [check.with_variables(each.ready()) for each in places]
        interrupts = checkout.commands.interrupts
        trees = [(each.tree, each.check_note) for each in places]
        run = partial(run_check, interrupts=interrupts)
        return list(pool.map(lambda check, at: run(check, at[0], note=at[1]), own, trees))


def check_of(command: SeenCommand, timeout_s: float, common_dir: str | None) -> Check:
    """Returns a check with the environment of the user, without tokens and what changes it."""
    return Check(command, timeout_s, for_a_landing(environment_of_user(), common_dir))
