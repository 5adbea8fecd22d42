"""The page on loopback: to this machine alone, under its own names alone."""

from __future__ import annotations

import http.client
import socket

import numpy as np
import pytest

from fishergraph._errors import InputError
from fishergraph.explore import explore, serve
from fishergraph.explore.serve import Served, has_display, open_browser


def asked(served, path="/", host=None, method="GET"):
    """Status, body and headers of an answer."""
    port = int(served.url.rsplit(":", 1)[1].rstrip("/"))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    body = answer.read().decode("utf-8")
    connection.close()
    return answer.status, body, answer.headers


def test_the_page_is_served():
    with Served("<p>ä</p>") as served:
        status, body, headers = asked(served)
        assert (status, body) == (200, "<p>ä</p>")
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"
        assert asked(served, "/?x=1")[0] == 200
        assert asked(served, method="HEAD")[:2] == (200, "")
    with pytest.raises(ConnectionError):
        asked(served)


@pytest.mark.parametrize("path", ["/etc/passwd", "/../x", "/favicon.ico", "*"])
def test_nothing_else_is_served(path):
    with Served("page") as served:
        assert asked(served, path)[0] == 404


@pytest.mark.parametrize(("host", "status"), [("localhost:1", 200), ("evil.example:80", 403), ("evil", 403)])
def test_other_names_are_refused(host, status):
    with Served("page") as served:
        assert asked(served, host=host)[0] == status


def test_it_listens_on_loopback_alone():
    with Served("page") as served:
        assert served._server.server_address[0] == "127.0.0.1"


def test_a_port_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=str(port)):
            Served("page", port)
    with pytest.raises(InputError, match="port"):
        Served("page", 70_000)


def test_the_next_free_port_is_taken(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(serve, "PORT", taken.getsockname()[1])
        monkeypatch.setattr(serve, "_TRIED", 1)
        with Served("page") as served:
            assert asked(served)[0] == 200


def test_no_display(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    assert not has_display()
    assert not open_browser("http://127.0.0.1:1/")
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_display()
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert open_browser("http://127.0.0.1:1/")
    monkeypatch.setenv("SSH_CONNECTION", "far away")
    assert not open_browser("http://127.0.0.1:2/")
    assert opened == ["http://127.0.0.1:1/"]


def test_showing_a_page(monkeypatch):
    opened = []
    monkeypatch.setattr("fishergraph.explore.page.open_browser", opened.append)
    page = explore(np.random.default_rng(0).normal(size=(20, 3)), maps="pca")
    with page.show() as served:
        assert asked(served)[1] == page.html
        assert opened == [served.url]
        assert served.url in repr(served)
    with page.show(browser=False):
        assert len(opened) == 1
