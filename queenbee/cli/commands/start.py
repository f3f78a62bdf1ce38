"""`queen start`: a team of agents with one command."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from queenbee.agents.client_settings import unseen_settings
from queenbee.agents.ignored import CONNECTION, WORK, ignored
from queenbee.agents.setup import AGENTS, place_of
from queenbee.checks.consent import Consent
from queenbee.cli.app import Answer, Invocation, command, invocation, tell
from queenbee.cli.exits import NO, NOTHING_LANDS, PROPOSED
from queenbee.cli.options import adopts, id_prefix
from queenbee.cli.person import lets_run, sits_here
from queenbee.cli.proposing import settle_check
from queenbee.cli.rendering import ago, paragraph, table
from queenbee.cli.terminal import say
from queenbee.core.names import is_name
from queenbee.core.text import HINT, printable, shell_word
from queenbee.errors import InvalidInput, NoHive, NotFound, QueenError, Untrusted
from queenbee.git import ownership
from queenbee.git.outside import outside_git
from queenbee.library.hive import Hive
from queenbee.store import safe_open
from queenbee.store.droids import roster
from queenbee.store.git_trees import git_tree
from queenbee.store.layout import working_directory
from queenbee.store.settings import CLIENTS
from queenbee.store.trust import COMMAND, OPTIONS, Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, TextIO

    from queenbee.starting.crew import Crew, Wanted
    from queenbee.starting.ending import Ended

_SHOW_EVERY_S = 30.0
_FOLLOW_S = 0.3
_PART_CHARS = 2**16
_ENDED = {"target_fails": NOTHING_LANDS, "proposed": PROPOSED}
_LIMITS = {"minutes": "minutes", "issues": "issues", "failures": "failures"} | {
    "cost_usd": "cost", "issue_cost_usd": "issue_cost"
}  # fmt: skip
"""The limits of a team, and their options."""
_TYPED = click.core.ParameterSource.COMMANDLINE
_REPLACED = frozenset(("--size", "--issues"))
"""Options that a hint has in place of names."""


def _show(ended: Ended | None) -> None:
    if ended is None:
        return
    for number, each in enumerate(ended.sentences()):
        paragraph(printable(each), bold=number == 0)


@command(
    show=_show,
    opens_hive=False,
    example="queen start --agent claude --size 3\nqueen start ui api --agent './agent.sh'",
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--agent",
    metavar="CLIENT",
    help=f"{', '.join(CLIENTS)}, or several of these; or a command of your own",
)
@click.option("--size", type=click.IntRange(1, 64), help="How many agents  [default: 3]")
@click.option("--issues", "only", multiple=True, metavar="ISSUE", help="Only this one; repeatable")
@click.option("--plan", metavar="FILE", help="Import this plan, and do its beads")
@click.option("--until-done", is_flag=True, help="Wait also for what others do")
@click.option("--until-proposed", is_flag=True, help="Do not wait for pull requests to be merged")
@click.option("--args", metavar="OPTIONS", help="Options for the client, as in a shell")
@click.option("--yolo", is_flag=True, help="Let the clients do everything without asking")
@click.option("--interactive", is_flag=True, help="Open the client here, or several in tmux")
@click.option("--max-minutes", type=click.FloatRange(0), default=0, help="End after so long")
@click.option("--max-issues", type=click.IntRange(0), default=0, help="End after so many issues")
@click.option(
    "--max-failures", type=click.IntRange(0), default=0, help="End after so many failed runs"
)
@click.option("--max-cost", type=click.FloatRange(0), default=0, help="End after so many dollars")
@click.option(
    "--max-issue-cost", type=click.FloatRange(0), default=0, help="Leave an issue that cost so much"
)
@click.option("--no-trial", is_flag=True, help="Do not try first whether work can land")
@click.option("--logs", metavar="NAME", help="Follow the output of an agent's last run")
@adopts
@id_prefix
def start(  # noqa: PLR0913 - the options of a command
    call: Invocation,
    names: tuple[str, ...],
    agent: str | None,
    size: int | None,
    only: tuple[str, ...],
    plan: str | None,
    until_done: bool,
    until_proposed: bool,
    args: str | None,
    yolo: bool,
    interactive: bool,
    no_trial: bool,
    logs: str | None,
    adopt: tuple[str, ...],
    prefix: str | None,
    **most: Any,
) -> Answer:
    """Start a team of agents, and look after them

    Makes a worktree for each agent, and starts the client in it, without a screen of its own. An
    agent that ends with work left is started again; after three ends on one issue, this goes back
    for others, with its work on a branch. It runs until everything is done: Ctrl-C once lets all
    finish their issue, twice stops them.

    A command of your own gets the briefing on standard input and the issue in QUEEN_ISSUE. It works
    on one issue, and what it made is landed when it ends.

    Agents work only in worktrees and on branches that QueenBee made for them. --adopt BRANCH takes
    over a branch of yours and its worktree: all that is there may be worked on and landed.

    Before the first agent begins, it tries whether work can land: the set-up, an empty commit with
    the project's hooks, and the check, on the main branch itself. What has passed is kept.

    Exit 0: everything is done. Exit 1: something is left, and the output says why. Exit 3: nothing
    can land here. Exit 10: all that is left is proposed and not merged, or waits for that.
    """
    from queenbee.library import teams  # noqa: PLC0415 - start-up
    from queenbee.starting import crew, limits  # noqa: PLC0415 - start-up

    hive = _hive(call)
    if logs is not None:
        return _follow(hive, logs)
    _refuse_agents(hive, agent, args, yolo=yolo)
    for each in adopt:
        ownership.adopt(hive.layout, each)
    wanted = crew.Wanted(
        names=names,
        size=size or 0,
        agent=agent or "",
        only=teams.issues_of(hive, only, plan, prefix),
        until_done=until_done,
        until_proposed=until_proposed,
        args=teams.options_of(hive, None if args is None else shlex.split(args)),
        yolo=yolo,
        is_tried=not no_trial,
        limits=limits.Limits(**{name: most[f"max_{each}"] for name, each in _LIMITS.items()}),
    )
    return _started(hive, wanted, opens=interactive)


def _with_typed(hint: str) -> str:
    """Returns a hint whose `queen start` has also the other arguments that were typed."""
    context = click.get_current_context()
    typed = []
    for each in context.command.params:
        value = context.params.get(each.name or "")
        is_named = isinstance(each, click.Option)
        if not value or context.get_parameter_source(each.name or "") is not _TYPED:
            continue
        if each.opts[0] in hint or not (is_named or _REPLACED.isdisjoint(hint.split())):
            continue
        for one in value if isinstance(value, tuple) else [value]:
            typed += [each.opts[0]] * is_named + [shell_word(str(one))] * (one is not True)
    return hint.replace("queen start --", " ".join(["queen start", *typed, "--"]), 1)


def _refuse_agents(hive: Hive, agent: str | None, args: str | None, *, yolo: bool) -> None:
    """Raises `Untrusted` for an agent that names a program, or lets a client do more than usual."""
    typed = [Proposal(OPTIONS, "--yolo", origin="queen start")] if yolo else []
    if args:
        typed.append(Proposal(OPTIONS, args, origin="--args"))
    if agent and not {*agent.split(",")} <= {*CLIENTS}:
        typed.append(Proposal(COMMAND, agent, origin="--agent"))
    Consent.of(hive).require_typed(*typed)


def _started(hive: Hive, wanted: Wanted, *, opens: bool) -> Answer:
    try:
        return _looked_after(hive, wanted, opens=opens)
    except QueenError as error:
        error.hint = error.hint and _with_typed(error.hint)
        raise


def _looked_after(hive: Hive, wanted: Wanted, *, opens: bool) -> Answer:
    from queenbee.library import teams  # noqa: PLC0415 - start-up
    from queenbee.starting.crew import Crew  # noqa: PLC0415 - start-up

    hive.tell = _said
    ask = partial(_lets_run, hive) if _asks() else None
    crew = Crew(hive, wanted, env=os.environ, tell=_said, ask=ask)
    # Nobody is asked anything where nothing can land; what else is in the way, the team tells.
    teams.refuse_hindered(hive, _said if opens else lambda text: None)
    _settle_check(hive, [each.name for each in crew.clients().values()] if _asks() else [])
    teams.ask_unseen(hive, unchecked=True)
    if opens:
        crew.open()
        return Answer(None, yes=True)
    ended = hive.team(
        *wanted.names,
        size=wanted.size,
        agent=wanted.agent,
        issues=wanted.only or (),
        until_done=wanted.until_done,
        until_proposed=wanted.until_proposed,
        args=wanted.args,
        yolo=_lets_do_all(hive, crew, wanted) or wanted.yolo,
        no_trial=not wanted.is_tried,
        unchecked=True,
        limits=wanted.limits,
        ask=ask,
        on_progress=_Screen(),
    )
    return Answer(ended, yes=ended.is_done, no=_ENDED.get(ended.why.code, NO))


def _lets_do_all(hive: Hive, crew: Crew, wanted: Wanted) -> bool:
    """Tells what the clients will ignore here, and asks a person at a terminal whether they may do
    everything, if they could else do nothing. Raises `InvalidInput` if not.
    """
    place = place_of(hive.layout.tree, os.environ, user=False)
    names = sorted({each.name for each in crew.clients().values() if each.name in AGENTS})
    found = [each for name in names for each in ignored(AGENTS[name], place)]
    for each in found:
        if each.stake == CONNECTION or not wanted.yolo:
            _said(f"ignored by {each}")
    if wanted.yolo or wanted.args or all(each.stake != WORK for each in found) or not _asks():
        return False
    if not click.confirm(
        "Nobody sits before them to say yes. Let them do everything, as --yolo does?", err=True
    ):
        cures = dict.fromkeys(each.cure for each in found if each.stake == WORK)
        raise InvalidInput(
            "they could do nothing, so no agent was started",
            hint=f"{'; '.join(cures)}; then queen start --args OPTIONS, such as "
            "'--permission-mode acceptEdits' for Claude Code",
        )
    return True


def _asks() -> bool:
    return sits_here(is_json=invocation().json)


def _hive(call: Invocation) -> Hive:
    """Returns the hive; without one, a person at a terminal is asked whether to make it."""
    try:
        hive = call.hive
    except NoHive:
        if git_tree(where := working_directory()) is None:
            raise outside_git(where) from None
        if not _asks() or not click.confirm("There is no hive here. Make one?", err=True):
            raise
        for path in Hive.init().made:
            tell(f"made {printable(path)}")
        hive = call.hive
    if hive.look_again is not None:
        hive.look_again()
    return hive


def _said(text: str) -> None:
    if invocation().json:
        tell(text)
    else:
        say(f"{time.strftime('%H:%M:%S')} {printable(text)}")
        sys.stdout.flush()


def _settle_check(hive: Hive, clients: Sequence[str]) -> None:
    way = settle_check(invocation(), hive.layout)
    if way:
        raise InvalidInput(
            "no check is set, so nothing that the agents make would land",
            hint=f"{way}; to check nothing: queen config set land.check true",
        )
    _ask_for_all(hive, clients)


def _ask_for_all(hive: Hive, clients: Sequence[str]) -> None:
    """Asks a person once for everything that the team may run; without one, only the check and the
    set-up have to be seen, and issues whose commands are not wait.
    """
    from queenbee.git.landing.judged.judging import unseen  # noqa: PLC0415 - start-up

    if _asks():
        settings = unseen_settings(hive.layout, hive.layout.tree, os.environ, clients)
        with suppress(Untrusted):  # What the person does not want to run waits.
            Consent.of(hive).require([*unseen(hive), *settings])
        hive.asks_person = None


def _lets_run(hive: Hive, unseen: Sequence[Proposal]) -> bool:
    """Asks the person who started the team for what nobody has seen; returns whether it may run."""
    consent = replace(Consent.of(hive), ask=partial(lets_run, hive.layout))
    with suppress(Untrusted, click.Abort):
        consent.require(unseen)
        return True
    return False


class _Screen:
    """Shows now and then who does what."""

    def __init__(self) -> None:
        self._shown_s = time.monotonic()

    def __call__(self, entries: Sequence[roster.Entry]) -> None:
        if time.monotonic() < self._shown_s + _SHOW_EVERY_S or invocation().json:
            return
        self._shown_s = time.monotonic()
        show_roster(entries)


def show_roster(entries: Sequence[roster.Entry]) -> None:
    """Shows a line for each agent that is looked after."""
    now_ms = time.time_ns() // 1_000_000
    rows = [
        [
            each.name, each.client, each.issue_id, each.state,
            ago(each.since_ms, now_ms) if each.since_ms else "", str(each.landed or ""),
        ]
        for each in entries
    ]  # fmt: skip
    table(["AGENT", "CLIENT", "ISSUE", "STATE", "SINCE", "LANDED"], rows, empty="", spare=["SINCE"])


def _follow(hive: Hive, name: str) -> Answer:
    """Prints the output of an agent, and what is added, until the agent or the reader ends."""
    path = roster.log_path(hive.layout, name)
    if not is_name(name) or not os.path.exists(path):
        raise NotFound(f"no agent called {name} has run here", hint="queen status")
    rest = ""
    for text in _output(hive, name, path):
        *lines, rest = (rest + text).split("\n")
        for each in (said for line in lines for said in _readable(line)):
            say(printable(each, keep_newlines=True))
    if rest:
        say(printable(rest))
    return Answer(None, yes=True)


def _output(hive: Hive, name: str, path: str) -> Iterator[str]:
    """Yields what an agent printed in its last run. A file that is full gets another name, and the
    next follows.
    """
    full = f"{path}.1"
    begins_at, before_at = _last_run(path), _last_run(full)
    if max(begins_at, before_at) > 1:
        tell(f"what it printed in earlier runs: {printable(path)}")
    if not begins_at:
        with suppress(FileNotFoundError), _opened(full) as file:
            file.seek(before_at)
            while text := file.read(_PART_CHARS):
                yield text
    while True:
        with _opened(path) as file:
            file.seek(begins_at)
            begins_at, is_full = 0, False
            while not is_full:
                is_running = roster.looked_after(hive.layout, name)
                with suppress(FileNotFoundError):
                    is_full = not os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
                while text := file.read(_PART_CHARS):
                    yield text
                if not is_running and not is_full:
                    return
                time.sleep(_FOLLOW_S)


def _last_run(path: str) -> int:
    """Returns where in a file with an agent's output its last run begins; 0 if not there."""
    with suppress(FileNotFoundError):
        fd = safe_open.open_file(path, os.O_RDONLY)
        with os.fdopen(fd, "rb") as file:
            return file.read().rfind(f"\n{roster.RUN}".encode()) + 1
    return 0


