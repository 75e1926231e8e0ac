"""Answers messages on a pipe while another thread loads the program.

Modules are imported only when they are needed, to answer sooner. POSIX: a selector waits for input and for
the end of the work. Windows can't select on pipes: there the first message is answered before the work
begins, and later messages wait until it is done.
"""

import os
import stat
import sys

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    T = TypeVar("T")

    class Answerer(Protocol):
        """Takes input and returns replies."""

        @property
        def busy(self) -> bool:
            """Whether the first message was answered, so that the work can no longer delay that answer."""

        @property
        def sated(self) -> bool:
            """Whether to stop reading until the work is done."""

        def receive(self, data: bytes) -> bytes:
            """The replies to ``data``; b"" as ``data`` means the end of the input."""

        def resume(self) -> bytes:
            """The replies to what was received before and can be answered now."""

    Work = Callable[[Callable[[], None]], T]
    """Work in the middle of which something more can be answered: it then calls its argument, which returns
    when that has been done."""


_CHUNK = 1 << 16
_DONE, _RESUME = b"!", b"?"
_START_AFTER = 0.2
"""Seconds to wait for a first message before the work begins without one."""


def open_if_closed(fd: int) -> None:
    """Opens the null device as ``fd`` (0, 1 or 2) if a client has started us with that descriptor closed,
    because the next file that is opened would get its number.
    """
    try:
        os.fstat(fd)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


def make_nonblocking(fd: int) -> None:
    """Makes ``fd`` non-blocking, as far as the system can: POSIX."""
    if sys.platform != "win32":
        os.set_blocking(fd, False)


class DirectStreams:
    """The standard streams of a process, and what wakes it, as descriptors that can be waited for: POSIX.

    input, output, wakeup: for `readiness.wait`. wakes: where a byte ends the wait. writes_at_once: whether
    `write` never blocks. are_pumped: whether threads copy what passes (`pumps`).
    """

    are_pumped = False
    input, output = 0, 1

    def __init__(self) -> None:
        self.wakeup, self.wakes = os.pipe()
        make_nonblocking(self.wakes)
        self.writes_at_once = stat.S_IFMT(os.fstat(1).st_mode) in (stat.S_IFIFO, stat.S_IFSOCK)
        if self.writes_at_once:
            make_nonblocking(1)

    def read(self) -> bytes:
        """What has arrived; b"" at the end. Raises OSError."""
        return os.read(0, _CHUNK)

    def write(self, data: "bytes | bytearray") -> int:
        """Writes the first bytes of ``data``; returns how many. Raises BlockingIOError, and BrokenPipeError
        if nobody reads them any more.
        """
        return os.write(1, data)

    def heed(self) -> None:
        """Takes what has ended a wait."""
        os.read(self.wakeup, _CHUNK)

    def finish(self, timeout: "float | None") -> None:
        """Waits until what was written has passed: ``timeout`` seconds, None for as long as it takes."""

    def hand_back(self) -> None:
        """From now on others read the standard input."""

    def close(self) -> None:
        """Closes what is open besides the standard streams."""
        os.close(self.wakeup)
        os.close(self.wakes)


def answer_while(work: "Work[T]", answerer: "Answerer", stdin: int, stdout: int) -> "tuple[T, bool]":
    """Has ``answerer`` answer messages from ``stdin`` until ``work`` is done. Returns the result of ``work``,
    and whether the input has ended. Raises what ``work`` raises.
    """
    if os.name == "nt":
        ended = _answer_first_message(answerer, stdin, stdout)
        return work(lambda: _write(stdout, answerer.resume())), ended
    return _answer_with_selector(work, answerer, stdin, stdout)


def _answer_first_message(answerer: "Answerer", stdin: int, stdout: int) -> bool:
    """Returns whether the input has ended."""
    while not answerer.busy:
        data = os.read(stdin, _CHUNK)
        if not data:
            return True
        _write(stdout, answerer.receive(data))
    return False


def _answer_with_selector(work: "Work[T]", answerer: "Answerer", stdin: int, stdout: int) -> "tuple[T, bool]":
    import threading

    from mcpzip.system.readiness import wait

    outcome: list[T] = []
    failure: list[BaseException] = []
    done_reader, done_writer = os.pipe()
    resumed = threading.Event()

    def resume() -> None:
        os.write(done_writer, _RESUME)
        resumed.wait()
        resumed.clear()

    def run() -> None:
        try:
            outcome.append(work(resume))
        except BaseException as error:
            failure.append(error)
        finally:
            os.write(done_writer, _DONE)

    worker = threading.Thread(target=run, name="load", daemon=True)
    started = ended = False
    try:
        while True:
            inputs = [done_reader] if ended or (started and answerer.sated) else [done_reader, stdin]
            ready, _ = wait(inputs, (), None if started else _START_AFTER)
            if done_reader in ready:
                if os.read(done_reader, 1) == _DONE:
                    break
                try:
                    _write(stdout, answerer.resume())
                finally:
                    resumed.set()
            if stdin in ready:
                data = os.read(stdin, _CHUNK)
                ended = not data
                _write(stdout, answerer.receive(data))
            # Not before the first answer, because the two threads would compete for the interpreter lock.
            if not started and (answerer.busy or answerer.sated or ended or not ready):
                worker.start()
                started = True
    finally:
        if started:
            worker.join()
        os.close(done_reader)
        os.close(done_writer)
    if failure:
        raise failure[0]
    return outcome[0], ended


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
