"""An agent of a team is known as one: in a sandbox that hides its processes, in another repository
of the same user, and after its team was killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hives import COMMAND, Ran, commit_file, git
from teams import LIMIT_S, WORKS, Team

from queenbee.services import unasked
from queenbee.store.droids import liveness, roster

pytestmark = [pytest.mark.slow, pytest.mark.linux]

SANDBOX = "unshare -rpf --mount-proc"
"""A PID namespace of its own, as sandboxes of clients have one."""
has_namespaces = pytest.mark.skipif(
    not shutil.which("unshare")
    or subprocess.run([*SANDBOX.split(), "true"], capture_output=True, check=False).returncode != 0,
    reason="this system lets its users make no PID namespaces",
)
SPACES = [
    pytest.param(SANDBOX, id="pid"),
    pytest.param("unshare -rpf", id="pid-without-proc"),
    pytest.param("unshare -rpf --mount-proc unshare -rpf --mount-proc", id="nested"),
]


@pytest.fixture
def precious(team: Team, tmp_path: Path) -> Path:
    """A person's own worktree, with a commit that is not ready."""
    git(team.repo, "add", "--all")
    git(team.repo, "commit", "-q", "--allow-empty", "-m", "begin")
    path = tmp_path / "precious"
    git(team.repo, "worktree", "add", "-q", "-b", "precious", str(path))
    commit_file(path, "draft.txt", "not ready, do not land\n")
    return path


@pytest.fixture
def other(team: Team, tmp_path: Path) -> Path:
    """Another repository of the same person, with a hive and a worktree with work."""
    team.issues(1)
    path = tmp_path / "other"
    shutil.copytree(team.repo, path)
    git(path, "worktree", "add", "-q", "-b", "mine", f"{path}-mine")
    commit_file(Path(f"{path}-mine"), "draft.txt", "not ready, do not land\n")
    return path


def tried(team: Team, text: str) -> str:
    """Returns what an agent printed that tries something in place of its issue."""
    if not team.queen("issues", "--json").json:
        team.issues(1)
    ran = team.start("amber", "--agent", team.agent(f'exec > "$0.tried" 2>&1\n{text}exit 1\n'))
    assert ran.code == 1, ran
    return (team.bin / "agent.tried").read_text()


def test_no_variable_of_an_agent_of_a_team_agrees_to_commands(team: Team) -> None:
    team.issues(1)
    git(team.repo, "config", "--unset", "queenbee.trust")
    trusts = "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=queenbee.trust GIT_CONFIG_VALUE_0=all"
    text = f"""exec > "$0.tried" 2>&1
printf '[worktree]\\nsetup = "touch ../ran"\\n' > {team.repo}/.beads/queen.toml
env -i PATH="$PATH" HOME="$HOME" {trusts} queen worktree setup --json
exit 1
"""
    team.start("amber", "--agent", team.agent(text))
    assert '"untrusted"' in (team.bin / "agent.tried").read_text()
    assert not (team.repo.parent / "ran").exists()


