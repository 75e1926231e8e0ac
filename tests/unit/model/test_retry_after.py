"""What a Retry-After header asks for (RFC 9110, 10.2.3 and 5.6.7)."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.retry_after import LONGEST, http_date, retry_after

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp()
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def rfc850(date: datetime) -> str:
    month = _MONTHS[date.month - 1]
    return f"{_DAYS[date.weekday()]}, {date.day:02}-{month}-{date.year % 100:02} {date:%H:%M:%S} GMT"


def asctime(date: datetime) -> str:
    day, month = _DAYS[date.weekday()][:3], _MONTHS[date.month - 1]
    return f"{day} {month} {date.day:2} {date:%H:%M:%S} {date.year:04}"


def imf_fixdate(date: datetime) -> str:
    return format_datetime(date, usegmt=True)


dates = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda date: date.replace(microsecond=0, tzinfo=UTC)
)
near = st.datetimes(datetime(1978, 1, 1), datetime(2076, 1, 1)).map(
    lambda date: date.replace(microsecond=0, tzinfo=UTC)
)


@given(dates)
def test_a_date_is_read_in_the_forms_that_have_a_whole_year(date: datetime) -> None:
    assert http_date(imf_fixdate(date), NOW) == date.timestamp()
    assert http_date(asctime(date), NOW) == date.timestamp()


@given(near)
def test_a_year_of_two_digits_is_at_most_fifty_years_ahead(date: datetime) -> None:
    assert http_date(rfc850(date), NOW) == date.timestamp()


@given(st.integers(0, 10**30))
def test_seconds_are_what_they_say_up_to_a_day(seconds: int) -> None:
    assert retry_after(str(seconds), NOW) == min(seconds, LONGEST)
    assert retry_after(f" \t{seconds} ", NOW) == min(seconds, LONGEST)


@given(dates, st.sampled_from([imf_fixdate, asctime]))
def test_a_date_asks_for_the_time_until_then_up_to_a_day(date: datetime, form) -> None:
    assert retry_after(form(date), NOW) == min(max(date.timestamp() - NOW, 0.0), LONGEST)


@given(st.text() | st.from_regex(r"\A[A-Za-z0-9,: -]{1,40}\Z"))
def test_whatever_it_says_is_bounded_and_never_an_error(header: str) -> None:
    asked = retry_after(header, NOW)
    assert asked is None or 0 <= asked <= LONGEST


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "soon",
        "-1",
        "+5",
        "1.5",
        "1e3",
        "nan",
        "inf",
        "5 s",
        "5, 5",
        "٣",
        "1_0",
        "Wed, 21 Oct 2015 07:28:00",
        "Wed, 21 Oct 2015 07:28:00 +0200",
        "Wed, 31 Feb 2027 07:28:00 GMT",
        "Wed, 21 Oct 2027 24:00:00 GMT",
        "Wed, 21 Oct 2027 07:60:00 GMT",
        "Wed, 21 Oct 2027 07:28:61 GMT",
        "Wed, 21 Oct 0000 07:28:00 GMT",
        "wed, 21 oct 2027 07:28:00 gmt",
        "2027-10-21T07:28:00Z",
    ],
)
def test_what_is_neither_seconds_nor_a_date_asks_for_nothing(header: str | None) -> None:
    assert retry_after(header, NOW) is None


def test_a_leap_second_is_a_second() -> None:
    assert http_date("Sat, 31 Dec 2016 23:59:60 GMT", NOW) == datetime(2017, 1, 1, tzinfo=UTC).timestamp()
