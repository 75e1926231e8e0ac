"""The telemetry of a process, if its config has any.

The rule: nothing of it is imported otherwise.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcpzip.config import Config
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.endpoint import Endpoint

if TYPE_CHECKING:
    from mcpzip.server.process_telemetry import ProcessTelemetry


@asynccontextmanager
async def telemetry_of(
    config: Config, environment: Mapping[str, str], warn: Callable[[str], None], *, listens: bool = True
) -> "AsyncIterator[ProcessTelemetry | None]":
    """The telemetry that ``config`` asks for, until the end; None if it asks for none, or it can't be had,
    which ``warn`` is told. environment: with the ``OTEL_…`` variables. listens: whether this process takes
    the address of the config.
    """
    if config.telemetry is None:
        yield None
        return
    from mcpzip.server.process_telemetry import started

    async with started(config.telemetry, environment, warn, listens=listens) as telemetry:
        yield telemetry


def endpoint_of(proxy: Proxy, telemetry: "ProcessTelemetry | None") -> Endpoint:
    """The endpoint of ``proxy``, whose requests are traced if there is telemetry."""
    return Endpoint(proxy, None if telemetry is None else telemetry.recorder(proxy))
