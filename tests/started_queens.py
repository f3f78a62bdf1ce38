"""`queen` in a process of its own, at a third of the price: forked off one that has imported it.

Each process of tests has one such server, which ends with it. A command gets its own arguments,
environment, folder and standard streams, as if it had been started; only the interpreter's start
and the imports are not done again. What Python's own start decides is really started.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import queenbee
from queenbee.cli.main import main
from queenbee.store.callers import agent_above

WAIT_S = 60
MOST_INPUT = 2**15
"""Bytes of standard input that a pipe takes before anybody reads."""
_OF_PYTHON = ("PYTHON", "LD_", "LC_", "LANG", "COV", "TZ")
"""Variables that count once, when Python starts."""

_STREAMS = ((0, "r"), (1, "w"), (2, "w"))


def can_run(env: Mapping[str, str], stdin: bytes) -> bool:
    """Returns whether a forked process does just what a started one would."""
    if not hasattr(os, "pidfd_open") or any(name.startswith("COV") for name in env):
        return False  # Not Linux, or the processes are measured.
    return len(stdin) <= MOST_INPUT and _of_python(env) == _of_python(os.environ)


def run(
    arguments: Sequence[str | bytes], cwd: Path, env: Mapping[str, str], stdin: bytes
) -> tuple[int, str, str]:
    """Runs one command; returns its status, and what it wrote to output and error."""
    asked = json.dumps([[*map(os.fsdecode, arguments)], os.fspath(cwd), dict(env)])
    request, (read_in, write_in) = os.memfd_create("request"), os.pipe()
    (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe()
    answer, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with answer, open(read_out, "rb", 0) as out, open(read_err, "rb", 0) as err:
        with theirs:
            os.write(request, asked.encode())
            given = [request, read_in, write_out, write_err]
            socket.send_fds(_server(os.getpid()), [b"run"], [theirs.fileno(), *given])
        for each in given:
            os.close(each)
        with suppress(BrokenPipeError):
            os.write(write_in, stdin)
        os.close(write_in)
        pid = int(answer.recv(32))
        said = _read([out, err], time.monotonic() + WAIT_S)
        if said is None or not select.select([answer], [], [], WAIT_S)[0]:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired([*arguments], WAIT_S)
        return int(answer.recv(32)), said[0].decode(), said[1].decode()


@cache
def _server(owner: int) -> socket.socket:
    """Returns where this process asks its server for commands."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    tests = str(Path(__file__).parent)
    code = f"import sys; sys.path[:0] = {[tests, str(Path(tests).parent)]!r}; import started_queens"
    atexit.register(ours.close)
    with theirs:
        theirs.set_inheritable(True)
        code += f"; started_queens._serve({theirs.fileno()})"
        os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
    return ours


def _of_python(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_OF_PYTHON)}


def _read(files: Sequence[BinaryIO], deadline: float) -> list[bytes] | None:
    """Returns what is written to pipes until they are closed; None if that takes too long."""
    found = {each.fileno(): bytearray() for each in files}
    with selectors.DefaultSelector() as waiting:
        for fd in found:
            waiting.register(fd, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(deadline - time.monotonic())
            if not ready:
                return None
            for key, _ in ready:
                data = os.read(key.fd, 2**16)
                found[key.fd] += data
                if not data:
                    waiting.unregister(key.fd)
    return [bytes(each) for each in found.values()]


def _serve(fd: int) -> None:
    """Forks a process for each request, and says its number and its end, until nobody can ask."""
    if agent_above._has_client_above():  # In tests that an agent runs, it types for a person.
        agent_above._has_client_above = bool
    for module in pkgutil.walk_packages(queenbee.__path__, "queenbee."):
        with suppress(ImportError):  # An extra that is not there.
            import_module(module.name)
    gc.collect()
    gc.freeze()
    running = dict[int, tuple[int, socket.socket]]()
    with socket.socket(fileno=fd) as requests, select.epoll() as waiting:
        waiting.register(fd, select.EPOLLIN)
        while True:
            for ready, _ in waiting.poll():
                if ready != fd:
                    pid, answer = running.pop(ready)
                    waiting.unregister(ready)
                    os.close(ready)
                    with answer, suppress(OSError):
                        _, status = os.waitpid(pid, 0)
                        answer.send(b"%d" % os.waitstatus_to_exitcode(status))
                    continue
                message, fds, _, _ = socket.recv_fds(requests, 16, 5)
                if not message:
                    return
                if (pid := os.fork()) == 0:
                    _become(fds[1], fds[2:])
                answer = socket.socket(fileno=fds[0])
                answer.send(b"%d" % pid)
                for each in fds[1:]:
                    os.close(each)
                running[process := os.pidfd_open(pid)] = (pid, answer)
                waiting.register(process, select.EPOLLIN)


def _become(request: int, streams: Sequence[int]) -> None:
    """Runs the command in this process, and ends it."""
    status: Any = 70
    try:
        os.lseek(request, 0, os.SEEK_SET)
        with open(request, "rb") as file:
            arguments, cwd, env = json.loads(file.read())
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        os.closerange(3, 2**12)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.argv[1:] = arguments
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(each, mode) for each, mode in _STREAMS)
        status = main()
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status or 0)
