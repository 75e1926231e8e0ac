"""The tests of the fault table, for the columns that a subclass names (see `fault_player`)."""

from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
from helpers.fault_player import Town, played, towns_in
from helpers.fault_table import Row

Towns = Callable[[str], Town]


class FaultTable:
    """Every cell of its columns is played, in one session a column."""

    columns: ClassVar[tuple[str, ...]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "row" in metafunc.fixturenames:
            metafunc.parametrize(("column", "row"), played(*self.columns))
        elif "column" in metafunc.fixturenames:
            metafunc.parametrize("column", self.columns)

    @pytest.fixture(scope="class")
    @classmethod
    def town(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Towns]:
        """The session of a column: one for all tests of the class."""
        with towns_in(tmp_path_factory.mktemp("towns")) as town:
            yield town

    def test_what_the_client_sees(self, town: Towns, column: str, row: Row) -> None:
        town(column).see(row)

    def test_the_next_call(self, town: Towns, column: str, row: Row) -> None:
        town(column).next(row)

    def test_changes_are_heard_of_and_a_storm_of_them_costs_few_listings(
        self, town: Towns, column: str
    ) -> None:
        town(column).hears_of_changes()

    def test_nothing_is_left(self, town: Towns, column: str) -> None:
        """The last of them: it ends the session."""
        town(column).leave()
