"""The reply of an exchange, changed by hand."""

import json

import pytest
from helpers.cassette_maker import asked, cassette, shop, told
from mcpzip_fakes.cassettes.editing import NotAReplyError, reply_text, with_reply

from mcpzip.cassettes.cassette import Event, Exchange


def test_a_reply_is_indented_in_the_editor_and_compact_in_the_cassette() -> None:
    made = cassette(*shop())
    text = reply_text(made, 5)
    assert '\n  "result": {\n' in text
    assert with_reply(made, 5, text) == made
    changed = with_reply(made, 5, text.replace('"42"', '"43 \\u00e9", "x": 1.50'))
    assert changed.exchanges[4].reply == (
        b'{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"43 \\u00e9","x":1.50}]}}'
    )
    assert changed.exchanges[:4] == made.exchanges[:4]
    assert changed.exchanges[4].events[0] == made.exchanges[4].events[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no JSON"),
        ("[]", "it is no JSON object"),
        ('{"id":2,"result":{}}', '"jsonrpc" is not "2.0"'),
        ('{"jsonrpc":"2.0","id":"2","result":{}}', '"id" is not that of the request, 2'),
        ('{"jsonrpc":"2.0","result":{}}', '"id" is not that of the request, 2'),
        ('{"jsonrpc":"2.0","id":2}', 'it needs one of "result" and "error"'),
        ('{"jsonrpc":"2.0","id":2,"error":{"code":"1","message":""}}', '"error" needs "code"'),
        ("[" * 100_000, "it is no JSON: it is nested too deeply"),
    ],
)
def test_what_is_no_reply_is_refused(text: str, why: str) -> None:
    with pytest.raises(NotAReplyError, match=why):
        with_reply(cassette(*shop()), 3, text)


def test_a_wrong_id_that_the_server_gave_may_stay() -> None:
    wrong = Event(kind="reply", after=1, data=b'{"jsonrpc":"2.0","id":99,"result":{}}')
    made = cassette(asked(1, "ping", before=[wrong]))
    assert b'"id":99' in (with_reply(made, 1, reply_text(made, 1)).exchanges[0].reply or b"")


def test_lone_surrogates_and_other_texts_stay() -> None:
    surrogate = Event(kind="reply", after=1, data=b'{"jsonrpc":"2.0","id":1,"result":{"x":"\\ud800"}}')
    page = Event(kind="reply", after=1, data=b"<html>")
    made = cassette(asked(1, "ping", before=[surrogate]), Exchange(verb="POST", at=9, events=(page,)))
    changed = with_reply(made, 1, reply_text(made, 1).replace("{", "{\n ", 1))
    assert json.loads(changed.exchanges[0].reply or b"") == json.loads(surrogate.data)
    assert b"\n" not in (changed.exchanges[0].reply or b"")
    assert with_reply(made, 2, "<b>").exchanges[1].reply == b"<b>"


def test_an_exchange_without_a_reply_is_named() -> None:
    made = cassette(told("notifications/initialized", 1))
    with pytest.raises(ValueError, match="exchange 1 has no reply"):
        reply_text(made, 1)
    with pytest.raises(ValueError, match="there is no exchange 2; give a number from 1 to 1"):
        reply_text(made, 2)
