"""The command line: the commands, and their exit codes."""

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

import click

from mcpzip import __version__
from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples
from mcpzip.config.paths import CONFIG_VARIABLE
from mcpzip.model.errors import ConfigError, LoginError, McpzipError, UpstreamError

DONE, FAILED, WRONG = 0, 1, 2
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Set up": {
        "init": "Set mcpzip up, step by step.",
        "migrate": "Move the servers of your clients to mcpzip, or back.",
        "add": "Add a server.",
        "add-json": "Add a server whose entry you have as JSON.",
        "remove": "Remove servers.",
        "rename": "Rename a server.",
        "enable": "Switch servers on.",
        "disable": "Switch servers off.",
        "edit": "Open the config in your editor, then check it.",
        "auth": "Sign in to servers, and out of them.",
        "trust": "Allow the servers that a project brings.",
        "review": "Approve what servers changed and mcpzip holds back.",
        "allow": "Allow calls about which the policy asks.",
        "keys": "Make API keys for people who call over HTTP.",
        "config": "Show where the config is, and what it says.",
        "completion": "Print the completion script of a shell.",
    },
    "For agents": {
        "serve": "Serve an agent: the command for its MCP settings.",
        "record": "Serve, and record every server as a cassette.",
        "daemon": "Start, stop or see the process that serves all agents.",
        "stop": "End the processes of servers.",
        "restart": "End the processes of servers, and start them again.",
    },
    "Use tools yourself": {
        "search": "Find tools by what you want to do.",
        "describe": "Show a tool's description and schema.",
        "call": "Run a tool.",
        "tools": "List all tools.",
    },
    "See what is going on": {
        "ui": "Open a page that shows what runs.",
        "servers": "Ask every server for its tools; also: list.",
        "status": "Show the agents that are served now.",
        "ps": "Show agents, servers and their processes.",
        "calls": "Show the last calls of tools.",
        "doctor": "Find what is wrong, and what fixes it.",
        "logs": "Show what servers wrote to stderr.",
        "audit": "Show which tools were called, by whom.",
        "tokens": "Show what tools cost in a model's context.",
        "eval": "Measure how well search finds your tools.",
        "usage": "Show which tools rank higher through use.",
        "refresh": "List the tools of all servers again.",
        "demo": "Watch an agent work through mcpzip.",
    },
}
"""The commands and what they do, as `mcpzip --help` shows them. They stand here so that it imports none."""

_SENTENCES = {name: says for section in SECTIONS.values() for name, says in section.items()}
_OF_CONFIG = ("add", "add-json", "disable", "edit", "enable", "remove", "rename")
COMMANDS: Mapping[str, str] = {
    **{name: name for name in _SENTENCES},
    **dict.fromkeys(_OF_CONFIG, "edit_config"),
    **dict.fromkeys(("stop", "restart"), "server_processes"),
    "list": "servers",
}
"""The module of each command, which is imported when the command is used."""
_FUNCTIONS = {"list": "servers"}
"""Where a command is not called as its function."""


class _Commands(click.Group):
    """Imports the used command only: importing all of them would double the start-up time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches  # slow to import, and needed for typing mistakes only

            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f" Did you mean {near[0]}?" if near else " mcpzip --help lists all."
            ctx.fail(f"There is no command {args[0]!r}.{meant}")
        resolved = super().resolve_command(ctx, args)
        gc.enable()  # `main` has disabled it for the imports
        return resolved

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"mcpzip.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, _FUNCTIONS.get(cmd_name, cmd_name.replace("-", "_")))
        command.short_help = _SENTENCES.get(cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, listed in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), says) for name, says in listed.items()])


@click.group(
    cls=_Commands,
    epilog=examples(
        ("mcpzip init", "set mcpzip up"),
        ("mcpzip search 'send a message'", "find tools"),
        ("mcpzip doctor", "what is wrong, and what fixes it"),
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="mcpzip")
@config_option
@click.pass_context
def commands(context: click.Context, config: str | None) -> None:
    """Three tools in front of every MCP server your agent talks to.

    The config is --config FILE, else $MCPZIP_CONFIG, else the default: mcpzip config path prints it.
    The log lies in the folder "logs" beside it: mcpzip logs.

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
    except BrokenPipeError:  # the reader of our output (head, less) has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return DONE
    except (UpstreamError, LoginError) as error:
        console.warn(str(error))
        return FAILED
    except ConfigError as error:
        return config_error(error)
    except McpzipError as error:
        console.warn(str(error))
        return WRONG
    except _interrupts():
        return FAILED
    return code if isinstance(code, int) else DONE


def _interrupts() -> tuple[type[BaseException], ...]:
    """What ends a command from outside. asyncio is imported only now: many commands do without."""
    import asyncio

    return click.Abort, KeyboardInterrupt, asyncio.CancelledError


def config_error(error: ConfigError) -> int:
    """Says what is wrong with the config. Returns the exit code."""
    from mcpzip.cli.no_config import first_step

    console.warn(first_step(error, os.environ) or str(error))
    return WRONG
