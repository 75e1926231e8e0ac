"""The config file: its format, its path and its errors.

The rule: names are imported on first use, so that importing `mcpzip.config.paths` at start-up loads nothing
else.
"""

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from mcpzip.config.paths import config_path, handshake_path, snapshot_path
    from mcpzip.config.reading import load, parse
    from mcpzip.config.schema import Config, SearchConfig, Secret, ServerConfig

__all__ = [
    "Config",
    "SearchConfig",
    "Secret",
    "ServerConfig",
    "config_path",
    "handshake_path",
    "load",
    "parse",
    "snapshot_path",
]

_MODULES = {
    "paths": ("handshake_path", "config_path", "snapshot_path"),
    "reading": ("load", "parse"),
    "schema": ("Config", "SearchConfig", "Secret", "ServerConfig"),
}


def __getattr__(name: str) -> object:
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
