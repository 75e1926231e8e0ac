"""What a recorder says at its end, on stderr: never a secret."""

import sys
from collections.abc import Sequence

from mcpzip.cassettes.cassette import Masked
from mcpzip.model.sanitize import one_line

_MOST = 50
"""Masked secrets that are listed. The others are in the cassette."""


def tell(sentence: str) -> None:
    """Prints a sentence."""
    print(f"mcpzip-fake record: {one_line(sentence)}", file=sys.stderr, flush=True)


def report(path: str, masked: Sequence[Masked]) -> None:
    """Prints what was masked."""
    if not masked:
        tell(f"recorded into {path}; no secret was found in it. Read it before you publish it.")
        return
    one = "1 secret was" if len(masked) == 1 else f"{len(masked)} secrets were"
    tell(f"recorded into {path}; {one} masked in it. Read it before you publish it.")
    for each in masked[:_MOST]:
        print(f"  {each.mask}  {one_line(each.where)}: {one_line(each.why)}", file=sys.stderr)
    if len(masked) > _MOST:
        print(f"  and {len(masked) - _MOST} more, which the cassette lists", file=sys.stderr)
    sys.stderr.flush()
