"""On whose behalf servers are listed: some list certain tools only to a client that can be asked."""

from collections.abc import Collection

from msgspec.structs import replace

from mcpzip.proxy.client_capabilities import covers
from mcpzip.proxy.exchange import Client, members
from mcpzip.proxy.pipeline import CallPipeline
from mcpzip.proxy.shared_binding import SharedBinding, any_client
from mcpzip.transport.base import NOBODY, Origin
from mcpzip.wire import Era


class ListingOrigins:
    """The origins of the requests for lists. default: that of any server, nobody's before the start."""

    def __init__(self, pipeline: CallPipeline) -> None:
        self._pipeline = pipeline
        self.default: Origin = NOBODY

    def start(self, client: Client | None, folder: str | None) -> None:
        """client: the only one that there can be; None where clients come and go, and ``folder`` is then
        where servers run that are started to be listed.
        """
        bindings = self._pipeline.bindings
        if client is None:
            self.default = any_client(bindings.asked, folder)
        elif client.era is not None:
            self.default = self._pipeline.origin_with(client, bindings.of(client))

    def of(self, server: str, clients: Collection[Client]) -> Origin:
        """On whose behalf ``server`` is listed. Where clients come and go, that is the one of ``clients``
        that can be asked most, if others may use its connection too, so that no other process is started to
        list the tools.
        """
        if not isinstance(self.default.bound_client, SharedBinding) or not clients:
            return self.default
        able = max(clients, key=lambda client: len(members(client.capabilities)))
        binding = self._pipeline.bindings.for_listing(able, server)
        return self.default if binding is None else self._pipeline.origin_with(able, binding)

    def after_change(self, noticed: Origin) -> Origin | None:
        """On whose behalf a list is fetched that has changed, as was said on the connection of ``noticed``.
        None for the usual: a client with fewer capabilities must not reduce the list that the others are
        shown.
        """
        if noticed.era is Era.MODERN:
            return replace(self.default, era=Era.MODERN)
        bound = noticed.bound_client
        covered = bound is not None and covers(bound.capabilities, self.default.capabilities)
        return noticed if covered else None
