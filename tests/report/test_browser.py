"""The page in a real browser: both themes, keyboard alone, accessible, nothing loaded or run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsers import chromium, violations
from report_worlds import HOSTILE, report_of

from queenbee.report import page as module
from queenbee.report.page import page

pytestmark = pytest.mark.slow

THEMES = ("light", "dark")
OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"
FOCUSED = """() => {
  const it = document.activeElement, {outlineStyle} = getComputedStyle(it);
  const {width} = it.getBoundingClientRect();
  return [it.tagName, it.textContent.slice(0, 20), outlineStyle, width];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class Opened:
    """A page that is open in the browser, and what the browser complained of."""

    def __init__(self, browser: Any, path: Any, **settings: Any) -> None:
        self.context = browser.new_context(
            **({"viewport": {"width": 1200, "height": 800}} | settings)
        )
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a report in the browser."""
    contexts = []

    def made(report: Any, **settings: Any) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(page(report), encoding="utf-8", errors="backslashreplace")
        contexts.append(Opened(browser, path, **settings))
        return contexts[-1]

    yield made
    for each in contexts:
        each.context.close()


def test_it_is_accessible_and_quiet_in_both_themes(opened, tmp_path):
    grounds, pictures = [], []
    for theme in THEMES:
        found = opened(report_of("A title that is not long"), color_scheme=theme)
        found.page.evaluate(OPEN_ALL)
        assert violations(found.page) == []
        assert found.said == []
        assert len(found.asked) == 1, "only the page itself is read"
        grounds.append(found.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        picture = tmp_path / f"{theme}.png"
        found.page.screenshot(path=picture, full_page=True)
        pictures.append(picture.read_bytes())
    assert grounds == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]
    assert pictures[0] != pictures[1]


def test_a_page_of_low_contrast_is_noticed(opened, tmp_path, monkeypatch):
    with open(module._STYLE_PATH, encoding="utf-8") as file:
        pale = file.read().replace("--soft: #57606a", "--soft: #d7d7d7")
    (tmp_path / "pale.css").write_text(pale)
    monkeypatch.setattr(module, "_STYLE_PATH", str(tmp_path / "pale.css"))
    assert any("color-contrast" in each for each in violations(opened(report_of("x")).page))


def test_no_text_of_others_runs_or_loads_anything(opened):
    each_one = [report_of(hostile) for hostile in HOSTILE]
    lists = ("phases", "open", "bars", "waits", "waiting", "met", "avoided", "foreseen")
    lists += ("gates", "checks", "threads", "left_out")
    together = {name: [one for each in each_one for one in getattr(each, name)] for name in lists}
    found = opened(report_of(HOSTILE[4], **together))
    found.page.evaluate(OPEN_ALL)
    assert found.page.locator("details").count() > 2 * len(HOSTILE)
    elements = found.page.locator("script, img, iframe, object, link, a:not([href^='#'])")
    assert elements.count() == 0
    assert found.said == []
    assert len(found.asked) == 1


def test_the_policy_stops_what_would_slip_through(opened, monkeypatch):
    whole = module.page
    script = "<script>document.title = 'run'</script><img src='https://example.com/x.png'>"
    broken = whole(report_of("x")).replace("<h1>", f"{script}<h1>")
    monkeypatch.setitem(globals(), "page", lambda _: broken)
    found = opened(None)
    assert found.page.title() == "Report: x"
    assert len([each for each in found.said if "Content Security Policy" in each]) == 2


def test_everything_can_be_reached_and_opened_with_the_keyboard_alone(opened):
    found = opened(report_of("x"))
    keys = found.page.keyboard
    keys.press("Tab")
    assert found.page.evaluate(FOCUSED)[1] == "Skip to the report"
    keys.press("Enter")
    assert found.page.evaluate("location.hash") == "#plan"
    seen = []
    for _ in range(60):
        keys.press("Tab")
        tag, text, outline, width = found.page.evaluate(FOCUSED)
        if tag == "BODY":
            break
        assert outline == "solid" and width > 0, f"{tag} {text} shows no focus"
        seen.append(tag)
        if tag == "SUMMARY":
            keys.press("Enter")
    assert seen.count("SUMMARY") == found.page.locator("summary").count() > 3
    assert found.page.locator("details:not([open])").count() == 0
    # What scrolls by itself can be scrolled.
    assert seen.count("DIV") == found.page.locator(".scroll").count()


def test_a_narrow_window_scrolls_its_tables_and_not_itself(opened):
    found = opened(report_of("a" * 200), viewport={"width": 360, "height": 640})
    found.page.evaluate(OPEN_ALL)
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_on_paper_there_are_no_links_to_sections(opened):
    found = opened(report_of("x"))
    found.page.emulate_media(media="print")
    assert not found.page.locator("nav").is_visible()
    assert found.page.pdf().startswith(b"%PDF")
