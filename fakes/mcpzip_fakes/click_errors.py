"""click's errors, sanitized, because they quote the command line."""

from typing import NoReturn

import click

from mcpzip.model import sanitize

_HELP: type[Exception] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""Newer versions of click raise it to show the help, which needs no sanitizing."""


class SafeCommand(click.Command):
    """A command whose error messages are sanitized, and on one line if they are about usage. As a base class
    it must precede `click.Group`.
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
    raise _Safe(sanitize.lines(told), error.exit_code) from error


class _Safe(click.ClickException):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click reads it from the instance
