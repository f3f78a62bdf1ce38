"""The hive under asyncio: what is cancelled leaves nothing, and no thread outlives its task."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hives import write_lines

from queenbee import AsyncHive, Begin, Hive
from queenbee.errors import Busy, Held, InvalidInput
from queenbee.library import async_hive


@pytest.fixture
def held(repo: Path) -> Hive:
    """The hive of a droid that has everything."""
    hive = Hive.open(repo, droid="ui-engineer", env={})
    rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    for each in rows:
        hive.assignments.claim(str(each["id"]))
    hive.reservations.reserve(["a"])
    return hive


@asynccontextmanager
async def opened(root: Path, droid: str = "api") -> AsyncIterator[AsyncHive]:
    async with await AsyncHive.open(root, droid=droid, env={}) as hive:
        yield hive


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "queenbee"]


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


def test_the_calls_are_those_of_the_hive_awaited(held: Hive, repo: Path) -> None:
    async def main() -> None:
        async with opened(repo) as hive:
            (lease,) = await hive.reservations.reserve(["b"], reason="x")
            assert lease in held.reservations.find()
            with pytest.raises(Held):
                await hive.reservations.reserve(["a"])
            issue = await hive.issues.new("Search", priority=1)
            begun = await hive.next()
            assert isinstance(begun, Begin)
            assert begun.assignment.issue_id == issue
            assert (await hive.complete(reason="done")).completed
            assert [each.body for each in await hive.messages.send("ui-engineer", "hi")] == ["hi"]
            assert (await hive.worktrees.list())[0].path == str(repo)
            assert (await hive.log(1))[0].by == "api"

    asyncio.run(main())
    assert threads() == []


WAITS: dict[str, Callable[[AsyncHive], Awaitable[Any]]] = {
    "reserve": lambda hive: hive.reservations.reserve(["a"], timeout_s=60),
    "claim": lambda hive: hive.assignments.claim("qb-1", timeout_s=60),
    "next": lambda hive: hive.next(timeout_s=60),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_task_that_is_cancelled_leaves_nothing(name: str, held: Hive, repo: Path) -> None:
    async def main() -> None:
        async with opened(repo) as hive:
            task = asyncio.ensure_future(WAITS[name](hive))
            await until(held.queue.everything)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert held.queue.everything() == []
            assert threads() == []
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await WAITS[name](hive)
            assert held.queue.everything() == []
            held.reservations.release(["a"])
            for each in ("qb-1", "qb-2"):
                held.assignments.release(each)
            assert held.reservations.find() == []
            assert held.assignments.find() == []
            await WAITS[name](hive)  # It is as usable as before.

    asyncio.run(main())


def test_what_is_granted_when_the_task_is_cancelled_is_given_back(
    held: Hive, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grant is recorded, and its thread has not told the task yet."""
    recorded, go_on, begun = threading.Event(), threading.Event(), async_hive._begun

    def slow(call: Callable[[], Any]) -> asyncio.Future[Any]:
        def late() -> Any:
            found = call()
            recorded.set()
            assert go_on.wait(30)
            return found

        return begun(late)

    async def main() -> None:
        async with opened(repo) as hive:
            await hive.reservations.reserve(["mine"])
            monkeypatch.setattr(async_hive, "_begun", slow)
            leases = hive.reservations.reserve(["b", "mine"])
            share = hive.next(take=True)  # The issue, and the one that waits for it alone.
            for wanted in (leases, hive.assignments.claim("qb-3"), hive.next(), share):
                recorded.clear()
                go_on.clear()
                task = asyncio.ensure_future(wanted)
                await until(recorded.is_set)
                task.cancel()
                go_on.set()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert [each.pattern for each in held.reservations.find(droid="api")] == ["mine"]
                assert held.assignments.find(droid="api") == []
            monkeypatch.setattr(async_hive, "_begun", begun)

    first = {"id": "qb-3", "title": "x", "status": "open"}
    then = {"id": "qb-4", "title": "y", "status": "open", "dependencies": ["qb-3"]}
    write_lines(repo / ".beads" / "issues.jsonl", first, then)
    asyncio.run(main())


def test_many_tasks_wait_at_once_and_each_is_served(held: Hive, repo: Path) -> None:
    async def main() -> None:
        usual_s = held.layout.settings.lock_timeout_s
        async with opened(repo) as hive:
            waits = [hive.reservations.reserve(["a"], timeout_s=3600) for _ in range(10)]
            tasks = [asyncio.ensure_future(each) for each in waits]
            await until(lambda: len(held.queue.everything()) == len(tasks))
            assert (await hive.reservations.check(["b"]))[0].status == "free"  # None blocks others.
            held.reservations.release(["a"])
            assert len(await asyncio.gather(*tasks)) == len(tasks)
            assert hive.sync.layout.settings.lock_timeout_s == usual_s

    asyncio.run(main())
    assert threads() == []


def test_a_hive_that_is_closed_gives_up_what_waits(held: Hive, repo: Path) -> None:
    async def main() -> None:
        hive = await AsyncHive.open(repo, droid="api", env={})
        task = asyncio.ensure_future(hive.reservations.reserve(["a"], timeout_s=60))
        await until(held.queue.everything)
        await hive.close()
        assert held.queue.everything() == []
        with pytest.raises(Exception, match="given up"):
            await task
        with pytest.raises(InvalidInput, match="closed"):
            await hive.reservations.find()

    asyncio.run(main())


def test_changes_come_until_the_task_ends(held: Hive, repo: Path) -> None:
    async def main() -> None:
        seen: list[str] = []

        async def follow(hive: AsyncHive, cursor: str) -> None:
            async for change in hive.changes(cursor, kinds=["messages"]):
                seen.append(str(change.after.get("body")))  # noqa: PERF401 - as they come

        async with opened(repo) as hive:
            task = asyncio.ensure_future(follow(hive, await hive.cursor()))
            for text in ("one", "two"):
                held.messages.send("api", text)
                await until(lambda text=text: text in seen)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert seen == ["one", "two"]

    asyncio.run(main())
    assert threads() == []


def test_a_timeout_of_the_call_itself_is_busy(held: Hive, repo: Path) -> None:
    async def main() -> None:
        async with opened(repo) as hive:
            with pytest.raises(Busy):
                await hive.reservations.reserve(["a"], timeout_s=0.1)

    asyncio.run(main())


def test_each_awaited_call_has_the_words_of_its_call() -> None:
    for kind in (AsyncHive, async_hive.AsyncReservations, async_hive.AsyncIssues):
        for name, call in vars(kind).items():
            if not name.startswith("_") and inspect.iscoroutinefunction(call) and name != "close":
                assert call.__doc__, name
