"""The pages of calls: whatever a call says is text, and many calls are a small page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.acting_markup import acting
from helpers.hostile_texts import hostile
from helpers.ui_places import MARKUP
from hypothesis import example, given, settings

from mcpzip.proxy.call_record import HAPPENED
from mcpzip.server.daemon.call_report import CallEvent, CallReport, ProgressReport
from mcpzip.ui.page import Visit
from mcpzip.ui.pages import calls
from mcpzip.ui.seen import Calls
from mcpzip.ui.sign_in import BrowserSession


def report(number: int, text: str, **more: Any) -> CallReport:
    """A call with ``text`` wherever a text can be."""
    return CallReport(
        **{
            "number": number,
            "client": text,
            "version": text,
            "pid": 7,
            "server": text,
            "tool": text,
            "at": 1_700_000_000.0 + number,
            "seconds": 1.5,
            "outcome": text,
            "error": text,
            "decision": text,
            "rule": text,
            "approved_by": text,
            "arguments": 2,
            "result": 2,
            "tokens": 3,
            "repairs": 1,
            "kept": True,
            "parent": 1,
            "continues": 1,
            "progress": ProgressReport(3, 0.1, 0.9),
            "events": (*(CallEvent(what, 0.1) for what in HAPPENED), CallEvent(text, 1.0)),
            **more,
        }
    )


class FakeSources:
    """Calls that a daemon tells of."""

    def __init__(self, *found: CallReport) -> None:
        self._found = found

    async def calls(self) -> Calls:
        return Calls(self._found, by_daemon=True)

    @asynccontextmanager
    async def seen(self) -> AsyncIterator[Any]:
        known = {call.server for call in self._found}
        catalog = SimpleNamespace(get=lambda name: object())
        yield SimpleNamespace(config=SimpleNamespace(servers=known), catalog=catalog)


def visit(*found: CallReport, name: str = "", **fields: str) -> Visit:
    sources: Any = FakeSources(*found)
    return Visit(sources, BrowserSession("s", "f"), "/root", name, fields)


async def shown(*found: CallReport, **fields: str) -> str:
    answer = await calls.show(visit(*found, **fields))
    assert answer.status == 200
    return answer.body.decode()


@settings(max_examples=30, deadline=None)
@given(hostile)
@example(MARKUP)
def test_whatever_a_call_says_is_text(text: str) -> None:
    async def pages() -> list[str]:
        found = report(1, text), report(2, text, seconds=None), report(3, "", decision="", events=())
        one = await calls.show_one(visit(*found, name="1"))
        listed = await shown(*found), await shown(*found, server=text, tool=text, client=text, outcome=text)
        return [one.body.decode(), *listed]

    for page in asyncio.run(pages()):
        assert acting(page) == []
        assert not set(page) & set("\u202e\u200b\x1b\x07\x00\x9b\u2028")


async def test_a_thousand_long_calls_are_a_small_page() -> None:
    found = [report(number, f"{'<' * 60}&{number}", seconds=0.5) for number in range(1_000)]
    assert len(await shown(*found)) < 200_000


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({}, [1, 2, 3, 4]),
        ({"server": "a"}, [1, 2]),
        ({"client": "x"}, [1, 3]),
        ({"outcome": "failed"}, [2]),
        ({"outcome": "under way"}, [4]),
        ({"outcome": "result"}, [1, 3]),
        ({"tool": "B__T"}, [3, 4]),
        ({"server": "a", "client": "y"}, [2]),
        ({"server": "nobody"}, []),
    ],
)
async def test_calls_are_chosen(fields: dict[str, str], numbers: list[int]) -> None:
    found = [
        report(1, "t", server="a", client="x", outcome="result"),
        report(2, "t", server="a", client="y", outcome="tool error"),
        report(3, "t", server="b", client="x", outcome="result"),
        report(4, "t", server="b", client="y", outcome="", seconds=None),
    ]
    page = await shown(*found, **fields)
    assert [number for number in range(1, 5) if f"/calls/{number}" in page] == numbers


async def test_a_call_that_is_not_remembered() -> None:
    for name in ("2", "x", "", "01"):
        assert (await calls.show_one(visit(report(1, "t"), name=name))).status == 404
