"""A page on loopback: served to this machine alone, and to nobody who came by another name."""

from __future__ import annotations

import errno
import os
import sys
import threading
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fishergraph._errors import InputError
from fishergraph._validation import check_integer

HOST = "127.0.0.1"
PORT = 8760  # the first that is tried if nobody names one
_TRIED = 20
_NAMES = (HOST, "localhost")


class Served:
    """A page that is being served on this machine.

    Use it in a `with` statement, or call `close` at the end. Nothing but the page is served, to requests from this
    machine alone.

    Parameters
    ----------
    page : str
        The document.
    port : int, optional
        The port; None takes a free one.

    Attributes
    ----------
    url : str
        Its address.

    See Also
    --------
    Page.show : Serve a page, and open it.

    Examples
    --------
    >>> from fishergraph.explore import Served
    >>> with Served("<p>hello</p>") as served:
    ...     served.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, page: str, port: int | None = None):
        self._server = _bind(page.encode("utf-8"), port)
        self.url = f"http://{HOST}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        self._thread.start()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Served({self.url!r})"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self) -> None:
        """Wait until the server stops, or somebody interrupts it."""
        while self._thread.is_alive():
            self._thread.join(0.5)


def _bind(page: bytes, port: int | None) -> ThreadingHTTPServer:
    """A server on the port, or on the first free one."""
    if port is not None:
        port = check_integer(port, "port", least=0, most=65_535)
    handler = _handler(page)
    for candidate in [port] if port is not None else [*range(PORT, PORT + _TRIED), 0]:
        try:
            return _Server((HOST, candidate), handler)
        except OSError as error:
            if port is None and error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            taken = "is used by another program" if error.errno == errno.EADDRINUSE else "needs more rights"
            expected = "be a port that is free"
            advice = "choose another one, or leave it out and a free one is taken"
            raise InputError(
                parameter="port", value=port, expected=expected, got=f"{port}, which {taken}", advice=advice
            ) from None
    raise AssertionError("the system gives out a free port")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # elsewhere it would share the port with another program


def _handler(page: bytes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "fishergraph", ""

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            # Another name for this machine may be that of a page elsewhere which wants to read this one.
            host = self.headers.get("Host", "").rpartition(":")[0]
            if host not in _NAMES:
                return self.send_error(HTTPStatus.FORBIDDEN)
            if self.path.partition("?")[0] != "/":
                return self.send_error(HTTPStatus.NOT_FOUND)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            pass  # the library prints nothing

    return Handler


_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def has_display() -> bool:
    """Whether a browser of this machine has somewhere to show itself."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and not os.environ.get("SSH_CONNECTION")


def open_browser(url: str) -> bool:
    """Open an address in the browser, if there is a display; whether it was opened."""
    if not has_display():
        return False
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
