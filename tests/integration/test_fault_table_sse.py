"""The fault table over sse."""

from fault_cells import FaultTable
from fault_table import SSE


class TestOverSse(FaultTable):
    columns = SSE
