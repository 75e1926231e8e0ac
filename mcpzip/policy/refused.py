"""Calls that were refused because nobody could be asked: a person can allow one of them by its short id.

The rules:

1. What a person is shown is the call as it would run, and what is allowed is exactly that call: the id only
   finds it. Two calls with the same id can't be mistaken for each other; the later one is shown.
2. Only the latest are kept, for an hour, in a file that only its owner can read. It has their arguments.
3. A file that can't be written costs the short id, and one that can't be used is written anew: it allows
   nothing.

    {"format":"mcpzip-refused","version":1,"calls":[{"id":"7f3a09c2e1b4","name":"mail__send",
     "definition":"9f86d0…","arguments":"{\"to\":\"ann@example.com\"}","at":1764039600.0}]}
"""

import os

import msgspec

from mcpzip.config.paths import refused_path
from mcpzip.model import limits
from mcpzip.system.files import make_folders
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.locks import locked_blocking
from mcpzip.system.state_files import read_state, write_state

FORMAT = Format("mcpzip-refused", 1, "a list of refused calls")
KEPT = 3_600.0
"""Seconds for which a refused call can be allowed by its id."""
_ID = 12
"""Characters of an id."""
_LOCK_TIMEOUT = 2.0
"""Seconds to wait for another process that writes."""


class RefusedCall(msgspec.Struct, frozen=True):
    """name: of the tool, with its server. definition: the hash of the tool's definition. arguments: JSON
    text. at: when it was refused, Unix seconds.
    """

    id: str
    name: str
    definition: str
    arguments: str
    at: float


class _File(Head):
    calls: list[RefusedCall]


def id_of(call_hash: bytes) -> str:
    """The short id of the call with this hash (`policy.hashes.call_hash`)."""
    return call_hash.hex()[:_ID]


def refused_calls(config_path: str, now: float) -> list[RefusedCall]:
    """The calls that were refused lately, the oldest first; none if the file can't be used."""
    try:
        found = FORMAT.decode(read_state(refused_path(config_path), limits.REFUSED), _File).calls
    except (OSError, UnusableError):
        return []
    return [each for each in found if each.at - 60 <= now < each.at + KEPT]


def remember(config_path: str, call: RefusedCall) -> None:
    """Has ``call`` found by its id. Raises OSError."""
    path = refused_path(config_path)
    make_folders(os.path.dirname(path))
    with locked_blocking(f"{path}.lock", _LOCK_TIMEOUT):
        others = [each for each in refused_calls(config_path, call.at) if each.id != call.id]
        kept = [*others, call][-limits.REFUSED_CALLS :]
        write_state(path, msgspec.json.encode(_File(FORMAT.name, FORMAT.version, kept)), limits.REFUSED)
