"""What QueenBee writes is what `queen schema` says, and what that says is what readers rely on."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contract
import pytest
import written_documents
from hives import Queen, QuickQueen, write_lines
from jsonschema import Draft202012Validator

import queenbee
from queenbee import QueenError
from queenbee.errors import NotFound
from queenbee.library.schemas import schema, schema_names
from queenbee.version import FORMAT

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text("utf-8")
TABLES = {
    "queen_messages.jsonl": "**Messages**",
    "queen_assignments.jsonl": "**Assignments**",
    "queen_reservations.jsonl": "**Reservations**",
    "queen_verifications.jsonl": "**Verifications**",
}


@pytest.mark.parametrize("name", [None, *schema_names()])
def test_each_schema_is_one_and_whole(name: str | None) -> None:
    found = schema(name)
    Draft202012Validator.check_schema(found)
    refs = {*re.findall(r'"#/\$defs/(\w+)"', json.dumps(found))}
    assert refs <= {*found.get("$defs", {})}
    assert f":format:{FORMAT}" in found["$id"]


def test_a_schema_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(NotFound) as refused:
        schema("msg sned")
    assert refused.value.hint == "queen schema 'msg send'"


@pytest.mark.parametrize("ledger", TABLES)
def test_the_schema_of_a_ledger_has_the_fields_of_the_page(ledger: str) -> None:
    rows = re.findall(r"^\| (.+?) \|", PAGE.split(TABLES[ledger])[1].split("\n\n")[1], re.M)[2:]
    fields = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    line = schema(ledger)["anyOf"][0]
    assert len(fields) > 5
    assert fields - {*line["properties"]} == set()


def test_each_refusal_is_in_the_schema_with_what_it_carries() -> None:
    for module in pkgutil.walk_packages(queenbee.__path__, "queenbee."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    said = schema("error")["properties"]["error"]["properties"]
    classes: list[type[QueenError]] = [QueenError]
    for each in classes:
        classes += [
            kind for kind in each.__subclasses__() if kind.__module__.startswith("queenbee")
        ]
    assert {*said["code"]["enum"]} == {each.code for each in classes}
    carried = {name for each in classes for name in vars(each).get("__annotations__", {})}
    assert carried - {*said} - {"details", "code"} == set()


@pytest.mark.slow
def test_what_is_written_is_what_the_schemas_say(repo: Path, queen: Queen) -> None:
    quick = QuickQueen(repo)
    rows = [{"id": f"qb-{n}", "title": f"Issue {n}", "status": "open"} for n in (1, 2, 3)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)

    def run(droid: str, line: str) -> Any:
        words = [*line.split(" "), "--json"]
        ran = quick(*words, as_=droid)
        written_documents.check(words, ran.out, ran.err, records=True)
        return ran.json if ran.out and words[0] != "log" else ran.err

    run("ui", "claim qb-1")
    run("api", "claim qb-1")
    run("ui", "reserve src/** docs/a.md --issue qb-1 --reason tax")
    run("api", "reserve src/x")
    run("api", "reserve lib/** --read")
    run("api", "reserve check src/x lib/y")
    (sent,) = run("ui", "msg send api hello --issue qb-1 --ack --importance high")
    run("ui", "msg send @all noon")
    run("api", f"msg ack {sent['id']}")
    run("api", f"msg reply {sent['id']} fine")
    run("api", "msg inbox")
    run("api", "next")
    run("ui", "note tests")
    run("ui", "issue new Search --id qb-9 --priority 0")
    run("ui", "issue edit qb-9 --title Find")
    run("ui", "show qb-1")
    run("ui", "complete qb-1 --reason done")
    run("ui", "reserve release --all")
    run("ui", "status")
    run("ui", "log --limit 50")
    run("ui", f"msg delete {sent['id']}")
    ledgers = sorted((repo / ".beads").glob("queen_*.jsonl"))
    assert [each.name for each in ledgers] == [
        f"queen_{kind}.jsonl" for kind in ("assignments", "issues", "messages", "reservations")
    ]
    for ledger in ledgers:
        for line in ledger.read_bytes().splitlines():
            written_documents.check_line(line, ledger.name)


def test_a_document_that_is_something_else_is_found() -> None:
    written_documents.check(["version", "--json"], '{"version":"1","format":1}', "")
    for wrong in (
        '{"version":"1"}',
        '{"version":1,"format":1}',
        '{"version":"1","format":1,"x":2}',
    ):
        with pytest.raises(AssertionError, match="queen schema version"):
            written_documents.check(["version", "--json"], wrong, "")
    with pytest.raises(AssertionError, match="queen schema error"):
        written_documents.check(["version", "--json"], "", '{"error":{"code":"unheard_of"}}')


FRAGMENTS = Path(__file__).parents[2] / "changelog.d"


def test_what_programs_rely_on_is_there_or_the_changelog_names_it() -> None:
    """If it fails: deprecate it first, or name what is printed, in backquotes, in a fragment."""
    told = "".join(each.read_text("utf-8") for each in FRAGMENTS.glob("*.md"))
    released = json.loads(contract.RELEASED.read_text("utf-8"))
    found = contract.breaks(released, contract.contract())
    assert [each for each in found if f"`{each}`" not in told] == []


def test_a_break_is_found_wherever_it_is() -> None:
    now = contract.contract()

    def broken(change: Callable[[dict[str, Any]], object]) -> list[str]:
        other = json.loads(json.dumps(now))
        change(other)
        return [*contract.breaks(now, other)]

    calls, schemas = "calls", "schemas"
    claim = "queenbee.services.Assignments.claim"
    assert broken(lambda it: it[calls].pop(claim)) == [claim]
    assert broken(lambda it: it[calls][claim].remove("=anyway=")) == [f"{claim}(anyway)"]
    assert broken(lambda it: it[calls][claim].insert(0, "first")) == [
        f"{claim}(issue_id)", f"{claim}(first)",
    ]  # fmt: skip
    assert broken(lambda it: it[calls][claim].append("=last=")) == []
    version = "queen schema version"
    assert broken(lambda it: it[schemas].pop("version")) == [version]
    assert broken(lambda it: it[schemas]["version"]["properties"].pop("format")) == [
        f"{version}.format"
    ]
    assert broken(lambda it: it[schemas]["version"]["required"].remove("format")) == [
        f"{version}: required"
    ]
    wider = {"type": ["integer", "null"]}
    assert broken(lambda it: it[schemas]["version"]["properties"].update(format=wider)) == [
        f"{version}.format: type"
    ]
    assert broken(lambda it: it[schemas]["version"]["properties"].update(more=wider)) == []
