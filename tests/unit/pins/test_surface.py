"""The items of a server: all that a model can see of it."""

from mcpzip.catalog import ServerRecord
from mcpzip.model.entry import Entry
from mcpzip.pins.surface import Surface

RECORD = ServerRecord(
    "shop",
    entries=(Entry.parse("shop", b'{"name":"pay","description":"Pay."}'),),
    instructions="Prices are in euros.",
    prompts=(b'{"name":"greet"}',),
    resources=(b'{"uri":"memo://1"}',),
    templates=(b'{"uriTemplate":"memo://{id}"}',),
    info=b'{"name":"shop","title":"The shop","version":"1"}',
)


def test_everything_that_a_model_can_see_is_an_item() -> None:
    assert [(item.kind, item.name, item.body) for item in Surface(RECORD).items] == [
        ("server", "", b'{"name":"shop","title":"The shop"}'),
        ("instructions", "", b'"Prices are in euros."'),
        ("tool", "pay", b'{"name":"pay","description":"Pay."}'),
        ("prompt", "greet", b'{"name":"greet"}'),
        ("resource", "memo://1", b'{"uri":"memo://1"}'),
        ("template", "memo://{id}", b'{"uriTemplate":"memo://{id}"}'),
    ]
    assert Surface(ServerRecord("empty", info=b"[]")).items == []
