"""A local web server with scripted failures."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Web:
    """The files of the server, its behaviour, and the requests that it received."""

    content: dict[str, bytes] = field(default_factory=dict)
    etag: str | None = '"one"'
    ranges: bool = True
    heed_if_range: bool = True
    encoding: str | None = None
    # Called with the number of the request. Return an HTTP status to answer instead, or a negative number of bytes
    # after which the connection is closed, or None for a normal answer.
    trouble: Callable[[int], int | None] = lambda number: None
    retry_after: str | None = None
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


@pytest.fixture
def web() -> Iterator[Web]:
    state = Web()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            state.requests.append((self.path, self.headers.get("Range")))
            self.close_connection = True
            trouble = state.trouble(len(state.requests))
            if trouble is not None and trouble > 0:
                self.send_response(trouble)
                if state.retry_after:
                    self.send_header("Retry-After", state.retry_after)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            content = state.content.get(self.path.lstrip("/"))
            if content is None:
                self.send_error(404)
                return
            start, total = 0, len(content)
            asked = self.headers.get("Range")
            same = not state.heed_if_range or self.headers.get("If-Range") in (None, state.etag)
            if asked and state.ranges and same:
                start = int(asked.removeprefix("bytes=").rstrip("-"))
                if start >= total:
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
            else:
                self.send_response(200)
            if state.etag:
                self.send_header("ETag", state.etag)
            if state.encoding:
                self.send_header("Content-Encoding", state.encoding)
            self.send_header("Content-Length", str(total - start))
            self.end_headers()
            end = total if trouble is None else min(total, start - trouble)
            self.wfile.write(content[start:end])

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        server.shutdown()
        thread.join()


def tree(folder: Path) -> list[str]:
    """Relative paths of all files in a folder, hidden ones too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(name="tree")
def tree_fixture() -> Callable[[Path], list[str]]:
    return tree
