"""What the front desk answers with, prepared on an earlier run.

The rule: a card is good only for the version and the config it was written for, as far as the config shows in
it; in any doubt there is no card, and the first answer comes a few hundred milliseconds later from the whole
program. Nobody else's card is used (`mcpzip.system.state_files`). Standard library only: this is read before
anything else.
"""

import json
import os
import stat

from mcpzip import __version__
from mcpzip.config.paths import card_path
from mcpzip.model import limits
from mcpzip.system.state_files import read_state, write_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Card(TypedDict):
        """The results, as JSON values, of what a client asks first; the last three are None where they depend
        on more than the config. ``versions``: the legacy ones, oldest first.
        """

        stamp: list[object]
        versions: list[str]
        modern_version: str
        initialize: dict[str, object]
        discover: dict[str, object] | None
        tools: dict[str, object] | None
        modern_tools: dict[str, object] | None


_LIST = (dict, type(None))
_SHAPE = {
    "stamp": (list,),
    "versions": (list,),
    "modern_version": (str,),
    "initialize": (dict,),
    "discover": _LIST,
    "tools": _LIST,
    "modern_tools": _LIST,
}


def stamp(config_path: str) -> "list[object] | None":
    """What a card depends on: our version, the config's place, the servers it names and what of them is
    pinned, how tools are shown, how many results it wants.

    None when that can't be read, or not twice. What else the config says (a header, an argument) is in no
    answer of the front desk, and may differ at every start.
    """
    try:
        found = os.stat(config_path)
        # Reading a pipe here would leave nothing for later.
        if not stat.S_ISREG(found.st_mode) or found.st_size > limits.CONFIG:
            return None
        with open(config_path, "rb") as file:
            config = json.loads(file.read())
        servers = config["mcpServers"]
        used = {name: server for name, server in servers.items() if server.get("disabled") is not True}
        pinned = [[name, used[name].get("pin")] for name in sorted(used)]
        limit = (config.get("search") or {}).get("default_limit")
        depends = [__version__, config_path, pinned, config.get("expose"), limit]
        # A variable may say something else next time.
        return None if "${" in json.dumps(depends[2:]) else depends
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def read(config_path: str) -> "Card | None":
    """The card for this config, or None when there is none to trust."""
    try:
        card: Card = json.loads(read_state(card_path(config_path), limits.CARD))
        fits = card["stamp"] == stamp(config_path) and all(
            key in card and type(card.get(key)) in kinds for key, kinds in _SHAPE.items()
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return card if fits and card["versions"] else None


def write(config_path: str, card: "Card") -> None:
    """Keeps ``card``, unless it stands there already, or is too large: then none is kept. A disk that refuses
    costs only speed next time.
    """
    if read(config_path) == card:
        return
    path = card_path(config_path)
    try:
        data = json.dumps(card, ensure_ascii=False).encode()
        if len(data) <= limits.CARD:
            write_state(path, data)
        else:
            os.unlink(path)
    except OSError:
        pass
