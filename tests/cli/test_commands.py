"""Every command of the manual: its exit status, its JSON, and `--json` in any place."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hives import Clock, QuickQueen, Ran

ASSIGNMENT = {"id", "created_at", "updated_at", "issue_id", "droid", "assigned_by", "status", "rev"}
LEASE = {"id", "created_at", "expires_at", "pattern", "droid", "status", "exclusive", "rev"}
MESSAGE = {"id", "created_at", "from", "to", "subject", "body", "importance", "read", "rev"}
ISSUE = {"id", "title", "status", "priority"}
STATUS = {"path", "status", "reservations"}
OVERVIEW = {"issue_id", "issue", "blocked_by", "assignments", "reservations", "messages"}

COMMANDS: list[tuple[str, int, set[str] | list[set[str]]]] = [
    # Command line, exit status, and the keys of the one object, or of each in the array.
    ("init", 0, {"beads_dir", "made"}),
    ("hive where", 0, {"beads_dir", "state_dir", "tree", "worktree", "actor", "how"}),
    ("hive whoami", 0, {"droid", "from"}),
    ("hive whoami --set ui-engineer", 0, {"droid", "from"}),
    ("version", 0, {"version"}),
    ("completion bash", 0, {"script"}),
    ("msg send reviewer hello", 0, [MESSAGE]),
    (
        "msg send --new reviewer,tester hello --subject s --issue qb-1 --importance high",
        0,
        [MESSAGE],
    ),
    ("msg send @all hello", 0, [MESSAGE | {"reaches"}]),
    ("msg send reviewer hello --reply-to {question}", 0, [MESSAGE | {"reply_to", "thread_id"}]),
    ("msg inbox", 0, [MESSAGE]),
    ("msg inbox --unread --since 2h --from reviewer --limit 5", 0, [MESSAGE]),
    ("msg inbox --for reviewer --since 2020-01-01T00:00:00Z", 0, [MESSAGE]),
    ("msg inbox --issue qb-99", 0, []),
    ("msg read {question}", 0, [MESSAGE | {"read_at"}]),
    ("msg reply {question} yes", 0, MESSAGE | {"reply_to", "thread_id"}),
    ("msg thread {answer}", 0, [MESSAGE]),
    ("msg sent", 0, [MESSAGE]),
    ("msg delete {question}", 0, MESSAGE | {"deleted"}),
    (
        "issue assign qb-3 tester --new --worktree feature --reason why",
        0,
        ASSIGNMENT | {"worktree", "reason"},
    ),
    ("issue assign qb-2 tester --reassign --new", 0, ASSIGNMENT | {"previous_droid"}),
    ("claim qb-3", 0, [ASSIGNMENT]),
    ("claim qb-1", 0, [ASSIGNMENT]),
    ("release qb-1 --reason later", 0, ASSIGNMENT | {"reason"}),
    ("complete qb-1", 0, ASSIGNMENT),
    ("issue assignments", 0, [ASSIGNMENT]),
    ("issue assignments --droid reviewer --issue qb-2 --status all", 0, [ASSIGNMENT]),
    ("issue assignments --status completed", 0, []),
    ("reserve docs/** README.md --shared --ttl 1h30m --issue qb-1 --reason r", 0, [LEASE]),
    ("reserve docs/** --wait 1s", 0, [LEASE]),
    ("reserve src/api/* --force --reason urgent", 0, [LEASE]),
    ("reserve release src/ui/**", 0, [LEASE | {"released_at"}]),
    ("reserve release --id {lease}", 0, [LEASE]),
    ("reserve release --all", 0, [LEASE]),
    ("reserve renew", 0, [LEASE]),
    ("reserve renew src/ui/** --ttl 4h", 0, [LEASE]),
    ("reserve renew --all", 0, [LEASE]),
    ("reserve list", 0, [LEASE]),
    ("reserve list --droid reviewer --all", 0, [LEASE]),
    ("reserve list --path src/api/x.py", 0, [LEASE]),
    ("reserve check src/ui/x.tsx other.py", 0, [STATUS]),
    ("reserve check src/api/x.py other.py", 1, [STATUS]),
    ("reserve overlap src/*/a.py src/b/*.py", 0, {"a", "b", "overlap", "witness"}),
    ("reserve overlap *.md docs/a.md", 1, {"a", "b", "overlap", "witness"}),
    ("reserve conflicts", 0, []),
    ("issues", 0, [ISSUE]),
    ("issues --status closed", 0, [ISSUE]),
    ("show qb-1", 0, OVERVIEW),
    ("issue ready", 0, [ISSUE]),
    ("doctor", 1, [{"code", "file", "line", "message", "hint", "severity", "fixed"}]),
    ("doctor --fix", 0, [{"code", "file", "line", "message", "hint", "severity", "fixed"}]),
    ("hive history {mine}", 0, [{"rev", "at", "by", "changes", "line"}]),
]


def line(text: str, names: dict[str, str]) -> list[str]:
    """Returns the words of a command line, ids filled in."""
    return text.format(**names).split(" ")


def placed(words: list[str], where: str) -> list[str]:
    """Returns the command line with `--json` before the command, behind it, or in its middle."""
    if where == "before":
        return ["--json", *words]
    if where == "after":
        return [*words, "--json"]
    # A pattern follows `reserve`: its other commands are named by two words.
    more = ("release", "renew", "list", "check", "overlap", "conflicts")
    name = 2 if words[0] == "reserve" and words[1] in more else 1
    return [*words[:name], "--json", *words[name:]]


@pytest.mark.some(26)
@pytest.mark.parametrize(("text", "code", "keys"), COMMANDS, ids=[each[0] for each in COMMANDS])
def test_a_command_prints_one_json_document_and_exits_with_its_status(
    busy: QuickQueen,
    names: dict[str, str],
    text: str,
    code: int,
    keys: set[str] | list[set[str]],
) -> None:
    ran = busy("--json", *line(text, names), as_="ui-engineer")
    assert (ran.code, ran.err) == (code, "")
    if isinstance(keys, set):
        assert keys <= set(ran.json)
    else:
        assert isinstance(ran.json, list)
        assert bool(ran.json) == bool(keys)
        for each in ran.json:
            assert keys[0] <= set(each)


@pytest.mark.some(20)
@pytest.mark.slow
@pytest.mark.parametrize("where", ["after", "middle"])
@pytest.mark.parametrize("text", [each[0] for each in COMMANDS])
def test_json_is_accepted_before_and_after_the_command(
    busy: QuickQueen, repo: Path, tmp_path: Path, names: dict[str, str], text: str, where: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(repo, copy, symlinks=True)
    words = line(text, names)
    first = busy(*placed(words, "before"), as_="ui-engineer")
    other = busy(*placed(words, where), as_="ui-engineer", cwd=copy)
    assert alike(first) == alike(other)


@pytest.mark.some(13)
@pytest.mark.parametrize(("text", "code", "keys"), COMMANDS, ids=[each[0] for each in COMMANDS])
def test_a_command_exits_with_the_same_status_without_json(
    busy: QuickQueen, names: dict[str, str], text: str, code: int, keys: object
) -> None:
    ran = busy(*line(text, names), as_="ui-engineer")
    assert (ran.code, ran.err) == (code, "")
    assert ran.out.strip()
    assert ran.out[0] not in "[{"


@pytest.mark.parametrize("where", ["before", "after", "middle"])
def test_the_actor_is_accepted_before_and_after_the_command(busy: QuickQueen, where: str) -> None:
    arguments = {
        "before": ("--as", "reviewer", "msg", "sent"),
        "middle": ("msg", "--as", "reviewer", "sent"),
        "after": ("msg", "sent", "--as", "reviewer"),
    }[where]
    sent = busy(*arguments, "--json").json
    assert [message["from"] for message in sent] == ["reviewer"]


def test_the_actor_of_the_command_line_outranks_the_environment(busy: QuickQueen) -> None:
    assert (
        busy("hive", "whoami", "--as", "tester", "--json", as_="reviewer").json["droid"] == "tester"
    )


@pytest.mark.parametrize("where", ["before", "after"])
def test_the_hive_is_accepted_before_and_after_the_command(
    busy: QuickQueen, repo: Path, tmp_path: Path, where: str
) -> None:
    named = ("--beads-dir", str(repo / ".beads"))
    command = ("reserve", "list", "--json")
    ran = busy(*([*named, *command] if where == "before" else [*command, *named]), cwd=tmp_path)
    assert len(ran.json) == 2


def test_an_expired_lease_is_shown_as_expired_though_its_line_says_active(
    quick: QuickQueen, frozen: Clock
) -> None:
    quick("reserve", "short.py", "--ttl", "1s", as_="tester")
    frozen.advance(1)
    assert [each["status"] for each in quick("reserve", "list", "--all", "--json").json] == [
        "expired"
    ]
    assert quick("reserve", "list", "--json").json == []


def test_since_takes_a_duration_or_a_timestamp(quick: QuickQueen, frozen: Clock) -> None:
    for body in ("old", "new"):
        quick("msg", "send", "b", body, as_="a")
        frozen.advance(15 * 60)
    for since, bodies in (
        ("1h", ["new", "old"]),
        ("30m", ["new", "old"]),
        ("20m", ["new"]),
        ("14m", []),
        ("2024-12-14T10:30:00Z", ["new", "old"]),
        ("2024-12-14T11:30:00.001+01:00", ["new"]),
    ):
        inbox = quick("msg", "inbox", "--since", since, "--json", as_="b").json
        assert [message["body"] for message in inbox] == bodies


def test_an_inbox_shows_twenty_unless_asked_for_more(quick: QuickQueen) -> None:
    for number in range(22):
        quick("msg", "send", "b", str(number), as_="a")
    assert len(quick("msg", "inbox", "--json", as_="b").json) == 20
    assert len(quick("msg", "sent", "--json", as_="a").json) == 20
    assert len(quick("msg", "inbox", "--limit", "30", "--json", as_="b").json) == 22


def test_the_inbox_says_what_is_new_and_how_urgent(quick: QuickQueen, frozen: Clock) -> None:
    urgent = quick("msg", "send", "b", "x", "--importance", "urgent", "--json", as_="a").json[0]
    frozen.advance(1)
    quick("msg", "send", "b", "y", as_="a")
    frozen.advance(120)
    quick("msg", "read", urgent["id"], as_="b")
    _, second, first = quick("msg", "inbox", as_="b").out.splitlines()
    assert second.split()[:-1] == ["new", "2m", "ago", "a", "b", "y"]
    assert first.split()[:-1] == ["2m", "ago", "a", "b", "URGENT", "x"]


def test_an_overlap_is_shown_with_a_path_that_both_patterns_cover(quick: QuickQueen) -> None:
    yes = quick("reserve", "overlap", "./src/*/a.py", "src/b/*.py", "--json").json
    assert (yes["a"], yes["b"]) == ("src/*/a.py", "src/b/*.py")
    assert (yes["overlap"], yes["witness"]) == (True, "src/b/a.py")
    no = quick("reserve", "overlap", "*.md", "docs/a.md", "--json").json
    assert (no["overlap"], no["witness"]) == (False, None)
    assert quick("reserve", "overlap", "src/*/a.py", "src/b/*.py").out == "both cover src/b/a.py\n"


def test_a_check_names_the_holder_and_the_time_left(quick: QuickQueen, frozen: Clock) -> None:
    quick("reserve", "src/*", "--issue", "qb-1", "--reason", "Button", as_="a")
    frozen.advance(600)
    assert quick("reserve", "check", "src/x", "y", as_="b").out.splitlines() == [
        "held  src/x",
        "      by a: src/* for qb-1 (Button), 1h 50m left",
        "free  y",
    ]
    assert quick("reserve", "check", "src/x", as_="a").out == "mine  src/x\n"


def test_a_listing_says_what_is_left_of_a_lease_or_how_it_ended(
    quick: QuickQueen, frozen: Clock
) -> None:
    quick("reserve", "a*", "--ttl", "5m", as_="a")
    quick("reserve", "b*", "--shared", as_="a")
    quick("reserve", "release", "b*", as_="a")
    frozen.advance(60)
    _, *rows = quick("reserve", "list", "--all").out.splitlines()
    assert [" ".join(row.split()[:-1]) for row in sorted(rows)] == [
        "a* a 1m ago exclusive 4m",
        "b* a shared released",
    ]


def test_several_are_released_and_renewed_by_id(quick: QuickQueen) -> None:
    leases = quick("reserve", "a*", "b*", "c*", "--json", as_="a").json
    ids = [word for lease in leases[:2] for word in ("--id", lease["id"])]
    assert len(quick("reserve", "renew", *ids, "--ttl", "4h", "--json", as_="a").json) == 2
    assert len(quick("reserve", "release", *ids, "--json", as_="a").json) == 2
    assert [each["pattern"] for each in quick("reserve", "list", "--json").json] == ["c*"]


def alike(ran: Ran) -> Any:
    """Returns what two runs of one command have in common: no ids, times and places."""
    text = re.sub(r"[0-9A-HJKMNP-TV-Z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z", "*", ran.out)
    return ran.code, re.sub(r'/[^"]*/(repo|copy)', "/tree", text), ran.err
