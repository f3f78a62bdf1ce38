"""Places that say no: a clear error or correct work, and never a traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import small_disks
from hives import Queen, QuickQueen, git, records, snapshot, without_override

from queenbee import Hive

pytestmark = pytest.mark.slow

WRITES = (
    ("claim", "--new", "qb-1"),
    ("issue", "assign", "qb-1", "reviewer"),
    ("reserve", "a.py"),
    ("msg", "send", "reviewer", "x"),
)
READS = (
    ("msg", "inbox"),
    ("issue", "assignments"),
    ("reserve", "list"),
    ("issue", "ready"),
    ("hive", "where"),
    ("issues",),
)


def _permissions_count(folder: Path) -> bool:
    """Returns whether an `unprivileged` process is kept out of where it may not write."""
    folder.mkdir()
    folder.chmod(0o555)
    touch = [sys.executable, "-c", f"open({str(folder / 'x')!r}, 'w')"]
    tried = subprocess.run(touch, preexec_fn=without_override, capture_output=True)
    return tried.returncode == 1 and b"PermissionError" in tried.stderr


@pytest.fixture
def denied(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """Takes the right to write away from a folder and all below it, until the test is over."""
    if not _permissions_count(tmp_path / "probe"):
        pytest.skip("this process cannot give up root's right to write anywhere")
    taken: list[tuple[Path, int]] = []

    def deny(folder: Path) -> None:
        for path in [folder, *folder.rglob("*")]:
            taken.append((path, path.stat().st_mode))
            path.chmod(path.stat().st_mode & ~0o222)

    yield deny
    for path, mode in taken:
        with suppress(FileNotFoundError):  # SQLite's own, which go with the last reader.
            path.chmod(mode)


# Places that cannot be written


@pytest.mark.some(2)
@pytest.mark.parametrize("arguments", WRITES, ids=" ".join)
def test_a_read_only_hive_refuses_each_write_and_names_the_folder(
    queen: Queen, quick: QuickQueen, beads: Path, denied: Callable[[Path], None],
    arguments: tuple[str, ...],
) -> None:  # fmt: skip
    quick("msg", "send", "reviewer", "before", as_="ui-engineer")
    denied(beads)
    before = snapshot(beads)
    refused = queen(*arguments, "--json", as_="ui-engineer", unprivileged=True)
    assert (refused.code, refused.error["code"]) == (7, "unwritable")
    assert str(beads) in refused.error["message"]
    assert "nothing was recorded" in refused.error["message"]
    assert str(beads) in refused.error["hint"]
    assert snapshot(beads) == before


@pytest.mark.parametrize("arguments", WRITES, ids=" ".join)
def test_a_read_only_git_directory_refuses_each_write_and_names_the_way_out(
    queen: Queen, repo: Path, beads: Path, denied: Callable[[Path], None],
    arguments: tuple[str, ...],
) -> None:  # fmt: skip
    denied(repo / ".git")
    refused = queen(*arguments, "--json", as_="ui-engineer", unprivileged=True)
    assert (refused.code, refused.error["code"]) == (7, "unwritable")
    assert str(repo / ".git" / "queenbee") in refused.error["message"]
    assert "git config queenbee.state beads" in refused.error["hint"]
    assert str(repo / ".git" / "queenbee") in refused.error["hint"]
    assert snapshot(beads) == {}


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (("worktree", "add", "amber"), ".git/queenbee-private"),
        (("guard", "uninstall"), ".git/hooks"),
    ],
    ids=str,
)
def test_a_folder_that_cannot_be_made_is_named(
    queen: Queen,
    repo: Path,
    denied: Callable[[Path], None],
    arguments: tuple[str, ...],
    folder: str,
) -> None:
    """Whatever the system refuses is no bug of ours."""
    queen("guard", "install", as_="ui-engineer")
    (repo / folder).mkdir(exist_ok=True)
    denied(repo / folder)
    refused = queen(*arguments, "--json", as_="ui-engineer", unprivileged=True)
    assert (refused.code, refused.error["code"]) == (7, "unwritable")
    assert refused.error["message"].startswith(str(repo / folder))
    assert "let this process write there" in refused.error["hint"]


def test_a_read_only_git_directory_does_not_matter_if_the_state_is_in_beads(
    queen: Queen, repo: Path, beads: Path, denied: Callable[[Path], None]
) -> None:
    git(repo, "config", "queenbee.state", "beads")
    denied(repo / ".git")
    for arguments in WRITES[2:]:
        assert queen(*arguments, as_="ui-engineer", unprivileged=True).code == 0
    assert (beads / ".queenbee" / ".gitignore").read_text() == "*\n"
    assert ".queenbee" not in git(repo, "status", "--porcelain", "-uall")


def test_a_read_only_hive_can_be_read(
    queen: Queen, quick: QuickQueen, repo: Path, denied: Callable[[Path], None]
) -> None:
    quick("msg", "send", "reviewer", "before", as_="ui-engineer")
    denied(repo)
    for arguments in READS:
        assert queen(*arguments, as_="reviewer", unprivileged=True).code == 0
    inbox = queen("msg", "inbox", "--json", as_="reviewer", unprivileged=True)
    assert [message["body"] for message in inbox.json] == ["before"]


def test_a_ledger_that_cannot_be_read_is_refused_by_name(
    queen: Queen, quick: QuickQueen, beads: Path
) -> None:
    quick("msg", "send", "reviewer", "x", as_="ui-engineer")
    with (beads / "queen_messages.jsonl").open("a") as ledger:
        ledger.write('{"id":"qm-1","to":"reviewer","body":"by another program"}\n')
    (beads / "queen_messages.jsonl").chmod(0)
    refused = queen("msg", "inbox", "--json", as_="reviewer", unprivileged=True)
    (beads / "queen_messages.jsonl").chmod(0o644)
    assert (refused.code, refused.error["code"]) == (7, "unreadable")
    assert "queen_messages.jsonl cannot be read: Permission denied" in refused.error["message"]


def test_a_name_that_cannot_be_remembered_is_refused_with_other_ways_to_give_it(
    queen: Queen, repo: Path, denied: Callable[[Path], None]
) -> None:
    denied(repo / ".git")
    refused = queen("hive", "whoami", "--set", "tester", "--json", unprivileged=True)
    assert refused.code == 7
    assert refused.error["hint"] == "set QUEEN_DROID=tester instead"


# A disk that is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte, where this process may make one."""
    with small_disks.mounted(tmp_path / "small", "1m") as place:
        yield place


