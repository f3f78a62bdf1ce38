"""Reservations: what is granted, to whom, and what a refusal says."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, environment, records, snapshot, write_settings

from queenbee import Hive
from queenbee.errors import BadPattern, Held, InvalidInput, NoActor

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]
DAY_S = 86_400


def ledger(beads: Path) -> Path:
    return beads / "queen_reservations.jsonl"


def patterns(hive: Hive) -> list[str]:
    return [lease.pattern for lease in hive.reservations.find()]


# Granting


def test_a_lease_is_one_line_with_the_fields_of_the_records_document(
    hive: Hive, beads: Path
) -> None:
    [lease] = hive.reservations.reserve(["src/ui/**"], issue_id="qb-42", reason="Button")
    assert records(ledger(beads)) == [
        {
            "id": lease.id,
            "created_at": "2024-12-14T10:30:00.000Z",
            "expires_at": "2024-12-14T12:30:00.000Z",
            "pattern": "src/ui/**",
            "droid": "ui-engineer",
            "issue_id": "qb-42",
            "status": "active",
            "exclusive": True,
            "reason": "Button",
            "branch": "main",
            "rev": 1,
        }
    ]


def test_the_default_time_to_live_is_a_setting_of_the_hive(open_as: Opener, beads: Path) -> None:
    write_settings(beads, 'ttl = "15m"\n')
    [lease] = open_as("ui-engineer").reservations.reserve(["a"])
    assert lease.expires_at == "2024-12-14T10:45:00.000Z"


@pytest.mark.parametrize("ttl_s", [1, 30 * DAY_S])
def test_the_shortest_and_the_longest_time_to_live_are_granted(hive: Hive, ttl_s: int) -> None:
    [lease] = hive.reservations.reserve(["a"], ttl_s=ttl_s)
    assert lease.expires_ms - lease.created_ms == ttl_s * 1000


@pytest.mark.parametrize("ttl_s", [0, -1, 30 * DAY_S + 1])
def test_a_time_to_live_out_of_bounds_is_refused(hive: Hive, beads: Path, ttl_s: int) -> None:
    for attempt in (
        lambda: hive.reservations.reserve(["a"], ttl_s=ttl_s),
        lambda: hive.reservations.renew(everything=True, ttl_s=ttl_s),
    ):
        with pytest.raises(InvalidInput, match=f"cannot last {ttl_s} seconds") as refusal:
            attempt()
        assert "1s to 30d" in str(refusal.value.hint)
    assert snapshot(beads) == {}


def test_leases_come_back_in_the_order_asked_each_pattern_once(hive: Hive) -> None:
    leases = hive.reservations.reserve(["b/**", "a/**", "./b/**", "b/"])
    assert [lease.pattern for lease in leases] == ["b/**", "a/**"]


def test_no_pattern_at_all_is_refused(hive: Hive, beads: Path) -> None:
    with pytest.raises(InvalidInput, match="no pattern given"):
        hive.reservations.reserve([])
    assert snapshot(beads) == {}


def test_nobody_reserves_anonymously(repo: Path, beads: Path) -> None:
    with pytest.raises(NoActor):
        Hive.open(repo, env=environment()).reservations.reserve(["a"])
    assert snapshot(beads) == {}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "empty"),
        ("!src/**", "!"),
        ("../outside", "out of the repository"),
        ("src/../../x", "out of the repository"),
        ("src/[", "never closed"),
        ("src/{a,b", "never closed"),
        ("a\\", "not usable"),
        ("x" * 1025, "1,024"),
        ("/etc/passwd", "outside the repository"),
        ("a\0b", "not usable"),
    ],
)
def test_a_pattern_that_is_not_usable_is_refused_with_the_reason(
    hive: Hive, beads: Path, pattern: str, said: str
) -> None:
    with pytest.raises(BadPattern) as refusal:
        hive.reservations.reserve(["fine.py", pattern])
    assert said in refusal.value.message
    assert pattern.startswith(str(refusal.value.pattern).removesuffix("…"))
    assert snapshot(beads) == {}


def test_an_issue_id_that_no_tracker_prints_is_refused(hive: Hive, beads: Path) -> None:
    with pytest.raises(InvalidInput, match="'two words' is not an issue id"):
        hive.reservations.reserve(["a"], issue_id="two words")
    assert snapshot(beads) == {}


# Readers and writers


@pytest.mark.parametrize(
    ("held", "asked", "granted"),
    [(True, True, False), (True, False, False), (False, True, False), (False, False, True)],
    ids=["alone-alone", "alone-shared", "shared-alone", "shared-shared"],
)
def test_two_droids_share_a_path_only_where_both_announce_it_in_trees_of_their_own(
    hive: Hive, open_beside: Opener, held: bool, asked: bool, granted: bool
) -> None:
    hive.reservations.reserve(["src/**"], exclusive=held)
    beside = open_beside("reviewer").reservations
    if granted:
        assert beside.reserve(["src/a.py"], exclusive=asked)
    else:
        with pytest.raises(Held):
            beside.reserve(["src/a.py"], exclusive=asked)


def test_two_droids_never_share_a_path_in_one_working_tree(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/**"], exclusive=False)
    with pytest.raises(Held, match="in one working tree, git merges nothing") as refused:
        reviewer.reservations.reserve(["src/a.py"], exclusive=False)
    assert "queen reserve src/a.py --shared --wait" in (refused.value.hint or "")


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_ones_own_leases_never_stand_in_ones_way(hive: Hive, first: bool, second: bool) -> None:
    hive.reservations.reserve(["src/**"], exclusive=first)
    assert hive.reservations.reserve(["src/a.py"], exclusive=second)


@pytest.mark.parametrize(
    ("held", "asked", "witness"),
    [
        ("src/**", "src/a.py", "src/a.py"),
        ("src/a.py", "src/**", "src/a.py"),
        ("src/*/a.py", "src/b/*.py", "src/b/a.py"),
        ("src/auth/", "src/auth", "src/auth"),
        ("**/*.md", "docs/*", None),
        ("{a,b}/x", "[bc]/x", "b/x"),
    ],
)
def test_patterns_meet_where_some_path_is_in_both_and_the_refusal_names_one(
    hive: Hive, reviewer: Hive, held: str, asked: str, witness: str | None
) -> None:
    hive.reservations.reserve([held])
    with pytest.raises(Held) as refusal:
        reviewer.reservations.reserve([asked])
    [holder] = refusal.value.holders
    assert holder["witness"] == witness or (witness is None and holder["witness"].endswith(".md"))
    assert holder["witness"] in refusal.value.message


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("src/main.go", "**/*.md"),
        ("*.md", "docs/a.md"),
        ("src/*", "src/a/b"),
        ("src/auth", "src/auth.py"),
        ("src/**", "srcs/a"),
        ("A.py", "a.py"),
    ],
)
def test_patterns_without_a_common_path_are_both_granted(
    hive: Hive, reviewer: Hive, held: str, asked: str
) -> None:
    hive.reservations.reserve([held])
    assert reviewer.reservations.reserve([asked])


@pytest.mark.parametrize(
    ("held", "asked"),
    [("SRC/A.py", "src/a.py"), ("src/Auth", "src/Auth/"), ("src/Auth/", "src/auth")],
)
def test_case_is_folded_where_git_says_that_the_file_system_does(
    repo: Path, open_as: Opener, held: str, asked: str
) -> None:
    with (repo / ".git" / "config").open("a") as config:
        config.write("[core]\n\tignorecase = true\n")
    open_as("ui-engineer").reservations.reserve([held])
    with pytest.raises(Held):
        open_as("reviewer").reservations.reserve([asked])


def test_a_refusal_names_every_holder_with_all_that_is_known(
    hive: Hive, open_as: Opener, beads: Path, clock: Clock
) -> None:
    [mine] = hive.reservations.reserve(["src/ui/**"], issue_id="qb-42", reason="Button", ttl_s=7200)
    clock.advance(1)
    open_as("tester").reservations.reserve(["src/api/**"], exclusive=False, ttl_s=3599)
    clock.advance(599)
    before = snapshot(beads)
    with pytest.raises(Held) as refusal:
        open_as("reviewer").reservations.reserve(["free/**", "src/**"])
    first, second = refusal.value.holders
    assert first == {
        "id": mine.id,
        "droid": "ui-engineer",
        "pattern": "src/ui/**",
        "exclusive": True,
        "issue_id": "qb-42",
        "reason": "Button",
        "expires_at": "2024-12-14T12:30:00.000Z",
        "seconds_left": 6600,
        "last_seen_at": "2024-12-14T10:30:00.000Z",
        "asked": "src/**",
        "witness": first["witness"],
    }
    assert first["witness"].startswith("src/ui")
    assert (second["droid"], second["exclusive"]) == ("tester", False)
    text = refusal.value.message
    for part in ("ui-engineer for qb-42 (Button), 1h 50m left", "tester (shared), 50m left"):
        assert part in text
    assert "queen reserve 'src/**' --wait 5m" in str(refusal.value.hint)
    assert "queen msg send ui-engineer" in str(refusal.value.hint)
    assert snapshot(beads) == before


def test_a_refusal_of_hundreds_names_ten_in_words_and_all_in_data(
    hive: Hive, reviewer: Hive
) -> None:
    hive.reservations.reserve([f"src/{number}.py" for number in range(120)])
    with pytest.raises(Held, match="and 110 more") as refusal:
        reviewer.reservations.reserve(["src/**"])
    assert len(refusal.value.holders) == 120


def test_several_patterns_are_granted_together_or_not_at_all(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    hive.reservations.reserve(["c.py"])
    before = snapshot(beads)
    with pytest.raises(Held):
        reviewer.reservations.reserve(["a.py", "b.py", "c.py", "d.py"])
    assert snapshot(beads) == before
    assert patterns(reviewer) == ["c.py"]


def hinted(refusal: Held) -> list[str]:
    """Returns the words of the command that a refusal recommends."""
    return shlex.split(str(refusal.hint).partition(", or")[0])


@pytest.mark.parametrize("name", ["it's.py", "app/[id]/page.tsx", "a b.py", "$x`y`.py"])
def test_the_command_that_a_refusal_recommends_can_be_pasted_into_a_shell(
    hive: Hive, reviewer: Hive, repo: Path, name: str
) -> None:
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).touch()
    hive.reservations.reserve([name])
    with pytest.raises(Held) as refusal:
        reviewer.reservations.reserve([name])
    assert hinted(refusal.value)[2] == name


def test_the_command_that_a_refusal_recommends_works_where_it_was_typed(
    hive: Hive, repo: Path, clock: Clock
) -> None:
    (repo / "src").mkdir()
    hive.reservations.reserve(["src/a.py"])
    below = Hive.open(repo / "src", droid="reviewer", env=environment(), clock=clock)
    with pytest.raises(Held) as refusal:
        below.reservations.reserve(["./*.py"])
    assert hinted(refusal.value)[2] == "./*.py"


@pytest.mark.parametrize(
    ("ttl_s", "wait"),
    [(1, "1s"), (119, "119s"), (120, "2m"), (121, "3m"), (300, "5m"), (7200, "5m")],
)
def test_the_recommended_wait_is_what_is_left_and_five_minutes_at_most(
    hive: Hive, reviewer: Hive, ttl_s: int, wait: str
) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=ttl_s)
    with pytest.raises(Held) as refusal:
        reviewer.reservations.reserve(["a.py"])
    assert hinted(refusal.value)[-1] == wait


@pytest.mark.parametrize(
    ("held_s", "wait"),
    [([20], "60s"), ([600], "10m"), ([60, 900, 5000], "15m"), ([60, 60, 900, 900], "15m")],
)
def test_the_recommended_wait_is_the_holders_usual_hold(
    hive: Hive, reviewer: Hive, clock: Clock, held_s: list[int], wait: str
) -> None:
    for seconds in held_s:
        hive.reservations.reserve(["a.py"])
        clock.advance(seconds)
        hive.reservations.release(["a.py"])
    hive.reservations.reserve(["a.py"])
    with pytest.raises(Held) as refusal:
        reviewer.reservations.reserve(["a.py"])
    assert hinted(refusal.value)[-1] == wait
