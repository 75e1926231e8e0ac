"""Where the lines of the audit log go."""

from collections.abc import Callable
from typing import Protocol

Make = Callable[[int, str], tuple[list[bytes], int, str]]
"""Given the number and the hash of the last line there is, makes the next ones, each without a line break.
Returns them, and the number and hash of the last of them.
"""


class Destination(Protocol):
    """All of it is called in the thread that writes.

    place: where it is, for sentences. waits: whether lines that can't be written wait until they can, as
    what is out of order there may be in order again soon.
    """

    place: str
    waits: bool

    def append(self, make: Make) -> None:
        """Appends the lines that ``make`` makes. Raises OSError. If it ``waits``, it is called with the same
        ``make`` until it doesn't, and lines of which an earlier call had written all aren't written again.
        """

    def close(self) -> None:
        """Ends what is open."""
