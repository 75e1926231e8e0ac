"""The fault table over sse."""

from helpers.fault_table import SSE
from helpers.fault_tests import FaultTable


class TestOverSse(FaultTable):
    columns = SSE
