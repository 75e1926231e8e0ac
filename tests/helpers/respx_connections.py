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
        return httpx.Request(
            request.method,
            request.url,
            headers=request.headers.raw,
            content=request.content,
            extensions=request.extensions,
        )

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
