"""Adds and removes entries of a block mapping in a YAML file in place (pure).

The rule: whole entries are cut out of the text or put into it; all other lines keep their bytes. The result
is parsed, and the edit fails if it doesn't have the wanted data.

Plain scalars are read by the core schema of YAML 1.2 (chapter 10.3.2), as the programs read them that write
these files: ``on`` and ``12:30`` are texts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

MAX_LENGTH = 1_000_000
"""Characters of a file: reading takes about 10 µs for each."""


class YamlEditError(ValueError):
    """The text is not YAML, or can't be edited in place. The message is the reason."""


class _Loader(yaml.SafeLoader):
    pass


_Loader.yaml_implicit_resolvers = {}  # none of YAML 1.1's
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))


def parsed(text: str) -> dict[str, object]:
    """The mapping in ``text``, empty for an empty text. Raises YamlEditError, also for an alias: a small file
    with aliases can stand for a huge one.
    """
    node = _composed(text)
    try:
        return {} if node is None else _mapping(_Loader("").construct_document(node))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlEditError(f"it can't be read: {_reason(error)}") from error


def entry_text(text: str, path: Sequence[str], name: str) -> str:
    """The lines of the entry ``name`` of the mapping at ``path``, not indented."""
    mapping = _at(_composed(text), path)
    for number, (key, _) in enumerate(mapping.value if mapping is not None else ()):
        if mapping is not None and key.value == name:
            start, end = _span(text, mapping, number)
            return _indented(text[start:end], -key.start_mark.column)
    return ""


def edited(
    text: str, path: Sequence[str], remove: Sequence[str], add: Mapping[str, Mapping[str, object] | str]
) -> str:
    """``text`` without the entries ``remove`` of the mapping at ``path``, which has one key, and with the
    entries ``add``, which replace others of their names: data, or texts of `entry_text`. Raises
    YamlEditError.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    wanted = parsed(text)
    entries = _mapping(wanted.get(path[0]) or {})
    pieces = {name: each if isinstance(each, str) else dumped(name, each) for name, each in add.items()}
    for name in remove:
        entries.pop(name, None)
    for piece in pieces.values():
        entries.update(parsed(piece))
    wanted[path[0]] = entries
    mapping = _at(_composed(text), path)
    if mapping is None or not mapping.value:
        result = _with_new_mapping(text, path[0], pieces.values(), newline)
    else:
        if mapping.flow_style:
            raise YamlEditError(f"{path[0]} is written in braces")
        column = mapping.value[0][0].start_mark.column
        added = "".join(_indented(piece, column).replace("\n", newline) for piece in pieces.values())
        gone = {*remove, *pieces}
        spans = [
            _span(text, mapping, number) for number, (key, _) in enumerate(mapping.value) if key.value in gone
        ]
        position = spans[0][0] if spans else _span(text, mapping, len(mapping.value) - 1)[1]
        result = _spliced(text, spans, position, added, newline)
        if not entries:
            result = _without_mapping(result, path[0], newline)
    try:
        if parsed(result) == wanted:
            return result
    except YamlEditError:
        pass
    raise YamlEditError("its layout is one that can't be changed in place")


def dumped(name: str, entry: Mapping[str, object]) -> str:
    """An entry as lines, in the block style."""
    return yaml.safe_dump({name: dict(entry)}, sort_keys=False, allow_unicode=True, width=10_000)


# ---- the text


def _span(text: str, mapping: "yaml.MappingNode", number: int) -> tuple[int, int]:
    """The offsets of the lines of an entry: from its key to the end of its last line with content."""
    key, value = mapping.value[number]
    start = key.start_mark.index - key.start_mark.column
    if text[start : key.start_mark.index].strip():
        raise YamlEditError(f"{key.value} doesn't begin on a line of its own")
    end = text.find("\n", _end(value) - 1)
    return start, len(text) if end < 0 else end + 1


def _end(node: "yaml.Node") -> int:
    """The offset after the last character of ``node``, without the comments after it."""
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return max(int(node.end_mark.index), 1)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _spliced(text: str, spans: Sequence[tuple[int, int]], position: int, added: str, newline: str) -> str:
    if added and position and text[position - 1] != "\n":
        added = newline + added
    out, done = [], 0
    for start, end in (*spans, (len(text), len(text))):
        if done <= position <= start:
            out += [text[done:position], added, text[position:start]]
            position = -1
        else:
            out.append(text[done:start])
        done = end
    return "".join(out)


def _with_new_mapping(text: str, key: str, pieces: Any, newline: str) -> str:
    """``text`` with a mapping ``key`` that has ``pieces``; it has none yet, or an empty one."""
    body = "".join(_indented(piece, 2).replace("\n", newline) for piece in pieces)
    if not body:
        return text
    root = _composed(text)
    for name, value in root.value if root is not None else ():
        if name.value == key:
            start, end = name.end_mark.index, value.end_mark.index
            line = text.find("\n", end)
            rest = text[end : len(text) if line < 0 else line].rstrip("\r")
            return f"{text[:start]}:{rest}{newline}{body}{text[line + 1 :] if line >= 0 else ''}"
    separator = newline if text and not text.endswith("\n") else ""
    return f"{text}{separator}{key}:{newline}{body}"


def _without_mapping(text: str, key: str, newline: str) -> str:
    """``text`` with an empty mapping instead of nothing at ``key``."""
    pattern = re.compile(rf"^({re.escape(key)}[ \t]*:)[ \t]*(\#[^\r\n]*)?\r?$", re.MULTILINE)
    return pattern.sub(lambda found: f"{found[1]} {{}}{' ' + found[2] if found[2] else ''}", text, count=1)


def _indented(text: str, columns: int) -> str:
    lines = text.replace("\r\n", "\n").splitlines(keepends=True)
    if columns >= 0:
        return "".join(" " * columns + line if line.strip() else line for line in lines)
    return "".join(line[-columns:] if line.strip() else "\n" for line in lines)


# ---- the nodes


def _composed(text: str) -> "yaml.MappingNode | None":
    """The root of ``text``; None if it has no content."""
    if len(text) > MAX_LENGTH:
        raise YamlEditError(f"it has more than {MAX_LENGTH:,} characters")
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=_Loader)):
            raise YamlEditError("it has aliases (*name)")
        node = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, YamlEditError):
            raise
        raise YamlEditError(f"it is not YAML: {_reason(error)}") from error
    if node is not None and not isinstance(node, yaml.MappingNode):
        raise YamlEditError("it is not a mapping")
    if node is not None:
        _check_keys(node)
    return node


def _check_keys(node: "yaml.MappingNode") -> None:
    """Raises YamlEditError for a key that stands twice or isn't a text, in any mapping."""
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in seen:
            raise YamlEditError("a key stands twice, or is no text")
        seen.add(key.value)
        if isinstance(value, yaml.MappingNode):
            _check_keys(value)


def _at(root: "yaml.MappingNode | None", path: Sequence[str]) -> "yaml.MappingNode | None":
    node: Any = root
    for name in path:
        node = next((value for key, value in node.value if key.value == name), None) if node else None
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
        return None
    if not isinstance(node, yaml.MappingNode):
        raise YamlEditError(f"{'.'.join(path)} is not a mapping")
    return node


def _mapping(data: object) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise YamlEditError("it is not a mapping")
    return {str(key): value for key, value in data.items()}


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}" if mark is not None else ""
    return json.dumps(getattr(error, "problem", None) or type(error).__name__)[1:-1] + where
