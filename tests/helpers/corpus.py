"""The texts for the checks of what servers say: attacks and honest texts that look like attacks.

``tests/data/checks/*.jsonl`` has one object a line. ``field`` and ``text`` are a text and the place in an
otherwise harmless server where it stands; ``tool`` is a whole tool instead, ``old`` the same tool before it
changed, ``server`` the name of the server, ``others`` the other servers: tool names and their descriptions.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mcpzip.checks import Finding, Others, Severity, check_items, compare
from mcpzip.checks.finding import more_severe
from mcpzip.model.surface import Item, Kind

FOLDER = Path(__file__).parents[1] / "data" / "checks"

Json = dict[str, object]


@dataclass(frozen=True)
class Sample:
    """One line. checks: those that should find it, none for an honest text; an attack that is made of several
    orders has a check for each. part: ``a`` was read while the checks were written, ``b`` was not, ``c`` was
    written later. case: its number in docs/checks.md.
    """

    id: str
    checks: tuple[str, ...]
    part: str
    case: int
    items: tuple[Item, ...]
    old: Item | None
    server: str
    others: Others

    def findings(self) -> list[Finding]:
        """What the checks find."""
        if self.old is not None:
            return [one for item in self.items for one in compare(self.old, item, self.others, self.server)]
        return check_items(self.items, self.others, self.server)

    @cached_property
    def found_by(self) -> dict[str, Severity]:
        """Those of its checks that find it, each with the worst severity: hard or risky."""
        found: dict[str, Severity] = {}
        for one in self.findings():
            if one.severity != "note" and one.check in self.checks:
                found[one.check] = more_severe(one.severity, found.get(one.check, one.severity))
        return found

    @property
    def detected(self) -> bool:
        """Whether one of its checks finds it."""
        return bool(self.found_by)


def attacks() -> list[Sample]:
    """The attacks."""
    return list(_read("attacks.jsonl"))


def benign() -> list[Sample]:
    """The honest texts."""
    return list(_read("benign.jsonl"))


def _read(name: str) -> Iterator[Sample]:
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        row = json.loads(line)
        others = {
            server: [_item("tool", {"name": tool, "description": about}) for tool, about in tools.items()]
            for server, tools in row.get("others", {}).items()
        }
        old = row.get("old")
        yield Sample(
            row["id"],
            tuple(row.get("checks", ())),
            row.get("part", ""),
            row.get("case", 0),
            tuple(_items(row)),
            None if old is None else _item("tool", old),
            row.get("server", "fake"),
            Others.of(others),
        )


def _items(row: Json) -> list[Item]:
    if isinstance(tool := row.get("tool"), dict):
        return [_item("tool", tool)]
    text = str(row.get("text", "Look something up.")) * int(str(row.get("repeat", 1)))
    return [placed(str(row.get("field", "description")), text, str(row.get("name", "lookup")))]


def placed(field: str, text: str, name: str = "lookup") -> Item:
    """An otherwise harmless item with ``text`` in this field."""
    string: Json = {"type": "string"}
    of_schema: dict[str, Json] = {
        "enum": {"enum": [text, "x"]},
        "examples": {"examples": [text]},
        "parameter": {"description": text},
    }
    schema = of_schema.get(field, {field: text} if field in ("default", "$comment", "pattern") else None)
    tool: Json = {"name": name, "description": "Look something up.", "inputSchema": {"type": "object"}}
    if schema is not None:
        return _item("tool", tool | {"inputSchema": {"type": "object", "properties": {"q": string | schema}}})
    match field:
        case "parameter name":
            return _item("tool", tool | {"inputSchema": {"type": "object", "properties": {text: string}}})
        case "outputSchema":
            return _item(
                "tool", tool | {field: {"type": "object", "properties": {"sum": {"description": text}}}}
            )
        case "annotations.title":
            return _item("tool", tool | {"annotations": {"title": text}})
        case "_meta":
            return _item("tool", tool | {"_meta": {"example.com/hint": text}})
        case "_meta key":
            return _item("tool", tool | {"_meta": {text: True}})
        case "icon":
            return _item("tool", tool | {"icons": [{"src": text}]})
        case "instructions":
            return Item("instructions", "", _json(text))
        case "server title":
            return _item("server", {"name": "", "title": text, "version": "1"})
        case "prompt":
            return _item("prompt", {"name": "report", "description": text})
        case "prompt argument":
            return _item("prompt", {"name": "report", "arguments": [{"name": "q", "description": text}]})
        case "resource":
            return _item("resource", {"uri": "memo://1", "name": "memo", "description": text})
        case "template":
            return _item("template", {"uriTemplate": "memo://{id}", "name": "memo", "description": text})
        case "error":
            return _item("tool", {"name": name, "error": {"code": -32000, "message": text}})
        case _:
            return _item("tool", tool | {field: text})


def _item(kind: Kind, body: Json) -> Item:
    name = body.get("uri") or body.get("uriTemplate") or body.get("name") or ""
    return Item(kind, str(name), _json(body))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
