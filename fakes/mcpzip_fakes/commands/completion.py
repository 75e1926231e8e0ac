"""``mcpzip-fake completion``: the script that makes a shell complete commands, options and scenarios."""

import click

from mcpzip.model.shell_completion import SHELLS, complete_with, script
from mcpzip_fakes import endpoint_settings
from mcpzip_fakes.scenario import names

PROGRAM = "mcpzip-fake"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options and scenarios.

    \b
    bash 4.4 or newer: eval "$(mcpzip-fake completion bash)" in ~/.bashrc
    zsh: the same with zsh in ~/.zshrc, after compinit
    fish: mcpzip-fake completion fish > ~/.config/fish/completions/mcpzip-fake.fish
    """
    click.echo(script(context.find_root().command, PROGRAM, shell))


complete_shipped = complete_with(lambda context: names())
"""Completes the shipped scenarios."""
complete_playable = complete_with(lambda context: [*names(), *endpoint_settings.ENDPOINTS], files=True)
"""Completes what can be played: shipped scenarios, the fakes that are no MCP servers, and files."""
