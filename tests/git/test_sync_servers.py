"""`queen sync` and confirmed grants over what a team has: a folder, `git daemon`, smart HTTP."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hives import git
from http_remote import HttpRemote
from sync_worlds import BRANCH, HOUR_S, World

from queenbee.errors import ExternalFailure, Taken, Unreachable
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.confirmed_grants import confirmed
from queenbee.git.remote.syncing import sync
from tests.torture.network import Proxy, Server

pytestmark = pytest.mark.slow


@pytest.fixture(params=["file", "git", "http"])
def three(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Clones of one remote over each protocol; the clocks of two are two hours apart."""
    world = World(tmp_path)
    world.clone("ada", off_s=HOUR_S)
    world.clone("bob", off_s=-HOUR_S)
    if request.param == "file":
        yield world
        return
    server = Server(str(tmp_path), request.param)
    url = server.url(server.port, "remote.git")
    for name in ("ada", "bob"):
        git(tmp_path / name, "remote", "set-url", "origin", url)
    yield world
    server.stop()


@pytest.fixture
def over_http(tmp_path: Path) -> Iterator[tuple[World, HttpRemote]]:
    world = World(tmp_path)
    path = world.clone("ada")
    server = HttpRemote(str(tmp_path))
    git(path, "remote", "set-url", "origin", f"http://127.0.0.1:{server.port}/remote.git")
    yield world, server
    server.stop()


def claim(world: World, name: str, issue_id: str) -> int:
    hive = world.hive(name)
    given = confirmed(hive, lambda: [hive.assignments.claim(issue_id)])
    return given[0].token or 0


class TestEveryServer:
    def test_brings_all_records_to_both(self, three: World) -> None:
        three.hive("ada").messages.send("bob", "x" * 200_000, subject="long")
        for name in ("ada", "bob"):
            three.hive(name).assignments.claim(f"shop-{name}")
            sync(three.hive(name))
        sync(three.hive("ada"))
        held = [
            sorted(each.droid for each in three.hive(name).assignments.find())
            for name in ("ada", "bob")
        ]
        assert held == [["ada", "bob"]] * 2
        assert [each.subject for each in three.hive("bob").messages.inbox()] == ["long"]

    def test_confirms_one_grant_of_two(self, three: World) -> None:
        claim(three, "bob", "shop-1")
        with pytest.raises(Taken):
            claim(three, "ada", "shop-1")
        assert [each.droid for each in three.hive("ada").assignments.find()] == ["bob"]

    def test_tells_an_overtaken_push_from_an_unreachable_remote(
        self, three: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        push, pushes = Branch.push, []

        def late(branch: Branch, commit: str) -> bool:
            monkeypatch.setattr(Branch, "push", push)
            claim(three, "bob", "shop-2")
            pushes.append(push(branch, commit))
            return pushes[-1]

        monkeypatch.setattr(Branch, "push", late)
        assert claim(three, "ada", "shop-1") == 2
        assert pushes == [False]

    @pytest.mark.some(1)
    def test_of_two_at_the_same_moment_one_waits_for_the_other(self, three: World) -> None:
        tokens: list[int] = []

        def work(name: str) -> None:
            tokens.extend(claim(three, name, f"{name}-{turn}") for turn in range(3))

        threads = [threading.Thread(target=work, args=(name,)) for name in ("ada", "bob")]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(tokens) == len(set(tokens)) == 6
        assert int(three.git("rev-list", "--count", BRANCH)) >= 6

    def test_that_refuses_the_push_for_good_says_so(self, three: World) -> None:
        hook = three.bare / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\necho not here >&2\nexit 1\n")
        hook.chmod(0o755)
        with pytest.raises(ExternalFailure, match="pre-receive hook declined"):
            claim(three, "ada", "shop-1")
        assert three.hive("ada").assignments.find() == []


class TestHttp:
    def test_a_large_push_goes_in_chunks(self, over_http: tuple[World, HttpRemote]) -> None:
        world, server = over_http
        git(world.folder / "ada", "config", "http.postBuffer", "70000")
        noise = random.Random(1)
        body = "".join(chr(noise.randrange(0x4E00, 0x9FFF)) for _ in range(60_000))
        world.hive("ada").messages.send("queen", body, subject="noise")
        assert sync(world.hive("ada")).sent == 1
        assert len(world.lines()) == 1
        assert server.chunked == ["/remote.git/git-receive-pack"]

    @pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
    def test_a_server_that_refuses_grants_nothing(
        self, over_http: tuple[World, HttpRemote], status: int
    ) -> None:
        world, server = over_http
        server.refuse = lambda path: status
        with pytest.raises(Unreachable, match="cannot be reached"):
            claim(world, "ada", "shop-1")
        assert world.hive("ada").assignments.find() == []

    def test_a_server_that_may_only_be_read_grants_nothing(
        self, over_http: tuple[World, HttpRemote]
    ) -> None:
        world, server = over_http
        server.refuse = lambda path: 403 if "receive-pack" in path else 0
        with pytest.raises(Unreachable, match="403"):
            claim(world, "ada", "shop-1")
        assert world.hive("ada").assignments.find() == []
        server.refuse = lambda path: 0
        sync(world.hive("ada"))
        assert all(line.get("deleted") for line in world.lines() if line.get("rev") == 2)

    def test_a_grant_takes_two_round_trips_to_fetch_and_two_to_push(
        self, over_http: tuple[World, HttpRemote]
    ) -> None:
        world, server = over_http
        claim(world, "ada", "shop-1")
        server.requests.clear()
        claim(world, "ada", "shop-2")
        asked = [each.split("?")[0].rpartition("/")[2] for each in server.requests]
        assert asked == ["refs", "git-upload-pack", "refs", "git-receive-pack"]


@pytest.fixture(params=["git", "http"])
def slow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A clone with three MiB that nothing can compress, over half a MiB a second."""
    world = World(tmp_path)
    path = world.clone("ada")
    server = Server(str(tmp_path), request.param)
    proxy = Proxy(server.port, 1, cuts=0, most_bytes_s=2**20)
    proxy.start()
    git(path, "remote", "set-url", "origin", server.url(proxy.port, "remote.git"))
    world.settings("ada", '[sync]\ntimeout = "1s"\n')
    noise = random.Random(1)
    for number in range(8):
        body = noise.randbytes(3 * 2**17).hex()
        world.hive("ada").messages.send("queen", body, subject=str(number))
    yield world
    proxy.stop()
    server.stop()


class TestSlowLink:
    def test_a_push_takes_longer_than_the_timeout_while_it_goes_on(self, slow: World) -> None:
        began_s = time.monotonic()
        assert sync(slow.hive("ada")).sent == 8
        assert time.monotonic() - began_s > 2  # the link is the limit: the timeout is one second
        assert len(slow.lines()) == 8
