"""What a process loads: a command pays for nothing that it does not use."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from hives import commit_file, git, write_lines
from stamps import format_ms
from start_up import HOOK, LIBRARY, QUEEN, edit_event, loaded

pytestmark = pytest.mark.slow

OF_OTHERS = {
    "jsonschema", "markdown_it", "msgspec", "orjson", "pathspec",
    "referencing", "rpds", "ruamel", "ulid", "yaml",
}  # fmt: skip
"""Packages that cost 3 to 100 ms each. None of them serves a small hive."""

OF_PYTHON = {
    "argparse", "asyncio", "concurrent", "ctypes", "email", "fractions", "hashlib",
    "http", "importlib.metadata", "importlib.resources", "logging", "multiprocessing", "pathlib",
    "random", "selectors", "shutil", "socket", "sqlite3", "ssl", "subprocess",
    "tempfile", "tomllib", "unittest", "urllib", "xml", "zipfile",
}  # fmt: skip
"""What of Python itself costs 1 to 20 ms, beyond what click brings along anyway."""

OF_CLICK = {
    "click", "ast", "collections.abc", "dataclasses", "dis", "inspect", "platform", "typing",
    "uuid",
}  # fmt: skip
"""For those who do without: 25 ms."""

OF_HOOKS = OF_CLICK - {"collections.abc", "dataclasses", "dis", "inspect", "typing"}
"""What of it the full way of a hook does without."""

PATTERNS = {"queenbee.core.glob.pattern"}
GRANTING = {
    "operator", "queenbee.core.standing",
    "queenbee.services.leases.granting", "queenbee.store.git_files.ignore_files",
}  # fmt: skip
MESSAGES = {"queenbee.services.messages", "queenbee.cli.commands.msg"}
LEASES = {"queenbee.services.leases.reservations", "queenbee.services.leases.live"}
ASSIGNMENTS = {"queenbee.services.assignments", "queenbee.cli.commands.assignments"}
ISSUES = {"queenbee.services.issues", "queenbee.core.beads", "queenbee.cli.commands.issues"}
WRITING = {
    "queenbee.services.writing.transaction", "queenbee.services.writing.secrets",
    "queenbee.store.lock", "queenbee.store.creating",
    "queenbee.store.carriers.write",
}  # fmt: skip
RARE = {
    "queenbee.cli.progress", "queenbee.checks.executing", "queenbee.checks.processes",
    "queenbee.checks.runner", "queenbee.services.care.doctor", "queenbee.services.archiving",
    "queenbee.store.memory.rotation", "queenbee.store.memory.search",
}  # fmt: skip

OF_LANDING = {"selectors", "shutil", "sqlite3", "subprocess", "tomllib"}
"""What of Python a landing takes: it runs programs, and reads the settings of commits."""

COMMANDS = {
    "version": PATTERNS
    | MESSAGES
    | LEASES
    | ASSIGNMENTS
    | ISSUES
    | (WRITING - {"queenbee.store.creating"}),
    "msg inbox": PATTERNS | LEASES | ASSIGNMENTS | ISSUES | WRITING,
    "msg inbox --json": PATTERNS | LEASES | ASSIGNMENTS | ISSUES | WRITING,
    "msg send reviewer hello": PATTERNS | LEASES | ASSIGNMENTS | ISSUES,
    "reserve src/ui/**": MESSAGES | ISSUES,
    "reserve check src/x.py": MESSAGES | ASSIGNMENTS | ISSUES | WRITING,
    "reserve list": MESSAGES | ASSIGNMENTS | ISSUES | WRITING,
    "claim qb-1": PATTERNS | MESSAGES | LEASES,
    "issue assignments": PATTERNS | MESSAGES | LEASES | WRITING,
    "issue ready": PATTERNS | MESSAGES | LEASES | WRITING | {"queenbee.cli.commands.assignments"},
    "issues": PATTERNS | MESSAGES | LEASES | WRITING | {"queenbee.cli.commands.assignments"},
    "show qb-1": WRITING,
    "next": set(),
    "status": WRITING | {"queenbee.services.work.waiting"},
    "prime": WRITING | {"queenbee.services.work.waiting"},
    "show qb-1 --json": WRITING
    | {"queenbee.cli.commands.msg", "queenbee.cli.commands.reservations"},
}
"""The hot commands, each with what of ours it has no use for."""


def needless(modules: set[str], unused: set[str]) -> set[str]:
    """Returns what was loaded in vain: modules of these names, and all that is in them."""
    return {
        each
        for each in modules
        if any(each == name or each.startswith(f"{name}.") for name in unused)
    }


@pytest.mark.some(6)
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_loads_nothing_that_it_does_not_use(small: Path, line: str) -> None:
    loaded(small, QUEEN, "issues")  # Then there is no news left to tell.
    modules = loaded(small, QUEEN, *line.split(" "))
    assert "queenbee.cli.app" in modules
    assert needless(modules, OF_OTHERS | OF_PYTHON | RARE | COMMANDS[line]) == set()


@pytest.mark.parametrize(
    "line", ["issue ready", "claim qb-1", "msg inbox", "reserve check src/x.py"]
)
def test_beads_in_the_repository_load_nothing_that_runs_them(small: Path, line: str) -> None:
    put_bead(small, ralph_bead("gt-1", "true"))
    modules = loaded(small, QUEEN, *line.split(" "))
    assert needless(modules, OF_OTHERS | OF_PYTHON | RARE) == set()
    assert ("queenbee.documents.ralph.ralph_bead" in modules) == (
        line in ("issue ready", "claim qb-1")
    )


def test_a_landing_loads_nothing_that_only_others_use(small: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(small, "worktree", "add", "-q", str(tree))
    commit_file(tree, "lands.txt", "x\n")
    modules = loaded(tree, QUEEN, "land", "--unchecked", "--as", "nobody-else")
    assert "queenbee.git.landing.moving.advancing" in modules
    unused = {
        "queenbee.git.unfinished",
        "queenbee.git.proposing.work",
        "queenbee.git.remote.syncing",
    }
    assert needless(modules, OF_OTHERS | OF_PYTHON - OF_LANDING | unused) == set()


def test_an_edit_under_guard_loads_no_command_line(small: Path) -> None:
    for path, decided, spared in (
        ("src/x.py", "queenbee.store.lock", set()),  # It reserves, and so looks for secrets.
        ("src/x.py", "queenbee.services.leases.edits", GRANTING - {"operator"}),
        ("docs/x", "queenbee.hook.refusals", GRANTING - {"operator"}),
    ):
        modules = loaded(small, HOOK, stdin=edit_event(small, path))
        assert decided in modules
        unused = OF_OTHERS | OF_PYTHON | OF_HOOKS | RARE | MESSAGES | ASSIGNMENTS | ISSUES | spared
        assert (
            needless(
                modules,
                unused
                | {"queenbee.cli", "queenbee.checks", "queenbee.documents", "queenbee.workflows"},
            )
            == set()
        )


def test_an_edit_beside_many_leases_loads_no_more_than_beside_few(small: Path) -> None:
    ends = format_ms(4_000_000_000_000)
    rows = [
        {"id": f"qr-{n}", "droid": "a", "pattern": f"lib/{n}.py", "expires_at": ends, "rev": 1}
        for n in range(1000)
    ]
    write_lines(small / ".beads" / "queen_reservations.jsonl", *rows)
    for _ in range(3):  # The leases are taken in; then the edit is reserved, and then allowed.
        modules = loaded(small, HOOK, stdin=edit_event(small, "src/x.py"))
        assert {"_sqlite3", "queenbee.store.memory.recorded"} <= modules
    assert needless(modules, OF_OTHERS | OF_PYTHON | OF_HOOKS) == set()


def test_a_further_edit_loads_no_service_and_nothing_that_is_slow_to_load(small: Path) -> None:
    for _ in range(4):  # It is reserved, and then permitted.
        modules = loaded(small, HOOK, stdin=edit_event(small, "src/x.py"))
        time.sleep(0.2)  # What was written just now might be written again without a trace.
    ours = {each for each in modules if each.startswith("queenbee.")}
    assert ours == {
        "queenbee._lazy", "queenbee.core", "queenbee.core.command_lines", "queenbee.errors",
        "queenbee.hook", "queenbee.hook.answers", "queenbee.hook.events", "queenbee.hook.main",
        "queenbee.hook.permits", "queenbee.store", "queenbee.store.droids",
        "queenbee.store.droids.liveness", "queenbee.store.memory", "queenbee.store.memory.sqlite",
        "queenbee.version",
    }  # fmt: skip
    slow = OF_CLICK - {"collections.abc"} | {"datetime", "threading"}
    assert needless(modules, OF_OTHERS | OF_PYTHON | slow) == set()


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse"])
def test_a_hook_without_news_loads_no_service(small: Path, event: str) -> None:
    asked = edit_event(small, "", hook_event_name=event, tool_name="Bash")
    assert "queenbee.services.telling.news" in loaded(small, HOOK, stdin=asked)
    modules = loaded(small, HOOK, stdin=asked)
    assert "queenbee.store.droids.told" in modules
    unused = OF_OTHERS | OF_PYTHON | OF_HOOKS | RARE | {"queenbee.services"}
    assert needless(modules, unused) == set()


@pytest.mark.parametrize("use", LIBRARY)
def test_the_library_loads_neither_click_nor_what_it_does_not_use(small: Path, use: str) -> None:
    modules = loaded(small, use)
    unused = OF_OTHERS | OF_PYTHON | (OF_CLICK - {"collections.abc"}) | RARE
    assert needless(modules, unused | {"queenbee.cli"}) == set()


def test_the_class_of_a_hive_loads_no_records_and_nothing_that_reads_them(small: Path) -> None:
    modules = loaded(small, "from queenbee import Hive")
    unused = {"_sqlite3", "enum", "importlib", "json", "re", "zlib", "queenbee.store.memory"}
    assert needless(modules, unused | OF_CLICK - {"collections.abc"}) == set()


def test_a_large_ledger_brings_the_decoder_and_no_more(small: Path) -> None:
    rows = [
        {"id": f"qm-{n}", "from": "a", "to": "ui-engineer", "body": "x" * 1000, "rev": 1}
        for n in range(200)
    ]
    write_lines(small / ".beads" / "queen_messages.jsonl", *rows)
    for _ in range(2):  # Taking it in, and then asking.
        modules = loaded(small, QUEEN, "msg", "inbox")
        assert {"_sqlite3", "queenbee.store.memory.recorded"} <= modules
    unused = OF_OTHERS | OF_PYTHON | PATTERNS | LEASES | (WRITING - {"queenbee.store.creating"})
    assert needless(modules, unused | {"queenbee.store.memory.search"}) == set()


def test_a_module_that_is_loaded_in_vain_is_noticed(small: Path) -> None:
    for name in ("pathlib", "asyncio.events", "queenbee.store.memory.search"):
        modules = loaded(small, f"import {name}; {QUEEN}", "msg", "inbox")
        assert name in needless(modules, OF_PYTHON | RARE)


def test_the_first_answer_to_a_client_of_tools_loads_no_hive(small: Path) -> None:
    modules = loaded(small, "import queenbee.mcp.server")
    assert "queenbee.mcp.wire" in modules
    unused = {"mcp", "anyio", "pydantic", "asyncio", "queenbee.services", "queenbee.store"}
    assert needless(modules, OF_OTHERS | unused) == set()
