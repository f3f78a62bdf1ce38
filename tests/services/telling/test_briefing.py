"""What an agent is told first: few tokens, and only commands that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from hives import QuickQueen, environment
from tokens import tokens

from queenbee import Hive
from queenbee.cli.app import Invocation
from queenbee.cli.main import queen
from queenbee.services.telling import briefing

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]

NOISE = "q7$Zx^W#k9!vB~Jp%2&Gf*L8@dM(s)T+y=R|n<C>h?u;E:a,O.i/X"


def commands_in(text: str) -> Iterator[str]:
    """Yields the commands between backticks."""
    yield from re.findall(r"`(queen [^`]*)`", text)


def parsed(line: str) -> click.Context:
    """Returns a command line as `queen` reads it; nothing is run. Raises `UsageError`."""
    context = click.Context(queen, info_name="queen", obj=Invocation())
    words = shlex.split(line)[1:]
    while isinstance(context.command, click.Group):
        name, command, words = context.command.resolve_command(context, words)
        assert command is not None
        if isinstance(command, click.Group):
            context = click.Context(command, info_name=name, parent=context)
        else:
            context = command.make_context(name, words, parent=context)
    return context


def all_options(group: click.Group) -> set[str]:
    context = click.Context(group)
    found = {option for param in group.params for option in param.opts}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = all_options(command) if isinstance(command, click.Group) else set()
        found |= inner | {option for param in command.params for option in param.opts}
    return found


# Its size


@pytest.fixture
def busy(hive: Hive, open_as: Opener) -> Hive:
    """A hive in which many are at work, of somebody with much to do and much mail."""
    for number in range(9):
        hive.reservations.reserve([f"src/part{number}/**/*.py"], issue_id=f"qb-{number}")
        hive.assignments.claim(f"qb-{number}")
    for number in range(12):
        other = open_as(f"backend-engineer-{number}")
        other.reservations.reserve([f"packages/service-{number}/tests/**"])
        other.assignments.claim(f"qb-1{number:02}")
        other.messages.send(
            "ui-engineer", "Please.", subject=f"About the interface of service {number}, again"
        )
    return hive


def test_the_section_is_small(hive: Hive) -> None:
    assert tokens(briefing.section()) <= 250


def test_prime_is_at_most_350_tokens_where_nothing_happens(hive: Hive) -> None:
    assert tokens(briefing.prime(hive)) <= 350


def test_prime_is_at_most_350_tokens_where_much_happens(busy: Hive) -> None:
    text = briefing.prime(busy, name_in_shell=False)
    assert "Unread messages: 12" in text
    assert "About the interface of service" in text
    assert tokens(text) <= 350


@pytest.mark.parametrize(
    "text",
    [
        NOISE,
        "合计含税页面错误处理购物车重构测试数据库迁移" * 2,
        "Отчёт о состоянии корзины и налогов в заказах" * 2,
        "🐝🏳️‍🌈👩‍👩‍👧‍👦" * 9,
        "ﷺ\U00012345\U0001d11e" * 20,
        "a1" * 50,
    ],
)
def test_prime_is_at_most_350_tokens_whatever_others_write(
    hive: Hive, open_as: Opener, text: str
) -> None:
    for number in range(4):
        other = open_as("X-7.q_Z9-" * 6 + str(number))
        other.reservations.reserve([f"{number}{text.replace('/', '').replace('*', '')}"[:40] + "x"])
        other.messages.send("ui-engineer", "b", subject=text)
    hive.reservations.reserve(["mine.py"])
    found = briefing.prime(hive)
    assert "You have mine.py" in found
    assert tokens(found) <= 350


def test_the_reference_is_at_most_1500_tokens(busy: Hive, repo: Path) -> None:
    ran = QuickQueen(repo)("prime", "--full", "--json", as_="ui-engineer")
    assert 900 < tokens(ran.json["text"]) <= 1500


# What it names


def test_every_command_that_is_named_exists_with_its_options(hive: Hive) -> None:
    text = briefing.reference(hive, [])
    found = list(commands_in(text))
    assert len(found) > 20
    for line in found:
        try:
            parsed(line)
        except click.UsageError as error:
            pytest.fail(f"{line}: {error.format_message()}")


def test_every_option_that_is_named_exists(hive: Hive) -> None:
    known = all_options(queen)
    named = set(re.findall(r"(?<=[ `])--[a-z-]+", briefing.reference(hive, [])))
    assert named - known == set()
    assert "--wait" in named


@pytest.mark.parametrize("line", ["queen nxt", "queen next --all", "queen claim", "queen msg x"])
def test_a_command_that_does_not_exist_would_be_noticed(line: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(line)


def test_the_loop_and_four_commands_are_in_the_section() -> None:
    lines = list(commands_in(briefing.section()))
    for needed in ("next", "land", "complete", "reserve", "msg send", "msg read", "status"):
        assert any(line.startswith(f"queen {needed}") for line in lines), needed


def test_the_reference_names_every_command(quick: QuickQueen) -> None:
    text = quick("prime", "--full", "--json", as_="ui-engineer").json["text"]
    listed = text.partition("## Commands")[2]
    for name in queen.list_commands(click.Context(queen)):
        assert re.search(rf"^- {name}\b", listed, re.MULTILINE), name


# What it says


def test_the_section_is_the_beginning_of_prime_and_of_the_reference(hive: Hive) -> None:
    assert briefing.prime(hive).startswith(briefing.section())
    assert briefing.reference(hive, ["- x"]).startswith(briefing.prime(hive))


def test_prime_says_who_you_are_what_you_have_and_what_others_have(
    hive: Hive, reviewer: Hive
) -> None:
    hive.assignments.claim("qb-42")
    hive.reservations.reserve(["src/**"], issue_id="qb-42")
    reviewer.assignments.claim("qb-43")
    reviewer.messages.send("ui-engineer", "Is it done?")
    assert briefing.prime(hive).removeprefix(briefing.section()).strip().splitlines() == [
        "You are ui-engineer.",
        "You have qb-42, src/**.",
        "Unread messages: 1 (queen msg read)",
        "- “Is it done?” from reviewer",
        "reviewer has qb-43.",
    ]


def test_prime_does_not_read_the_mail(hive: Hive, reviewer: Hive) -> None:
    reviewer.messages.send("ui-engineer", "Is it done?")
    briefing.prime(hive)
    assert len(hive.messages.inbox(unread=True)) == 1


def test_prime_does_not_name_what_was_read(hive: Hive, reviewer: Hive) -> None:
    reviewer.messages.send(hive.actor, "It is done.", new=True)
    hive.messages.read_unread()
    assert "Unread messages" not in briefing.prime(hive)


def test_what_does_not_fit_is_left_to_status(busy: Hive) -> None:
    assert briefing.prime(busy).endswith("\nMore: queen status\n")


def test_without_a_name_prime_says_how_to_get_one(repo: Path) -> None:
    text = briefing.prime(Hive.open(repo, env=environment()))
    assert text.endswith("Set QUEEN_DROID to a name of your own.\n")


def test_prime_prints_the_text_and_says_who_acts(quick: QuickQueen) -> None:
    shown = quick("prime", as_="ui-engineer")
    document = quick("prime", "--json", as_="ui-engineer").json
    assert shown.out == document["text"]
    assert document["actor"] == "ui-engineer"
