"""A paged list has an end in bytes, items, pages and cursors, and is not unpacked before it is known to be
within them. (Pages of 20 MB with fresh cursors once took 1.5 GB in six seconds, and were asked for again for
ever.)
"""

import asyncio
import json
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Failed
from mcpzip.model import limits
from mcpzip.model.errors import UpstreamError, UpstreamListError
from mcpzip.proxy.refresh import FIRST_RETRY, LAST_RETRY, Refresher
from mcpzip.transport import pagination
from mcpzip.wire.json_iter import has_more_elements


class Server:
    """A connection to a server that answers page ``n`` with ``page(n)``."""

    def __init__(self, page):
        self.server = SimpleNamespace(name="shop")
        self.page, self.asked = page, []

    async def request(self, method, params, *, timeout, origin):
        self.asked.append(params)
        return self.page(len(self.asked) - 1)


def endless(tools, cursor=lambda number: f"page-{number}"):
    return Server(lambda n: json.dumps({"tools": tools, "nextCursor": cursor(n)}).encode())


async def listed(server):
    return await pagination.all_pages(server, "tools/list", "tools", 1.0)


async def test_a_list_without_end_stops_at_its_bytes(monkeypatch):
    monkeypatch.setattr(limits, "LIST_BYTES", 100_000)
    server = endless([{"name": "a", "description": "x" * 9_000}])
    with pytest.raises(UpstreamListError, match="over 100,000 bytes"):
        await listed(server)
    assert len(server.asked) == 11 + 1


async def test_a_list_without_end_stops_at_its_items(monkeypatch):
    monkeypatch.setattr(limits, "LIST_ITEMS", 1_000)
    server = endless([{"name": "a"}] * 300)
    with pytest.raises(UpstreamListError, match="over 1,000 items"):
        await listed(server)
    assert len(server.asked) == 4


async def test_a_list_without_end_stops_at_its_pages(monkeypatch):
    monkeypatch.setattr(limits, "LIST_PAGES", 7)
    server = endless([])
    with pytest.raises(UpstreamListError, match="over 7 pages"):
        await listed(server)
    assert len(server.asked) == 7


async def test_a_list_at_its_limits_is_whole(monkeypatch):
    monkeypatch.setattr(limits, "LIST_PAGES", 3)
    monkeypatch.setattr(limits, "LIST_ITEMS", 6)
    page = [{"name": "a"}, {"name": "b", "x": [1, 2, 3]}]
    texts = [json.dumps({"tools": page, **({"nextCursor": str(n)} if n < 2 else {})}) for n in range(3)]
    monkeypatch.setattr(limits, "LIST_BYTES", sum(map(len, texts)))
    found, _ = await listed(Server(lambda n: texts[n].encode()))
    assert [json.loads(one) for one in found] == page * 3


async def test_a_cursor_has_a_limit_and_is_not_sent_back():
    server = endless([], lambda number: str(number) + "x" * limits.CURSOR)
    with pytest.raises(UpstreamListError, match="a cursor of 16,385 characters"):
        await listed(server)
    assert len(server.asked) == 1


async def test_a_long_cursor_that_came_twice_is_not_repeated_whole():
    with pytest.raises(UpstreamError, match="goes in circles") as raised:
        await listed(endless([], lambda _: "c" * limits.CURSOR))
    assert len(str(raised.value)) < 2 * limits.ECHO


@pytest.mark.parametrize("element", ["{}", "1", '""', "[]", "[1,[2,{}]]", '{"a":[{}]}'])
async def test_a_page_of_too_many_items_is_never_unpacked(monkeypatch, element):
    page = f'{{"tools":[{",".join([element] * (limits.LIST_ITEMS + 1))}]}}'.encode()

    def unpack(_):
        raise AssertionError("it was unpacked")

    monkeypatch.setattr(pagination, "_list_decoder", SimpleNamespace(decode=unpack))
    with pytest.raises(UpstreamListError, match="over 50,000 items"):
        await listed(Server(lambda _: page))


async def test_a_page_of_very_many_keys_is_stepped_over():
    keys = ",".join(f'"{number}":0' for number in range(100_000))
    found, _ = await listed(Server(lambda _: f'{{{keys},"tools":[{{"name":"a"}}],{keys}}}'.encode()))
    assert found == [b'{"name":"a"}']


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.sampled_from([',"]', "\\", "[{,"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=6), st.integers(1, 6), st.booleans())
def test_elements_are_counted_as_they_stand(elements, most, ascii_only):
    text = json.dumps(elements, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert has_more_elements(text, most) == (len(elements) > most)


async def test_what_stands_beside_a_lone_surrogate_comes_as_it_was_sent():
    tools = [
        b'{"name":"a"}',
        b'{ "name":"b", "x" : 1E2, "d":"\\ud800 \\u0020" }',
        b'{"name":"\\u0020"}',
        b'{"name":"a"}',
    ]
    page = b'{"a":[{"name":"a"}], "tools" : [ ' + b" ,\n".join(tools) + b' ], "b":"\\ud801"}'
    found, _ = await listed(Server(lambda _: page))
    assert found == tools


async def test_a_torn_page_is_an_error():
    with pytest.raises(UpstreamError, match="makes no sense"):
        await listed(Server(lambda _: b'{"tools":[{"a":"\\ud800"},{"b":}]}'))


@pytest.mark.parametrize(
    ("error", "least", "most"),
    [
        (UpstreamError("shop", "it is down"), 0, FIRST_RETRY),
        (UpstreamListError("shop", "its tool list has over 7 pages"), LAST_RETRY - 5, LAST_RETRY),
    ],
)
async def test_a_list_over_a_limit_is_not_asked_for_again_soon(error, least, most):
    class Pool:
        async def list_tools(self, name, *, origin):
            raise error

    merged = []
    server = SimpleNamespace(name="shop", fingerprint="")
    refresher = Refresher([server], Pool(), merged.append)
    refresher.keep_trying()
    (update,) = await refresher.refresh(["shop"])
    try:
        wait = refresher._pending["shop"].when() - asyncio.get_running_loop().time()
        assert least <= wait <= most
        assert merged == [update]
        assert isinstance(update, Failed)
    finally:
        await refresher.close()


def test_the_page_knows_every_list():
    assert set(pagination._FIELDS) == {"tools", "prompts", "resources", "resourceTemplates"}
    assert msgspec.json.decode(b"{}", type=pagination._Page) == pagination._Page()
