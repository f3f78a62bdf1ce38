"""How `queen` is put together: lazy commands, common options and answers.

A command is a function of an open hive that returns a value. The value is printed as JSON, or
passed to the function that shows it to people.
"""

from __future__ import annotations

import builtins
import os
import sys
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli import outliving
from queenbee.cli.exits import DONE, NO
from queenbee.cli.rendering import print_json
from queenbee.cli.terminal import Bar, aside, say
from queenbee.core.names import nearest
from queenbee.core.text import printable, shell_word
from queenbee.errors import ExternalFailure, NoHive, Unwritable
from queenbee.store.droids.presence import Beat
from queenbee.store.settings import Settings
from queenbee.store.whole_files import keep, recall
from queenbee.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeVar

    from click.shell_completion import CompletionItem

    from queenbee.core.records import Record
    from queenbee.library.hive import Hive
    from queenbee.store.layout import Layout
    from queenbee.store.trust import Proposal

    T = TypeVar("T")


class Answer:
    """A value that is also a yes (exit 0) or a no (exit 1, or another status)."""

    def __init__(self, value: object, *, yes: bool, no: int = NO) -> None:
        self.value = value
        self.yes = yes
        self.no = no


_LONG = frozenset(("collisions", "doctor", "import", "land", "report", "rotate", "sync"))
_ASIDE = frozenset(("guard", "log", "mcp", "notify", "prompt", "sync", "watch"))
"""Commands that run beside the work, some of them for days: no sign that anybody is there."""
_SCREENS = frozenset(("start", "status", "watch"))
"""Commands by which a person says that a hive is theirs: queen status --all."""
_ALIKE = (("new", "create", "add"), ("remove", "delete", "rm"), ("list", "ls", "inbox", "status"))
"""Words for the same, of which each noun has its own."""
_SHOWING_MAIL = frozenset(("ack", "inbox", "next", "prime", "read", "search", "thread", "wait"))


