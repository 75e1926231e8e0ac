"""What the front desk answers with, prepared on an earlier run.

The rule: a card is good only for the version and the config it was written for, as far as the config shows in
it; in any doubt there is no card, and the first answer comes a few hundred milliseconds later from the whole
program. Standard library
only: this is read before anything else.
"""

import json
import os
import stat

from mcpzip import __version__
from mcpzip.config.paths import card_path

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
        if not stat.S_ISREG(
            os.stat(config_path).st_mode
        ):  # reading a pipe here would leave nothing for later
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
        with open(card_path(config_path), "rb") as file:
            card: Card = json.loads(file.read())
        fits = card["stamp"] == stamp(config_path) and all(
            key in card and type(card.get(key)) in kinds for key, kinds in _SHAPE.items()
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return card if fits and card["versions"] else None


def write(config_path: str, card: "Card") -> None:
    """Keeps ``card``, unless it stands there already. A disk that refuses costs only speed next time."""
    from mcpzip.system.files import write_atomic

    if read(config_path) != card:
        try:
            write_atomic(card_path(config_path), json.dumps(card, ensure_ascii=False).encode())
        except OSError:
            pass
