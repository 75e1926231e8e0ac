"""Generated tools: names, descriptions and schemas, the same on every run and every machine.

The n-th tool combines a verb and a noun, so that names differ in words and not only in a number.
"""

from mcpzip_fakes.definitions import Generate, Tool

_VERBS = (
    "create", "list", "get", "update", "delete", "search", "archive", "restore", "export", "import",
    "assign", "approve", "reject", "publish", "schedule", "cancel", "merge", "split", "share", "lock",
    "unlock", "validate", "preview", "count",
)  # fmt: skip
_NOUNS = (
    "invoice", "customer", "shipment", "ticket", "calendar_event", "document", "folder", "contract",
    "payment", "refund", "branch", "pipeline", "deployment", "dashboard", "alert", "contact",
    "campaign", "survey", "warehouse", "product", "coupon", "employee", "vacation_request",
    "meeting_room", "backup",
)  # fmt: skip
_PARAMETERS = (
    ("id", "string", "Its identifier."),
    ("limit", "integer", "How many at most."),
    ("note", "string", "A note kept with the change."),
    ("dry_run", "boolean", "Say what would happen, and do nothing."),
    ("tags", "array", "Labels to filter by."),
    ("since", "string", "Only what changed after this moment, as an ISO 8601 date."),
    ("owner", "string", "The user it belongs to."),
    ("amount", "number", "In the currency of the account."),
)
_FILLER = "It acts on the workspace of the signed-in user and asks for the permission of the same name."


def tools(wish: Generate) -> tuple[Tool, ...]:
    """``wish.count`` tools, in a fixed order, all names distinct."""
    return tuple(_tool(number, wish) for number in range(wish.count))


def _tool(number: int, wish: Generate) -> Tool:
    turn, place = divmod(number, len(_VERBS) * len(_NOUNS))
    # 24 verbs and 25 nouns share no factor: stepping through both at once meets every pair before one
    # comes again.
    verb, noun = _VERBS[place % len(_VERBS)], _NOUNS[place % len(_NOUNS)]
    name = f"{verb}_{noun}" + (f"_{turn + 1}" if turn else "")
    article = "an" if noun[0] in "aeiou" else "a"
    description = f"{verb.capitalize()} {article} {noun.replace('_', ' ')}."
    while len(description) < wish.description:
        description += f" {_FILLER}"
    properties: dict[str, object] = {}
    for index in range(wish.parameters):
        again, row = divmod(index, len(_PARAMETERS))
        key, kind, text = _PARAMETERS[row]
        schema: dict[str, object] = {"type": kind, "description": text}
        if kind == "array":
            schema["items"] = {"type": "string"}
        properties[key + (f"_{again + 1}" if again else "")] = schema
    return Tool.make(
        name,
        description=description,
        inputSchema={"type": "object", "properties": properties, "required": list(properties)[:1]},
    )
