"""A server's record in the catalog that has something of every kind."""

from mcpzip.catalog import ServerRecord
from mcpzip.model.entry import Entry

RECORD = ServerRecord(
    "shop",
    entries=(Entry.parse("shop", b'{"name":"pay","description":"Pay."}'),),
    instructions="Prices are in euros.",
    prompts=(b'{"name":"greet"}',),
    resources=(b'{"uri":"memo://1"}',),
    templates=(b'{"uriTemplate":"memo://{id}"}',),
    info=b'{"name":"shop","title":"The shop","version":"1"}',
)
