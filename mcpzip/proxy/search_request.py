"""The types `SearchRequest` (the checked arguments of `search_tools`) and `SearchReport` (what a search
found)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from mcpzip.catalog import Catalog
from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.proxy.metatools import MAX_LIMIT

if TYPE_CHECKING:
    from mcpzip.search import Filters, Results


class SearchRequest(msgspec.Struct, frozen=True):
    """Validated arguments of `search_tools`. limit: tools at most."""

    query: str
    limit: int
    filters: "Filters"


class PendingServers(msgspec.Struct, frozen=True):
    """Servers whose tools will be found soon. starting: never listed, and being listed now. unindexed:
    listed, but not completely in the search index yet.
    """

    starting: tuple[str, ...] = ()
    unindexed: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.starting or self.unindexed)


NONE_PENDING = PendingServers()


class SearchReport(msgspec.Struct, frozen=True):
    """The results of a search, and the state of the servers at its time. unavailable: the reason why a server
    can't be used now, by its name; its tools are searched as they were last listed. held: how many items of
    a server are held back, as a phrase, by its name. pins_problem: why nothing can be compared with what was
    approved; "" if it can. config: its path, "" if there is none.
    """

    results: "Results"
    catalog: Catalog
    unavailable: Mapping[str, str]
    pending: PendingServers = NONE_PENDING
    held: Mapping[str, str] = {}
    pins_problem: str = ""
    config: str = ""


class _Arguments(msgspec.Struct):
    query: str | None = None
    limit: int | None = None
    server: str | None = None
    read_only: bool | None = None


def read_search_request(raw: bytes | None, default_limit: int) -> SearchRequest:
    """Reads the arguments (JSON text). Raises InvalidArgumentsError.

    A limit out of range is clamped, and one that is a string is read. `read_only: false` is no filter,
    because clients that fill in every parameter send it when they want none.
    """
    try:
        arguments = msgspec.json.decode(raw or b"{}", type=_Arguments, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"search_tools can't read its arguments: {error}.") from error
    if arguments.query is None:
        raise InvalidArgumentsError("'query' is missing: say in plain words what you want to do.")
    from mcpzip.search import Filters  # a first call doesn't wait for it

    limit = min(max(arguments.limit or default_limit, 1), MAX_LIMIT)
    return SearchRequest(
        arguments.query, limit, Filters(arguments.server or None, arguments.read_only or None)
    )
