"""The MCP SDK, on which the fakes over HTTP and SSE are built: the extra ``fakes``."""

from mcpzip.model.errors import McpzipError

VERSION = "2.3"


class SdkMissingError(McpzipError):
    """The SDK is not installed, or another version of it."""


def check_sdk() -> None:
    """Raises SdkMissingError, which says what to install."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and stdio needs no SDK

    try:
        found = version("mcp")
    except PackageNotFoundError:
        found = ""
    if found.split(".")[:2] != VERSION.split("."):
        here = f"{found} is" if found else "it is not"
        raise SdkMissingError(
            f"Fakes over HTTP need the package mcp {VERSION}, and {here} installed; "
            "run: pip install 'mcpzip[fakes]'."
        )
