"""Made values: data of a wished size in an answer, the same on every run and every machine.

    result = { made = { log = { kind = "log", size = 2_000_000, seed = 7 } }, text = "{log}" }

The rule: a value depends on its kind, size and seed alone, and no part of it repeats, so that a test knows
which byte belongs where, and a proxy can't compress it away.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

from msgspec import Struct

LARGEST = 100_000_000
"""Characters of one made value at most."""
MOST = 8
"""Made values of one answer at most."""

_WORDS = (
    *("accepted", "retried", "refused", "opened", "closed", "archived", "merged", "synced"),
    *("invoice", "customer", "shipment", "ticket", "folder", "contract", "payment", "branch"),
)
_ODD = (
    *("\r\n", "\n", "\r", "\t", " ", "\\ud83d", "\\u00zz", "\\x0g", "\\\\", '\\"', '"', "\\", "\\n", "%0A"),
    *("\U0001f600", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U00020bb7", "e\u0301", "\u05e9\u05dc"),
    *("\u2028", "\u2029", "\u202e", "\ufeff", "\x00", "\x1b[31m", "\x7f", "\u0085", "{}", "[1,", "<a b=']]>"),
)


class Made(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One value. kind: see `KINDS`; size: its characters (of ``rows``: of its JSON, at least); seed: another
    one gives other data of the same form. Raises ValueError."""

    kind: str
    size: int
    seed: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}; choose from {', '.join(KINDS)}")
        if not 0 <= self.size <= LARGEST:
            raise ValueError(f"size is {self.size}; write 0 to {LARGEST:,} characters")

    @property
    def value(self) -> object:
        """The value: a string, or for ``rows`` a list of objects. It must not be changed."""
        return _made(self.kind, self.size, self.seed)


def values(wishes: Mapping[str, Made]) -> dict[str, object]:
    """The value of each name."""
    return {name: wish.value for name, wish in wishes.items()}


@lru_cache(maxsize=16)
def _made(kind: str, size: int, seed: int) -> object:
    return KINDS[kind](size, seed)


def _noise(count: int, seed: int) -> bytes:
    """``count`` bytes that look random."""
    import hashlib  # a fake must start fast

    return hashlib.shake_256(b"%d" % seed).digest(count)


def _lines(size: int, seed: int, line: Callable[[int, bytes], str], first: str = "") -> str:
    """``first`` and then lines, cut to ``size`` characters. line: of a number and its 4 bytes of noise; 10
    characters at least."""
    noise = _noise(4 * (size // 10 + 1), seed)
    lines, length = [first], len(first)
    for number in range(len(noise) // 4):
        if length >= size:
            break
        lines.append(line(number, noise[4 * number : 4 * number + 4]))
        length += len(lines[-1])
    return "".join(lines)[:size]


def _log(size: int, seed: int) -> str:
    """Lines of a log: ASCII, each with its number."""

    def line(number: int, noise: bytes) -> str:
        level = "WARN " if noise[0] < 16 else "INFO "
        words = f"{_WORDS[noise[1] % 8]} {_WORDS[8 + noise[2] % 8]}"
        return f"2026-01-01T00:00:00Z {level} line {number:07} {words} {noise.hex()}\n"

    return _lines(size, seed, line)


def _csv(size: int, seed: int) -> str:
    """Comma-separated values with a header, CR LF, quotes and commas in fields (RFC 4180)."""

    def line(number: int, noise: bytes) -> str:
        word = _WORDS[8 + noise[0] % 8]
        return f'{number:07},"{word}, ""{noise.hex()}""",{noise[1]}.{noise[2]:03}\r\n'

    return _lines(size, seed, line, "number,title,amount\r\n")


def _odd(size: int, seed: int) -> str:
    """A text that is easily spoilt: all kinds of line ends, controls, escapes that JSON doesn't know, pieces
    of JSON and markup, characters beyond the BMP, combining and right to left ones."""

    def line(number: int, noise: bytes) -> str:
        odd = "".join(_ODD[byte % len(_ODD)] for byte in noise)
        return f"{number:07}{odd}"

    return _lines(size, seed, line)


def _base64(size: int, seed: int) -> str:
    """Bytes in base64: of ``size`` characters, or up to three more, as base64 has four at a time."""
    import base64

    return base64.b64encode(_noise(-(-size // 4) * 3, seed)).decode()


def _rows(size: int, seed: int) -> list[object]:
    """Objects whose JSON without spaces has ``size`` characters or a little more: numbers, strings, null,
    lists, in a fixed order of keys."""
    import msgspec

    rows: list[object] = []
    length = 2
    noise = _noise(4 * (size // 100 + 2), seed)
    while length < size:
        number = len(rows)
        some = noise[4 * number : 4 * number + 4]
        row = {
            "number": number,
            "title": f"{_WORDS[8 + some[0] % 8]} {number:07}",
            "labels": [_WORDS[some[1] % 8], some.hex()],
            "closed": None if some[2] < 128 else f"2026-01-{1 + some[2] % 28:02}",
            "amount": some[3] / 4,
        }
        rows.append(row)
        length += len(msgspec.json.encode(row)) + 1
    return rows


KINDS: Mapping[str, Callable[[int, int], object]] = {
    "log": _log,
    "csv": _csv,
    "odd": _odd,
    "base64": _base64,
    "rows": _rows,
}
