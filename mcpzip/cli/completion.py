"""`mcpzip completion`: the script that makes a shell complete mcpzip's commands, options and names."""

import click
from click.shell_completion import get_completion_class

from mcpzip.cli import console
from mcpzip.cli.parameters import examples
from mcpzip.model.errors import McpzipError

_SHELLS = ("bash", "zsh", "fish", "powershell")
VARIABLE = "_MCPZIP_COMPLETE"
"""What the script sets when it asks mcpzip for completions; click's default for a program of this name."""


@click.command(
    epilog=examples(
        ("""echo 'eval "$(mcpzip completion bash)"' >> ~/.bashrc""", "bash 4.4 or newer"),
        ("""echo 'eval "$(mcpzip completion zsh)"' >> ~/.zshrc""", "after the line with compinit"),
        ("mcpzip completion fish > ~/.config/fish/completions/mcpzip.fish", "fish"),
        ("mcpzip completion powershell | Out-String | Invoke-Expression", "a line for $PROFILE"),
    )
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script with which SHELL completes commands, options, servers and tools.

    Tools are those that were listed last: no server is started.
    """
    cls = get_completion_class(shell)
    if cls is None:  # before click 8.5
        raise McpzipError(f"The installed click has no completion for {shell}. Install click 8.5 or newer.")
    console.raw(cls(context.find_root().command, {}, "mcpzip", VARIABLE).source().strip().encode())
    return 0
