"""The config file: its format, where it is, and every way it can be wrong.

The rule: a name is imported when it is asked for, so that `mcpzip.config.paths` costs nothing at start-up.
"""

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from mcpzip.config.paths import card_path, config_path, snapshot_path
    from mcpzip.config.reading import load, parse
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
    "paths": ("card_path", "config_path", "snapshot_path"),
    "reading": ("load", "parse"),
    "schema": ("Config", "SearchConfig", "Secret", "ServerConfig"),
}


def __getattr__(name: str) -> object:
    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{room}"), name)
    globals()[name] = value
    return value
