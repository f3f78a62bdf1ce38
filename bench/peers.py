"""Measures the same work with QueenBee and with other tools, in turn, in one run.

    python -m bench.peers [--agent-mail PYTHON] [--json FILE] [--charts FOLDER]

Each tool is used as its documentation says. `queen` is one process for each call. `queen mcp` and
MCP Agent Mail are servers: the requests are timed, and the start of the server is told apart.
`--agent-mail` names the Python of an environment with `mcp-agent-mail`. `QUEEN_BENCH_PEERS` may
name a file of commands for other tools: `bench.peer_commands` says what it holds.

Prints figures and judges nothing. `bench/results/performance.md` quotes them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from bench import peer_commands, results
from bench.processes import installed
from bench.stores import lease_pattern, make_hive, queen
from queenbee.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.results import Row

RUNS = 15
RACERS = 8
RACES = 5
MESSAGES = 20
LIVE = (0, 1_000, 10_000)
SEND, INBOX, RESERVE, CLAIM = "send", "inbox", "reserve", "claim"
_START_S = 60


class Peer(Protocol):
    """A tool with a place of its own, in which so many reservations are live."""

    name: str
    works: frozenset[str]
    start_s: float
    """What its server took to start; 0 if it has none."""

    def do(self, work: str, number: int, agent: int) -> bool:
        """Does one piece of work; returns whether it was granted without a conflict."""

    def close(self) -> None:
        """Ends what was started."""


class Queen:
    """`queen`, a process for each call."""

    name = "queen"
    works = frozenset({SEND, INBOX, RESERVE, CLAIM})
    start_s = 0.0

    def __init__(self, folder: str, live: int) -> None:
        self._tree = folder
        make_hive(folder, leases=live)
        for agent in range(RACERS):
            queen(folder, "--as", _droid(agent), "msg", "send", _droid(0), "hello", "--new")

    def do(self, work: str, number: int, agent: int) -> bool:
        arguments = {
            SEND: ("msg", "send", _droid(0), f"message {number}"),
            INBOX: ("msg", "inbox", "--limit", str(MESSAGES)),
            RESERVE: ("reserve", _path(number)),
            CLAIM: ("claim", f"qb-{number % 100}"),
        }[work]
        command = [*installed("queen"), "--as", _droid(agent), *arguments]
        return _granted(subprocess.run(command, cwd=self._tree, capture_output=True), 5)

    def close(self) -> None:
        pass


class QueenServer:
    """`queen mcp`, a server for each agent, over its standard streams."""

    name = "queen mcp"
    works = Queen.works

    def __init__(self, folder: str, live: int) -> None:
        Queen(folder, live)
        self._servers = []
        begun = time.perf_counter()
        for agent in range(RACERS):
            self._servers.append(
                _Stdio([*installed("queen"), "--as", _droid(agent), "mcp"], folder)
            )
            if not agent:
                self.start_s = time.perf_counter() - begun

    def do(self, work: str, number: int, agent: int) -> bool:
        given: dict[str, object] = {
            SEND: {"to": _droid(0), "body": f"message {number}"},
            INBOX: {"limit": MESSAGES},
            RESERVE: {"patterns": [_path(number)]},
            CLAIM: {"issue": f"qb-{number % 100}"},
        }[work]
        answer = self._servers[agent].call(work, given)
        if not answer.get("isError"):
            return True
        error = answer["structuredContent"]["error"]
        if error["code"] not in ("held", "taken"):
            raise RuntimeError(f"queen mcp: {error}")
        return False

    def close(self) -> None:
        for server in self._servers:
            server.close()


class AgentMail:
    """MCP Agent Mail: one server for all agents, over HTTP."""

    name = "MCP Agent Mail"
    works = frozenset({SEND, INBOX, RESERVE})

    def __init__(self, folder: str, live: int, python: str) -> None:
        os.makedirs(folder)
        self._project = os.path.join(folder, "project")
        subprocess.run(["git", "init", "-q", self._project], check=True)
        database = os.path.join(folder, "storage.sqlite3")
        self._port = _free_port()
        environment = {
            **os.environ,
            "HOME": folder,
            "STORAGE_ROOT": os.path.join(folder, "mailbox"),
            "DATABASE_URL": f"sqlite+aiosqlite:///{database}",
            "MCP_TOOLS_MODE": "extended",
            # Nothing may leave this machine, and a screen full of logs is not what is measured.
            "LLM_ENABLED": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "TOOLS_LOG_ENABLED": "false",
        }
        begun = time.perf_counter()
        self._server = subprocess.Popen(
            [python, "-m", "mcp_agent_mail.cli", "serve-http", "--port", str(self._port)],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._until_it_answers()
            self.start_s = time.perf_counter() - begun
            self._call("ensure_project", human_key=self._project)
            for agent in range(RACERS + 1):
                self._call("register_agent", name=_name(agent), program="bench", model="none")
            self._seed(database, live)
        except BaseException:
            self.close()
            raise

    def do(self, work: str, number: int, agent: int) -> bool:
        if work == SEND:
            message = {"to": [_name(0)], "subject": "hello", "body_md": f"message {number}"}
            self._call("send_message", sender_name=_name(agent), **message)
        elif work == INBOX:
            given = {"limit": MESSAGES, "include_bodies": True}
            self._call("fetch_inbox", agent_name=_name(agent), **given)
        else:
            return not self._reserve(agent, _path(number))["conflicts"]
        return True

    def close(self) -> None:
        self._server.terminate()
        self._server.wait()

    def _reserve(self, agent: int, path: str) -> dict[str, Any]:
        given = {"paths": [path], "ttl_seconds": 7200}
        answer = self._call("file_reservation_paths", agent_name=_name(agent), **given)
        found: dict[str, Any] = answer["structuredContent"]
        return found

    def _seed(self, database: str, live: int) -> None:
        """Copies one reservation as often as wanted: 1,000 requests would take two minutes."""
        if not live:
            return
        self._reserve(RACERS, "seed/first.py")
        with sqlite3.connect(database, timeout=30) as db:
            db.row_factory = sqlite3.Row
            row = dict(db.execute("SELECT * FROM file_reservations").fetchone())
            del row["id"]
            names = ", ".join(row)
            rows = [
                tuple({**row, "path_pattern": pattern}.values())
                for pattern in map(lease_pattern, range(live))
            ]
            marks = ", ".join("?" * len(row))
            db.executemany(f"INSERT INTO file_reservations ({names}) VALUES ({marks})", rows)
        db.close()

    def _until_it_answers(self) -> None:
        end_s = time.monotonic() + _START_S
        while True:
            try:
                self._call("health_check")
                return
            except ConnectionRefusedError:
                if self._server.poll() is not None or time.monotonic() > end_s:
                    raise RuntimeError("the server of MCP Agent Mail does not start") from None
                time.sleep(0.02)

    def _call(self, tool: str, **given: object) -> dict[str, Any]:
        if tool not in ("health_check", "ensure_project"):
            given["project_key"] = self._project
        request = _request("tools/call", {"name": tool, "arguments": given})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_START_S)
        try:
            connection.request("POST", "/mcp/", json.dumps(request), headers)
            answer = json.loads(connection.getresponse().read())["result"]
        finally:
            connection.close()
        if answer.get("isError"):
            raise RuntimeError(f"MCP Agent Mail: {tool}: {answer}")
        found: dict[str, Any] = answer
        return found


class Commands:
    """A tool whose commands a file names, a process for each call."""

    start_s = 0.0

    def __init__(self, folder: str, live: int, tool: peer_commands.Tool) -> None:
        self.name = tool.name
        self.works = tool.works
        self._tool = tool
        self._tree = folder
        os.makedirs(folder, exist_ok=True)
        for work in ("setup", "seed") if live else ("setup",):
            if work in tool.commands:
                command = tool.command(work, number=0, agent="a0", count=live)
                subprocess.run(command, cwd=folder, check=True, capture_output=True)

    def do(self, work: str, number: int, agent: int) -> bool:
        command = self._tool.command(work, number=number, agent=f"a{agent}", count=0)
        # Which status means a conflict differs from tool to tool.
        return not subprocess.run(command, cwd=self._tree, capture_output=True).returncode

    def close(self) -> None:
        pass


class _Stdio:
    """A session with a server over its standard streams, a JSON document on each line."""

    def __init__(self, command: list[str], folder: str) -> None:
        self._server = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        client = {"name": "bench", "version": "1"}
        self._ask(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
        )
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, given: object) -> dict[str, Any]:
        return self._ask("tools/call", {"name": tool, "arguments": given})

    def close(self) -> None:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def _say(self, message: object) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(f"{json.dumps(message)}\n")
        self._server.stdin.flush()

    def _ask(self, method: str, parameters: dict[str, object]) -> dict[str, Any]:
        request = _request(method, parameters)
        self._say(request)
        assert self._server.stdout is not None
        for line in self._server.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == request["id"]:
                found: dict[str, Any] = answer["result"]
                return found
        raise RuntimeError("the server ended")


def measure(peers: list[Peer], live: int, numbers: Iterator[int], runs: int) -> Iterator[Row]:
    """Yields what each work takes with so many live reservations, the tools in turn."""
    works = (SEND, INBOX, RESERVE) if not live else (RESERVE,)
    for work in works:
        able = [peer for peer in peers if work in peer.works]
        took_ms: dict[str, list[float]] = {peer.name: [] for peer in able}
        for peer in able:
            for _ in range(MESSAGES if work == SEND else 1):
                peer.do(work, next(numbers), 0)
        for _ in range(runs):
            for peer in able:
                number = next(numbers)
                begun = time.perf_counter()
                granted = peer.do(work, number, 0)
                took_ms[peer.name].append((time.perf_counter() - begun) * 1000)
                assert granted, f"{peer.name}: {work} of {number}"
        what = f"{work}, {live:,} live" if work == RESERVE else work
        for name, took in took_ms.items():
            yield results.of(f"{what}: {name}", took, "ms")


def races(peers: list[Peer], numbers: Iterator[int]) -> Iterator[Row]:
    """Yields how long eight agents take that all want one file, or one issue, and how many of them
    were told that they have it and nobody else.
    """
    for work in (RESERVE, CLAIM):
        able = [peer for peer in peers if work in peer.works]
        took_ms: dict[str, list[float]] = {peer.name: [] for peer in able}
        winners: dict[str, Counter[int]] = {peer.name: Counter() for peer in able}
        for _ in range(RACES):
            for peer in able:
                took_s, granted = _race(peer, work, next(numbers))
                took_ms[peer.name].append(took_s * 1000)
                winners[peer.name][granted] += 1
        for name, took in took_ms.items():
            found = ", ".join(f"{count} x {won}" for won, count in sorted(winners[name].items()))
            note = f"alone with it: {found}"
            yield results.of(f"race of {RACERS}, {work}: {name}", took, "ms", note=note)


def _race(peer: Peer, work: str, number: int) -> tuple[float, int]:
    start = threading.Barrier(RACERS + 1)

    def one(agent: int) -> bool:
        start.wait()
        return peer.do(work, number, agent)

    with ThreadPoolExecutor(RACERS) as pool:
        racing = [pool.submit(one, agent) for agent in range(RACERS)]
        start.wait()
        begun = time.perf_counter()
        granted = sum(each.result() for each in racing)
        return time.perf_counter() - begun, granted


def figures(python: str | None, runs: int, lives: tuple[int, ...]) -> Iterator[Row]:
    """Yields the rows of all tools that are there."""
    numbers = iter(range(10**9))
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        for live in lives:
            peers: list[Peer] = []
            try:
                # One by one, so that those before one that fails to start are ended.
                for peer in _started(os.path.join(folder, str(live)), live, python):
                    peers += [peer]
                yield from measure(peers, live, numbers, runs)
                if not live:
                    yield from races(peers, numbers)
                    for peer in peers:
                        if peer.start_s:
                            name = f"start of the server: {peer.name}"
                            yield results.of(name, [peer.start_s * 1000], "ms")
            finally:
                for peer in peers:
                    peer.close()


def _started(folder: str, live: int, python: str | None) -> Iterator[Peer]:
    os.makedirs(folder)
    yield Queen(os.path.join(folder, "queen"), live)
    yield QueenServer(os.path.join(folder, "queen-mcp"), live)
    if python:
        yield AgentMail(os.path.join(folder, "agent-mail"), live, python)
    for number, tool in enumerate(peer_commands.tools()):
        if not live or "seed" in tool.commands:
            yield Commands(os.path.join(folder, f"tool{number}"), live, tool)


def _granted(done: subprocess.CompletedProcess[bytes], conflict: int) -> bool:
    if done.returncode not in (0, conflict):
        raise RuntimeError(f"{done.args} ended with {done.returncode}: {done.stderr.decode()}")
    return not done.returncode


def _request(method: str, parameters: dict[str, object]) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": time.monotonic_ns(),
        "method": method,
        "params": parameters,
    }


def _free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port: int = any_port.getsockname()[1]
        return port


def _droid(agent: int) -> str:
    return f"droid-{agent}"


def _name(agent: int) -> str:
    return f"Agent{agent}"


def _path(number: int) -> str:
    return f"work/file{number}.py"


def _version(python: str) -> str:
    ask = "from importlib.metadata import version; print(version('mcp-agent-mail'))"
    return subprocess.check_output([python, "-c", ask], text=True).strip()


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agent-mail", metavar="PYTHON", help="one that has mcp-agent-mail")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--live", type=int, nargs="*", default=LIVE, help="reservations")
    parser.add_argument("--json", metavar="FILE", help="write the rows there as well")
    parser.add_argument("--charts", metavar="FOLDER", help="write an SVG chart there")
    options = parser.parse_args()
    versions = f"queenbee {__version__}, Python {platform.python_version()}"
    if options.agent_mail:
        versions += f", mcp-agent-mail {_version(options.agent_mail)}"
    print(f"{results.machine()}, {versions}, {time.strftime('%Y-%m-%d')}")
    rows = results.show(figures(options.agent_mail, options.runs, tuple(options.live)))
    if options.json:
        results.write(options.json, rows)
    if options.charts:
        from bench import charts

        charts.peers(rows, options.charts)


if __name__ == "__main__":
    main()
