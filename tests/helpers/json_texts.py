"""Odd but legal JSON texts, as hypothesis strategies of bytes."""

from hypothesis import settings
from hypothesis import strategies as st

patient = settings(deadline=None, max_examples=50)
"""For the properties of the wire: how long an example takes is not one of them."""

PLAIN_SPACE = (b"", b"", b"", b" ", b"\t", b"  \t ")
ANY_SPACE = (*PLAIN_SPACE, b"\n", b"\r\n", b"\r", b" \n\n ")

_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_TRICKY = [
    "",
    "",
    "",
    "\\\\",
    "\\\\u",
    "\\\\ud800",
    '\\\\\\"',
    "}",
    "]",
    '\\"_meta\\":{}',
    "{",
    "\\ud83d",
    "\\uDC00",
]


def _spell(text: str, ways: int, tricky: str) -> bytes:
    """``text`` as a JSON string; ``ways`` says how each character is spelt."""
    pieces = [tricky]
    for character in text:
        ways, way = divmod(ways, 3)
        units = character.encode("utf-16-be")
        long = "".join(f"\\u{units[at]:02X}{units[at + 1]:02x}" for at in range(0, len(units), 2))
        plain = long if character < " " or character in '"\\' else character
        pieces.append((plain, long, _SHORT.get(character, plain))[way])
    return ('"' + "".join(pieces) + '"').encode()


strings = st.builds(_spell, st.text(max_size=6), st.integers(0, 3**6 - 1), st.sampled_from(_TRICKY))
"""JSON strings, in every spelling of every plane, lone surrogates too."""

keys = (
    st.sampled_from([b'"a"', b'"b"', b'"_meta"', b'"\\u0061"', b'"id"', b'"result"', b'"\\ud800"', b'""'])
    | strings
)

numbers = st.sampled_from(
    [b"0", b"-0", b"1.0", b"1e400", b"-1E-400", b"1e+2", b"9007199254740993", b"1" * 60, b"0.1e-7", b"-0.0"]
) | st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,4})?", fullmatch=True).map(
    str.encode
)
"""JSON numbers: the spelling counts, not the value."""

scalars = strings | numbers | st.sampled_from([b"true", b"false", b"null"])


@st.composite
def objects_of(
    draw: st.DrawFn, values: st.SearchStrategy[bytes], spaces: tuple[bytes, ...], max_size: int = 4
) -> bytes:
    """Objects with odd spacing and keys, some standing twice."""
    space = st.sampled_from(spaces)
    members = [
        b"".join([draw(space), draw(keys), draw(space), b":", draw(space), draw(values), draw(space)])
        for _ in range(draw(st.integers(0, max_size)))
    ]
    return draw(space) + b"{" + (b",".join(members) or draw(space)) + b"}" + draw(space)


@st.composite
def _arrays_of(draw: st.DrawFn, values: st.SearchStrategy[bytes], spaces: tuple[bytes, ...]) -> bytes:
    space = st.sampled_from(spaces)
    items = [draw(space) + draw(values) + draw(space) for _ in range(draw(st.integers(0, 4)))]
    return b"[" + (b",".join(items) or draw(space)) + b"]"


def values_with(spaces: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Any JSON text, without space around it."""
    return st.recursive(
        scalars,
        lambda inner: (
            _arrays_of(inner, spaces) | objects_of(inner, spaces).map(lambda text: text.strip(b" \t\r\n"))
        ),
        max_leaves=8,
    )


values = values_with(PLAIN_SPACE)
"""Any JSON text on one line."""
objects = objects_of(values, PLAIN_SPACE).map(lambda text: text.strip(b" \t"))
"""JSON objects on one line."""
spread_objects = objects_of(values_with(ANY_SPACE), ANY_SPACE)
"""JSON objects with line breaks, and space around them."""