@pytest.mark.some(2)
@pytest.mark.parametrize("arguments", WRITES, ids=" ".join)
def test_a_write_on_a_full_disk_is_refused_as_a_whole(
    queen: Queen, small_disk: Path, arguments: tuple[str, ...]
) -> None:
    tree = small_disk / "repo"
    tree.mkdir()
    git(tree, "init", "-q")
    assert queen("init", cwd=tree).code == 0
    assert queen("msg", "send", "reviewer", "before", as_="ui-engineer", cwd=tree).code == 0
    filler = tree / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(b"x" * 4096)
    before = written(tree)
    body = "x" * 100_000
    refused = queen(
        *(word if word != "x" else "-" for word in arguments),
        *(("--reason", "y" * 9_000) if arguments[0] != "msg" else ()),
        "--json",
        as_="ui-engineer",
        cwd=tree,
        stdin=body,
    )
    assert (refused.code, refused.error["code"]) == (7, "unwritable")
    assert "No space left on device" in refused.error["message"]
    assert written(tree) == before
    filler.unlink()
    assert queen("msg", "send", "reviewer", "after", as_="ui-engineer", cwd=tree).code == 0
    bodies = [row["body"] for row in records(tree / ".beads" / "queen_messages.jsonl")]
    assert bodies == ["before", "after"]


