"""The hive under asyncio: what is cancelled leaves nothing, and no thread outlives its task."""

from __future__ import annotations

import ast
import asyncio
import inspect
import multiprocessing
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hives import write_lines

from queenbee import AsyncHive, Begin, Hive
from queenbee.errors import Busy, Held, InvalidInput
from queenbee.library import async_hive, calls, workers


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


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("queenbee")]


def none_is_left() -> bool:
    """Whether the threads have ended: they do so right after what they tell the task."""
    until_s = time.monotonic() + 30
    while threads() and time.monotonic() < until_s:
        time.sleep(0.01)
    return not threads()


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
    assert none_is_left()


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
            assert none_is_left()
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
    recorded, go_on, done = threading.Event(), threading.Event(), calls._step

    def late_step(*given: Any) -> Any:
        found = done(*given)
        recorded.set()
        assert go_on.wait(30)
        return found

    async def main() -> None:
        async with opened(repo) as hive:
            await hive.reservations.reserve(["mine"])
            monkeypatch.setattr(calls, "_step", late_step)
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
            monkeypatch.setattr(calls, "_step", done)

    first = {"id": "qb-3", "title": "x", "status": "open"}
    then = {"id": "qb-4", "title": "y", "status": "open", "dependencies": ["qb-3"]}
    write_lines(repo / ".beads" / "issues.jsonl", first, then)
    asyncio.run(main())


def test_a_hundred_tasks_wait_without_a_thread_for_each_and_each_is_served(
    held: Hive, repo: Path
) -> None:
    async def main() -> None:
        usual_s = held.layout.settings.lock_timeout_s
        most = 0
        async with opened(repo) as hive:
            wanted = hive.reservations.reserve
            waits = [wanted(["a"], timeout_s=3600) for _ in range(80)]
            waits += [hive.wait("qb-1", timeout_s=3600) for _ in range(19)]
            tasks = [asyncio.ensure_future(each) for each in waits]
            followed = asyncio.ensure_future(anext(hive.changes(await hive.cursor(), droid="x")))
            while len(held.queue.everything()) < 80:
                most = max(most, len(threads()))
                await asyncio.sleep(0)
            assert most <= workers.MOST + 1
            await until(lambda: threads() == ["queenbee-watcher"])
            assert (await hive.reservations.check(["b"]))[0].status == "free"  # None blocks others.
            held.reservations.release(["a"])
            held.assignments.release("qb-1")
            held.issues.close("qb-1", reason="done")
            assert len(await asyncio.gather(*tasks)) == len(tasks)
            assert hive.sync.layout.settings.lock_timeout_s == usual_s
            followed.cancel()

    asyncio.run(main())
    assert none_is_left()


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
    assert none_is_left()


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
    assert "timeout_s" in inspect.signature(AsyncHive.next).parameters


def test_an_interrupt_leaves_nothing(held: Hive, repo: Path) -> None:
    """Ctrl-C cancels the main task, in a process of its own."""
    program = (
        "import asyncio, sys\nfrom queenbee import AsyncHive\n"
        "async def main():\n"
        "    async with await AsyncHive.open(sys.argv[1], droid='api') as hive:\n"
        "        await hive.reservations.reserve(['a'], timeout_s=60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(repo)], stderr=subprocess.PIPE) as it:
        asyncio.run(until(held.queue.everything))
        it.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in it.communicate(timeout=30)[1]
    assert held.queue.everything() == []


def test_a_notebook_awaits_it_in_its_own_loop_and_may_call_the_other_hive_there(
    held: Hive, repo: Path
) -> None:
    """A cell is compiled to be awaited at its top, in a loop that runs already."""
    cells = (
        "hive = await AsyncHive.open(repo, droid='api', env={})",
        "leases = await hive.reservations.reserve(['b'])",
        "found = Hive.open(repo, droid='ui', env={}).reservations.find(droid='api')",
        "await hive.close()",
    )

    async def main() -> dict[str, Any]:
        names = {"AsyncHive": AsyncHive, "Hive": Hive, "repo": repo}
        for each in cells:
            code = compile(each, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            cell = eval(code, names)
            if inspect.iscoroutine(cell):
                await cell
        return names

    names = asyncio.run(main())
    assert names["found"] == names["leases"]


def test_threads_may_have_a_loop_each_on_one_hive(held: Hive, repo: Path) -> None:
    async def main(path: str) -> None:
        async with opened(repo) as hive:
            with pytest.raises(Busy):
                await hive.reservations.reserve(["a"], timeout_s=0.2)
            await hive.reservations.reserve([path])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: asyncio.run(main(f"b{number}")), range(4)))
    assert len(held.reservations.find(droid="api")) == 4
    assert none_is_left()


def waits_in_child(root: str) -> tuple[list[Any], str]:
    async def main() -> tuple[list[Any], str]:
        async with await AsyncHive.open(root, droid="child", env={}) as hive:
            try:
                await hive.reservations.reserve(["a"], timeout_s=0.2)
            except Busy as refused:
                return await hive.reservations.reserve(["c"]), refused.code
            raise AssertionError

    signal.alarm(30)  # A child that waits for the parent's watcher waits forever.
    return asyncio.run(main())


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_process_of_a_pool_waits_while_its_parent_does(
    method: str, held: Hive, repo: Path
) -> None:
    async def main() -> None:
        async with opened(repo) as hive:
            task = asyncio.ensure_future(hive.reservations.reserve(["a"], timeout_s=60))
            await until(lambda: threads() == ["queenbee-watcher"])
            context = multiprocessing.get_context(method)
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                loop = asyncio.get_running_loop()
                leases, code = await loop.run_in_executor(pool, waits_in_child, str(repo))
            assert code == "busy"
            assert leases == held.reservations.find(droid="child")
            task.cancel()

    asyncio.run(main())
    assert held.queue.everything() == []


def test_trio_awaits_it_too(held: Hive, repo: Path) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        async with opened(repo) as hive, trio.open_nursery() as nursery:
            with trio.move_on_after(0.3) as scope:
                await hive.reservations.reserve(["a"], timeout_s=60)
            assert scope.cancelled_caught
            assert held.queue.everything() == []
            seen: list[object] = []

            async def wait(*, task_status: Any) -> None:
                task_status.started()
                seen.extend(await hive.reservations.reserve(["a"], timeout_s=60))

            await nursery.start(wait)
            while not held.queue.everything():
                await trio.sleep(0.01)
            held.reservations.release(["a"])
        assert seen == held.reservations.find(droid="api")

    trio.run(main)
    assert none_is_left()
