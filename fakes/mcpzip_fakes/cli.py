"""``mcpzip-fake``: its commands. Without the name of one it plays a scenario (`commands.play`)."""

from collections.abc import Mapping
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from mcpzip.model.errors import McpzipError
from mcpzip_fakes.click_errors import SafeCommand

PLAY = "play"
COMMANDS: Mapping[str, str] = {
    PLAY: "Run the MCP server that a scenario or a cassette describes.",
    "record": "Record what a client and a real server say to each other, as a cassette.",
    "show": "Show what is in a cassette, or one exchange in full.",
    "check": "Compare a real server with the recorded one: a contract test.",
    "edit": "Change the reply of an exchange in your editor.",
    "redact": "Replace secrets that are still in a cassette.",
    "merge": "Make one cassette of several.",
    "completion": "Print the completion script of a shell.",
}
"""The commands and what they do. A command is the function of that name in the module of that name, which is
imported when the command is used."""
_HELP = ("-h", "--help")


class _Commands(SafeCommand, click.Group):
    """Words that begin with no command are those of `PLAY`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does."""
        named = args[0] in COMMANDS or args[0] in _HELP if args else ctx.resilient_parsing
        return super().parse_args(ctx, args if named else [PLAY, *args])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As click does."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As click does."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"mcpzip_fakes.commands.{cmd_name}"), cmd_name)
        command.short_help = COMMANDS[cmd_name]
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The first word is a command, or what `PLAY` may begin with."""
        found = super().shell_complete(ctx, incomplete)
        play = self.get_command(ctx, PLAY)
        assert play is not None
        with play.make_context(PLAY, [], parent=ctx, resilient_parsing=True) as context:
            if incomplete.startswith("-"):
                return [*found, *play.shell_complete(context, incomplete)]
            scenario = next(each for each in play.params if isinstance(each, click.Argument))
            found += scenario.shell_complete(context, incomplete)
        return [item for item in found if item.type == "plain"] or found  # files only where no name fits

    def invoke(self, ctx: click.Context) -> object:
        """As click does, with our errors as click's."""
        try:
            return super().invoke(ctx)
        except McpzipError as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": list(_HELP), "max_content_width": 100},
    options_metavar="",
    subcommand_metavar="SCENARIO [OPTIONS] | COMMAND …",
)
def main() -> None:
    """Fake MCP servers for tests: real servers on stdio and HTTP that follow a scenario.

    \b
    mcpzip-fake slack                         # a server on stdio
    mcpzip-fake slack --transport http        # on HTTP: prints its URL
    mcpzip-fake --list                        # the shipped scenarios, and the faults
    mcpzip-fake play --help                   # all options
    """
