"""How `queen` is put together: lazy commands, options that every command takes, one way out.

A command is a function of an open hive that returns a value; the value is printed as JSON or
handed to the function that shows it to people. Commands are imported when they are called.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from queenbee import errors
from queenbee.cli.exits import DONE, NO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.workflows.hive import Hive


class Answer:
    """A value that is also a yes (exit 0) or a no (exit 1)."""

    def __init__(self, value: object, *, yes: bool) -> None:
        self.value = value
        self.yes = yes


class Session:
    """One call of `queen`: what was asked for besides the command itself."""

    def __init__(self) -> None:
        self.json = False
        self.actor: str | None = None
        self.beads_dir: str | None = None
        self.told: list[str] = []
        """What was said besides the answer under `--json`, for the one document at the end."""
        self._hive: Hive | None = None

    @property
    def hive(self) -> Hive:
        """The hive of the working directory, opened when first used."""
        if self._hive is None:
            from queenbee.workflows.hive import Hive

            self._hive = Hive.open(droid=self.actor, beads_dir=self.beads_dir)
            self._hive.progress = self._building()
        return self._hive

    @property
    def opened(self) -> Hive | None:
        """The hive, if the command needed one."""
        return self._hive

    def _building(self) -> Callable[[int, int], None] | None:
        """Returns what shows that an index is being built, where somebody may wonder."""
        if self.json or not sys.stderr.isatty():
            return None
        from queenbee.cli.building import Bar

        return Bar()

    def tell(self, text: str) -> None:
        """Says something on standard error that is not the answer."""
        if self.json:
            self.told.append(text)
        else:
            from queenbee.cli.render import printable

            aside(f"queen: {printable(text)}")


def _common(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        setattr(
            ctx.ensure_object(Session), {"as_": "actor"}.get(param.name or "", param.name), value
        )


def common_options() -> list[click.Parameter]:
    """Returns the options that stand before or after any command."""
    settings: dict[str, Any] = {"expose_value": False, "callback": _common}
    return [
        click.Option(["--json"], is_flag=True, help="Print one JSON document", **settings),
        click.Option(["--as", "actor"], metavar="NAME", help="Act as this droid", **settings),
        click.Option(
            ["--beads-dir"], metavar="DIR", help="Use the hive in this .beads directory", **settings
        ),
    ]


class QueenCommand(click.Command):
    """A command whose function returns what is to be shown."""

    def __init__(
        self,
        *args: Any,
        show: Callable[..., None],
        example: str,
        takes: str = "hive",
        **kwargs: Any,
    ) -> None:
        kwargs["params"] = [*kwargs.get("params", ()), *common_options()]
        lines = "\n".join(f"  {line}" for line in example.strip().splitlines())
        kwargs["epilog"] = f"\b\nExample:\n{lines}"
        super().__init__(*args, **kwargs)
        self.show = show
        self.takes = takes

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # Where an option lacks its argument, click does not say of which command.
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> int:
        session = ctx.ensure_object(Session)
        assert self.callback is not None
        given = session if self.takes == "session" else session.hive
        try:
            result = ctx.invoke(self.callback, given, **ctx.params)
        finally:
            _tell_on_the_side(session)
        value, code = result, DONE
        if isinstance(result, Answer):
            value, code = result.value, DONE if result.yes else NO
        try:
            print_json(value) if session.json else self.show(value)
        except BrokenPipeError:
            # Whoever read our output has what it wanted (`queen msg inbox | head -1`).
            return code
        except OSError as error:
            raise errors.Unwritable(
                f"standard output cannot be written: {error.strerror}"
            ) from error
        return code


class QueenGroup(click.Group):
    """A group whose commands are imported when called; a mistyped name suggests the nearest.

    `homes` maps a name to "module:attribute".
    """

    def __init__(self, *args: Any, homes: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        kwargs["params"] = [*kwargs.get("params", ()), *common_options()]
        super().__init__(*args, **kwargs)
        self.homes = homes or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        # As they are put in: what is used most stands first.
        return list(self.homes) or list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = self.homes.get(cmd_name)
        if home is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = home.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            close = " or ".join(repr(each) for each in self._meant(ctx, args[0]))
            suggestion = f" Did you mean {close}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{suggestion}")
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, typed: str) -> list[str]:
        """Returns the commands that may have been meant: `msg inbox` for `inbox`."""
        from queenbee.core.names import nearest

        names = self.list_commands(ctx)
        inner = []
        for name in names:
            command = self.get_command(ctx, name)
            if isinstance(command, click.Group) and typed in command.list_commands(ctx):
                inner.append(f"{name} {typed}")
        close = nearest(typed, names)
        return inner or ([close] if close else [])


def command(
    name: str, *, show: Callable[..., None], example: str, takes: str = "hive"
) -> Callable[[Callable[..., object]], QueenCommand]:
    """Makes a command of a function; its docstring is the help, `example` ends it."""

    def wrap(function: Callable[..., object]) -> QueenCommand:
        made = click.command(name, cls=QueenCommand, show=show, example=example, takes=takes)
        return made(function)

    return wrap


def print_json(value: object) -> None:
    """Prints one document; of an array, one element a line."""
    plain = to_plain(value)
    if isinstance(plain, list) and plain:
        rows = ",\n".join(_dumps(each) for each in plain)
        click.echo(f"[\n{rows}\n]")
    else:
        click.echo(_dumps(plain))


def to_plain(value: object) -> object:
    """Returns the value as JSON's own types."""
    if hasattr(value, "to_dict"):
        return to_plain(value.to_dict())
    if isinstance(value, dict):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return value


def error_document(error: errors.QueenError) -> dict[str, object]:
    """Returns the JSON form of a refusal."""
    document: dict[str, object] = {"code": error.code, "message": error.message}
    if error.hint:
        document["hint"] = error.hint
    document.update((key, to_plain(each)) for key, each in error.details.items())
    return {"error": document}


def body_or_stdin(text: str) -> str:
    """Returns the text, or standard input where it is `-`. Raises `InvalidInput`."""
    if text != "-":
        return text
    if sys.stdin is None:
        raise errors.InvalidInput("standard input is closed", hint="give the text itself, not -")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidInput(f"standard input is not UTF-8: {error}") from error


def aside(text: str, *, end: str = "\n") -> None:
    """Prints to standard error; where nobody can hear it, what was to be done is done all the same.

    A verdict must not depend on who listens: a closed terminal, a full disk, a reader that left.
    """
    try:
        click.echo(text + end, err=True, nl=False)
    except OSError:
        return


def tell(text: str) -> None:
    """Says something on standard error that is not the answer of the command that runs."""
    click.get_current_context().ensure_object(Session).tell(text)


def _dumps(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        # A terminal of another age, or a name that is no text: JSON can spell out both.
        return json.dumps(value, separators=(",", ":"))
    return text


def _tell_on_the_side(session: Session) -> None:
    """Says on standard error what the user should know besides the answer, once."""
    hive = session.opened
    if hive is None:
        return
    for note in hive.notes():
        session.tell(note)


def seconds(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Reads an option that takes a duration, such as `2h`. Raises `InvalidInput`."""
    from queenbee.core.timestamps import parse_duration_s

    return None if text is None else parse_duration_s(text)


def colours() -> bool:
    """Returns whether standard output is a terminal that wants colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def joined(words: Sequence[str]) -> str:
    """Returns words for a sentence."""
    return ", ".join(words)
