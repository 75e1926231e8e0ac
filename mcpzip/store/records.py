"""What a store answers with, and what it accepts (pure).

The rule: every key, value and number is checked here before it is sent to a store, so that no store needs a
limit of its own.
"""

import re
from typing import NamedTuple

from mcpzip.model import limits

_NAME = re.compile(rf"[A-Za-z0-9_.:-]{{1,{limits.STORE_NAME}}}")
HIGHEST = (1 << 53) - 1
"""The highest version or number. Redis's scripts calculate with doubles, which are exact up to it."""


class Key(NamedTuple):
    """The address of a value: a table and a name in it."""

    table: str
    name: str


class Value(NamedTuple):
    """What is stored. version: from 1; it is never used twice in a store, not even after a deletion."""

    data: bytes
    version: int


class Lease(NamedTuple):
    """The right to do something alone for a while.

    number: the fencing number, from 1: higher than that of any earlier holder.
    """

    name: str
    owner: str
    number: int


class Entry(NamedTuple):
    """One entry of a log. number: from 1, higher than that of any earlier entry."""

    number: int
    data: bytes


class StoreFullError(Exception):
    """A backend has no room for another value: it has `limits.STORE_VALUES` in one table."""


def check_name(name: str) -> str:
    """``name``, of a table, value, lease, log, channel or owner. Raises ValueError."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"not a name in the store: {name[:40]!r}")
    return name


def check_key(key: Key) -> Key:
    """``key``. Raises ValueError."""
    check_name(key.table)
    check_name(key.name)
    return key


def check_size(data: bytes, most: int, what: str) -> bytes:
    """``data``. what: a noun with its article. Raises ValueError when it is longer than ``most`` bytes."""
    if len(data) > most:
        raise ValueError(f"{what} for the store is {len(data):,} bytes long, and {most:,} is the most")
    return data


def check_number(number: int, most: int = HIGHEST, *, least: int = 0) -> int:
    """``number``. Raises ValueError when it isn't from ``least`` to ``most``."""
    if not least <= number <= most:
        raise ValueError(f"{number} isn't from {least} to {most}")
    return number


def milliseconds(seconds: float) -> int:
    """The time of a lease. Raises ValueError when it isn't from 1 ms to `limits.STORE_LEASE`."""
    if not 0.001 <= seconds <= limits.STORE_LEASE:
        raise ValueError(f"a lease of {seconds} s; write from 0.001 to {limits.STORE_LEASE:g}")
    return round(seconds * 1_000)
