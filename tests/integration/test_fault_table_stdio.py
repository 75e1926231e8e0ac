"""The fault table over stdio."""

from fault_cells import FaultTable
from fault_table import STDIO


class TestOverStdio(FaultTable):
    columns = STDIO
