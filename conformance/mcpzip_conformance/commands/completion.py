"""``completion``: the script that makes a shell complete commands, options, subjects and checks."""

import os
from collections.abc import Iterable

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from mcpzip.model.shell_completion import SHELLS, complete_with, script
from mcpzip_conformance.check import GROUPS, LEVELS
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.subject import load_all, names

PROGRAM = "mcpzip-conformance"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options, subjects and checks.

    \b
    bash 4.4 or newer: eval "$(mcpzip-conformance completion bash)" in ~/.bashrc
    zsh: the same with zsh in ~/.zshrc, after compinit
    fish: mcpzip-conformance completion fish > ~/.config/fish/completions/mcpzip-conformance.fish
    """
    click.echo(script(context.find_root().command, PROGRAM, shell))


def _families(context: click.Context) -> Iterable[str]:
    return names()


def _subjects(context: click.Context) -> Iterable[str]:
    families = names()
    return {*families, *(subject.id for name in families for subject in load_all(name))}


_BREAKS = (":", "=")


@add_completion_class
class _Bash(BashComplete):
    """bash makes a word of a colon: for ``mcpzip:dir`` it asks with the words ``mcpzip``, ``:`` and ``dir``,
    and puts the answer in the place of the last. The same holds for the ``=`` of ``--level=must``.
    """

    _typed = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and that one, as they were typed."""
        words = [""]
        for word in os.environ["COMP_WORDS"].split("\n")[: int(os.environ["COMP_CWORD"]) + 1]:
            if word.startswith(_BREAKS) or words[-1].endswith(_BREAKS):
                words[-1] += word
            else:
                words.append(word)
        read = ["".join(split_arg_string(word)) for word in words]
        self._typed = read[-1]
        return read[2:-1], self._typed

    def format_completion(self, item: CompletionItem) -> str:
        """A value without the part that bash keeps."""
        kept = self._typed[: self._typed.rfind(":") + 1]
        return f"{item.type},{item.value.removeprefix(kept)}"


complete_families = complete_with(_families)
"""Completes the names of the shipped files of subjects."""
complete_subjects = complete_with(_subjects, files=True)
"""Completes the shipped subjects with their variants, and files."""
complete_checks = complete_with(lambda context: [check.id for check in ALL])
complete_groups = complete_with(lambda context: GROUPS)
complete_levels = complete_with(lambda context: LEVELS)
