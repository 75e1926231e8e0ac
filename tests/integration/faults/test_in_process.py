"""The fault table without a client: what all faults at once leave behind, what one costs its own server."""

import asyncio
import threading
from pathlib import Path

import pytest
from helpers.driver import comes_true, executed, family, left_of, pool_of, proxy_of, text_of
from helpers.fault_player import start
from helpers.fault_table import COLUMNS, HTTP, OF_HTTP, ROWS, STARTING, Absent, Row
from mcpzip_fakes.launch import Fakes

from mcpzip.model.errors import UpstreamError

PAY = b'{"name":"pay","arguments":{"id":"first"}}'


def rows_of(column: str) -> list[Row]:
    """Those that can be played without starting a server again."""
    rows = [row for row in ROWS if not isinstance(row.cell(column), Absent)]
    return [row for row in rows if column.startswith("stdio") or row.mend != "restart"]


@pytest.mark.parametrize("column", COLUMNS)
async def test_all_faults_at_once_leave_no_task_thread_or_process(tmp_path: Path, column: str) -> None:
    rows = rows_of(column)
    with Fakes(tmp_path / "fakes") as fakes:
        servers = [start(fakes, row, column, str(tmp_path / "mended")) for row in rows]
        others = {server.name: server.config | row.config for server, row in zip(servers, rows, strict=True)}
        threads = set(threading.enumerate())
        async with pool_of(tmp_path, others=others) as pool:

            def call(name: str) -> asyncio.Task[bytes]:
                return asyncio.create_task(pool.request(name, "tools/call", PAY, timeout=0.3))

            calls = [call(server.name) for server in servers]
            ends = [task for task, row in zip(calls, rows, strict=True) if row.cell(column) is not STARTING]
            outcomes = await asyncio.gather(*ends, return_exceptions=True)
            assert [it for it in outcomes if not isinstance(it, bytes | UpstreamError)] == []
        await asyncio.gather(*calls, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await comes_true(lambda: not set(threading.enumerate()) - threads)
        assert left_of(family(*servers) if column.startswith("stdio") else []) == []


NEIGHBOURS = [
    row for row in OF_HTTP if row.faults[0].get("nth") and not row.config and row.name != "forgotten session"
]
"""What befalls one answer; the loss of its session or its token befalls all."""


@pytest.mark.parametrize("column", HTTP)
async def test_a_bad_answer_costs_no_other_call_of_its_server(tmp_path: Path, column: str) -> None:
    """Each request over HTTP stands for itself: one that is lost takes no other with it."""
    lost = "404" if column == "http legacy" else ""  # there it says that the session is gone
    rows = [row for row in NEIGHBOURS if not isinstance(row.cell(column), Absent) and row.name != lost]
    with Fakes(tmp_path / "fakes") as fakes:
        servers = [start(fakes, row, column, "") for row in rows]

        async def under_way(server: str) -> str:
            return text_of(await executed(proxy, f"{server}__wait", {"on": server}, timeout=20))

        async with proxy_of(tmp_path, *servers) as proxy:
            waiting = [asyncio.create_task(under_way(server.name)) for server in servers]
            for server in servers:
                await server.record.until(lambda record: record.calls("wait"))
            await asyncio.gather(
                *(executed(proxy, f"{it.name}__pay", {"id": "x"}, timeout=0.3) for it in servers),
                return_exceptions=True,
            )
            told = await asyncio.gather(*waiting, return_exceptions=True)
        hurt = {
            row.name: text
            for row, server, text in zip(rows, servers, told, strict=True)
            if text != f'{{"on":"{server.name}"}}'
        }
        assert hurt == {}
