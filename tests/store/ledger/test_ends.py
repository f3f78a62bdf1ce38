"""Ledger and journal held open between writes: the short way leaves what the long way would."""

from __future__ import annotations

import os

import pytest
from raw_files import content

from queenbee.store.ledger.ends import Ends
from queenbee.store.ledger.ledger import Ledger


def line(number, length=40):
    return b'{"id":"qm-%d","rev":1,"body":"%s"}' % (number, b"x" * length)


@pytest.fixture
def ledger(tmp_path):
    (tmp_path / "journal").mkdir()
    return Ledger(str(tmp_path / "queen_messages.jsonl"), str(tmp_path / "journal/messages.jsonl"))


def written(ledger, lines):
    """Appends the long way, and returns the ends."""
    receipt = ledger.append(lines)
    ends = Ends.of(receipt)
    receipt.close()
    return ends


def both(ledger):
    return content(ledger.path), content(ledger.journal_path)


def of(*lines):
    return b"".join(each + b"\n" for each in lines)


class TestTheShortWay:
    def test_appends_to_both_files(self, ledger):
        ends = written(ledger, [line(1)])
        for number in range(2, 300):
            ends.append([line(number)]).close()
        assert both(ledger) == (of(*map(line, range(1, 300))),) * 2

    def test_follows_what_others_appended_to_both(self, ledger):
        ends, others = written(ledger, [line(1)]), Ledger(ledger.path, ledger.journal_path)
        for number in range(2, 40, 2):
            others.append([line(number, 700)]).close()
            ends.append([line(number + 1)]).close()
        assert [len(each.splitlines()) for each in both(ledger)] == [39, 39]
        assert both(ledger)[0] == both(ledger)[1]
        assert set(both(ledger)[0].splitlines()) >= {line(39), line(38, 700), line(2, 700)}

    def test_of_two_open_hives_follow_each_other(self, ledger):
        one = written(ledger, [line(1)])
        two = written(ledger, [line(2)])
        for number in range(3, 30, 2):
            assert one.append([line(number)]) is not None
            assert two.append([line(number + 1)]) is not None
        assert both(ledger) == (of(*map(line, range(1, 31))),) * 2

    def test_of_several_lines_leaves_no_announcement(self, ledger):
        ends = written(ledger, [line(1)])
        ends.append([line(2), line(3)]).close()
        assert os.listdir(os.path.dirname(ledger.journal_path)) == ["messages.jsonl"]
        assert both(ledger) == (of(line(1), line(2), line(3)),) * 2

    def test_of_no_lines_writes_nothing(self, ledger):
        ends = written(ledger, [line(1)])
        ends.append([]).close()
        assert both(ledger) == (of(line(1)),) * 2

    def test_takes_its_lines_back(self, ledger):
        ends = written(ledger, [line(1)])
        receipt = ends.append([line(2)])
        receipt.take_back()
        receipt.close()
        assert both(ledger) == (of(line(1)),) * 2
        assert ends.append([line(3)]) is None


def replace(path):
    data = content(path)
    os.rename(path, path + ".old")
    with open(path, "wb") as file:
        file.write(data)


def replaced(ledger):
    replace(ledger.path)


def both_replaced(ledger):
    replace(ledger.path)
    replace(ledger.journal_path)


def shorter(ledger):
    os.truncate(ledger.path, 10)


def gone(ledger):
    os.unlink(ledger.path)


def grown(ledger):
    with open(ledger.path, "ab") as file:
        file.write(of(line(7)))


def torn(ledger):
    for path in (ledger.path, ledger.journal_path):
        with open(path, "ab") as file:
            file.write(line(7))


def changed_in_place(ledger):
    before = os.stat(ledger.path)
    with open(ledger.path, "r+b") as file:
        file.write(b" ")
    os.utime(ledger.path, ns=(0, before.st_mtime_ns + 1))


def changed_and_grown(ledger):
    for path in (ledger.path, ledger.journal_path):
        with open(path, "r+b") as file:
            file.write(of(line(8, 500)))


def linked(ledger):
    os.rename(ledger.path, ledger.path + ".elsewhere")
    os.symlink(ledger.path + ".elsewhere", ledger.path)


def journal_gone(ledger):
    os.unlink(ledger.journal_path)


def read_only(ledger):
    os.chmod(ledger.path, 0o444)


def announced(ledger):
    with open(ledger.journal_path + ".intent", "wb") as file:
        file.write(b"%d %d\n" % (os.path.getsize(ledger.journal_path), 1_000))


def segment_came(ledger):
    os.mkdir(ledger.archive.folder)
    with open(ledger.archive.path("queen_messages.1.jsonl"), "wb") as file:
        file.write(of(line(9)))


CHANGES = [
    replaced,
    both_replaced,
    shorter,
    gone,
    grown,
    torn,
    changed_in_place,
    changed_and_grown,
    linked,
    journal_gone,
    read_only,
    announced,
    segment_came,
]


@pytest.mark.parametrize("change", CHANGES)
def test_writes_nothing_if_the_files_must_be_compared(ledger, change):
    ends = written(ledger, [line(1), line(2)])
    change(ledger)
    before = [content(path) for path in (ledger.path, ledger.journal_path) if os.path.exists(path)]
    assert ends.append([line(3)]) is None
    after = [content(path) for path in (ledger.path, ledger.journal_path) if os.path.exists(path)]
    assert after == before


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("count", [1, 3])
def test_a_write_that_fails_leaves_both_files_as_they_were(ledger, monkeypatch, nth, count):
    ends = written(ledger, [line(1)])
    calls, write = iter(range(1, 100)), os.write

    def fails(fd, data):
        if next(calls) >= nth:
            raise OSError(28, os.strerror(28))
        return write(fd, data)

    monkeypatch.setattr(os, "write", fails)
    with pytest.raises(Exception, match="nothing was recorded"):
        ends.append([line(number) for number in range(2, 2 + count)])
    monkeypatch.undo()
    assert both(ledger) == (of(line(1)),) * 2
    assert ends.append([line(9)]) is None
    ledger.append([line(9)]).close()
    assert both(ledger) == (of(line(1), line(9)),) * 2


def test_ends_that_may_differ_are_not_held(ledger):
    written(ledger, [line(1)])
    receipt = ledger.append([line(2)])
    with open(ledger.path, "ab") as file:
        file.write(of(line(3)))
    receipt.agreed = ledger.read().position
    assert Ends.of(receipt) is None


@pytest.mark.parametrize("change", [announced, both_replaced])
def test_a_line_that_was_written_after_a_change_outlives_the_ledger(ledger, change):
    receipt = ledger.append([line(1), line(2)])
    ends = Ends.of(receipt)
    receipt.close()
    change(ledger)
    receipt = ends.append([line(3)]) or ledger.append([line(3)])
    receipt.close()
    if os.path.exists(ledger.path):
        os.unlink(ledger.path)
    ledger.append([line(4)]).close()
    batch = ledger.read()
    assert line(3) in {*batch.tracked, *batch.journal_only}