@has_namespaces
class TestAnAgentInASandbox:
    @pytest.mark.parametrize("space", SPACES)
    def test_lands_no_work_of_a_person(self, team: Team, precious: Path, space: str) -> None:
        said = tried(team, f"cd {precious}; unset QUEEN_DROID; {space} queen land -m steal\n")
        assert f"it lands nothing from {precious}" in said
        assert not (team.repo / "draft.txt").exists()

    def test_is_told_so_with_a_code(self, team: Team, precious: Path) -> None:
        said = tried(team, f"cd {precious}; {SANDBOX} queen land --json -m steal\n")
        error = json.loads(said.splitlines()[0])["error"]
        assert error["code"] == "unknown_caller"
        assert "amber works for queen start" in error["message"]
        assert "in a terminal outside of the container, or once the team has ended" in error["hint"]

    @pytest.mark.skipif(not shutil.which("script"), reason="no program here makes a terminal")
    def test_accepts_no_change_of_the_check(self, team: Team) -> None:
        commit_file(team.repo, "run-tests", "exit 0\n")
        team.set("land.check", "sh run-tests")
        team.set("land.guard_check", "true")
        git(team.repo, "add", "--all")
        git(team.repo, "commit", "-qm", "guarded")
        text = f"""echo "exit 0 # weaker" > run-tests; echo x > x; git add -A; git commit -qm weaker
key=$(queen land --json 2>&1 | grep -o "accept-check [0-9a-f]*")
env -i PATH="$PATH" HOME="$HOME" {SANDBOX} script -qec "queen land --$key" /dev/null
"""
        assert "it waits for a person" in tried(team, text)
        assert not (team.repo / "x").exists()

    def test_takes_over_no_branch_of_a_person(self, team: Team, precious: Path) -> None:
        away = 'env -i PATH="$PATH" HOME="$HOME"'
        said = tried(team, f"{away} {SANDBOX} queen worktree add x --adopt precious\n")
        assert "only a person hands over a branch" in said
        notes = team.repo / ".git" / "queenbee-made"
        assert "precious" not in "".join(
            each.read_text() for each in notes.rglob("*") if each.is_file()
        )

    def test_removes_no_worktree_of_a_person(self, team: Team, precious: Path) -> None:
        said = tried(
            team, f"cd {team.repo}; {SANDBOX} queen worktree remove precious --force --as x\n"
        )
        assert f"it does not remove {precious}" in said
        assert precious.exists()

    @pytest.mark.thorough
    def test_lands_nothing_from_a_worktree_that_it_made(self, team: Team) -> None:
        text = f"{SANDBOX} queen worktree add helper; cd {team.repo}-helper\n"
        text += f"echo x > evil.txt; git add -A; git commit -qm evil; {SANDBOX} queen land\n"
        assert "it lands nothing from" in tried(team, text)
        assert not (team.repo / "evil.txt").exists()

    def test_lands_its_own_work_and_removes_what_it_made(self, team: Team) -> None:
        team.issues(1)
        text = f"{SANDBOX} queen worktree add helper && {SANDBOX} queen worktree remove helper\n"
        text += f'echo x > "$FILE"; {SANDBOX} queen land "$QUEEN_ISSUE" -m done\n'
        ran = team.start("amber", "--agent", team.agent(f'exec > "$0.tried" 2>&1\n{text}'))
        said = (team.bin / "agent.tried").read_text()
        assert (ran.code, team.done()) == (0, {"x-1": ["amber"]}), said
        assert team.content("x-1") == "x\n"
        assert not Path(f"{team.repo}-helper").exists()

    def test_completes_nothing_without_its_checks(self, team: Team) -> None:
        said = tried(
            team, f'cd {team.repo}; {SANDBOX} queen complete "$QUEEN_ISSUE" --force --reason done\n'
        )
        assert "it does not end x-1 without its checks" in said
        assert team.done() == {}

    @pytest.mark.thorough
    def test_in_another_repository_lands_nothing(self, team: Team, other: Path) -> None:
        said = tried(team, f"cd {other}-mine; {SANDBOX} env -i PATH=$PATH queen land -m x --as x\n")
        assert "it lands nothing from" in said
        assert not (other / "draft.txt").exists()


def test_an_agent_agrees_to_no_exchange_of_records(team: Team, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "public.git")
    git(team.repo, "remote", "add", "public", str(tmp_path / "public.git"))
    team.set("sync.remote", "public")
    said = tried(team, "queen sync\n")
    assert not unasked.is_allowed(team.hive().layout), said
    assert team.queen("sync").code == 0
    assert unasked.is_allowed(team.hive().layout)


@pytest.mark.some(1)
@has_namespaces
@pytest.mark.parametrize(
    "how", ["unshare -ru sh -c 'hostname x; exec \"$@\"' sh", "unshare -rTf --boottime 100000"]
)
def test_another_host_name_or_clock_hides_no_agent(team: Team, precious: Path, how: str) -> None:
    said = tried(team, f"cd {precious}; {how} queen land -m steal --as x\n")
    assert f"it lands nothing from {precious}" in said


