"""JSON with places in it: ``{"name": "{name}", "arguments": "{arguments}"}``.

The rule: a string that is nothing but ``{place}`` becomes the value of that place, whatever its type; a place
inside a longer string is replaced by its text. A value may be JSON text (`msgspec.Raw`), which then stands in
the result byte for byte. Where a whole value has no value this time, its key (or list element) is left out.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

Places = Mapping[str, object]
"""What stands for each place; a place that is missing is left out with its key."""

_PLACE = re.compile(r"\{([a-z_]+)\}")
_ABSENT = object()


def fill(template: object, places: Places) -> object:
    """``template`` with its places filled. KeyError when a place inside a longer string has no value."""
    if isinstance(template, str):
        whole = _PLACE.fullmatch(template)
        if whole:
            return places.get(whole[1], _ABSENT)
        return _PLACE.sub(lambda place: str(places[place[1]]), template)
    if isinstance(template, list):
        return [value for item in template if (value := fill(item, places)) is not _ABSENT]
    if isinstance(template, dict):
        filled = {key: fill(value, places) for key, value in template.items()}
        return {key: value for key, value in filled.items() if value is not _ABSENT}
    return template


def fill_words(words: tuple[str, ...], places: Places) -> list[str]:
    """A command line: a word that is a place whose value is a list becomes as many words."""
    filled: list[str] = []
    for word in words:
        value = fill(word, places)
        filled += map(str, value) if isinstance(value, list) else [str(value)]
    return filled


def places_in(template: object) -> Iterator[str]:
    """Every place named in ``template``, as often as it stands there."""
    if isinstance(template, str):
        yield from _PLACE.findall(template)
    elif isinstance(template, list | tuple):
        for item in template:
            yield from places_in(item)
    elif isinstance(template, dict):
        for value in template.values():
            yield from places_in(value)


def as_json(value: object) -> object:
    """A template as it is written in TOML: a table stands for itself, a string is JSON text. ValueError."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise ValueError(f"it is not JSON ({error}); write a table, or JSON text") from None
