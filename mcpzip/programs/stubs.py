"""What the type checker of the sandbox is told of tools: a function for each, with its parameters (pure).

    def github__search_issues(*, q: str, limit: int | None = ..., **others: Any) -> Any: ...

The rule: only what a schema says beyond doubt is checked, because a program that is refused can't be helped,
and the server checks its arguments itself. What tools return is `Any`.
"""

import keyword
from collections.abc import Iterable, Mapping

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.model.schema_reader import SchemaReader
from mcpzip.programs.source import CALL

PARAMETERS = 200
"""Parameters of a tool that are checked. The rest may be given."""
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict[Any, Any]",
}
UNCHECKED = (
    *("filter", "format", "getattr", "hasattr", "map", "open", "setattr"),
    *("FileExistsError", "FileNotFoundError", "ImportError", "IsADirectoryError", "ModuleNotFoundError"),
    *("NotADirectoryError", "PermissionError", "UnboundLocalError", "UnicodeDecodeError"),
    "UnicodeEncodeError",
)
"""What the sandbox has and its type checker doesn't know."""
_CALL = f"def {CALL}(name: str, arguments: dict[Any, Any] = ..., /) -> Any: ..."


class _Tool(msgspec.Struct):
    schema: object = msgspec.field(default=None, name="inputSchema")


def stubs(tools: Mapping[str, Entry], variables: Iterable[str]) -> str:
    """The stub file. tools: by the names under which the program calls them. variables: names that exist."""
    lines = ["from typing import Any", _CALL]
    lines += [f"{name}: Any" for name in sorted({*UNCHECKED, *variables}) if _is_name(name)]
    lines += [_function(name, entry) for name, entry in tools.items()]
    return "\n".join(lines) + "\n"


def _function(name: str, entry: Entry) -> str:
    try:
        schema = msgspec.json.decode(entry.raw, type=_Tool).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        schema = None
    reader = SchemaReader(schema)
    found = reader.members(schema)
    required: list[str] = []
    optional: list[str] = []
    others = found.others or not isinstance(schema, dict)
    for key, each in found.properties.items():
        if not _is_name(key) or len(required) + len(optional) >= PARAMETERS:
            others = True
        elif key in found.required:
            required.append(f"{key}: {_type(reader.type(each))}")
        else:
            optional.append(f"{key}: {_optional(_type(reader.type(each)))} = ...")
    parameters = [*required, *optional]
    if parameters:
        parameters.insert(0, "*")
    if others or not found.properties:
        parameters.append("**others: Any")
    return f"def {name}({', '.join(parameters)}) -> Any: ..."


def _type(name: str) -> str:
    """The Python type for the short name of a type in a schema (`model.type_names`)."""
    if name in _TYPES:
        return _TYPES[name]
    return "list[Any] | tuple[Any, ...]" if name.endswith("[]") else "Any"


def _optional(name: str) -> str:
    return name if name == "Any" else f"{name} | None"


def _is_name(text: str) -> bool:
    return (
        text.isidentifier() and not keyword.iskeyword(text) and not text.startswith("__") and len(text) <= 100
    )
