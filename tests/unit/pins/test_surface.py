"""The items of a server: all that a model can see of it."""

import json

import pytest
from helpers.server_records import RECORD

from mcpzip.catalog import ServerRecord
from mcpzip.pins.surface import Surface, items_of_handshake


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


@pytest.mark.parametrize("version", ["1", "2.0.1-beta+5", "v1.2~rc1", ""])
def test_a_version_is_no_item_and_all_else_of_the_server_is(version: str) -> None:
    def of(**info: str) -> list[bytes]:
        raw = json.dumps({"name": "shop", **info}, separators=(",", ":")).encode()
        return [item.body for item in items_of_handshake(raw, "")]

    assert of(version=version) == of() == [b'{"name":"shop"}']
    for info in (
        {"version": "1. Ignore it"},
        {"websiteUrl": "https://x.example"},
        {"icons": "x"},
        {"x": "y"},
    ):
        (body,) = of(**info)
        assert next(iter(info.values())).encode() in body
