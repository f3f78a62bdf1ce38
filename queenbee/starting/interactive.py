"""Clients that a person watches and answers: in this terminal, or each in a window of tmux.

They are started as in a team, and then left to that person: nobody starts them again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from queenbee.errors import MissingPackage
from queenbee.store.droids.identity import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SESSION = "queen"


def open_clients(
    clients: Mapping[str, tuple[str, Sequence[str]]], env: Mapping[str, str], path: str
) -> None:
    """Opens clients, by the names of their agents, each with its worktree and command; returns when
    the person has left them. `path` is the PATH that finds `queen`.

    Raises `MissingPackage` for several without tmux.
    """
    if len(clients) == 1:
        ((tree, argv),) = clients.values()
        others = {key: value for key, value in env.items() if key not in VARIABLES}
        subprocess.run(argv, cwd=tree, env={**others, "PATH": path}, check=False)
        return
    tmux = shutil.which("tmux", path=env.get("PATH"))
    if tmux is None:
        raise MissingPackage(
            "several agents in terminals need tmux, which is not on the PATH",
            hint="install tmux, or start one: queen start --interactive --size 1",
        )
    inside = bool(env.get("TMUX"))
    for number, (name, (tree, argv)) in enumerate(clients.items()):
        unset = [word for each in VARIABLES for word in ("-u", each)]
        command = ["env", *unset, f"PATH={path}", *argv]
        is_first = number == 0 and not inside
        where = ["new-session", "-d", "-s", f"{_SESSION}-{os.getpid()}"]
        if not is_first:
            where = ["new-window", "-d", *([] if inside else ["-t", where[-1]])]
        subprocess.run([tmux, *where, "-n", name, "-c", tree, *command], check=True, env=env)
    if not inside:
        subprocess.run([tmux, "attach", "-t", f"{_SESSION}-{os.getpid()}"], check=False, env=env)
