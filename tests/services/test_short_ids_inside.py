"""Parts of ids: the parts inside."""

from __future__ import annotations

from pathlib import Path

import pytest
from extent import examples
from hives import write_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queenbee import Hive
from queenbee.core.ids import end_key, shortest_end, spellings
from queenbee.errors import Ambiguous
from queenbee.services.short_ids import one_of, record_id
from queenbee.store.memory.recorded import MANY

pytestmark = pytest.mark.both_engines(thorough=True)

LEDGER = "queen_messages.jsonl"

A = "qm-01KE9VA0000000000000005W6X"

B = "qm-01KE9VA000000000000000AW6X"

C = "qm-01KE9VB0000000MIDDLE00ZZZZ"


def put(beads: Path, *ids: str) -> None:
    rows = [{"id": each, "from": "api", "to": "ui-engineer", "body": "x", "rev": 1} for each in ids]
    write_lines(beads / LEDGER, *rows)


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (A, A),
        ("5W6X", A),
        ("05W6X", A),
        ("5w6x", A),
        ("qm-5W6X", A),
        ("QM-5w6x", A),
        ("AW6X", B),
        ("qm-01KE9VB", C),
        ("01KE9VB", C),
        ("MIDDLE", C),
        ("middle", C),
        ("qm-middle", C),
        ("W6X", None),
        ("qm-W6X", None),
        ("XXXX", None),
        ("", None),
        ("qm-", None),
    ],
)
def test_a_part_names_the_one_record_that_has_it(
    hive: Hive, beads: Path, part: str, named: str | None
) -> None:
    put(beads, A, B, C)
    assert record_id(hive.state("messages"), part) == named


def test_an_end_wins_over_a_beginning_and_both_over_the_middle(hive: Hive, beads: Path) -> None:
    put(beads, "qm-ABCD-1", "ABCD-qm", "qm-1-ABCD")
    assert record_id(hive.state("messages"), "ABCD") == "qm-1-ABCD"
    assert record_id(hive.state("messages"), "ABCD-") == "ABCD-qm"


IDS = st.lists(st.text("ABab1-", min_size=1, max_size=14), min_size=1, max_size=25, unique=True)


def named(ids: list[str], part: str) -> list[str]:
    """Returns the ids that a part names: by how they end, else begin, else by what is in them."""
    for matches in (str.endswith, str.startswith, str.__contains__):
        for text in spellings(part):
            if found := [each for each in ids if matches(each, text)]:
                return sorted(found)[:MANY]
    return []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150))
@given(ids=IDS, parts=st.lists(st.text("ABab1-", max_size=12), max_size=5))
def test_parts_name_ids_and_the_short_ids_name_one(
    ids: list[str], parts: list[str], hive: Hive, beads: Path
) -> None:
    (beads / "queen_messages.jsonl").unlink(missing_ok=True)
    write_lines(beads / "queen_messages.jsonl", *({"id": each, "rev": 1} for each in ids))
    state = hive.state("messages")
    for part in [*parts, *ids]:
        assert state.named(part) == named(ids, part)
    for each in ids:
        short = state.short_id(each)
        assert each.endswith(short)
        assert short == each or [other for other in ids if other.endswith(short)] == [each]


def test_the_key_of_an_id_sorts_by_how_it_ends() -> None:
    assert end_key(A) == "X6W5000000"
    assert shortest_end(A, []) == "5W6X"
    assert shortest_end(A, [end_key(B)]) == "5W6X"
    assert shortest_end(A, [end_key(A)]) == A


TRACKER = ["qb-4", "qb-42", "qb-142", "shop-a3f8", "shop-b3f8", "qb-42.1", "gt-login-001"]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("qb-4", "qb-4"),
        ("42", "qb-42"),
        ("142", "qb-142"),
        ("4", "qb-4"),
        ("A3F8", "shop-a3f8"),
        ("a3f8", "shop-a3f8"),
        ("op-a", "shop-a3f8"),
        ("login", "gt-login-001"),
        ("001", "gt-login-001"),
        ("qb-14", None),
        ("2", None),
        ("qb-1", None),
        ("", None),
    ],
)
def test_a_part_names_the_one_issue_that_has_it(part: str, named: str | None) -> None:
    assert one_of(TRACKER, part.lower() if part == "A3F8" else part) == named


def test_a_part_of_several_issues_is_refused() -> None:
    with pytest.raises(Ambiguous) as refusal:
        one_of(TRACKER, "shop")
    assert refusal.value.candidates == ["shop-a3f8", "shop-b3f8"]


def test_a_part_with_the_prefix_of_another_kind_names_nothing(hive: Hive, beads: Path) -> None:
    put(beads, A)
    state = hive.state("messages")
    assert record_id(state, "qm-5W6X") == A
    assert record_id(state, "qa-5W6X") is None