@pytest.mark.parametrize("free_kib", [0, 8, 16, 20, 24, 28])
def test_a_landing_on_a_full_disk_lands_nothing_and_says_which_disk(
    queen: Queen, small_disk: Path, free_kib: int
) -> None:
    main = small_disk / "repo"
    main.mkdir()
    git(main, "init", "-q")
    assert queen("init", cwd=main).code == 0
    git(main, "config", "queenbee.check", "true")
    git(main, "add", "--all")
    git(main, "commit", "-qm", "begin")
    made = queen("worktree", "add", "ui", "--json", cwd=main)
    tree = Path(made.json["path"])
    (tree / "work").write_text("work\n")
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "work")
    before = git(main, "rev-parse", "HEAD")
    disk = os.statvfs(main)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (disk.f_bavail * disk.f_frsize - free_kib * 1024))
    ran = queen("land", "--json", as_="ui", cwd=tree)
    if free_kib < 12 or ran.code:
        assert (ran.code, ran.error["code"]) == (7, "unwritable"), ran
        assert git(main, "rev-parse", "HEAD") == before
    filler.unlink()
    assert queen("land", as_="ui", cwd=tree).code == 0
    assert (main / "work").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_disk_that_fails_is_no_bug_of_queen(
    quick: QuickQueen, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def failing(hive: Hive) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Hive, "messages", property(failing))
    ran = quick("msg", "inbox", as_="ui")
    assert ran.code == 7
    assert os.strerror(number) in ran.err


def written(tree: Path) -> dict[str, bytes]:
    """Returns what the hive's files hold; an empty one holds nothing."""
    files = snapshot(tree / ".beads", tree / ".git" / "queenbee")
    return {name: data for name, data in files.items() if data}


# A hive that is none


def test_beads_that_is_a_file_is_refused(quick: QuickQueen, beads: Path) -> None:
    beads.rmdir()
    beads.write_text("not a folder\n")
    for arguments in (*WRITES, *READS[:-1], ("init",), ("doctor",)):
        refused = quick(*arguments, "--json", as_="ui-engineer")
        assert (refused.code, refused.error["code"]) == (7, "unreadable")
        assert refused.error["message"] == f"{beads} is not a directory"
        assert "queen init" in refused.error["hint"]
    assert beads.read_text() == "not a folder\n"


