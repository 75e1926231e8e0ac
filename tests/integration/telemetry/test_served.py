"""Telemetry of real processes: traces that a collector reads back, `/metrics` and probes."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.daemons import daemon_home
from helpers.driver import until, write_config
from helpers.otlp_collector import Collector, collecting
from helpers.sdk_client import client_at, serving_http, talking
from helpers.serve_http import get, listening, mcpzip_command, metrics_url
from mcpzip_fakes.launch import FakeServer
from prometheus_client.parser import text_string_to_metric_families

from mcpzip.config.schema import TelemetryConfig
from mcpzip.server import process_telemetry

Fake = Callable[..., FakeServer]
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = {"traceparent": f"00-{TRACE}-{SPAN}-01", "baggage": "user=me"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.mark.parametrize("upstream", ["stdio", "http"])
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_one_trace_from_the_agent_to_the_server(
    transport: str, mode: str, upstream: str, tmp_path: Path, fake_mcp: Fake, collector: Collector
) -> None:
    shop = fake_mcp(name="shop", tools=["pay"], transport=upstream)
    keys = {"telemetry": {"otlp": collector.url}}
    async with talking(tmp_path, transport, mode, shop, **keys) as talk:
        await talk.client.call_tool("search_tools", {"query": "pay"}, meta=dict(CONTEXT))
        await talk.client.call_tool("execute_tool", {"name": "shop__pay"}, meta=dict(CONTEXT))
    [server] = collector.named("tools/call execute_tool")
    [client] = collector.named("tools/call pay")
    [search] = collector.named("search")
    [searched] = collector.named("tools/call search_tools")
    assert {server.trace, client.trace, search.trace} == {TRACE}
    assert (server.kind, server.parent) == ("SERVER", SPAN)
    assert (client.kind, client.parent) == ("CLIENT", server.id)
    assert (search.kind, search.parent) == ("INTERNAL", searched.id)
    assert server.attributes["mcpzip.target.tool"] == "pay"
    assert client.attributes["network.transport"] == ("pipe" if upstream == "stdio" else "tcp")
    [call] = [line.params for line in shop.record.received("tools/call")]
    assert call["_meta"]["traceparent"] == f"00-{TRACE}-{client.id}-01"
    assert "baggage" not in call["_meta"]
    assert collector.resource["service.name"] == "mcpzip"
    assert {"mcp.server.operation.duration", "mcp.client.operation.duration"} <= collector.metrics
    assert "mcp.client.session.duration" in collector.metrics


async def test_without_telemetry_the_context_of_a_client_goes_on_as_it_is(
    tmp_path: Path, fake_mcp: Fake
) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    async with talking(tmp_path, "stdio", "legacy", shop) as talk:
        await talk.client.call_tool("execute_tool", {"name": "shop__pay"}, meta=dict(CONTEXT))
    [call] = [line.params for line in shop.record.received("tools/call")]
    assert CONTEXT.items() <= call["_meta"].items()


async def test_what_goes_wrong_is_an_error_without_its_text(
    tmp_path: Path, fake_mcp: Fake, collector: Collector
) -> None:
    wrong = {"name": "pay", "result": {"text": "sesame", "isError": True}}
    shop = fake_mcp(name="shop", tools=[wrong])
    async with talking(tmp_path, "http", "legacy", shop, telemetry={"otlp": collector.url}) as talk:
        await talk.call("shop__pay")
        await talk.call("shop__nothing")
    [client] = collector.named("tools/call pay")
    assert client.is_error
    assert client.attributes["error.type"] == "tool_error"
    assert [span.is_error for span in collector.named("tools/call execute_tool")] == [True, True]
    assert "sesame" not in repr(collector.spans)
    assert "nothing" not in repr(collector.spans)


async def test_metrics_and_probes(tmp_path: Path, fake_mcp: Fake) -> None:
    config = write_config(tmp_path, fake_mcp(name="shop", tools=["pay"]), telemetry={"listen": "127.0.0.1:0"})
    with listening(mcpzip_command(tmp_path), config) as url:
        metrics = metrics_url(config)
        async with client_at(url, "legacy") as talk:
            await talk.call("shop__pay")
            status, text = await asyncio.to_thread(get, metrics, "/metrics")
        found = {
            (sample.name, sample.labels.get("mcpzip_server", "")): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert status == 200
        assert found["mcpzip_upstream_up", "shop"] == found["mcpzip_upstream_tools", "shop"] == 1
        assert found["mcpzip_upstream_calls_total", "shop"] == 1
        assert found["mcpzip_clients", ""] == 1
        assert found["process_resident_memory_bytes", ""] > 0
        assert get(metrics, "/healthz") == get(metrics, "/readyz") == (200, "ok\n")
        assert get(metrics, "/mcp")[0] == get(url, "/metrics")[0] == 404
        assert get(metrics, "/metrics", Host="evil.example")[0] == 421


async def test_it_is_not_ready_before_a_server_has_listed_its_tools(tmp_path: Path, fake_mcp: Fake) -> None:
    shop = fake_mcp(name="shop", tools=["pay"], faults=[{"kind": "silence", "method": "initialize"}])
    config = write_config(tmp_path, shop, telemetry={"listen": "127.0.0.1:0"})
    with listening(mcpzip_command(tmp_path), config):
        metrics = metrics_url(config)
        assert get(metrics, "/healthz")[0] == 200
        assert get(metrics, "/readyz") == (503, "no server has listed its tools yet\n")


async def test_a_collector_that_is_not_there_delays_nothing_and_is_told_once(
    tmp_path: Path, fake_mcp: Fake
) -> None:
    with collecting(status=400) as refusing:
        url = refusing.url
    config = write_config(tmp_path, fake_mcp(name="shop", tools=["pay"]), telemetry={"otlp": url})
    async with serving_http(config) as served, client_at(served, "legacy") as talk:
        assert not (await talk.call("shop__pay")).is_error


async def test_an_address_that_is_taken_keeps_nothing_from_being_served(
    tmp_path: Path, fake_mcp: Fake, collector: Collector
) -> None:
    taken = collector.url.removeprefix("http://")
    config = write_config(tmp_path, fake_mcp(name="shop", tools=["pay"]), telemetry={"listen": taken})
    with listening(mcpzip_command(tmp_path), config) as url:
        async with client_at(url, "legacy") as talk:
            assert not (await talk.call("shop__pay")).is_error
    said = config.with_suffix(".serve.log").read_text("utf-8")
    assert "telemetry.listen: port" in said
    assert "it serves no metrics" in said


def test_the_daemon_traces_and_measures_all_its_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    telemetry = {"otlp": collector.url, "listen": "127.0.0.1:0"}
    with daemon_home(tmp_path, monkeypatch, telemetry=telemetry) as home:
        with home.serving() as one, home.serving() as other:
            one.execute("up__say", {"what": "x"})
            other.execute("up__say", {"what": "y"})
        home.stop()
        until(lambda: len(collector.named("tools/call say")) == 2)
    assert {span.attributes["mcpzip.server"] for span in collector.named("tools/call say")} == {"up"}
    assert "mcp.server.session.duration" in collector.metrics


async def test_without_the_extra_a_warning_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_telemetry, "_NEEDED", ("opentelemetry.no.such.module",))
    said: list[str] = []
    async with process_telemetry.started(TelemetryConfig(otlp=""), {}, said.append) as telemetry:
        assert telemetry is None
    assert said == [process_telemetry.NO_EXTRA]


async def test_problems_of_the_sdk_are_told_once_by_place() -> None:
    from mcpzip.telemetry.provider import TelemetryLog

    logger, said = logging.getLogger("opentelemetry"), list[str]()
    before = logger.handlers[:], logger.propagate
    try:
        TelemetryLog(said.append)
        for _ in range(3):
            logging.getLogger("opentelemetry.exporter").warning("it is away")
        assert said == ["telemetry: it is away (this is said once)"]
    finally:
        logger.handlers, logger.propagate = before
