"""`queen watch --web`: who is let in, and who is not."""

from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import WSServerHandshakeError, web
from aiohttp.test_utils import TestClient, TestServer

from queenbee.tui import web as web_module

TOKEN = "t" * 43
SCREEN = ("sh", "-c", "echo __GANGLION__; cat")
"""What stands for the screen: it says that it is one, as Textual does, and waits."""

Client = TestClient[web.Request, web.Application]


def visit(steps: Callable[[Client, int], Awaitable[None]]) -> None:
    """Serves a screen, and does these steps as a browser would."""

    async def run() -> None:
        server = TestServer(web.Application())
        await server.start_server()
        port = server.port
        await server.close()
        gate = web_module.Gate(int(str(port)), TOKEN)
        app = web_module.application(SCREEN, "a <b>title</b>", gate)
        async with TestClient(TestServer(app, host="127.0.0.1", port=port)) as client:
            await steps(client, int(str(port)))

    asyncio.run(run())


async def status(client: Client, path: str, **headers: str) -> int:
    async with client.get(path, headers=headers, allow_redirects=False) as answer:
        return answer.status


async def enter(client: Client) -> str:
    """Opens the address; returns the path of the screen."""
    async with client.get(f"/?token={TOKEN}", allow_redirects=False) as answer:
        assert answer.status == 303
        return "/ws/" + answer.headers["Location"].removeprefix("/#")


def test_without_the_token_nothing_is_served() -> None:
    async def steps(client: Client, port: int) -> None:
        wrong = ("", "?token=", "?token=" + "u" * 43, "?token=" + TOKEN[:-1], "?token=ü")
        for path in ("/", "/ws", "/ws/", "/page.js", "/static/js/textual.js", "/nowhere"):
            for query in wrong:
                assert await status(client, path + query) == 403
        # Not even the right token opens anything but the page.
        assert await status(client, f"/ws?token={TOKEN}") == 403
        for cookie in (f"queen-watch-{port + 1}={TOKEN}", f"queen-watch-{port}={TOKEN}"):
            assert await status(client, "/", Cookie=cookie) == 403
        await enter(client)
        assert await status(client, "/") == 200
        assert await status(client, "/?token=" + "u" * 43) == 403

    visit(steps)


def test_the_address_becomes_a_cookie_that_no_script_and_no_other_site_gets() -> None:
    async def steps(client: Client, port: int) -> None:
        async with client.get(f"/?token={TOKEN}", allow_redirects=False) as answer:
            assert answer.status == 303
            cookie = answer.headers["Set-Cookie"]
            name, _, rest = cookie.partition("=")
            ticket, _, limits = rest.partition("; ")
            assert (name, limits) == (f"queen-watch-{port}", "HttpOnly; Path=/; SameSite=Strict")
            key = answer.headers["Location"].removeprefix("/#")
            assert len({TOKEN, ticket, key}) == 3
            assert all(len(each) == 43 for each in (ticket, key))
        async with client.get("/") as page:
            text = await page.text()
            assert page.status == 200
            assert not any(each in text for each in (TOKEN, ticket, key))
            assert "a &lt;b&gt;title&lt;/b&gt;" in text
            assert "http://" not in text
            assert "https://" not in text
            assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert page.headers["Cache-Control"] == "no-store"

    visit(steps)


def test_a_name_that_its_owner_points_to_this_machine_is_refused() -> None:
    async def steps(client: Client, port: int) -> None:
        await enter(client)
        assert await status(client, "/") == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
            assert await status(client, "/", Host=host) == 403
            assert await status(client, f"/?token={TOKEN}", Host=host) == 403
        assert await status(client, "/", Host=f"localhost:{port}") == 200

    visit(steps)


def test_another_page_of_the_same_browser_opens_no_screen() -> None:
    async def steps(client: Client, port: int) -> None:
        screen_path = await enter(client)
        ours = f"http://127.0.0.1:{port}"
        others = ("http://evil.example", f"http://127.0.0.1:{port + 1}", "null", f"{ours}/", "")
        for origin in others:
            with pytest.raises(WSServerHandshakeError) as refusal:
                await client.ws_connect(screen_path, headers={"Origin": origin})
            assert refusal.value.status == 403
        with pytest.raises(WSServerHandshakeError):
            await client.ws_connect(screen_path)  # No browser leaves its origin out.
        assert await status(client, "/", Origin="http://evil.example") == 403
        async with client.ws_connect(screen_path, headers={"Origin": ours}) as screen:
            assert not screen.closed

    visit(steps)


def test_the_cookie_which_every_port_of_the_machine_gets_opens_no_screen() -> None:
    async def steps(client: Client, port: int) -> None:
        screen_path = await enter(client)
        ours = {"Origin": f"http://127.0.0.1:{port}"}
        for path in ("/ws/", "/ws/" + "u" * 43, screen_path[:-1], "/ws/ü", "/ws", f"/ws/{TOKEN}"):
            with pytest.raises(WSServerHandshakeError) as refusal:
                await client.ws_connect(path, headers=ours)
            assert refusal.value.status in (403, 404)
        async with client.ws_connect(screen_path, headers=ours) as screen:
            assert not screen.closed

    visit(steps)


# textual-serve leaves the pipes of a window that was closed to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_there_are_only_so_many_windows() -> None:
    async def steps(client: Client, port: int) -> None:
        screen_path = await enter(client)
        ours = {"Origin": f"http://127.0.0.1:{port}"}
        most = web_module._MOST_SCREENS
        screens = [await client.ws_connect(screen_path, headers=ours) for _ in range(most)]
        with pytest.raises(WSServerHandshakeError) as refusal:
            await client.ws_connect(screen_path, headers=ours)
        assert refusal.value.status == 503
        for each in screens:
            await each.close()

    visit(steps)
    gc.collect()


def test_a_text_that_no_token_can_be_is_another_token() -> None:
    assert not web_module._same("\udcff", TOKEN)


SERVED = """
import sys
from queenbee.tui import web
web._SILENT_S = 0.3
web.serve(["true"], "title", 0, lambda address: print(address, flush=True))
"""


@pytest.mark.slow
def test_a_connection_that_ends_no_header_or_a_large_one_is_closed_and_nothing_is_printed() -> None:
    pipe = subprocess.PIPE
    served = subprocess.Popen([sys.executable, "-c", SERVED], stdout=pipe, stderr=pipe, text=True)
    try:
        assert served.stdout is not None
        address = served.stdout.readline()
        port = int(address.rpartition(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
            assert slow.recv(1) == b""
        with socket.create_connection(("127.0.0.1", port), timeout=60) as large:
            large.sendall(b"GET / HTTP/1.1\r\nHost: " + b"x" * 9_000 + b"\r\n\r\n")
            assert b"400 Bad Request" in large.recv(100)
    finally:
        served.kill()
        _, said = served.communicate()
    assert said == ""
