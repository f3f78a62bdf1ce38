"""What `queen watch` costs over a large hive, and its picture for the documentation.

    python -m bench.board                             opens and leaves it, in a terminal
    python -m bench.board --picture docs/pictures/watch.svg    a small team, by real commands

The figures: how long until everything is on the screen, beside `import textual`; how much memory;
and how much processor time while nothing happens.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from queenbee.core.ids import ulid
from queenbee.core.timestamps import format_ms

QUEEN = (sys.executable, "-c", "from queenbee.cli.main import main; main()")
DROIDS, ISSUES, MESSAGES = 50, 2_000, 100_000
STORY = (
    (1, "Cart shows the wrong total", 0, 0),
    (2, "Receipt needs the tax", 1, 0),
    (3, "Search is slow", 1, 0),
    (4, "Empty cart has no picture", 2, 0),
    (5, "Receipt as PDF", 2, 2),
    (6, "Search by color", 2, 3),
    (7, "Cart survives a reload", 3, 1),
)
"""Number, title and priority of an issue, and the one that it waits for."""
_IDLE_S = 30
_HOUR_MS = 3_600_000
_COLUMNS, _ROWS = 160, 50


def make_large(repo: Path, *, messages: int = MESSAGES) -> None:
    """Makes a hive with 50 droids at work, 2,000 issues and so many messages."""
    beads = repo / ".beads"
    beads.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    now_ms = time.time_ns() // 1_000_000
    names = [f"droid-{number:02d}" for number in range(DROIDS)]

    def write(kind: str, prefix: str, rows: list[tuple[int, dict[str, object]]]) -> None:
        lines = (
            {"id": f"{prefix}-{ulid(ms, os.urandom(10))}", "created_at": format_ms(ms), **row}
            for ms, row in rows
        )
        text = "".join(json.dumps({**line, "rev": 1}) + "\n" for line in lines)
        (beads / f"queen_{kind}.jsonl").write_text(text)

    write(
        "messages",
        "qm",
        [
            (
                now_ms - (messages - number) * 600,
                {
                    "from": names[number % DROIDS],
                    "to": names[number * 7 % DROIDS],
                    "subject": f"About {number}",
                    "body": f"What there is to say about {number}. " * 4,
                    "issue_id": f"qb-{number % ISSUES}",
                    "read": number < messages - 500,
                },
            )
            for number in range(messages)
        ],
    )
    grant = {"status": "active", "updated_at": format_ms(now_ms)}
    write(
        "assignments",
        "qa",
        [
            (now_ms - _HOUR_MS + number, {"issue_id": f"qb-{3 * number}", "droid": name, **grant})
            for number, name in enumerate(names)
        ],
    )
    write(
        "reservations",
        "qr",
        [
            (
                now_ms - _HOUR_MS + number,
                {
                    "pattern": f"src/{name}-{part}.py",
                    "droid": name,
                    "issue_id": f"qb-{3 * number}",
                    "expires_at": format_ms(now_ms + _HOUR_MS + number * 60_000),
                    "exclusive": True,
                    **grant,
                },
            )
            for number, name in enumerate(names)
            for part in range(4)
        ],
    )
    with (beads / "issues.jsonl").open("w") as file:
        for number in range(ISSUES):
            made = format_ms(now_ms - 30 * _HOUR_MS + number)
            row = {
                "id": f"qb-{number}",
                "title": f"Issue {number} about src/droid-{number % DROIDS:02d}-0.py",
                "status": "open",
                "priority": number % 5,
                "created_at": made,
                "updated_at": made,
                "dependencies": [{"depends_on_id": f"qb-{number - 1}"}] if number % 3 else [],
            }
            file.write(json.dumps(row) + "\n")


class Window:
    """A `queen watch` in a pseudo-terminal, and what it has drawn."""

    def __init__(self, repo: Path, droid: str) -> None:
        self.drawn = b""
        self.begun_s = time.monotonic()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(repo)
            os.environ["TERM"] = "xterm-256color"
            os.execv(QUEEN[0], [*QUEEN, "--as", droid, "watch"])
        size = struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, size)

    def until(self, text: str, *, at_most_s: float = 120) -> float:
        """Returns the seconds since the start until a text was drawn."""
        end_s = time.monotonic() + at_most_s
        while text.encode() not in self.drawn:
            if time.monotonic() > end_s:
                raise TimeoutError(f"{text!r} was never drawn")
            self._read(0.05)
        return time.monotonic() - self.begun_s

    def idle(self, seconds: float) -> float:
        """Returns the processor seconds that it uses in so many seconds."""
        before, end_s = self._used_s(), time.monotonic() + seconds
        while time.monotonic() < end_s:
            self._read(0.5)
        return self._used_s() - before

    def peak_mib(self) -> float:
        """Returns the most memory that it has used so far."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024

    def leave(self) -> int:
        """Presses `q`, and returns the status that it exits with."""
        os.write(self._fd, b"q")
        ended, status = 0, 0
        end_s = time.monotonic() + 30
        while not ended:
            self._read(0.05)
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if not ended and time.monotonic() > end_s:
                os.kill(self.pid, signal.SIGKILL)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)

    def _read(self, wait_s: float) -> None:
        if select.select([self._fd], [], [], wait_s)[0]:
            try:
                self.drawn += os.read(self._fd, 1 << 16)
            except OSError:  # It has ended.
                time.sleep(wait_s)

    def _used_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(messages: int) -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder) / "large"
        make_large(repo, messages=messages)
        # The index is made once in the life of a hive.
        subprocess.run([*QUEEN, "--as", "droid-00", "status"], cwd=repo, stdout=subprocess.DEVNULL)
        begun_s = time.monotonic()
        subprocess.run([sys.executable, "-c", "import textual.app"], check=True)
        floor_s = time.monotonic() - begun_s
        window = Window(repo, "droid-01")
        # All lists are drawn with the first line, which has this.
        open_s = window.until(f"of {ISSUES} issues done")
        window.idle(3)
        used_s = window.idle(_IDLE_S)
        peak_mib, status = window.peak_mib(), window.leave()
    print(f"hive            {DROIDS} droids, {ISSUES} issues, {messages} messages")
    print(f"open            {open_s:.2f} s, of which import textual {floor_s:.2f} s")
    print(f"memory          {peak_mib:.0f} MiB at most")
    print(f"idle            {1000 * used_s:.0f} ms of processor time in {_IDLE_S} s")
    print(f"exit            {status}")


