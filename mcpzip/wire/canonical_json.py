"""The canonical form of JSON texts (pure).

The rules:

1. Two texts have the same canonical form if they differ only in whitespace, in the order of an object's
   members, or in how a string is escaped (RFC 8785, with members in the order of their keys' UTF-16 code
   units).
2. Numbers stay as they are written: ``1``, ``1.0`` and ``1e0`` differ, because clients and servers get what
   was written.
3. Of a key that occurs twice in an object every value counts, in the order of the text, because readers
   disagree on which one is meant. So such a text never equals one without the repetition.
4. A text that can't be read as JSON is its own canonical form.
"""

import json
import re

import msgspec

_BEYOND_BMP = re.compile(rb"[\xf0-\xf4]|\\u[dD][89a-fA-F]")
"""Characters beyond U+FFFF, or surrogates: with them UTF-16 orders keys differently than code points."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


class Object(list[tuple[str, object]]):
    """The members of an object, in the order of the text."""

    __slots__ = ()


_decode_fast = msgspec.json.Decoder(float_hook=lambda text: msgspec.Raw(text.encode())).decode
_decode_slow = json.JSONDecoder(
    object_pairs_hook=Object, parse_float=Number, parse_int=Number, parse_constant=Number
).decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def canonical(text: bytes) -> bytes:
    """The canonical form of the JSON ``text``. Never raises."""
    if not _BEYOND_BMP.search(text):
        try:
            value = _decode_fast(text)
            # Encoding never makes a text longer. So with the same length nothing is lost: no repeated key,
            # no spelling of a number, and there was no whitespace and no other escape.
            if len(_encode(value)) == len(text):
                return _encode_sorted(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError, ValueError):
            pass  # read below, or no JSON
    try:
        return written(_decode_slow(text.decode()))
    except (ValueError, RecursionError):
        return text


def decoded(text: bytes) -> object:
    """The value of the JSON ``text`` as lists (an object is a list of pairs), strings (a number is what is
    written), booleans and None; for a text that is no JSON, the text.
    """
    try:
        value: object = _decode_slow(text.decode())
        return value
    except (ValueError, RecursionError):
        return text.decode("utf-8", "replace")


def written(value: object) -> bytes:
    """The canonical form of a value of `decoded`."""
    match value:
        case Number():
            return value.encode()
        case str():
            return quoted(value)
        case Object():
            members = sorted(value, key=lambda member: member[0].encode("utf-16-be", "surrogatepass"))
            return b"{%b}" % b",".join([b"%b:%b" % (quoted(key), written(each)) for key, each in members])
        case list():
            return b"[%b]" % b",".join(map(written, value))
        case _:
            return {True: b"true", False: b"false"}[value] if isinstance(value, bool) else b"null"


def quoted(text: str) -> bytes:
    """``text`` as RFC 8785 writes a string. Lone surrogates, which UTF-8 can't encode, become escapes."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        pieces = re.split("([\ud800-\udfff])", text)
        inner = [
            b"\\u%04x" % ord(piece)
            if len(piece) == 1 and "\ud800" <= piece <= "\udfff"
            else _encode(piece)[1:-1]
            for piece in pieces
        ]
        return b'"%b"' % b"".join(inner)
