"""Values in a query: e-mail addresses and ids say what a tool is to work on, not which tool (pure).

The rule: their parts are no words. "papierhaus" in an address is in no tool, and what an id is cut into has
no meaning, but both would count among the words of the query. A string that looks like an id stays where
tools have all of its words ("report_2024_q1"), and all stay in a query that is little else.
"""

from collections.abc import Callable

from mcpzip.model.lazy_pattern import lazy_pattern

# The figures are nDCG@10 on the catalog of real servers (`bench.retrieval.real_catalog`) and on the 675
# requests of the public set: ids .006 and −.0002, addresses .009 and nothing, as no request there has one.
ID_LENGTH = 10  # characters; 8: .0015 and .0004 less
ID_DIGITS = 4  # 3: the same
_LONGEST = 200  # characters of a value
_LEAST = 2  # strings that must be left

_ADDRESS = lazy_pattern(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_FILE_NAME = lazy_pattern(r".*\.[A-Za-z]{2,4}")
_EDGES = ".,;:!?()[]{}<>\"'“”„«»`"


def without_values(text: str, is_known: Callable[[str], bool]) -> str:
    """``text`` without e-mail addresses and ids. is_known: whether tools have all words of a string."""
    if "@" not in text and not any(letter.isdigit() for letter in text):
        return text
    strings = text.split()
    left = [string for string in strings if not _is_value(string.strip(_EDGES), is_known)]
    return " ".join(left) if len(strings) > len(left) >= _LEAST else text


def _is_value(string: str, is_known: Callable[[str], bool]) -> bool:
    if len(string) > _LONGEST:
        return False
    if "@" in string:
        return _ADDRESS.fullmatch(string) is not None
    digits = sum(letter.isdigit() for letter in string)
    return (
        len(string) >= ID_LENGTH
        and digits >= ID_DIGITS
        and any(letter.isalpha() for letter in string)
        and "/" not in string
        and "\\" not in string
        and _FILE_NAME.fullmatch(string) is None
        and not is_known(string)
    )
