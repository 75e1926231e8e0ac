"""The views of people: shared by those to whom the same rules apply, made anew when the catalog changes, and
so many of them and no more.
"""

import asyncio
import json
from pathlib import Path

import pytest

from mcpzip.catalog import Catalog, Listed
from mcpzip.config import Config, parse
from mcpzip.model import limits
from mcpzip.model.errors import InsufficientScopeError, UnknownToolError
from mcpzip.model.principal import Principal
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.views import Views

ACCESS = [
    {"allow": "time"},
    {"groups": ["dev"], "allow": "git"},
    {"groups": ["dev"], "scopes": ["w"], "allow": "crm"},
]


def person(name: str, *groups: str, scopes: tuple[str, ...] = ()) -> Principal:
    return Principal("https://i", name, groups=frozenset(groups), scopes=frozenset(scopes))


def listed(server: str, *tools: str) -> Listed:
    return Listed(server, tuple(json.dumps({"name": tool}).encode() for tool in tools), at=1.0)


def config_of(folder: Path, access: object) -> Config:
    servers = {name: {"command": "x"} for name in ("zeit", "time", "git", "crm")}
    text = json.dumps({"mcpServers": servers, **({} if access is None else {"access": access})})
    return parse(text.encode(), str(folder / "config.json"), {})


async def views_of(folder: Path, access: object) -> tuple[Views, CatalogState, CurrentConfig]:
    config = config_of(folder, access)
    state = CatalogState(config, Catalog(), print, lambda which: None)
    current = CurrentConfig(config)
    for server in ("time", "git", "crm"):
        state.merge(listed(server, "look", "change"))
    await asyncio.sleep(0)
    return Views(current, state), state, current


async def test_without_rules_and_without_a_person_it_is_the_whole(tmp_path: Path) -> None:
    views, state, _ = await views_of(tmp_path, None)
    assert views.of(None) is views.of(person("ann")) is views.whole
    assert views.whole.catalog is state.visible
    assert views.whole.exposure is state.exposure
    views, state, _ = await views_of(tmp_path, ACCESS)
    assert views.of(None) is views.whole
    assert not views.of(person("ann")).is_whole
    await state.close()


async def test_people_with_the_same_rules_share_a_view(tmp_path: Path) -> None:
    views, state, _ = await views_of(tmp_path, ACCESS)
    ann = views.of(person("ann", "dev"))
    assert ann is views.of(person("bob", "dev", "other"))
    assert ann is not views.of(person("ann"))
    assert list(ann.catalog.servers) == ["git", "time"]
    assert list(ann.enabled) == ["time", "git"]  # as in the config
    assert list(views.of(person("ann")).enabled) == ["time"]
    await state.close()


async def test_a_change_of_the_catalog_makes_it_anew_and_keeps_what_is_the_same(tmp_path: Path) -> None:
    views, state, _ = await views_of(tmp_path, ACCESS)
    before = views.of(person("ann", "dev"))
    state.merge(listed("git", "look", "change", "more"))
    now = views.of(person("ann", "dev"))
    assert now is not before
    assert now.catalog.get("git__more") is not None
    assert now.catalog.servers["time"] is before.catalog.servers["time"]
    await state.close()


async def test_other_rules_count_at_once(tmp_path: Path) -> None:
    views, state, current = await views_of(tmp_path, ACCESS)
    assert views.of(person("ann")).catalog.get("time__look") is not None
    config = config_of(tmp_path, [])
    current.replace(config)
    state.reconfigure(config)
    assert len(views.of(person("ann")).catalog) == 0
    look = state.visible.get("time__look")
    assert look is not None
    with pytest.raises(UnknownToolError):
        views.check_call(person("ann"), look)
    views.check_call(None, look)
    await state.close()


async def test_a_scope_that_is_missing(tmp_path: Path) -> None:
    views, state, _ = await views_of(tmp_path, ACCESS)
    entry = state.visible.get("crm__look")
    assert entry is not None
    with pytest.raises(InsufficientScopeError) as error:
        views.check_call(person("ann", "dev"), entry)
    assert error.value.scopes == ("w",)
    with pytest.raises(UnknownToolError):
        views.check_call(person("ann"), entry)
    views.check_call(person("ann", "dev", scopes=("w",)), entry)
    await state.close()


async def test_so_many_views_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VIEWS", 3)
    views, state, _ = await views_of(tmp_path, [{"groups": [f"g{n}"], "allow": "time"} for n in range(9)])
    for number in range(9):
        assert len(views.of(person("ann", f"g{number}")).catalog) == 2
    assert len(views._views) == 3
    await state.close()