class Invocation:
    """One call of `queen`: the options that every command takes, and the hive that it opens."""

    def __init__(self) -> None:
        self.json = False
        self.actor: str | None = None
        self.beads_dir: str | None = None
        self.notices: list[str] = []
        """Notices under `--json`, kept for the one document that is printed at the end."""
        self.in_order = False
        """Whether notices go where the answer goes, before it, so that the order is kept."""
        self.bar: Bar = Bar(self.tell)
        self._hive: Hive | None = None

    @property
    def hive(self) -> Hive:
        """The hive of the working directory, opened when first used."""
        if self._hive is None:
            from queenbee.library.hive import Hive  # noqa: PLC0415 - start-up

            try:
                self.use(Hive.open(droid=self.actor, beads_dir=self.beads_dir))
            except NoHive as error:
                from queenbee.library.hives import way_elsewhere  # noqa: PLC0415 - start-up

                error.hint = way_elsewhere(error.hint)
                raise
        assert self._hive is not None
        return self._hive

    def use(self, hive: Hive) -> None:
        """Uses this hive, and shows to people what it tells and asks."""
        self._hive = hive
        hive.tell = self.tell
        self.tell_problem(hive.layout)
        if not self.json:
            hive.progress = self.bar
            hive.asks_person = self._asks_person

    def _asks_person(self, proposals: Sequence[Proposal]) -> bool | None:
        """Returns whether a person lets these commands run; None if nobody sits here."""
        from queenbee.cli.person import lets_run, sits_here  # noqa: PLC0415 - start-up

        if not sits_here(is_json=self.json):
            return None
        self.bar.pause()
        self.bar.is_mute, before = True, self.bar.is_mute
        try:
            return lets_run(self.hive.layout, proposals)
        finally:
            self.bar.is_mute = before

    def tell(self, text: str) -> None:
        """Prints a notice to standard error, or keeps it under `--json`."""
        self.bar.make_way()
        # Who waits is told the same every ten seconds; a line that belongs to one before stays.
        is_again = text in self.notices and not text.startswith("  ")
        if is_again and (self.json or outliving.is_unseen()):
            return
        self.notices.append(text)
        if self.json:
            return
        if self.in_order:
            say(f"queen: {printable(text)}")
            sys.stdout.flush()
        else:
            aside(f"queen: {printable(text)}")

    def tell_problem(self, found: Layout) -> None:
        """Says why the settings cannot be read, if that is so, and which ones count instead."""
        if found.settings.problem is not None:
            from queenbee.git.contents.settings_origin import problem_sentence  # noqa: PLC0415 - start-up

            self.tell(problem_sentence(found) or "")

    def freshen(self, command: str | None) -> None:
        """Takes in what others pushed, before a command reads, if the settings say so."""
        if self.hive.layout.settings.sync_when == "manual" or command == "sync":
            return
        from queenbee.services.unasked import wants_fetch  # noqa: PLC0415 - start-up

        if wants_fetch(self.hive):
            from queenbee.git.remote.alongside import freshen  # noqa: PLC0415 - start-up

            freshen(self.hive)

    def send(self) -> None:
        """Sends what was written to the remote, after the answer, if the settings say so."""
        hive = self._hive
        if hive is None or hive.layout.settings.sync_when == "manual":
            return
        from queenbee.services.unasked import news, wants_exchange  # noqa: PLC0415 - start-up

        if wants_exchange(hive.layout):
            from queenbee.git.remote.alongside import send  # noqa: PLC0415 - start-up

            # Whoever ends it has its answer already; the next command sends the rest.
            with suppress(KeyboardInterrupt):
                send(hive)
            for each in news(hive):
                self.tell(each)

    def arrive(self, command: Sequence[str] = ()) -> None:
        """Lets the hive remember the actor, if the command opened it."""
        if self._hive is None:
            return
        if "guard" in command:
            from queenbee.git.guard import is_sign_of_life  # noqa: PLC0415 - start-up

            if not is_sign_of_life(self._hive):
                return
        self._hive.note_presence()
        if not _SCREENS.isdisjoint(command) and sys.stdin is not None and sys.stdin.isatty():
            from queenbee.cli.person import sits_here  # noqa: PLC0415 - start-up

            if sits_here(is_json=self.json):
                from queenbee.library.hives import remember  # noqa: PLC0415 - start-up

                remember(self._hive.layout)

    def beat(self, command: Sequence[str]) -> AbstractContextManager[object]:
        """Returns a context in which the actor is at work, however long the command takes."""
        return Beat(self.arrive) if _ASIDE.isdisjoint(command) else nullcontext()

    def step(self, command: Sequence[str]) -> AbstractContextManager[object]:
        """Returns a context whose writes `queen undo` takes back as one."""
        if self._hive is None or not _ASIDE.isdisjoint(command):
            return nullcontext()
        return self._hive.one_step(" ".join(command))

    def speak(
        self, command: Sequence[str], options: Mapping[str, object]
    ) -> AbstractContextManager[object]:
        """Returns a context in which a command that may take long says that it works."""
        says_itself = options.get("watch") or options.get("wait")
        silent = self.json or _LONG.isdisjoint(command) or says_itself
        return nullcontext() if silent else self.bar

    def tell_notes(self, command: Sequence[str]) -> None:
        """Prints the notices that the hive has collected, if it was opened."""
        mail = (_SHOWING_MAIL | _ASIDE).isdisjoint(command)
        for note in self._hive.notes(mail=mail) if self._hive is not None else ():
            self.tell(note)
        if self._hive is not None and sys.stderr.isatty():
            self._tell_upgrade(self._hive.layout)

    def _tell_upgrade(self, found: Layout) -> None:
        """Says once to a person, after an upgrade, what to run again."""
        path = os.path.join(found.state_dir, "version")
        if recall(path) == __version__ or not keep(path, __version__):
            return
        from queenbee.agents.protection import outdated  # noqa: PLC0415 - start-up

        if any(outdated(found, os.environ)):
            self.tell(f"QueenBee is {__version__} now; to renew hooks and guard: queen setup")


def invocation() -> Invocation:
    """Returns the current call of `queen`."""
    return click.get_current_context().ensure_object(Invocation)


def tell(text: str) -> None:
    """Prints a notice of the running command to standard error, or keeps it under `--json`."""
    invocation().tell(text)


def tell_origin(hive: Hive, *, must_know: bool = True) -> None:
    """Says on standard error if the issues are another program's and may be old. Raises
    `ExternalFailure` if nothing is known of them, and something must be.
    """
    try:
        origin = hive.origin()
    except ExternalFailure as error:
        if must_know:
            raise
        tell(error.message)
    else:
        if origin is not None and origin.why is not None:
            hint = f"; try: {origin.hint}" if origin.hint else ""
            tell(origin.sentence(hive.now_ms()) + hint)


