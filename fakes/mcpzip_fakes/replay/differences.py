"""What distinguishes two JSON values, as a short text for the author of a test (pure).

Values are those of `canonical_json.decoded`: objects are lists of pairs, numbers are what is written.
"""

from collections.abc import Iterator
from itertools import islice, zip_longest

from msgspec import Struct

from mcpzip.cassettes.masks import fits_masks
from mcpzip.model.quoting import one_line, shortened
from mcpzip.wire.canonical_json import Number, Object, written

MOST = 6
"""Differences that a text names; of more it says that there are more."""
_SHOWN = 120
"""Characters of a value in the text."""
_COMPARED = 1_000
"""Differences that are counted to find the nearest of several values."""
_NOTHING = object()


class Difference(Struct, frozen=True):
    """Where two values differ: the path, and the JSON text of both, None if it is missing there."""

    path: str
    recorded: str | None
    present: str | None


def fits(recorded: object, present: object) -> bool:
    """Whether they are the same value, where a masked secret stands for any."""
    return not differences(recorded, present, "", 1)


def differences(recorded: object, present: object, path: str, most: int = _COMPARED) -> list[Difference]:
    """Where they differ, ``most`` places at most. path: that of both."""
    try:
        found = list(islice(_differing(recorded, present, path), most))
    except RecursionError:  # nested very deeply: compared as a whole
        found = [] if written(recorded) == written(present) else [(path, recorded, present)]
    return [Difference(where, _text(one), _text(other)) for where, one, other in found]


def told(found: list[Difference]) -> str:
    """The differences as lines: the path, what was recorded after ``-`` and what came now after ``+``."""
    lines: list[str] = []
    for each in found[:MOST]:
        lines.append(f"    {shortened(each.path, _SHOWN)}")
        lines.append("      - nothing" if each.recorded is None else f"      - {each.recorded}")
        lines.append("      + nothing" if each.present is None else f"      + {each.present}")
    if len(found) > MOST:
        lines.append(f"    and {len(found) - MOST:,} differences more")
    return "\n".join(lines)


def _text(value: object) -> str | None:
    if value is _NOTHING:
        return None
    return shortened(one_line(written(value).decode("utf-8", "replace")[: 20 * _SHOWN]), _SHOWN)


def _differing(recorded: object, present: object, path: str) -> Iterator[tuple[str, object, object]]:
    """Yields each path with its two values."""
    if isinstance(recorded, str) and _masked(recorded, present):
        return
    if type(recorded) is not type(present):
        yield path, recorded, present
    elif isinstance(recorded, Object) and isinstance(present, Object):
        yield from _differing_members(recorded, present, path)
    elif isinstance(recorded, list) and isinstance(present, list):
        for number, (one, other) in enumerate(zip_longest(recorded, present, fillvalue=_NOTHING)):
            yield from _differing(one, other, f"{path}[{number}]")
    elif recorded != present:
        yield path, recorded, present


def _differing_members(recorded: Object, present: Object, path: str) -> Iterator[tuple[str, object, object]]:
    one, other = dict(recorded), dict(present)
    if len(one) < len(recorded) or len(other) < len(present):  # keys that occur twice
        if written(recorded) != written(present):
            yield path, recorded, present
        return
    for key in [*one, *(key for key in other if key not in one)]:
        inner = f"{path}.{key}" if path else key
        yield from _differing(one.get(key, _NOTHING), other.get(key, _NOTHING), inner)


def _masked(recorded: str, present: object) -> bool:
    """Whether ``recorded`` has masked secrets, and ``present`` is what it may have been."""
    if isinstance(recorded, Number) or present is _NOTHING:
        return False
    is_text = isinstance(present, str) and not isinstance(present, Number)
    return fits_masks(recorded, str(present) if is_text else None)
