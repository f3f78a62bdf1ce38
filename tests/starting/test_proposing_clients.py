"""Claude Code and Codex on a bad day of the host that they propose to: the real ones, with the real
`gh`, and a scripted model that knows nothing but what it is told. `make host` runs it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from crowds import WAITS, Crowd, judge
from hives import git
from scripted_host import REAL, SLUG, ScriptedHost, put_gh

from bench.clients.cells import Playing
from bench.clients.install import NotInstalled, installed
from bench.clients.known import CLAUDE, CODEX, Client, Start
from bench.clients.model import Model, Play, Script
from bench.clients.wires import Request, Said
from bench.clients.world import World
from queenbee import Hive
from queenbee.store.layout import discover

pytestmark = [
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.skipif(REAL not in os.environ, reason="no real gh is named: make host"),
]
CLIENTS = {"amber": CLAUDE, "birch": CODEX}
_PROMPT = "You are"
"""How the prompt of `queen start` begins."""
_MENDS = (
    "git diff --name-only --diff-filter=U | while read name; do "
    "sed -i '/^[<=>|]\\{{7\\}}/d' $name; git add $name; done; echo line >> {0}.txt; echo it is done"
)
_DIES = "test -e ../died || {{ touch ../died; kill -9 $PPID; }}; " + _MENDS


@pytest.fixture
def model() -> Iterator[Model]:
    served = Model()
    yield served
    served.close()


@pytest.fixture
def world(tmp_path: Path, model: Model) -> World:
    """A machine with both clients, whose user is logged in to the host with `gh`."""
    try:
        programs = [installed(each, each.versions[0]) for each in CLIENTS.values()]
    except NotInstalled as why:
        pytest.skip(str(why))
    made = World(tmp_path / "w", CLAUDE, programs[0], model)
    paths = os.pathsep.join(str(each.parent) for each in programs)
    put_gh(
        tmp_path / "gh", tmp_path / "h", made.env.__setitem__, path=f"{made.env['PATH']}:{paths}"
    )
    del made.env["GH_TOKEN"]  # No agent gets one.
    login = "github.com:\n  user: me\n  oauth_token: x\n  git_protocol: https\n"
    (tmp_path / "gh" / "config" / "hosts.yml").write_text(login)
    (made.home / ".bash_profile").write_text(f"export PATH='{made.env['PATH']}'\n")
    return made.furnish(issues=[])


@pytest.fixture
def host(world: World, tmp_path: Path) -> Iterator[ScriptedHost]:
    git(world.repo, "clone", "-q", "--bare", str(world.repo), str(tmp_path / "hub"))
    found = ScriptedHost(tmp_path / "hub", tmp_path / "h")
    git(world.repo, "remote", "add", "origin", str(tmp_path / "hub"))
    git(world.repo, "fetch", "-q", "origin")
    git(world.repo, "config", "queenbee.host", f"github.com/{SLUG}")
    yield found
    found.stop()


@pytest.mark.parametrize("has_queue", [False, True], ids=["auto", "queue"])
def test_two_clients_land_all_once_and_are_told_once(
    world: World, host: ScriptedHost, model: Model, *, has_queue: bool
) -> None:
    host.queue = has_queue
    for name, value in (("target", "origin/main"), ("by", "pr"), ("merge", "auto")):
        world.queen("config", "set", f"land.{name}", value)
    world.queen("config", "set", "land.check", "true")
    world.queen("setup", "codex")
    for number in range(1, 7):
        made = ("issue", "new", f"Write x-{number}", "--id", f"x-{number}")
        world.queen(*made, droid="human")
    for waits, first in WAITS:
        world.queen("issue", "dep", waits, first, droid="human")
    world.commit("issues")
    git(world.repo, "push", "-q", str(host.repo), "main:refs/heads/begin")
    host.git("update-ref", "refs/heads/main", "begin")
    host.git("update-ref", "-d", "refs/heads/begin")
    world.queen("config", "trust", "--yes", droid="human")
    model.plays["team"] = Play(**{f"{_PROMPT} {x}": _worker(y) for x, y in CLIENTS.items()})
    address = model.address("team")
    _trust(world, address)
    layout = discover(str(world.repo), {})
    crowd = Crowd(host, Path(layout.state_dir))
    crowd.start()
    try:
        out = _team(world, address)
    finally:
        crowd.is_over = True
    assert (world.repo.parent / "died").exists()
    with Hive.open(world.repo, env={}) as hive:
        judge(hive, crowd, out)


def _trust(world: World, address: str) -> None:
    """Writes what the user of the machine has told both clients."""
    trees = [world.repo, *(world.folder / f"repo-{name}" for name in CLIENTS)]
    for each in CLIENTS.values():
        each.trust(world.home, trees)
    settings = world.home / ".codex" / "config.toml"
    settings.write_text(settings.read_text().replace("http://127.0.0.1:9", address))
    for each in CLIENTS.values():
        world.queen("setup", each.name)


def _team(world: World, address: str) -> str:
    start = Start("", address, lands=True)
    envs = CLAUDE.env(start) | CODEX.env(start) | {"IS_SANDBOX": "1"}
    queen = shutil.which("queen", path=world.env["PATH"]) or "queen"
    agents = ("--agent", ",".join(each.name for each in CLIENTS.values()), "--yolo")
    ran = subprocess.run(
        [queen, "start", *CLIENTS, *agents, "--no-trial", "--max-minutes", "8"],
        cwd=world.repo, env=world.env | envs, capture_output=True, text=True, timeout=540,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _worker(client: Client) -> Script:
    """Returns a model that knows no more than its conversation: whoever is killed begins anew."""

    def script(request: Request) -> Playing:
        while True:
            request = yield _next(client, request)

    return script


def _next(client: Client, request: Request) -> Said:
    if f"{_PROMPT} " in request.last:
        mine = re.search(r"add (--as \S+) to each command", request.talk)
        return client.shell(f"queen next {mine[1].rstrip('.') if mine else ''}")
    if task := re.search(r"yours: Write (x-\d)", request.last):
        return client.shell((_DIES if task[1] == "x-2" else _MENDS).format(task[1]))
    if "it is done" in request.last:
        *_, land = re.findall(r"done: (queen land [^\n\"\\]*)", request.talk)
        return client.shell(land.replace("WHAT YOU DID", "it is written"))
    return "Nothing is left for now."
