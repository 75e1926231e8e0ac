"""The options of several commands that say which server at a URL is meant."""

from urllib.parse import urlsplit

import click

from mcpzip.model.errors import ConfigError


def check_url(url: str) -> None:
    """Raises ConfigError if a server over HTTP can't have this URL."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ConfigError("--url", "", "it is no URL of a server over HTTP", "say http://… or https://…")


def header(text: str) -> tuple[str, str]:
    """Name and value of an option ``--header 'NAME: VALUE'``. Raises UsageError."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or not value.strip():
        raise click.UsageError("--header has the form 'NAME: VALUE'")
    return name.strip().lower(), value.strip()
