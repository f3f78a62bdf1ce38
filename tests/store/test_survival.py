"""What QueenBee does not know survives every command that it runs."""

from __future__ import annotations

import json

import pytest
from hives import write_lines

DIGITS = "1234567890" * 4
UNKNOWN = f'"x-later":{{"deep":[{DIGITS},-{DIGITS},0.5,null]}},"é":"ü\\u2028"'
AT = '"created_at":"2024-12-14T10:00:00Z"'
LINES = {
    "messages": f'{{"id":"qm-x",{AT},"from":"api","to":"ui-engineer","body":"b",{UNKNOWN}}}',
    "assignments": f'{{"id":"qa-x",{AT},"agent":"ui-engineer","issue_id":"qb-1",'
    f'"status":"active",{UNKNOWN}}}',
    "reservations": f'{{"id":"qr-x",{AT},"expires_at":"2099-01-01T00:00:00Z","agent":'
    f'"ui-engineer","pattern":"src/**","status":"active",{UNKNOWN}}}',
}
COMMANDS = {
    "messages": [["msg", "read", "qm-x"], ["msg", "delete", "qm-x"]],
    "assignments": [
        ["complete", "qb-1"],
        ["release", "qb-1"],
        ["issue", "assign", "qb-1", "api", "--reassign"],
    ],
    "reservations": [
        ["reserve", "renew", "--all", "--ttl", "3d"],
        ["reserve", "release", "src/**"],
    ],
}


@pytest.mark.parametrize(
    ("kind", "command"), [(kind, each) for kind, all_ in COMMANDS.items() for each in all_]
)
class TestAnUpdate:
    def updated(self, beads, quick, kind, command):
        path = beads / f"queen_{kind}.jsonl"
        write_lines(path, LINES[kind])
        assert quick(*command, as_="ui-engineer").code == 0
        first, second, *_ = path.read_text(encoding="utf-8").split("\n")
        assert first == LINES[kind]
        return second

    def test_keeps_unknown_fields_digit_by_digit(self, beads, quick, kind, command):
        assert f'"x-later":{{"deep":[{DIGITS},-{DIGITS},0.5,null]}}' in self.updated(
            beads, quick, kind, command
        )

    def test_keeps_text_as_it_is(self, beads, quick, kind, command):
        assert json.loads(self.updated(beads, quick, kind, command))["é"] == "ü\u2028"

    def test_takes_the_revision_after_the_foreign_line(self, beads, quick, kind, command):
        assert json.loads(self.updated(beads, quick, kind, command))["rev"] == 2


def test_foreign_lines_are_never_encoded_again(beads, quick):
    odd = [
        '{ "id" : "qm-1" , "to":"ui-engineer", "x": 1.0e2 , "y": 0.10 }',
        '{"_migration":"v1_to_v2","at":"2024-12-14T10:00:00Z", "why":  1}',
        "not a line at all",
        '{"id":"qz-1","kind":"unknown"}\r',
    ]
    write_lines(beads / "queen_messages.jsonl", *odd)
    write_lines(beads / "queen_zeppelins.jsonl", *odd)
    before = (beads / "queen_zeppelins.jsonl").read_bytes()
    assert quick("msg", "read", "qm-1", as_="ui-engineer").code == 0
    assert quick("doctor", "--fix").code in (0, 1)
    assert (beads / "queen_messages.jsonl").read_bytes().startswith("\n".join(odd).encode())
    assert (beads / "queen_zeppelins.jsonl").read_bytes() == before


def test_lines_of_an_unknown_kind_are_brought_back_too(beads, quick, hive):
    write_lines(beads / "queen_zeppelins.jsonl", '{"id":"qz-1","rev":1}')
    assert quick("doctor", "--fix").code in (0, 1)
    (beads / "queen_zeppelins.jsonl").write_text("")
    assert hive.state("zeppelins").get("qz-1")
    assert quick("doctor", "--fix").code in (0, 1)
    assert (beads / "queen_zeppelins.jsonl").read_text() == '{"id":"qz-1","rev":1}\n'
