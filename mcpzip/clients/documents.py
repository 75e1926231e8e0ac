"""The servers in a client's config file, and the file with other servers (pure: bytes in, bytes out).

The rule: a file that can't be edited without changing other parts of it is not changed at all.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Protocol

from mcpzip.clients import toml
from mcpzip.clients.jsonc import edited, member_text, parse
from mcpzip.clients.known import Format

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class DocumentError(ValueError):
    """The file can't be read or changed. The message is the reason."""


Entry = Mapping[str, object]


class Document(Protocol):
    """One file. path: the keys that lead to the object of servers."""

    def servers(self, path: Sequence[str]) -> dict[str, object]:
        """The entries by name, in order. Raises DocumentError if they aren't an object."""

    def raw(self, path: Sequence[str], name: str) -> str:
        """The entry ``name`` as text that `edited` can add again."""

    def edited(self, path: Sequence[str], remove: Sequence[str], add: Mapping[str, Entry | str]) -> bytes:
        """The file without the entries ``remove`` and with the entries ``add``: data, which is written in the
        file's own style, or a text from `raw`. Raises DocumentError.
        """


def read(data: bytes, kind: Format) -> Document:
    """The document in ``data``. Raises DocumentError."""
    body = data.removeprefix(_BYTE_ORDER_MARK)
    mark = data[: len(data) - len(body)]
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError("it is not UTF-8") from error
    if kind == "yaml":
        return _Yaml(mark, text)
    return _Toml(mark, text) if kind == "toml" else _Json(mark, text)


class _Json:
    def __init__(self, mark: bytes, text: str) -> None:
        self._mark, self._text = mark, text
        try:
            self._root = parse(text)
        except ValueError as error:
            raise DocumentError(f"it is not JSON: {error}") from error

    def servers(self, path: Sequence[str]) -> dict[str, object]:
        found = self._root.at(path)
        if found is None:
            return {}
        if not isinstance(found.data, dict):
            raise DocumentError(f"{'.'.join(path)} is not an object")
        return found.data

    def raw(self, path: Sequence[str], name: str) -> str:
        found = self._root.at([*path, name])
        return member_text(self._text, found) if found is not None else "{}"

    def edited(self, path: Sequence[str], remove: Sequence[str], add: Mapping[str, Entry | str]) -> bytes:
        try:
            text = edited(self._text, path, remove, add)
            parse(text)
        except ValueError as error:
            raise DocumentError(str(error)) from error
        return self._mark + text.encode("utf-8")


class _Toml:
    """A config of Codex. `raw` gives JSON for an entry that isn't written as tables of its own."""

    def __init__(self, mark: bytes, text: str) -> None:
        self._mark, self._text = mark, text
        try:
            self._root = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise DocumentError(f"it is not TOML: {error}") from error

    def servers(self, path: Sequence[str]) -> dict[str, object]:
        found: object = self._root
        for key in path:
            found = found.get(key, {}) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise DocumentError(f"{'.'.join(path)} is not a table")
        return found

    def raw(self, path: Sequence[str], name: str) -> str:
        written = toml.entry_text(self._text, path, name)
        return written or json.dumps(self.servers(path).get(name, {}), ensure_ascii=False, default=str)

    def edited(self, path: Sequence[str], remove: Sequence[str], add: Mapping[str, Entry | str]) -> bytes:
        entries = {
            name: json.loads(entry) if isinstance(entry, str) and entry.startswith("{") else entry
            for name, entry in add.items()
        }
        try:
            text = toml.edited(self._text, path, remove, entries)
        except ValueError as error:
            raise DocumentError(str(error)) from error
        return self._mark + text.encode("utf-8")


class _Yaml:
    """A config of Goose. Its library is imported for it alone."""

    def __init__(self, mark: bytes, text: str) -> None:
        from mcpzip.clients import yaml

        self._mark, self._text, self._yaml = mark, text, yaml
        try:
            self._root = yaml.parsed(text)
        except yaml.YamlEditError as error:
            raise DocumentError(str(error)) from error

    def servers(self, path: Sequence[str]) -> dict[str, object]:
        found: object = self._root
        for key in path:
            found = (found.get(key) or {}) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise DocumentError(f"{'.'.join(path)} is not a mapping")
        return found

    def raw(self, path: Sequence[str], name: str) -> str:
        return self._yaml.entry_text(self._text, path, name)

    def edited(self, path: Sequence[str], remove: Sequence[str], add: Mapping[str, Entry | str]) -> bytes:
        try:
            text = self._yaml.edited(self._text, path, remove, add)
        except self._yaml.YamlEditError as error:
            raise DocumentError(str(error)) from error
        return self._mark + text.encode("utf-8")
