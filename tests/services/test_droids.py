"""Droids: which names exist, under each setting, and what a wrong one is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, git, snapshot, write_lines, write_settings

from queenbee import Hive
from queenbee.errors import InvalidInput, NoActor, UnknownDroid

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]
Lister = Callable[..., None]


@pytest.fixture
def listed(repo: Path) -> Lister:
    """Lists droids in `.factory/droids/`."""

    def listed(*names: str) -> None:
        folder = repo / ".factory" / "droids"
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / f"{name}.md").write_text(f"# {name}\n")

    return listed


@pytest.mark.parametrize("name", ["a", "9", "ui-engineer", "A.b_c-9", "x" * 64])
def test_any_well_formed_name_is_valid_without_a_list(hive: Hive, name: str) -> None:
    assert hive.droids.check(name) == name


@pytest.mark.parametrize(
    "name", ["", "-a", ".a", "_a", "a b", "a/b", "ü", "a\n", "@all", "x" * 65, "a\x1b", "a:b"]
)
def test_a_name_that_is_not_well_formed_is_refused_and_never_changed(hive: Hive, name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a droid name") as refusal:
        hive.droids.check(name)
    assert "1 to 64 letters" in str(refusal.value.hint)


def test_where_there_is_a_list_a_name_must_be_in_it(hive: Hive, listed: Lister) -> None:
    listed("ui-engineer", "reviewer")
    assert hive.droids.check("reviewer") == "reviewer"
    with pytest.raises(UnknownDroid, match="there is no droid 'Reviwer'") as refusal:
        hive.droids.check("Reviwer")
    assert refusal.value.hint == "did you mean 'reviewer'?"
    assert refusal.value.known == ["human", "queen", "reviewer", "ui-engineer"]


def test_an_unknown_name_gets_the_list_of_known_ones(hive: Hive, listed: Lister) -> None:
    listed("ui-engineer", "reviewer")
    with pytest.raises(UnknownDroid) as refusal:
        hive.droids.check("zzz")
    assert refusal.value.hint == "known: reviewer, ui-engineer"


def test_upper_and_lower_case_are_two_names(hive: Hive, listed: Lister) -> None:
    listed("reviewer")
    with pytest.raises(UnknownDroid) as refusal:
        hive.droids.check("Reviewer")
    assert refusal.value.hint == "did you mean 'reviewer'?"


@pytest.mark.parametrize("name", ["human", "queen"])
@pytest.mark.parametrize("setting", ["auto", "strict", "off"])
def test_human_and_queen_always_exist(
    open_as: Opener, beads: Path, listed: Lister, setting: str, name: str
) -> None:
    write_settings(beads, f'droids = "{setting}"\n')
    listed("ui-engineer")
    assert open_as("ui-engineer").droids.check(name) == name


@pytest.mark.parametrize(
    ("setting", "names", "exists"),
    [
        ("auto", (), True),
        ("auto", ("reviewer",), False),
        ("strict", (), False),
        ("strict", ("reviewer",), False),
        ("off", ("reviewer",), True),
    ],
)
def test_the_setting_droids_decides_whether_an_unlisted_name_serves(
    open_as: Opener,
    beads: Path,
    listed: Lister,
    setting: str,
    names: tuple[str, ...],
    exists: bool,
) -> None:
    write_settings(beads, f'droids = "{setting}"\n')
    if names:
        listed(*names)
    droids = open_as("human").droids
    if exists:
        assert droids.check("tester") == "tester"
    else:
        with pytest.raises(UnknownDroid):
            droids.check("tester")


def test_who_worked_here_before_the_first_was_listed_goes_on(
    open_as: Opener, beads: Path, listed: Lister
) -> None:
    """A landing may bring the first file of another tool."""
    open_as("amber").assignments.claim("qb-1")
    listed("reviewer")
    open_as("amber").assignments.complete("qb-1")
    with pytest.raises(UnknownDroid):
        open_as("stranger").assignments.claim("qb-2")
    write_settings(beads, 'droids = "strict"\n')
    with pytest.raises(UnknownDroid):
        open_as("amber").assignments.claim("qb-2")


def test_other_files_list_no_droid(hive: Hive, repo: Path) -> None:
    folder = repo / ".factory" / "droids"
    folder.mkdir(parents=True)
    for name in ("README.txt", "bad name.md", ".md", "-x.md"):
        (folder / name).touch()
    assert hive.droids.listed() == set()
    assert hive.droids.check("anybody") == "anybody"


def test_a_stranger_may_look_but_not_act(open_as: Opener, listed: Lister, beads: Path) -> None:
    listed("ui-engineer")
    stranger = open_as("stranger")
    assert stranger.reservations.check(["a.py"])[0].status == "free"
    assert stranger.assignments.find() == []
    for act in (
        lambda: stranger.messages.send("human", "x"),
        lambda: stranger.assignments.claim("qb-1"),
        lambda: stranger.reservations.reserve(["a.py"]),
        lambda: stranger.messages.inbox(),
    ):
        with pytest.raises(UnknownDroid, match="'stranger'"):
            act()
    assert snapshot(beads) == {}


def test_a_missing_actor_gets_the_three_ways_to_set_one(repo: Path) -> None:
    with pytest.raises(NoActor) as refusal:
        _ = Hive.open(repo, env={}).actor
    for way in ("--as NAME", "QUEEN_DROID=NAME", "queen hive whoami --set NAME"):
        assert way in str(refusal.value.hint)


@pytest.mark.parametrize(
    ("env", "actor"),
    [
        ({"QUEEN_DROID": "a", "QUEEN_AGENT": "b", "FACTORY_DROID": "c"}, "a"),
        ({"QUEEN_AGENT": "b", "FACTORY_DROID": "c"}, "b"),
        ({"FACTORY_DROID": "c"}, "c"),
        ({"QUEEN_DROID": "", "FACTORY_DROID": "c"}, "c"),
    ],
)
def test_environment_variables_set_the_actor_in_this_order(
    repo: Path, env: dict[str, str], actor: str
) -> None:
    assert Hive.open(repo, env=env).actor == actor
    assert Hive.open(repo, droid="given", env=env).actor == "given"


def test_an_environment_with_no_name_in_it_is_refused(repo: Path) -> None:
    with pytest.raises(InvalidInput, match="'no name' is not a droid name"):
        Hive.open(repo, env={"QUEEN_DROID": "no name"})


def test_known_are_those_that_took_part(hive: Hive, open_as: Opener) -> None:
    assert hive.droids.known() == []
    hive.messages.send("reviewer", "x")
    open_as("tester").assignments.claim("qb-1")
    open_as("planner").reservations.reserve(["a.py"])
    assert hive.droids.known() == ["planner", "reviewer", "tester", "ui-engineer"]


def test_known_are_those_listed_where_there_is_a_list(hive: Hive, listed: Lister) -> None:
    hive.messages.send("human", "x")
    hive.messages.send("gone", "x")
    listed("ui-engineer", "reviewer")
    assert hive.droids.known() == ["human", "reviewer", "ui-engineer"]


def test_names_that_are_none_in_foreign_lines_are_not_known(hive: Hive, beads: Path) -> None:
    write_lines(
        beads / "queen_messages.jsonl",
        {"id": "qm-1", "from": "two words", "to": "x\x1b[2J", "body": ""},
        {"id": "qm-2", "from": 7, "to": None, "body": ""},
        {"id": "qm-3", "from": "fine", "to": ["a"], "body": ""},
    )
    assert hive.droids.known() == ["fine"]


# Whom one can write to


def refused(hive: Hive, name: str) -> UnknownDroid:
    with pytest.raises(UnknownDroid, match=f"nobody in this hive is called '{name}'") as refusal:
        hive.messages.send(name, "hello")
    return refusal.value


@pytest.mark.parametrize("name", ["all", "Everyone", "everybody"])
def test_whoever_means_everyone_is_told_the_word_for_it(
    name: str, hive: Hive, open_as: Opener
) -> None:
    open_as("ally").reservations.reserve(["docs/**"])
    assert "did you mean '@all'?" in (refused(hive, name).hint or "")


def test_a_name_that_nobody_bears_is_refused_with_the_nearest_one(
    hive: Hive, open_as: Opener, beads: Path
) -> None:
    open_as("reviewer").reservations.reserve(["docs/**"])
    before = snapshot(beads)
    refusal = refused(hive, "reviwer")
    assert refusal.hint == "did you mean 'reviewer'? or, for one that is to come, add --new"
    assert (refusal.droid, refusal.known) == ("reviwer", ["reviewer"])
    assert "known: human, reviewer; for one that is to come, add --new" in str(
        refused(hive, "zzz").hint
    )
    with pytest.raises(UnknownDroid):
        hive.messages.send("reviewer,reviwer", "hello")
    assert snapshot(beads) == before


def test_one_that_is_to_come_is_written_to_on_purpose_and_known_from_then_on(
    hive: Hive, open_as: Opener
) -> None:
    open_as("reviewer").reservations.reserve(["docs/**"])
    [sent] = hive.messages.send("zzz", "hello", new=True)
    assert hive.messages.send("zzz", "again")[0].to == "zzz"
    assert open_as("zzz").messages.inbox()[-1].id == sent.id
    assert not hive.droids.has_been_here("zzz")


@pytest.mark.parametrize("name", ["human", "queen", "ui-engineer"])
def test_a_person_the_queen_and_oneself_are_always_there(
    hive: Hive, open_as: Opener, name: str
) -> None:
    open_as("reviewer").reservations.reserve(["docs/**"])
    hive.assignments.claim("qb-1")
    assert hive.messages.send(name, "hello")[0].to == name


def test_as_long_as_nobody_else_is_known_any_name_will_do(hive: Hive) -> None:
    hive.messages.send("human", "hello")
    assert hive.messages.send("anybody", "hello")[0].to == "anybody"


@pytest.mark.parametrize("sign", ["message", "claim", "lease", "command", "worktree", "assignee"])
def test_a_droid_is_known_by_any_sign(
    quick: QuickQueen, beads: Path, tmp_path: Path, sign: str
) -> None:
    quick("reserve", "other", as_="somebody")
    assert quick("msg", "send", "docs", "hello", as_="ui").code == 4
    if sign == "message":
        quick("msg", "send", "ui", "hello", "--new", as_="docs")
    elif sign == "claim":
        quick("issue", "assign", "qb-1", "docs", as_="somebody")
    elif sign == "lease":
        quick("reserve", "docs/**", as_="docs")
    elif sign == "command":
        quick("reserve", "list", as_="docs")
    elif sign == "worktree":
        linked = tmp_path / "linked"
        git(quick.cwd, "worktree", "add", "-q", linked)
        quick("hive", "whoami", "--set", "docs", cwd=linked)
        shutil.rmtree(quick.cwd / ".git" / "queenbee" / "droids")
    else:
        write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "assignee": "docs"})
    assert quick("msg", "send", "docs", "hello", as_="ui").code == 0


def test_the_sender_is_told_who_has_not_been_here_yet(quick: QuickQueen) -> None:
    quick("reserve", "a", as_="api")
    assert quick("msg", "send", "api", "x", as_="ui").out.endswith(" to api\n")
    lines = quick("msg", "send", "api,zzz,human", "x", "--new", as_="ui").out.splitlines()
    assert [line.partition(" to ")[2] for line in lines] == [
        "api",
        "zzz, who has not been here yet",
        "human",
    ]
