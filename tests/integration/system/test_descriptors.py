"""How many connections there can be, as the system has it."""

import subprocess
import sys

import pytest

from mcpzip.system.descriptors import raise_descriptor_limit

SCRIPT = """
import resource
from mcpzip.system.descriptors import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(raise_descriptor_limit({wanted}), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "room", "after"),
    [
        (256, 1000, 300, 300, 500),  # raised as far as needed
        (256, 300, 2000, 150, 300),  # as far as may be, half of it for the rest
        (1000, 1000, 300, 300, 1000),
        (900, 900, 2000, 700, 900),
    ],
)
def test_the_limit_is_raised_or_kept_to(soft: int, hard: int, wanted: int, room: int, after: int) -> None:
    script = SCRIPT.format(soft=soft, hard=hard, wanted=wanted)
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    assert told.split() == [b"%d" % room, b"%d" % after]


def test_there_is_always_room_for_one() -> None:
    assert raise_descriptor_limit(1) == 1
