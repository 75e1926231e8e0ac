"""Odd but legal JSON, spelt in every way, as hypothesis strategies of texts."""

import json
import math

from hypothesis import strategies as st


def _string(text: str, ways: int) -> str:
    """``text`` as a JSON string; ``ways`` says how each character is spelt."""
    pieces = []
    for character in text:
        ways, way = divmod(ways, 3)
        units = character.encode("utf-16-be", "surrogatepass")
        escape = "".join(f"\\u{units[at]:02x}{units[at + 1]:02X}" for at in range(0, len(units), 2))
        must = character < " " or character in '"\\' or "\ud800" <= character <= "\udfff"
        pieces.append(escape if must or way == 0 else character)
    return f'"{"".join(pieces)}"'


def strings(characters: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """JSON strings of such characters, spelt in any way."""
    return st.builds(_string, st.text(characters, max_size=12), st.integers(0, 3**12))


_ENDS = [chr(plane << 16 | place) for plane in range(17) for place in (0x100, 0xFFFD, 0xFFFF)]
every_plane = st.characters(exclude_categories=["Cs"]) | st.sampled_from([*_ENDS, "\0", "\x7f", "\u2028"])
lone_surrogates = st.integers(0xD800, 0xDFFF).map(chr)

_ODD_NUMBERS = ["0", "-0", "-0.0", "1", "1.0", "1E+2", "1e-7", "0.1e1", "1e400", "-1e400", "1e-400", "1e23"]
_ODD_NUMBERS += ["9007199254740993", "9" * 30, "-" + "9" * 30, "123456789012345678.5", "5e-324", "2.50"]
numbers = st.sampled_from(_ODD_NUMBERS) | st.from_regex(
    r"-?(0|[1-9][0-9]{0,29})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)
finite = numbers.filter(lambda text: math.isfinite(float(text)))


def jsons(
    strings: st.SearchStrategy[str], numbers: st.SearchStrategy[str], *, doubled: bool
) -> st.SearchStrategy[str]:
    """JSON texts. doubled: whether a key may stand twice."""
    scalars = numbers | strings | st.sampled_from(["true", "false", "null", "{}", "[]"])
    return st.recursive(
        scalars, lambda part: _arrays(part) | objects(strings, part, doubled=doubled), max_leaves=8
    )


def _arrays(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(items, max_size=4).map(lambda texts: f"[{','.join(texts)}]")


def objects(
    keys: st.SearchStrategy[str], values: st.SearchStrategy[str], *, doubled: bool
) -> st.SearchStrategy[str]:
    """JSON objects, spelt with a little space."""
    pairs = st.lists(st.tuples(keys, values), max_size=4, unique_by=None if doubled else _key)
    return pairs.map(lambda pairs: f"{{{', '.join(f'{key} :{value}' for key, value in pairs)}}}")


def _key(pair: tuple[str, str]) -> object:
    return json.loads(pair[0])


def results(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Results of a tool: what MCP knows and what it doesn't, in any order."""
    blocks = st.sampled_from(
        [
            '{"type":"text","text":"paid \\u20ac","annotations":{"priority":1.0}}',
            '{"type":"image","data":"AA==","mimeType":"image/png"}',
            '{"data":"AA==","type":"audio","mimeType":"audio/wav"}',
            '{"type":"resource","resource":{"uri":"a:b","blob":"AA==","size":1E+2}}',
            '{"type":"resource_link","uri":"a:b","name":"n","size":9007199254740993}',
            '{"type":"hologram","depth":-0.0,"_meta":null}',
            '{"no":"type"}',
        ]
    )
    members = {
        "content": _arrays(blocks),
        "structuredContent": values,
        "isError": st.sampled_from(["true", "false", "null"]),
        "_meta": values.map(lambda text: f'{{"x/y":{text}}}') | st.just("null"),
        "later": values,
        "": values,
    }

    @st.composite
    def texts(draw: st.DrawFn) -> str:
        chosen = draw(st.lists(st.sampled_from(list(members)), unique=True))
        return "{" + ",".join(f"{json.dumps(name)}:{draw(members[name])}" for name in chosen) + "}"

    return texts()


@st.composite
def errors(draw: st.DrawFn, strings: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> str:
    """JSON-RPC errors."""
    code, message = draw(st.integers(-(2**31), 2**31) | st.just(-32602)), draw(strings)
    data = draw(st.just("") | values.filter(lambda text: text != "null").map(lambda text: f',"data":{text}'))
    return f'{{"code":{code},"message":{message}{data}}}'


any_string = strings(every_plane | lone_surrogates)
any_json = jsons(any_string, numbers, doubled=True)

plain_string = strings(every_plane)
plain_json = jsons(plain_string, numbers, doubled=False)
"""As odd as JSON can be and mean the same to every reader (RFC 8259 §4, §8.2)."""
finite_json = jsons(plain_string, finite, doubled=False)
"""The same, with numbers that a double can hold (RFC 8259 §6)."""
