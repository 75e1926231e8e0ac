"""Adds and removes tables of a TOML file in place (pure).

The rule: whole tables are cut out of the text or put into it; all other lines keep their bytes. The result is
parsed, and the edit fails if it doesn't have the wanted data (because of an inline table or a dotted key).
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_HEADER = re.compile(
    r"[ \t]*\[\[?[^\[\]\r\n=]*(?:\"[^\"\r\n]*\"[^\[\]\r\n=]*)*\]\]?[ \t]*(?:#[^\r\n]*)?\r?\n?"
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS = re.compile(r"""(\"{3}|'{3})|"(?:[^"\\]|\\.)*"|'[^']*'|#.*""")
"""A string or comment within one line; or (group 1) the opening quotation marks of a multi-line string."""
_ENDS = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    "'''": re.compile(r".*?'{3,5}", re.DOTALL),
}


class TomlEditError(ValueError):
    """The text is not TOML, or can't be edited in place. The message is the reason."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A table with its header and the comment above it. path: its keys. start, end: line numbers from 0."""

    path: tuple[str, ...]
    start: int
    end: int


def entry_text(text: str, path: Sequence[str], name: str) -> str:
    """The table ``name`` of the table at ``path`` as it is written: its header, comments and subtables, for
    `edited`. "" if it isn't written as a table of its own. Raises TomlEditError.
    """
    lines = text.splitlines(keepends=True)
    whole = (*path, name)
    parts = [section for section in _sections(lines) if section.path[: len(whole)] == whole]
    found = "".join(line for part in parts for line in lines[part.start : part.end])
    try:
        same = _at(tomllib.loads(found), whole) == _at(_parsed(text), whole)
    except tomllib.TOMLDecodeError:
        same = False
    return found if same else ""


def _at(data: object, path: Sequence[str]) -> object:
    for key in path:
        data = data.get(key, {}) if isinstance(data, dict) else {}
    return data


def edited(
    text: str, path: Sequence[str], remove: Sequence[str], add: Mapping[str, Mapping[str, object] | str]
) -> str:
    """``text`` without the tables ``remove`` of the table at ``path``, and with the tables ``add`` in it,
    which replace others of their names: data, or what `entry_text` returned. Raises TomlEditError.
    """
    wanted = _parsed(text)
    table: dict[str, object] = wanted
    for key in path:
        table = table.setdefault(key, {})  # type: ignore[assignment]
        if not isinstance(table, dict):
            raise TomlEditError(f"{'.'.join(path)} is not a table")
    removed = {*remove, *add}
    for name in removed:
        table.pop(name, None)
    for name, entry in add.items():
        table[name] = _at(_parsed(entry), (*path, name)) if isinstance(entry, str) else entry
    lines = text.splitlines(keepends=True)
    newline = "\r\n" if "\r\n" in text else "\n"
    depth = len(path)
    cut = [
        section
        for section in _sections(lines)
        if section.path[:depth] == tuple(path)
        and section.path[depth : depth + 1]
        and section.path[depth] in removed
    ]
    added: list[str] = []
    for name, entry in add.items():
        if added and added[-1].strip():
            added.append(newline)
        if isinstance(entry, str):
            added += entry.splitlines(keepends=True)
            added[-1] = added[-1].rstrip("\r\n") + newline
        else:
            added += _table((*path, name), entry, newline)
    position = cut[0].start if cut else len(lines)
    out: list[str] = []
    for number, line in enumerate([*lines, ""]):
        if number == position and added:
            if not cut and out:
                if not out[-1].endswith("\n"):
                    out[-1] += newline
                if out[-1].strip():
                    out.append(newline)
            out += added
            more = number < len(lines) and any(rest.strip() for rest in lines[cut[0].end :]) if cut else False
            if more and out[-1].strip():
                out.append(newline)
        if not any(section.start <= number < section.end for section in cut):
            out.append(line)
    result = "".join(out)
    try:
        found = tomllib.loads(result)
    except tomllib.TOMLDecodeError:
        found = {}
    here = _at(found, path)
    names_left = here.keys() if isinstance(here, dict) else ()
    if names_left != table.keys() or _without_empty(found) != _without_empty(wanted):
        raise TomlEditError("it can't be changed without changing other parts of it")
    return result


def _parsed(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TomlEditError(f"it is not TOML: {error}") from error


def _without_empty(data: object) -> object:
    if not isinstance(data, dict):
        return data
    kept = {key: _without_empty(value) for key, value in data.items()}
    return {key: value for key, value in kept.items() if value != {}}


def _sections(lines: Sequence[str]) -> list[_Section]:
    """The tables of a text, in order. Lines inside multi-line strings aren't headers."""
    starts: list[tuple[int, tuple[str, ...]]] = []
    closing = ""
    for number, line in enumerate(lines):
        if not closing and _HEADER.fullmatch(line):
            starts.append((number, _path(line)))
        else:
            closing = _open_string(line, closing)
    sections: list[_Section] = []
    ends = [_comment_start(lines, number) for number, _ in starts[1:]] + [len(lines)]
    for (number, path), end in zip(starts, ends, strict=False):
        sections.append(_Section(path, _comment_start(lines, number), end))
    return sections


def _open_string(line: str, closing: str) -> str:
    """The quotation marks that close the multi-line string open after ``line``; "" if none is open.

    closing: the same before ``line``.
    """
    at = 0
    while at < len(line):
        found = _ENDS[closing].match(line, at) if closing else _STRINGS.search(line, at)
        if found is None:
            return closing
        closing = "" if closing else found[1] or ""
        at = found.end()
    return closing


def _comment_start(lines: Sequence[str], number: int) -> int:
    """The first line of the comment directly above line ``number``; ``number`` if there is none."""
    while number and lines[number - 1].lstrip(" \t").startswith("#"):
        number -= 1
    return number


def _path(header: str) -> tuple[str, ...]:
    try:
        found: object = tomllib.loads(header)
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(found, dict | list) and found:
        if isinstance(found, list):
            found = found[0]
            continue
        key = next(iter(found))
        keys.append(key)
        found = found[key]
    return tuple(keys)


def _table(path: Sequence[str], entry: Mapping[str, object], newline: str) -> list[str]:
    plain = {key: value for key, value in entry.items() if not isinstance(value, Mapping)}
    nested = {key: value for key, value in entry.items() if isinstance(value, Mapping)}
    lines = [
        f"[{'.'.join(map(_key, path))}]",
        *(f"{_key(key)} = {_value(value)}" for key, value in plain.items()),
    ]
    result = [line + newline for line in lines]
    for key, value in nested.items():
        result += [newline, *_table((*path, key), value, newline)]
    return result


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise TomlEditError(f"{type(value).__name__} can't be written")