class TestAnAgentInAnotherRepository:
    @pytest.mark.parametrize(
        "who", ["", "unset QUEEN_DROID; ", "env -i PATH=$PATH HOME=/ XDG_STATE_HOME=/tmp "]
    )
    def test_lands_nothing(self, team: Team, other: Path, who: str) -> None:
        said = tried(team, f"cd {other}-mine; {who}queen land -m steal\n")
        assert f"amber works for queen start in {team.repo}-amber: it lands nothing from" in said
        assert not (other / "draft.txt").exists()

    def test_removes_no_worktree(self, team: Team, other: Path) -> None:
        said = tried(team, f"cd {other}; queen worktree remove mine --force --as x\n")
        assert "whom queen start looks after, did not make" in said
        assert Path(f"{other}-mine").exists()

    def test_removes_none_that_its_namesake_there_made(self, team: Team, other: Path) -> None:
        note = {"branch": "mine", "path": f"{other}-mine", "base": "", "droid": "x", "by": "amber"}
        place = other / ".git" / "worktrees" / "other-mine"
        (place / "queenbee-made").write_text("mark")
        (other / ".git" / "queenbee-made").mkdir(exist_ok=True)
        kept = other / ".git" / "queenbee-made" / place.name
        kept.write_text(f"mark\n{json.dumps(note)}")
        said = tried(team, f"cd {other}; queen worktree remove mine --force --as x\n")
        assert "whom queen start looks after, did not make" in said
        assert Path(f"{other}-mine").exists()

    @pytest.mark.some(1)
    @has_namespaces
    @pytest.mark.parametrize(
        "how", ["unshare -U --map-user=4321", "unshare -r unshare -U --map-user=4321"]
    )
    def test_lands_nothing_as_another_user(self, team: Team, other: Path, how: str) -> None:
        (team.bin / "as.sh").write_text(f"cd {other}-mine; HOME=/none queen land -m x --as x\n")
        said = tried(team, f"{how} sh {team.bin}/as.sh\n")
        assert "it lands nothing from" in said, said
        assert not (other / "draft.txt").exists()

    def test_lands_in_what_it_made_in_its_own_worktree(self, team: Team) -> None:
        """A check that runs `queen` in repositories of its own, such as tests of hooks."""
        text = f"""
            echo made >> "$(git rev-parse --git-common-dir)/info/exclude"
            mkdir -p made && cd made && here=$(mktemp -d here.XXXXXX) && cd "$here"
            git clone -q {team.repo} repo && cd repo
            git config user.name a; git config user.email a@b; git config queenbee.trust all
            git worktree add -q ../tried && cd ../tried && echo x > x
            env -u QUEEN_DROID queen land -m x --as somebody
        """
        said = tried(team, f"{text}\n")
        assert "landed" in said and "works for queen start" not in said, said


class TestATeam:
    def notes(self, team: Team) -> list[Path]:
        folder = team.home / ".local" / "state" / "queenbee" / "teams"
        return sorted(folder.iterdir()) if folder.exists() else []

    def test_is_noted_while_it_works(self, team: Team) -> None:
        team.issues(1)
        folder = team.home / ".local" / "state" / "queenbee" / "teams"
        agent = team.agent(f'ls {folder} > "$0.notes"\n{WORKS}')
        gone = folder / ("0" * 32)
        folder.mkdir(parents=True)
        gone.write_text("/nowhere/that/is/left")
        assert team.start("--agent", agent, "--size", "1").code == 0
        assert len((team.bin / "agent.notes").read_text().split()) == 1
        assert self.notes(team) == []

    def test_works_and_says_so_where_it_cannot_be_noted(self, team: Team) -> None:
        team.issues(1)
        team.home.rmdir()
        team.home.write_text("no folder")
        ran = team.start("--agent", team.agent(WORKS), "--size", "1")
        assert (ran.code, team.content("x-1")) == (0, "x-1 by amber\n"), ran
        assert "agents are known as such in no other repository: " in ran.out


@pytest.fixture
def waiting(team: Team) -> Iterator[subprocess.Popen[str]]:
    """A team whose agent has begun, and waits for a file."""
    team.issues(1)
    gate = team.bin / "gate"
    text = f'touch "$0.begun"; until [ -e {gate} ]; do sleep 0.1; done\n'
    running = team.begun("amber", "--agent", team.agent(text + WORKS))
    team.wait((team.bin / "agent.begun").exists)
    yield running
    gate.touch()
    running.communicate(timeout=LIMIT_S)