def take_picture(into: Path) -> None:
    """Has a team work by real commands, and writes what the board shows of it."""
    from queenbee.tui.application import Board
    from queenbee.tui.listing import Listing
    from queenbee.workflows.complete_hive import Hive

    async def taken(hive: Hive) -> str:
        board = Board(hive)
        async with board.run_test(size=(150, 42)) as pilot:
            conflicts = board.screen.query_one("#conflicts", Listing)
            while not conflicts.panel.rows:
                await pilot.pause(0.05)
            await pilot.press("2")
            await pilot.pause(0.2)
            return board.export_screenshot(title="queen watch")

    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder) / "shop"
        waiter = act(repo)
        try:
            # As it is a minute later: leases have begun to run out.
            later = time.time_ns() // 1_000_000 + 70_000
            svg = asyncio.run(taken(Hive.open(repo, droid="human", env={}, clock=lambda: later)))
        finally:
            waiter.kill()
            waiter.wait()
    # Its font comes from the internet; any font of one width will do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    into.write_text(svg)


def act(repo: Path) -> subprocess.Popen[bytes]:
    """Makes a repository with a team at work, and returns the process of one that waits."""
    home = {"XDG_STATE_HOME": str(repo.parent / "state")}
    env = {**os.environ, **home, "GIT_AUTHOR_NAME": "Shop", "GIT_AUTHOR_EMAIL": "shop@example.com"}
    env |= {"GIT_COMMITTER_NAME": "Shop", "GIT_COMMITTER_EMAIL": "shop@example.com"}
    env.pop("QUEEN_DROID", None)

    def run(*command: str, cwd: Path = repo) -> None:
        subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL)

    def queen(droid: str, *words: str) -> None:
        tree = repo.parent / droid
        run(*QUEEN, "--as", droid, *words, cwd=tree if tree.exists() else repo)

    repo.mkdir()
    run("git", "init", "-q", "-b", "main")
    for name in ("cart.py", "search.py", "receipt.py", "tax.py"):
        (repo / name).write_text("".join(f"line {number}\n" for number in range(1, 9)))
    run(*QUEEN, "init")
    rows = [
        {
            "id": f"shop-{number}",
            "title": title,
            "status": "open",
            "priority": priority,
            "created_at": f"2026-01-0{number}T09:00:00Z",
            "updated_at": f"2026-01-0{number}T09:00:00Z",
            "dependencies": [{"depends_on_id": f"shop-{before}"}] if before else [],
        }
        for number, title, priority, before in STORY
    ]
    with (repo / ".beads" / "issues.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    run("git", "add", "-A")
    run("git", "commit", "-qm", "A shop")
    for droid in ("ui-engineer", "api-engineer"):
        run("git", "worktree", "add", "-q", str(repo.parent / droid), "-b", droid)
        queen(droid, "hive", "whoami", "--set", droid)
    queen("ui-engineer", "claim", "shop-4")
    queen("ui-engineer", "complete", "shop-4", "--no-verify", "--reason", "merged")
    queen("ui-engineer", "claim", "shop-1")
    queen("ui-engineer", "reserve", "cart.py", "--issue", "shop-1", "--ttl", "30m")
    queen("api-engineer", "claim", "shop-2")
    queen("api-engineer", "reserve", "tax.py", "--issue", "shop-2", "--ttl", "110s")
    queen("api-engineer", "reserve", "receipt.py", "--issue", "shop-2", "--ttl", "2h")
    gate = ("--workflow", "shop", "--phase", "release")
    queen("reviewer", "gate", "new", *gate, "--name", "Ready to ship")
    queen("reviewer", "gate", "add-rule", *gate, "--test", "test -f CHANGELOG.md")
    subprocess.run([*QUEEN, "gate", "run", *gate], cwd=repo, env=env, stdout=subprocess.DEVNULL)
    queen("api-engineer", "msg", "send", "ui-engineer", "I need cart.py for the tax, for a minute")
    queen("ui-engineer", "msg", "send", "human", "Which currency first?", "--issue", "shop-1")
    queen("reviewer", "msg", "send", "@all", "I review after lunch", "--importance", "high")
    for droid in ("ui-engineer", "api-engineer"):
        text = (repo / "search.py").read_text().replace("line 4", f"line 4 of {droid}")
        (repo.parent / droid / "search.py").write_text(text)
    wait = [*QUEEN, "--as", "reviewer", "reserve", "cart.py", "--wait", "10m"]
    waiter = subprocess.Popen(wait, cwd=repo, env=env, stderr=subprocess.DEVNULL)
    queue = repo / ".git" / "queenbee" / "queue"
    while not queue.is_dir() or not any(queue.iterdir()):
        time.sleep(0.05)
    return waiter


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench.board")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--picture", metavar="FILE")
    given = parser.parse_args()
    if given.picture:
        take_picture(Path(given.picture))
    else:
        measure(given.messages)


if __name__ == "__main__":
    main()
