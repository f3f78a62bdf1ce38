"""`queen watch --web` under test: the real process, and a browser that is only a connection."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import NamedTuple

from hives import COMMAND


class Answer(NamedTuple):
    """What was answered to one request."""

    status: int
    headers: dict[str, str]
    text: str


class Served:
    """A page that is served, and the process that serves it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.address = process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", self.address)
        assert found is not None, self.address
        self.port, self.token = int(found[1]), found[2]
        self.origin = f"http://127.0.0.1:{self.port}"

    def end(self) -> str:
        """Ends it as Ctrl-C does; returns what it has complained of."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        return said

    def ask(self, path: str, *, method: str = "GET", body: str = "", **headers: str) -> Answer:
        """Sends one request."""
        known = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body=body or None, headers=known)
        answer = connection.getresponse()
        is_stream = answer.getheader("Content-Type", "").startswith("text/event-stream")
        text = _first_event(answer) if is_stream else answer.read()
        found = Answer(answer.status, dict(answer.getheaders()), text.decode())
        connection.close()
        return found

    def enter(self) -> dict[str, str]:
        """Opens the address; returns the headers with which its page asks."""
        entered = self.ask(f"/?token={self.token}")
        assert entered.status == 303
        cookie, key = entered.headers["set-cookie"].partition(";")[0], entered.headers["location"]
        known = {"Cookie": cookie, "X_Queen_Key": key.removeprefix("/#")}
        return {**known, "Origin": self.origin}

    def act(self, name: str, about: str, text: str = "", **headers: str) -> Answer:
        """Presses a button of the page."""
        body = json.dumps({"act": name, "about": about, "text": text})
        return self.ask("/act", method="POST", body=body, **(headers or self.enter()))


def _first_event(answer: HTTPResponse) -> bytes:
    """Returns the first event of a stream, which never ends."""
    return next(line for line in iter(answer.readline, b"") if line.startswith(b"data: "))


@contextmanager
def served(repo: Path, *options: str) -> Iterator[Served]:
    """Serves the page of the hive in a folder."""
    command = [*COMMAND, *options, "watch", "--web"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=repo, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield Served(process)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
