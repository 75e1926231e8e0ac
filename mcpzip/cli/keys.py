"""`mcpzip keys`: API keys for people and machines that call mcpzip over HTTP."""

import os
import time

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, hint, json_option
from mcpzip.config import config_path, load
from mcpzip.config.http import is_scope
from mcpzip.identity.api_keys import ApiKey, new_key, read_keys, remove_keys
from mcpzip.model.durations import seconds_of
from mcpzip.model.errors import InvalidArgumentsError, McpzipError
from mcpzip.model.limits import GROUP, PERSON_NAME

_SCOPE = "The key has this scope; can be repeated."


@click.group()
def keys() -> None:
    """API keys for people and machines that call mcpzip over HTTP.

    They are for those who have no issuer of tokens. The config names the file: "http": {"api_keys":
    "keys.json"}. A change counts within a second, without a restart.
    """


@keys.command(
    short_help="Make a key.",
    epilog=examples(
        ("mcpzip keys add ann --group developers", "prints the key, once"),
        ("mcpzip keys add ci --group machines --expires 90d", "ends after 90 days"),
    ),
)
@click.argument("name")
@click.option("--group", "groups", metavar="GROUP", multiple=True, help="They are in it; can be repeated.")
@click.option("--scope", "scopes", metavar="SCOPE", multiple=True, help=_SCOPE)
@click.option("--expires", metavar="TIME", help="How long the key is valid, such as 12h, 90d; else for ever.")
@config_option
def add(
    name: str, groups: tuple[str, ...], scopes: tuple[str, ...], expires: str | None, config: str | None
) -> int:
    """Make a key for NAME, and print it.

    It is printed this once: the file has only its hash. Who gets a second key is the same person, so a key is
    replaced by adding another one and removing the first.
    """
    for what, text, longest in (("name", name, PERSON_NAME), *(("group", each, GROUP) for each in groups)):
        if not text.strip() or not text.isprintable() or len(text) > longest:
            raise InvalidArgumentsError(
                f"This {what} is empty, too long, or has characters that can't be shown: {text[:40]!r}."
            )
    if wrong := [each for each in scopes if not is_scope(each)]:
        raise InvalidArgumentsError(f"{wrong[0][:40]!r} is no scope: it has a space, or a quotation mark.")
    now, path = time.time(), _path(config)
    key = new_key(path, name, groups, scopes, now, None if expires is None else now + _seconds(expires))
    console.raw(key.encode())
    console.note(f"This is the key of {name}: send it as Authorization: Bearer KEY. It is not shown again.")
    return 0


@keys.command(name="list", short_help="Show the keys.", epilog=examples("mcpzip keys list"))
@json_option
@config_option
def list_keys(as_json: bool, config: str | None) -> int:
    """Show who has keys, without the keys themselves."""
    found, now = read_keys(_path(config)), time.time()
    if as_json:
        console.data(
            [
                {
                    "id": each.id,
                    "name": each.name,
                    "groups": each.groups,
                    "scopes": each.scopes,
                    "at": each.at,
                    "until": each.until,
                }
                for each in found
            ]
        )
        return 0
    if not found:
        console.say(f"There are no keys. To make one: {hint('keys', 'add', 'NAME')}")
        return 0
    table = console.Table("id", "name", "groups", "scopes", "made", "ends", wide=("groups",))
    for each in found:
        table.row(
            each.id,
            each.name,
            ", ".join(each.groups),
            " ".join(each.scopes),
            _day(each.at),
            _end(each, now),
        )
    table.show()
    return 0


@keys.command(
    short_help="Remove keys.",
    epilog=examples(
        ("mcpzip keys remove k7f3a09c2", "one key"),
        ("mcpzip keys remove ann", "all keys of ann"),
    ),
)
@click.argument("which", metavar="ID|NAME")
@config_option
def remove(which: str, config: str | None) -> int:
    """Remove a key by its ID, or all keys of a NAME: they are valid no more."""
    removed = remove_keys(_path(config), which)
    if not removed:
        raise InvalidArgumentsError(f"There is no key {which[:40]!r}. To see all: {hint('keys', 'list')}")
    console.say(f"Removed: {', '.join(f'{each.id} of {each.name}' for each in removed)}.")
    return 0


def _path(explicit: str | None) -> str:
    """The file of the keys. Raises McpzipError if the config names none."""
    config = load(config_path(explicit, os.environ), os.environ)
    if not config.http.api_keys:
        raise McpzipError(
            f'{config.path} names no file for them. Write into it: "http": {{"api_keys": "keys.json"}}'
        )
    return config.http.api_keys


def _seconds(text: str) -> float:
    try:
        seconds = seconds_of(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 100 * 365 * 86_400:
        raise InvalidArgumentsError(f"{text[:40]!r} is no time: write for example 12h, 90d or 52w.")
    return seconds


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))


def _end(key: ApiKey, now: float) -> str:
    if key.until is None:
        return "never"
    return f"{_day(key.until)}{' (over)' if key.is_over(now) else ''}"
