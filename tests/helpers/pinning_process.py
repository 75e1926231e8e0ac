"""The decisions of one proxy about pins, with what the proxy offers."""

import json
from pathlib import Path
from typing import Any

from mcpzip.catalog import Catalog, Listed, ServerRecord
from mcpzip.config import Config
from mcpzip.config.reading import parse
from mcpzip.pins.decisions import Decisions
from mcpzip.pins.review import Review


def config_of(
    folder: Path, trust: str = "pin", store: dict[str, Any] | None = None, **servers: Any
) -> Config:
    """A config with the server ``shop`` and ``servers``. store: its `store`; None for none."""
    entries = {"shop": {"command": "x"}, **servers}
    more = {} if store is None else {"store": store}
    data = json.dumps({"mcpServers": entries, "trust": trust, **more}).encode()
    return parse(data, str(folder / "config.json"), {})


def raw(*items: Any) -> tuple[bytes, ...]:
    """``items`` as JSON texts."""
    return tuple(json.dumps(item).encode() for item in items)


class Process:
    """A proxy's decisions, with what the proxy offers."""

    def __init__(self, config: Config, offered: Catalog | None = None) -> None:
        self.offered = Catalog() if offered is None else offered
        self.told: list[str] = []
        self.config = config
        self.decisions = Decisions(config, lambda: self.offered, self.told.append)
        self.now = 0.0

    def lists(self, *tools: Any, server: str = "shop", **more: Any) -> list[str]:
        """The tools that are offered after ``server`` listed ``tools``."""
        self.now += 1
        update = self.decisions.admit(
            Listed(server, raw(*tools), self.now, **more), self.offered.servers.get(server)
        )
        self.offered = Catalog({**self.offered.servers, server: update.record})
        return self.tools(server)

    def tools(self, server: str = "shop") -> list[str]:
        """Those that are offered."""
        return [entry.tool for entry in self.record(server).entries]

    def record(self, server: str = "shop") -> ServerRecord:
        """What is offered of a server."""
        return self.offered.servers[server]

    def reload(self) -> list[str]:
        """Takes up what others wrote. Returns the servers to list."""
        changed, unknown = self.decisions.reload()
        for before, now in changed:
            assert self.offered.servers[before.name] is before
            self.offered = Catalog({**self.offered.servers, now.name: now})
        return unknown

    def approve_all(self) -> None:
        """A person approves what is held."""
        with Review(self.config) as review:
            assert review.approve(review.held(["shop"])) == []
