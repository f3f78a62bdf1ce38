"""Files of any size and shape: an answer or a clear error, in bounded memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hives import write_lines

from queenbee import Hive
from queenbee.store import files
from queenbee.store.files import START, read_after

GIB = 1024 * 1024 * 1024
MEMORY_BYTES = 400 * 1024 * 1024
LINE = b'{"id": "qm-1", "from": "api", "to": "ui-engineer", "body": "hello", "rev": 1}\n'


def limited(repo: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `queen` in an address space that the file does not fit into."""
    return subprocess.run(
        [
            *(sys.executable, "-c", "from queenbee.cli.main import main; main()"),
            *(*arguments, "--as", "ui-engineer"),
        ],
        cwd=repo,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
    )


@pytest.fixture
def huge(repo: Path) -> Path:
    """A ledger of 1 GiB, most of it a hole in the file, with a record before the hole."""
    ledger = repo / ".beads" / "queen_messages.jsonl"
    ledger.parent.mkdir(exist_ok=True)
    with ledger.open("wb") as file:
        file.write(LINE)
        file.truncate(GIB)
    return ledger


@pytest.mark.linux
@pytest.mark.slow
def test_a_ledger_that_does_not_fit_into_memory_is_refused_and_left_alone(
    repo: Path, huge: Path
) -> None:
    for words in (("msg", "send", "api", "x"), ("msg", "inbox", "--json")):
        done = limited(repo, *words)
        assert (done.returncode, done.stderr.count("Traceback")) == (7, 0), done.stderr
        assert "does not fit into memory" in done.stderr
    assert huge.stat().st_size == GIB


@pytest.mark.parametrize("limit", [None, 1, 4096, 3_000_000])
@pytest.mark.parametrize("end", [b"", LINE])
def test_a_line_that_is_too_long_counts_as_one_unusable_line(
    tmp_path: Path, limit: int | None, end: bytes
) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(LINE + b"x" * 5_000_000 + b"\n" + end + LINE)
    mark, lines = START, b""
    while (chunk := read_after(str(path), mark, limit=limit)).lines:
        assert not chunk.restarted
        lines, mark = lines + chunk.lines, chunk.end
    assert mark.offset == path.stat().st_size
    found = files.split_lines(lines)
    assert (found[0], found[2:]) == (LINE.rstrip(), [LINE.rstrip()] * (2 if end else 1))
    assert len(found) == 3 + bool(end)
    assert not found[1].startswith(b"{")


def test_one_without_an_end_is_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(LINE + b"x" * 5_000_000)
    chunk = read_after(str(path), read_after(str(path), START, limit=1).end, limit=4096)
    assert (chunk.lines, bool(chunk.rest)) == (b"", True)
    assert chunk.end.offset == len(LINE)


def test_what_does_not_fit_into_memory_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> bytes:
        raise MemoryError

    path = tmp_path / "ledger"
    path.write_bytes(LINE)
    monkeypatch.setattr(files, "_pread_all", fails)
    for act in (lambda: read_after(str(path), START), lambda: files.Original(str(path))):
        with pytest.raises(files.Unreadable, match="does not fit into memory"):
            act()


@pytest.mark.parametrize(
    "name",
    [
        *("hive.sqlite3", "hive.sqlite3-wal", "hive.sqlite3-shm", "hive.sqlite3-journal"),
        *("journal/messages.jsonl", "journal/messages.jsonl.intent"),
    ],
)
def test_a_fifo_in_the_state_does_not_hang_a_reader(hive: Hive, repo: Path, name: str) -> None:
    hive.messages.send("api", "hello")
    hive.close()
    path = Path(hive.layout.state_dir) / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    code = (
        "from queenbee import Hive\n"
        "from queenbee.errors import QueenError\n"
        "try: Hive.open(droid='api').messages.inbox()\n"
        "except QueenError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_many_unusable_lines_are_counted_and_cost_no_record(hive: Hive, beads: Path) -> None:
    write_lines(beads / "queen_messages.jsonl", {"id": "qm-1", "from": "api", "to": "ui-engineer"})
    with (beads / "queen_messages.jsonl").open("a") as file:
        file.write("not a record\n" * 100_000)
    assert [each.id for each in hive.messages.inbox()] == ["qm-1"]
    assert hive.state("messages").unusable == 100_000
    hive.messages.send("api", "hello")
    assert hive.state("messages").unusable == 100_000
