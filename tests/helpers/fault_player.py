"""How a cell of the fault table is played: `mcpzip serve` before every server of a column and a good one.

The rules, for every cell: what the client sees is what the table says; calls to the good server go on
meanwhile; the call was not sent more often than the table says; the next call works; nothing is left when the
session is over.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from helpers.driver import (
    Answer,
    Client,
    Json,
    alive,
    environment,
    family,
    few_listings,
    left_of,
    serving,
    until,
    write_config,
)
from helpers.fault_table import (
    LOGIN,
    OPEN,
    ROWS,
    STARTING,
    Absent,
    Answered,
    Cell,
    Fails,
    NoAnswer,
    Refused,
    Row,
)
from mcpzip_fakes.launch import Fakes, FakeServer

ENOUGH = 25.0
"""Seconds for a call that is not meant to run out of them."""
SOON = 0.3
"""Seconds for one that is."""

LOOK: Json = {"name": "look", "description": "Look.", "result": {"text": "seen"}}
SLOW: Json = {"name": "slow", "result": {"echo": True, "delay": 0.05}}
WAIT: Json = {"name": "wait", "result": {"echo": True, "delay": 1.0}}


def played(*columns: str) -> list[object]:
    """The cells of these columns, to be parametrised with: a column and a row."""
    return [
        pytest.param(column, row, id=f"{column} {row.name}".replace(" ", "-"))
        for column in columns
        for row in ROWS
        if not isinstance(row.cell(column), Absent)
    ]


def start(fakes: Fakes, row: Row, column: str, mended: str) -> FakeServer:
    """The server of a cell."""
    transport, era = column.split()
    pay = {"name": "pay", "result": {"text": "{id} is paid, call {#}", "fill": True}, **row.tool}
    changed = [{**pay, "description": "Pay, and tell."}, {"name": "fresh", "result": {"text": "fresh"}}]
    ending = {"until": mended} if row.mend == "refresh" else {}
    return fakes.start(
        name=row.name.replace(" ", "-"),
        transport=transport,
        era=era,
        tools=[pay, LOOK, WAIT],
        changed_tools=changed if any(fault["kind"] == "list-changed" for fault in row.faults) else [],
        faults=[{**fault, **ending} for fault in row.faults],
        **row.server,
    )


def sent(server: FakeServer) -> list[str]:
    """The ids in the calls it was sent, in their order."""
    calls: list[Json] = server.record.calls("pay")
    return [params["arguments"]["id"] for params in calls]


class Town:
    """One session: a client, mcpzip, the servers of a column and ``bank``, which is well."""

    def __init__(self, column: str, client: Client, servers: dict[str, FakeServer], mended: Path) -> None:
        self.column, self.client, self.servers = column, client, servers
        self.rows = [row for row in ROWS if row.name in servers]
        self._bank = servers["bank"]
        self._mended = mended
        self._seen: dict[str, Answer] = {}
        # Who never gets well is waited for as long as a first listing may take: others are seen meanwhile.
        self._early = {
            row.name: self._pay(row, "first", ENOUGH) for row in self.rows if self._is_starting(row)
        }
        self._restarted: list[subprocess.Popen[bytes]] = []
        self._is_mended = False

    def settle(self) -> None:
        """Wait until every server is listed, or known to be ill where it is."""
        told = {
            self.servers[row.name].name: "needs login"
            if row.cell(self.column) == Fails(LOGIN, 0)
            else "failing"
            for row in self.rows
            if self._is_ill(row)
        }
        told |= {self.servers[row.name].name: "" for row in self.rows if self._is_starting(row)}

        def settled(line: str) -> bool:
            name, _, rest = line.partition(": ")
            return rest.startswith(told[name]) if name in told else "never listed" not in line

        def unsettled() -> list[str]:
            return [line for line in self.client.status().splitlines()[1:] if not settled(line)]

        try:
            until(lambda: not unsettled(), 60)
        except AssertionError as error:
            raise AssertionError(f"not listed, or not ill: {unsettled()}") from error

    def _is_ill(self, row: Row) -> bool:
        cell = row.cell(self.column)
        return isinstance(cell, Fails) and cell.received == 0

    # The call that meets the fault

    def see(self, row: Row) -> None:
        """Play the cell, once, and check what the client sees and that others go on."""
        cell = row.cell(self.column)
        self._check(row, cell, self._outcome(row))
        server = self.servers[row.name]
        if isinstance(cell, NoAnswer):  # which it may hear of later than its client
            until(lambda: {"first", "cancelled"} <= {*sent(server)})
        calls = sent(server)
        expected = cell.received if isinstance(cell, Answered | Fails) else 1
        assert calls.count("first") == expected
        assert calls.count("cancelled") == isinstance(cell, NoAnswer)

    def _outcome(self, row: Row) -> Answer:
        if row.name not in self._seen:
            self.client.heard[:] = [line for line in self.client.heard if len(line) < 100_000]
            across = self.client.send_call("bank__slow", {"across": row.name})
            self._seen[row.name] = self._played(row)
            if row.mend == "restart" and self.servers[row.name].url:
                self._restart(self.servers[row.name])
            assert self.client.answer(across).text == f'{{"across":"{row.name}"}}'
        return self._seen[row.name]

    def _played(self, row: Row) -> Answer:
        if isinstance(row.cell(self.column), NoAnswer):
            return self._in_vain(row)
        number = self._early.get(row.name) or self._pay(row, "first", ENOUGH)
        self._bank_works(row)
        return self.client.answer(number, 2 * ENOUGH)

    def _is_starting(self, row: Row) -> bool:
        return row.cell(self.column) is STARTING

    def _in_vain(self, row: Row) -> Answer:
        """The good server is served while a call hangs, which is cancelled; another has a short timeout."""
        hanging = self._pay(row, "cancelled", 600)
        self.servers[row.name].record.wait_for(lambda record: record.calls("pay"))
        self._bank_works(row)
        self.client.tell("notifications/cancelled", {"requestId": hanging})
        answer = self.client.answer(self._pay(row, "first", SOON))
        assert not any(b'"id":%d,' % hanging in line for line in self.client.heard)
        return answer

    def _check(self, row: Row, cell: Cell, answer: Answer) -> None:
        match cell:
            case Answered(ran=ran):
                assert answer.text == f"first is paid, call {ran}"
                assert not answer.failed
            case Fails(text=text):
                assert answer.failed
                self._reads(row, answer.text, text)
                assert text.endswith(OPEN) == answer.text.endswith(OPEN), answer.text
            case Refused(code=code, message=message, data=data):
                assert answer.error == {"code": code, "message": message, "data": data}
            case NoAnswer():
                said = f"{{name}}: no answer to tools/call within {SOON} s; the request was cancelled. {OPEN}"
                assert answer.failed
                self._reads(row, answer.text, said)
            case Absent():
                raise AssertionError("it is not played")

    def _reads(self, row: Row, text: str, expected: str) -> None:
        server = self.servers[row.name]
        url = httpx2.URL(server.url)
        names = {
            "name": server.name,
            "elsewhere": f"http://localhost:{url.port}{url.path}",
        }
        # The path a message is posted to over SSE is the server's own affair.
        if server.transport == "sse":
            names["elsewhere"] = f"http://localhost:{url.port}/"
        pattern = ".*".join(re.escape(part.format(**names)) for part in expected.split("…"))
        assert re.fullmatch(pattern, text, re.DOTALL), f"{text!r} is not {expected.format(**names)!r}"

    # The calls after it

    def next(self, row: Row) -> None:
        """The next call, which works unless the server never gets well."""
        (self._never_works if self._is_starting(row) else self._works_again)(row)

    def _works_again(self, row: Row) -> None:
        """It has its answer, is sent once, and one process of the server is there for it, at most."""
        if row.mend in ("refresh", "restart"):
            self._mend()
        else:
            self._outcome(row)
        seen: list[str] = []

        def again() -> bool:
            answer = self.client.answer(self._pay(row, "next", ENOUGH), ENOUGH)
            seen.append(answer.text)
            return not answer.failed

        if row.mend in ("refresh", "restart"):  # connecting again has its moment
            until(again)
        else:
            assert again(), seen
        # Where the same process answered the first call, that one ran no more often than it may.
        match row.cell(self.column):
            case Answered(ran=ran) if row.mend != "restart":
                assert seen[-1] == f"next is paid, call {ran + 1}"
            case _:
                assert re.fullmatch("next is paid, call [123]", seen[-1])
        server = self.servers[row.name]
        calls = sent(server)
        assert calls.count("next") == (2 if row.name == "redirect" else 1)
        if server.transport == "stdio":
            starts = [line.pid for line in server.record.events("start")]
            assert left_of(starts[:-1]) == []
            assert alive(starts[-1])

    def _never_works(self, row: Row) -> None:
        """A server that never gets well is told of again, and the good one still works."""
        self._outcome(row)
        answer = self.client.answer(self._pay(row, "next", ENOUGH), ENOUGH)
        assert answer.failed
        assert answer.text.startswith(f"{self.servers[row.name].name}: it ")
        assert self.servers[row.name].record.calls() == []
        self._bank_works(row)

    def _mend(self) -> None:
        """Every server that is ill is made well at once, when each has been seen so."""
        if self._is_mended:
            return
        self._is_mended = True
        ill = [row for row in self.rows if row.mend in ("refresh", "restart")]
        for row in ill:
            self._outcome(row)
        self._mended.touch()
        self.client.execute("proxy_refresh", timeout=0.1)

    def _restart(self, server: FakeServer) -> None:
        """Somebody starts ``server`` again, whose process has ended; at once, while its port is free."""
        server.record.wait_for(lambda record: record.events("exit"))
        assert left_of([line.pid for line in server.record.events("start")]) == []
        process = start_again(server)
        self._restarted.append(process)
        assert process.stdout
        assert process.stdout.readline().startswith(b"listening ")

    def hears_of_changes(self) -> None:
        """Tools that changed are known without being asked for, and 200 notices cost few listings."""
        rows = {row.name: row for row in self.rows}
        for name in ("storm of changes", "another description"):
            self._outcome(rows[name])
        storm = self.servers["storm of changes"]
        until(lambda: self.client.execute(f"{storm.name}__fresh").text == "fresh")
        changed = f"{self.servers['another description'].name}__pay"
        until(lambda: "Pay, and tell." in self.client.use("describe_tool", name=changed).text)
        assert few_listings(storm)

    def _pay(self, row: Row, what: str, timeout: float) -> int:
        call = {"name": f"{self.servers[row.name].name}__pay", "arguments": {"id": what}, "timeout": timeout}
        return self.client.send("tools/call", {"name": "execute_tool", "arguments": call})

    def _bank_works(self, row: Row) -> None:
        assert self.client.execute("bank__echo", {"row": row.name}).text == f'{{"row":"{row.name}"}}'

    # The end

    def leave(self) -> None:
        """The client leaves: mcpzip ends in good order, and none of the servers it started is left."""
        assert self.client.leave() == 0
        started = [server for server in self.servers.values() if server.transport == "stdio"]
        assert left_of(family(*started)) == []

    def clear(self) -> None:
        """End what we restarted."""
        for process in self._restarted:
            process.kill()
            process.wait()
            assert process.stdout
            process.stdout.close()


def start_again(server: FakeServer) -> "subprocess.Popen[bytes]":
    """The process of an HTTP fake that died, again at its port; it says so on its stdout."""
    place = server.record.path.parent
    words = ["--transport", server.transport, "--port", str(httpx2.URL(server.url).port)]
    command = [sys.executable, "-m", "mcpzip_fakes", str(place / "scenario.json"), *words]
    return subprocess.Popen(
        [*command, "--record", str(server.record.path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(),
    )


@contextmanager
def town_of(column: str, folder: Path) -> Iterator[Town]:
    """The session of a column, with its client's era the servers'."""
    mended = folder / "mended"
    with Fakes(folder / "fakes") as fakes, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        rows = [row for row in ROWS if not isinstance(row.cell(column), Absent)]
        servers = {row.name: start(fakes, row, column, str(mended)) for row in rows}
        others = {servers[row.name].name: {**servers[row.name].config, **row.config} for row in rows}
        servers["bank"] = fakes.start(name="bank", era=column.split()[1], tools=["echo", SLOW])
        write_config(folder, servers["bank"], others=others)
        with serving(folder, begin=False) as client:
            client.begin() if column.endswith("legacy") else client.begin_modern()
            town = Town(column, client, servers, mended)
            try:
                town.settle()
                yield town
            finally:
                town.clear()


@contextmanager
def towns_in(folder: Path) -> Iterator[Callable[[str], Town]]:
    """The town of each column, opened when it is first asked for."""
    with ExitStack() as stack:
        opened: dict[str, Town] = {}

        def town(column: str) -> Town:
            if column not in opened:
                place = folder / column.replace(" ", "-")
                place.mkdir()
                opened[column] = stack.enter_context(town_of(column, place))
            return opened[column]

        yield town
