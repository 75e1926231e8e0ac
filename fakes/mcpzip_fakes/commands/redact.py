"""``mcpzip-fake redact CASSETTE``: replace secrets that are still in a cassette."""

import os

import click

from mcpzip.cassettes.environment_secrets import known_secrets
from mcpzip.cassettes.files import load_whole, save
from mcpzip.model import sanitize
from mcpzip.model.limits import CONFIG
from mcpzip.model.redaction import SHORTEST
from mcpzip_fakes.cassettes.redacting import redacted
from mcpzip_fakes.click_errors import SafeCommand


@click.command("redact", cls=SafeCommand)
@click.argument("cassette", type=click.Path())
@click.option(
    "--mask", "paths", metavar="PATH", multiple=True, help="Mask what is at this path of the messages, too."
)
@click.option(
    "--secret", "names", metavar="NAME", multiple=True, help="Mask the value of this variable, too."
)
@click.option(
    "--value-file", type=click.Path(allow_dash=True), help="Mask the lines of this file, too; - is stdin."
)
@click.option("--dry-run", is_flag=True, help="List what would be masked, and change nothing.")
def redact(
    cassette: str,
    paths: tuple[str, ...],
    names: tuple[str, ...],
    value_file: str | None,
    dry_run: bool,
) -> None:
    """Replace secrets in CASSETTE by masks: what the recorder would mask, and what you add.

    A PATH has a * for any name or index: params.arguments.pin, result.content.*.text. Comments in the file
    are lost.
    """
    loaded, more = load_whole(cassette)
    secrets = known_secrets(os.environ, names)
    if value_file is not None:
        secrets |= _values(value_file)
    whole, found = redacted(loaded, secrets, paths)
    for each in found:
        click.echo(sanitize.one_line(f"{each.mask}  {each.where}: {each.why}"))
    count = f"{len(found)} secret{'' if len(found) == 1 else 's'}"
    if whole == loaded:
        click.echo(f"{cassette} has none of them.")
    elif dry_run:
        click.echo(f"{count} to mask in {cassette}. Nothing was changed.")
    else:
        save(cassette, whole, more)
        click.echo(f"{count} masked in {cassette}.")


def _values(path: str) -> dict[str, str]:
    try:
        with click.open_file(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(CONFIG)
    except OSError as error:
        raise click.UsageError(f"{path} can't be read: {error.strerror}") from error
    values = [line.strip() for line in text.splitlines() if line.strip()]
    short = next((number for number, value in enumerate(values, 1) if len(value) < SHORTEST), None)
    if short is not None:
        raise click.UsageError(
            f"value {short} of {path} has fewer than {SHORTEST} characters, which are also in ordinary "
            "words; mask it with --mask and its path"
        )
    return dict.fromkeys(values, f"it is in {path}")
