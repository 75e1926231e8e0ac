"""respx for mcpzip's own HTTP connections: ``respx.mock(using="mcpzip")`` stands in for every server."""

from typing import Any

import httpx
from respx.mocks import AbstractRequestMocker


class ConnectionsMocker(AbstractRequestMocker):
    """Registers itself with respx by being defined."""

    name = "mcpzip"
    targets = ["mcpzip.http.connections.Connections"]  # noqa: RUF012 - respx declares and extends a list
    target_methods = ["handle_async_request"]  # noqa: RUF012

    @classmethod
    def to_httpx_request(cls, **kwargs: Any) -> httpx.Request:
        """A copy, as the request is when it is sent: signing it again changes its headers."""
        request: httpx.Request = kwargs["request"]
        copy = httpx.Request(
            request.method,
            request.url,
            headers=request.headers.raw,
            stream=httpx.ByteStream(request.content),  # with ``content``, httpx would add headers
            extensions=request.extensions,
        )
        copy.read()
        return copy

    @classmethod
    async def from_async_httpx_response(
        cls, httpx_response: httpx.Response, target: object, **kwargs: Any
    ) -> httpx.Response:
        return httpx.Response(
            httpx_response.status_code,
            headers=httpx_response.headers.raw,
            stream=httpx_response.stream,
            extensions=httpx_response.extensions,
        )
