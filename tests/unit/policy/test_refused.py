"""The calls that were refused lately."""

import os
import stat
from pathlib import Path

import pytest

from mcpzip.config.paths import refused_path
from mcpzip.model.limits import REFUSED_CALLS
from mcpzip.policy.refused import KEPT, RefusedCall, id_of, refused_calls, remember

NOW = 1_795_489_200.0


def call(number: int, at: float = NOW) -> RefusedCall:
    return RefusedCall(id_of(number.to_bytes(6, "big") * 5), "git__merge", "d", "{}", at)


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(tmp_path / "config.json")


def test_a_call_is_kept_for_an_hour(config: str) -> None:
    assert refused_calls(config, NOW) == []
    remember(config, call(1))
    assert refused_calls(config, NOW + KEPT - 1) == [call(1)]
    assert refused_calls(config, NOW + KEPT) == []
    assert refused_calls(config, NOW - 120) == [], "the clock was set back"


def test_the_latest_are_kept_and_each_once(config: str) -> None:
    for number in (*range(REFUSED_CALLS + 3), REFUSED_CALLS):
        remember(config, call(number, NOW + number))
    found = [each.id for each in refused_calls(config, NOW + REFUSED_CALLS)]
    assert len(found) == REFUSED_CALLS
    assert found[-1] == call(REFUSED_CALLS).id
    assert call(0).id not in found


def test_a_file_that_cannot_be_used_is_written_anew(config: str) -> None:
    remember(config, call(1))
    Path(refused_path(config)).write_bytes(b"{")
    assert refused_calls(config, NOW) == []
    remember(config, call(2))
    assert refused_calls(config, NOW) == [call(2)]


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_only_its_owner_can_read_it(config: str) -> None:
    remember(config, call(1))
    assert stat.S_IMODE(os.stat(refused_path(config)).st_mode) == 0o600
