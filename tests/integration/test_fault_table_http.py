"""The fault table over http: every cell is played (see `fault_play`)."""

from collections.abc import Callable, Iterator

import pytest
from fault_play import Town, played, towns_in
from fault_table import HTTP, Row

CELLS = pytest.mark.parametrize(("column", "row"), played(*HTTP))
COLUMN = pytest.mark.parametrize("column", HTTP)
Towns = Callable[[str], Town]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Towns]:
    """The session of a column: one for all tests of this file."""
    with towns_in(tmp_path_factory.mktemp("towns")) as town:
        yield town


@CELLS
def test_what_the_client_sees(town: Towns, column: str, row: Row) -> None:
    town(column).see(row)


@CELLS
def test_the_next_call(town: Towns, column: str, row: Row) -> None:
    town(column).next(row)


@COLUMN
def test_changes_are_heard_of_and_a_storm_of_them_costs_few_listings(town: Towns, column: str) -> None:
    town(column).hears_of_changes()


@COLUMN
def test_nothing_is_left(town: Towns, column: str) -> None:
    """The last of them: it ends the session."""
    town(column).leave()