class TestAPerson:
    @pytest.fixture
    def mine(self, team: Team, waiting: object) -> Path:
        path = Path(f"{team.repo}-mine")
        git(team.repo, "worktree", "add", "-q", "-b", "mine", str(path))
        commit_file(path, "good.txt", "ready\n")
        return path

    def lands(self, team: Team, where: Path, *around: str) -> Ran:
        command = [*around, *COMMAND, "land", "--as", "ann", "--json"]
        ran = subprocess.run(
            command, cwd=where, env=team.queen.environment(None, None), capture_output=True,
            text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    @pytest.mark.thorough
    def test_lands_beside_a_team(self, team: Team, mine: Path) -> None:
        assert self.lands(team, mine).code == 0
        assert (team.repo / "good.txt").exists()

    @has_namespaces
    def test_lands_beside_a_team_in_the_same_container(self, team: Team, tmp_path: Path) -> None:
        ran = self.beside(team, tmp_path, 'cd "$MINE"; queen land --as ann; S=$?')
        assert ran.returncode == 0, ran
        assert (team.repo / "good.txt").exists()

    @has_namespaces
    @pytest.mark.skipif(
        liveness.own_space() != liveness.OUTERMOST, reason="these tests run in a container"
    )
    def test_outside_of_all_containers_lands_beside_a_team_in_one(
        self, team: Team, tmp_path: Path
    ) -> None:
        go = team.bin / "go"
        inside = f"until [ -e {go} ]; do sleep 0.1; done; S=0"
        with ThreadPoolExecutor() as pool:
            ended = pool.submit(self.beside, team, tmp_path, inside)
            team.wait((team.bin / "agent.begun").exists)
            ran = self.lands(team, tmp_path / "mine")
            go.touch()
            assert ended.result().returncode == 0, ended.result()
        assert ran.code == 0, ran

    def beside(self, team: Team, tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
        """Runs a team in a container, and beside it a shell, whose status S counts."""
        team.issues(1)
        mine, gate, begun = tmp_path / "mine", team.bin / "gate", team.bin / "agent.begun"
        git(team.repo, "worktree", "add", "-q", "-b", "mine", str(mine))
        commit_file(mine, "good.txt", "ready\n")
        waits = f'touch "$0.begun"; until [ -e {gate} ]; do sleep 0.1; done\n'
        agent = team.agent(waits + WORKS)
        script = f"queen start amber --as lead --agent {agent} & TEAM=$!\n"
        script += f"until [ -e {begun} ]; do sleep 0.1; done\n"
        script += f"({text}; exit $S); S=$?; touch {gate}; wait $TEAM; exit $S\n"
        return subprocess.run(
            [*SANDBOX.split(), "sh", "-c", script], cwd=team.repo, timeout=LIMIT_S, check=False,
            env={**team.queen.environment(None, None), "MINE": str(mine)},
            capture_output=True, text=True,
        )  # fmt: skip

    @has_namespaces
    def test_in_a_container_waits_until_the_team_has_ended(
        self, team: Team, mine: Path, waiting: subprocess.Popen[str]
    ) -> None:
        assert self.lands(team, mine, *SANDBOX.split()).error["code"] == "unknown_caller"
        (team.bin / "gate").touch()
        waiting.communicate(timeout=LIMIT_S)
        ran = self.lands(team, mine, *SANDBOX.split())
        assert ran.code == 0, ran

    @has_namespaces
    def test_in_a_container_is_not_held_by_a_team_that_was_killed(
        self, team: Team, mine: Path, waiting: subprocess.Popen[str]
    ) -> None:
        waiting.send_signal(signal.SIGKILL)
        waiting.communicate(timeout=LIMIT_S)
        ran = self.lands(team, mine, *SANDBOX.split())
        assert ran.error["code"] == "unknown_caller"  # Its agents go on.
        (entry,) = roster.everybody(team.hive().layout)
        os.killpg(liveness.space_and_id(entry.process)[1], signal.SIGKILL)
        team.wait(lambda: not team.running())
        ran = self.lands(team, mine, *SANDBOX.split())
        assert ran.code == 0, ran


class TestTheProcessesAbove:
    def test_are_listed_anew_if_one_ends_meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looked: list[int] = []
        look = liveness._look

        def ends_once(pid: int) -> tuple[str, int, str] | None:
            looked.append(pid)
            return ("sh", 2**22 + 1, "") if len(looked) == 1 else look(pid)

        monkeypatch.setattr(liveness, "_look", ends_once)
        found, is_all = liveness.ids_above()
        assert is_all
        assert found[0] == os.getppid()
        assert 2**22 + 1 not in found

    def test_are_not_all_if_they_change_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(liveness, "_look", lambda _: ("sh", 2**22 + 1, ""))
        assert not liveness.ids_above()[1]


BARE = 'env -i PATH="$PATH" HOME="$HOME" XDG_STATE_HOME="$XDG_STATE_HOME"'
"""What drops the environment of an agent."""


def test_an_agent_without_its_environment_trusts_nothing_for_a_person(team: Team) -> None:
    said = tried(team, f"cd {team.repo}; {BARE} queen config trust --yes\n")
    assert "a person lets commands run, not an agent" in said


def test_what_an_agent_types_without_its_environment_does_not_count_as_seen(
    asking: Path, team: Team
) -> None:
    """Also not what it answers in a pseudo-terminal."""
    gate = "--workflow wf --phase one"
    run = f'echo y | {BARE} script -qec "queen gate run {gate}" /dev/null'
    said = tried(
        team,
        f"cd {team.repo}; {BARE} queen config set land.check ./evil\n"
        f"{BARE} queen config set land.target other\n"
        f"{BARE} queen gate new {gate}; {BARE} queen gate add-rule {gate} --test 'touch ran'\n"
        f"{run}\n",
    )
    assert "Let it run" not in said, said
    asked = team.queen("config", "trust", "--json").error["commands"]
    assert sorted((each["kind"], each["text"]) for each in asked) == [
        ("branch", "other"), ("check", "./evil"), ("gate rule", "touch ran"),
    ]  # fmt: skip
    assert not (team.repo / "ran").exists()
