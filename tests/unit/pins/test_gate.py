"""Where the pins decide: one place for all threads."""

import threading
from pathlib import Path

import pytest

from mcpzip.catalog import Catalog
from mcpzip.config.schema import Config
from mcpzip.pins import decisions
from mcpzip.pins.gate import Gate


def test_threads_that_need_it_at_once_get_the_same_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one thread had decided was lost when another made its own."""
    both = threading.Barrier(2, timeout=20)
    made: list[object] = []

    class Slow(decisions.Decisions):
        def __init__(self, *args: object) -> None:
            made.append(self)
            super().__init__(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(decisions, "Decisions", Slow)
    gate = Gate(Config(str(tmp_path / "config.json"), {}), Catalog)
    found: list[object] = []

    def need() -> None:
        both.wait()
        found.append(gate._decisions)

    threads = [threading.Thread(target=need) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert found == [made[0], made[0]]
