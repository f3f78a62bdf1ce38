"""A clone, or what it pulls, names a hive in the user's database: nobody has agreed to that."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from hives import Queen, QuickQueen, at_a_terminal, git
from sync_worlds import World

from queenbee import Hive
from queenbee.git.remote.syncing import sync
from queenbee.services import unasked
from queenbee.store.carriers.postgres.agreed import unagreed
from queenbee.store.layout import note_engine
from queenbee.store.trust import Trust

pytestmark = pytest.mark.slow


@pytest.fixture
def private(server: Any) -> str:
    """A hive of another repository, with one line."""
    hive = str(server.new_hive())
    line = b'{"v":1,"id":"as-1","rev":1,"issue_id":"secret-1","droid":"ann","status":"active"}'
    postgres_server.append(hive, "assignments", [line])
    return hive


@pytest.fixture
def clone(beads: Path, server: Any, private: str, asking: Path, quick: QuickQueen) -> QuickQueen:
    """A clone that says that it is that hive."""
    postgres_server.use(beads, server, private)
    git(beads.parent, "add", "--all")
    git(beads.parent, "commit", "-qm", "settings")
    return quick


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("log",),
        ("claim", "x-1", "--new"),
        ("hive", "engine", "use", "files"),
        ("hive", "engine", "use", "postgres"),
        ("hive", "engine", "use", "postgres", "--hive", "PRIVATE"),
    ],
    ids="-".join,
)
def test_nothing_is_read_or_written_before_a_person_agrees(
    clone: QuickQueen, private: str, words: tuple[str, ...]
) -> None:
    before = postgres_server.lines(private)
    words = tuple(private if each == "PRIVATE" else each for each in words)
    done = clone(*words, as_="ui", env={"CLAUDECODE": "1"})
    assert done.code == 7 and "secret-1" not in done.out, done
    assert f"this clone uses the hive {private} of your database" in done.err
    assert "a person says so: queen " in done.err
    assert postgres_server.lines(private) == before
    assert not (clone.cwd / ".git" / "queenbee" / "engine").exists()


def test_a_person_is_shown_which_hive_of_which_database(clone: QuickQueen, private: str) -> None:
    status, shown = at_a_terminal(Queen(clone.cwd), "y\n", "config", "trust")
    assert status == 0 and f"reads and writes the hive {private}" in shown, shown
    assert "in your database host=" in shown and "['" not in shown
    assert "secret-1" in clone("log").out


def test_who_types_the_name_of_the_hive_has_agreed(clone: QuickQueen, private: str) -> None:
    done = clone("hive", "engine", "use", "postgres", "--hive", private)
    assert done.code == 0 and f"is now in postgres, as {private}." in done.out, done
    assert "secret-1" in clone("log").out


@pytest.mark.parametrize("kind", ["files", "postgres"])
def test_who_types_no_name_has_not_agreed_to_one_that_a_clone_brought(
    clone: QuickQueen, private: str, beads: Path, kind: str
) -> None:
    (beads / "queen.toml").write_text(f'[engine]\nkind = "{kind}"\nhive = "{private}"\n')
    before = postgres_server.lines(private)
    refused = clone("hive", "engine", "use", "postgres")
    assert refused.code == 7 and f"queen hive engine use postgres --hive {private}" in refused.err
    assert postgres_server.lines(private) == before
    assert not (clone.cwd / ".git" / "queenbee" / "engine").exists()


def test_a_new_hive_needs_no_name_nor_does_going_back_to_it(clone: QuickQueen, beads: Path) -> None:
    (beads / "queen.toml").write_text("")
    for kind in ("postgres", "postgres", "files", "postgres"):
        done = clone("hive", "engine", "use", kind)
        assert done.code == 0, done


def test_another_hive_is_asked_for_again(clone: QuickQueen, beads: Path, server: Any) -> None:
    assert clone("config", "trust", "--yes").code == 0
    assert clone("log").code == 0
    postgres_server.use(beads, server)
    assert clone("log").code == 7


def test_where_this_clone_has_written_before_it_goes_on(
    clone: QuickQueen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert clone("config", "trust", "--yes").code == 0
    assert clone("claim", "x-1", "--new", as_="ui").code == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert clone("log").code == 0
    elsewhere = os.environ[postgres_server.URL].replace("/postgres?", "/template1?")
    assert "has agreed" in clone("log", env={postgres_server.URL: elsewhere}).err


def test_an_exchange_leaves_nothing_that_says_that_somebody_agreed(
    clone: QuickQueen, private: str, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "there")
    git(clone.cwd, "remote", "add", "origin", str(tmp_path / "there"))
    for _ in range(2):
        assert clone("sync").code == 7
    with Hive.open(clone.cwd, droid="ui", env=postgres_server.environment()) as hive:
        note_engine(hive.layout, private)
        assert unagreed(hive.layout, private)
        hive.engine.memory.identity()
        assert unagreed(hive.layout, private)
    assert git(tmp_path / "there", "branch") == ""


def test_what_is_sent_unasked_is_what_somebody_sent_of_this_hive(
    tmp_path: Path, server: Any
) -> None:
    world = World(tmp_path)
    settings = '[sync]\nwhen = "write"\n'
    (world.clone("ada") / ".beads" / "queen.toml").write_text(settings)
    ada = world.hive("ada")
    sync(ada)
    unasked.allow(ada.layout)
    assert unasked.is_allowed(ada.layout)
    beads = world.folder / "ada" / ".beads"
    hive = postgres_server.use(beads, server)
    (beads / "queen.toml").write_text(f"{(beads / 'queen.toml').read_text()}{settings}")
    moved = Hive.open(world.folder / "ada", droid="ada", env=postgres_server.environment())
    assert moved.layout.settings.engine_hive == hive
    assert not unasked.is_allowed(moved.layout)
    moved.assignments.claim("shop-1")
    unasked.request(moved.layout)
    assert not unasked.wants_exchange(moved.layout)
    unasked.allow(moved.layout)
    unasked.request(moved.layout)
    assert unasked.wants_exchange(moved.layout)
    moved.close()


class TestWhatAClonesFilesHave:
    @pytest.fixture
    def joining(self, beads: Path, server: Any, asking: Path, quick: QuickQueen) -> QuickQueen:
        """A clone that has claimed an issue in its files, and pulled that the hive is elsewhere."""
        (beads / "queen.toml").write_text('issues = "off"\n')
        assert quick("claim", "--new", "x-1", as_="bee").code == 0
        hive = postgres_server.use(beads, server)
        line = b'{"v":1,"id":"qa-9","rev":1,"issue_id":"x-9","droid":"ann","status":"active"}'
        postgres_server.append(hive, "assignments", [line])
        return quick

    def test_is_in_the_database_once_somebody_has_agreed(self, joining: QuickQueen) -> None:
        status, shown = at_a_terminal(Queen(joining.cwd), "y\n", "config", "trust")
        assert status == 0 and "1 line that only the files here had" in shown, shown
        assert joining("claim", "--new", "x-1", as_="cat").code == 5
        assert "x-1" in joining("status", as_="bee").out

    def test_is_refused_until_it_is_there(self, joining: QuickQueen, beads: Path) -> None:
        """As where git's settings agree to everything, or an older version was asked."""
        with Hive.open(joining.cwd, droid="cat", env=postgres_server.environment()) as hive:
            Trust(hive.layout).add(unagreed(hive.layout, postgres_server.hive_of(beads)))
        said = "assignments: 1 line"
        for words in (("status",), ("next",), ("claim", "--new", "x-1"), ("doctor",)):
            done = joining(*words, as_="cat")
            assert done.code in (1, 7) and said in done.out + done.err, done
            assert "queen hive engine use postgres" in done.out + done.err
        assert said in joining("hive", "engine", "status").out
        assert joining("hive", "engine", "use", "postgres", env={"CLAUDECODE": "1"}).code == 0
        assert joining("claim", "--new", "x-1", as_="cat").code == 5

    def test_is_said_where_it_came_by_a_pull(self, joining: QuickQueen, beads: Path) -> None:
        assert (
            joining(
                "hive", "engine", "use", "postgres", "--hive", postgres_server.hive_of(beads)
            ).code
            == 0
        )
        assert "x-7" not in joining("doctor").out
        with (beads / "queen_assignments.jsonl").open("a") as file:
            file.write('{"id":"qa-late","issue_id":"x-7","droid":"far","rev":1}\n')
        done = joining("doctor")
        assert done.code == 1 and "lacks (assignments: 1 line)" in done.out, done
        assert joining("hive", "engine", "status").code == 1
