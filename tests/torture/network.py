"""A network that cannot be relied on, between clones and the server of their remote."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress

from http_remote import HttpRemote

from tests.torture.places import ENVIRONMENT, require

_GRACE_S = 60
_SLOW = 0.1
"""So many of the connections are slow: every piece of theirs waits up to `_LONGEST_WAIT_S`."""
_LONGEST_WAIT_S = 0.2

_PIECE_BYTES = 65_536


class Server:
    """A server of the bare repositories in a folder: `git daemon`, or smart HTTP."""

    def __init__(self, folder: str, kind: str) -> None:
        self.kind = kind
        self._http = HttpRemote(folder) if kind == "http" else None
        self._daemon: subprocess.Popen[bytes] | None = None
        if self._http is not None:
            self.port = self._http.port
            return
        self.port = _free_port()
        self._daemon = subprocess.Popen(
            ["git", "daemon", f"--base-path={folder}", "--export-all", "--enable=receive-pack",
             "--listen=127.0.0.1", f"--port={self.port}", "--reuseaddr", folder],
            env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        _await_port(self.port)

    def url(self, port: int, name: str) -> str:
        """Returns the address of a repository, through a port that leads here."""
        return f"{'http' if self._http else 'git'}://127.0.0.1:{port}/{name}"

    def stop(self) -> None:
        """Ends the server, and only it."""
        if self._http is not None:
            self._http.stop()
        if self._daemon is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._daemon.pid, signal.SIGKILL)
            self._daemon.wait()


class Proxy(threading.Thread):
    """Stands between one clone and the server: delays, truncates and drops connections."""

    def __init__(
        self, port: int, seed: int, *, cuts: float, most_bytes_s: float | None = None
    ) -> None:
        super().__init__(daemon=True)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._most_bytes_s = most_bytes_s
        """How fast the link is; None for as fast as it can be."""
        if most_bytes_s is not None:  # Else the kernel takes all, and the client sees no slow link.
            self._server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _PIECE_BYTES)
        self.port = self._server.getsockname()[1]
        self._to = port
        self._random = random.Random(seed)
        self.cuts = cuts
        self._down_until = 0.0
        self.served = 0
        self.cut = 0
        self.delayed = 0
        self.partitions = 0

    def run(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def part(self, seconds: float) -> None:
        """Lets nothing through for so long; what is under way is cut off too."""
        self._down_until = time.monotonic() + seconds
        self.partitions += 1

    def stop(self) -> None:
        """Accepts nobody any more."""
        self._server.close()

    def _is_down(self) -> bool:
        return time.monotonic() < self._down_until

    def _serve(self, client: socket.socket) -> None:
        # Many end within the first bytes of an answer: the push counted, and nobody was told.
        bad = self._random.random() < self.cuts
        slow = bool(self.cuts) and self._random.random() < _SLOW
        limit = int(2 ** self._random.uniform(0, 13)) if bad else None
        which = self._random.random() < 0.5
        self.served += 1
        self.delayed += slow
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._to)) as remote:
            if self._is_down() or (bad and self._random.random() < 0.2):
                self.cut += 1
                return
            up = threading.Thread(
                target=self._pump, args=(client, remote, limit if which else None, slow),
                daemon=True,
            )  # fmt: skip
            up.start()
            self._pump(remote, client, None if which else limit, slow)
            up.join(5)

    def _pump(
        self, source: socket.socket, target: socket.socket, limit: int | None, slow: bool
    ) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(_PIECE_BYTES):
                if self._most_bytes_s is not None:
                    time.sleep(len(data) / self._most_bytes_s)
                if slow:
                    time.sleep(self._random.uniform(0, _LONGEST_WAIT_S))
                truncated = limit is not None and passed + len(data) > limit
                if truncated or self._is_down():
                    if truncated and limit is not None:
                        target.sendall(data[: limit - passed])
                    self.cut += 1
                    for each in (source, target):
                        each.shutdown(socket.SHUT_RDWR)
                    return
                passed += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _await_port(port: int) -> None:
    until = time.monotonic() + _GRACE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            require(time.monotonic() < until, "git daemon did not start")
            time.sleep(0.05)
