"""What a text with masked secrets may have been (pure)."""

from mcpzip.cassettes.cassette import MASK

START, END = MASK.split("{}")


def fits_masks(masked: str, present: str | None) -> bool:
    """Whether ``masked`` has masks, and ``present`` has other texts in their places. present: None for a
    value that is no string, which only a mask alone stands for.
    """
    if START not in masked:
        return False
    pieces = _around_masks(masked)
    if pieces == ["", ""]:
        return True
    if len(pieces) == 1 or present is None:
        return False
    first, *middle, last = pieces
    at, end = len(first), len(present) - len(last)
    if at > end or not (present.startswith(first) and present.endswith(last)):
        return False
    for piece in middle:
        at = present.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def _around_masks(text: str) -> list[str]:
    """The pieces of ``text`` between its masks."""
    first, *rest = text.split(START)
    pieces = [first]
    for part in rest:
        number, end, after = part.partition(END)
        if end and number.isdecimal():
            pieces.append(after)
        else:
            pieces[-1] += START + part
    return pieces
