"""Which servers are known to keep what a client did."""

import pytest

from mcpzip.proxy.stateful_servers import STATEFUL, has_relative_path, is_stateful


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @playwright/mcp",
        "npx @playwright/mcp@latest --headless",
        "npx.cmd -y chrome-devtools-mcp@0.4.0",
        "uvx jupyter-mcp-server[all]==1.2",
        "uvx --from git+https://github.com/oraios/serena serena start-mcp-server",
        "uvx --from git+https://github.com/oraios/serena.git x",
        "/opt/bin/desktop-commander",
        r"C:\tools\Desktop-Commander.exe",
    ],
)
def test_these_do(line: str) -> None:
    command, *args = line.split()
    assert is_stateful(command, args)


@pytest.mark.parametrize(
    "line",
    ["uvx mcp-server-time", "npx -y @modelcontextprotocol/server-filesystem /home/me/serena", "serena2", ""],
)
def test_these_do_not(line: str) -> None:
    command, *args = line.split() or [""]
    assert not is_stateful(command, args)


def test_every_name_is_one_that_is_found() -> None:
    assert all(is_stateful("npx", ["-y", f"{name}@1.0"]) for name in STATEFUL)
    assert all(name == name.lower() for name in STATEFUL)


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @modelcontextprotocol/server-filesystem .",
        "uvx mcp-server-git --repository=..",
        "uvx mcp-server-sqlite --db-path data.db",
        "npx -y foo --env-file .env",
        "node build/index.js",
        "ruby server.rb",
        "./server",
        "bin/server",
        ".venv/bin/python -m server",
        "docker run -i --rm -v .:/work image",
        "docker run -i --rm -v ./data:/work image",
        "docker compose run mcp",
        "npm run mcp",
        "uv run server",
        "cargo run --bin server",
        "go run ./cmd/server",
        "dotnet run --project src/Server.csproj",
    ],
)
def test_these_depend_on_the_folder(line: str) -> None:
    command, *args = line.split()
    assert has_relative_path(command, args)


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @modelcontextprotocol/server-filesystem /home/me",
        "npx -y mcp-remote https://example.com/mcp.json",
        "uvx mcp-server-time --local-timezone=Europe/Berlin",
        "uvx --from git+https://github.com/oraios/serena serena start-mcp-server",
        "npx -y @scope/server@1.2.3",
        "docker run -i --rm -v /data:/work mcp/git",
        "/opt/bin/server --config /etc/server.json",
        r"C:\tools\server.exe C:\data\server.json",
        "~/bin/server",
        "uvx mcp-server-fetch run",
    ],
)
def test_these_run_anywhere(line: str) -> None:
    command, *args = line.split()
    assert not has_relative_path(command, args)
