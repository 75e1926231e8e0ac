"""What ``mcpzip-fake show`` says of a cassette."""

import json

import msgspec
from helpers.cassette_maker import asked, cassette, shop
from mcpzip_fakes.cassettes import overview

from mcpzip.cassettes.cassette import CLOSE, Event, Exchange, Masked, Match, Response


def rows(lines: list[str]) -> dict[str, str]:
    """The lines of exchanges, by their number."""
    return {line.split()[0]: line for line in lines if line[:5].strip().isdigit()}


def test_the_overview_has_what_the_server_is_and_a_line_for_each_exchange() -> None:
    made = cassette(
        *shop(),
        match=Match(ignore=("arguments.now",)),
        masked=(Masked(mask="[masked 1]", where="request 3: params.token", why="by name"),),
    )
    lines = list(overview.overview(made))
    text = "\n".join(lines)
    assert "server        shop 2, protocol 2025-11-25" in text
    assert "tools         2: pay, look" in text
    assert "match         ignore arguments.now" in text
    assert "masked        [masked 1] in request 3: params.token (by name)" in text
    found = rows(lines)
    assert list(found) == ["1", "2", "3", "4", "5"]
    assert "tools/list" in found["3"]
    assert found["3"].endswith("2 tools")
    assert found["4"].endswith(r"error -32602: No such \x1b[31minvoice")
    assert found["5"].endswith('"42"; 1 sent by the server')
    assert "\x1b" not in text


def test_a_long_overview_is_cut_and_says_so() -> None:
    many = cassette(*(asked(number, "ping", result={}) for number in range(1, overview.ROWS + 12)))
    lines = list(overview.overview(many))
    assert len(rows(lines)) == overview.ROWS
    assert lines[-1] == "… and 11 more: --full shows all"
    assert len(rows(list(overview.overview(many, full=True)))) == overview.ROWS + 11


def test_one_exchange_in_full() -> None:
    each = overview.exchange_of(cassette(*shop()), 5)
    assert each is not None
    lines = list(overview.exchange_lines(each))
    assert lines[0] == "exchange 5, session 1, at 4.000 s: tools/call look"
    assert '      "name": "look",' in lines
    assert "send, after 0.100 s" in lines
    assert "reply, after 0.500 s" in lines
    assert overview.exchange_of(cassette(*shop()), 6) is None


def test_a_long_message_is_cut_and_says_so() -> None:
    each = overview.exchange_of(cassette(asked(1, "ping", result={"x": list(range(1_000))})), 1)
    assert each is not None
    assert any(line.endswith("more lines: --full shows all") for line in overview.exchange_lines(each))
    assert any(line.strip() == "999" for line in overview.exchange_lines(each, full=True))


def test_what_is_no_message_is_shown_all_the_same() -> None:
    odd = cassette(
        Exchange(request=b"[]", at=1),
        Exchange(request=b"\xff\x00", at=2, events=(Event(kind="reply", after=1, data=b"<html>"),)),
        Exchange(verb="GET", at=3, response=Response(status=405)),
        Exchange(at=4, events=(Event(kind="stderr", after=0, data=b"\x1b[2J"),)),
        Exchange(verb=CLOSE, at=5, events=(Event(kind="end", after=0.1, code=3),)),
        asked(6, "ping"),
    )
    found = rows(list(overview.overview(odd)))
    endings = {
        "1": "a batch",
        "2": "an answer that is no message",
        "3": "HTTP 405",
        "4": "1 on stderr",
        "5": "the server ended with 3",
        "6": "no answer",
    }
    assert {number: found[number].endswith(end) for number, end in endings.items()} == dict.fromkeys(
        endings, True
    )
    shown = [line for number in (2, 4) for line in overview.exchange_lines(heard(odd, number))]
    assert r"  \xff\x00" in shown
    assert r"  \x1b[2J" in shown


def heard(made: overview.Cassette, number: int) -> overview.Heard:
    found = overview.exchange_of(made, number)
    assert found is not None
    return found


def test_json_has_the_messages_when_asked() -> None:
    made = cassette(*shop())
    short = json.loads(msgspec.json.encode(overview.as_json(made)))
    assert short["server"] == {"name": "shop", "version": "2"}
    assert short["offers"] == {"tools": ["pay", "look"]}
    assert "request" not in short["exchanges"][0]
    full = json.loads(msgspec.json.encode(overview.as_json(made, full=True)))
    assert full["exchanges"][3]["request"]["params"]["name"] == "pay"
    assert full["exchanges"][4]["events"][0]["data"]["method"] == "notifications/progress"
