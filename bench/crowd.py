"""Many clients with calls in flight, served by one thread that reads no more of the answers than it must, so
that its own time is small.
"""

import os
import select
import time
from collections.abc import Sequence

from bench.client import CHUNK, Client

_PATIENCE = 30.0


class Crowd:
    """Clients that make the same call again and again. Nothing else may use them meanwhile."""

    def __init__(self, clients: Sequence[Client], params: object, window: int) -> None:
        """params: of `tools/call`. window: the calls of each client in flight."""
        self._clients, self._params, self._window = clients, params, window

    def calls(self, each: int) -> float:
        """Makes ``each`` calls a client. Returns the seconds until the last answer. Raises SystemExit if one
        is an error or missing.
        """
        frames = {
            client.output: [client.frame("tools/call", self._params) for _ in range(each)]
            for client in self._clients
        }
        clients = {client.output: client for client in self._clients}
        poll = select.poll()
        heard: dict[int, list[bytes]] = {output: [] for output in clients}
        left = dict.fromkeys(clients, each)
        begun = time.perf_counter()
        for output, client in clients.items():
            poll.register(output, select.POLLIN)
            client.write(b"".join(frames[output][: self._window]))
            del frames[output][: self._window]
        open_ = set(clients)
        while open_:
            ready = poll.poll(_PATIENCE * 1000)
            if not ready:
                raise SystemExit(f"{len(open_)} clients wait in vain")
            for output, _ in ready:
                data = os.read(output, CHUNK)
                if not data:
                    raise SystemExit("a client's process has ended")
                heard[output].append(data)
                answers = data.count(b"\n")
                left[output] -= answers
                if frames[output]:
                    clients[output].write(b"".join(frames[output][:answers]))
                    del frames[output][:answers]
                elif left[output] <= 0:
                    open_.discard(output)
        took = time.perf_counter() - begun
        for pieces in heard.values():
            lines = b"".join(pieces).splitlines()
            wrong = [line for line in lines if b'"result"' not in line[:60] or b'"isError":true' in line]
            if wrong or len(lines) != each:
                raise SystemExit(f"{len(lines)} answers of {each}; {wrong[:1]}")
        return took
