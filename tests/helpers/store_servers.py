"""The real stores of `bench/store_servers.py` for tests, which are skipped without them. In CI they fail."""

import os
import sys
from collections.abc import Callable

import pytest

from bench import store_servers
from bench.store_servers import PASSWORD, NotInstalledError, StoreServer, running

__all__ = ["PASSWORD", "SERVERS", "PostgresServer", "RedisServer", "StoreServer", "running"]


class _OrSkip(StoreServer):
    def __init__(self) -> None:
        try:
            super().__init__()
        except NotInstalledError as error:
            if os.environ.get("CI") and sys.platform == "linux":
                pytest.fail(str(error))
            pytest.skip(str(error))


class RedisServer(_OrSkip, store_servers.RedisServer):
    """Redis, or Valkey."""


class PostgresServer(_OrSkip, store_servers.PostgresServer):
    """PostgreSQL."""


SERVERS: dict[str, Callable[[], StoreServer]] = {"redis": RedisServer, "postgres": PostgresServer}
"""The remote kinds of stores."""