def _opened(path: str) -> TextIO:
    return os.fdopen(safe_open.open_file(path, os.O_RDONLY), errors="replace")


def _readable(line: str) -> list[str]:
    """Returns what an agent says and calls, of an event that Claude Code prints, and what a landing
    says; any other line as it is.
    """
    if line.startswith(roster.RUN):
        return [f"--- {line.removeprefix(roster.RUN)} ---"]
    event = None
    with suppress(ValueError, RecursionError):
        event = json.loads(line)
    if isinstance(event, dict) and {"landing", "error", "notices"} & {*event}:
        return _landing_words(event) or [line]
    if not isinstance(event, dict) or "type" not in event:
        return [line]
    message = event.get("message") if event["type"] == "assistant" else None
    parts = message.get("content") if isinstance(message, dict) else None
    found = []
    for part in parts if isinstance(parts, list) else ():
        given = part.get("input") if isinstance(part, dict) else None
        if isinstance(given, dict):
            found.append(f"{part.get('name')}: {next(iter(given.values()), '')}")
        elif isinstance(part, dict) and part.get("text"):
            found.append(str(part["text"]))
    return found


def _landing_words(document: dict[str, object]) -> list[str]:
    """Returns what a landing that `queen start` has run says in JSON, in words."""
    landing, error, notices = (document.get(name) for name in ("landing", "error", "notices"))
    found = [str(each) for each in notices] if isinstance(notices, list) else []
    if isinstance(landing, dict) and landing.get("landed"):
        found.append(f"landed on {landing.get('target')} as {str(landing.get('commit'))[:10]}")
    elif isinstance(landing, dict):
        found += [*str(landing.get("output")).splitlines(), "the check failed; nothing was landed"]
    if isinstance(error, dict):
        found += [f"queen: {error.get('message')}"]
        found += [f"{HINT}{error['hint']}"] if error.get("hint") else []
    return found
