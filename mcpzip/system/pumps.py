"""Standard input and output, and the output of a process, as sockets: where only sockets can be waited for,
as on Windows.

The rule: a thread for each copies between the descriptor and a socket. Both stay in order, and nothing is
read ahead of what fits the socket's buffer.

`server.shim` imports this module where it is needed.
"""

import os
import socket
import threading

_CHUNK = 1 << 16


class InputPump:
    """What arrives on a descriptor, from a socket."""

    def __init__(self, descriptor: int) -> None:
        """descriptor: is closed at its end."""
        self._descriptor = descriptor
        self.connection, self._theirs = socket.socketpair()
        self.connection.setblocking(False)
        threading.Thread(target=self._run, name="read-input", daemon=True).start()

    def fileno(self) -> int:
        """What can be waited for."""
        return self.connection.fileno()

    def read(self) -> bytes:
        """What has arrived; b"" at the end. Raises BlockingIOError if nothing has."""
        try:
            return self.connection.recv(_CHUNK)
        except BlockingIOError:
            raise
        except OSError:
            return b""

    def close(self) -> None:
        """Reads no more, once the read that is under way has ended."""
        self.connection.close()

    def hand_back(self, descriptor: int) -> None:
        """From now on all that wasn't taken is read from ``descriptor``."""
        reading, writing = os.pipe()
        os.dup2(reading, descriptor)
        os.close(reading)
        self.connection.setblocking(True)
        threading.Thread(target=self._copy_to, args=(writing,), name="hand-back", daemon=True).start()

    def _run(self) -> None:
        try:
            while data := os.read(self._descriptor, _CHUNK):
                self._theirs.sendall(data)
        except OSError:
            pass
        finally:
            self._theirs.close()
            os.close(self._descriptor)

    def _copy_to(self, descriptor: int) -> None:
        try:
            while data := self.connection.recv(_CHUNK):
                _write(descriptor, data)
        except OSError:
            pass
        finally:
            os.close(descriptor)


class OutputPump:
    """What is written to a descriptor, by way of a socket."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.connection, self._theirs = socket.socketpair()
        self.connection.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="write-output", daemon=True)
        self._thread.start()

    def write(self, data: "bytes | bytearray") -> int:
        """Takes the first bytes of ``data``; returns how many. Raises BlockingIOError, and BrokenPipeError if
        nobody reads them any more.
        """
        try:
            return self.connection.send(data)
        except BlockingIOError:
            raise
        except OSError as error:
            raise BrokenPipeError from error

    def finish(self, timeout: "float | None") -> None:
        """Waits until all is written: ``timeout`` seconds, None for as long as it takes."""
        try:
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self._thread.join(timeout)

    def close(self) -> None:
        """Takes no more."""
        self.connection.close()

    def _run(self) -> None:
        try:
            while data := self._theirs.recv(_CHUNK):
                _write(self._descriptor, data)
        except OSError:
            pass
        finally:
            self._theirs.close()


class PumpedStreams:
    """The streams of a process, as `startup_io.DirectStreams` has them."""

    are_pumped = True
    writes_at_once = True

    def __init__(self) -> None:
        self._input, self._output = InputPump(os.dup(0)), OutputPump(1)
        self.input, self.output = self._input.connection, self._output.connection
        self.wakeup, self._wakes = socket.socketpair()
        for end in (self.wakeup, self._wakes):
            end.setblocking(False)
        self.wakes = self._wakes.fileno()

    def read(self) -> bytes:
        return self._input.read()

    def write(self, data: "bytes | bytearray") -> int:
        return self._output.write(data)

    def heed(self) -> None:
        self.wakeup.recv(_CHUNK)

    def finish(self, timeout: "float | None") -> None:
        self._output.finish(timeout)

    def hand_back(self) -> None:
        self._input.hand_back(0)

    def close(self) -> None:
        self._output.close()
        self.wakeup.close()
        self._wakes.close()


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
