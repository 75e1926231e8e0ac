"""The forms of values in the JSON Schema of the config file (pure). Each may be null, as if it were missing.

The rule: a string with a variable in it is valid wherever a string is.
"""

from collections.abc import Iterable
from typing import Any

from mcpzip.config.auth import ALIASES
from mcpzip.config.schema import DECISIONS

Schema = dict[str, Any]

COMMENTS = r"^(_|//)"
"""The keys that are comments."""
VARIABLE = r"\$\{"


def object_of(description: str, properties: dict[str, Schema], *aliased: str) -> Schema:
    """aliased: the keys that have other names, which are added without being suggested (deprecated)."""
    named = dict(properties)
    for key in aliased:
        for name in ALIASES.get(key, ()):
            named[name] = {**properties[key], "description": f'Another name of "{key}".', "deprecated": True}
    return {
        "type": "object",
        "description": description,
        "properties": named,
        "patternProperties": {COMMENTS: True},
        "additionalProperties": False,
    }


def nullable(schema: Schema) -> Schema:
    """``schema``, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def text(description: str) -> Schema:
    """A string."""
    return {"description": description, "type": ["string", "null"]}


def texts(description: str) -> Schema:
    """A list of strings."""
    return {"description": description, "type": ["array", "null"], "items": {"type": "string"}}


def text_members(description: str) -> Schema:
    """An object of strings."""
    return {
        "description": description,
        "type": ["object", "null"],
        "additionalProperties": {"type": ["string", "null"]},
    }


def inherit_env(description: str) -> Schema:
    """Which variables are inherited."""
    return {
        "description": f"{description} true for all, or a list of names, in which * stands for anything.",
        "anyOf": [{"type": ["boolean", "null"]}, {"type": "array", "items": {"type": "string"}}],
    }


def boolean(description: str, *, default: bool) -> Schema:
    """true or false."""
    return {"description": description, "type": ["boolean", "null"], "default": default}


def choice(options: Iterable[str], description: str, default: str | None = None) -> Schema:
    """One of ``options``."""
    given = {} if default is None else {"default": default}
    return {
        "description": description,
        "type": ["string", "null"],
        **given,
        "anyOf": [{"enum": [*options, None]}, {"pattern": words(options)}],
    }


def words(options: Iterable[str]) -> str:
    """The pattern of a string that is one of ``options``, or none, with any spaces around it."""
    return rf"^\s*({'|'.join(options)})?\s*$|{VARIABLE}"


def decisions(description: str) -> Schema:
    """A policy: one decision for all calls, or one by class and glob."""
    return {
        "description": description,
        "anyOf": [
            {"enum": [*DECISIONS, None]},
            {"type": "string", "pattern": rf"^\s|\s$|{VARIABLE}"},
            {"$ref": "#/$defs/policy"},
        ],
    }


def number(
    description: str,
    default: float | None = None,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float,
) -> Schema:
    """A number. above, least, most: its limits."""
    found: Schema = {"description": description, "type": ["number", "null"], "maximum": most}
    if above is not None:
        found["exclusiveMinimum"] = above
    if least is not None:
        found["minimum"] = least
    if default is not None:
        found["default"] = default
    return found


def integer(description: str, default: int | None = None, *, least: int, most: int) -> Schema:
    """A whole number from ``least`` to ``most``."""
    return {**number(description, default, least=least, most=most), "type": ["integer", "null"]}
