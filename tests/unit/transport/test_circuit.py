"""When a failing upstream is tried again."""

import random

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.transport.circuit import FIRST_DELAY, LONGEST_DELAY, CircuitBreaker


def failed(times: int, seed: int = 0, now: float = 1000.0) -> CircuitBreaker:
    circuit = CircuitBreaker(random.Random(seed))
    for _ in range(times):
        circuit.failed(now, "it is down")
    return circuit


def test_it_is_closed_until_something_fails() -> None:
    circuit = CircuitBreaker()
    assert not circuit.open(0.0)
    assert circuit.failures == 0


def test_it_opens_on_failure_says_why_and_closes_by_itself() -> None:
    circuit = failed(1)
    assert circuit.open(1000.0)
    assert circuit.reason == "it is down"
    assert not circuit.open(circuit.retry_at)


def test_success_forgets_everything() -> None:
    circuit = failed(9)
    circuit.succeeded()
    assert not circuit.open(1000.0)
    assert (circuit.failures, circuit.reason) == (0, "")
    circuit.failed(1000.0, "again")
    assert circuit.retry_at - 1000.0 <= FIRST_DELAY


@given(st.integers(1, 5000), st.integers())
def test_the_delay_doubles_up_to_the_longest_and_is_jittered(times: int, seed: int) -> None:
    delay = failed(times, seed).retry_at - 1000.0
    ceiling = LONGEST_DELAY if times > 20 else min(LONGEST_DELAY, FIRST_DELAY * 2 ** (times - 1))
    assert ceiling / 2 - 1e-6 <= delay <= ceiling + 1e-6


def test_clients_that_failed_together_come_back_apart() -> None:
    assert len({failed(5, seed).retry_at for seed in range(20)}) == 20
