"""The board for Grafana and the alerts for Prometheus: they name only what a running mcpzip has."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from helpers.driver import ROOT, write_config
from helpers.sdk_client import client_at
from helpers.serve_http import get, listening, mcpzip_command, metrics_url
from mcpzip_fakes.launch import FakeServer
from prometheus_client.parser import text_string_to_metric_families

RECIPES = ROOT / "docs" / "recipes"
_WORDS = re.compile(r"(?<![\w$.\"])([a-z]+(?:_[a-z]+)+)(?=[{\[) ]|$)", re.MULTILINE)


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import grafana_board

    yield grafana_board.board()
    sys.modules.pop("grafana_board")


def test_the_board_is_that_of_the_program(board: str) -> None:
    assert (RECIPES / "grafana.json").read_text("utf-8") == board, "nox -s grafana"


def queries(board: str) -> list[str]:
    found = [target["expr"] for panel in json.loads(board)["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((RECIPES / "prometheus-alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
    return found + [rule["expr"] for rule in rules]


def metrics_in(query: str) -> set[str]:
    without_labels = re.sub(r"\bby \([^)]*\)|\{[^}]*\}", " ", query)
    return set(_WORDS.findall(without_labels)) - {"histogram_quantile"}


async def test_mcpzip_has_every_metric_that_is_asked_for(
    board: str, tmp_path: Path, fake_mcp: Callable[..., FakeServer]
) -> None:
    config = write_config(tmp_path, fake_mcp(name="shop", tools=["pay"]), telemetry={"listen": "127.0.0.1:0"})
    with listening(mcpzip_command(tmp_path), config) as url:
        async with client_at(url, "legacy") as talk:
            await talk.call("shop__pay")
            _, text = await asyncio.to_thread(get, metrics_url(config), "/metrics")
    families = text_string_to_metric_families(text)
    known = {sample.name for family in families for sample in family.samples}
    asked = {name for query in queries(board) for name in metrics_in(query)}
    assert len(asked) > 12
    assert asked <= known