def first(found: list[T], limit: int, count: Callable[[], int] | None = None) -> list[T]:
    """Returns no more than the limit, and tells a person what is left out, by `count` of all."""
    if len(found) > limit and not invocation().json:
        whole = count() if count is not None else 0
        how_many = f"{whole - limit} more" if whole else "more"
        tell(f"{how_many} are not shown: --limit {whole or 2 * limit}")
    return found[:limit]


def short_ids(kind: str, shown: Sequence[Record]) -> dict[str, str]:
    """Returns the id of each record as a list shows it: the shortest end that names it."""
    return invocation().hive.short_ids(kind, [each.id for each in shown])


def is_mine(droid: str | None) -> bool:
    """Returns whether the droid is the one that runs this command."""
    return droid is not None and droid == invocation().hive.actor_or_none


_PAST = ("--force", "--unchecked", "--no-verify", "--anyway", "--reassign", "--again")
"""Options that pass a refusal: one is named, but no line that has it is made up."""
_SAME = (
    ("--wait", "--timeout"),
    ("--check", "--test", "--tests"),
    ("--size", "--count", "--number", "--agents", "-n"),
    ("--limit", "--count", "--number", "--max", "--lines", "-n"),
    ("--depends-on", "--after", "--needs", "--blocked-by"),
    ("--issues", "--issue", "--only"),
    _PAST,
)
"""What options of one meaning are called, here and elsewhere."""


_HOT = frozenset({
    "next", "status", "prime", "msg", "reserve", "claim", "issue", "issues", "show", "version",
})  # fmt: skip
"""The commands that are run so often that they do without parsing the settings again."""


def _corrected(ctx: click.Context, args: Sequence[str], typed: str, right: str) -> str:
    """Returns the line with the right option in place of the one that was typed."""
    ours = (each == typed or each.startswith(f"{typed}=") for each in args)
    words = [right + x[len(typed) :] if is_it else x for x, is_it in zip(args, ours, strict=True)]
    return " ".join([ctx.command_path, *map(shell_word, words)])


def _unnamed(ctx: click.Context, args: Sequence[str], typed: str) -> str:
    """Returns the line with the value of an option that is none, and without its name."""
    words = [each.removeprefix(f"{typed}=") for each in args if each != typed]
    return " ".join([ctx.command_path, *map(shell_word, words)])


