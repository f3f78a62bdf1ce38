"""Parts of ids: which of them name a record or an issue, and the shortest that a list shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, write_lines

from queenbee import Hive
from queenbee.errors import Ambiguous, NotFound

pytestmark = pytest.mark.both_engines(thorough=True)

LEDGER = "queen_messages.jsonl"
A = "qm-01KE9VA0000000000000005W6X"
B = "qm-01KE9VA000000000000000AW6X"
C = "qm-01KE9VB0000000MIDDLE00ZZZZ"


def put(beads: Path, *ids: str) -> None:
    rows = [{"id": each, "from": "api", "to": "ui-engineer", "body": "x", "rev": 1} for each in ids]
    write_lines(beads / LEDGER, *rows)


def test_a_part_of_several_ids_is_refused_with_the_candidates(hive: Hive, beads: Path) -> None:
    put(beads, A, B, C)
    with pytest.raises(Ambiguous, match="a part of several ids") as refusal:
        hive.messages.get("01KE9VA")
    assert refusal.value.candidates == [A, B]


def test_a_whole_id_wins_over_the_ids_that_contain_it(hive: Hive, beads: Path) -> None:
    put(beads, "note", "qm-note", "qm-note-2")
    assert hive.messages.get("note").id == "note"


def test_a_row_whose_id_is_a_part_that_a_list_has_shown_takes_nothing_over(
    hive: Hive, beads: Path
) -> None:
    put(beads, A, C, "5W6X")
    with pytest.raises(Ambiguous) as refusal:
        hive.messages.get("5W6X")
    assert refusal.value.candidates == ["5W6X", A]
    assert hive.messages.get(A[-6:]).id == A


def test_every_message_command_takes_a_part(quick: QuickQueen) -> None:
    asked = quick("msg", "send", "ui", "Ready?", "--ack", "--json", as_="api").json[0]["id"]
    end = asked[-4:]
    assert quick("msg", "reply", end, "yes", "--json", as_="ui").json["reply_to"] == asked
    assert quick("msg", "read", end, "--json", as_="ui").json[0]["id"] == asked
    assert quick("msg", "ack", end, "--json", as_="ui").json[0]["id"] == asked
    assert quick("msg", "thread", end, "--json").json[0]["id"] == asked
    assert len(quick("msg", "inbox", "--after", end, "--json", as_="api").json) == 1
    answer = quick("msg", "send", "ui", "so", "--reply-to", end, "--json", as_="api").json[0]
    assert answer["reply_to"] == asked
    assert [each["line"]["id"] for each in quick("hive", "history", end, "--json").json] == [
        asked
    ] * 3
    assert quick("msg", "delete", end, "--json", as_="ui").json["id"] == asked


def test_a_message_read_by_two_of_its_parts_is_read_once(hive: Hive, reviewer: Hive) -> None:
    sent = hive.messages.send("reviewer", "hello")[0]
    assert len(reviewer.messages.mark_read([sent.id, sent.id[-4:], sent.id[-6:]])) == 1
    assert len(hive.history(sent.id)) == 2


def test_leases_are_renewed_and_released_by_a_part_of_their_id(quick: QuickQueen) -> None:
    [lease] = quick("reserve", "src/a", "--json", as_="ui").json
    end = lease["id"][-4:]
    assert end in quick("reserve", "list").out
    assert lease["id"] not in quick("reserve", "list").out
    assert quick("reserve", "renew", "--id", end, "--json", as_="ui").json[0]["id"] == lease["id"]
    assert quick("reserve", "release", "--id", end, "--json", as_="ui").json[0]["id"] == lease["id"]


def test_what_a_list_shows_is_an_id(quick: QuickQueen) -> None:
    for number in range(30):
        quick("msg", "send", "ui", f"number {number}", as_="api")
    shown = quick("msg", "inbox", "--limit", "30", as_="ui").out.splitlines()[1:]
    parts = [line.split()[-1] for line in shown]
    assert all(len(part) < 8 for part in parts)
    read = quick("msg", "read", *parts, "--json", as_="ui").json
    assert [each["subject"] for each in read] == [f"number {n}" for n in reversed(range(30))]


def test_ids_that_end_alike_are_shown_as_long_as_it_takes(hive: Hive, beads: Path) -> None:
    put(beads, A, B, C, "qm-1", "note")
    shown = hive.short_ids("messages", [A, B, C, "qm-1", "note"])
    assert shown == {A: "5W6X", B: "AW6X", C: "ZZZZ", "qm-1": "qm-1", "note": "note"}
    put(beads, A, "qm-01KE9VA0000000000000015W6X", "qm-02KE9VA0000000000000005W6X")
    fresh = Hive.open(hive.layout.tree, droid="ui-engineer")
    assert fresh.short_ids("messages", [A]) == {A: A}


# Issues


def tracker(beads: Path, *ids: str) -> None:
    rows = [{"id": each, "title": "x", "status": "open"} for each in ids]
    write_lines(beads / "issues.jsonl", *rows)


def test_commands_about_issues_take_a_part(quick: QuickQueen, beads: Path) -> None:
    tracker(beads, "qb-42", "qb-43")
    assert quick("claim", "--new", "42", "--json", as_="ui").json[0]["issue_id"] == "qb-42"
    assert quick("reserve", "a", "--issue", "42", "--json", as_="ui").json[0]["issue_id"] == "qb-42"
    sent = quick("msg", "send", "api", "x", "--issue", "42", "--json", as_="ui").json[0]
    assert sent["issue_id"] == "qb-42"
    assert quick("msg", "inbox", "--issue", "42", "--json", as_="api").json == [sent]
    assert quick("show", "42", "--json").json["issue_id"] == "qb-42"
    assert quick("issue", "assignments", "--issue", "42", "--json").json[0]["issue_id"] == "qb-42"
    assert quick("issue", "assign", "43", "api", "--json", as_="ui").json["issue_id"] == "qb-43"
    assert quick("release", "43", "--json", as_="api").json["issue_id"] == "qb-43"
    assert quick("complete", "42", "--json", as_="ui").json["issue_id"] == "qb-42"
    refused = quick("claim", "--new", "qb-4", as_="ui")
    assert refused.code == 4


def test_where_any_issue_may_be_claimed_a_part_claims_something_new(quick: QuickQueen) -> None:
    quick("claim", "--new", "auth-tokens", as_="ui")
    assert quick("claim", "--new", "auth", "--json", as_="api").json[0]["issue_id"] == "auth"
    assert quick("release", "tokens", "--json", as_="ui").json["issue_id"] == "auth-tokens"


def test_an_issue_that_only_records_know_is_itself_and_not_a_part_of_another(
    quick: QuickQueen, beads: Path
) -> None:
    quick("claim", "--new", "login", as_="ui")
    tracker(beads, "gt-login-001")
    assert quick("show", "login", "--json").json["issue_id"] == "login"


def test_nothing_is_found_by_what_is_no_part(hive: Hive) -> None:
    with pytest.raises(NotFound, match="there is no message 'W6XY'"):
        hive.messages.get("W6XY")


ADDRESS = "https://github.com/me/shop/issues/5"


def imported(beads: Path, **refs: str) -> None:
    rows = [{"id": f"qb-{key}", "title": key, "external_ref": ref} for key, ref in refs.items()]
    gone = {"id": "qb-gone", "title": "x", "status": "tombstone", "external_ref": f"{ADDRESS}?"}
    write_lines(beads / "issues.jsonl", *rows, gone)


@pytest.mark.parametrize("text", ["5", "#5", ADDRESS])
def test_an_imported_issue_is_found_by_its_number_and_its_address(
    hive: Hive, beads: Path, text: str
) -> None:
    imported(beads, login=ADDRESS, other=ADDRESS.replace("/5", "/15"), key="linear:ENG-7")
    assert hive.issue_id(text) == "qb-login"
    assert hive.issue_id("ENG-7") == hive.issue_id("7") == "qb-key"
    assert hive.issue_id("15") == "qb-other"
    for nobodys in ("1", "#", "", "NG-7", f"{ADDRESS}?"):
        assert hive.issue_id(nobodys) == nobodys


def test_a_number_of_several_imported_issues_is_refused_with_the_candidates(
    hive: Hive, beads: Path
) -> None:
    imported(beads, login=ADDRESS, other="gitlab:5")
    with pytest.raises(Ambiguous, match="'5' names several issues: qb-login, qb-other") as refusal:
        hive.issue_id("5")
    assert refusal.value.candidates == ["qb-login", "qb-other"]
    assert hive.issue_id(ADDRESS) == "qb-login"


def test_an_id_wins_over_the_number_of_an_imported_issue(hive: Hive, beads: Path) -> None:
    imported(beads, login=ADDRESS, **{"5": "gitlab:9"})
    assert hive.issue_id("5") == "qb-5"


def test_every_issue_command_takes_the_number_of_an_imported_issue(
    quick: QuickQueen, beads: Path
) -> None:
    imported(beads, login=ADDRESS, other="gitlab:9")
    assert quick("issue", "edit", "5", "--label", "web", "--json").json[0]["id"] == "qb-login"
    assert quick("issue", "dep", "9", "#5", "--json").json[0]["id"] == "qb-other"
    assert quick("issue", "close", "5", "--json").json[0]["status"] == "closed"
    assert quick("issue", "reopen", ADDRESS, "--json").json[0]["status"] == "open"
    assert quick("claim", "5", "--json", as_="api").json[0]["issue_id"] == "qb-login"
    shown = quick("show", "#5").out
    assert f"\n{ADDRESS}\nlabels: web\n" in shown
    assert quick("issue", "delete", "9", "--json").json[0]["id"] == "qb-other"
