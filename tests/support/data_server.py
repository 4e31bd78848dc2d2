"""A web server on this machine for downloads: it breaks off, forgets ranges or lies as told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class DataServer(ThreadingHTTPServer):
    """Serves `files`; `breaks_after` holds how many bytes each of the next answers sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.breaks_after: list[int] = []
        self.knows_ranges = True
        self.ranges: list[str | None] = []

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    server: DataServer

    def do_GET(self) -> None:
        content = self.server.files.get(self.path.strip("/"))
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        if content is None:
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if not self.server.knows_ranges:
            start = 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        stop = len(content)
        if self.server.breaks_after:
            stop = start + self.server.breaks_after.pop(0)
        self.wfile.write(content[start:stop])
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def data_server() -> Iterator[DataServer]:
    with DataServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
