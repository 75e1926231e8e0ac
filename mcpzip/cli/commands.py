"""The command line: the commands, and their exit codes."""

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module

import click

from mcpzip import __version__
from mcpzip.cli import console
from mcpzip.config.paths import CONFIG_VARIABLE
from mcpzip.model.errors import LoginError, McpzipError, UpstreamError

DONE, FAILED, WRONG = 0, 1, 2
_OF_CONFIG = ("add", "add-json", "disable", "edit", "enable", "remove", "rename")
_OTHERS = (
    "auth",
    "call",
    "config",
    "demo",
    "describe",
    "doctor",
    "eval",
    "init",
    "logs",
    "migrate",
    "refresh",
    "search",
    "serve",
    "servers",
    "status",
    "tokens",
    "tools",
    "trust",
    "usage",
)
COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(_OF_CONFIG, "edit_config"),
    **{name: name for name in _OTHERS},
    "list": "servers",
}
"""The module of each command, which is imported when the command is used."""


class _Commands(click.Group):
    """Imports the used command only: importing all of them would double the start-up time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f" Did you mean {near[0]}?" if near else " mcpzip --help lists all."
            ctx.fail(f"There is no command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"mcpzip.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(
            module, "servers" if cmd_name == "list" else cmd_name.replace("-", "_")
        )
        return command


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="mcpzip")
@click.option("-c", "--config", metavar="FILE", help="The config file.")
@click.pass_context
def commands(context: click.Context, config: str | None) -> None:
    """Three tools in front of every MCP server your agent talks to.

    The config is --config FILE, else $MCPZIP_CONFIG, else ~/.config/compressed-mcp-proxy/config.json. The log
    lies in the folder "logs" beside it: mcpzip logs.
    Exit codes: 0 done, 1 failed, 2 the request or the config is wrong.
    """
    if config is not None:
        context.with_resource(_default_config(config))


@contextmanager
def _default_config(path: str) -> Iterator[None]:
    """Makes ``path`` the config of the command that has no --config of its own."""
    before = os.environ.get(CONFIG_VARIABLE)
    os.environ[CONFIG_VARIABLE] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ[CONFIG_VARIABLE]
        else:
            os.environ[CONFIG_VARIABLE] = before


def run(argv: list[str]) -> int:
    """Runs one command line. Returns the exit code; prints errors as sentences."""
    console.configure_streams()
    try:
        code = commands.main(argv, prog_name="mcpzip", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        console.usage_error(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt, asyncio.CancelledError):
        return FAILED
    except BrokenPipeError:  # the reader of our output (head, less) has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return DONE
    except (UpstreamError, LoginError) as error:
        console.warn(str(error))
        return FAILED
    except McpzipError as error:
        console.warn(str(error))
        return WRONG
    return code if isinstance(code, int) else DONE
