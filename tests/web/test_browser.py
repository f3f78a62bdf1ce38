"""The page in real browsers, of two people at once: live, by touch, accessible, and shut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium, violations
from hives import QuickQueen, write_lines
from web_pages import Served, served

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)> [red]door[/red] \u202eevil " + "x" * 90


@pytest.fixture
def page(quick: QuickQueen, repo: Path) -> Iterator[Served]:
    """The page of a hive in which `ui` has an issue and asks a question."""
    quick("init")
    for number in (1, 2):
        row = {"id": f"qb-{number}", "title": f"{number} {HOSTILE}", "status": "open"}
        write_lines(repo / ".beads" / "issues.jsonl", row)
    quick("claim", "qb-1", as_="ui")
    quick("reserve", "src/", as_="ui")
    quick("msg", "send", "human", f"Which red?\n\n{HOSTILE}", "--ack", as_="ui")
    with served(repo, "--as", "human") as found:
        yield found


class Person:
    """Somebody with a browser of their own."""

    def __init__(self, browser: Any, address: str, **settings: Any) -> None:
        self.page = browser.new_context(**settings).new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.sees("#droids table")

    def sees(self, selector: str, **wanted: Any) -> None:
        self.page.wait_for_selector(selector, timeout=60_000, **wanted)


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "color_scheme": "dark"}
DESK = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}


def test_two_people_see_and_do_the_same_at_once(page: Served, quick: QuickQueen) -> None:
    with chromium() as browser:
        phone, desk = (Person(browser, page.address, **each) for each in (PHONE, DESK))
        for person in (phone, desk):
            assert person.page.title() == f"(1) queen watch: {Path(page_name(person)).name}"
            assert person.page.url == f"{page.origin}/"
            assert violations(person.page) == []
            width = person.page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
            assert width[0] == width[1]
        sizes = "[...document.querySelectorAll('button')].map(b => b.offsetHeight).filter(Boolean)"
        assert min(phone.page.evaluate(sizes)) >= 44
        # Both begin to answer. What one types stays while the page changes under it.
        for person in (phone, desk):
            person.page.get_by_role("button", name="Answer").first.click()
            assert violations(person.page) == []
        desk.page.fill("#text", "Light")
        phone.page.fill("#text", "Dark")
        phone.page.locator("#yes").tap()
        desk.sees("#asks .none")
        assert desk.page.input_value("#text") == "Light"
        assert "Dark" in quick("msg", "read", as_="ui").out
        desk.page.keyboard.press("Enter")  # In a text, this is a new line.
        desk.page.keyboard.press("Escape")
        # What a refusal says is shown where it was asked for.
        desk.page.locator("#droids [data-act=release]").click()
        quick("release", "qb-1", as_="ui")
        phone.sees("#leases .none")
        desk.page.click("#yes")
        desk.sees("#refusal:not(:empty)")
        desk.page.keyboard.press("Escape")
        for person in (phone, desk):
            strangers = [url for url in person.asked if not url.startswith((page.origin, "data:"))]
            assert strangers == []
            assert [each for each in person.said if "409" not in each] == []
            assert person.page.locator("main img, main script, main a").count() == 0
        assert page.end() == ""
        phone.sees("#state:has-text('The connection is lost')")


def page_name(person: Person) -> str:
    return str(person.page.text_content("h1"))


def test_keys_alone_reach_every_button_and_keep_their_place_while_the_page_changes(
    page: Served, quick: QuickQueen
) -> None:
    with chromium() as browser:
        desk = Person(browser, page.address, **DESK)
        focused = "document.activeElement.dataset.act"
        for _ in range(40):
            desk.page.keyboard.press("Tab")
            if desk.page.evaluate(focused) == "release":
                break
        quick("reserve", "docs/", as_="ui")
        desk.sees("#droids:has-text('docs')")
        assert desk.page.evaluate(focused) == "release"
        desk.page.keyboard.press("Enter")
        desk.page.keyboard.press("Enter")
        desk.sees("#said.ok")
        assert "No assignments" in quick("issue", "assignments").out


def test_a_window_without_the_key_says_what_to_open(page: Served) -> None:
    with chromium() as browser:
        desk = Person(browser, page.address, **DESK)
        desk.page.reload()
        desk.sees("#droids table")
        other = desk.page.context.new_page()
        other.goto(f"{page.origin}/")
        assert "Open the whole address" in str(other.text_content("#state"))
