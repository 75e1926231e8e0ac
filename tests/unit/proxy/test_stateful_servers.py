"""Which servers are known to keep what a client did."""

import pytest

from mcpzip.proxy.stateful_servers import STATEFUL, is_stateful


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
