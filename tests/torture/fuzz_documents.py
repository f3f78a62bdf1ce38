"""Any bytes in place of an agent's event, of queen.toml, and of gate, session and plan files.

Each execution changes a well-formed document, byte by byte or value by value, and reads it as
QueenBee does: the answer is a result, or a refusal (`QueenError`). Anything else is a failure, and
so is an edit of a held file that passes because something else in the event is odd.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import re
import shutil
import sys
import time
from collections import Counter
from contextlib import redirect_stderr, suppress

from agent_inputs import FIXTURES, SHAPES
from entry_points import run_hook

from queenbee.documents.gates.gate import (
    add_results,
    begin_attempt,
    end_attempt,
    history,
    new_gate,
    validate_gate,
)
from queenbee.documents.gates.gate_run import gate_checks
from queenbee.documents.gates.judgement import attempt_of, counters, judge, latest_results
from queenbee.documents.json_documents import format_json, parse_json
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.plan_graph import render_plan
from queenbee.documents.plans.plan_import import import_plan
from queenbee.documents.plans.rows import PlanSetting
from queenbee.documents.plans.source_text import annotate_plan
from queenbee.documents.sessions.folder import File, SessionFolder
from queenbee.documents.sessions.session import read_session, session_findings
from queenbee.documents.sessions.session_import import import_session
from queenbee.documents.sessions.skeleton import session_skeleton
from queenbee.documents.sessions.task_graph import render_pipeline
from queenbee.errors import QueenError
from queenbee.hook import events
from queenbee.store import settings
from queenbee.store.codec import encode
from tests.torture.fuzz import TOKENS, with_changes
from tests.torture.places import make_repository, open_hive, require

NOW_MS = 1_734_172_200_000
HELD = "held/file.py"
FRESH_AFTER = 300
"""Events that a hive answers before it is replaced: each may leave a lease."""
INTERNAL = re.compile(
    r"\b(?!JSONDecode|UnicodeDecode|Value|Recursion)[A-Z]\w+(?:Error|Exception): "
)
ODD = (
    None, True, False, 0, -1, 10**30, 1.5, "", " ", "x" * 3_000, "\0", "\ud83d", "../../etc", "/",
    "a\nb", "\u202e", "9999-12-31T23:59:59Z", "2h", [], {}, [[]], [None], {"": {}}, ["a", 1],
    -(2**63),
)  # fmt: skip

TOML = b"""# settings
state = "git"
droids = "auto"
issues = 'strict'
ttl = "2h"
quiet_after = "15m"
durability = "buffered"
lock_timeout = "10s"
rotate_at = "4MiB"
archive_after = "1d"
gate_results = 10
close_on_complete = true
extra.table = [1, 2.5, 2024-12-14T10:30:00Z, "x"]
[more]
"a b" = { c = "\\u00e9" }
"""
RULES = [
    {
        "rule_id": "tests",
        "rule_type": "test_pass",
        "rule_name": "tests",
        "rule_config": {"test_command": "true", "env": {"A": "b"}, "timeout": 5},
        "severity": "error",
        "enabled": True,
    },
    {
        "rule_id": "exists",
        "rule_type": "file_exists",
        "rule_name": "exists",
        "rule_config": {"file_path": "README.md"},
        "severity": "warning",
        "enabled": True,
    },
    {
        "rule_id": "match",
        "rule_type": "content_match",
        "rule_name": "match",
        "rule_config": {"file_path": "README.md", "patterns": ["a+", "b|c"]},
        "severity": "warning",
        "enabled": True,
    },
]
PLAN = """---
title: A plan
---
# Plan: a shop

**Source branch**: main

## Phase 1: Basics

### Sprint 1.1: Cart
<!-- bead: shop-1 -->
- **Team**: web
- **Branch**: feature/cart
- **Priority**: P1
- **Agents**:
  - dev: agents/dev.md
  - qa: agents/qa.md
- **Depends on**: none

Tasks:
- [ ] Build it (src/cart.py)

### Sprint 1.2a: Tax
**Depends on**: 1.1
#### Acceptance
```
### Sprint 9.9: not one
```
| a | b |
|---|---|
| 1 | 2 |

## Phase 2: More

