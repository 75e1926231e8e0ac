"""`mcpzip completion`: the script that makes a shell complete mcpzip's commands, options and names."""

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import examples
from mcpzip.model.shell_completion import SHELLS, script


@click.command(
    epilog=examples(
        ("""echo 'eval "$(mcpzip completion bash)"' >> ~/.bashrc""", "bash 4.4 or newer"),
        ("""echo 'eval "$(mcpzip completion zsh)"' >> ~/.zshrc""", "after the line with compinit"),
        ("mcpzip completion fish > ~/.config/fish/completions/mcpzip.fish", "fish"),
        ("mcpzip completion powershell | Out-String | Invoke-Expression", "a line for $PROFILE"),
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script with which SHELL completes commands, options, servers and tools.

    Tools are those that were listed last: no server is started.
    """
    console.raw(script(context.find_root().command, "mcpzip", shell).encode())
    return 0
