"""Answering on a pipe while something slow goes on in another thread.

The rule: nothing is imported before it is needed, and what was read is never lost. POSIX: a selector waits
for the pipe and for the work at once. Windows has none for pipes: there the first message is answered, and
the rest waits the moment that the work takes.
"""

import os

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    T = TypeVar("T")

    class Answerer(Protocol):
        """Who answers: bytes in, replies out."""

        @property
        def busy(self) -> bool:
            """Whether the first message was dealt with: from now on work doesn't delay its answer."""

        @property
        def sated(self) -> bool:
            """Whether nothing more is to be read before the work is done."""

        def receive(self, data: bytes) -> bytes:
            """The replies to ``data``."""


_CHUNK = 1 << 16
_QUIET = 0.2
"""Seconds without a first message after which the work begins all the same."""


def open_if_closed(fd: int) -> None:
    """A client may start us without one of the three: its number must not become some other file's."""
    try:
        os.fstat(fd)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


def answer_while(work: "Callable[[], T]", answerer: "Answerer", stdin: int, stdout: int) -> "tuple[T, bool]":
    """Has ``answerer`` answer on the pipes until ``work`` is done; its result, and whether input ended.

    Raises what ``work`` raises.
    """
    if os.name == "nt":
        ended = _answer_first(answerer, stdin, stdout)
        return work(), ended
    return _answer_meanwhile(work, answerer, stdin, stdout)


def _answer_first(answerer: "Answerer", stdin: int, stdout: int) -> bool:
    while not answerer.busy:
        data = os.read(stdin, _CHUNK)
        if not data:
            return True
        _write(stdout, answerer.receive(data))
    return False


def _answer_meanwhile(
    work: "Callable[[], T]", answerer: "Answerer", stdin: int, stdout: int
) -> "tuple[T, bool]":
    import select
    import threading

    outcome: list[T] = []
    failure: list[BaseException] = []
    bell, ring = os.pipe()

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            os.write(ring, b"!")

    worker = threading.Thread(target=run, name="load", daemon=True)
    started = ended = False
    try:
        while True:
            waiting = [bell] if ended or (started and answerer.sated) else [bell, stdin]
            ready = select.select(waiting, (), (), None if started else _QUIET)[0]
            if bell in ready:
                break
            if stdin in ready:
                data = os.read(stdin, _CHUNK)
                ended = not data
                _write(stdout, answerer.receive(data))
            # Until the first answer is out, the work would only compete with it for the interpreter.
            if not started and (answerer.busy or answerer.sated or ended or not ready):
                worker.start()
                started = True
    finally:
        if started:
            worker.join()
        os.close(bell)
        os.close(ring)
    if failure:
        raise failure[0]
    return outcome[0], ended


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
