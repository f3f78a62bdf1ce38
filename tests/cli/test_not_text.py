"""Words of a command line that are bytes of no text."""

from __future__ import annotations

import pytest
from hives import QuickQueen


@pytest.mark.parametrize(
    "words",
    ["claim", "release", "msg read", "show", "issue close", "log --issue", "bead show",
     "config set land.check", "issue new", "issue edit q-1 --title"],
)  # fmt: skip
def test_bytes_that_are_no_text_are_refused(quick: QuickQueen, words: str) -> None:
    """They are not reported as a bug, nor is the memory taken for a damaged one."""
    quick("init")
    quick("issue", "new", "one", "--id", "q-1")
    refused = quick(*words.split(), "a\udcffb", "--json", as_="ui")
    assert refused.code in (2, 4)
    assert quick("doctor", "--json").code == 0
