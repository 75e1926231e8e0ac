"""`mcpzip config`: where the config is, what counts, and its JSON Schema."""

import json
import os
from typing import Any

import click

from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples
from mcpzip.config import config_path, load
from mcpzip.config.json_schema import config_schema
from mcpzip.config.paths import CONFIG_VARIABLE, find_project
from mcpzip.config.project import read_project
from mcpzip.config.schema_forms import Schema
from mcpzip.config.secrets import masked_entry
from mcpzip.config.syntax import decode
from mcpzip.model import limits
from mcpzip.model.errors import ConfigError
from mcpzip.model.redaction import redact_json
from mcpzip.system.files import read_bytes_limited


@click.group()
def config() -> None:
    """Show where the config is, what it says, and what it may say."""


@config.command(
    epilog=examples(
        "mcpzip config path",
    )
)
@config_option
def path(config: str | None) -> int:
    """Print the path of the config, and of the project's file that is used too.

    It is --config FILE, else $MCPZIP_CONFIG, else ~/.config/compressed-mcp-proxy/config.json (the folder of
    the original mcpzip, so that its configs work unchanged), or ~/.config/mcpzip/config.json if only that
    exists.
    """
    found = config_path(config, os.environ)
    console.say(found)
    # The group's --config reaches this command as the variable.
    named = "--config" if config is not None else f"--config or ${CONFIG_VARIABLE}"
    why = "the default" if config is None and not os.environ.get(CONFIG_VARIABLE) else f"from {named}"
    console.note(f"({why}{'' if os.path.exists(found) else '; there is no such file yet'})")
    if project := find_project(os.environ):
        console.say(project)
        console.note("(of this project)")
    return 0


@config.command(
    epilog=examples(
        ("mcpzip config show", "what it says"),
        ("mcpzip config show --defaults", "with every key that it could have"),
    )
)
@click.option("--defaults", is_flag=True, help="With the keys that are not set, and their defaults.")
@config_option
def show(defaults: bool, config: str | None) -> int:
    """Print the config as JSON, with the project's servers, and without secrets.

    Variables stand as they are written. Warnings go to stderr; exit code 2 if the config can't be used.
    """
    file = config_path(config, os.environ)
    loaded = load(file, os.environ, find_project(os.environ))  # which also registers the secrets
    document = _document(file) if os.path.exists(file) else {}
    servers = _members(document, "mcpServers")
    if loaded.project:
        added = _members(_decoded(read_project(loaded.project), loaded.project), "mcpServers")
        servers = {**servers, **{name: added[name] for name in added if name in loaded.project_servers}}
    usable = {name for name, server in loaded.servers.items() if not server.problem}
    # The secrets of an entry with a mistake in it are not known.
    servers = {name: entry if name in usable else masked_entry(entry) for name, entry in servers.items()}
    document = {**document, "mcpServers": servers}
    if defaults:
        document = _with_defaults(document, config_schema())
    console.data(redact_json(document))
    for warning in loaded.warnings:
        console.warn(warning)
    return 0


@config.command(
    epilog=examples(
        "mcpzip config schema > config.schema.json",
    )
)
def schema() -> int:
    """Print the JSON Schema of the config, for editors that check and complete it.

    Save it beside the config, and write "$schema": "./config.schema.json" as the first key of the config.
    """
    console.raw(schema_text().removesuffix("\n").encode())
    return 0


def schema_text() -> str:
    """The schema as it is published."""
    return json.dumps(config_schema(), ensure_ascii=False, indent=2) + "\n"


def _document(file: str) -> dict[str, Any]:
    try:
        return _decoded(read_bytes_limited(file, limits.CONFIG), file)
    except OSError as error:
        raise ConfigError(
            file, "", f"it can't be read ({error.strerror or error})", "check the file"
        ) from error


def _decoded(data: bytes, file: str) -> dict[str, Any]:
    found = decode(data, file)
    return dict(found) if isinstance(found, dict) else {}


def _members(document: dict[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key)
    return dict(found) if isinstance(found, dict) else {}


def _with_defaults(document: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """``document`` with the defaults that ``schema`` names, at the top, in each server and in ``search``."""
    servers = {
        name: _filled(entry, schema["$defs"]["server"]) for name, entry in document["mcpServers"].items()
    }
    search = _filled(_members(document, "search"), schema["$defs"]["search"])
    whole: dict[str, Any] = _filled({**document, "mcpServers": servers, "search": search}, schema)
    return whole


def _filled(found: Any, schema: Schema) -> Any:
    if not isinstance(found, dict):
        return found
    properties: dict[str, Schema] = schema["properties"]
    given = {key: value for key, value in found.items() if value is not None}
    missing = {
        key: each["default"]
        for key, each in properties.items()
        if "default" in each and key not in given and not each.get("deprecated")
    }
    return {**given, **missing}
