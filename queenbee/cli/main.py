"""The entry point of `queen`: parses, calls, and turns every refusal into its exit status."""

from __future__ import annotations

import gc
import io
import json
import os
import re
import sys
from contextlib import suppress

import click

from queenbee.cli import exits, outliving
from queenbee.cli.app import Invocation, QueenGroup
from queenbee.cli.terminal import aside
from queenbee.core.json_form import error_document
from queenbee.core.names import PERSON
from queenbee.core.text import HINT, printable, shell_word
from queenbee.errors import Bug, NoActor, NoHive, QueenError, Unwritable
from queenbee.store import layout
from queenbee.store.git_trees import git_tree
from queenbee.version import __version__

_SECTIONS = {
    title: dict(each.split(":") for each in commands.split())
    for title, commands in {
        "For you": """
            init:care.hive setup:care.setup start:start status:work answer:msg watch:watch
            report:care.report
            issue:issue plan:plan config:care.config doctor:care.doctor sync:care.sync
        """,
        "For agents": """
            next:work land:land complete:work claim:assignments release:assignments issues:issues
            show:issues note:assignments msg:msg reserve:reservations review:land
        """,
        "Plans and checks": "bead:bead gate:gate session:session",
        "More": """
            log:care.log undo:care.undo worktree:worktree hive:care.hive guard:care.guard
            mcp:care.for_agents prime:care.for_agents prompt:care.for_people completion:care.hive
            version:care.hive help:care.hive schema:care.schema
        """,
    }.items()
}
"""The commands in the order of the help, each with its module in `cli.commands`."""
_HIDDEN = {
    f"reserve {name}": "reservations"
    for name in ("list", "release", "renew", "check", "overlap", "conflicts")
}
"""What the help of another command shows."""


_HELP = """Share one repository among coding agents: issues, messages, files, with no server.
An agent's loop: queen next, work, queen land -m TEXT --next."""


def _version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"queen {__version__}")
        ctx.exit()


@click.pass_context
def _status_or_help(context: click.Context) -> int | None:
    """Shows the status of the hive for a `queen` without a command; outside one, what to do."""
    if context.invoked_subcommand is not None:
        return None
    call = context.ensure_object(Invocation)
    try:
        hive = call.hive
    except NoHive:
        if call.json or call.beads_dir:
            raise
        where = layout.working_directory()
        make = "queen init" if git_tree(where) is not None else "git init && queen init"
        width = max(len(make), len("queen --help")) + 2
        click.echo(f"there is no hive in {printable(where)}")
        click.echo(f"next: {make:<{width}}to make one")
        click.echo(f"      {'queen --help':<{width}}to see every command")
        return exits.USAGE
    status = queen.get_command(context, "status")
    assert status is not None and hive is not None
    with status.make_context("status", [], parent=context) as inner:
        code = status.invoke(inner)
    return code if isinstance(code, int) else exits.DONE


queen: QueenGroup = QueenGroup(
    "queen",
    sections=_SECTIONS,
    hidden=_HIDDEN,
    invoke_without_command=True,
    callback=_status_or_help,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit",
        )
    ],
    help=_HELP,
    context_settings={"max_content_width": 100},
)


