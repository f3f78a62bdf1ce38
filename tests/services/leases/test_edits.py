"""Edits: which paths an edit changes, what is leased for it, and what ends with its session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, commit_file, environment, git, records

from queenbee import Hive
from queenbee.errors import Held
from queenbee.services.leases import edits

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]
SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"


def edit(hive: Hive, *paths: str, session: str | None = SESSION) -> None:
    edits.keep(hive.reservations, edits.look(hive.reservations, paths), session)


def changed(hive: Hive, *files: Path) -> list[str]:
    return edits.changed_paths(hive.layout, [str(file) for file in files])


# Which paths


def test_an_edit_changes_the_path_from_the_root_of_the_tree(hive: Hive, repo: Path) -> None:
    assert changed(hive, repo / "src" / "app.py") == ["src/app.py"]


def test_an_edit_through_a_link_changes_the_file_behind_it_too(hive: Hive, repo: Path) -> None:
    commit_file(repo, "src/app.py")
    (repo / "alias.py").symlink_to("src/app.py")
    assert changed(hive, repo / "alias.py") == ["alias.py", "src/app.py"]


def test_an_edit_in_a_linked_folder_is_one_where_the_folder_is(hive: Hive, repo: Path) -> None:
    (repo / "real").mkdir()
    (repo / "link").symlink_to("real")
    assert changed(hive, repo / "link" / "a.py") == ["real/a.py"]


def test_a_file_outside_the_tree_has_no_path_in_it(hive: Hive, repo: Path) -> None:
    assert changed(hive, repo.parent / "a.py", repo, Path("/etc/hosts")) == []


@pytest.mark.parametrize("name", [".beads", ".beads/queen.toml", "sub/.beads/issues.jsonl"])
def test_the_hives_own_files_are_exempt(hive: Hive, name: str) -> None:
    assert edits.is_exempt(hive.layout, name)


@pytest.mark.parametrize("name", ["src/beads", ".beads-example/a", "a.beads", "docs/.beadsx/b"])
def test_a_name_that_only_looks_alike_is_not_exempt(hive: Hive, name: str) -> None:
    assert not edits.is_exempt(hive.layout, name)


def test_a_hive_under_another_name_is_exempt_too(repo: Path) -> None:
    (repo / "hive").mkdir()
    (repo / "hive" / "queen.toml").touch()
    hive = Hive.open(repo, beads_dir=repo / "hive", env=environment())
    assert edits.is_exempt(hive.layout, "hive/queen.toml")
    assert not edits.is_exempt(hive.layout, "hives/a")


# What is kept


def test_a_free_file_is_leased_for_a_quarter_of_an_hour(hive: Hive, beads: Path) -> None:
    edit(hive, "src/app.py")
    (row,) = records(beads / "queen_reservations.jsonl")
    assert row["pattern"] == "src/app.py"
    assert row["session"] == SESSION
    assert row["exclusive"] is False
    assert "worktree" not in row
    assert row["branch"] == "main"
    assert row["tree_id"] == (beads.parent / ".git" / "queenbee-tree").read_text().strip()
    (lease,) = hive.reservations.find()
    assert lease.expires_ms - lease.created_ms == 15 * 60 * 1000


def test_the_lease_of_an_edit_says_in_which_worktree_it_was_made(repo: Path, clock: Clock) -> None:
    git(repo, "worktree", "add", "-q", str(repo.parent / "topic"), "-b", "topic")
    hive = Hive.open(repo.parent / "topic", droid="tester", env=environment(), clock=clock)
    edit(hive, "src/app.py")
    assert [lease.worktree for lease in hive.reservations.find()] == ["topic"]


def test_edits_renew_once_less_than_half_is_left_and_write_nothing_before(
    hive: Hive, clock: Clock, beads: Path
) -> None:
    edit(hive, "src/app.py")
    clock.advance(7 * 60)
    edit(hive, "src/app.py")
    assert len(records(beads / "queen_reservations.jsonl")) == 1
    clock.advance(60)
    edit(hive, "src/app.py")
    assert len(records(beads / "queen_reservations.jsonl")) == 2
    (lease,) = hive.reservations.find()
    assert lease.expires_ms == clock.now_ms + edits.TTL_S * 1000


def test_a_lease_that_ended_between_two_edits_is_taken_anew(hive: Hive, clock: Clock) -> None:
    edit(hive, "src/app.py")
    clock.advance(edits.TTL_S + 1)
    edit(hive, "src/app.py")
    assert len(hive.reservations.find()) == 1


def test_a_lease_that_ends_between_the_look_and_the_write_is_taken_anew(
    hive: Hive, clock: Clock
) -> None:
    edit(hive, "src/app.py")
    clock.advance(edits.TTL_S - 1)
    seen = edits.look(hive.reservations, ["src/app.py"])
    clock.advance(2)
    edits.keep(hive.reservations, seen, SESSION)
    (lease,) = hive.reservations.find()
    assert lease.expires_ms == clock.now_ms + edits.TTL_S * 1000


def test_a_long_lease_of_ones_own_is_not_shortened(hive: Hive) -> None:
    (mine,) = hive.reservations.reserve(["src/**"], ttl_s=7200)
    edit(hive, "src/app.py")
    assert hive.reservations.find() == [mine]


def test_files_of_one_edit_are_leased_together_or_not_at_all(hive: Hive, reviewer: Hive) -> None:
    seen = edits.look(hive.reservations, ["a.py", "b.py"])
    (theirs,) = reviewer.reservations.reserve(["b.py"])
    with pytest.raises(Held):
        edits.keep(hive.reservations, seen, SESSION)
    assert hive.reservations.find() == [theirs]


@pytest.mark.parametrize(
    "name", ["app/[id]/page.tsx", "a*b.py", "q?.md", "{x}.txt", "!x", "sp ace"]
)
def test_a_name_of_any_letters_is_leased_as_that_name_alone(hive: Hive, name: str) -> None:
    edit(hive, name)
    (status,) = edits.look(hive.reservations, [name])
    assert status.status == "mine"
    assert [lease.pattern for lease in hive.reservations.find(path=name)]
    (other,) = edits.look(hive.reservations, ["app/i/page.tsx"])
    assert other.status == "free"


# The setting `reserve` of `[hook]`


@pytest.fixture
def mode(repo: Path, clock: Clock) -> Callable[..., Hive]:
    """Opens the hive with a mode, for a droid, in a folder of its own if it is named."""

    def opened(reserve: str, droid: str, tree: Path = repo) -> Hive:
        (repo / ".beads" / "queen.toml").write_text(f'[hook]\nreserve = "{reserve}"\n')
        env = {"QUEEN_DURABILITY": "buffered"}
        return Hive.open(tree, droid=droid, env=env, clock=clock)

    return opened


def may(hive: Hive, path: str, session: str = SESSION) -> bool:
    """Edits a file if nobody holds it."""
    seen = edits.look(hive.reservations, [path], session)
    if any(each.status == "held" for each in seen):
        return False
    edits.keep(hive.reservations, seen, session)
    return True


def check_who_may_edit(repo: Path, mode: Callable[..., Hive], reserve: str) -> tuple[bool, ...]:
    """Returns whether a second agent may edit a file: in the same tree and in one of its own; and
    whether it may edit one that was reserved by name.
    """
    linked = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", str(linked), "-b", "linked")
    assert may(mode(reserve, "one"), "a.py", "s1")
    assert may(mode(reserve, "one"), "b.py", "s1")
    mode(reserve, "one").reservations.reserve(["named.py"])
    return (
        may(mode(reserve, "two"), "a.py", "s2"),
        may(mode(reserve, "three", linked), "b.py", "s3"),
        may(mode(reserve, "three", linked), "named.py", "s3"),
    )


@pytest.mark.parametrize(
    ("reserve", "same_tree", "own_tree", "leases"),
    [
        ("auto", False, True, 3),
        ("exclusive", False, False, 2),
        ("shared", True, True, 4),
        ("off", True, True, 0),
    ],
)
def test_the_setting_says_whom_an_edit_keeps_out(
    repo: Path,
    mode: Callable[..., Hive],
    reserve: str,
    same_tree: bool,
    own_tree: bool,
    leases: int,
) -> None:
    assert check_who_may_edit(repo, mode, reserve) == (same_tree, own_tree, False)
    made = [lease for lease in mode(reserve, "one").reservations.find() if lease.session]
    assert len(made) == leases
    assert {lease.exclusive for lease in made} <= {reserve == "exclusive"}


@pytest.mark.parametrize("reserve", ["auto", "exclusive", "shared", "off"])
def test_a_further_edit_takes_no_second_lease_in_any_mode(
    mode: Callable[..., Hive], reserve: str
) -> None:
    hive = mode(reserve, "one")
    assert may(hive, "a.py") and may(hive, "a.py")
    assert len(hive.reservations.find()) == (0 if reserve == "off" else 1)


def test_a_lease_of_ones_own_by_name_serves_every_mode_but_off_is_not_renewed(
    mode: Callable[..., Hive], clock: Clock
) -> None:
    for reserve in ("auto", "exclusive", "shared", "off"):
        hive = mode(reserve, "one")
        hive.reservations.reserve([f"{reserve}/**"], ttl_s=60)
        assert may(hive, f"{reserve}/a.py")
    ends = {each.pattern: each.expires_ms - clock.now_ms for each in hive.reservations.find()}
    assert ends == {
        **dict.fromkeys(("auto/**", "exclusive/**", "shared/**"), edits.TTL_S * 1000),
        "off/**": 60_000,
    }


# The end of a session


def test_a_sessions_end_ends_its_leases_alone(hive: Hive, open_as: Opener) -> None:
    edit(hive, "a.py")
    edit(hive, "b.py", session="another")
    (asked,) = hive.reservations.reserve(["c.py"])
    ended = edits.end_session(hive.reservations, SESSION)
    assert [lease.pattern for lease in ended] == ["a.py"]
    left = [lease.pattern for lease in open_as("ui-engineer").reservations.find()]
    assert left == ["b.py", asked.pattern]


def test_a_session_without_leases_ends_with_nothing(hive: Hive, beads: Path) -> None:
    assert edits.end_session(hive.reservations, SESSION) == []
    assert records(beads / "queen_reservations.jsonl") == []


def test_a_reservation_by_name_outlasts_the_session(hive: Hive) -> None:
    edit(hive, "a.py")
    (lease,) = hive.reservations.reserve(["a.py"])
    assert not lease.session
    assert edits.end_session(hive.reservations, SESSION) == []
    assert hive.reservations.find() == [lease]


def test_an_edit_does_not_bind_what_was_reserved_by_name_to_its_session(
    hive: Hive, clock: Clock
) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=60)
    edit(hive, "a.py")
    (lease,) = hive.reservations.find()
    assert not lease.session
    assert lease.expires_ms == clock.now_ms + edits.TTL_S * 1000


def test_timestamps_ids_and_file_names_do_not_load_the_rules_for_credentials(
    repo: Path,
) -> None:
    script = (
        "import sys; from queenbee import Hive; from queenbee.services.leases import edits;"
        "hive = Hive.open(droid='tester'); leases = hive.reservations;"
        f"edits.keep(leases, edits.look(leases, ['src2/lib3/[x]1234567890abc']), {SESSION!r});"
        "loaded = 'queenbee.services.writing.credentials' in sys.modules;"
        "print(len(hive.reservations.find()), loaded)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=repo, capture_output=True, check=True
    )
    assert done.stdout.split() == [b"1", b"False"]
