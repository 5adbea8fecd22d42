"""The document: template, style, script and data in one file that needs nothing else.

Text from the data is never markup. It is JSON in a script that does not run, with `<` escaped, and the script of the
page shows it as text. The policy of the document lets its own script run, by its digest, and no other; it allows no
connection. `unsafe-eval` is for the shaders of regl, which compiles its draw calls.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from fishergraph._version import __version__

_PLACE = re.compile(r"\{\{(\w+)\}\}")


@cache
def asset(name: str) -> str:
    """A file of the page."""
    return (files("fishergraph") / "explore" / "assets" / name).read_text("utf-8")


def as_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def document(about: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """The page as text."""
    script, style = asset("page.js"), asset("page.css")
    policy = (
        f"default-src 'none'; script-src {_digest(script)} 'unsafe-eval'; style-src {_digest(style)}; "
        "img-src blob:; worker-src blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    values = {
        "policy": policy,
        "version": html.escape(__version__),
        "title": html.escape(about["title"]),
        "style": style,
        "about": as_json(about),
        "parts": "\n".join(f'<script type="text/plain" id="{name}">{text}</script>' for name, text in parts.items()),
        "script": script,
    }
    return _PLACE.sub(lambda place: values[place[1]], asset("page.html"))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def frame(page: str, height: int = 640) -> str:
    """The page in a frame of its own, for a notebook: it may run its script and save files, and nothing else."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-downloads" title="fishergraph explorer" '
        f'style="width:100%;height:{height}px;border:1px solid rgba(128,128,128,.35);border-radius:8px"></iframe>'
    )
