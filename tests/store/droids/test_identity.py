"""Who acts: by argument, by environment, or as this worktree remembers it."""

from __future__ import annotations

import pytest
from hives import git

from queenbee.errors import InvalidInput, Unwritable
from queenbee.store.droids import identity
from queenbee.store.layout import discover


@pytest.fixture
def places(repo):
    return discover(str(repo), {})


def test_the_argument_comes_first(places):
    env = {"QUEEN_DROID": "api"}
    assert identity.find_actor(places, env, "ui") == ("ui", "--as")


@pytest.mark.parametrize("at", range(len(identity.VARIABLES)))
def test_the_variables_come_in_their_order(places, at):
    identity.remember(places, "remembered")
    env = {name: f"from-{name.lower()}" for name in identity.VARIABLES[at:]}
    name = identity.VARIABLES[at]
    assert identity.find_actor(places, env, None) == (f"from-{name.lower()}", name)


def test_an_empty_variable_says_nothing(places):
    assert identity.find_actor(places, {"QUEEN_DROID": ""}, None) is None


def test_what_was_remembered_comes_last(places):
    identity.remember(places, "ui")
    assert identity.find_actor(places, {}, None) == ("ui", places.identity_path)


def test_without_an_actor_the_hint_names_three_ways():
    hint = identity.nobody().hint
    assert all(way in hint for way in ("--as NAME", "QUEEN_DROID", "whoami --set"))


def test_each_worktree_remembers_its_own(repo, places):
    git(repo, "worktree", "add", "-q", "-b", "feature", "../linked")
    linked = discover(str(repo.parent / "linked"), {})
    identity.remember(places, "main-droid")
    identity.remember(linked, "feature-droid")
    assert identity.find_actor(places, {}, None)[0] == "main-droid"
    assert identity.find_actor(linked, {}, None)[0] == "feature-droid"


def test_outside_git_it_is_remembered_beside_the_ledgers(tmp_path):
    (tmp_path / ".beads").mkdir()
    places = discover(str(tmp_path), {})
    identity.remember(places, "ui")
    assert identity.find_actor(places, {}, None)[0] == "ui"


@pytest.mark.parametrize("env", [{"QUEEN_DROID": "not a name"}, {"FACTORY_DROID": "-x"}])
def test_a_name_that_is_not_well_formed_is_refused_wherever_it_comes_from(places, env):
    with pytest.raises(InvalidInput):
        identity.find_actor(places, env, None)


def test_a_remembered_name_that_is_not_well_formed_is_refused(places):
    with open(places.identity_path, "w", encoding="utf-8") as file:
        file.write("two words\n")
    with pytest.raises(InvalidInput):
        identity.find_actor(places, {}, None)


@pytest.mark.parametrize("data", [b"", b"\n", b"\xff\xfe"])
def test_a_file_that_says_nothing_is_nobody(places, data):
    with open(places.identity_path, "wb") as file:
        file.write(data)
    assert identity.find_actor(places, {}, None) is None


def test_a_place_that_cannot_be_written_hints_at_the_variable(repo, places):
    (repo / ".git" / "queenbee-droid").mkdir()
    with pytest.raises(Unwritable) as refused:
        identity.remember(places, "ui")
    assert refused.value.hint == "set QUEEN_DROID=ui instead"
