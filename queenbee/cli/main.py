"""The entry point of `queen`: parse, call, and turn every refusal into its exit status."""

from __future__ import annotations

import gc
import os
import sys

import click

from queenbee.cli import exits
from queenbee.cli.app import QueenGroup, Session, error_document
from queenbee.errors import QueenError

_HOMES = {
    "init": "queenbee.cli.hive:init",
    "where": "queenbee.cli.hive:where",
    "whoami": "queenbee.cli.hive:whoami",
    "version": "queenbee.cli.hive:version",
    "msg": "queenbee.cli.msg:msg",
    "assign": "queenbee.cli.assignments:assign",
    "claim": "queenbee.cli.assignments:claim",
    "release": "queenbee.cli.assignments:release",
    "complete": "queenbee.cli.assignments:complete",
    "assignments": "queenbee.cli.assignments:assignments",
    "reserve": "queenbee.cli.reservations:reserve",
    "unreserve": "queenbee.cli.reservations:unreserve",
    "renew": "queenbee.cli.reservations:renew",
    "reserved": "queenbee.cli.reservations:reserved",
    "check": "queenbee.cli.reservations:check",
    "overlap": "queenbee.cli.reservations:overlap",
    "conflicts": "queenbee.cli.reservations:conflicts",
    "issues": "queenbee.cli.issues:issues",
    "show": "queenbee.cli.issues:show",
    "ready": "queenbee.cli.issues:ready",
    "history": "queenbee.cli.history:history",
    "doctor": "queenbee.cli.doctor:doctor",
    "completion": "queenbee.cli.hive:completion",
}

_HELP = """Share one repository among coding agents: messages, assignments and file
reservations in .beads/, with no server.

The story: queen ready, queen claim ISSUE, queen reserve PATTERN..., work, queen msg send,
queen complete ISSUE."""

queen = QueenGroup(
    "queen",
    homes=_HOMES,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Runs `queen` and leaves with its exit status."""
    # A command lives for milliseconds. Collecting cycles and taking the interpreter apart in an
    # orderly way cost 5 of them, and give back only what the kernel gives back anyway.
    gc.disable()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        pass
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit status; no refusal leaves as a traceback."""
    as_json = "--json" in arguments[: _end_of_options(arguments)]
    try:
        code = queen.main(arguments, prog_name="queen", standalone_mode=False, obj=Session())
        sys.stdout.flush()
    except QueenError as error:
        _say(error, as_json=as_json)
        return exits.exit_code(error)
    except click.ClickException as error:
        _say(_usage_error(error), as_json=as_json)
        return exits.USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("queen: interrupted", err=True)
        return exits.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has what it wanted (`queen msg inbox | head -1`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.DONE
    except Exception as error:
        if os.environ.get("QUEEN_DEBUG"):
            raise
        bug = QueenError(
            f"a bug in queen: {type(error).__name__}: {error}",
            hint="run it again with QUEEN_DEBUG=1 and report what it prints",
        )
        bug.code = "bug"
        _say(bug, as_json=as_json)
        return exits.BUG
    return code if isinstance(code, int) else exits.DONE


def _end_of_options(arguments: list[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)


def _usage_error(error: click.ClickException) -> QueenError:
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context is not None else "queen --help"
    refusal = QueenError(error.format_message(), hint=hint)
    refusal.code = "usage"
    return refusal


def _say(error: QueenError, *, as_json: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(error_document(error), ensure_ascii=False, default=str), err=True)
        return
    from queenbee.cli.render import printable

    click.echo(f"queen: {printable(error.message, keep_newlines=True)}", err=True)
    if error.hint:
        click.echo(f"  try: {printable(error.hint)}", err=True)
