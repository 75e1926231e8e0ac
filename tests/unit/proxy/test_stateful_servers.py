"""Which servers are known to keep what a client did."""

import pytest

from mcpzip.proxy.stateful_servers import STATEFUL, has_relative_path, is_stateful, possible_names


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
        "sh -c cd\t$PWD&&server",
        "server --root=${PWD}/data",
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


@pytest.mark.parametrize(
    ("value", "depends"),
    [
        ("$PWD/data", True),
        ("${PWD}", True),
        ("$(pwd)", True),
        ("./data", True),
        ("..", True),
        ("$PWDX", False),
        ("/data", False),
        ("a.b/c", False),
        ("secret", False),
    ],
)
def test_a_value_of_its_environment_may_depend_on_the_folder(value: str, depends: bool) -> None:
    assert has_relative_path("server", [], [value]) == depends


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("npx -y server-filesystem src /abs ~/x", ["server-filesystem", "src"]),
        ("server --root=src --url https://x.example/src -v", ["src"]),
        ("python -m local.part --port 8", ["local", "local.py", "8"]),
        ("/usr/bin/python3.12 -mlocal", ["local", "local.py"]),
        ("uvx -m local", ["local"]),
        (f"server {'x' * 300}", []),
        (r"server C:\data D:x $HOME/x %APPDATA%", []),
    ],
)
def test_words_that_may_name_something_in_the_folder(line: str, names: list[str]) -> None:
    command, *args = line.split()
    assert list(possible_names(command, args)) == names


def test_no_more_words_than_a_few_are_looked_up() -> None:
    assert len(possible_names("server", map(str, range(1000)))) == 50
