"""The items of a server: all that a model can see of it."""

from helpers.server_records import RECORD

from mcpzip.catalog import ServerRecord
from mcpzip.pins.surface import Surface


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