def test_beads_that_is_a_link_out_of_the_repository_is_refused(
    quick: QuickQueen, repo: Path, beads: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    beads.rmdir()
    beads.symlink_to(tmp_path / "elsewhere")
    refused = quick("claim", "--new", "qb-1", "--json", as_="ui-engineer")
    assert (refused.code, refused.error["code"]) == (7, "unreadable")
    assert "outside this repository" in refused.error["message"]
    assert "QUEEN_ALLOW_OUTSIDE=1" in refused.error["hint"]
    assert snapshot(tmp_path / "elsewhere") == {}
    allowed = quick("claim", "--new", "qb-1", as_="ui-engineer", env={"QUEEN_ALLOW_OUTSIDE": "1"})
    assert allowed.code == 0


@pytest.mark.parametrize("kind", ["messages", "assignments", "reservations"])
def test_a_ledger_that_is_a_link_is_not_written_through(
    quick: QuickQueen, beads: Path, tmp_path: Path, kind: str
) -> None:
    target = tmp_path / "target"
    target.write_text("precious\n")
    (beads / f"queen_{kind}.jsonl").symlink_to(target)
    for arguments in WRITES:
        quick(*arguments, as_="ui-engineer")
    assert target.read_text() == "precious\n"


@pytest.mark.parametrize("what", ["folder", "fifo"])
def test_a_ledger_that_is_not_a_file_is_refused_without_hanging(
    queen: Queen, beads: Path, what: str
) -> None:
    ledger = beads / "queen_messages.jsonl"
    ledger.mkdir() if what == "folder" else os.mkfifo(ledger)
    for arguments in (("msg", "inbox"), ("msg", "send", "reviewer", "x")):
        refused = queen(*arguments, "--json", as_="ui-engineer")
        assert (refused.code, refused.error["code"]) == (7, "unreadable")
        assert "is not a regular file" in refused.error["message"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("droids = [", "is not TOML"),
        ('droids = "many"', "droids cannot be 'many'"),
        ('state = "cloud"', "state cannot be 'cloud'"),
        ('ttl = "soon"', "ttl cannot be 'soon'"),
        ('ttl = "31d"', "ttl cannot be '31d'"),
        ("ttl = 7200", "ttl cannot be 7200"),
        ('durability = "perhaps"', "durability cannot be 'perhaps'"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_invalid_settings_stop_every_write_where_they_were_never_good(
    quick: QuickQueen, beads: Path, settings: str, said: str
) -> None:
    (beads / "queen.toml").write_bytes(settings.encode(errors="surrogateescape"))
    refused = quick("reserve", "a.py", "--json", as_="ui-engineer")
    assert (refused.code, refused.error["code"]) == (7, "unreadable")
    assert said in refused.error["message"]
    assert "queen.toml" in refused.error["message"]


def test_a_durability_that_does_not_exist_is_refused(quick: QuickQueen) -> None:
    refused = quick("reserve", "list", "--json", env={"QUEEN_DURABILITY": "perhaps"})
    assert refused.code == 2
    assert refused.error["hint"] == "set it to synced or buffered"


# No git, no repository, odd places


@pytest.fixture
def without_git(tmp_path: Path) -> dict[str, str]:
    """An environment in which no git is installed."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin")}


def test_every_command_works_without_git_installed(
    queen: Queen, quick: QuickQueen, without_git: dict[str, str]
) -> None:
    assert queen("reserve", "README.md", as_="ui-engineer", env=without_git).code == 0
    for arguments in (
        ("init",),
        *WRITES[:1],
        *WRITES[2:],
        *READS,
        ("doctor",),
        ("reserve", "check", "a.py"),
    ):
        assert quick(*arguments, as_="ui-engineer", env=without_git).code == 0


def test_every_command_works_outside_git(
    quick: QuickQueen, tmp_path: Path, without_git: dict[str, str]
) -> None:
    place = tmp_path / "plain"
    place.mkdir()
    for arguments in (
        ("init",),
        *WRITES[:1],
        *WRITES[2:],
        *READS,
        ("doctor",),
        ("reserve", "check", "a.py"),
    ):
        assert quick(*arguments, as_="ui-engineer", cwd=place, env=without_git).code == 0
    assert (place / ".beads" / ".queenbee" / ".gitignore").read_text() == "*\n"


def test_without_a_hive_the_command_that_makes_one_is_named(
    quick: QuickQueen, tmp_path: Path
) -> None:
    for arguments in (*WRITES, *READS, ("doctor",), ("hive", "history", "qm-1")):
        refused = quick(*arguments, "--json", as_="ui-engineer", cwd=tmp_path)
        assert (refused.code, refused.error["code"]) == (4, "no_hive")
        assert refused.error["hint"] == "queen init"
    assert not (tmp_path / ".beads").exists()


def test_a_working_directory_that_was_removed_is_refused(queen: Queen, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = f"cd {gone} && rmdir {gone} && exec {sys.executable} -c "
    program += "'from queenbee.cli.main import main; main()' reserve list --json"
    done = subprocess.run(
        ["sh", "-c", program],
        env=queen.environment("x", None),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4
    assert "the working directory no longer exists" in done.stderr


def test_a_repository_may_have_unusual_characters_in_its_path(queen: Queen, tmp_path: Path) -> None:
    tree = tmp_path / "a b [x] *é\n'$HOME"
    tree.mkdir()
    git(tree, "init", "-q")
    assert queen("init", cwd=tree).code == 0
    assert queen("reserve", "src/*.py", as_="a", cwd=tree).code == 0
    assert queen("reserve", "check", "src/x.py", as_="b", cwd=tree).code == 1


def test_a_lock_that_somebody_holds_is_busy_and_names_the_holder(
    queen: Queen, quick: QuickQueen, repo: Path, beads: Path
) -> None:
    (beads / "queen.toml").write_text('lock_timeout = "1s"\n')
    quick("reserve", "README.md", as_="reviewer")
    holder = (
        "import sys; from queenbee import Hive\n"
        "with Hive.open(droid='slow-tool').transaction():\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder],
        cwd=repo,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        refused = queen("claim", "--new", "qb-1", "--json", as_="ui-engineer")
        assert queen("reserve", "list", as_="ui-engineer").code == 0
        process.stdin.close()
    assert (refused.code, refused.error["code"]) == (6, "busy")
    assert f"slow-tool (process {process.pid})" in refused.error["message"]
    assert not (beads / "queen_assignments.jsonl").exists()
