"""Servers that exceed the budget for hostile input, by a little and by a thousandfold (docs/security.md).

What holds for each: calls to another server are answered meanwhile, no turn of the event loop is long, memory
stays within 200 MB of what it was at the start, and the server is named with its reason.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.driver import Client, Json, serving, until
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mcpzip_fakes.launch import Fakes

from mcpzip.model import limits

QUICK = (Phase.explicit, Phase.generate)
"""An example starts three processes: what fails is told as it was drawn."""
ROOM = 200 * limits.MiB
"""Bytes of memory that a hostile server may cost."""


@dataclass(frozen=True)
class Excess:
    """One way to exceed a limit. reason: a pattern of what is said of the server: in its status, or in the
    answer to ``pay`` if it is ``called``."""

    limit: str
    fault: Json
    reason: str
    called: bool = False
    transports: tuple[str, ...] = ("stdio", "http", "sse")


def rows(times: int) -> list[Excess]:
    """The ways, by ``times`` what is let in."""
    text = limits.MESSAGE * times + 1000
    return [
        Excess(
            "MESSAGE", {"kind": "endless", "tool": "pay", "size": text}, "line of more|too long|larger", True
        ),
        Excess(
            "MESSAGE",
            {"kind": "gzip-bomb", "tool": "pay", "size": text},
            "64 MiB|too long|larger|compress",
            True,
            ("http",),
        ),
        Excess(
            "HEAD",
            {"kind": "interim", "tool": "pay", "count": 0 if times > 1 else 10_000},
            "has not begun",
            True,
            ("http", "sse"),
        ),
        Excess(
            "LIST_BYTES",
            {"kind": "endless-pages", "size": 4_000_000, "count": 0 if times > 1 else 20},
            "list",
        ),
        Excess(
            "LIST_PAGES", {"kind": "endless-pages", "size": 1, "count": 0 if times > 1 else 1_001}, "page"
        ),
        Excess(
            "ITEM",
            {"kind": "endless-pages", "size": limits.ITEM * min(times, 8) + 1, "count": 1},
            "larg|long",
        ),
        Excess("NAME", {"kind": "long-name", "size": limits.NAME * times + 1}, "name"),
        *(
            Excess("SCHEMA_WORK", {"kind": "schema-bomb", "shape": shape, **sizes}, "")
            for shape, sizes in (
                ("refs", {"size": 100 * times, "count": 900}),
                ("all-of", {"size": 20 * times, "count": 900}),
                ("pointer", {"size": 2_000 * times, "count": 1 if times > 1 else 900}),
                ("anchor", {"size": 20 * times, "count": 900}),
                ("deep", {"size": 20 * times, "count": 20}),
            )
        ),
        Excess(
            "flood", {"kind": "flood", "count": 300 * min(times, 100), "size": 100, "what": "log"}, "", True
        ),
        *(
            Excess(
                "MEMBERS",
                {"kind": "many-keys", "count": 5 * min(times, 100) * 1000, "where": where},
                "",
                True,
            )
            for where in ("result", "meta", "content", "error")
        ),
        *(
            Excess(
                "MEMBERS",
                {"kind": "flood", "count": 20, "what": what, "keys": 5 * min(times, 20) * 1000},
                "",
                True,
            )
            for what in ("progress", "log")
        ),
    ]


def peak(pid: int) -> int:
    """Bytes of memory that the process has had at most (Linux)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024


excesses = st.sampled_from([row for times in (1, 1000) for row in rows(times)]).flatmap(
    lambda row: st.tuples(st.just(row), st.sampled_from(row.transports))
)


@pytest.mark.skipif(sys.platform != "linux", reason="what a process takes at most is told by Linux alone")
@settings(
    max_examples=12,
    derandomize=True,
    phases=QUICK,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(excess=excesses)
def test_who_exceeds_a_limit_hurts_nobody_else(
    excess: tuple[Excess, str], tmp_path_factory: pytest.TempPathFactory
):
    row, transport = excess
    folder = tmp_path_factory.mktemp("hostile")
    with Fakes(folder / "fakes") as fakes:
        bank = fakes.start(name="bank", tools=["look"])
        evil = fakes.start(name="evil", transport=transport, tools=["pay"], faults=[row.fault])
        with serving(folder, bank, evil) as client:
            before = peak(client.process.pid)
            _meet(client, row)
            assert peak(client.process.pid) - before < ROOM


def _meet(client: Client, row: Excess) -> None:
    """Plays the excess, with calls to the other server meanwhile."""
    until(lambda: _look(client) and re.search("^evil: .*( ago|failing)", client.status(), re.MULTILINE), 60)
    client.search("pay a bill")
    if row.called:
        call = client.send_call("evil__pay", {"id": 1})
        answered = lambda: any(_answers(line, call) for line in client.heard)  # noqa: E731
        until(lambda: _look(client) and answered(), 60)
        told = client.answer(call).line.decode()
    else:
        [told] = [line for line in client.status().splitlines() if line.startswith("evil:")]
        told += client.status().partition(told)[2]
    # A model isn't told what is wrong with its lists: nobody has approved what such a sentence may quote.
    assert re.search(f"{row.reason}|thing in its lists can't be used", told[:2_000]), told[:2_000]
    _look(client)


def _answers(line: bytes, call: int) -> bool:
    return b'"id":%d,' % call in line[:200]


def _look(client: Client) -> bool:
    return client.execute("bank__look", {"n": 1}, timeout=20).text == '{"n":1}'
