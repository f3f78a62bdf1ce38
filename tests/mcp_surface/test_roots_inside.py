"""Where a client works: the parts inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from queenbee.mcp.workspace import Workspace


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "file://host/etc",
        "https://example.com/",
        "file:///no/such/folder",
        "file:///etc/passwd",
        "file:///%00",
        "file://[",
        "x" * 100_000,
    ],
)
def test_an_odd_root_is_left_out(repo: Path, uri: str) -> None:
    assert Workspace({}, str(repo)).roots([uri]) == [str(repo)]
    assert Workspace({}, "/").roots([uri, repo.as_uri()]) == [str(repo)]
