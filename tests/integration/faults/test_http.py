"""The fault table over http."""

from helpers.fault_table import HTTP
from helpers.fault_tests import FaultTable


class TestOverHttp(FaultTable):
    columns = HTTP
