"""What a model can see of a server, item by item."""

from typing import Literal

import msgspec

Kind = Literal["server", "instructions", "tool", "prompt", "resource", "template"]
"""server: its name, title and description, as it said them in the handshake."""


class Item(msgspec.Struct, frozen=True):
    """One thing that a server offers. name: of the tool or prompt, the URI of the resource or template; ""
    for the server and its instructions. body: the JSON that the server sent.
    """

    kind: Kind
    name: str
    body: bytes
