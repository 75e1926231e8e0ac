"""What the Inspector is let loose on: one fake server, and the installed mcpzip before it, on stdio and over
HTTP. Nothing is cut down for it: what the tools do is everything that a call may do.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from helpers.inspector import Inspector, Json
from helpers.serve_http import listening
from mcpzip_fakes.launch import Fakes, FakeServer
from mcpzip_fakes.scenario import Scenario

TOKEN = "e2e-token-of-32-characters-or-so"
ROOT = {"uri": "file:///here", "name": "here"}
RESOURCE = "mcpzip://shop/memo://today"
KNOCK = "somebody is at the door"
EVERY_KIND: Json = {
    "content": [
        {"type": "text", "text": "grüezi “wohl” \u2028 😀", "annotations": {"priority": 0.5}},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "memo://today", "text": "x", "mimeType": "text/plain"}},
        {"type": "resource_link", "uri": "memo://today", "name": "today"},
    ],
    "structuredContent": {"n": 1, "x": 1.5, "none": None, "deep": [[{"a": []}]]},
    "_meta": {"shop/till": 7},
}
TOOLS = [
    {"name": "show", "result": {"raw": json.dumps(EVERY_KIND)}},
    {"name": "write", "result": {"text": "written", "updates": ["memo://today"]}},
    {"name": "knock", "result": {"text": "knocked", "log": [{"level": "info", "data": KNOCK}]}},
    {"name": "slow", "result": {"text": "at last", "delay": 60}},
    {"name": "fail", "result": {"text": "on fire", "isError": True}},
    {"name": "refuse", "result": {"error": {"code": -32050, "message": "out of paper"}}},
    {
        "name": "sign_in",
        "result": {
            "ask": {
                "method": "elicitation/create",
                "params": {
                    "mode": "url",
                    "message": "Sign in, please.",
                    "url": "https://example.com/sign-in",
                    "elicitationId": "e-1",
                },
            }
        },
    },
]

columns = pytest.mark.parametrize(
    ("server", "era"),
    [
        pytest.param(*column, id="-".join(column))
        for column in product(("stdio", "http"), ("legacy", "modern"))
    ],
)


@dataclass(frozen=True)
class Referee:
    """inspector: knows mcpzip as ``stdio``, ``http`` and, without the token, ``stranger``. shop: the fake
    behind both."""

    inspector: Inspector
    shop: FakeServer


@contextmanager
def refereed(mcpzip: str, folder: Path) -> Iterator[Referee]:
    """Everything is up inside the block, and gone after it. The Inspector starts `mcpzip serve` for every
    request, each in front of the same daemon.
    """
    config, servers, home = folder / "config.json", folder / "mcp.json", folder / "home"
    home.mkdir()
    with Fakes(folder / "fakes") as fakes:
        known = list(Scenario.load("questions").tools)
        shop = fakes.start("questions", name="shop", tools=[*known, *TOOLS])
        entry = {**shop.config, "pin": ["show", "book_table"]}
        kept = {"mcpServers": {"shop": entry}, "daemon": {"idle_minutes": 0.05}}
        config.write_text(json.dumps(kept), "utf-8")
        with listening(mcpzip, config, TOKEN) as url:
            ours = {"roots": [ROOT], "modernLogLevel": "info"}
            stdio = {"command": mcpzip, "args": ["serve", "--config", str(config)]}
            http = {"type": "streamable-http", "url": url}
            known_to_it = {
                "stdio": {**stdio, **ours},
                "http": {**http, **ours, "headers": {"Authorization": f"Bearer {TOKEN}"}},
                "stranger": http,
            }
            servers.write_text(json.dumps({"mcpServers": known_to_it}), "utf-8")
            yield Referee(Inspector(servers, home), shop)
