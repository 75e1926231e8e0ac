"""``mcpzip-fake show CASSETTE``: an overview of a cassette, or one exchange in full."""

from collections.abc import Iterable

import click
import msgspec

from mcpzip.cassettes.files import load
from mcpzip.model import sanitize
from mcpzip_fakes.cassettes import overview
from mcpzip_fakes.click_errors import SafeCommand


@click.command("show", cls=SafeCommand)
@click.argument("cassette", type=click.Path())
@click.option("--exchange", "number", type=click.IntRange(1), metavar="N", help="Show exchange N in full.")
@click.option("--full", is_flag=True, help="Don't shorten anything. With --json: with all messages.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def show(cassette: str, number: int | None, full: bool, as_json: bool) -> None:
    """Show what is in CASSETTE: the server, its sessions, what it offers, and a line for each exchange."""
    loaded = load(cassette)
    if number is None:
        if as_json:
            _write_json(overview.as_json(loaded, full=full))
        else:
            _write(overview.overview(loaded, full=full))
        return
    each = overview.exchange_of(loaded, number)
    if each is None:
        count = len(loaded.exchanges)
        raise click.UsageError(f"{cassette} has no exchange {number}: it has {count}")
    if as_json:
        _write_json(overview.exchange_as_json(each))
    else:
        _write(overview.exchange_lines(each, full=full))


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _write_json(value: object) -> None:
    click.echo(sanitize.json_text(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))
