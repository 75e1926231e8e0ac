"""HTML from templates, in which every text is shown and none acts.

The rule: whatever a template writes with ``{{ }}`` goes through `shown` and is escaped; nothing is marked as
safe. A name that a template doesn't know is an error.
"""

import time
from functools import cache
from urllib.parse import quote, unquote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mcpzip import __version__
from mcpzip.model import sanitize
from mcpzip.model.durations import age, span

_MEGABYTE = 1_000_000
_LONGEST = 4_000
"""Characters of one text on a page."""
_STEPS, _MARK = (".", ".."), "~"


class ShownText(str):
    """A text that was sanitized where it was made, or that has to come back from a form as it was. It is
    escaped as any other.
    """

    __slots__ = ()


def shown(value: object) -> object:
    """What a template writes for ``value``: characters that act, hide or reorder as visible escapes."""
    if isinstance(value, Markup | ShownText):  # markup: a part of a template, with values that were shown
        return value
    return sanitize.lines(value, _LONGEST) if isinstance(value, str) else value


def number(value: float) -> str:
    """With a comma between thousands."""
    return f"{value:,.0f}"


def megabytes(value: float) -> str:
    """Bytes, for people."""
    return f"{value / _MEGABYTE:,.0f} MB"


def counted(value: int, one: str, many: str = "") -> str:
    """``1 tool``, ``2 tools``."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def since(moment: float) -> str:
    """How long ago this Unix time was."""
    return age(max(0.0, time.time() - moment))


def clock(moment: float) -> str:
    """The time of day at this Unix time; with the date, if that is not today."""
    then = time.localtime(moment)
    today = time.strftime("%Y-%m-%d") == time.strftime("%Y-%m-%d", then)
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", then)


def path_part(text: str) -> str:
    """``text`` as one part of the path of a URL. ``.`` and ``..`` get a mark, because browsers take them, and
    their escapes, for steps.
    """
    return (_MARK if text in _STEPS else "") + query_part(text)


def from_path_part(part: str) -> str:
    """The text that `path_part` made ``part`` of."""
    text = unquote(part)
    return text.removeprefix(_MARK) if text.removeprefix(_MARK) in _STEPS else text


def query_part(text: str) -> str:
    """``text`` as a value in the query of a URL."""
    return quote(text, safe="", errors="replace")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("mcpzip.ui", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "megabytes": megabytes, "counted": counted, "since": since}
    made.filters |= {"path_part": path_part, "query_part": query_part}
    made.filters |= {"path_part": path_part, "clock": clock, "span": span}
    made.globals |= {"version": __version__, "areas": (), "person": ""}
    return made


def render(template: str, **values: object) -> bytes:
    """The document that the template (a file in ``templates``) makes of ``values``."""
    return _environment().get_template(template).render(values).encode("utf-8", "replace")
