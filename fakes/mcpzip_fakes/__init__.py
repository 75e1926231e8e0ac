"""Fakes: real MCP servers on real transports that follow a scenario, faults included.

    from mcpzip_fakes import Fakes, Scenario, Tool, fault
    with Fakes(directory) as fakes:
        server = fakes.start(tools=["pay"], faults=[fault("crash", nth=2)])     # server.config, server.record

Also: clients (`ManyClients`), an authorization server (`FakeAuth`), Gemini and embedding servers
(`FakeGemini`, `FakeEmbeddings`), the pytest fixtures ``fake_mcp``, ``many_clients``, ``fake_auth``,
``fake_gemini`` and ``fake_embeddings``, and ``mcpzip-fake`` for a shell. The guide is docs/fakes.md.

Importing this package imports nothing else: a fake must start fast, and every pytest run loads the plugin.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpzip_fakes.answer import Answer
    from mcpzip_fakes.clients.client import Client, Reply
    from mcpzip_fakes.clients.identity import Identity
    from mcpzip_fakes.clients.many import ManyClients
    from mcpzip_fakes.clients.pending import ConnectionEnded, ErrorAnswer, Pending
    from mcpzip_fakes.definitions import Tool
    from mcpzip_fakes.embeddings import FakeEmbeddings
    from mcpzip_fakes.errors import ScenarioError
    from mcpzip_fakes.faults import Fault, fault
    from mcpzip_fakes.gemini import FakeGemini
    from mcpzip_fakes.launch import Fakes, FakeServer
    from mcpzip_fakes.oauth.controls import AuthControls
    from mcpzip_fakes.oauth.server import FakeAuth
    from mcpzip_fakes.oauth.settings import OAuth
    from mcpzip_fakes.record import Record
    from mcpzip_fakes.scenario import Scenario

__all__ = [
    "Answer",
    "AuthControls",
    "Client",
    "ConnectionEnded",
    "ErrorAnswer",
    "FakeAuth",
    "FakeEmbeddings",
    "FakeGemini",
    "FakeServer",
    "Fakes",
    "Fault",
    "Identity",
    "ManyClients",
    "OAuth",
    "Pending",
    "Record",
    "Reply",
    "Scenario",
    "ScenarioError",
    "Tool",
    "fault",
]

_HOMES = {
    "Answer": "answer",
    "AuthControls": "oauth.controls",
    "Client": "clients.client",
    "ConnectionEnded": "clients.pending",
    "ErrorAnswer": "clients.pending",
    "FakeAuth": "oauth.server",
    "FakeEmbeddings": "embeddings",
    "FakeGemini": "gemini",
    "FakeServer": "launch",
    "Fakes": "launch",
    "Fault": "faults",
    "Identity": "clients.identity",
    "ManyClients": "clients.many",
    "OAuth": "oauth.settings",
    "Pending": "clients.pending",
    "Record": "record",
    "Reply": "clients.client",
    "Scenario": "scenario",
    "ScenarioError": "errors",
    "Tool": "definitions",
    "fault": "faults",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'mcpzip_fakes' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"mcpzip_fakes.{_HOMES[name]}"), name)