def main() -> None:
    """Runs `queen` and exits with its status."""
    # A command lives for milliseconds. Garbage collection and an orderly shutdown of the
    # interpreter cost 5 of them, and free only what the kernel frees anyway.
    gc.disable()
    # None if the caller closed it. What is opened here stays open until exit.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    streams = [each for each in (sys.stdout, sys.stderr) if isinstance(each, io.TextIOWrapper)]
    for stream in streams:
        # Escapes the characters that the terminal's encoding lacks.
        stream.reconfigure(errors="backslashreplace")
    shown = outliving.begin(sys.argv[1:])
    code = run(sys.argv[1:]) if shown is None else shown
    for stream in streams:
        with suppress(OSError):
            stream.flush()
    if outliving.worker is not None:
        outliving.worker.end(code)
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit status; no refusal ends in a traceback."""
    call = Invocation()
    as_json = "--json" in arguments[: _end_of_options(arguments)]
    code = exits.DONE
    refusal: QueenError | None = None
    try:
        code = _invoke(arguments, call)
        sys.stdout.flush()
        call.send()
    except QueenError as error:
        refusal = exits.on_a_full_disk(error)
    except click.exceptions.NoArgsIsHelpError as error:
        aside(error.format_message())
        return exits.USAGE
    except click.ClickException as error:
        refusal = _usage_error(error, arguments)
    except (KeyboardInterrupt, click.Abort):
        refusal = exits.Interrupted("interrupted")
    except BrokenPipeError:
        _discard_output()
        return code
    except Exception as error:
        if os.environ.get("QUEEN_DEBUG"):
            raise
        refusal = Bug.of(error)
    _report(refusal, call, as_json=as_json)
    if isinstance(refusal, Unwritable):
        _discard_output()
    return code if refusal is None else exits.exit_code(refusal)


def _invoke(arguments: list[str], call: Invocation) -> int:
    """Returns the exit status that the command itself decides."""
    if "_QUEEN_COMPLETE" in os.environ:
        from queenbee.cli.shell_completion import answer  # noqa: PLC0415 - start-up

        return answer(queen, call)
    # Not click's own `main`: it turns a closed pipe into exit 1, which means "no" here.
    try:
        with queen.make_context("queen", list(arguments), obj=call) as context:
            code = queen.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except NoActor as error:
        _as_person(error, arguments, is_json=call.json)
        raise
    return code if isinstance(code, int) else exits.DONE


def _as_person(error: NoActor, arguments: list[str], *, is_json: bool) -> None:
    """Gives a person without a name, who sits here, the line to type."""
    from queenbee.cli.person import sits_here  # noqa: PLC0415 - start-up
    from queenbee.store.droids.identity import nobody  # noqa: PLC0415 - start-up

    if "--" not in arguments and error.hint == nobody().hint and sits_here(is_json=is_json):
        line = " ".join(["queen", *map(shell_word, arguments), "--as", PERSON])
        error.hint = f"{line}; or, as a droid, --as NAME"


def _discard_output() -> None:
    """Keeps the interpreter from writing again, at exit, what could not be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_of_options(arguments: list[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)


def _usage_error(error: click.ClickException, arguments: list[str]) -> QueenError:
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context is not None else "queen --help"
    hint = getattr(error, "hint", hint)
    message = " ".join(error.format_message().split())
    if message.startswith("Got unexpected extra argument"):
        way = "put quotes around text that contains spaces" if _has_words(context) else "without it"
        hint = _beside(context, arguments) or f"{way}; {hint}"
    return exits.UsageError(message, hint=hint)


def _has_words(context: click.Context | None) -> bool:
    """Returns whether the command takes anything but options."""
    return context is None or any(
        isinstance(each, click.Argument) for each in context.command.params
    )


def _beside(context: click.Context | None, arguments: list[str]) -> str | None:
    """Returns the corrected line for words that another command takes."""
    from queenbee.cli import near_words  # noqa: PLC0415 - start-up

    name = context.info_name if context is not None else None
    if context is None or name not in arguments:
        return None
    if name == "undo":
        return near_words.TAKING_BACK
    rest = arguments[arguments.index(name) + 1 :]
    command = near_words.beside(context.command_path.removeprefix("queen "), rest)
    if command is None:
        return near_words.quoted(context, [each for each in rest if each != "--json"])
    return near_words.line(context, command, rest)


def _with_options(hint: str, call: Invocation) -> str:
    """Returns a hint whose commands are for the same hive and the same droid."""
    said = {"--beads-dir": call.beads_dir, "--as": call.actor}
    again = " ".join(
        f"{option} {shell_word(value)}"
        for option, value in said.items()
        if value and option not in hint
    )
    if not again:
        return hint
    names = {name for section in _SECTIONS.values() for name in section} | {*_HIDDEN}
    known = "|".join(sorted({each.split(" ")[0] for each in names}))
    # What is in quotes is others' text, and no command.
    parts = re.split(r"('(?:[^']|'\\'')*'|“[^”]*”)", hint)
    parts[::2] = [
        re.sub(rf"\bqueen (?=(?:{known})\b)", lambda _: f"queen {again} ", one)
        for one in parts[::2]
    ]
    return "".join(parts)


def _report(error: QueenError | None, call: Invocation, *, as_json: bool) -> None:
    """Prints a refusal; under `--json` together with all notices, as one document."""
    if error is not None and outliving.worker is not None:
        outliving.worker.said = error.message
    if error is not None and error.hint:
        error.hint = _with_options(error.hint, call)
    if as_json:
        document = error_document(error) if error is not None else {}
        if call.notices:
            document["notices"] = call.notices
        if document:
            aside(json.dumps(document, ensure_ascii=False, default=str))
    elif error is not None:
        aside(f"queen: {printable(error.message)}")
        for said in getattr(error, "output_lines", ()):
            aside(f"  | {printable(said)}")
        if error.hint:
            aside(f"{HINT}{printable(error.hint)}")