class QueenCommand(click.Command):
    """A command whose function returns the value to show."""

    def __init__(
        self,
        *args: Any,
        show: Callable[..., None],
        example: str,
        opens_hive: bool = True,
        at_once: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs["params"] = [*kwargs.get("params", ()), *_common_options()]
        kwargs["add_help_option"] = False  # ours is among the common ones
        kwargs["epilog"] = _example(example)
        super().__init__(*args, **kwargs)
        self.show = show
        self.opens_hive = opens_hive
        self.at_once = at_once

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return _taught(ctx, super().get_params(ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [each for each in args if each != "--json"]  # Parsing takes words out of the list.
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            typed = error.option_name
            same = {name for each in _SAME if typed in each for name in each}
            own = [name for each in self.params for name in each.opts[:1]]
            close = nearest(typed.lstrip("-"), [each.removeprefix("--") for each in own])
            if close in own:  # An argument.
                wrong = click.UsageError(f"No such option {typed!r}: it has no name.", ctx)
                wrong.hint = _unnamed(ctx, words, typed)  # type: ignore[attr-defined]
                raise wrong from error
            known = [each for each in own if each in same] or [f"--{close}"] * bool(close)
            if not known:
                raise click.UsageError(f"No such option {typed!r}.", ctx) from error
            what = f"No such option {typed!r}. Did you mean {known[0]!r}?"
            wrong = click.UsageError(what, ctx)
            if known[0] not in _PAST:
                wrong.hint = _corrected(ctx, words, typed, known[0])  # type: ignore[attr-defined]
            raise wrong from error
        except click.UsageError as error:
            # When an option lacks its argument, click does not name the command.
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> int:
        call = ctx.ensure_object(Invocation)
        if ctx.command_path.split()[1] not in _HOT:
            Settings.by_note = False
        if not self.at_once:
            return self._invoke(ctx, call)
        try:
            reading = call.hive.engine.reading()
        except NoHive:
            if self.opens_hive:
                raise
            # The command may know of another hive, such as one below.
            return self._invoke(ctx, call)
        with reading:
            return self._invoke(ctx, call)

    def _invoke(self, ctx: click.Context, call: Invocation) -> int:
        assert self.callback is not None
        given = call.hive if self.opens_hive else call
        if self.opens_hive:
            call.freshen(self.name)
        words = ctx.command_path.split()
        try:
            with call.beat(words), call.speak(words, ctx.params), call.step(words):
                result = ctx.invoke(self.callback, given, **ctx.params)
            call.arrive(words)
        finally:
            call.tell_notes(words)
        value, code = result, DONE
        if isinstance(result, Answer):
            value, code = result.value, DONE if result.yes else result.no
        try:
            print_json(value) if call.json else self.show(value)
        except BrokenPipeError:
            # The reader has seen enough (`queen msg inbox | head -1`).
            return code
        except OSError as error:
            raise Unwritable(f"standard output cannot be written: {error.strerror}") from error
        return code


class QueenGroup(click.Group):
    """A group whose commands are imported when called; a mistyped name suggests the nearest.

    `sections` maps the heading of each section of the help to its commands, each with its module
    in `cli.commands`, as does `hidden` without showing them.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, str]] | None = None,
        hidden: Mapping[str, str] | None = None,
        example: str | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs["params"] = [*kwargs.get("params", ()), *_common_options()]
        kwargs["add_help_option"] = False  # ours is among the common ones
        if example is not None:
            kwargs["epilog"] = _example(example)
        super().__init__(*args, **kwargs)
        self.sections: Mapping[str, Mapping[str, str]] | dict[str, Mapping[str, str]] = (
            sections or {}
        )
        shown = {name: module for each in self.sections.values() for name, module in each.items()}
        self.modules: dict[str, str] = {**shown, **(hidden or {})}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *self.modules]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes one list of commands for each section."""
        if not self.sections:
            super().format_commands(ctx, formatter)
            return
        longest = max(len(name) for each in self.sections.values() for name in each)
        for heading, modules in self.sections.items():
            limit = formatter.width - 6 - longest
            rows = []
            for name in modules:
                command = self.get_command(ctx, name)
                assert command is not None
                rows.append((name.ljust(longest), command.get_short_help_str(limit)))
            with formatter.section(heading):
                formatter.write_dl(rows)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return _taught(ctx, super().get_params(ctx))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the commands that begin so; where the shell shows no help, it is not loaded."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - start-up

        from queenbee.cli.shell_completion import is_bash  # noqa: PLC0415 - start-up

        if not (self.modules and is_bash()):
            return super().shell_complete(ctx, incomplete)
        shown = [name for name in self.list_commands(ctx) if " " not in name]
        names = [name for name in shown if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name) for name in names), *options]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = self.modules.get(cmd_name)
        if module is None:
            return super().get_command(ctx, cmd_name)
        variable = _attribute(cmd_name.replace(" ", "_"))
        command = getattr(import_module(f"queenbee.cli.commands.{module}"), variable)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        both = " ".join(args[:2])
        if len(args) > 1 and both in self.modules:
            return both, self.get_command(ctx, both), args[2:]
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise self._no_command(ctx, args)
        return super().resolve_command(ctx, args)

    def _no_command(self, ctx: click.Context, words: Sequence[str]) -> click.UsageError:
        from queenbee.cli import near_words  # noqa: PLC0415 - start-up

        typed, rest = words[0], words[1:]
        noun = "" if ctx.parent is None else str(self.name)
        command = near_words.meant(noun, typed.lower(), rest)
        if turned := next(filter(None, (self._turned(ctx, typed, each) for each in rest[:1])), ""):
            command, rest = turned, rest[1:]
        similar = [command] if command else self._similar(ctx, typed)
        close = " or ".join(map(repr, similar))
        suggestion = f" Did you mean {close}?" if close else ""
        whole = f"{noun} {typed}".strip()
        error = click.UsageError(f"No such command {whole!r}.{suggestion}", ctx)
        if similar and not command:
            command = f"{noun} {similar[0]}".strip()
        elif not similar and (command := near_words.instead_of(noun, words)):
            rest = words
        if whole in near_words.WAYS:
            error = click.UsageError(f"No such command {whole!r}.", ctx)
            error.hint = near_words.WAYS[whole]  # type: ignore[attr-defined]
        elif command:
            error.hint = near_words.line(ctx, command, rest)  # type: ignore[attr-defined]
        return error

    def _turned(self, ctx: click.Context, verb: str, noun: str) -> str:
        """Returns the command of words in the wrong order: `worktree list` for `list worktrees`."""
        for each in (noun, noun.removesuffix("s")):
            command = self.get_command(ctx, each)
            if isinstance(command, click.Group) and verb in command.list_commands(ctx):
                return f"{each} {verb}"
        return ""

    def _similar(self, ctx: click.Context, typed: str) -> list[str]:
        """Returns the commands that the user may have meant: `msg inbox` for `inbox`."""
        names, typed = self.list_commands(ctx), typed.lower()
        inner = []
        for name in names:
            command = self.get_command(ctx, name)
            if isinstance(command, click.Group) and typed in command.list_commands(ctx):
                inner.append(f"{name} {typed}")
        alike = next((each for each in _ALIKE if typed in each and ctx.parent is not None), ())
        if found := [name for name in names if name in alike]:
            return found
        close = nearest(typed, names)
        return inner or ([close] if close else [])


def command(
    *,
    show: Callable[..., None],
    example: str,
    opens_hive: bool = True,
    at_once: bool = False,
) -> Callable[[Callable[..., object]], QueenCommand]:
    """Turns a function into the command of its name; its docstring is the help, and `example` the
    end of that.

    The function gets the hive, or the `Invocation` if `opens_hive` is false. With `at_once`,
    all that it reads may be of one moment, unless it writes or waits in between: it starts no
    program, and a hive in a database is asked once.
    """

    def wrap(function: Callable[..., object]) -> QueenCommand:
        settings = {"example": example, "opens_hive": opens_hive, "at_once": at_once}
        name = function.__name__.rstrip("_").replace("_", "-")
        return click.command(name, cls=QueenCommand, show=show, **settings)(function)

    return wrap


def group(
    name: str,
    commands: Sequence[QueenCommand],
    *,
    help: str,
    example: str,
    more: str = "",
    alone: QueenCommand | None = None,
) -> QueenGroup:
    """Makes a command that has subcommands; `example` ends its help. `more` names those of other
    modules: `ready:issues`. `alone` runs if none is typed.
    """

    @click.pass_context
    def run_alone(context: click.Context) -> int | None:
        if alone is None or context.invoked_subcommand is not None:
            return None
        with alone.make_context(alone.name, [], parent=context) as inner:
            return alone.invoke(inner)

    hidden = dict(each.split(":") for each in more.split())
    more_of_it: dict[str, Any] = {"example": example, "hidden": hidden}
    if alone is not None:
        more_of_it |= {"invoke_without_command": True, "callback": run_alone}
    return QueenGroup(name, help=help, commands=commands, **more_of_it)


def _taught(ctx: click.Context, parameters: list[click.Parameter]) -> list[click.Parameter]:
    """Returns the parameters of a command; while a shell asks, they know their values."""
    if ctx.resilient_parsing:
        from queenbee.cli.shell_completion import teach  # noqa: PLC0415 - start-up

        teach(ctx, parameters)
    return parameters


def _example(lines: str) -> str:
    """Returns the last part of a help text, whose lines click must not join."""
    shown = "\n".join(f"  {line}" for line in lines.strip().splitlines())
    return f"\b\nExample:\n{shown}"


def _attribute(name: str) -> str:
    """Returns the variable of a command's module that holds the command."""
    return f"{name}_" if hasattr(builtins, name) else name


def _common_options() -> list[click.Parameter]:
    """Returns the options that every command accepts, before or after its name."""
    settings: dict[str, Any] = {"expose_value": False, "callback": _note_option}
    return [
        click.Option(["--json"], is_flag=True, help="Print one JSON document", **settings),
        click.Option(["--as", "actor"], metavar="NAME", help="Act as this droid", **settings),
        click.Option(
            ["--beads-dir"], metavar="DIR", help="Use the hive in this .beads directory", **settings
        ),
        # In place of click's own, which looks for a translation of its text: 1 ms at each start.
        click.Option(
            ["-h", "--help", "help_"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_help,
            help="Show this message and exit",
        ),
    ]


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _note_option(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        assert param.name is not None
        setattr(ctx.ensure_object(Invocation), param.name, value)
