"""``mcpzip-fake edit CASSETTE N``: change the reply of an exchange in an editor."""

import click

from mcpzip.cassettes.files import load_whole, save
from mcpzip_fakes.cassettes.editing import NotAReplyError, reply_text, with_reply
from mcpzip_fakes.click_errors import SafeCommand


@click.command("edit", cls=SafeCommand)
@click.argument("cassette", type=click.Path())
@click.argument("number", metavar="N", type=click.IntRange(1))
def edit(cassette: str, number: int) -> None:
    """Open the reply of exchange N of CASSETTE in your editor ($VISUAL, $EDITOR), as indented JSON.

    It is checked and written back on one line. "mcpzip-fake show" has the numbers. Comments in the file are
    lost.
    """
    loaded, more = load_whole(cassette)
    try:
        text: str | None = reply_text(loaded, number)
    except ValueError as error:
        raise click.UsageError(f"{cassette}: {error}") from error
    while True:
        text = click.edit(text or "", extension=".json")
        if text is None:
            click.echo("Nothing was changed.")
            return
        try:
            changed = with_reply(loaded, number, text)
            break
        except NotAReplyError as error:
            click.echo(f"That is no reply to the request: {error}.", err=True)
            if not click.confirm("Edit it again?", default=True, err=True):
                raise click.ClickException("nothing was changed") from None
    save(cassette, changed, more)
    click.echo(f"Changed the reply of exchange {number} in {cassette}.")
