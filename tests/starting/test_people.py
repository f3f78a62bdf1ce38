"""Every line of the pages on people, machines and teams, typed in two clones of one hub."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import postgres_server
import pytest
from hives import git
from teams import Team

pytestmark = pytest.mark.slow

PAGES = Path(__file__).parents[2] / "docs"
CLAUDE = (
    "queen next > /dev/null\ndate +%N > $(git branch --show-current).$(date +%N).txt\n"
    "queen land -m 'the work' --next --wait 1s\n"
)
DAYS = 7


def blocks(page: str) -> list[list[str]]:
    """Returns the lines of each block of shell commands of a page."""
    found = re.findall(r"```sh\n(.*?)```", (PAGES / page).read_text(encoding="utf-8"), re.DOTALL)
    return [block.splitlines() for block in found]


@pytest.fixture
def people(tmp_path: Path) -> dict[str, Callable[[str], str]]:
    """What types a line in the clone of each person; fails where the line fails."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(tmp_path / "hub")], check=True)
    found = {}
    for name in ("dora", "eva"):
        place, clone = tmp_path / name, tmp_path / name / "shop"
        place.mkdir()
        git(tmp_path, "clone", "-q", str(tmp_path / "hub"), str(clone))
        if name == "dora":
            (clone / "app.py").write_text("a = 1\n")
            git(clone, "add", "--all")
            git(clone, "commit", "-qm", "begin")
            git(clone, "push", "-q", "-u", "origin", "HEAD:main")
        (clone / ".beads").mkdir(exist_ok=True)
        team = Team(clone, place)
        git(clone, "clean", "-qfdx")
        shutil.rmtree(clone / ".git" / "queenbee", ignore_errors=True)
        for client in ("claude", "codex"):
            team.program(client, CLAUDE)
        team.install_hook()
        config = place / "gitconfig"  # Git by its defaults.
        config.write_text(f"[user]\n\tname = {name}\n\temail = {name}@example.invalid\n")
        env = {
            **os.environ,
            **team.queen.env,
            "GIT_CONFIG_GLOBAL": str(config),
            "HOME": str(team.home),
        }

        def type_(line: str, env: dict[str, str] = env, clone: Path = clone) -> str:
            ran = subprocess.run(
                line, shell=True, cwd=clone, env=env, capture_output=True, text=True, timeout=120
            )
            assert ran.returncode == 0, (line, ran.stdout, ran.stderr)
            return ran.stdout + ran.stderr

        found[name] = type_
    return found


@pytest.mark.thorough
def test_the_page_on_people_can_be_followed_to_the_letter(
    people: dict[str, Callable[[str], str]], tmp_path: Path
) -> None:
    once, each, daily = blocks("people.md")
    for line in once:
        people["dora"](line)
        if line.startswith("queen init"):
            people["dora"]("queen config set land.check true")
    for line in each:
        people["eva"](line)
    for day in range(DAYS):
        for name, type_ in people.items():
            for line in daily:
                type_(line.replace("dora", name).replace("Round", f"Day {day}: round"))
            type_("git pull")
            assert type_("git status --porcelain") == ""
    for type_ in people.values():
        type_("queen sync")
        type_("git pull")
    landed = git(tmp_path / "hub", "ls-tree", "-r", "--name-only", "main").splitlines()
    assert len([path for path in landed if path.endswith(".txt")]) == DAYS * len(people)
    assert not any(path.endswith(".jsonl") for path in landed)


def test_the_page_on_machines_can_be_followed_to_the_letter(
    people: dict[str, Callable[[str], str]], tmp_path: Path
) -> None:
    (once, each), moving, confirmed, _ = blocks("machines.md")
    dora, eva = people["dora"], people["eva"]
    dora(once)
    issues = [dora(f"queen issue new '{title}'").strip() for title in ("Round", "Sort")]
    dora("git add -A && git commit -qm issues && git push")
    for type_ in (dora, eva):
        type_(f"git pull && {each}")
    for line in moving:
        dora(line)
    dora("git push")
    eva("git pull && queen init")
    taken = {"dora": "queen next", "eva": "queen claim"}
    for line in confirmed:
        name = "eva" if line.startswith(taken["eva"]) else "dora"
        people[name](f"QUEEN_DROID={name}-1 {line.replace('shop-1', issues[1])}")
    for name, type_ in people.items():
        type_(f"git pull && touch of-{name} && git add -A && git commit -qm {name} && git push")
        assert type_("git status --porcelain") == ""
        assert "2 active" in type_("queen issues")
    landed = git(tmp_path / "hub", "ls-tree", "-r", "--name-only", "main").splitlines()
    assert not any(path.endswith(".jsonl") for path in landed)


@pytest.mark.thorough
def test_the_page_on_machines_can_be_followed_into_a_database(
    people: dict[str, Callable[[str], str]], server: postgres_server.Server
) -> None:
    (once, _), *_, (install, export, *use) = blocks("machines.md")
    assert install.startswith("pip install")
    set_address = f"{export.partition('=')[0]}='{server.url}'\n"
    dora, eva = people["dora"], people["eva"]
    dora(once)
    issue = dora("queen issue new 'Round'").strip()
    dora("git add -A && git commit -qm issues && git push")
    dora(set_address + "\n".join(use) + "\ngit push")
    eva(f"git pull\n{set_address}queen claim {issue} --as eva-1")
    with pytest.raises(AssertionError, match="eva-1"):
        dora(f"{set_address}queen claim {issue} --as dora-1")


def test_the_page_on_teams_can_be_followed_to_the_letter(
    people: dict[str, Callable[[str], str]], tmp_path: Path
) -> None:
    (init, *others), program = blocks("team.md")
    dora = people["dora"]
    dora(f"{init}\nqueen config set land.check true")
    for line in others:
        dora(line)
    dora("git add -A && git commit -qm 'what it made' && queen issue new 'By a program'")
    dora("\n".join(program))
    assert "2 of 2 done" in dora("queen issues")
