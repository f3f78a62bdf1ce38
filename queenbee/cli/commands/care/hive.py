"""`queen init`, `where`, `whoami`, `version`, `completion`: the hive itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import queenbee
from queenbee.cli.app import Invocation, QueenGroup, command, group
from queenbee.cli.terminal import say
from queenbee.core.text import HINT, printable
from queenbee.errors import InvalidInput, NoHive, QueenError
from queenbee.store import creating, layout
from queenbee.store.droids import identity, session_names
from queenbee.store.layout import Layout
from queenbee.version import FORMAT

if TYPE_CHECKING:
    from queenbee.library.hives import Glimpse


def _layout(call: Invocation, *, must_exist: bool) -> Layout:
    cwd = layout.working_directory()
    return layout.discover(cwd, os.environ, beads_dir=call.beads_dir, must_exist=must_exist)


def tell_without_hive(call: Invocation) -> None:
    """Prints a notice if there is no hive yet for what was installed."""
    try:
        _layout(call, must_exist=True)
    except NoHive as error:
        call.tell(f"{error.message}; until there is one, everything is allowed: queen init")
    except QueenError:
        return


NEXT = {
    "queen setup": "to connect your coding agents",
    "queen issue new TITLE": "to describe some work",
    "queen start": "to have a team of agents do it",
}
"""What one does in a new hive."""
JOINING = {
    "queen worktree add NAME": "to work on an issue there",
    "queen start": "to have a team of agents do it",
}
"""And in one that is there already."""
OUTSIDE = {"git init": "so that agents get worktrees, and their work can land"}
"""And first, outside git."""
SYNCING = {"queen sync": "to take in what is on the remote"}
"""And first, if there may be records that this clone has never seen."""


def _show_init(value: dict[str, object]) -> None:
    made = value["made"]
    assert isinstance(made, Sequence)
    say(f"The hive is {printable(str(value['beads_dir']))}")
    for path in made:
        say(f"  made {printable(path)}")
    if not made:
        say("  it already exists")
    steps = (OUTSIDE if not value["in_git"] else {}) | (NEXT if made else JOINING)
    if value["elsewhere"]:
        steps = SYNCING | steps
    if value["to_set_check"]:
        steps = steps | {str(value["to_set_check"]): "so that nothing lands untested"}
    if value["to_set_setup"]:
        steps = steps | {str(value["to_set_setup"]): "so that new worktrees work"}
    if value["to_commit"]:
        steps = steps | {str(value["to_commit"]): "so that clones and worktrees have it"}
    width = max(map(len, steps))
    for step, why in steps.items():
        say(f"{'next:' if step == next(iter(steps)) else '':5} {step:{width}}  {why}")


@command(show=_show_init, example="queen init --check 'make test'", opens_hive=False)
@click.option(
    "--check",
    default="",
    metavar="COMMAND",
    help="What must pass before anything lands: land.check",
)
def init(call: Invocation, check: str) -> dict[str, object]:
    """Make a hive in this repository

    Creates .beads/ with its settings (queen.toml) and git attributes. At a terminal, it asks for
    --check, and, if lock files or another tool's settings say one, which command sets up a new
    worktree. Running it again changes nothing else that is set.
    """
    from queenbee.cli.proposing import settle_check, settle_setup, tell_lacking  # noqa: PLC0415 - start-up
    from queenbee.git.contents.uncommitted import hive_to_commit  # noqa: PLC0415 - start-up
    from queenbee.git.outside import outside_git  # noqa: PLC0415 - start-up
    from queenbee.library.hive import Hive  # noqa: PLC0415 - start-up

    made = Hive.init(droid=call.actor, beads_dir=call.beads_dir)
    places = made.layout
    if places.common_dir is None:
        fault = outside_git(places.tree)
        call.tell(f"{fault.message}: no clone or worktree will share the hive")
        call.tell(f"{HINT}{fault.hint}")
    elif places.settings.sync_ledgers == "branch":
        _take_in(call)
    settle_records(call)
    if places.git_dir is not None:
        tell_lacking(call, places)
    return {
        "beads_dir": places.beads_dir,
        "made": made.made,
        "elsewhere": creating.is_only_elsewhere(places),
        "in_git": places.common_dir is not None,
        "to_set_check": settle_check(call, places, check) if check or places.common_dir else "",
        "to_set_setup": settle_setup(call, places) if places.common_dir is not None else "",
        "to_commit": hive_to_commit(
            places, layout.working_directory()
        ),  # Last: what was set is to be committed, too.
    }


def settle_records(call: Invocation) -> None:
    """Moves the records to a branch of their own, if pull requests want that."""
    if call.hive.layout.settings.land_by == "pr":
        from queenbee.git.remote.relocating import settle  # noqa: PLC0415 - start-up

        settle(call.hive, call.tell)


def _take_in(call: Invocation) -> None:
    """Fetches the records of a hive that git does not carry with the code."""
    from queenbee.git.remote.syncing import take_in  # noqa: PLC0415 - start-up

    try:
        done = take_in(call.hive, at_first=True)
    except QueenError as error:
        call.tell(f"the records are on a branch of the remote: {error.message}; try: queen sync")
    else:
        call.tell(f"took in {done.taken} lines from {done.branch} of {done.remote}")


def _show_where(value: dict[str, object]) -> None:
    for key in ("beads_dir", "state_dir", "tree", "worktree", "actor", "droids", "issues"):
        if value[key] is not None:
            say(f"{key.replace('_', ' '):10} {printable(str(value[key]))}")
    how, above = value["how"], value["above"]
    assert isinstance(how, list)
    assert isinstance(above, list)
    for step in how:
        say(f"  because {printable(step)}")
    for beads in above:
        say(f"above      {printable(beads)}: its reservations hold here too")


@command(show=_show_where, example="queen hive where", opens_hive=False)
def where(call: Invocation) -> dict[str, object]:
    """Show which hive is used here, and why"""
    places = _layout(call, must_exist=True)
    found = session_names.find_actor(places, os.environ, call.actor)
    return {
        "beads_dir": places.beads_dir,
        "state_dir": places.state_dir,
        "tree": places.tree,
        "worktree": places.worktree,
        "actor": found[0] if found else None,
        "actor_from": found[1] if found else None,
        "droids": places.settings.droids,
        "issues": places.settings.issues,
        "durability": places.settings.durability,
        "how": places.how,
        "above": _above(call),
    }


def _above(call: Invocation) -> list[str]:
    """Returns the other hives that govern files here: their leases hold too."""
    cwd = layout.working_directory()
    found = layout.governing(cwd, os.environ, beads_dir=call.beads_dir)
    return [each.beads_dir for each in found][1:]


def _show_whoami(value: dict[str, object]) -> None:
    say(f"{value['droid'] or 'nobody'}  ({printable(str(value['from']))})")


@command(show=_show_whoami, example="queen hive whoami --set ui-engineer", opens_hive=False)
@click.option("--set", "name", metavar="NAME", help="Remember NAME for this worktree")
@click.option("--unset", is_flag=True, help="Forget the name that this worktree remembers")
def whoami(call: Invocation, name: str | None, unset: bool) -> dict[str, object]:
    """Show which droid acts in this worktree, or set it"""
    if unset:
        identity.forget(call.hive.layout)
        return {"droid": None, "from": call.hive.layout.identity_path}
    if name is not None:
        # Acts as that name, so that it can replace an invalid one that was remembered.
        call.actor = name
        call.hive.droids.check(name)
        identity.remember(call.hive.layout, name)
        first = next((each for each in identity.VARIABLES if os.environ.get(each)), None)
        if first is not None and os.environ[first] != name:
            call.tell(f"{first}={os.environ[first]} overrides it while that is set")
        return {"droid": name, "from": call.hive.layout.identity_path}
    places = call.hive.layout
    found = session_names.find_actor(places, os.environ, call.actor)
    if found is None:
        raise identity.nobody()
    return {"droid": call.hive.droids.check(found[0]), "from": found[1]}


def _show_hives(found: Sequence[Glimpse]) -> None:
    from queenbee.cli.commands.work import show_hives  # noqa: PLC0415 - start-up

    show_hives(found)


@command(show=_show_hives, example="queen hive list --json", opens_hive=False)
def list_(call: Invocation) -> Sequence[Glimpse]:
    """List the hives that you have opened

    For each of them: what waits for you there, and who is at work. queen status --all shows it.
    """
    from queenbee.library import hives  # noqa: PLC0415 - start-up

    return hives.glimpses(droid=call.actor)


@command(
    show=lambda value: say(f"forgot {printable(value['root'])}"),
    example="queen hive forget ~/shop",
    opens_hive=False,
)
@click.argument("place", metavar="DIR")
def forget(call: Invocation, place: str) -> dict[str, str]:
    """Leave a hive out of queen status --all, until you open it again"""
    from queenbee.library import hives  # noqa: PLC0415 - start-up

    return {"root": hives.forget(place)}


@command(
    show=lambda value: say(f"queen {value['version']}"), example="queen version", opens_hive=False
)
def version(call: Invocation) -> dict[str, object]:
    """Show the version, and with --json also that of the format"""
    return {"version": queenbee.__version__, "format": FORMAT}


@command(
    show=lambda value: say(value["help"]),
    example="queen help reserve\nqueen help msg send",
    opens_hive=False,
)
@click.argument("command_path", nargs=-1, metavar="[COMMAND]...")
@click.option("--man", is_flag=True, help="The help of all commands, as a manual page")
def help_(call: Invocation, command_path: tuple[str, ...], man: bool) -> dict[str, object]:
    """Show the help of queen or of a command"""
    context = click.get_current_context().find_root()
    found: click.Command = context.command
    if man:
        from queenbee.cli.man_page import man_page  # noqa: PLC0415 - start-up

        assert isinstance(found, click.Group)
        return {"help": man_page(found, queenbee.__version__)}
    for name in command_path:
        if not isinstance(found, click.Group):
            break
        try:
            _, inner, _ = found.resolve_command(context, [name])
        except click.UsageError as error:
            words = str(getattr(error, "hint", "queen")).split()
            named = [each for each in words[1:] if not each.startswith("-")]
            error.hint = " ".join(["queen help", *named])  # type: ignore[attr-defined]
            raise
        assert inner is not None
        found, context = inner, click.Context(inner, info_name=name, parent=context)
    return {"help": found.get_help(context)}


def _show_completion(value: dict[str, str]) -> None:
    if not value["path"]:
        say(value["script"])
        return
    say(f"wrote {printable(value['path'])}")
    say(f"next: {value['next']}")


@command(
    show=_show_completion,
    example='queen completion bash --install\neval "$(queen completion bash)"',
    opens_hive=False,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
@click.option("--install", is_flag=True, help="Write it to where the shell looks for it")
def completion(call: Invocation, shell: str, install: bool) -> dict[str, str]:
    """Print the completion script for a shell: bash, zsh or fish"""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - start-up

    from queenbee.cli import shell_completion  # noqa: PLC0415 - start-up

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - the choice above allows only what click has
        raise InvalidInput(f"no completion for {shell}")
    queen = click.get_current_context().find_root().command
    script = kind(queen, {}, "queen", "_QUEEN_COMPLETE").source()
    path, then = shell_completion.install(shell, script, os.environ) if install else ("", "")
    return {"script": script, "path": path, "next": then}


hive: QueenGroup = group(
    "hive",
    [where, whoami, list_, forget],
    help="The hive: where it is, its history, size and engine",
    example="queen hive where\nqueen hive history qb-42",
    more="history:care.records stats:care.records rotate:care.records "
    "delete:care.records migrate:care.records index:care.records engine:care.engine",
)
