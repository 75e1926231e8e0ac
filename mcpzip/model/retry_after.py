"""Parses the HTTP header ``Retry-After`` (RFC 9110, 10.2.3; pure).

The header is a number of seconds or an HTTP-date in one of three forms (5.6.7). Anything else is ignored, and
the result is at most `LONGEST`.
"""

import re
from datetime import UTC, datetime

LONGEST = 86_400.0
"""Maximum seconds."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_SHORT, _LONG = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_FORMS = tuple(
    re.compile(form)
    for form in (
        f"{_SHORT}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT",
        f"{_LONG}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT",
        f"{_SHORT} {_MONTH} (?P<day>[0-9]{{2}}| [0-9]) {_TIME} (?P<year>[0-9]{{4}})",
    )
)


def retry_after(header: str | None, now: float) -> float | None:
    """The seconds to wait from ``now`` (Unix time), 0 to `LONGEST`; 0 for a date in the past. None if
    ``header`` is missing or invalid.
    """
    text = (header or "").strip(" \t")
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST)
    date = http_date(text, now)
    return None if date is None else min(max(date - now, 0.0), LONGEST)


def http_date(text: str, now: float) -> float | None:
    """The Unix time of the HTTP-date ``text``; None if it is invalid.

    now: Unix time. It determines the century of a two-digit year, which is at most 50 years in the future.
    """
    found = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if found is None:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:
        earliest = datetime.fromtimestamp(now, UTC).year - 49
        year = earliest + (year - earliest) % 100
    day, hour, minute, second = (int(found[part]) for part in ("day", "hour", "minute", "second"))
    leap = second == 60
    try:
        date = datetime(year, _MONTHS.index(found["month"]) + 1, day, hour, minute, second - leap, tzinfo=UTC)
    except ValueError:
        return None
    return date.timestamp() + leap