### Sprint 2.1: Ship
**Dependencies**: 1.1, 1.2a
"""
PIECES = (
    "### Sprint 1.1: Again\n", "## Phase 3:\n", "**Team**: a; rm -rf /\n",
    "- **Depends on**: 2.1\n",
    "<!-- bead: -->\n", "<!--", "-->", "```\n", "~~~\n", "| | |\n", "---\n", "\t", "    ", "\r\n",
    "\u2028", "**" * 200, "#" * 7, "1." * 300, "[x](", "> ", "- [x] ", "\x0b", "\ufeff", "`" * 99,
)  # fmt: skip


class Worlds:
    """The hives that answer events, one after another."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.number = 0
        self.answered = FRESH_AFTER
        self.tree = ""

    def next(self) -> str:
        """Returns a tree in which somebody holds a file."""
        self.answered += 1
        if self.answered > FRESH_AFTER:
            if self.tree:
                shutil.rmtree(self.tree)
            self.number, self.answered = self.number + 1, 0
            self.tree = make_repository(os.path.join(self.folder, f"tree-{self.number}"))
            open_hive(self.tree, "reviewer").reservations.reserve([HELD])
        return self.tree


def fuzz_event(rng: random.Random, worlds: Worlds) -> None:
    """Reads a changed event, and answers one in eight."""
    name = rng.choice(EVENTS)
    tree = worlds.next() if rng.random() < 0.125 else "/nonexistent"
    text = name.replace("@TREE@", tree)
    data = mutated_document(rng, json.loads(text))
    with suppress(ValueError, RecursionError):  # Not JSON: `respond` says so, and nothing else.
        events.read_event(data, tree)
    if tree != "/nonexistent":
        _answer(data, tree)
        require_held(rng, tree)


def require_held(rng: random.Random, tree: str) -> None:
    """Lets something else in an event be odd; the edit of a held file is still refused."""
    text = rng.choice(EDITS).replace("@TREE@", tree).replace("src/app.py", HELD)
    event = json.loads(text)
    for key in ("permission_mode", "transcript_path", "session_id", "agent_id", "more"):
        if rng.random() < 0.5:
            event[key] = rng.choice(ODD)
    arguments = event.get("tool_input")
    if isinstance(arguments, dict) and "old_string" in arguments:
        arguments["old_string"] = rng.choice(ODD)
    answer = _answer(json.dumps(event).encode(), tree)
    require("is reserved by reviewer" in json.dumps(answer), f"a held file passes: {event}")


def _answer(data: bytes, tree: str):
    """Answers an event. An error of QueenBee's own, which `respond` only reports, is a failure."""
    with redirect_stderr(io.StringIO()) as told:
        answer = run_hook(data, {"QUEEN_DURABILITY": "buffered"}, tree)
    errors = [line for line in told.getvalue().splitlines() if INTERNAL.search(line)]
    require(not errors, f"{errors}: {data!r}")
    if isinstance(answer, tuple):  # To an event about a worktree, which is read as text.
        text, status = answer
        require(isinstance(text, str) and status in (0, 1), "an answer of no kind")
    else:
        require(answer is None or json.dumps(answer), "an answer that is not JSON")
    return answer


def fuzz_settings(rng: random.Random, worlds: Worlds) -> None:
    """Reads a changed queen.toml."""
    beads = os.path.join(worlds.folder, "beads")
    os.makedirs(beads, exist_ok=True)
    with open(os.path.join(beads, "queen.toml"), "wb") as file:
        file.write(mutated_bytes(rng, TOML))
    try:
        said = settings.load(beads, {})
    except QueenError:
        return
    require(1 <= said.ttl_s <= 30 * 86_400, f"a TTL of {said.ttl_s} s")
    require(said.state in ("git", "beads"), f"state {said.state}")


def fuzz_gate(rng: random.Random, worlds: Worlds) -> None:
    """Reads a changed gate; one that is valid is judged, and runs through an attempt."""
    del worlds
    document = parse_json(mutated_document(rng, GATE), "gate.json")
    errors = [each for each in validate_gate(document) if each.severity == "error"]
    if errors:
        return
    judge(document)
    counters(document)
    latest_results(document)
    history(document)
    gate_checks(document)
    begun = begin_attempt(document, NOW_MS, again=True)
    attempt = attempt_of(begun)
    format_json(end_attempt(add_results(begun, [], attempt=attempt, now_ms=NOW_MS), NOW_MS))


def fuzz_session(rng: random.Random, worlds: Worlds) -> None:
    """Reads a changed session; its tasks become rows if that is possible."""
    del worlds
    files = dict(SESSION_FILES)
    for name in rng.sample(sorted(files), rng.randrange(1, len(files) + 1)):
        data = files[name]
        files[name] = (
            mutated_document(rng, json.loads(data))
            if name.endswith(".json") and rng.random() < 0.6
            else mutated_bytes(rng, data)
        )
    roles = {
        name.partition("/")[2].removesuffix(".md"): File(data)
        for name, data in files.items()
        if name.startswith("role-specs/")
    }
    folder = SessionFolder(
        "/session",
        team_session=File(files.get("team-session.json")),
        task_analysis=File(files.get("task-analysis.json")),
        shared_memory=File(files.get("shared-memory.json")),
        role_specs=roles or None,
    )
    for finding in session_findings(folder):
        str(finding)
    session = read_session(folder)
    render_pipeline(session.pipeline)
    found = import_session(session, [], prefix="shop", actor="ui", now_ms=NOW_MS)
    for change in found.changes:
        encode(change.row)


