"""The entry point of `queen`: parse, call, and turn every refusal into its exit status."""

from __future__ import annotations

import gc
import io
import os
import sys
from contextlib import suppress

import click

from queenbee.cli import exits
from queenbee.cli.app import QueenGroup, Session, aside, error_document
from queenbee.errors import QueenError, Unwritable
from queenbee.version import __version__

_HOMES = {
    "init": "queenbee.cli.commands.hive:init",
    "where": "queenbee.cli.commands.hive:where",
    "whoami": "queenbee.cli.commands.hive:whoami",
    "version": "queenbee.cli.commands.hive:version",
    "msg": "queenbee.cli.commands.msg:msg",
    "assign": "queenbee.cli.commands.assignments:assign",
    "claim": "queenbee.cli.commands.assignments:claim",
    "release": "queenbee.cli.commands.assignments:release",
    "complete": "queenbee.cli.commands.assignments:complete",
    "assignments": "queenbee.cli.commands.assignments:assignments",
    "reserve": "queenbee.cli.commands.reservations:reserve",
    "unreserve": "queenbee.cli.commands.reservations:unreserve",
    "renew": "queenbee.cli.commands.reservations:renew",
    "reserved": "queenbee.cli.commands.reservations:reserved",
    "check": "queenbee.cli.commands.reservations:check",
    "overlap": "queenbee.cli.commands.reservations:overlap",
    "conflicts": "queenbee.cli.commands.reservations:conflicts",
    "issues": "queenbee.cli.commands.issues:issues",
    "show": "queenbee.cli.commands.issues:show",
    "ready": "queenbee.cli.commands.issues:ready",
    "verify": "queenbee.cli.commands.verify:verify",
    "run": "queenbee.cli.commands.verify:run",
    "bead": "queenbee.cli.commands.bead:bead",
    "plan": "queenbee.cli.commands.plan:plan",
    "gate": "queenbee.cli.commands.gate:gate",
    "session": "queenbee.cli.commands.session:session",
    "history": "queenbee.cli.commands.history:history",
    "doctor": "queenbee.cli.commands.doctor:doctor",
    "index": "queenbee.cli.commands.index:index",
    "stats": "queenbee.cli.commands.index:stats",
    "rotate": "queenbee.cli.commands.index:rotate",
    "guard": "queenbee.cli.commands.guard:guard",
    "hooks": "queenbee.cli.commands.hooks:hooks",
    "completion": "queenbee.cli.commands.hive:completion",
}

_HELP = """Share one repository among coding agents: messages, assignments and file
reservations in .beads/, with no server.

\b
The story: queen init, queen plan import PLAN.md, queen ready,
queen claim ISSUE, queen reserve PATTERN..., work, queen msg send,
queen verify ISSUE, queen gate run, queen complete ISSUE."""


def _version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"queen {__version__}")
        ctx.exit()


queen = QueenGroup(
    "queen",
    homes=_HOMES,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and leave",
        )
    ],
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Runs `queen` and leaves with its exit status."""
    # A command lives for milliseconds. Collecting cycles and taking the interpreter apart in an
    # orderly way cost 5 of them, and give back only what the kernel gives back anyway.
    gc.disable()
    # None where the caller closed it; what is opened here stays open to the end.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    streams = [each for each in (sys.stdout, sys.stderr) if isinstance(each, io.TextIOWrapper)]
    for stream in streams:
        # What an older terminal cannot show is spelled out.
        stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    for stream in streams:
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit status; no refusal leaves as a traceback."""
    session = Session()
    as_json = "--json" in arguments[: _end_of_options(arguments)]
    code = exits.DONE
    try:
        code = _called(arguments, session)
        sys.stdout.flush()
    except QueenError as error:
        _say(error, session, as_json=as_json)
        if isinstance(error, Unwritable):
            _let_go_of_stdout()
        return exits.exit_code(error)
    except click.exceptions.NoArgsIsHelpError as error:
        aside(error.format_message())
        return exits.USAGE
    except click.ClickException as error:
        _say(_usage_error(error), session, as_json=as_json)
        return exits.USAGE
    except (KeyboardInterrupt, click.Abort):
        _say(_interrupted(), session, as_json=as_json)
        return exits.INTERRUPTED
    except BrokenPipeError:
        _let_go_of_stdout()
        return code
    except Exception as error:
        if os.environ.get("QUEEN_DEBUG"):
            raise
        _say(_bug(error), session, as_json=as_json)
        return exits.BUG
    _say(None, session, as_json=as_json)
    return code


def _called(arguments: list[str], session: Session) -> int:
    """Returns the exit status that the command itself decides."""
    if "_QUEEN_COMPLETE" in os.environ:
        queen.main(arguments, prog_name="queen")
    # Not by click's own `main`: that turns a reader who left into exit 1, which means "no".
    try:
        with queen.make_context("queen", list(arguments), obj=session) as context:
            code = queen.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return code if isinstance(code, int) else exits.DONE


def _let_go_of_stdout() -> None:
    """Keeps the interpreter from trying again, on its way out, what cannot be written."""
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
        hint = f"put quotes round a text with spaces; {hint}"
    refusal = QueenError(message, hint=hint)
    refusal.code = "usage"
    return refusal


def _interrupted() -> QueenError:
    interrupted = QueenError("interrupted")
    interrupted.code = "interrupted"
    return interrupted


def _bug(error: Exception) -> QueenError:
    bug = QueenError(
        f"a bug in queen: {type(error).__name__}: {error}",
        hint="run it again with QUEEN_DEBUG=1 and report what it prints",
    )
    bug.code = "bug"
    return bug


def _say(error: QueenError | None, session: Session, *, as_json: bool) -> None:
    """Prints a refusal; under `--json` with all that was said besides, as one document."""
    if as_json:
        document = error_document(error) if error is not None else {}
        if session.told:
            document["notices"] = session.told
        if document:
            import json

            aside(json.dumps(document, ensure_ascii=False, default=str))
    elif error is not None:
        from queenbee.cli.render import printable

        aside(f"queen: {printable(error.message)}")
        if error.hint:
            aside(f"  try: {printable(error.hint)}")
