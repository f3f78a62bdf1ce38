"""`queen watch --web`: who is let in, and who is not."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hives import QuickQueen, write_lines
from web_pages import Served, served

pytestmark = pytest.mark.slow

HOSTILE = '<script>alert(1)</script> "quoted" \x1b[2J'


@pytest.fixture
def page(quick: QuickQueen, repo: Path) -> Iterator[Served]:
    """The page of a hive with one issue that `ui` has."""
    quick("init")
    row = {"id": "qb-1", "title": HOSTILE, "status": "open"}
    write_lines(repo / ".beads" / "issues.jsonl", row)
    quick("claim", "qb-1", as_="ui")
    with served(repo) as found:
        yield found


def test_without_the_token_nothing_is_served(page: Served) -> None:
    wrong = ("", "?token=", "?token=" + "u" * 43, f"?token={page.token[:-1]}", "?token=%C3%BC")
    for path in ("/", "/page.js", "/page.css", "/events/", "/act", "/nowhere"):
        for query in wrong:
            assert page.ask(path + query).status == 403
    # Not even the right token opens anything but the page.
    assert page.ask(f"/page.js?token={page.token}").status == 403
    for port in (page.port, page.port + 1):
        assert page.ask("/", Cookie=f"queen-watch-{port}={page.token}").status == 403
    known = page.enter()
    assert page.ask("/", **known).status == 200
    assert page.ask("/?token=" + "u" * 43, **known).status == 403


def test_the_address_becomes_a_cookie_and_a_key_and_is_nowhere_else(page: Served) -> None:
    entered = page.ask(f"/?token={page.token}")
    name, _, rest = entered.headers["set-cookie"].partition("=")
    ticket, _, limits = rest.partition("; ")
    assert (name, limits) == (f"queen-watch-{page.port}", "HttpOnly; Path=/; SameSite=strict")
    key = entered.headers["location"].removeprefix("/#")
    assert len({page.token, ticket, key}) == 3
    assert {len(each) for each in (page.token, ticket, key)} == {43}
    shown = page.ask("/", **page.enter())
    assert not any(each in shown.text for each in (page.token, ticket, key, "qb-1", "://"))
    assert "<noscript>" in shown.text
    policy = shown.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy
    assert shown.headers["referrer-policy"] == "no-referrer"
    assert shown.headers["cache-control"] == "no-store"
    assert page.end() == ""


def test_a_name_that_its_owner_points_to_this_machine_is_refused(page: Served) -> None:
    known, port = page.enter(), page.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert page.ask("/", **{**known, "Host": host, "Origin": f"http://{host}"}).status == 403
        assert page.ask(f"/?token={page.token}", Host=host).status == 403
    local = {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}
    assert page.ask("/", **{**known, **local}).status == 200


def test_another_page_of_the_same_browser_does_nothing(page: Served, quick: QuickQueen) -> None:
    known = page.enter()
    others = ("http://evil.example", f"http://127.0.0.1:{page.port + 1}", "null", "")
    for origin in (*others, f"{page.origin}/"):
        assert page.act("release", "qb-1", **{**known, "Origin": origin}).status == 403
        assert page.ask("/", **{**known, "Origin": origin}).status == 403
    # No browser leaves its origin out of a request that writes.
    without = {name: value for name, value in known.items() if name != "Origin"}
    assert page.act("release", "qb-1", **without).status == 403
    assert "ui" in quick("issue", "assignments").out
    assert page.act("release", "qb-1", **known).status == 200
    assert "ui" not in quick("issue", "assignments").out


def test_the_cookie_which_every_port_of_the_machine_gets_opens_no_event(page: Served) -> None:
    known = page.enter()
    key = known.pop("X_Queen_Key")
    for wrong in ("", "u" * 43, key[:-1], page.token, "%C3%BC"):
        assert page.ask(f"/events/{wrong}", **known).status == 403
        assert page.act("release", "qb-1", **{**known, "X_Queen_Key": wrong}).status == 403
    assert page.act("release", "qb-1", **known).status == 403
    event = page.ask(f"/events/{key}", **known)
    parts = json.loads(event.text.removeprefix("data: "))
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &quot;quoted&quot; \\x1b[2J" in parts["issues"]


def test_what_is_no_request_of_the_page_is_refused_and_does_nothing(page: Served) -> None:
    known = page.enter()
    for body in ("", "[]", "{", "null", '"act"', "[" * 50_000, json.dumps({"text": "x" * 200_000})):
        assert page.ask("/act", method="POST", body=body, **known).status == 400
    refused = page.act("delete_everything", "qb-1")
    assert (refused.status, json.loads(refused.text)["hint"]) == (409, "reload the page")
    assert page.ask("/act", **known).status == 403 or page.ask("/act", **known).status == 405
    assert page.end() == ""


def test_a_connection_that_ends_no_header_or_a_large_one_is_closed_and_nothing_is_printed(
    page: Served,
) -> None:
    with socket.create_connection(("127.0.0.1", page.port), timeout=60) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert slow.recv(1) == b""
    with socket.create_connection(("127.0.0.1", page.port), timeout=60) as large:
        large.sendall(b"GET / HTTP/1.1\r\nHost: " + b"x" * 200_000 + b"\r\n\r\n")
        assert b"400 Bad Request" in large.recv(100)
    assert page.end() == ""


def test_it_ends_at_once_also_while_a_page_is_open(page: Served) -> None:
    known = page.enter()
    with socket.create_connection(("127.0.0.1", page.port), timeout=60) as reader:
        lines = [f"GET /events/{known['X_Queen_Key']} HTTP/1.1", f"Host: 127.0.0.1:{page.port}"]
        reader.sendall("\r\n".join([*lines, f"Cookie: {known['Cookie']}", "", ""]).encode())
        assert b"200 OK" in reader.recv(100)
        assert page.end() == ""
        assert page.process.returncode == 0