def fuzz_plan(rng: random.Random, worlds: Worlds) -> None:
    """Reads a changed plan, draws it, annotates it, and imports it if that is possible."""
    del worlds
    text = PLAN
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        what = rng.random()
        if what < 0.4:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif what < 0.6:
            text = text[:at] + text[at + rng.randrange(1, 30) :]
        elif what < 0.8:
            text = text[:at] + text[at : at + rng.randrange(1, 200)] + text[at:]
        else:
            lines = text.split("\n")
            rng.shuffle(lines)
            text = "\n".join(lines)
    plan = parse_plan(text)
    for finding in check_plan(plan):
        str(finding)
    annotated = annotate_plan(text, {sprint.number: "shop-9" for sprint in plan.sprints})
    numbers = [sprint.number for sprint in parse_plan(annotated).sprints]
    require(numbers == [each.number for each in plan.sprints], "annotating changed the sprints")
    if all(finding.severity != "error" for finding in check_plan(plan)):
        for form in ("text", "mermaid", "dot"):
            render_plan(plan, form)
    setting = PlanSetting("plan.md", "/shop", "shop", "shop", "ui")
    for change in import_plan(plan, [], setting=setting, now_ms=NOW_MS).changes:
        encode(change.row)


def mutated_document(rng: random.Random, document: object) -> bytes:
    """Returns a JSON document with some of its values replaced, removed or doubled."""
    document = copy.deepcopy(document)
    for _ in range(rng.randrange(1, 5)):
        where = _somewhere(rng, document)
        if where is None:
            break
        holder, key = where
        what = rng.random()
        if what < 0.7:
            holder[key] = copy.deepcopy(rng.choice(ODD))
        elif what < 0.85:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[f"{key}{rng.choice(('', 'x', ' '))}"] = copy.deepcopy(rng.choice(ODD))
    data = json.dumps(document).encode()
    return mutated_bytes(rng, data) if rng.random() < 0.2 else data


def _somewhere(rng: random.Random, document: object):
    places = []

    def walk(value: object) -> None:
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    if isinstance(document, dict | list):
        walk(document)
    return rng.choice(places) if places else None


def mutated_bytes(rng: random.Random, seed: bytes) -> bytes:
    """Returns bytes after a few random changes."""
    return with_changes(rng, bytearray(seed), TOKENS)


EVENTS = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.rglob("*.json"))] + [
    json.dumps(json.loads(path.read_text(encoding="utf-8"))["input"])
    for path in sorted(SHAPES.rglob("*.json"))
]
EDITS = [
    json.dumps(shape["input"])
    for shape in (json.loads(path.read_text("utf-8")) for path in sorted(SHAPES.rglob("*.json")))
    if shape["reads"]["kind"] == events.BEFORE_EDIT
]
GATE = new_gate(
    workflow_id="shop", phase_id="phase-1", phase_name="Basics", now_ms=NOW_MS, rules=RULES
)
SESSION_FILES = session_skeleton("Build a shop", now_ms=NOW_MS).files
TARGETS = (fuzz_event, fuzz_settings, fuzz_gate, fuzz_session, fuzz_plan)


def run(executions: int, folder: str, *, seed: int = 1) -> dict[str, object]:
    """Executes so often; returns the figures. Raises at the first failure, which it prints."""
    begun = time.monotonic()
    worlds, counts = Worlds(folder), Counter[str]()
    slowest = (0.0, "")
    for number in range(executions):
        target = TARGETS[number % len(TARGETS)]
        at = time.monotonic()
        try:
            target(random.Random(f"{seed} {number}"), worlds)
        except QueenError:
            counts["refused"] += 1
        except BaseException:
            print(f"execution {number} (seed {seed}): {target.__name__}", file=sys.stderr)
            raise
        slowest = max(slowest, (round(time.monotonic() - at, 2), f"{target.__name__} {number}"))
        counts[target.__name__] += 1
    return {
        "executions": executions,
        **counts,
        "crashes": 0,
        "slowest": slowest,
        "seconds": round(time.monotonic() - begun, 1),
    }
