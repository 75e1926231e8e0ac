"""Made-up tools: as many as wanted, the same ones every time, about as long as real ones."""

import json
import random
from collections.abc import Iterator

from mcpzip.model.entry import Entry

PER_SERVER = 100


def _split(text: str) -> list[str]:
    return text.split()


_SERVICES = _split("""
ledger atlas harbor beacon orchard quill lantern summit meadow forge compass anchor prism canvas
tempo cobalt juniper falcon pebble marlin
""")
_VERBS = _split("""
create list update delete archive export assign merge restore share read send search count compare
move copy upload download convert schedule cancel approve reject publish pause resume rename tag
translate verify summarize estimate subscribe invite lock sync print route inspect
""")
_NOUNS = _split("""
invoice ticket message calendar document branch customer shipment payment meeting folder report
contract pipeline campaign candidate device budget survey backup order refund warehouse sensor
dashboard alert certificate domain cluster volume playlist recipe flight hotel room patient
prescription lesson exam grade vehicle parcel auction bid wallet loan policy claim permit site crop
harvest match league player ticketing photo album video caption podcast episode chapter glossary
dataset notebook experiment sample protein molecule forecast station tide satellite orbit portfolio
trade dividend holding fund tax receipt expense timesheet shift roster badge visitor locker printer
scanner camera doorbell thermostat lamp blind
""")
_QUALITIES = _split("""
active archived overdue draft shared private pending recent weekly regional encrypted internal
public primary temporary verified
""")
_PARTS = _split("""
owner status label region priority currency format channel deadline template cursor limit filter
order note language timezone reference amount version
""")
_TYPES = ("string", "string", "integer", "boolean", "number")
_USES = (
    "Use it when the {noun} is known; to look one up take the search tool.",
    "Returns the {noun} with its identifier, status and timestamps.",
    "Only {quality} entries are changed; all others stay as they are.",
    "Fails with an error that names the field if the {noun} can't be read.",
    "Works on one {noun} at a time.",
)
_MEANINGS = (
    "The {part} that the {noun} has after the call.",
    "Only {quality} entries with this {part}.",
    "The {part}, as the {noun} shows it.",
    "How the {part} of each {noun} is written.",
)


def entries(count: int) -> Iterator[Entry]:
    """``count`` tools of servers with `PER_SERVER` tools each; about 1.2 kB of JSON each."""
    for number in range(count):
        server, tool = _made(number)
        yield Entry.parse(server, json.dumps(tool).encode())


def queries(tools: int, count: int) -> list[str]:
    """Requests for ``count`` of ``tools`` tools, each in words of its name and description."""
    drawn = random.Random(7)
    found = []
    for number in drawn.sample(range(tools), min(count, tools)):
        server, tool = _made(number)
        verb, noun, _ = str(tool["name"]).split("_")
        quality = str(tool["description"]).split()[1]
        found.append(
            drawn.choice(
                (f"{verb} {noun} in {server.split('-')[0]}", f"{verb} the {quality} {noun}", f"{noun} {verb}")
            )
        )
    return found


def _made(number: int) -> tuple[str, dict[str, object]]:
    drawn = random.Random(number)
    place = number // PER_SERVER
    server = f"{_SERVICES[place % len(_SERVICES)]}-{place}"
    verb, noun, quality = drawn.choice(_VERBS), drawn.choice(_NOUNS), drawn.choice(_QUALITIES)
    uses = " ".join(drawn.sample(_USES, drawn.randrange(1, 4))).format(noun=noun, quality=quality)
    properties: dict[str, object] = {
        f"{noun}_id": {"type": "string", "description": f"Identifier of the {noun} to {verb}."}
    }
    for part in drawn.sample(_PARTS, drawn.randrange(2, 9)):
        meaning = drawn.choice(_MEANINGS).format(part=part, noun=noun, quality=drawn.choice(_QUALITIES))
        properties[part] = {"type": drawn.choice(_TYPES), "description": meaning}
    return server, {
        "name": f"{verb}_{noun}_{number}",
        "description": f"{verb.capitalize()} {quality} {noun} entries. {uses}",
        "inputSchema": {"type": "object", "properties": properties, "required": [f"{noun}_id"]},
    }
