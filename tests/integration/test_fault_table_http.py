"""The fault table over http."""

from fault_cells import FaultTable
from fault_table import HTTP


class TestOverHttp(FaultTable):
    columns = HTTP
