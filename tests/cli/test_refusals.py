"""Every refusal: its status, its code, what it names, what to do next, and nothing changed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from bead_files import PLAN
from hives import Queen, QuickQueen, snapshot

NO_ACTOR = (
    "pass --as NAME (a person: --as human), set QUEEN_DROID=NAME, or run "
    "once: queen hive whoami --set NAME"
)

REFUSALS: list[tuple[str, str, int, str, str, str]] = [
    # Who, command line, exit status, code, part of the message, part of the hint.
    ("", "claim qb-3", 2, "no_actor", "needs to know who you are", NO_ACTOR),
    ("", "reserve a.py", 2, "no_actor", "needs to know who you are", NO_ACTOR),
    ("", "msg send reviewer x", 2, "no_actor", "needs to know who you are", NO_ACTOR),
    ("", "msg inbox", 2, "no_actor", "needs to know who you are", NO_ACTOR),
    ("", "hive whoami", 2, "no_actor", "needs to know who you are", NO_ACTOR),
    ("a b", "issue ready", 2, "invalid_input", "'a b' is not a droid name", "1 to 64 letters"),
    ("u", "hive whoami --set -x", 2, "invalid_input", "'-x' is not a droid name", "1 to 64"),
    ("u", "hive whoami --set a/b", 2, "invalid_input", "'a/b' is not a droid name", "1 to 64"),
    # Assignments
    ("u", "claim qb-2", 5, "taken", "qb-2 is assigned to reviewer", "queen msg send reviewer"),
    (
        "u",
        "claim qb-4",
        5,
        "issue_closed",
        "issue qb-4 is closed (Set up the build)",
        "queen issue reopen qb-4",
    ),
    ("u", "claim qb-33", 4, "not_found", "there is no issue 'qb-33'", "did you mean 'qb-3'?"),
    ("u", "claim x\ny", 2, "invalid_input", "is not an issue id", "one word"),
    ("u", "issue assign qb-2 tester --new", 5, "taken", "qb-2 is assigned to reviewer", "--force"),
    ("u", "issue assign qb-3 a/b", 2, "invalid_input", "'a/b' is not a droid name", "1 to 64"),
    (
        "u",
        "release qb-2",
        5,
        "not_yours",
        "qb-2 is assigned to reviewer",
        "queen msg send reviewer",
    ),
    ("u", "complete qb-2", 5, "not_yours", "assigned to reviewer, not to u", "queen msg send"),
    ("u", "complete qb-3", 4, "not_found", "nobody is assigned to qb-3", "queen issue assignments"),
    ("u", "release qb-3", 4, "not_found", "nobody is assigned to qb-3", "queen issue assignments"),
    ("u", "issue assignments --status done", 2, "usage", "'done' is not one of", "--help"),
    # Reservations
    ("u", "reserve src/api/x*", 5, "held", "held by reviewer for qb-2 (login)", "--wait 5m"),
    ("u", "reserve ok.* src/**", 5, "held", "src/api/** at src/api", "queen reserve 'src/**'"),
    ("u", "reserve src/api/* --force", 2, "invalid_input", "needs a reason", "--reason TEXT"),
    ("u", "reserve ../x", 2, "bad_pattern", "out of the repository", ""),
    ("u", "reserve /etc/passwd", 2, "bad_pattern", "outside the repository", ""),
    ("u", "reserve !src", 2, "bad_pattern", "'!src' is not usable", ""),
    ("u", "reserve src/[", 2, "bad_pattern", "'src/[' is not usable", ""),
    ("u", "reserve a --ttl 0s", 2, "invalid_input", "cannot last 0 seconds", "1s to 30d"),
    ("u", "reserve a --ttl 31d", 2, "invalid_input", "cannot last", "1s to 30d"),
    ("u", "reserve a --ttl soon", 2, "invalid_input", "'soon' is not a duration", "90s, 15m, 2h"),
    ("u", "reserve a --wait -1s", 2, "invalid_input", "'-1s' is not a duration", "90s"),
    ("u", "reserve", 2, "usage", "Missing argument 'PATTERN...'", "queen reserve --help"),
    (
        "u",
        "reserve release src/api/**",
        5,
        "not_yours",
        "reserved by reviewer, not by u",
        "reviewer",
    ),
    (
        "u",
        "reserve release never.py",
        4,
        "not_found",
        "holds no live reservation",
        "queen reserve list",
    ),
    ("u", "reserve release --id {held}", 5, "not_yours", "reserved by reviewer", "queen msg send"),
    (
        "u",
        "reserve release --id qr-x",
        4,
        "not_found",
        "holds no live reservation",
        "queen reserve list",
    ),
    ("u", "reserve release", 2, "invalid_input", "no reservations given", "--all"),
    ("u", "reserve release --all", 4, "not_found", "u holds no reservations", "queen reserve list"),
    ("u", "reserve renew", 4, "not_found", "u holds no reservations", "queen reserve list"),
    (
        "u",
        "reserve renew src/api/** --ttl 1h",
        5,
        "not_yours",
        "reserved by reviewer",
        "queen msg send",
    ),
    ("u", "reserve check ../x", 2, "bad_pattern", "outside the repository", ""),
    ("u", "reserve check", 2, "usage", "Missing argument 'PATH...'", "queen reserve check --help"),
    ("u", "reserve overlap src/[ x", 2, "bad_pattern", "'src/[' is not usable", ""),
    ("u", "reserve overlap x", 2, "usage", "Missing argument 'B'", "queen reserve overlap --help"),
    # Messages
    ("u", "msg send a/b x", 2, "invalid_input", "'a/b' is not a droid name", "1 to 64"),
    ("u", "msg send , x", 2, "invalid_input", "no recipient", "queen msg send NAME BODY"),
    ("u", "msg read qm-x --limit 2", 2, "invalid_input", "--limit is for reading", "--limit 20"),
    ("u", "msg send reviwer x", 4, "unknown_droid", "nobody in this hive", "mean 'reviewer'?"),
    ("u", "msg send zzz x", 4, "unknown_droid", "is called 'zzz'", "--new"),
    ("u", "msg send reviewer", 2, "usage", "Missing argument 'BODY'", "queen msg send --help"),
    ("u", "msg send a x --importance loud", 2, "usage", "'loud' is not one of", "--help"),
    (
        "u",
        "msg send reviewer x --reply-to qm-x",
        4,
        "not_found",
        "no message 'qm-x'",
        "queen msg inbox",
    ),
    ("u", "msg reply qm-x y", 4, "not_found", "there is no message 'qm-x'", "queen msg inbox"),
    ("u", "msg read qm-x", 4, "not_found", "there is no message 'qm-x'", "queen msg inbox"),
    ("u", "msg read {question}", 5, "not_yours", "is to ui-engineer, not to u", "queen msg thread"),
    ("u", "msg delete {question}", 5, "not_yours", "between reviewer and ui-engineer", ""),
    ("u", "msg delete qm-x", 4, "not_found", "there is no message 'qm-x'", "queen msg inbox"),
    ("u", "msg thread qm-x", 4, "not_found", "'qm-x'", "queen msg inbox"),
    ("u", "msg inbox --limit 0", 2, "usage", "0", "queen msg inbox --help"),
    ("u", "msg inbox --since never", 2, "invalid_input", "'never' is not a duration", "90s"),
    ("u", "msg inbox --since 2024-13-01T00:00:00Z", 2, "invalid_input", "timestamp", "2024-12-14T"),
    ("u", "msg inbox --since yesterday", 2, "invalid_input", "'yesterday' is not a", "90s"),
    ("u", "msg inbox --after {question} --unread", 2, "invalid_input", "--after", "{question}"),
    ("u", "msg send reviewer on it", 4, "unknown_droid", "is called 'on'", "put quotes around"),
    # What was meant stands in the hint
    (
        "u",
        "issue assign reviewer qb-3",
        4,
        "not_found",
        "'reviewer'",
        "queen issue assign qb-3 reviewer",
    ),
    (
        "u",
        "reserve release {lease}",
        2,
        "invalid_input",
        "is the id of",
        "queen reserve release --id {lease}",
    ),
    (
        "u",
        "reserve renew {lease}",
        2,
        "invalid_input",
        "is the id of",
        "queen reserve renew --id {lease}",
    ),
    ("u", "bead verify nope.json", 4, "not_found", "there is no file nope.json", "queen bead list"),
    (
        "u",
        "bead run nope.json --agent-cmd x",
        4,
        "not_found",
        "no file nope.json",
        "queen bead list",
    ),
    ("u", "guard check --range a..b", 2, "invalid_input", "of commits: bad revision", "main..HEAD"),
    # The rest
    ("u", "reserve x --wait", 2, "usage", "requires an argument", "queen reserve --help"),
    ("u", "completion", 2, "usage", "Choose from: bash, zsh, fish", "queen completion --help"),
    ("u", "show qb-9", 4, "not_found", "there is no issue 'qb-9'", "did you mean"),
    ("u", "hive history qm-x", 4, "not_found", "no record has the id 'qm-x'", "ids begin with qm-"),
    ("u", "completion tcsh", 2, "usage", "'tcsh' is not one of", "queen completion --help"),
    ("u", "clam qb-3", 2, "usage", "Did you mean 'claim'?", "queen claim qb-3"),
    ("u", "msg snd a b", 2, "usage", "Did you mean 'send'?", "queen msg send a b"),
    ("u", "zzz", 2, "usage", "No such command 'zzz'.", "queen --help"),
    ("u", "claim qb-3 --resaon x", 2, "usage", "--reason", "queen claim qb-3 --reason x"),
    ("u", "--jsno claim qb-3", 2, "usage", "--json", "queen --help"),
    (
        "u",
        "release qb-3 qb-1",
        2,
        "usage",
        "unexpected extra argument (qb-1)",
        "queen release --help",
    ),
]


def words(text: str, names: dict[str, str]) -> list[str]:
    """Returns the words of a command line, ids filled in."""
    return [word.format(**names) if "{" in word else word for word in text.split(" ")]


@pytest.mark.some(24)
@pytest.mark.parametrize(
    ("who", "text", "status", "code", "said", "hint"),
    REFUSALS,
    ids=[f"{each[0] or 'nobody'}: {each[1]}" for each in REFUSALS],
)
def test_a_refusal_names_the_thing_the_reason_and_the_next_command_and_changes_nothing(
    busy: QuickQueen,
    names: dict[str, str],
    state: tuple[Path, Path],
    who: str,
    text: str,
    status: int,
    code: str,
    said: str,
    hint: str,
) -> None:
    before = snapshot(*state)
    hint = hint.format(**names)
    human = busy(*words(text, names), as_=who)
    assert (human.code, human.out) == (status, "")
    assert said in human.err
    assert hint in human.err
    machine = busy("--json", *words(text, names), as_=who)
    assert (machine.code, machine.out) == (status, "")
    assert machine.error["code"] == code
    assert said in machine.error["message"]
    assert hint in machine.error.get("hint", "")
    assert snapshot(*state) == before


@pytest.mark.parametrize(
    ("text", "status", "data"),
    [
        ("claim qb-2", 5, {"holder": "reviewer"}),
        ("complete qb-2", 5, {"owner": "reviewer"}),
        ("claim qb-33", 4, {"issue_id": "qb-33"}),
        ("reserve release src/api/**", 5, {"owner": "reviewer"}),
        ("reserve src/[", 2, {"pattern": "src/[", "column": 5}),
    ],
)
def test_a_refusal_carries_data_for_programs(
    busy: QuickQueen, text: str, status: int, data: dict[str, object]
) -> None:
    refused = busy("--json", *text.split(), as_="tester")
    assert refused.code == status
    assert {key: refused.error[key] for key in data} == data


def test_a_refused_lease_names_its_holders_as_data(busy: QuickQueen, names: dict[str, str]) -> None:
    [holder] = busy("--json", "reserve", "src/api/x.*", as_="tester").error["holders"]
    assert (holder["id"], holder["droid"], holder["pattern"], holder["reason"]) == (
        names["held"],
        "reviewer",
        "src/api/**",
        "login",
    )
    assert 0 < holder["seconds_left"] <= 7200
    assert holder["witness"].startswith("src/api/x.")


def test_without_a_command_the_help_is_shown_and_nothing_is_done(quick: QuickQueen) -> None:
    shown = quick("msg")
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("Usage: queen")


def test_without_a_command_queen_shows_the_status_of_the_hive(quick: QuickQueen) -> None:
    shown = quick(as_="u")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == quick("status", as_="u").out
    assert quick("--json", as_="u").json == quick("status", "--json", as_="u").json


def test_outside_a_hive_queen_says_in_three_lines_what_to_do(
    quick: QuickQueen, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shown = quick(cwd=elsewhere)
    assert (shown.code, shown.err) == (2, "")
    said = shown.out.splitlines()
    assert said[0] == f"there is no hive in {elsewhere}"
    assert [line.split("  ")[0].strip() for line in said[1:]] == [
        "next: git init && queen init",
        "",
    ]
    assert "queen --help" in said[2]
    assert quick("--json", cwd=elsewhere).error["code"] == "no_hive"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("claim", "qb-33"), 4), (("reserve", "src/api/x"), 5), (("claim", "--nope"), 2)],
)
def test_the_real_command_exits_with_the_status_of_its_refusal(
    busy: QuickQueen, queen: Queen, arguments: tuple[str, ...], status: int
) -> None:
    refused = queen(*arguments, "--json", as_="tester")
    assert (refused.code, refused.out) == (status, "")
    assert set(refused.error) >= {"code", "message", "hint"}


def test_a_file_name_cannot_add_words_to_a_suggested_command(quick: QuickQueen, repo: Path) -> None:
    plan, bead = "a; touch owned $(id).md", "it's.json"
    (repo / plan).write_text(PLAN)
    (repo / bead).write_text('{"id": "gt-1"}')
    for words, suggested in (
        (("gate", "new", "--plan", plan, "--phase", "9"), ["queen", "plan", "graph", plan]),
        (("bead", "verify", bead), ["queen", "bead", "validate", str(repo / bead)]),
    ):
        hint = quick(*words, "--json", as_="ui").error["hint"]
        assert shlex.split(hint) == suggested
