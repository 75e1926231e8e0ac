"""Values in a query: e-mail addresses and ids say what a tool is to work on, not which tool (pure).

The rule: of such a string only the words that tools have are searched for: *order* of "order#20240017",
nothing of "8f3a1c2e-77b4-4d19" or of an address. An id stays where tools have all of its words and these
are more than single letters and numbers, which large catalogs all have ("report_2024_q1"). All values stay in
a query that is little else.
"""

from collections.abc import Callable

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.search.capitals import EDGES
from mcpzip.search.tokenizer import words

# The figures are nDCG@10 on the catalog of real servers (`bench.retrieval.real_catalog`) and on the 675
# requests of the public set: ids .006 and −.0002, addresses .011 and nothing, as no request there has one.
ID_LENGTH = 10  # characters; 8: .0015 and .0004 less
ID_DIGITS = 4  # 3: the same
LEAST_WORD = 3  # letters of a word of an id that is searched for
LEAST_SHARE = 1 / 3  # of such words in an id that stays, in letters and digits
_LONGEST = 200  # characters of a value
_LEAST = 2  # strings that must be left

_ADDRESS = lazy_pattern(r"(?!git@)(?:mailto:)?[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}")
_FILE_NAME = lazy_pattern(r".*\.[A-Za-z]\w{0,7}")


def without_values(text: str, is_known: Callable[[str], bool]) -> str:
    """``text`` without e-mail addresses and ids. is_known: whether tools have a word."""
    if "@" not in text and not any(letter.isdigit() for letter in text):
        return text
    strings = text.split()
    left = [each for string in strings if (each := _searched(string, is_known))]
    return " ".join(left) if left != strings and len(left) >= _LEAST else text


def _searched(string: str, is_known: Callable[[str], bool]) -> str:
    """What is searched for of ``string``: all of it if it is no value."""
    bare = string.strip(EDGES)
    if len(bare) > _LONGEST:
        return string
    if "@" in bare:
        return "" if _ADDRESS.fullmatch(bare) else string
    if not _is_id(bare):
        return string
    parts = [word for word, _ in words(bare)]
    known = [part for part in parts if is_known(part)]
    searched = [part for part in known if len(part) >= LEAST_WORD and part.isalpha()]
    if len(known) == len(parts) and LEAST_SHARE * sum(map(len, parts)) <= sum(map(len, searched)):
        return string
    return " ".join(searched)


def _is_id(string: str) -> bool:
    """Whether ``string`` looks like an id; paths, URLs and names of files don't."""
    return (
        len(string) >= ID_LENGTH
        and string.isascii()
        and sum(letter.isdigit() for letter in string) >= ID_DIGITS
        and any(letter.isalpha() for letter in string)
        and "/" not in string
        and "\\" not in string
        and _FILE_NAME.fullmatch(string) is None
    )
