"""A home with a config, and what the tests of `mcpzip doctor` do there."""

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.driver import ROOT, Json

from mcpzip.catalog import Catalog, snapshot
from mcpzip.catalog.catalog import ServerRecord
from mcpzip.cli.commands import run
from mcpzip.config import load
from mcpzip.config.paths import snapshot_path
from mcpzip.doctor import client_checks
from mcpzip.model.entry import Entry

GOOD = {"command": sys.executable, "args": ["-c", "pass"]}
TOKEN = "tk-7f3b9a1c5d2e8f60"
posix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes, users or shebangs")


@dataclass
class Place:
    """A home with a config. patch: undone after the test."""

    home: Path
    config: Path
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def write(self, servers: Json, **more: object) -> None:
        self.config.write_text(json.dumps({"mcpServers": servers, **more}))

    def edit(self, **changes: object) -> None:
        """Changes the only server's entry; None removes a key."""
        document = json.loads(self.config.read_text())
        ((name, entry),) = document["mcpServers"].items()
        entry = {key: value for key, value in {**entry, **changes}.items() if value is not None}
        self.config.write_text(json.dumps({**document, "mcpServers": {name: entry}}))

    def client(self, servers: Json, name: str = ".claude.json") -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": servers}))
        return path

    def known(self, *tools: Json, **record: object) -> None:
        """Stores ``tools`` of each server, as if they had been listed."""
        records = {}
        for name, server in load(str(self.config), os.environ).servers.items():
            entries = tuple(Entry.parse(name, json.dumps(tool).encode()) for tool in tools)
            values = {"fetched_at": time.time(), "fingerprint": server.fingerprint, **record}
            records[name] = ServerRecord(name, entries, **values)
        path = snapshot_path(str(self.config))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        snapshot.save(path, str(self.config), Catalog(records))

    def doctor(self, *words: str) -> list[Json]:
        code = run(["doctor", "--json", *words])
        found: list[Json] = json.loads(self.capsys.readouterr().out)["findings"]
        assert code == (1 if any(finding["level"] == "error" for finding in found) else 0)
        return found

    def shell(self, command: str) -> None:
        done = subprocess.run(
            command,
            shell=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)


@pytest.fixture
def place(isolated: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    config = isolated / ".config" / "compressed-mcp-proxy" / "config.json"
    config.parent.mkdir(parents=True)
    tools = isolated / "bin"
    tools.mkdir()
    (tools / "mcpzip").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mcpzip "$@"\n')
    (tools / "mcpzip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MCPZIP_PROJECT", "off")
    monkeypatch.setattr(client_checks, "SETTLED", 0.0)
    monkeypatch.setattr(client_checks, "find_left", list)  # another test may have killed a mcpzip
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return Place(isolated, config, monkeypatch, capsys)
