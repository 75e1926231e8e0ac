"""Cassettes that were read."""

import os
from collections.abc import Mapping, Sequence

import msgspec

from mcpzip.cassettes import files
from mcpzip.cassettes.cassette import Cassette
from mcpzip.cassettes.layout import KEYS
from mcpzip_fakes.answer import JsonObject

_read: dict[str, Cassette] = {}
"""By path: those that `scenario_data` has read and that `cassette` hasn't returned yet."""


def scenario_data(data: Mapping[str, object], file: str) -> JsonObject:
    """The data of a scenario that plays the cassette in the ``data`` of ``file``. Raises CassetteError."""
    path = os.path.abspath(file)
    _read[path] = files.of_data(data, file)
    scenario = {key: value for key, value in data.items() if key not in KEYS}
    return {**scenario, "replay": {"cassette": path}}


def cassette(path: str, ignore: Sequence[str] = ()) -> Cassette:
    """The cassette at ``path``. ignore: paths that are added to those of its ``match``. Raises
    CassetteError."""
    found = _read.pop(path, None) or files.load(path)
    if not ignore:
        return found
    ignore = (*found.match.ignore, *ignore)
    return msgspec.structs.replace(found, match=msgspec.structs.replace(found.match, ignore=ignore))


def recorded_server(path: str) -> tuple[str, Sequence[str], str]:
    """The transport, command and URL of the recorded server. Raises CassetteError."""
    _read[path] = found = _read.get(path) or files.load(path)
    return found.transport, found.command, found.url
