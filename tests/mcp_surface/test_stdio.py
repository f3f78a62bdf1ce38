"""A real `queen mcp` on its standard streams: it starts, answers, waits, is hurt, and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from bead_files import put_bead, ralph_bead
from hives import COMMAND, QuickQueen, write_lines
from mcp_clients import ERAS, error_of, over_stdio, result_of

from queenbee import Hive

STATEFUL = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that begin with `initialize`."""
MOST_LINE_BYTES = 16 * 1024 * 1024
MOST_LONG_CALLS = 16
"""How many calls of one client wait at once."""

pytestmark = pytest.mark.slow

META = "io.modelcontextprotocol/"
CLIENTS = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Raw:
    """A server whose every byte on standard output is looked at."""

    def __init__(self, tree: Path, *, start: str = COMMAND[2]) -> None:
        self.process = subprocess.Popen(
            [COMMAND[0], "-c", start, "mcp", "--json", "--as", "ui"],
            cwd=tree,
            env={**os.environ, "QUEEN_DURABILITY": "buffered"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._id = 0

    def send(self, line: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def begin(self, method: str, params: dict[str, Any]) -> int:
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        wanted = self.begin(method, params)
        answer = self.receive()
        assert answer["id"] == wanted
        return answer

    def call(self, name: object, given: object) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": given})

    def close(self) -> None:
        """Ends the server, however the test left it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def ends(self) -> int:
        """Waits for the end, and checks what was still written."""
        out, err = self.process.communicate(timeout=30)
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
        assert b"Traceback" not in err
        return self.process.returncode


@pytest.fixture
def raw(repo: Path) -> Iterator[Raw]:
    """A server that has been greeted."""
    server = Raw(repo)
    assert server.ask("initialize", INITIALIZE)["result"]["serverInfo"]["name"] == "queenbee"
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    yield server
    server.close()


@pytest.fixture
def other(repo: Path) -> Hive:
    """The hive as another droid has it open, at the time that the server sees too."""
    return Hive.open(repo, droid="reviewer", env={"QUEEN_DURABILITY": "buffered"})


@pytest.mark.parametrize("era", ERAS)
def test_a_client_of_either_era_is_served(repo: Path, era: str) -> None:
    async def run() -> None:
        async with over_stdio(repo, mode=era, name="Some Agent") as client:
            assert len((await client.list_tools()).tools) == 13
            answer = await client.call_tool("status", {})
            assert result_of(answer)["actor"].startswith("some-agent-")
            prompts = (await client.list_prompts()).prompts
            text = (await client.get_prompt(prompts[0].name)).messages[0].content
            assert "`next`" in text.text

    anyio.run(run)


def test_it_ends_with_its_client(raw: Raw) -> None:
    raw.begin("tools/call", {"name": "wait", "arguments": {"mail": True, "timeout": "10m"}})
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    raw.process.stdin = None
    assert raw.ends() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_at_a_signal_and_leaves_the_line(
    raw: Raw, other: Hive, number: signal.Signals
) -> None:
    other.reservations.reserve(["a"])
    raw.begin("tools/call", {"name": "reserve", "arguments": {"patterns": ["a"], "wait": "10m"}})
    _until(lambda: other.queue.everything())
    raw.process.send_signal(number)
    assert raw.ends() == 0
    assert other.queue.everything() == []


def test_a_server_that_is_killed_leaves_the_line(raw: Raw, other: Hive) -> None:
    other.reservations.reserve(["a"])
    raw.begin("tools/call", {"name": "reserve", "arguments": {"patterns": ["a"], "wait": "10m"}})
    _until(lambda: other.queue.everything())
    raw.process.kill()
    raw.process.wait()
    assert other.queue.everything() == []


NOT_TAKEN: list[tuple[object, object]] = [
    ("nothing", {}),
    ("", {}),
    ("status", {"bogus": 1}),
    ("status", {"x" * 100_000: 1}),
    ("claim", {}),
    ("claim", {"issue": 3}),
    ("claim", {"issue": ["a"]}),
    ("claim", {"issue": "x" * 100_000}),
    ("claim", {"issue": "a b"}),
    ("claim", {"issue": "\x1b[31m"}),
    ("reserve", {"patterns": "src"}),
    ("reserve", {"patterns": []}),
    ("reserve", {"patterns": [1, None]}),
    ("reserve", {"patterns": ["\0"]}),
    ("reserve", {"patterns": ["a\nb"]}),
    ("reserve", {"patterns": ["../../etc/passwd"]}),
    ("reserve", {"patterns": ["/etc/passwd"]}),
    ("reserve", {"patterns": ["x"] * 10_001}),
    ("reserve", {"patterns": ["x"], "ttl": "99999999999d"}),
    ("reserve", {"patterns": ["x"], "wait": "9" * 50}),
    ("check", {"paths": ["../../../etc/passwd"]}),
    ("complete", {"issue": "x", "next": "yes"}),
    ("send", {"to": "human", "body": "x" * 2_000_000}),
    ("send", {"to": "../x", "body": "b"}),
    ("send", {"to": "human", "body": "b", "importance": "extreme"}),
    ("inbox", {"limit": 0}),
    ("inbox", {"limit": True}),
    ("inbox", {"since": "when"}),
    ("wait", {"mail": 1}),
    ("wait", {"issues": [{}]}),
]


def test_what_a_model_may_write_is_refused_and_the_server_goes_on(raw: Raw) -> None:
    for name, given in NOT_TAKEN:
        result = raw.call(name, given)["result"]
        assert result["isError"], (name, result)
        error = result["structuredContent"]["error"]
        assert error["code"] in ("invalid_input", "not_found", "bad_pattern"), error
        assert len(error["message"]) < 10_000
    assert not raw.call("status", {})["result"]["isError"]


def test_a_line_that_is_no_request_is_answered_or_mended(raw: Raw) -> None:
    deep = b"[" * 100_000
    # Longer than any message: only its end is looked for.
    for line in (
        b"not json",
        deep,
        b"\xff\xfe",
        b"1" * 5_000,
        b" " * (MOST_LINE_BYTES + 9) + b"{}",
    ):
        raw.send(line)
        assert raw.receive()["error"]["code"] == -32700
    for line in (b"[]", b"7", b'{"id":{}}', b'{"jsonrpc":"2.0","id":true,"method":"ping"}'):
        raw.send(line)
        assert raw.receive()["error"]["code"] == -32600
    raw.send(b'{"jsonrpc":"2.0","id":77}')
    answer = raw.receive()
    assert (answer["id"], answer["error"]["code"]) == (77, -32600)
    raw.send(b'{"jsonrpc":"2.0","id":79,"method":"ping","params":[]}')
    assert raw.receive()["error"]["code"] == -32602
    for odd in (b'"notifications/cancelled","params":{"requestId":[1]}', b'"nothing"'):
        raw.send(b'{"jsonrpc":"2.0","method":' + odd + b"}")
    # Half an emoji, as a model may cut it.
    half = b'{"jsonrpc":"2.0","id":78,"method":"tools/call","params":{"name":"send","arguments":'
    raw.send(half + b'{"to":"human","body":"fine \\ud83d"}}}')
    answer = raw.receive()
    assert answer["id"] == 78
    assert answer["result"]["structuredContent"]["result"][0]["body"] == "fine \ufffd"
    for uri in ("queen://issues/../../etc", "file:///etc/passwd", "queen://", "queen://issues/"):
        assert raw.ask("resources/read", {"uri": uri})["error"]["data"]["error"]["code"]
    assert not raw.call("status", {})["result"]["isError"]


@pytest.mark.parametrize("depth", [100, 500, 900, 5_000])
def test_what_is_nested_deep_is_refused_and_no_end(raw: Raw, depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    head = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"check","arguments":'
    for arguments in (
        b'{"paths":' + nested + b"}",
        nested,
        b'{"paths":["\\ud83d"],"x":' + nested + b"}",
    ):
        raw.send(head + arguments + b"}}")
        answer = raw.receive()
        assert answer.get("error") or answer["result"]["isError"]
    assert not raw.call("status", {})["result"]["isError"]


@pytest.mark.parametrize("version", [*STATEFUL, "2020-01-01", 7, None])
def test_every_version_is_agreed_on_by_initialize(raw: Raw, version: object) -> None:
    answer = raw.ask("initialize", {**INITIALIZE, "protocolVersion": version})["result"]
    assert answer["protocolVersion"] == (version if version in STATEFUL else STATEFUL[-1])


def test_initialize_is_answered_whatever_it_says_of_itself(raw: Raw) -> None:
    """It belongs to the older form, whatever is in its `_meta`."""
    meta = {"_meta": {f"{META}protocolVersion": "2030-01-01"}}
    assert "resultType" not in raw.ask("initialize", {**INITIALIZE, **meta})["result"]


def test_both_forms_of_the_protocol_are_served_in_any_order(repo: Path) -> None:
    server = Raw(repo)
    envelope = {"_meta": {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}}
    for _ in range(2):
        found = server.ask("server/discover", envelope)["result"]
        assert (found["resultType"], found["supportedVersions"]) == ("complete", ["2026-07-28"])
        assert server.ask("initialize", INITIALIZE)["result"]["protocolVersion"] == "2025-06-18"
        assert "resultType" not in server.ask("tools/list", {})["result"]
        assert server.ask("tools/list", envelope)["result"]["resultType"] == "complete"
        given = {**envelope, "name": "status"}
        assert server.ask("tools/call", given)["result"]["resultType"] == "complete"
    other = {"_meta": {f"{META}protocolVersion": "2030-01-01"}}
    error = server.ask("tools/list", other)["error"]
    assert (error["code"], error["data"]["supported"]) == (-32022, ["2026-07-28"])
    server.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_real_client_sends_is_answered(repo: Path, client: Path) -> None:
    """Recorded in front of the server, until its model had called two tools."""
    text = client.read_text(encoding="utf-8").replace("@TREE@", str(repo))
    wanted, got = [], []
    server = Raw(repo)
    for line in text.splitlines():
        message = json.loads(line)
        if "method" not in message:
            continue  # The answer to what the server asked, which `receive` below gives.
        server.send(line.encode())
        if "id" in message:
            wanted.append(message["id"])
            answer = server.receive()
            while answer.get("method") == "roots/list":
                roots = {"roots": [{"uri": repo.as_uri()}]}
                server.send({"jsonrpc": "2.0", "id": answer["id"], "result": roots})
                answer = server.receive()
            assert not answer["result"].get("isError"), answer
            got.append(answer["id"])
    assert got == wanted
    server.close()


def test_a_client_is_answered_before_anything_heavy_is_there(repo: Path, tmp_path: Path) -> None:
    """A busy machine takes seconds to import it, and some clients wait for ten."""
    os.mkfifo(gate := tmp_path / "gate")
    slow = (
        "import sys\n"
        "class Slow:\n"
        "    def find_spec(name, *more):\n"
        "        if name == 'queenbee.mcp.calls':\n"
        f"            open({str(gate)!r}).read()\n"
        f"sys.meta_path.insert(0, Slow)\n{COMMAND[2]}"
    )
    server = Raw(repo, start=slow)
    assert server.ask("server/discover", {})["result"]["instructions"]
    assert server.ask("initialize", INITIALIZE)["result"]["serverInfo"]["name"] == "queenbee"
    wanted = server.begin("tools/list", {})
    assert server.ask("ping", {})["result"] == {}
    gate.write_text("")
    answer = server.receive()
    assert answer["id"] == wanted
    assert len(answer["result"]["tools"]) == 13
    server.close()


def test_the_library_of_the_protocol_is_not_needed(repo: Path) -> None:
    lacking = (
        "import sys; sys.modules.update(dict.fromkeys(('mcp', 'mcp_types', 'anyio', 'pydantic')))"
    )
    server = Raw(repo, start=f"{lacking}; {COMMAND[2]}")
    server.ask("initialize", INITIALIZE)
    assert not server.call("status", {})["result"]["isError"]
    server.close()


def test_what_code_prints_never_reaches_the_client(repo: Path) -> None:
    printing = (
        "import queenbee.services.work as work; before = work.status\n"
        "def status(hive, *more):\n"
        "    import os; print('printed'); os.system('echo from a child')\n"
        "    return before(hive)\n"
        f"work.status = status; {COMMAND[2]}"
    )
    raw = Raw(repo, start=printing)
    raw.ask("initialize", INITIALIZE)
    assert not raw.call("status", {})["result"]["isError"]
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    raw.process.stdin = None
    assert raw.ends() == 0


@pytest.mark.parametrize("era", ERAS)
def test_a_wait_reports_progress_and_ends_when_it_comes_true(
    repo: Path, quick: QuickQueen, era: str
) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def run() -> None:
        async with over_stdio(repo, "--as", "ui", mode=era) as client:

            async def progress(done: float, total: float | None, message: str | None) -> None:
                heard.append((done, total, message))
                if len(heard) == 2:
                    await anyio.to_thread.run_sync(send)

            given = {"mail": True, "timeout": "5m"}
            answer = await client.call_tool("wait", given, progress_callback=progress)
            assert result_of(answer)["mail"][0]["body"] == "now"

    def send() -> None:
        assert quick("msg", "send", "ui", "now", "--new", as_="reviewer").code == 0

    anyio.run(run)
    assert [each[1:] for each in heard[:2]] == [(300.0, "waiting for mail")] * 2
    assert heard[0][0] < heard[1][0]


@pytest.mark.parametrize("tool", ["next", "claim", "reserve"])
def test_a_wait_that_is_cancelled_leaves_no_place_in_the_line(
    repo: Path, beads: Path, other: Hive, tool: str
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    other.assignments.claim("qb-1")
    other.reservations.reserve(["a"])
    given = {"next": {}, "claim": {"issue": "qb-1"}, "reserve": {"patterns": ["a"]}}[tool]

    async def run() -> None:
        async with over_stdio(repo, "--as", "ui") as client:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call_tool, tool, {**given, "wait": "10m"})
                    while not other.queue.everything():
                        await anyio.sleep(0.02)
                    # The others are not kept waiting meanwhile.
                    assert result_of(await client.call_tool("status", {}))["queue"]
                    scope.cancel()
            with anyio.fail_after(30):
                while other.queue.everything():
                    await anyio.sleep(0.02)
            assert not result_of(await client.call_tool("status", {}))["queue"]

    anyio.run(run)


def test_more_waits_than_a_client_may_have_are_refused(repo: Path) -> None:
    waiting = 0

    async def run() -> None:
        async with over_stdio(repo, "--as", "ui") as client:
            given = {"mail": True, "timeout": "5m"}

            async def wait() -> None:
                heard = anyio.Event()

                async def progress(*_: object) -> None:
                    nonlocal waiting
                    waiting += not heard.is_set()
                    heard.set()

                await client.call_tool("wait", given, progress_callback=progress)

            async with anyio.create_task_group() as group:
                for _ in range(MOST_LONG_CALLS):
                    group.start_soon(wait)
                with anyio.fail_after(60):
                    while waiting < MOST_LONG_CALLS:
                        await anyio.sleep(0.05)
                error = error_of(await client.call_tool("wait", given))
                assert error["code"] == "busy"
                assert result_of(await client.call_tool("status", {}))["actor"] == "ui"
                group.cancel_scope.cancel()

    anyio.run(run)


def test_two_clients_that_want_the_same_files_never_both_get_them(repo: Path) -> None:
    """Fifty rounds: patterns that overlap without being alike, asked for at the same moment."""
    rounds, granted = 50, []

    async def run() -> None:
        async with over_stdio(repo, name="one") as one, over_stdio(repo, name="two") as two:
            names = [result_of(await each.call_tool("status", {}))["actor"] for each in (one, two)]
            assert len(set(names)) == 2
            for number in range(rounds):
                answers: dict[str, Any] = {}

                async def reserve(
                    client: Any, name: str, pattern: str, into: dict[str, Any] = answers
                ) -> None:
                    into[name] = await client.call_tool("reserve", {"patterns": [pattern]})

                async with anyio.create_task_group() as group:
                    group.start_soon(reserve, one, "one", f"src/{number}/*/a.py")
                    group.start_soon(reserve, two, "two", f"src/{number}/b/*.py")
                winners = [name for name, each in answers.items() if not each.is_error]
                assert len(winners) == 1, answers
                loser = "two" if winners == ["one"] else "one"
                error = error_of(answers[loser])
                assert error["code"] == "held"
                assert error["holders"][0]["droid"] == names[["one", "two"].index(winners[0])]
                granted.append(winners[0])

    anyio.run(run)
    assert len(granted) == rounds


def test_checks_run_beside_the_protocol(repo: Path) -> None:
    """`complete` runs programs of its own; they neither hear nor disturb the protocol."""
    put_bead(repo, ralph_bead("gt-1", "cat; echo noise"))

    async def run() -> None:
        async with over_stdio(repo, "--as", "ui") as client:
            assert not (await client.call_tool("claim", {"issue": "gt-1"})).is_error
            answer = await client.call_tool("complete", {"issue": "gt-1"})
            assert result_of(answer)["verification"]["results"]

    anyio.run(run)


def _until(look: Any) -> None:
    """Waits until what other processes do has come true."""
    deadline_s = time.monotonic() + 30
    while not look():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.mark.linux
def test_a_completion_that_is_cancelled_ends_its_checks(repo: Path, other: Hive) -> None:
    put_bead(repo, ralph_bead("gt-1", "echo $$ > running; sleep 1000"))
    running = repo / "running"

    async def run() -> None:
        async with over_stdio(repo, "--as", "ui") as client:
            assert not (await client.call_tool("claim", {"issue": "gt-1"})).is_error
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call_tool, "complete", {"issue": "gt-1"})
                    while not running.exists() or not running.read_text().strip():
                        await anyio.sleep(0.02)
                    scope.cancel()
            process = int(running.read_text())
            with anyio.fail_after(30):
                while _is_alive(process):
                    await anyio.sleep(0.02)
            held = result_of(await client.call_tool("status", {}))["me"]["issues"]
            assert [each["issue_id"] for each in held] == ["gt-1"]
            skipped = {"issue": "gt-1", "no_verify": True, "reason": "the check hangs"}
            done = result_of(await client.call_tool("complete", skipped))
            assert done["status"] == "completed"

    anyio.run(run)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in (Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:1])
