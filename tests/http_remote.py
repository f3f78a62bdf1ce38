"""Bare repositories over smart HTTP: `git http-backend` behind a server of Python's library."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

_Request = socket.socket | tuple[bytes, socket.socket]
REFUSED_TO_ANYBODY = {"WWW-Authenticate": 'Basic realm="git"'}


class HttpRemote(ThreadingHTTPServer):
    """Serves the bare repositories of a folder, for reading and for pushing, until `stop`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.refuse: Callable[[str], int] = lambda path: 0
        """Returns the status that a request to a path is refused with; 0 if it is served."""
        self.requests: list[str] = []
        self.chunked: list[str] = []
        """The paths to which a body came in chunks."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = int(self.server_address[1])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: _Request, client_address: object) -> None:
        """Tells what went wrong here; a client that was killed, or cut off, is what tests do."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpRemote

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self._body())

    def log_message(self, *arguments: object) -> None:
        """Logs nothing."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.chunked.append(self.path)
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _serve(self, body: bytes) -> None:
        try:
            self._run(body)
        except OSError as error:  # Nobody there any more, or no process to be had.
            self._answer(503, {}, str(error).encode())

    def _run(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        self.server.requests.append(f"{self.command} {self.path}")
        status = self.server.refuse(self.path)
        if status:
            self._answer(status, REFUSED_TO_ANYBODY if status == 401 else {}, b"refused")
            return
        done = subprocess.run(
            ["git", "http-backend"], input=body, capture_output=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "http.receivepack",
                "GIT_CONFIG_VALUE_0": "true",
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROJECT_ROOT": self.server.folder,
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": unquote(path),
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REMOTE_ADDR": "127.0.0.1",
            },
        )  # fmt: skip
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [line.partition(": ")[::2] for line in head.decode().split("\r\n") if line]
        headers = {name: value for name, value in fields if name != "Status"}
        said = dict(fields).get("Status", "200" if done.returncode == 0 else "500")
        self._answer(int(said.split()[0]), headers, content)

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
