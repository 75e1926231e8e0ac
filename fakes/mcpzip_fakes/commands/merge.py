"""``mcpzip-fake merge A B … -o OUT``: several cassettes as one."""

import os

import click

from mcpzip.cassettes.files import load_whole, save
from mcpzip_fakes.cassettes.merging import Part
from mcpzip_fakes.cassettes.merging import merge as merged
from mcpzip_fakes.click_errors import SafeCommand


@click.command("merge", cls=SafeCommand)
@click.argument("cassettes", nargs=-1, required=True, type=click.Path(), metavar="CASSETTE…")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file to write.")
@click.option(
    "--once", is_flag=True, help="Leave out exchanges whose request and answer an earlier one has already."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def merge(cassettes: tuple[str, ...], output: str, once: bool, force: bool) -> None:
    """Make one cassette of several of one server: the sessions of all, in the order of the CASSETTEs.

    Name, command and URL are those of the first. Masked secrets get new numbers, because the same number in
    two cassettes means two secrets.
    """
    if os.path.exists(output) and not force:
        raise click.UsageError(f"{output} exists: choose another file, or add --force")
    whole, more, left_out = merged([Part(path, *load_whole(path)) for path in cassettes], once=once)
    save(output, whole, more)
    repeated = f"; {left_out} repeated ones were left out" if left_out else ""
    sessions, exchanges = _count(len(whole.sessions), "session"), _count(len(whole.exchanges), "exchange")
    click.echo(f"{output}: {sessions}, {exchanges}{repeated}.")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
