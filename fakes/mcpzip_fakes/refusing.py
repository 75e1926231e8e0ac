"""What click has to say of a command line that can't be run, harmless: it repeats the words of that."""

from typing import NoReturn

import click

from mcpzip.model import sanitize

_HELP: type[Exception] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""What newer versions of click raise to have the help shown: it is ours."""


class Refusing(click.Command):
    """A command whose errors are harmless, those of usage on one line. It goes before `click.Group` among the
    bases.
    """

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        """As click does."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            _refuse(error)

    def invoke(self, ctx: click.Context) -> object:
        """As click does."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            _refuse(error)


def _refuse(error: click.ClickException) -> NoReturn:
    if isinstance(error, _HELP):
        raise error
    told = error.format_message()
    if isinstance(error, click.UsageError):
        raise click.UsageError(sanitize.one_line(told), error.ctx) from error
    raise click.ClickException(sanitize.lines(told)) from error
