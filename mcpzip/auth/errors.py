"""The exceptions that signing in may end with, and what each is called in a sentence."""

import httpx

from mcpzip.model.errors import McpzipError
from mcpzip.model.limits import ECHO
from mcpzip.model.quoting import shortened


class BusyError(McpzipError):
    """Another process has held the store's lock of a server for too long."""


ERRORS = (McpzipError, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError)
"""What signing in may end with; `TimeoutError` is an OSError, an answer that can't be read a ValueError."""


def describe(error: BaseException) -> str:
    """What went wrong, without a full stop."""
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return f"its authorization server can't be reached ({shortened(str(error))})"
        case httpx.TimeoutException() | TimeoutError():
            return "its authorization server does not answer"
        case httpx.InvalidURL():
            return f"it names an address that is none ({shortened(str(error))})"
        case McpzipError():
            return (str(error) or type(error).__name__).rstrip(".")
    return (shortened(str(error), 2 * ECHO) or type(error).__name__).rstrip(".")
