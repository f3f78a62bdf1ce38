"""A real headless Chromium, if this machine has one; nothing is downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Starts the Chromium of this machine; skips the test if there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser here: install one of {', '.join(NAMES)}")
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        # Its own sandbox needs rights that root in a container does not have.
        alone = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=alone)
        try:
            yield browser
        finally:
            browser.close()


def violations(page: Page) -> list[str]:
    """Returns what axe-core finds on a page that is serious."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in axe.Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
