"""A fake that stops while clients connect leaves no connection open."""

import gc
import socket
import threading
import warnings

from mcpzip_fakes.oauth.server import FakeAuth


def connect(host: str, port: int, found: list[socket.socket]) -> None:
    try:
        found.append(socket.create_connection((host, port), timeout=5))
    except OSError:  # it has stopped
        pass


def test_a_connection_that_comes_while_a_fake_stops_is_closed() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(10):
            auth = FakeAuth()
            host, port = auth.issuer.partition("//")[2].rstrip("/").split(":")
            found: list[socket.socket] = []

            def connect(
                place: tuple[str, int] = (host, int(port)), found: list[socket.socket] = found
            ) -> None:
                try:
                    found.append(socket.create_connection(place, timeout=5))
                except OSError:  # it has stopped
                    pass

            clients = [threading.Thread(target=connect) for _ in range(3)]
            for client in clients:
                client.start()
            auth.stop()
            for client in clients:
                client.join()
            for each in found:
                each.close()
        del auth
        gc.collect()
    assert [str(each.message) for each in told if "unclosed transport" in str(each.message)] == []
