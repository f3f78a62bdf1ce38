"""What somebody wrote into a ledger by hand and looks like a secret does not leave the machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from hives import QuickQueen
from sync_worlds import BRANCH, World

from queenbee import Hive
from queenbee.git.remote.syncing import sync
from queenbee.services.writing.secrets import OVERRIDE

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ROW = {"created_at": "2026-11-22T10:00:00.000Z", "from": "ada", "to": "bob", "rev": 1}
ROWS = {
    "text": json.dumps({"id": "qm-1", **ROW, "subject": "x", "body": f"use {TOKEN}"}),
    "escaped": json.dumps({"id": "qm-2", **ROW, "body": TOKEN}).replace("ghp_", "\\u0067hp_"),
    "nested": json.dumps({"id": "qm-3", **ROW, "more": [{"deep": TOKEN}]}),
    "instant": json.dumps({"id": "qm-4", **ROW, "read_at": TOKEN}),
    "name": json.dumps({"id": "qm-5", **ROW, TOKEN: 1}),
    "password": json.dumps({"id": "qm-6", **ROW, "password": "correct horse"}),
    "twice": json.dumps({"id": "qm-7", **ROW, "body": TOKEN})[:-1] + ',"body":"harmless"}',
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.clone("ada")
    world.hive("ada").assignments.claim("shop-1")
    return world


def _write(world: World, *rows: str, kind: str = "messages") -> Path:
    path = world.folder / "ada" / ".beads" / f"queen_{kind}.jsonl"
    with path.open("a") as file:
        file.write("".join(f"{row}\n" for row in rows))
    return path


def _all_on_branch(world: World) -> str:
    names = world.git("ls-tree", "-r", "--name-only", BRANCH).splitlines()
    return "".join(world.git("cat-file", "blob", f"{BRANCH}:{name}") for name in names)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_line_that_looks_like_a_secret_stays_and_all_else_goes(world: World, row: str) -> None:
    plain = json.dumps({"id": "qm-9", **ROW, "subject": "hello", "body": "hello"})
    path = _write(world, plain, "", row)
    (found,) = sync(world.hive("ada")).withheld
    assert (found.file, found.line) == (str(path), 3)
    assert TOKEN not in str(found.to_dict()) and "horse" not in str(found.to_dict())
    assert {line.get("id") for line in world.lines()} >= {"qm-9"}
    assert row not in _all_on_branch(world)
    assert len(world.lines()) == 2


def test_it_stays_also_later_and_is_said_until_it_is_gone(world: World) -> None:
    _write(world, ROWS["text"])
    sync(world.hive("ada"))
    world.hive("ada").assignments.claim("shop-2")
    done = sync(world.hive("ada"))
    assert [each.line for each in done.withheld] == [1] and done.sent == 1
    assert TOKEN not in _all_on_branch(world)
    ran = QuickQueen(world.folder / "ada")("doctor")
    assert ran.code == 1
    assert "not sent: it seems to hold a secret (GitHub Token)" in " ".join(ran.out.split())
    assert TOKEN not in ran.out


def test_a_person_who_says_that_it_is_none_has_it_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(world, ROWS["text"])
    sync(world.hive("ada"))
    hive = world.hive("ada")
    hive.allow_secrets = True
    assert (sync(hive).sent, sync(hive).withheld) == (1, [])
    assert TOKEN in _all_on_branch(world)
    assert sync(world.hive("ada")).sent == 0


def test_one_that_is_purged_is_told_no_more(world: World) -> None:
    path = _write(world, ROWS["text"])
    sync(world.hive("ada"))
    path.write_text("")
    shutil.rmtree(world.folder / "ada" / ".git" / "queenbee")
    assert sync(world.hive("ada")).withheld == []
    assert TOKEN not in _all_on_branch(world)


def test_the_command_names_the_line_and_never_the_secret(world: World) -> None:
    _write(world, ROWS["text"])
    queen = QuickQueen(world.folder / "ada")
    ran = queen("sync", as_="ada")
    assert "queen_messages.jsonl:1: not sent: it seems to hold a secret (GitHub Token)" in ran.out
    assert "QUEEN_ALLOW_SECRET=1 queen sync" in ran.out and TOKEN not in ran.out + ran.err
    found = json.loads(queen("sync", "--json", as_="ada").out)["withheld"]
    assert [(each["code"], each["line"]) for each in found] == [("not_sent", 1)]


def test_a_copy_of_a_database_lacks_it_too(tmp_path: Path, server: Any) -> None:
    world = World(tmp_path)
    postgres_server.use(world.clone("ada") / ".beads", server)
    env = {"QUEEN_DURABILITY": "buffered", **postgres_server.environment()}
    with Hive.open(world.folder / "ada", droid="ada", env={**env, OVERRIDE: "1"}) as hive:
        hive.messages.send("ada", f"use {TOKEN}")
    with Hive.open(world.folder / "ada", droid="ada", env=env) as hive:
        hive.assignments.claim("shop-1")
        assert len(sync(hive).withheld) == 1
    assert TOKEN not in _all_on_branch(world)


def test_no_secret_is_carried_to_a_database(
    world: World, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = json.dumps({"id": "qm-9", **ROW, "subject": "hello", "body": "hello"})
    path = _write(world, ROWS["escaped"], plain)
    monkeypatch.setenv(postgres_server.URL, server.url)
    queen = QuickQueen(world.folder / "ada")
    ran = queen("hive", "engine", "use", "postgres", "--hive", "hive-secret")
    assert ran.code == 0 and f"{path}:1: not sent" in ran.err and TOKEN not in ran.err
    assert postgres_server.lines("hive-secret", "messages") == [plain.encode()]
    assert ROWS["escaped"] in path.read_text()
    assert queen("hive", "engine", "use", "postgres", env={OVERRIDE: "1"}).code == 0
    assert len(postgres_server.lines("hive-secret", "messages")) == 2


def test_a_row_of_the_tracker_with_a_secret_reaches_no_database(
    tmp_path: Path, server: Any
) -> None:
    world = World(tmp_path)
    beads = world.clone("ada") / ".beads"
    postgres_server.use(beads, server)
    rows = [{"id": "s-1", "title": f"use {TOKEN}"}, {"id": "s-2", "title": "Two"}]
    (beads / "issues.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    env = {"QUEEN_DURABILITY": "buffered", **postgres_server.environment()}
    with Hive.open(world.folder / "ada", droid="ada", env=env) as hive:
        hive.assignments.claim("s-2")
        hive.issues.edit("s-1", priority=1)
        lines = [line for _, line in hive.state("issues").lines_after(0)]
        assert TOKEN not in str(lines) and "s-2" in str(lines)
        assert hive.issues.get("s-1").title == f"use {TOKEN}"
