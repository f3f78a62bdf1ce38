"""The entry point of `queen`: parses, calls, and turns every refusal into its exit status."""

from __future__ import annotations

import gc
import io
import json
import os
import sys
from contextlib import suppress

import click

from queenbee.cli import exits
from queenbee.cli.app import Invocation, QueenGroup
from queenbee.cli.rendering import error_document
from queenbee.cli.terminal import aside
from queenbee.core.text import printable
from queenbee.errors import QueenError, Unwritable
from queenbee.version import __version__

_MODULES = {
    "init": "hive",
    "where": "hive",
    "whoami": "hive",
    "version": "hive",
    "next": "work",
    "status": "work",
    "wait": "work",
    "msg": "msg",
    "assign": "assignments",
    "claim": "assignments",
    "release": "assignments",
    "complete": "assignments",
    "assignments": "assignments",
    "reserve": "reservations",
    "unreserve": "reservations",
    "renew": "reservations",
    "reserved": "reservations",
    "check": "reservations",
    "overlap": "reservations",
    "conflicts": "reservations",
    "issues": "issues",
    "show": "issues",
    "ready": "issues",
    "verify": "verify",
    "run": "verify",
    "bead": "bead",
    "plan": "plan",
    "gate": "gate",
    "session": "session",
    "history": "history",
    "doctor": "doctor",
    "index": "index",
    "stats": "index",
    "rotate": "index",
    "guard": "guard",
    "hooks": "hooks",
    "completion": "hive",
}
"""The commands in the order of the help, each with its module in `cli.commands`."""

_HELP = """Share one repository among coding agents: messages, assignments and file
reservations in .beads/, with no server.

\b
A typical run: queen init, queen plan import PLAN.md, queen ready,
queen claim ISSUE, queen reserve PATTERN..., work, queen msg send,
queen verify ISSUE, queen gate run, queen complete ISSUE."""


def _version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"queen {__version__}")
        ctx.exit()


queen = QueenGroup(
    "queen",
    modules=_MODULES,
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
    code = run(sys.argv[1:])
    for stream in streams:
        with suppress(OSError):
            stream.flush()
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
    except QueenError as error:
        refusal = error
    except click.exceptions.NoArgsIsHelpError as error:
        aside(error.format_message())
        return exits.USAGE
    except click.ClickException as error:
        refusal = _usage_error(error)
    except (KeyboardInterrupt, click.Abort):
        refusal = exits.Interrupted("interrupted")
    except BrokenPipeError:
        _discard_output()
        return code
    except Exception as error:
        if os.environ.get("QUEEN_DEBUG"):
            raise
        refusal = _bug(error)
    _report(refusal, call, as_json=as_json)
    if isinstance(refusal, Unwritable):
        _discard_output()
    return code if refusal is None else exits.exit_code(refusal)


def _invoke(arguments: list[str], call: Invocation) -> int:
    """Returns the exit status that the command itself decides."""
    if "_QUEEN_COMPLETE" in os.environ:
        queen.main(arguments, prog_name="queen")
    # Not click's own `main`: it turns a closed pipe into exit 1, which means "no" here.
    try:
        with queen.make_context("queen", list(arguments), obj=call) as context:
            code = queen.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return code if isinstance(code, int) else exits.DONE


def _discard_output() -> None:
    """Keeps the interpreter from writing again, at exit, what could not be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_of_options(arguments: list[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)


def _usage_error(error: click.ClickException) -> QueenError:
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context is not None else "queen --help"
    message = " ".join(error.format_message().split())
    if message.startswith("Got unexpected extra argument"):
        hint = f"put quotes around text that contains spaces; {hint}"
    return exits.UsageError(message, hint=hint)


def _bug(error: Exception) -> QueenError:
    return exits.Bug(
        f"a bug in queen: {type(error).__name__}: {error}",
        hint="run it again with QUEEN_DEBUG=1 and report what it prints",
    )


def _report(error: QueenError | None, call: Invocation, *, as_json: bool) -> None:
    """Prints a refusal; under `--json` together with all notices, as one document."""
    if as_json:
        document = error_document(error) if error is not None else {}
        if call.notices:
            document["notices"] = call.notices
        if document:
            aside(json.dumps(document, ensure_ascii=False, default=str))
    elif error is not None:
        aside(f"queen: {printable(error.message)}")
        if error.hint:
            aside(f"  try: {printable(error.hint)}")
