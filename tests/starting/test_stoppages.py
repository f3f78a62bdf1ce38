"""What clients print that cannot work, as it was recorded, and what a team does then."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from teams import Team

from queenbee.starting.stoppages import Pause, Stoppage, stoppage_in
from queenbee.store.droids import presence

SHAPES = sorted((Path(__file__).parent / "shapes").glob("*.txt"))
NOW_S = time.mktime((2026, 11, 29, 12, 0, 0, 0, 0, -1))
WORKS = (
    "queen next > /dev/null; date > $(git branch --show-current).txt\n"
    "queen land -m 'the work' --next --wait 1s\n"
)
LIMIT = (
    '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n'
    '{"type":"assistant","error":"%s"}\n'
    '{"type":"result","is_error":true,"result":"You have hit your limit","total_cost_usd":0}\n'
)


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.stem)
def test_a_recorded_end_of_a_client_is_known(path: Path) -> None:
    client, code, *_ = path.stem.split("-")
    found = stoppage_in(client, path.read_bytes(), NOW_S)
    assert found is not None
    assert found.code == code
    assert 10 < len(found.said) <= 160


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.stem)
def test_the_same_words_of_an_agent_are_none(path: Path) -> None:
    client = path.stem.split("-")[0]
    quoted = b"".join(b"> " + each + b"\n" for each in path.read_bytes().splitlines())
    assert stoppage_in(client, quoted, NOW_S) is None
    assert stoppage_in(client, path.read_bytes() + 60 * b"more\n", NOW_S) is None
    assert stoppage_in("./agent.sh", path.read_bytes(), NOW_S) is None


def test_an_error_that_the_client_got_over_is_none() -> None:
    output = (LIMIT % (NOW_S, "rate_limit")).replace("true", "false").encode()
    assert stoppage_in("claude", output, NOW_S) is None


@pytest.mark.parametrize(
    ("words", "wait_s"),
    [
        ("usage limit. Try again at 2:45 PM.", 0.0),
        ("usage limit: try again at 2:45 PM.", 2.75 * 3600),
        ("usage limit: try again at 11:00 AM.", 23 * 3600),
        ("usage limit: try again at Dec 1st, 2026 12:00 PM.", 48 * 3600),
        ("usage limit: try again at Dec 77th, 2026 12:00 PM.", 0.0),
        ("rate limit: try again in 7.5s.", 7.5),
    ],
)
def test_the_time_that_a_client_names_is_local(words: str, wait_s: float) -> None:
    found = stoppage_in("codex", f"ERROR: {words}\n".encode(), NOW_S)
    assert found is not None
    assert found.until_s == (NOW_S + wait_s if wait_s else 0.0)


def test_without_a_time_the_waits_grow_to_half_an_hour_and_end_after_six_hours() -> None:
    pause, now_s, waits = Pause("codex", is_patient=False), NOW_S, list[float]()
    while not pause.is_final:
        before_s = now_s
        assert pause.begin(Stoppage("overloaded", "at capacity"), now_s) is (
            before_s == NOW_S or pause.is_final
        )
        assert not pause.begin(Stoppage("overloaded", "at capacity"), now_s)
        while pause.holds(now_s) and not pause.is_final:
            now_s += 10.0
        waits.append(now_s - before_s)
    assert waits[:6] == [60.0, 120.0, 240.0, 480.0, 960.0, 1800.0]
    assert 5 * 3600 < now_s - NOW_S <= 6 * 3600


def test_a_limit_of_days_is_waited_for_only_if_it_was_asked_for() -> None:
    for is_patient in (False, True):
        pause = Pause("claude", is_patient=is_patient)
        pause.begin(Stoppage("usage_limit", "weekly", NOW_S + 3 * 24 * 3600), NOW_S)
        assert pause.is_final is not is_patient


class TestATeam:
    """A team whose client cannot work."""

    pytestmark = pytest.mark.slow

    def limited(self, team: Team, *, error: str = "rate_limit", for_s: float = 0.0) -> None:
        """Has `claude` not work for some seconds from its first start on, or ever."""
        until = f"$(($(cat {team.bin}/first) + {int(for_s)}))"
        said = "".join(f"echo '{each}'\n" for each in (LIMIT % ("'$U'", error)).splitlines())
        team.program(
            "claude",
            f"[ -e {team.bin}/first ] || date +%s > {team.bin}/first; U={until}\n"
            f"echo \"$@\" | tr '\\n' ' ' >> {team.bin}/calls; echo >> {team.bin}/calls\n"
            f"if [ {int(for_s)} -eq 0 ] || [ $(date +%s) -lt $U ]; then\n{said}exit 1\nfi\n{WORKS}",
        )

    def test_waits_for_a_limit_with_one_line_and_gives_nothing_back(self, team: Team) -> None:
        team.issues(2)
        self.limited(team, for_s=6.0)
        ran = team.start("--agent", "claude", "--size", "2", "--max-failures", "1")
        assert ran.code == 0, ran
        assert ran.out.count("claude cannot work: “You have hit your limit”; it goes on at") == 1
        assert {*team.done()} == {"x-1", "x-2"}
        assert team.hive().assignments.find(status="released") == []
        assert "begins" not in ran.out

    def test_shows_meanwhile_that_it_is_there(self, team: Team) -> None:
        team.issues(1)
        self.limited(team, for_s=3600.0)
        ran = team.begun("ui", "--agent", "claude")
        team.wait(lambda: "ui (claude): waits: claude cannot" in team.queen("report").out)
        seen_ms = presence.last_ms(team.hive().layout, "ui") or 0
        team.wait(lambda: (presence.last_ms(team.hive().layout, "ui") or 0) > seen_ms + 1000)
        ran.send_signal(2)
        out = ran.communicate(timeout=30)[0]
        assert "x-1 is still ui's: queen start ui --agent claude goes on with it" in out

    @pytest.mark.parametrize("error", ["authentication_failed", "billing_error"])
    def test_ends_at_once_where_waiting_is_useless(self, team: Team, error: str) -> None:
        team.issues(3)
        self.limited(team, error=error)
        ran = team.start("ui", "--agent", "claude", "--until-done")
        assert ran.code == 1
        assert len((team.bin / "calls").read_text().splitlines()) == 1
        assert "ui ended early: claude cannot work: “You have hit your limit”" in ran.out
        assert "x-1 is still ui's" in ran.out
        assert team.hive().assignments.find(status="released") == []
