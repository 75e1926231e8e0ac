"""An honest server, by which the checks of poisoned ones tell what a proxy shows of any server.

The rule: it has a text of each kind in which a poisoned server has an order, and none that a gate would hold.
"""

from mcpzip_conformance.scene import Server, server, tool

HONEST = {
    "descriptions": "thirty kilograms",
    "descriptions of parameters": "What the parcel weighs",
    "names of parameters": "parcel_weight",
    "values of parameters": "second class",
    "titles": "Parcel scales",
    "output schemas": "The postage in cents",
    "_meta or icons": "shelf seven",
    "instructions": "Parcels are weighed in grams",
    "descriptions of prompts and resources": "The table of postage",
    "names": "weigh_parcel",
}
"""A kind of text -> an honest one of `parcels`."""


def parcels() -> Server:
    """An honest server with a text of each kind."""
    weight = {
        "type": "number",
        "description": "What the parcel weighs, in grams.",
    }
    schema = {"type": "object", "properties": {"parcel_weight": weight, "by": {"enum": ["second class"]}}}
    postage = {
        "type": "object",
        "properties": {"cents": {"type": "number", "description": HONEST["output schemas"]}},
    }
    definition = {
        "description": "Weigh a parcel. It takes up to thirty kilograms.",
        "title": "Parcel scales",
        "annotations": {"title": "Parcel scales"},
        "inputSchema": schema,
        "outputSchema": postage,
        "_meta": {"example.com/place": "shelf seven"},
    }
    return server(
        tools=[tool("weigh_parcel", definition)],
        instructions="Parcels are weighed in grams.",
        prompts=[{"name": "letter", "description": "The table of postage."}],
        resources=[
            {"uri": "memo://postage", "name": "postage", "description": "The table of postage.", "text": "1"}
        ],
    )
