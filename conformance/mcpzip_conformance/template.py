"""JSON with placeholders: ``{"name": "{name}", "arguments": "{arguments}"}``.

The rule: a string that is only ``{place}`` becomes the value of that placeholder, of any type; in a longer
string it is replaced by its text. A value can be JSON text (`msgspec.Raw`), which is copied byte for byte. A
key (or list element) whose placeholder has no value is left out.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

Places = Mapping[str, object]
"""The value of each placeholder; a missing one is left out with its key."""

_PLACE = re.compile(r"\{([a-z_]+)\}")
_ABSENT = object()


def fill(template: object, places: Places) -> object:
    """``template`` with its placeholders replaced. Raises KeyError if one in a longer string has no value."""
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
    """A command line: a placeholder whose value is a list becomes as many words."""
    filled: list[str] = []
    for word in words:
        value = fill(word, places)
        filled += map(str, value) if isinstance(value, list) else [str(value)]
    return filled


def places_in(template: object) -> Iterator[str]:
    """Every placeholder in ``template``, with repetitions."""
    if isinstance(template, str):
        yield from _PLACE.findall(template)
    elif isinstance(template, list | tuple):
        for item in template:
            yield from places_in(item)
    elif isinstance(template, dict):
        for value in template.values():
            yield from places_in(value)


def as_json(value: object) -> object:
    """A template of a TOML file: a table, or JSON text as a string. Raises ValueError."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise ValueError(f"it is not JSON ({error}); write a table, or JSON text") from None
