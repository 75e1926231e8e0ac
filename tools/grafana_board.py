"""Writes docs/recipes/grafana.json, a board for Grafana (10 or newer) with the metrics of mcpzip.

Run it with ``python tools/grafana_board.py`` or ``nox -s grafana``. A test compares the file, and asks a
running mcpzip whether it has every metric that the board names.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

BOARD = Path(__file__).parents[1] / "docs" / "recipes" / "grafana.json"
_CHOSEN = 'job=~"$job",instance=~"$instance"'
_OF = f"{{{_CHOSEN}}}"
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_WIDTH, _HEIGHT = 12, 8


class Panel(NamedTuple):
    """A graph. queries: in PromQL, with what names a line (Grafana's ``{{label}}``). unit: of Grafana."""

    title: str
    about: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _rate(metric: str, by: str, only: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{_CHOSEN}{only}}}[$__rate_interval]))"


def _quantile(share: float, metric: str, by: str, only: str = "") -> str:
    return f"histogram_quantile({share}, {_rate(metric + '_bucket', f'{by}, le', only)})"


_SERVED, _ASKED = "mcp_server_operation_duration_seconds", "mcp_client_operation_duration_seconds"
_TOOL = ',mcp_method_name="tools/call"'
PANELS = (
    Panel(
        "Requests of agents",
        "By method, per second.",
        "reqps",
        ((_rate(f"{_SERVED}_count", "mcp_method_name"), "{{mcp_method_name}}"),),
    ),
    Panel(
        "How long agents wait",
        "For calls of tools, those of mcpzip among them.",
        "s",
        tuple(
            (
                _quantile(share, _SERVED, "gen_ai_tool_name", _TOOL),
                f"{{{{gen_ai_tool_name}}}} {share * 100:g} %",
            )
            for share in (0.5, 0.95)
        ),
    ),
    Panel(
        "Calls of servers",
        "Per second.",
        "reqps",
        ((_rate("mcpzip_upstream_calls_total", "mcpzip_server"), "{{mcpzip_server}}"),),
    ),
    Panel(
        "Calls that fail",
        "The share of a server's calls that end with an error.",
        "percentunit",
        (
            (
                f"{_rate('mcpzip_upstream_errors_total', 'mcpzip_server')} / "
                f"{_rate('mcpzip_upstream_calls_total', 'mcpzip_server')}",
                "{{mcpzip_server}}",
            ),
        ),
    ),
    Panel(
        "How long servers take",
        "95 of 100 requests take less.",
        "s",
        ((_quantile(0.95, _ASKED, "mcpzip_server"), "{{mcpzip_server}}"),),
    ),
    Panel(
        "The slowest tools",
        "95 of 100 calls take less; the ten with the longest time.",
        "s",
        (
            (
                f"topk(10, {_quantile(0.95, _ASKED, 'mcpzip_server, gen_ai_tool_name')})",
                "{{mcpzip_server}} {{gen_ai_tool_name}}",
            ),
        ),
    ),
    Panel(
        "Servers that are connected",
        "1 is connected. A server that nobody needs is disconnected after a while; that is no fault.",
        "short",
        ((f"max by (mcpzip_server) (mcpzip_upstream_up{_OF})", "{{mcpzip_server}}"),),
    ),
    Panel(
        "Tools",
        "That agents can find, by server.",
        "short",
        ((f"max by (mcpzip_server) (mcpzip_upstream_tools{_OF})", "{{mcpzip_server}}"),),
    ),
    Panel(
        "Changes that wait for a person",
        "1: a server has changed tools that are held back. mcpzip review shows them.",
        "short",
        ((f"max by (mcpzip_server) (mcpzip_upstream_held{_OF})", "{{mcpzip_server}}"),),
    ),
    Panel(
        "Age of the catalog",
        "Since a server was listed last.",
        "s",
        ((f"max by (mcpzip_server) (mcpzip_upstream_catalog_age_seconds{_OF})", "{{mcpzip_server}}"),),
    ),
    Panel(
        "Agents and searches",
        "Agents that are connected, and searches per minute.",
        "short",
        (
            (f"sum(mcpzip_clients{_OF})", "agents"),
            (f"60 * sum(rate(mcpzip_searches_total{_OF}[$__rate_interval]))", "searches per minute"),
        ),
    ),
    Panel(
        "Tokens of large results that were not sent",
        "Per hour, by an estimate.",
        "short",
        ((f"3600 * sum(rate(mcpzip_results_kept_tokens_total{_OF}[$__rate_interval]))", "tokens per hour"),),
    ),
    Panel(
        "Memory",
        "Of mcpzip itself, without the processes of its servers.",
        "bytes",
        ((f"process_resident_memory_bytes{_OF}", "{{instance}}"),),
    ),
    Panel(
        "Processor",
        "Of mcpzip itself: 100 % is one core.",
        "percentunit",
        ((f"rate(process_cpu_seconds_total{_OF}[$__rate_interval])", "{{instance}}"),),
    ),
)


def board() -> str:
    """The text of the file."""
    panels = [_panel(at, each) for at, each in enumerate(PANELS)]
    made = {
        "title": "mcpzip",
        "uid": "mcpzip",
        "description": "Agents, servers and tools of mcpzip (docs/telemetry.md).",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
                _variable("job", "Job", "label_values(mcpzip_clients, job)"),
                _variable("instance", "Instance", 'label_values(mcpzip_clients{job=~"$job"}, instance)'),
            ]
        },
        "panels": panels,
    }
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(at: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": at + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"x": at % 2 * _WIDTH, "y": at // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
            for number, (query, legend) in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    BOARD.write_text(board(), "utf-8")
