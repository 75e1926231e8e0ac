"""``mcpzip-fake record``: stand between a client and a real server, and write a cassette."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import click

from mcpzip.cassettes.cassette import Transport
from mcpzip.cassettes.environment_secrets import header_secrets, known_secrets
from mcpzip.cassettes.tape import Tape
from mcpzip.model.errors import ConfigError
from mcpzip.model.redaction import registered
from mcpzip_fakes.click_errors import SafeCommand
from mcpzip_fakes.commands.server_options import check_url, header
from mcpzip_fakes.recording import stdio
from mcpzip_fakes.recording.report import report, tell


@dataclass(frozen=True)
class _Target:
    """The server to record. env: variables added to ours."""

    transport: Transport
    command: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] | None = None


@click.command("record", cls=SafeCommand)
@click.argument("cassette", type=click.Path(dir_okay=False))
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="Record the server at this URL instead of a command.")
@click.option("--server", metavar="NAME", help="Record this server of an mcpzip config instead.")
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="With --server: the config. [default: that of mcpzip]",
)
@click.option(
    "--transport",
    type=click.Choice(["http", "sse"]),
    help="Of the server at --url. [default: sse if the URL's path ends with /sse, else http]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Over HTTP: the port of 127.0.0.1 for clients; 0 is any free port.",
)
@click.option(
    "--header",
    "headers",
    metavar="'NAME: VALUE'",
    multiple=True,
    help="With --url: send this header to the server. Its value is masked.",
)
@click.option(
    "--mask", "paths", metavar="PATH", multiple=True, help="Mask what is at this path of the messages, too."
)
@click.option(
    "--secret", "names", metavar="NAME", multiple=True, help="Mask the value of this variable, too."
)
@click.option("--overwrite", is_flag=True, help="Replace the cassette instead of adding a session to it.")
def record(
    cassette: str,
    command: tuple[str, ...],
    url: str | None,
    server: str | None,
    config: str | None,
    transport: Transport | None,
    port: int,
    headers: tuple[str, ...],
    paths: tuple[str, ...],
    names: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Record what a client and a real server say to each other into the file CASSETTE.

    It is a server like the real one: put it into the config of a client, and use that as always. Every
    message passes unchanged. An existing cassette gets another session.

    \b
    mcpzip-fake record time.toml -- mcp-server-time --local-timezone UTC
    mcpzip-fake record pay.toml --mask params.arguments.pin -- npx pay-server
    mcpzip-fake record docs.toml --url https://docs.example.com/mcp --header "X-Api-Key: $KEY"
    mcpzip-fake record github.toml --server github

    Over HTTP it prints one line, "listening URL", for the config of the client, and records until it is
    ended (Ctrl-C).

    Secrets are replaced by masks before anything is written: values of variables whose names say so, of
    members and headers that are named like a secret, what looks like an API key, and what you add with
    --secret and --mask. A PATH has a * for any name or index: result.content.*.text. At the end, stderr says
    what was masked.
    """
    if sum((bool(command), url is not None, server is not None)) != 1:
        raise click.UsageError("say after -- which server to run, or --url, or --server")
    for option, given in (("--transport", transport), ("--header", headers)):
        if given and url is None:
            raise click.UsageError(f"{option} is for --url")
    if config is not None and server is None:
        raise click.UsageError("--config is for --server")
    if server is not None:
        target = _configured(server, config)
    elif url is not None:
        target = _at(url, transport, headers)
    else:
        target = _Target("stdio", command)
    if port and target.transport == "stdio":
        raise click.UsageError("--port is for servers over HTTP")
    environment = {**os.environ, **(target.env or {})}
    secrets = dict.fromkeys(registered(), "it is a secret of the config")
    secrets |= known_secrets(environment, names) | header_secrets(target.headers or {})
    tape = Tape(cassette, target.transport, secrets, paths, tell, anew=overwrite)
    if target.transport == "stdio":
        code = stdio.record(target.command, tape, environment, target.cwd)
        report(cassette, tape.masked)
        stdio.exit_as(code)
    else:
        _serve(target, tape, port)
        report(cassette, tape.masked)


def _serve(target: _Target, tape: Tape, port: int) -> None:
    try:
        from mcpzip_fakes.recording import http
    except ModuleNotFoundError as error:
        package = str(error.name)
        remedy = "run: pip install 'mcpzip[fakes]'"
        raise ConfigError("--url", "", f"it needs the package {package}", remedy) from error
    http.serve(target.url, target.headers or {}, tape, port, sse=target.transport == "sse")


def _at(url: str, transport: Transport | None, headers: Sequence[str]) -> _Target:
    check_url(url)
    guess: Transport = "sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "http"
    return _Target(transport or guess, url=url, headers=dict(map(header, headers)))


def _configured(name: str, config: str | None) -> _Target:
    """The server of an mcpzip config. Raises ConfigError."""
    from mcpzip.config import config_path, load

    path = config_path(config, os.environ)
    servers = load(path, os.environ).servers
    server = servers.get(name)
    if server is None:
        known = ", ".join(sorted(servers)) or "none"
        raise ConfigError(path, "mcpServers", f"there is no server {name!r}", f"say one of these: {known}")
    if server.problem is not None:
        raise ConfigError(path, f"mcpServers.{name}", server.problem, "correct it first")
    if server.headers_command:
        found = "its headers come from a program (headersCommand)"
        raise ConfigError(path, f"mcpServers.{name}", found, "say --url and --header, or use mcpzip record")
    if server.transport == "stdio":
        return _Target("stdio", (server.command, *server.args), server.env, server.cwd)
    return _Target(server.transport, url=server.url, headers=server.headers)
