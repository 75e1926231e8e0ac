"""The fault table over stdio."""

from helpers.fault_table import STDIO
from helpers.fault_tests import FaultTable


class TestOverStdio(FaultTable):
    columns = STDIO
