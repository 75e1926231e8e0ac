"""Requests and responses as the SDK has them, which brings an HTTP library of its own (httpx2)."""

import httpx
import httpx2


async def for_sdk(response: httpx.Response) -> httpx2.Response:
    """``response``, whose body is read if it was not, as the SDK takes it."""
    await response.aread()
    sent = response.request
    request = httpx2.Request(sent.method, str(sent.url), headers=sent.headers.raw)
    return httpx2.Response(
        response.status_code, headers=response.headers.raw, content=response.content, request=request
    )
