"""A harness with workers of its own, each a task in its worktree; one crashes. docs/api.md."""

import asyncio
import subprocess
import sys
from pathlib import Path

from queenbee import AsyncHive, Begin

NAMES = ("amber", "birch", "cedar")
CRASH = """import os, sys
from queenbee import Hive
Hive.open(droid="dahlia").assignments.claim(sys.argv[1])
os._exit(1)
"""


async def work(path: str) -> int:
    landed = 0
    async with await AsyncHive.open(path) as hive:
        try:
            async with asyncio.timeout(0.2):
                await hive.reservations.reserve(["secrets/**"], timeout_s=3600)
        except TimeoutError:
            pass  # The lead has it, and this worker no longer stands in line.
        while not (begun := await hive.next(timeout_s=300)).is_end:
            if not isinstance(begun, Begin):
                continue  # It was woken by urgent mail.
            issue_id = begun.assignment.issue_id
            await hive.reservations.reserve([f"{issue_id}.txt", "log/**"], timeout_s=300)
            Path(path, f"{issue_id}.txt").write_text("done")
            await hive.reservations.release(["log/**"])
            await hive.messages.send("lead", f"{issue_id} is ready", issue_id=issue_id)
            done = await hive.land(message=f"Do {issue_id}", reason="done", unchecked=True)
            landed += done.landing.landed
    return landed


async def follow(hive: AsyncHive, cursor: str, heard: list[str]) -> None:
    async for change in hive.changes(cursor, kinds=["messages"]):
        if str(change.after.get("body")).endswith("is ready") and change.before is None:
            heard.append(str(change.by))  # noqa: PERF401 - it never ends


async def main() -> None:
    async with await AsyncHive.open(droid="lead") as lead:
        issues = [await lead.issues.new(f"Part {n}") for n in range(6)]
        subprocess.run([sys.executable, "-c", CRASH, issues[0]])
        places = [await lead.worktrees.add(name) for name in NAMES]
        await lead.assignments.assign(issues[0], "amber", reassign=True)
        await lead.reservations.reserve(["secrets/**"])
        heard: list[str] = []
        log = asyncio.create_task(follow(lead, await lead.cursor(), heard))
        landed = await asyncio.gather(*[work(place.path) for place in places])
        while len(heard) < len(issues):
            await asyncio.sleep(0.01)
        log.cancel()
        print(
            sum(landed),
            "landed,",
            len(heard),
            "heard of,",
            len(await lead.assignments.find()),
            "left",
        )


asyncio.run(main())
