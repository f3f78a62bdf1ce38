"""Clients that a person watches and answers: in this terminal, or each in a window of tmux.

They are started as in a team, and then left to that person: nobody starts them again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from queenbee.core.command_lines import command_line
from queenbee.errors import MissingPackage
from queenbee.store.droids.identity import VARIABLES
from queenbee.store.git_files.host_tokens import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.command_lines import CommandLine


def open_clients(
    clients: Mapping[str, tuple[str, CommandLine, Mapping[str, str]]],
    env: Mapping[str, str],
    path: str,
) -> None:
    """Opens clients, by the names of their agents, each with its worktree, command and variables;
    returns when the person has left them. `path` is the PATH that finds `queen`; they get no token
    of a code host, and no ssh-agent, that `env` has not.

    Raises `MissingPackage` for several without tmux.
    """
    if len(clients) == 1:
        ((tree, argv, own),) = clients.values()
        others = {key: value for key, value in env.items() if key not in VARIABLES}
        _run(argv, cwd=tree, env={**others, **own, "PATH": path})
        return
    tmux = shutil.which("tmux", path=env.get("PATH"))
    if tmux is None:
        raise MissingPackage(
            "several agents in terminals need tmux, which is not on the PATH",
            hint="install tmux, or start one: queen start --interactive --size 1",
        )
    inside, session = bool(env.get("TMUX")), f"queen-{os.getpid()}"
    # A window has the environment of the server of tmux.
    unset = [word for each in (*VARIABLES, *sorted(NAMES - env.keys())) for word in ("-u", each)]
    for number, (name, (tree, argv, own)) in enumerate(clients.items()):
        named = [f"{each}={value}" for each, value in {**own, "PATH": path}.items()]
        command = ["env", *unset, *named, *argv]
        if number == 0 and not inside:
            where = ["new-session", "-d", "-s", session]
        else:
            where = ["new-window", "-d", *([] if inside else ["-t", session])]
        folder = tree.replace("#", "##")  # tmux runs what a `#(…)` in it names.
        values = [_word(each) for each in command]
        opened = command_line(tmux, *where, f"-n{name}", f"-c{_word(folder)}", values=values)
        _run(opened, env=env, check=True)
    if not inside:
        _run(command_line(tmux, "attach", "-t", session), env=env)


def _word(text: str) -> str:
    """Returns an argument for tmux, to which a last semicolon ends a command of its own."""
    return rf"{text[:-1]}\;" if text.endswith(";") else text


def _run(
    command: CommandLine, *, env: Mapping[str, str], cwd: str | None = None, check: bool = False
) -> None:
    subprocess.run(command, cwd=cwd, env=env, check=check)
