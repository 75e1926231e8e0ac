"""What is left of a task when nobody waits for it any more."""

import asyncio
from typing import Any


def looked_at(future: "asyncio.Future[Any]") -> None:
    """A done callback: its failure is no "exception was never retrieved" when whoever waited is gone."""
    if not future.cancelled():
        future.exception()
