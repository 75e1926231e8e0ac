"""`mcpzip completion`: the script that makes a shell complete mcpzip's commands, options and names."""

import click
from click.shell_completion import get_completion_class

from mcpzip.cli import console
from mcpzip.cli.parameters import examples

_SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_MCPZIP_COMPLETE"
"""What the script sets when it asks mcpzip for completions; click's default for a program of this name."""


@click.command(
    epilog=examples(
        ("""echo 'eval "$(mcpzip completion bash)"' >> ~/.bashrc""", "bash 4.4 or newer"),
        ("""echo 'eval "$(mcpzip completion zsh)"' >> ~/.zshrc""", "after the line with compinit"),
        ("mcpzip completion fish > ~/.config/fish/completions/mcpzip.fish", "fish"),
    )
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script with which SHELL completes commands, options, servers and tools.

    Tools are those that were listed last: no server is started.
    """
    cls = get_completion_class(shell)
    assert cls is not None  # click has one for each of _SHELLS
    console.raw(cls(context.find_root().command, {}, "mcpzip", VARIABLE).source().strip().encode())
    return 0
