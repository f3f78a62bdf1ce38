"""A long ledger is rotated to the same files as a short one, without its lines in memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from extent import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_files import content_if_any

from queenbee.store.ledger import rotation
from queenbee.store.ledger.ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

IDS = ("qm-3", "qm-1", "qm-2")
STAMPS = ("2026-01-01T00:00:00.000Z", "2025-01-01T00:00:00.000Z", "no time")


def line(identifier: str, created_at: str, rev: int | None, *, closed: bool) -> bytes:
    fields = {"id": identifier, "created_at": created_at, "closed": closed, "rev": rev}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


lines = st.builds(
    line,
    st.sampled_from(IDS),
    st.sampled_from(STAMPS),
    st.sampled_from((1, 1, 2, 3, None)),
    closed=st.booleans(),
)
ledgers = st.lists(lines | st.just(b'{"_migration":"v2","id":"qm-1"}'), max_size=9)
odd_ledgers = st.lists(
    lines | st.sampled_from((b"{torn", b"", b"<<<<<<< ours", b"a\r")), min_size=1, max_size=5
)


def is_closed(fields: dict[str, object]) -> bool:
    return fields.get("closed") is True


def outcome(
    folder: Path, ledger_bytes: bytes, more: list[bytes], long_bytes: int, module: ModuleType
) -> list[object]:
    """Returns all files that two rotations leave, and what each said that it did."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "journal").mkdir(parents=True)
    (folder / "queen_messages.jsonl").write_bytes(ledger_bytes)
    ledger = Ledger(
        str(folder / "queen_messages.jsonl"), str(folder / "journal" / "messages.jsonl")
    )
    said: list[object] = []
    kept, size = module._LONG_BYTES, module.SEGMENT_BYTES
    module._LONG_BYTES, module.SEGMENT_BYTES = long_bytes, 150
    try:
        for appended in ([], more):
            ledger.append(appended).close()
            done = module.rotate(ledger, is_closed)
            names = list(ledger.archive.listing())
            said += [done.records, done.lines, done.left_bytes, len(done.segments)]
            said += [content_if_any(ledger.path), content_if_any(ledger.journal_path)]
            said += [(name, content_if_any(ledger.archive.path(name))) for name in names]
            noted = ledger.noted()
            said += [noted and (noted.kept, noted.back, noted.mark.offset, noted.settled_bytes)]
    finally:
        module._LONG_BYTES, module.SEGMENT_BYTES = kept, size
    return said


def check(
    folder: Path, before: list[bytes], more: list[bytes], module: ModuleType = rotation
) -> None:
    data = b"".join(each + b"\n" for each in before)
    more = [each for each in dict.fromkeys(more) if each not in before]
    short = outcome(folder / "short", data, more, 10**9, module)
    assert outcome(folder / "long", data, more, -1, module) == short


@given(ledgers, st.lists(lines, max_size=4))
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_long_ledger_leaves_the_same_files(
    tmp_path: Path, before: list[bytes], more: list[bytes]
) -> None:
    check(tmp_path, before, more)


@given(odd_ledgers)
@settings(
    max_examples=examples(50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_long_ledger_with_lines_of_no_record_does_too(
    tmp_path: Path, before: list[bytes]
) -> None:
    check(tmp_path, before, [])


def test_revisions_ages_and_open_records_decide_what_moves(tmp_path: Path) -> None:
    new_year, old_year, _ = STAMPS
    before = [
        line("qm-3", new_year, 2, closed=True),
        line("qm-3", new_year, 1, closed=False),
        line("qm-2", new_year, 1, closed=True),
        line("qm-1", old_year, 1, closed=True),
        line("qm-4", old_year, 1, closed=True),
        line("qm-4", new_year, 1, closed=False),
        line("qm-5", old_year, 1, closed=True),
        line("qm-5", old_year, None, closed=True),
        line("qm-6", old_year, 1, closed=False),
        line("qm-7", old_year, 2, closed=False),
        line("qm-7", old_year, 1, closed=True),
        line("qm-8", old_year, 1, closed=True),
        b'{"_migration":"v2","id":"qm-8"}',
    ]
    check(tmp_path, before, [])


def test_a_ledger_that_is_not_what_the_journal_has_is_not_surveyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the lines of a segment that a merge brought back to the ledger would move once more."""
    closed = line("qm-1", STAMPS[0], 1, closed=True)
    (tmp_path / "journal").mkdir()
    path = tmp_path / "queen_messages.jsonl"
    monkeypatch.setattr(rotation, "_LONG_BYTES", -1)
    ledger = Ledger(str(path), str(tmp_path / "journal" / "messages.jsonl"))
    ledger.append([closed, line("qm-2", STAMPS[0], 1, closed=False)]).close()
    merged = path.read_bytes()
    rotation.rotate(ledger, is_closed)
    path.write_bytes(merged)
    rotation.rotate(ledger, is_closed)
    assert list(ledger.archive.listing()) == ["queen_messages.1.jsonl"]
    assert content_if_any(ledger.path) == line("qm-2", STAMPS[0], 1, closed=False) + b"\n"


@pytest.mark.slow
def test_the_lines_of_a_long_ledger_are_not_kept_in_memory(tmp_path: Path) -> None:
    script = """
import resource, sys
from queenbee.store.ledger import rotation
from queenbee.store.ledger.ledger import Ledger
ledger = Ledger(*sys.argv[1:])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
done = rotation.rotate(ledger, lambda fields: True)
print(done.lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    path = tmp_path / "queen_messages.jsonl"
    body = "x" * 10_000
    with path.open("wb") as file:
        for number in range(10_000):
            file.write(b'{"id":"qm-%d","rev":1,"body":"%s"}\n' % (number, body.encode()))
    (tmp_path / "journal").mkdir()
    command = [sys.executable, "-c", script, str(path), str(tmp_path / "journal" / "messages")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    lines, more = map(int, ran.stdout.split())
    kib = 1024 if sys.platform == "darwin" else 1
    assert lines == 10_000
    assert more / kib < 80 * 1024, "of 100 MiB, no more than a segment at a time"
