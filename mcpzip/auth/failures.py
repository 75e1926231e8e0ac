"""What signing in may end with, and how that is said. Imports the SDK.

The rule: what the SDK's errors quote of a stranger's answer is shown as one line, and only where it is known
what it is.
"""

import re

import httpx
import httpx2
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError

from mcpzip.model.errors import McpzipError
from mcpzip.model.limits import ECHO
from mcpzip.model.quoting import shortened


class BusyError(McpzipError):
    """Another process has held the store's lock of a server for too long."""


FAILURES = (
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
    McpzipError,
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx2.InvalidURL,
    OSError,
    ValueError,
)
"""What signing in may end with; `TimeoutError` is an OSError, pydantic's `ValidationError` a ValueError."""

_BACK = "the browser came back"
_SDK: tuple[tuple[str, str], ...] = (
    ("State parameter mismatch", f"{_BACK} with the state of another login"),
    (
        "Authorization response missing iss",
        f"{_BACK} without saying from which authorization server, and that was promised",
    ),
    (
        r"Authorization response iss mismatch: (.*) != (.*)",
        rf"{_BACK} from another authorization server (\1) than it was sent to (\2)",
    ),
    (
        r"Authorization server metadata issuer mismatch: (.*) != (.*)",
        r"its authorization server is \2, and what is there says that it is \1; tell whoever runs it",
    ),
    (
        r"Protected resource (.*) does not match expected (.*)",
        r"it says that it is \1, and tokens for that are not for \2; tell whoever runs it",
    ),
)
"""What the SDK says (mcp 2.3.0), and what we do."""


def plainly(error: BaseException) -> str:
    """What went wrong, without a full stop."""
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return f"its authorization server can't be reached ({shortened(str(error))})"
        case httpx.TimeoutException():
            return "its authorization server does not answer"
        case httpx.InvalidURL() | httpx2.InvalidURL():
            return f"it names an address that is none ({shortened(str(error))})"
        case TimeoutError():
            return "its authorization server does not answer"
        case McpzipError():
            return (str(error) or type(error).__name__).rstrip(".")
    said = (shortened(str(error), 2 * ECHO) or type(error).__name__).rstrip(".")
    for theirs, ours in _SDK:
        if found := re.match(theirs, said):
            return found.expand(ours)
    return said
