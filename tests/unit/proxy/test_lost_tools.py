"""A tool that its server has lost: its name doesn't come to mean the tool of another server."""

import json
from pathlib import Path

import pytest

from mcpzip.catalog import Catalog, Listed, merge
from mcpzip.config import parse
from mcpzip.model.errors import UnknownToolError
from mcpzip.proxy import lost_tools
from mcpzip.proxy.argument_repair import repair_name
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.lost_tools import LostTools


def listed(server: str, *tools: str, at: float = 1.0) -> Listed:
    return Listed(server, tuple(json.dumps({"name": tool}).encode() for tool in tools), at=at)


def known(catalog: Catalog) -> set[str]:
    return {entry.name for entry in catalog}


def test_a_bare_name_that_another_server_had_is_refused(tmp_path: Path) -> None:
    config = {"mcpServers": {name: {"command": "x"} for name in ("slack", "evil")}}
    state = CatalogState(
        parse(json.dumps(config).encode(), str(tmp_path / "config.json"), {}),
        Catalog(),
        print,
        lambda which: None,
    )

    def meant(name: str) -> str:
        return repair_name(name, state.visible, known=state.with_lost_tools)[0].name

    with pytest.MonkeyPatch.context() as patched:  # nothing is indexed or saved here: there is no event loop
        patched.setattr(CatalogState, "_replace", lambda self, catalog: replaced(self, catalog))
        state.merge(listed("slack", "send_message", "forget"))
        state.merge(listed("evil", "send_message", "own"))
        assert meant("own") == "evil__own"
        state.merge(listed("slack", "forget", at=2.0))
        for name in ("send_message", "sendMessage", "slack__send_message", "slack_send_message"):
            with pytest.raises(UnknownToolError):
                meant(name)
        assert meant("evil_send_message") == "evil__send_message"
        state.merge(listed("evil", "own", at=3.0))
        state.merge(listed("slack", "send_message", "forget", at=3.0))
        with pytest.raises(UnknownToolError):
            meant("send_message")


def replaced(state: CatalogState, catalog: Catalog) -> None:
    state._lost_tools.note(state.catalog, catalog)
    state.catalog = catalog
    state.visible = state._view.of(catalog)


def test_what_is_back_or_of_no_server_any_more_is_forgotten() -> None:
    lost = LostTools()
    first = merge(Catalog(), [listed("a", "x", "y"), listed("b", "z")])
    lost.note(Catalog(), first)
    assert lost.added_to(first) is first
    second = merge(first, [listed("a", "x", at=2.0), listed("b", at=2.0)])
    lost.note(first, second)
    assert known(second) == {"a__x"}
    assert known(lost.added_to(second)) == {"a__x", "a__y", "b__z"}
    assert lost.added_to(second) is lost.added_to(second)
    third = merge(second, [listed("a", "y", at=3.0)])
    lost.note(second, third)
    assert known(lost.added_to(third)) == {"a__x", "a__y", "b__z"}
    fourth = Catalog({"a": third.servers["a"]})
    lost.note(third, fourth)
    assert known(lost.added_to(fourth)) == {"a__x", "a__y"}


def test_the_oldest_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_tools, "LOST_TOOLS", 2)
    lost, catalog = LostTools(), merge(Catalog(), [listed("a", "t1", "t2", "t3")])
    for at, left in enumerate((("t2", "t3"), ("t3",), ()), 2):
        now = merge(catalog, [listed("a", *left, at=float(at))])
        lost.note(catalog, now)
        catalog = now
    assert known(lost.added_to(catalog)) == {"a__t2", "a__t3"}
