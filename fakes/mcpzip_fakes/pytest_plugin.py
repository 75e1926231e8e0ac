"""pytest: the fixtures ``fake_mcp``, ``many_clients``, ``fake_auth``, ``fake_gemini``, ``fake_embeddings``.
Installed with the package; nothing is imported before a test asks for it.

async def test_pay(fake_mcp):
    shop = fake_mcp(tools=[{"name": "pay", "result": {"text": "paid"}}], faults=["junk"])
    async with my_client(shop.config) as client:
        assert await client.call_tool("pay", {"id": 7}) == "paid"
    assert shop.record.calls("pay") == [{"name": "pay", "arguments": {"id": 7}}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from mcpzip_fakes.clients.client import Client
    from mcpzip_fakes.clients.pending import Pending
    from mcpzip_fakes.embeddings import FakeEmbeddings
    from mcpzip_fakes.gemini import FakeGemini
    from mcpzip_fakes.launch import FakeServer
    from mcpzip_fakes.oauth.server import FakeAuth


@pytest.fixture
def fake_mcp(tmp_path: Path) -> Iterator[Callable[..., FakeServer]]:
    """Start fake MCP servers: a call has the parameters of `Fakes.start` and returns a `FakeServer`.

    All are ended, with their grandchildren, at the end of the test.
    """
    from mcpzip_fakes.launch import Fakes

    with Fakes(tmp_path / "fakes") as fakes:
        yield fakes.start


@pytest.fixture
def many_clients() -> Iterator[Callable[..., Pending[list[Client]]]]:
    """Start MCP clients of one server or proxy: a call has the parameters of `ManyClients.start`, and its
    outcome, to be awaited, is the list of clients. All end with the test.
    """
    from mcpzip_fakes.clients.many import ManyClients

    with ManyClients() as clients:
        yield clients.start


@pytest.fixture
def fake_auth() -> Iterator[Callable[..., FakeAuth]]:
    """Start fake authorization servers: a call has the parameters of `mcpzip_fakes.FakeAuth`. Pass one to
    `fake_mcp` as ``auth``. All end with the test.
    """
    from mcpzip_fakes.sdk import check_sdk

    check_sdk()
    from mcpzip_fakes.oauth.server import FakeAuth

    with ExitStack() as running:
        yield lambda **told: running.enter_context(FakeAuth(**told))


@pytest.fixture
def fake_gemini() -> Iterator[Callable[..., FakeGemini]]:
    """Start a fake Gemini: a call has the parameters of `gemini.FakeGemini`. All end with the test."""
    from mcpzip_fakes.gemini import FakeGemini

    with ExitStack() as running:
        yield lambda **told: running.enter_context(FakeGemini(**told))


@pytest.fixture
def fake_embeddings() -> Iterator[Callable[..., FakeEmbeddings]]:
    """Start a fake embedding server: a call has the parameters of `embeddings.FakeEmbeddings`. All end
    with the test.
    """
    from mcpzip_fakes.embeddings import FakeEmbeddings

    with ExitStack() as running:
        yield lambda **told: running.enter_context(FakeEmbeddings(**told))
