"""The parts of an HTTP connection that need no socket."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.server.http.connection import http_date

LAST = 253_402_300_799
"""The last second of the year 9999."""


@given(st.integers(min_value=0, max_value=LAST))
def test_a_date_is_that_of_the_standard_library(at: int) -> None:
    assert http_date(at).decode() == formatdate(at, usegmt=True)


@pytest.mark.parametrize(
    ("at", "date"), [(784_111_777, b"Sun, 06 Nov 1994 08:49:37 GMT"), (0, b"Thu, 01 Jan 1970 00:00:00 GMT")]
)
def test_the_example_of_the_rfc(at: int, date: bytes) -> None:
    assert http_date(at) == date
