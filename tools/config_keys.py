"""Writes the tables of keys in docs/config.md from the JSON Schema of the config.

Run it with ``python tools/config_keys.py`` or ``nox -s config_keys``. A test compares the page.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcpzip.config.json_schema import config_schema

PAGE = Path(__file__).parents[1] / "docs" / "config.md"

_TABLE = re.compile(r"<!-- keys: (\S+)(.*?) -->\n.*?<!-- end of keys -->", re.DOTALL)
"""``<!-- keys: NAME KEY=#anchor … -->``: the keys of a definition in the schema, and where more is said."""
_HEAD = "| key | type | meaning | default |\n|---|---|---|---|\n"

Schema = dict[str, Any]


def page() -> str:
    """The page, with its tables as they should be."""
    schema = config_schema()

    def table(found: re.Match[str]) -> str:
        name, words = found.groups()
        part = schema if name == "config" else schema["$defs"][name]
        links = dict(word.split("=", 1) for word in words.split())
        rows = "".join(_rows(schema, part, links))
        return f"<!-- keys: {name}{words} -->\n{_HEAD}{rows}<!-- end of keys -->"

    return _TABLE.sub(table, PAGE.read_text("utf-8"))


def _rows(root: Schema, part: Schema, links: dict[str, str], above: str = "") -> Iterator[str]:
    properties = part["properties"]
    for key, given in properties.items():
        if given.get("deprecated") or key == "$schema":
            continue
        schema = _resolved(root, given)
        if above == "" and schema.get("properties") and "anyOf" not in given and key != "mcpServers":
            yield from _rows(root, schema, links, f"{key}.")
            continue
        name = f"`{above}{key}`"
        if above + key in links:
            name = f"[{name}]({links[above + key]})"
        others = [f"`{other}`" for other, one in properties.items() if one.get("deprecated")
                  and f'"{key}"' in one["description"]]  # fmt: skip
        also = f" Also {', '.join(others)}." if others else ""
        meaning = given.get("description") or schema["description"]
        yield f"| {name} | {_type(root, given)} | {_escaped(meaning)}{also} | {_default(given)} |\n"


def _resolved(root: Schema, schema: Schema) -> Schema:
    """The definition that ``schema`` refers to, alone or beside null."""
    first = schema["anyOf"][0] if "anyOf" in schema else schema
    reference = first.get("$ref")
    found: Schema = root["$defs"][reference.rpartition("/")[2]] if reference else schema
    return found


def _type(root: Schema, schema: Schema) -> str:
    """The kinds of values, without null, which is the same as leaving the key out."""
    if "$ref" in schema:
        return "object"
    choices = next((each["enum"] for each in schema.get("anyOf", ()) if "enum" in each), None)
    if choices is not None:
        named = [f'`"{choice}"`' for choice in choices if choice]
        others = {_type(root, each) for each in schema["anyOf"] if each.get("type") == "string"} | {
            "object" for each in schema["anyOf"] if "$ref" in each
        }
        return ", ".join([*named, *sorted(others, reverse=True)])
    if "anyOf" in schema:
        return ", ".join(found for each in schema["anyOf"] if (found := _type(root, each)))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return ", ".join(_kind(kind, schema) for kind in kinds if kind != "null")


def _kind(kind: str, schema: Schema) -> str:
    match kind:
        case "boolean":
            return "`true`, `false`"
        case "array":
            return "list of strings" if schema["items"].get("type") == "string" else "list"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            named = schema["additionalProperties"]
            return "object of strings" if "string" in named.get("type", ()) else "object"
        case "number" | "integer":
            limits = [f"{schema['minimum']:,}" if "minimum" in schema else "", f"{schema['maximum']:,}"]
            if "exclusiveMinimum" in schema:
                return f"number above {schema['exclusiveMinimum']:g}, at most {schema['maximum']:,.10g}"
            return f"number, {' to '.join(filter(None, limits))}"
    return kind


def _default(schema: Schema) -> str:
    if "default" not in schema:
        return ""
    value = schema["default"]
    return f"`{str(value).lower()}`" if isinstance(value, bool) else (
        f'`"{value}"`' if isinstance(value, str) else f"{value:,.10g}"
    )  # fmt: skip


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
