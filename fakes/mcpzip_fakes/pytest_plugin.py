"""pytest: the fixtures ``fake_mcp``, ``many_clients``, ``fake_auth``, ``fake_gemini``, ``fake_embeddings``;
and ``mcp_cassette`` and ``check_mcp_cassette``, for recorded servers. Installed with the package; nothing is
imported before a test asks for it.

async def test_pay(fake_mcp):
    shop = fake_mcp(tools=[{"name": "pay", "result": {"text": "paid"}}], faults=["junk"])
    async with my_client(shop.config) as client:
        assert await client.call_tool("pay", {"id": 7}) == "paid"
    assert shop.record.calls("pay") == [{"name": "pay", "arguments": {"id": 7}}]

@pytest.mark.mcp_cassette("time")
async def test_time(mcp_cassette):
    server = mcp_cassette("mcp-server-time", "--local-timezone", "UTC")     # recorded once, then played
    async with my_client(server.config) as client:
        ...
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from mcpzip_fakes.cassettes.fixture import Cassettes, CassetteServer
    from mcpzip_fakes.clients.client import Client
    from mcpzip_fakes.clients.pending import Pending
    from mcpzip_fakes.drift.drift import Report, Severity
    from mcpzip_fakes.embeddings import FakeEmbeddings
    from mcpzip_fakes.gemini import FakeGemini
    from mcpzip_fakes.launch import FakeServer
    from mcpzip_fakes.oauth.server import FakeAuth

_CASSETTE = "mcp_cassette"
_MODES = ("once", "none", "new_episodes", "all")
_SIGNATURE = (
    f"{_CASSETTE}(name=None, *, record_mode=None, ignore=(), mask=(), secret=(), allow_unused=True, "
    "allow_unmatched=False)"
)
_MEANING = (
    "the cassette that the fixture mcp_cassette plays or records: its name; once, none, new_episodes or all; "
    "paths of requests that don't count; what to mask; whether recorded requests may be left over, and "
    "others may be sent."
)
_STARTED = pytest.StashKey["Cassettes"]()
_FAILED = pytest.StashKey[bool]()
_RECORDED = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --mcp-record, which overrides the marker, and the folder of cassettes."""
    group = parser.getgroup("mcp-cassettes", "recorded MCP servers")
    group.addoption("--mcp-record", choices=_MODES, help="when mcp_cassette records real servers")
    parser.addini("mcp_cassette_dir", "the folder of cassettes; without it, cassettes/ beside the test")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", f"{_SIGNATURE}: {_MEANING}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say in the report of a failed test which requests are not in its cassette."""
    report = yield
    started = item.stash.get(_STARTED, None)
    if started is not None and report.when == "call" and report.failed:
        item.stash[_FAILED] = True
        told = [text for server in started.servers for text in server.unmatched]
        report.sections += [("a request that is not in the cassette", text) for text in told]
    return report


@pytest.fixture
def mcp_cassette(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., CassetteServer]]:
    """Give a client a recorded server instead of the real one: a call has the words of the real server's
    command, and ``env``; or its ``url``, and ``headers``; and ``name`` for a cassette other than that of the
    marker. It returns a `CassetteServer`.

    The cassette is recorded or played as the mode says. The test fails if a request is not in it.
    """
    from mcpzip.model.errors import McpzipError
    from mcpzip_fakes.cassettes.fixture import Cassettes, mode_of

    told = _marked(request)
    config = request.config
    try:
        marked = cast("str | None", told["record_mode"])
        mode = mode_of(config.getoption("--mcp-record"), marked, os.environ)
    except ValueError as error:
        raise pytest.UsageError(f"{_CASSETTE}: {error}") from None
    folder = config.getini("mcp_cassette_dir")
    where = config.rootpath / folder if folder else request.path.parent / "cassettes"
    recorded = config.stash.setdefault(_RECORDED, set())
    cassettes = request.node.stash[_STARTED] = Cassettes(where, tmp_path / "cassettes", mode, recorded)

    def start(
        *command: str,
        url: str = "",
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> CassetteServer:
        lists = {key: cast("Sequence[str]", told[key]) for key in ("ignore", "mask", "secret")}
        chosen = name or cast("str | None", told["name"]) or _default_name(request)
        try:
            return cassettes.start(chosen, command, url=url, env=env, headers=headers, **lists)
        except McpzipError as error:
            pytest.fail(str(error), pytrace=False)

    try:
        yield start
    finally:
        cassettes.stop()
    if not request.node.stash.get(_FAILED, False):  # the report of a failed test has said it already
        _check_use(cassettes, told)


def _marked(request: pytest.FixtureRequest) -> dict[str, object]:
    """The arguments of the marker."""

    def named(
        name: str | None = None,
        *,
        record_mode: str | None = None,
        ignore: Sequence[str] = (),
        mask: Sequence[str] = (),
        secret: Sequence[str] = (),
        allow_unused: bool = True,
        allow_unmatched: bool = False,
    ) -> dict[str, object]:
        return dict(locals())

    marker = request.node.get_closest_marker(_CASSETTE)
    try:
        return named(*marker.args, **marker.kwargs) if marker else named()
    except TypeError as error:
        said = str(error).replace("_marked.<locals>.named() ", "it ")
        raise pytest.UsageError(f"{_CASSETTE}: {said}; write {_SIGNATURE}.") from None


def _default_name(request: pytest.FixtureRequest) -> str:
    """The module and the test."""
    test = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    return f"{request.path.stem}/{test}"


def _check_use(cassettes: Cassettes, told: Mapping[str, object]) -> None:
    """Fail if the test used its cassettes otherwise than the marker allows."""
    unmatched = [text for server in cassettes.servers for text in server.unmatched]
    if unmatched and not told["allow_unmatched"]:
        record = "Record them with --mcp-record=new_episodes, or anew with --mcp-record=all."
        pytest.fail("Requests that are not in the cassette:\n\n" + "\n\n".join((*unmatched, record)), False)
    for server in cassettes.servers:
        if not told["allow_unused"] and server.unused:
            pytest.fail(f"{server.path} has requests that were not sent:\n" + "\n".join(server.unused), False)


@pytest.fixture
def check_mcp_cassette() -> Callable[..., Report]:
    """Compare a real server with the recorded one: a call has the path of the cassette, and the server's
    command (a list of words) or its ``url``; ``env``, ``headers``; ``fail_on``, the least severity that fails
    the test; and the fields of `drift.settings.Settings`. It returns the report, or fails the test with it.
    """
    from mcpzip_fakes.drift.server import check_command, check_url
    from mcpzip_fakes.drift.settings import Settings

    def check(
        cassette: str | Path,
        command: Sequence[str] = (),
        *,
        url: str = "",
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        fail_on: Severity = "added",
        **settings: object,
    ) -> Report:
        told = Settings(**settings)  # type: ignore[arg-type]
        if bool(command) == bool(url):
            raise ValueError("give the server's command, or its url")
        if url:
            report = check_url(os.fspath(cassette), url, told, headers=headers)
        else:
            report = check_command(os.fspath(cassette), command, told, env=env)
        if report.at_least(fail_on):
            pytest.fail("\n".join(report.lines()), pytrace=False)
        return report

    return check


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
