"""The site that `make docs` builds, in a real browser: readable, and nothing loaded from elsewhere.

CI builds it before the tests; without it, these are skipped.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browsers import chromium, violations

pytestmark = pytest.mark.slow

SITE = Path(__file__).parent.parent / "build" / "site"
PAGES = ("", "tutorial/", "team/", "comparison/", "commands/", "adr/")
CUT = """(which) => [...document.querySelectorAll(which)]
  .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent)"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_said: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "index.html").exists():
        pytest.skip("there is no site: make docs")
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(SITE))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_kind_of_page_is_accessible_and_asks_nobody_else(
    address: str, theme: str, width: int
) -> None:
    asked: list[str] = []
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        page.on("request", lambda request: asked.append(request.url))
        for name in PAGES:
            page.goto(f"{address}{name}")
            page.wait_for_selector("nav")
            assert violations(page) == [], name
            wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, f"{name} scrolls sideways by {wider} pixels"
            cut = page.evaluate(CUT, "pre > code" if width == 390 else "pre > code, .wide")
            assert cut == [], f"{name} hides part of an example or a table"
    assert len(asked) > len(PAGES)
    assert [each for each in asked if not each.startswith(address)] == []
