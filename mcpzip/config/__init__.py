"""The config file: its format, where it is, and every way it can be wrong.

The rule: names are imported when they are asked for, so that `mcpzip.config.paths` costs nothing at start-up.
"""

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from mcpzip.config.load import load, parse
    from mcpzip.config.paths import card_path, config_path, snapshot_path
    from mcpzip.config.schema import Config, SearchConfig, Secret, ServerConfig

__all__ = [
    "Config",
    "SearchConfig",
    "Secret",
    "ServerConfig",
    "card_path",
    "config_path",
    "load",
    "parse",
    "snapshot_path",
]

_ROOMS = {
    "Config": "schema",
    "SearchConfig": "schema",
    "Secret": "schema",
    "ServerConfig": "schema",
    "card_path": "paths",
    "config_path": "paths",
    "load": "load",
    "parse": "load",
    "snapshot_path": "paths",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value
