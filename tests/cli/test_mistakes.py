"""What a newcomer types by mistake: the answer suggests a command, and the command works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BARE = "git init -q -b trunk . && echo a > a && git add -A && git commit -qm a"
SHOP = f"""{BARE} && queen init
queen config set land.check true && queen --as ana issue new First --id t-1"""
WORK = "&& queen worktree add ui && cd ../shop-ui && echo b > b && git add b && git commit -qm b"
SHARED = """git init -q --bare ../hub && git remote add origin ../hub && git push -q origin HEAD
queen sync setup && git commit -qm moved"""
NAME = "queen hive whoami --set ana"
UNSET = "queen config unset land.target"
MISTAKES = {
    "a bare repository": ("git init -q --bare .", "queen init", "is a bare git repository"),
    "no commit yet": ("git init -q . && queen init", "queen worktree add ui", "is no commit"),
    "a branch that exists": (
        f"{SHOP} && git branch ui",
        "queen worktree add ui",
        "which QueenBee did not make",
    ),
    "a worktree that exists": (
        f"{SHOP} && git worktree add -q ../shop-ui -b ui",
        "queen worktree add ui",
        "which QueenBee did not make",
    ),
    "landing onto a detached HEAD": (
        f"{SHOP} && {UNSET} && git checkout -q --detach {WORK} && queen claim t-1",
        "queen land",
        "shop has a detached HEAD",
    ),
    "landing from a detached HEAD": (
        f"{SHOP} {WORK} && queen claim t-1 && git checkout -q --detach",
        "queen land",
        "shop-ui has a detached HEAD",
    ),
    "setting up no agent": (SHOP, "queen setup --user", "no agent was found here"),
    "another's issue": (
        f"{SHOP} && queen worktree add ui && queen --as bo claim t-1 && cd ../shop-ui",
        "queen claim t-1",
        "t-1 is assigned to bo",
    ),
    "nothing to land": (
        f"{SHOP} && queen worktree add ui && cd ../shop-ui && queen claim t-1",
        "queen land",
        "nothing to land",
    ),
    "nothing to land and no issue": (
        f"{SHOP} && queen worktree add ui && cd ../shop-ui",
        "queen land",
        "nothing to land",
    ),
    "a typing error in an issue": (SHOP, "queen claim t-2 --as ana", "there is no issue 't-2'"),
    "a typing error in a setting": (SHOP, "queen config set land.chek x", "no setting"),
    "a change in the way of a landing": (
        f"{SHOP} {WORK} && queen claim t-1 && echo c > ../shop/b",
        "queen land",
        "cannot be moved",
    ),
    "a body before the droid": (
        f"{SHOP} && queen hive whoami --set bo",
        "queen msg send 'is it done?' ana",
        "is not a droid name",
    ),
    "a setting without a verb": (SHOP, "queen config land.check", "No such command"),
    "a setting and its value without a verb": (SHOP, "queen config ttl 3h", "No such command"),
    "a verb before its noun": (SHOP, "queen add worktree bob", "No such command 'add'"),
    "a verb before several": (SHOP, "queen list worktrees", "No such command 'list'"),
    "another word for an option": (
        f"{SHOP} && {NAME} && queen claim t-1",
        "queen log --count=5 --issue t-1",
        "Did you mean '--limit'",
    ),
    "undoing an undo": (
        f"{SHOP} && {NAME} && queen claim t-1",
        "queen redo",
        "Did you mean 'undo'",
    ),
    "a setting as in other programs": (
        SHOP,
        "queen set land.check true",
        "Did you mean 'config set'",
    ),
    "a setting and its value with =": (
        SHOP,
        "queen config set land.check=true",
        "there is no setting",
    ),
    "leaving": (SHOP, "queen uninstall", "Did you mean 'setup --undo'"),
    "a message in words": (f"{SHOP} && {NAME}", "queen message human hi", "No such command"),
    "another word of the same noun": (
        f"{SHOP} && queen worktree add ui",
        "queen worktree delete ui",
        "Did you mean 'remove'",
    ),
    "a repository without a hive": ("git init -q .", "queen next", "there is no hive here"),
    "an issue that nobody described": (
        f"{BARE} && queen init && {NAME}",
        "queen claim fix-the-login",
        "nobody has described",
    ),
    "a worktree for an issue that nobody described": (
        f"{BARE} && queen init && {NAME}",
        "queen worktree add api em-9",
        "nobody has described",
    ),
    "an issue of two words": (SHOP, "queen claim 'a b' --as ana", "is not an issue id"),
    "an issue that another has": (
        f"{SHOP} && queen --as bo claim t-1 && {NAME}",
        "queen issue assign t-1 ana",
        "t-1 is assigned to bo",
    ),
    "an issue twice": (SHOP, "queen issue new First --id t-1 --as ana", "an issue t-1 already"),
    "completing nothing": (f"{SHOP} && {NAME}", "queen complete", "you have no issue"),
    "completing what another has": (
        f"{SHOP} && queen --as bo claim t-1 && {NAME}",
        "queen complete t-1",
        "not to ana",
    ),
    "claiming what is done": (
        f"{SHOP} && {NAME} && queen claim t-1 && queen complete t-1",
        "queen claim t-1",
        "was completed by ana",
    ),
    "an issue that waits for itself": (SHOP, "queen issue dep t-1 t-1", "cannot wait for itself"),
    "a broken queen.toml": (
        f"{SHOP} && printf '[land]\\njobs = 2\\n' >> .beads/queen.toml",
        "queen config set land.check x",
        "is not TOML",
    ),
    "a plan that is not there": (SHOP, "queen plan import nope.md", "nope.md does not exist"),
    "a plan that is empty": (
        f"{SHOP} && echo hi > p.md",
        "queen plan import p.md --as ana",
        "the plan has errors",
    ),
    "a bead that is not there": (SHOP, "queen bead verify nope.json", "nope.json"),
    "a path outside the repository": (SHOP, "queen reserve /etc/passwd --as ana", "is outside"),
    "a path above the repository": (SHOP, "queen reserve '../x*' --as ana", ".. leads out"),
    "releasing what nobody has": (SHOP, "queen release t-1 --as ana", "nobody is assigned"),
    "a file released as an issue": (
        f"{SHOP} && {NAME} && queen reserve src/a.py",
        "queen release src/a.py",
        "there is no issue 'src/a.py'",
    ),
    "a mistyped command of reserve": (
        f"{SHOP} && {NAME} && queen reserve src/a.py",
        "queen reserve relase src/a.py",
        "no command of queen reserve",
    ),
    "another tracker's short options": (
        f"{SHOP} && {NAME}",
        "queen create 'A title' -p 1 -t bug -l ui -d text",
        "No such command",
    ),
    "a message without its option": (f"{SHOP} {WORK}", "queen land 'the work'", "is no issue"),
    "a worktree that is not there": (SHOP, "queen worktree remove nope", "there is no worktree"),
    "a message that is not there": (f"{SHOP} && {NAME}", "queen msg read 1", "no message '1'"),
    "waiting in vain": (
        SHOP,
        "queen issue wait --mail --timeout 1s --as ana",
        "timed out after 1s",
    ),
    "a message without its quotes": (
        f"{SHOP} {WORK}",
        "queen land -m Round the prices --next",
        "the is no issue",
    ),
    "landing from the main worktree": (
        f"{SHOP} {WORK}",
        "cd ../shop && queen land --as ui",
        "shop-ui && queen --as ui land",
    ),
    "landing from the main worktree by nobody": (SHOP, "queen land", "not a linked worktree"),
    "a noun behind its verb": (SHOP, "queen new issue 'Round it' --as ana", "Did you mean 'issue"),
    "a file of a report": (SHOP, "queen report r.html", "unexpected extra argument"),
    "an argument too many": (SHOP, "queen worktree list x", "unexpected extra argument"),
    "an issue that has landed": (
        SHOP,
        "queen undo t-1",
        "--binary COMMIT COMMIT~ -- ':/!.beads' |",
    ),
    "two worktrees at once": (SHOP, "queen worktree add ui api", "'api'"),
    "a question": (f"{SHOP} && {NAME}", "queen msg ask human 'May I?'", "Did you mean 'msg send'"),
    "an answer to a name": (
        f"{SHOP} && queen --as api msg send human 'May I?'",
        "queen answer api Yes",
        "there is no message 'api'",
    ),
    "an override under another name": (
        f"{SHOP} {WORK}",
        "queen land --no-verify",
        "Did you mean '--unchecked'",
    ),
    "forcing a landing": (f"{SHOP} {WORK}", "queen land --force", "Did you mean '--unchecked'"),
    "a check as a flag": (SHOP, "queen land --check", "requires an argument"),
    "a wait under another name": (
        f"{SHOP} && {NAME}",
        "queen next --timeout 3s",
        "Did you mean '--wait'",
    ),
    "skipping checks without a reason": (
        f"{SHOP} && {NAME} && queen claim t-1",
        "queen complete t-1 --no-verify",
        "needs a reason",
    ),
    "agents without a check": (
        f"{BARE} && echo test: > Makefile && queen init",
        "queen start ui --agent true",
        "no check",
    ),
    "agents that are not there": (SHOP, "queen start --logs zed", "no agent called zed"),
    "the board without a terminal": (SHOP, "queen watch", "needs a terminal"),
    "a leftover QUEEN_DROID": (
        f"{SHOP} {WORK} && export QUEEN_DROID=bo",
        "queen next",
        "QUEEN_DROID says that you are bo",
    ),
}
PASTED = {
    "an issue that nobody described": "; queen claim fix-the-login",
    "a worktree for an issue that nobody described": "; queen worktree add api em-9",
    "a plan that is empty": "; true",
    "landing onto a detached HEAD": "; queen land",
    "landing from a detached HEAD": "; queen land",
    "nothing to land": "; echo b > b && queen land -m b",
    "no commit yet": "; queen worktree add ui",
    "a leftover QUEEN_DROID": "; queen next",
}
"""What is typed again after the command that was suggested, and works then."""


def shell(text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("QUEEN_", "GIT_", "FACTORY_", "BEADS_"))
    }
    env["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), env["PATH"]])
    env |= {"HOME": str(cwd.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "ana", f"GIT_{role}_EMAIL": "ana@example.com"}
    return subprocess.run(
        ["sh", "-c", text.replace("\n", " && ")],
        cwd=cwd, env=env, text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_starting_a_program_that_is_not_there_makes_no_worktree(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    shell(f"{SHOP} && touch later.sh", shop)
    for program, why in {
        "./typo": "not exist here",
        "./later.sh": "commit it",
        "typo": "no client",
    }.items():
        refused = shell(f"queen start ui --agent {program}", shop)
        assert (refused.returncode, why in refused.stderr) == (2, True), refused.stderr
        assert shell("git branch", shop).stdout == "* trunk\n"
        assert not (tmp_path / "shop-ui").exists()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("config set team.size 0", "try: set it to a number, 1 to 64"),
        ("start --agent 'claude codex'", "try: queen start --agent claude,codex"),
        ("start --agent 'claude, codex'", "try: queen start --agent claude,codex"),
        ("start 2 --agent true", "try: queen start --agent true --size 2"),
        ("start t-1 --agent true --size 2", "try: queen start --agent true --size 2 --issues t-1"),
        ("start ui --agent calude --size 2", "try: queen start ui --size 2 --agent claude"),
        ("start ui --agent zzz", "try: name one of these clients"),
        ("worktree add human", "no agent can be named human"),
    ],
)
def test_what_would_make_other_agents_than_one_means_is_refused(
    tmp_path: Path, typed: str, said: str
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    shell(SHOP, shop)
    refused = shell(f"queen {typed}", shop)
    assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    assert shell("git branch", shop).stdout == "* trunk\n"


def test_a_team_without_a_repository_or_a_commit_is_told_how_to_make_one(tmp_path: Path) -> None:
    shop, start = tmp_path / "shop", "queen start --agent /bin/true"
    shop.mkdir()
    shell("queen init", shop)
    outside = shell(start, shop)
    assert (outside.returncode, outside.stderr) == (
        2,
        "queen: this is not a git repository\n  try: git init\n",
    )
    shell("git init -q .\nqueen config set land.check true", shop)
    unborn = shell(start, shop)
    assert (unborn.returncode, "no commit to begin with" in unborn.stderr) == (3, True)
    assert shell(suggested_in(unborn.stderr), shop).returncode == 0
    assert "there was no issue to do; to describe one: queen issue new" in shell(start, shop).stdout


def suggested_in(said: str) -> str:
    """Returns the command that a refusal suggests, without the words before it."""
    hint = said.rpartition("  try: ")[2].strip()
    begins = [at for word in ("queen ", "git ", "unset ") if (at := hint.find(word)) >= 0]
    return hint[min(begins) :].partition(", ")[0].partition("; ")[0]


@pytest.mark.some(14)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_command_that_is_suggested_after_a_mistake_works_when_pasted(
    tmp_path: Path, mistake: str
) -> None:
    before, typed, reason = MISTAKES[mistake]
    shop = tmp_path / "shop"
    shop.mkdir()
    made = shell(before, shop)
    assert made.returncode == 0, made.stderr
    place = shop if "shop-ui" not in before.split("&& rm")[0] else tmp_path / "shop-ui"
    export = "export QUEEN_DROID=bo; " if "export" in before else ""
    refused = shell(export + typed, place)
    assert refused.returncode in (1, 2, 4, 5, 6, 7)
    assert reason in refused.stderr
    pasted = shell(export + suggested_in(refused.stderr) + PASTED.get(mistake, ""), place)
    assert pasted.returncode == 0, (refused.stderr, pasted.stderr)


@pytest.mark.thorough
def test_a_check_that_takes_long_is_not_mute(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    shell(f"{SHOP} {WORK} && queen claim t-1", shop)
    impatient = "from queenbee.cli import main, progress, terminal; "
    impatient += "progress._LINE_EVERY_S = terminal._LINE_EVERY_S = 0.1; main.main()"
    land = f"{sys.executable} -c '{impatient}' land --check 'sleep 2'"
    mute = shell(f"{land} --json", tmp_path / "shop-ui")
    assert (mute.returncode, "still working" in mute.stderr) == (0, False)
    shell("echo c > c && git add c && git commit -qm c", tmp_path / "shop-ui")
    spoken = shell(land, tmp_path / "shop-ui")
    assert (spoken.returncode, "queen: still working" in spoken.stdout) == (0, True)
    shell("queen issue new B --id t-2 --as bo && queen claim t-2 --as bo", shop)
    shell("queen issue new C --id t-3 --as bo && queen claim t-3", tmp_path / "shop-ui")
    quick = land.replace("sleep 2", "true")
    waited = shell(f"echo d > d && timeout 3 {quick} -m d --next", tmp_path / "shop-ui")
    assert "waiting for an issue, " in waited.stdout
    assert "still working" not in waited.stdout.partition("waiting for an issue")[2]


def test_undoing_a_setup_names_only_what_it_takes_out(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    shell(SHOP, shop)
    assert shell("queen setup --user", shop).returncode == 4
    assert not (shop / ".git" / "hooks" / "pre-commit").exists()
    assert shell("queen setup --undo", shop).stdout == "No settings of agents had to be changed.\n"
    assert shell("queen setup codex", shop).returncode == 0
    undone = shell("queen setup --undo", shop)
    assert (undone.returncode, "unchanged" in undone.stdout) == (0, False)
    assert "AGENTS.md" in undone.stdout


def test_a_dependency_is_confirmed(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    shell(f"{SHOP} && queen --as ana issue new Second --id t-2", shop)
    assert shell("queen --as ana issue dep t-2 t-1", shop).stdout == "t-2 waits for t-1\n"
    gone = shell("queen --as ana issue dep t-2 t-1 --remove", shop)
    assert gone.stdout == "t-2 waits for no issue\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("msg list", "'inbox'"),
        ("gate create", "'new'"),
    ],
)
def test_a_command_of_another_noun_is_named(tmp_path: Path, typed: str, meant: str) -> None:
    assert f"Did you mean {meant}" in shell(f"queen {typed}", tmp_path).stderr


@pytest.mark.parametrize("shared", ["true", SHARED], ids=["alone", "shared"])
def test_leaving_a_repository_works_line_by_line(tmp_path: Path, shared: str) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    lands = "echo c > c && git -C ../shop checkout -q -b other && queen land -m c"
    begun = shell(
        f"{SHOP} && git add .beads && git commit -qm hive && {shared} && queen guard install "
        f"{WORK} && {lands} && cd ../shop && git checkout -q trunk "
        "&& queen worktree remove shop-ui",
        shop,
    )
    assert begun.returncode == 0, begun.stderr
    page = (Path(__file__).parents[2] / "docs" / "install.md").read_text()
    block = page.partition("## Leave a repository")[2].partition("```sh\n")[2].partition("```")[0]
    for line in block.replace("landing-main", "landing-trunk").splitlines():
        ran = shell(line, shop)
        assert ran.returncode == 0, (line, ran.stderr)
    assert [each.name for each in (shop / ".git").iterdir() if "queenbee" in each.name] == []
    assert len(shell("git worktree list", shop).stdout.splitlines()) == 1
    assert not (shop / ".beads").exists()
    assert shell("git commit -qm left && ls .git/hooks | grep -v sample", shop).stdout == ""
    assert "there is no hive here" in shell("queen status", shop).stderr
