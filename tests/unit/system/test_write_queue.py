"""The queue that a thread writes: nothing waits, nothing that was taken is lost without being counted."""

import threading

from mcpzip.system.write_queue import WriteQueue

PATIENCE = 20.0


def test_what_is_put_is_written_in_order_before_it_closes() -> None:
    written: list[int] = []
    ended = threading.Event()
    queue: WriteQueue[int] = WriteQueue("test", 10, lambda: written.append(queue.items.popleft()), ended.set)
    for number in range(10):
        queue.put(number)
    queue.close(PATIENCE)
    assert written == list(range(10))
    assert ended.is_set()


def test_more_than_may_wait_is_counted() -> None:
    may_write, writes = threading.Event(), threading.Event()

    def write() -> None:
        writes.set()
        may_write.wait(PATIENCE)
        queue.items.popleft()

    queue: WriteQueue[int] = WriteQueue("test", 2, write)
    queue.put(0)
    assert writes.wait(PATIENCE)
    for number in range(1, 5):
        queue.put(number)
    assert (len(queue.items), queue.lost) == (2, 3)
    may_write.set()
    queue.close(PATIENCE)
    assert not queue.items


def test_one_that_nothing_was_put_into_closes_at_once() -> None:
    WriteQueue[int]("test", 2, lambda: None).close(PATIENCE)
