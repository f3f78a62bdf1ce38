"""Disks that are full, that fail, and that lose their power: nothing acknowledged is lost.

Three ways to a failing disk, each skipped with its reason where it cannot be had: a tmpfs of
64 KiB that fills up, errors injected into system calls by strace, and an ext4 file system in a
file that is shut down without writing its caches, as by a power cut, and mounted again.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import struct
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager, suppress

from queenbee import Hive
from queenbee.errors import QueenError, Unwritable
from tests.torture.kills import lines_of
from tests.torture.places import ENVIRONMENT, ROOT, errors_of, make_repository, open_hive, require

_SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN, `_IOR('X', 125, __u32)` in Linux' fs/ext4/ext4.h."""
_WITHOUT_LOG = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: what is not on disk yet never gets there."""

INJECTED = (
    ("write", "ENOSPC"),
    ("write", "EIO"),
    ("pwrite64", "ENOSPC"),
    ("openat", "ENOSPC"),
    ("openat", "EIO"),
    ("openat", "EMFILE"),
    ("fdatasync", "EIO"),
    ("fsync", "EIO"),
    ("ftruncate", "EIO"),
    ("unlink", "EIO"),
    ("mkdir", "ENOSPC"),
    ("pread64", "EIO"),
    ("flock", "ENOLCK"),
)


WRITER = (sys.executable, "-m", "tests.torture.faults", "write")


class CannotHave(Exception):
    """What this machine does not offer; the text says why."""


# A disk that is full.


@contextmanager
def mounted(folder: str, *options: str):
    """Mounts a file system at a new folder, and takes it away again."""
    if os.geteuid() != 0:
        raise CannotHave("mounting needs root")
    os.makedirs(folder)
    done = subprocess.run(["mount", *options, folder], capture_output=True, text=True)
    if done.returncode:
        raise CannotHave(f"no mount: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def full_disk(folder: str) -> dict[str, object]:
    """Fills a tmpfs of 64 KiB; each write works as a whole or leaves nothing. Three times over."""
    with mounted(os.path.join(folder, "small"), "-t", "tmpfs", "-o", "size=64k", "tmpfs") as place:
        os.mkdir(os.path.join(place, ".beads"))
        figures = Counter[str]()
        for size in (10, 700, 3_000):
            figures += _fill(place, size)
            hive = _in(place)
            for kind in hive.kinds():
                with suppress(FileNotFoundError):
                    os.truncate(hive.layout.ledger_path(kind), 0)
            hive.close()
            for path in glob.glob(hive.layout.memory_path + "*"):
                os.unlink(path)
        return dict(figures)


def _in(place: str, durability: str = "synced") -> Hive:
    return Hive.open(place, droid="ui", env={"QUEEN_DURABILITY": durability})


def _fill(place: str, size: int) -> Counter[str]:
    figures = Counter[str]()
    acknowledged: set[str] = set()
    hive = _in(place)
    for number in range(5_000):
        try:
            acts = (
                lambda: hive.messages.send("api,tester", "x" * size, new=True),
                lambda n=number: hive.reservations.reserve([f"{n}/a/**", f"{n}/b/**"]),
                lambda n=number: [hive.assignments.assign(f"qb-{n}", "api", reason="x" * size)],
            )
            acknowledged.update(record.id for record in acts[number % 3]())
            figures["acknowledged"] += 1
        except Unwritable as error:
            require(
                "recorded" in error.message or "cannot be created" in error.message, error.message
            )
            figures["refused"] += 1
            if figures["refused"] > 12:
                break
    require(figures["refused"], "the disk never filled up")
    seen = b"\n".join(lines_of(place))
    lost = [each for each in acknowledged if each.encode() not in seen]
    require(not lost, f"{len(lost)} acknowledged records are gone from a full disk")
    _require_whole(place)
    require(not errors_of(_in(place), but=frozenset({"attributes"})), "a full disk broke the hive")
    return figures


def _require_whole(place: str) -> None:
    """Two patterns were always asked for at once, and each assignment came with a message."""
    hive = _in(place)
    halves = Counter(
        lease.pattern.split("/")[0] for lease in hive.reservations.find() if lease.pattern[0] != "p"
    )
    require(all(count == 2 for count in halves.values()), f"granted in part: {halves}")
    told = {message.issue_id for message in hive.messages.sent()}
    given = {each.issue_id for each in hive.assignments.find()}
    require(given <= told, f"assigned, but not told: {given - told}")


# System calls that fail.


def injected(
    folder: str, *, most: int = 12, calls: tuple[tuple[str, str], ...] = INJECTED
) -> dict[str, object]:
    """Lets the nth call of each kind fail under strace; returns the figures."""
    strace = shutil.which("strace")
    if strace is None:
        raise CannotHave("strace is not installed")
    figures = Counter[str]()
    for call, error in calls:
        template = make_repository(os.path.join(folder, f"{call}-{error}"))
        open_hive(template, "ui").messages.send("api", "before", new=True)
        open_hive(template, "ui").assignments.claim("qb-0")
        for nth in range(1, most + 1):
            tree = f"{template}-{nth}"
            shutil.copytree(template, tree, symlinks=True)
            before = lines_of(tree)
            told = _under(strace, tree, f"inject={call}:error={error}:when={nth}")
            if told is None:
                raise CannotHave("strace may not trace here")
            _require_kept(tree, before, told)
            shutil.rmtree(tree)
            figures[call] += 1
            figures["not acknowledged"] += "failed" in told
    return dict(figures)


def _under(strace: str, tree: str, injection: str) -> list[str] | None:
    """Runs a writer whose calls on the hive's files fail as told; returns what it was told."""
    beads = os.path.join(tree, ".beads")
    state = os.path.join(tree, ".git", "queenbee")
    memory = os.path.join(state, "hive.sqlite3")
    paths = [state, os.path.join(state, "lock"), beads]
    paths += [memory + suffix for suffix in ("", "-wal", "-shm")]
    for kind in ("assignments", "messages", "reservations"):
        paths.append(os.path.join(beads, f"queen_{kind}.jsonl"))
    traced = [word for path in paths for word in ("-P", path)]
    done = subprocess.run(
        [strace, "-f", "-qq", "-o", os.devnull, *traced, "-e", injection, *WRITER, tree],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    if "strace:" in done.stderr and not done.stdout:
        return None
    require("Traceback" not in done.stderr, f"{injection}: {done.stderr[-2_000:]}")
    require(done.returncode == 0, f"{injection}: exit {done.returncode}: {done.stderr[-500:]}")
    return done.stdout.split()


def _require_kept(tree: str, before: set[bytes], told: list[str]) -> None:
    seen = lines_of(tree)
    require(before <= seen, f"{tree}: what was recorded before is gone")
    text = b"\n".join(seen)
    lost = [each for each in told if each.startswith("q") and each.encode() not in text]
    require(not lost, f"{tree}: acknowledged, and gone: {lost}")
    hive = open_hive(tree, "ui")
    count = len([lease for lease in hive.reservations.find() if lease.reason == "faults"])
    require(count in (0, 3), f"{tree}: {count} of 3 patterns are reserved")
    sent = hive.messages.send("api", "afterwards", new=True)[0]
    require(sent.id.encode() in b"\n".join(lines_of(tree)), "the next write is not seen")
    wrong = errors_of(hive, but=frozenset({"unusable_line", "behind"}))
    require(not wrong, f"{tree}: {wrong}")


def write(tree: str) -> None:
    """Does several things, and prints what was acknowledged: ids, or `failed`."""
    acts = (
        lambda: Hive.open(tree, droid="ui").messages.send("api,tester", "x" * 200, new=True),
        lambda: Hive.open(tree, droid="ui").reservations.reserve(
            ["a/**", "b/**", "c/**"], reason="faults"
        ),
        lambda: [Hive.open(tree, droid="ui").assignments.assign("qb-1", "api")],
        lambda: [Hive.open(tree, droid="ui").assignments.complete("qb-0")],
    )
    for act in acts:
        try:
            for record in act():
                print(record.id, flush=True)
        except QueenError:
            print("failed", flush=True)


# A power cut.


def power_cut(folder: str, *, cuts: int = 5, durability: str = "synced") -> dict[str, object]:
    """Cuts the power of an ext4 file system right after acknowledgements; returns the figures.

    `buffered` promises nothing here, so that the cut can be seen to be one.
    """
    if shutil.which("mkfs.ext4") is None:
        raise CannotHave("mkfs.ext4 is not installed")
    image = os.path.join(folder, "disk.img")
    with open(image, "wb") as file:
        file.truncate(16 * 1024 * 1024)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
    figures = Counter[str]()
    acknowledged: set[str] = set()
    for cut in range(cuts):
        place = os.path.join(folder, f"cut-{cut}")
        with mounted(place, "-o", "loop", image):
            os.makedirs(os.path.join(place, "hive", ".beads"), exist_ok=True)
            tree = os.path.join(place, "hive")
            _require_survived(tree, acknowledged)
            hive = _in(tree, durability)
            for number in range(20):
                records = [
                    *hive.messages.send("api", f"{cut} {number}", new=True),
                    *hive.reservations.reserve([f"{cut}/{number}/a", f"{cut}/{number}/b"]),
                ]
                acknowledged.update(record.id for record in records)
                figures["acknowledged"] += len(records)
            _cut_power(place)
            hive.close()  # No process survives a power cut.
            figures["cuts"] += 1
    with mounted(os.path.join(folder, "after"), "-o", "loop", image) as place:
        _require_survived(os.path.join(place, "hive"), acknowledged)
    return {**figures, "lost": 0}


def _require_survived(tree: str, acknowledged: set[str]) -> None:
    seen = b"\n".join(lines_of(tree))
    lost = [each for each in acknowledged if each.encode() not in seen]
    require(not lost, f"{len(lost)} of {len(acknowledged)} are gone after a power cut")


def _cut_power(place: str) -> None:
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _WITHOUT_LOG))
    except OSError as error:
        raise CannotHave(f"no shutdown of a file system: {error.strerror}") from error
    finally:
        os.close(fd)


def run(folder: str) -> dict[str, object]:
    """Runs all three; returns the figures, or why one was skipped."""
    figures: dict[str, object] = {}
    for name, act in (("full disk", full_disk), ("injected", injected), ("power cut", power_cut)):
        place = os.path.join(folder, name.replace(" ", "-"))
        os.makedirs(place)
        try:
            figures[name] = act(place)
        except CannotHave as reason:
            figures[name] = f"skipped: {reason}"
    return figures


if __name__ == "__main__":
    assert sys.argv[1] == "write"
    write(sys.argv[2])
