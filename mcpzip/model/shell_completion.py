"""How a shell completes the command lines of our programs: its script, and the names that it is offered.

A completed name goes into a person's command line, where the shell reads it. So a name with any other
character than letters, digits and ``_ - . / :`` is never offered: a server could call its tool
``x$(rm -r ~)``.
"""

import re
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from mcpzip.model.errors import McpzipError

SHELLS = ("bash", "zsh", "fish", "powershell")
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:-]*", re.ASCII)
"""A name that no shell changes and no command takes for an option."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def script(command: click.Command, program: str, shell: str) -> str:
    """What ``shell``, one of `SHELLS`, must evaluate to complete ``program``, whose command line ``command``
    is. Raises McpzipError if the installed click can't.
    """
    cls = get_completion_class(shell)
    if cls is None:  # before click 8.5
        raise McpzipError(f"The installed click has no completion for {shell}. Install click 8.5 or newer.")
    return cls(command, {}, program, variable(program)).source().strip()


def variable(program: str) -> str:
    """What the script sets when it asks ``program`` for completions; click's default."""
    return f"_{program.replace('-', '_')}_complete".upper()


def complete_with(names: Callable[[click.Context], Iterable[str]], *, files: bool = False) -> Complete:
    """The completion of a parameter whose values are ``names`` of a context. Offers nothing if they can't be
    read, because there is nobody who could be told. files: the shell completes paths where no name fits.
    """

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        try:
            found = sorted(names(context))
        except (McpzipError, OSError):
            return []
        given = context.params.get(parameter.name or "")
        given = given if isinstance(given, (tuple, list)) else ()
        fitting = [
            CompletionItem(name)
            for name in found
            if name.startswith(begun) and name not in given and PLAIN_NAME.fullmatch(name)
        ]
        return fitting or ([CompletionItem(begun, type="file")] if files else [])

    return complete
