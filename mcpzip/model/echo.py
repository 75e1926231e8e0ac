"""Text from outside inside a sentence of ours.

The rule: no more of it than `limits.ECHO` characters, so that nobody has us say, or keep, what it likes.
"""

from mcpzip.model import limits


def echo(text: str) -> str:
    """``text``, cut."""
    return text if len(text) <= limits.ECHO else f"{text[: limits.ECHO]}…"
