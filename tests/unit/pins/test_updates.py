"""What was approved stays offered: through updates of the server, restarts, a lost cache, a later mcpzip."""

import json
from pathlib import Path

from mcpzip.catalog import Catalog, Listed
from mcpzip.config.reading import parse
from mcpzip.pins.decisions import Decisions
from mcpzip.pins.review import Review

STORED = {
    "format": "mcpzip-pins",
    "version": 1,
    "counter": 3,
    "servers": {
        "shop": {
            "first_seen": 1795602857.6,
            "lists": ["server", "instructions", "tool", "prompt", "resource", "template"],
            "pins": {
                "server ": {
                    "digest": "a04sygy4whML3TgWzHdwCq5piaXGgam1Bjum7St7E4o=",
                    "raw": "k9oO2+srV0TXg7Qg3kfWobaHBv7N9yGqLQvzkxYPne4=",
                    "at": 1795602857.6,
                },
                "instructions ": {
                    "digest": "X6C+MVgHfCt064rgmZUNeomRIX0dHLpf/GABcL6Rw44=",
                    "raw": "LsavBD41gGdQ3BFhwt9OF5+yfE/E3izDxpLHWbRVQzY=",
                    "at": 1795602857.6,
                },
                "tool read": {
                    "digest": "fNkIBoMhr9pjDNH1VjTXX1Zo1h4FKuluaqTlrrGnRkg=",
                    "raw": "qQGq+Wxr88QgKXJPddPgCMzCnCEvY14VA8mEhlDoNpw=",
                    "at": 1795602857.8,
                },
            },
            "held": {},
            "events": [],
        }
    },
}
"""A file of pins as the first version with pins wrote it."""
READ = {"name": "read", "inputSchema": {"type": "object"}}
WIDER = {"name": "read", "inputSchema": {"type": "object", "properties": {"bcc": {}}}}
INFO = b'{"name": "shop", "version": "2"}'


class Start:
    """One start of mcpzip. kept: the catalog that an earlier one stored; None if it was lost."""

    def __init__(self, folder: Path, trust: str = "pin", kept: Catalog | None = None) -> None:
        data = json.dumps({"mcpServers": {"shop": {"command": "x"}}, "trust": trust}).encode()
        self.config = parse(data, str(folder / "config.json"), {})
        self.offered = kept or Catalog()
        self.decisions = Decisions(self.config, lambda: self.offered)

    def lists(self, *tools: object) -> list[str]:
        """The tools that are offered."""
        raws = tuple(json.dumps(each).encode() for each in tools)
        update = Listed("shop", raws, 1.0, instructions="Be quick.", info=INFO)
        record = self.decisions.admit(update, self.offered.servers.get("shop")).record
        self.offered = Catalog({"shop": record})
        assert record.instructions == "Be quick."
        return [entry.tool for entry in record.entries]

    def approve(self) -> None:
        review = Review(self.config)
        assert review.approve(review.held(["shop"])) == []


def test_what_an_earlier_version_stored_counts(tmp_path: Path) -> None:
    """The bytes of the listing are others, so that the canonical form has to be the same."""
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins" / "config.json").write_text(json.dumps(STORED))
    start = Start(tmp_path, "strict")
    assert start.lists({"inputSchema": {"properties": {"bcc": {}}, "type": "object"}, "name": "read"}) == [
        "read"
    ]
    assert start.lists(READ) == [], "and it is compared"


def test_what_was_approved_stays_through_updates_of_its_server(tmp_path: Path) -> None:
    start = Start(tmp_path)
    start.lists(READ, {"name": "write"})
    assert start.lists(WIDER, {"name": "write"}) == ["write"]
    start.approve()
    for tools in (
        [{"name": "write"}, WIDER],
        [WIDER, {"name": "write", "description": "Writes a file."}],
        [{**WIDER, "title": "Read"}, {"name": "write"}, {"name": "new"}],
        [{**WIDER, "description": "Reads a file and sends it."}],
        [WIDER],
    ):
        assert start.lists(*tools) == sorted(str(tool["name"]) for tool in tools)


def test_what_was_approved_stays_after_a_restart_and_when_the_cache_is_lost(tmp_path: Path) -> None:
    start = Start(tmp_path, "strict")
    start.lists(READ)
    start.lists(WIDER)
    start.approve()
    assert start.lists(WIDER) == ["read"]
    assert Start(tmp_path, "strict", start.offered).lists(WIDER) == ["read"]
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    assert Start(tmp_path, "strict").lists(WIDER) == ["read"]
