"""Several lines at once are recorded as a whole, wherever the writer is killed."""

from __future__ import annotations

import errno
import os
import signal

import pytest
from raw_files import content

from queenbee.errors import Unwritable
from queenbee.store import files
from queenbee.store.codec import Unusable, decode
from queenbee.store.ledger.ledger import Ledger

BEFORE = b'{"id":"qr-0","rev":1}'
LINES = [b'{"id":"qr-%d","rev":1,"pattern":"src/%d"}' % (number, number) for number in (1, 2, 3)]
AFTER = b'{"id":"qr-9","rev":1}'


@pytest.fixture
def places(tmp_path):
    """Returns where ledger and journal of a hive are, with one line in them."""
    (tmp_path / "journal").mkdir()
    found = str(tmp_path / "queen_reservations.jsonl"), str(tmp_path / "journal" / "r.jsonl")
    Ledger(*found).append([BEFORE]).close()
    return found


def killed(act):
    """Runs `act` in a child process that is killed inside it, and returns once it is dead."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child outlived its kill"


def die(*_args, **_kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def usable(lines):
    found = []
    for line in lines:
        try:
            decode(line)
        except Unusable:
            continue
        found.append(line)
    return found


def everything(places):
    batch = Ledger(*places).read()
    return usable([*batch.tracked, *batch.journal_only])


def none_or_all(read):
    return set(read) - {BEFORE} in (set(), set(LINES))


def torn_writer(places, total):
    """Returns an act that is killed when so many bytes are written, in either file."""

    def act():
        left, write = total, os.write

        def write_some(fd, data):
            nonlocal left
            done = write(fd, data[:left]) if left else 0
            left -= done
            if not left:
                die()
            return done

        files.os.write = write_some
        Ledger(*places).append(LINES)

    return act


WHOLE = sum(map(len, LINES)) + len(LINES)


class TestKilledWhileWriting:
    @pytest.mark.slow
    @pytest.mark.parametrize("total", range(1, 2 * WHOLE + 1, 5))
    def test_none_of_the_lines_or_all_of_them_count(self, places, total):
        killed(torn_writer(places, total))
        read = everything(places)
        assert none_or_all(read)
        assert (set(read) > {BEFORE}) == (total >= WHOLE)

    @pytest.mark.parametrize("total", range(1, 2 * WHOLE + 1, 11))
    def test_the_next_append_is_whole_and_changes_nothing_about_it(self, places, total):
        killed(torn_writer(places, total))
        before = set(everything(places))
        Ledger(*places).append([AFTER]).close()
        assert set(everything(places)) == before | {AFTER}
        assert set(usable(content(places[0]).splitlines())) == before | {AFTER}
        assert set(content(places[1]).splitlines()) == before | {AFTER}

    def test_a_reader_that_follows_sees_neither_half_of_them(self, places):
        reader = Ledger(*places)
        position = reader.read().position
        killed(torn_writer(places, len(LINES[0]) + 3))
        batch = reader.read(position)
        assert (batch.tracked, batch.journal_only) == ([], [])
        Ledger(*places).append([AFTER]).close()
        again = reader.read(batch.position)
        assert {*again.tracked, *again.journal_only} - {BEFORE} == {AFTER}


class TestKilledBetweenSteps:
    @pytest.mark.parametrize(
        "step",
        ["append", "forget_intent", "count_arrival", "finish_interrupted"],
    )
    def test_before_any_step_none_or_all_count(self, places, step):
        with open(places[0], "ab") as file:
            file.write(b'{"id":"qr-8","rev":1}\n')

        def act():
            writer = Ledger(*places)
            calls = iter((False, True) if step == "forget_intent" else (True,))
            original = getattr(writer.journal, step)
            setattr(writer.journal, step, lambda *args: die() if next(calls) else original(*args))
            writer.append(LINES)

        killed(act)
        assert none_or_all(set(everything(places)) - {b'{"id":"qr-8","rev":1}'})
        Ledger(*places).append([AFTER]).close()
        assert none_or_all(set(everything(places)) - {AFTER, b'{"id":"qr-8","rev":1}'})

    def test_before_the_ledger_is_written_the_lines_are_recorded(self, places):
        def act():
            files.Appender.ends_with_newline = die
            Ledger(*places).append(LINES)

        killed(act)
        assert everything(places) == [BEFORE, *LINES]

    def test_what_came_from_elsewhere_is_counted_before_it_is_known(self, places):
        with open(places[0], "ab") as file:
            file.write(b'{"id":"qr-8","rev":1}\n')

        def act():
            writer = Ledger(*places)
            writer.journal.forget_intent = lambda: None
            files.Appender.ends_with_newline = die
            writer.append(LINES)

        killed(act)
        assert Ledger(*places).foreign(unrecorded=False)


class TestAWriteThatFails:
    """The disk refuses one of the two files: nothing of the append stays in either."""

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG])
    @pytest.mark.parametrize("nth", [1, 2, 3, 4])
    def test_at_the_nth_call_leaves_both_files_as_they_were(self, places, monkeypatch, number, nth):
        before = [content(path) for path in places]
        calls, write = iter(range(1, 100)), os.write

        def fails(fd, data):
            if next(calls) >= nth:
                raise OSError(number, os.strerror(number))
            return write(fd, data[: len(data) // 2])

        monkeypatch.setattr(files.os, "write", fails)
        with pytest.raises(Unwritable, match="nothing was recorded"):
            Ledger(*places).append(LINES)
        monkeypatch.undo()
        assert [content(path) for path in places] == before
        Ledger(*places).append([AFTER]).close()
        assert everything(places) == [BEFORE, AFTER]

    def test_by_interruption_leaves_both_files_as_they_were(self, places, monkeypatch):
        before = [content(path) for path in places]

        def interrupted(self):
            raise KeyboardInterrupt

        monkeypatch.setattr(files.Appender, "ends_with_newline", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Ledger(*places).append(LINES)
        assert [content(path) for path in places] == before

    def test_to_announce_itself_is_not_begun(self, places, monkeypatch):
        os.mkdir(places[1] + ".intent")
        before = [content(path) for path in places]
        with pytest.raises(Unwritable):
            Ledger(*places).append(LINES)
        assert [content(path) for path in places] == before

    def test_that_was_taken_back_can_be_followed_by_another_of_the_same_ledger(self, places):
        ledger = Ledger(*places)
        receipt = ledger.append(LINES)
        receipt.take_back()
        receipt.close()
        ledger.append([AFTER]).close()
        assert everything(places) == [BEFORE, AFTER]
        assert content(places[0]).splitlines() == [BEFORE, AFTER]


def test_an_announcement_is_read_from_no_more_than_the_journal_holds(places):
    with open(places[1] + ".intent", "wb") as file:
        file.write(b"999999 7\n")
    assert everything(places) == [BEFORE]
    Ledger(*places).append([AFTER]).close()
    assert everything(places) == [BEFORE, AFTER]


@pytest.mark.parametrize("noise", [b"", b"x", b"1", b"1 2 3", b"\xff\xff", b"-1 -1"])
def test_an_announcement_that_says_nothing_is_ignored(places, noise):
    with open(places[1] + ".intent", "wb") as file:
        file.write(noise)
    assert everything(places) == [BEFORE]
