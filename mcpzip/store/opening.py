"""Opens the store that a URL names. The package for it is imported here, and nowhere else."""

from urllib.parse import SplitResult, urlsplit

from mcpzip.model import limits
from mcpzip.model.errors import StoreError
from mcpzip.store.store import Store

REDIS, POSTGRES = ("redis", "rediss"), ("postgresql", "postgres")
SCHEMES = REDIS + POSTGRES
"""The kinds of stores."""


def open_store(url: str, namespace: str, deadline: float = limits.STORE_TIME) -> Store:
    """The store at ``url``, for the running event loop; it is connected to when it is first used.

    deadline: seconds for an operation. Raises StoreError.
    """
    parts = urlsplit(url)
    where = place(parts)
    extra = "redis" if parts.scheme in REDIS else "postgres"
    try:
        if parts.scheme in REDIS:
            from mcpzip.store.redis_backend import RedisBackend

            return Store(RedisBackend(url, namespace, where, deadline), deadline)
        if parts.scheme in POSTGRES:
            from mcpzip.store.postgres_backend import PostgresBackend

            return Store(PostgresBackend(url, namespace, where, deadline), deadline)
    except ImportError:
        remedy = f'Install it with: pip install "mcpzip[{extra}]".'
        raise StoreError(where, "refused", f"it needs the extra {extra}", remedy) from None
    except ValueError as error:
        raise StoreError(where, "refused", f"its URL can't be used ({error})") from None
    raise StoreError(where, "refused", f"{parts.scheme!r} is no kind of store")


def place(parts: SplitResult) -> str:
    """The URL without the user, the password and its parameters, which may have a password too."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
