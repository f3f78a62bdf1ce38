"""Sessions on disk: whatever is in their files, and whether or not they can be written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from queenbee.store.droids import agent_sessions
from queenbee.store.layout import discover

NOW_MS = 1_734_172_200_000


def begin(repo: Path, session: str, **more: object) -> agent_sessions.Session | None:
    layout = discover(str(repo), {})
    fields = {"agent": "claude", "source": "startup", "now_ms": NOW_MS, **more}
    return agent_sessions.begin(layout, session, session[-8:], **fields)  # type: ignore[arg-type]


def folder(repo: Path) -> Path:
    return repo / ".git" / "queenbee" / "sessions" / "git"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"part": 1}', b"\xff", b"[" * 2_000, b"x" * 9_000]
)
def test_a_file_that_cannot_be_understood_counts_as_none(repo: Path, content: bytes) -> None:
    assert begin(repo, "one").first  # type: ignore[union-attr]
    (folder(repo) / "one").write_bytes(content)
    layout = discover(str(repo), {})
    assert agent_sessions.current(layout, "one", NOW_MS) is None
    assert begin(repo, "two").first  # type: ignore[union-attr]


def test_a_session_is_found_again_as_it_began(repo: Path) -> None:
    begin(repo, "one")
    begin(repo, "two")
    layout = discover(str(repo), {})
    found = [agent_sessions.current(layout, each, NOW_MS) for each in ("one", "two")]
    assert [(each.part, each.first) for each in found if each] == [("one", True), ("two", False)]
    agent_sessions.end(layout, "one", reason="exit", now_ms=NOW_MS)
    assert agent_sessions.current(layout, "one", NOW_MS) is None


@pytest.mark.parametrize("session", ["../../x", "a/b", ".", "..", "\0", "ü", "x" * 500, "lock"])
def test_an_id_of_any_kind_is_one_file_in_the_folder(repo: Path, session: str) -> None:
    assert begin(repo, session) is not None
    assert len(list(folder(repo).iterdir())) == 1
    assert agent_sessions.current(discover(str(repo), {}), session, NOW_MS) is not None


def test_ids_that_differ_in_what_a_file_name_cannot_hold_have_two_files(repo: Path) -> None:
    begin(repo, "a/b")
    begin(repo, "a%2fb")
    assert len(list(folder(repo).iterdir())) == 2


def test_a_link_in_place_of_the_folder_is_not_followed(repo: Path, tmp_path: Path) -> None:
    begin(repo, "one")
    (folder(repo) / "one").unlink()
    folder(repo).rmdir()
    folder(repo).symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    assert begin(repo, "two") is None
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_where_nothing_can_be_written_no_session_is_noted(repo: Path) -> None:
    (repo / ".git").chmod(0o500)
    try:
        assert begin(repo, "one") is None
    finally:
        (repo / ".git").chmod(0o700)


def test_sessions_that_are_long_over_are_removed(repo: Path) -> None:
    begin(repo, "one")
    later = NOW_MS + 25 * 3_600_000
    begin(repo, "two", now_ms=later)
    assert [each.name for each in folder(repo).iterdir()] == ["two"]


def test_of_many_that_begin_at_once_one_is_the_first(repo: Path) -> None:
    found: list[bool] = []

    def one(number: int) -> None:
        session = begin(repo, f"session-{number}")
        assert session is not None
        found.append(session.first)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [False] * 7 + [True]


WRITER = """
import sys
from queenbee.store.droids import agent_sessions
from queenbee.store.layout import discover

layout = discover(sys.argv[1], {})
print("ready", flush=True)
sys.stdin.readline()
for count in range(400):
    agent_sessions.end(layout, "one", reason="clear", now_ms=int(sys.argv[2]) + count)
"""


def test_a_reader_sees_a_whole_session_while_several_processes_write_it(repo: Path) -> None:
    begin(repo, "one")
    layout = discover(str(repo), {})
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(repo), str(NOW_MS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for each in writers:
        assert each.stdout is not None and each.stdout.readline() == "ready\n"
    for each in writers:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    read = unreadable = 0
    while any(each.poll() is None for each in writers):
        read += 1
        unreadable += agent_sessions.noted(layout, "one") is None
    for each in writers:
        each.communicate()
    assert (read > 0, unreadable) == (True, 0)
    assert [each.returncode for each in writers] == [0, 0, 0]
    assert [each.name for each in folder(repo).iterdir()] == ["one"]
