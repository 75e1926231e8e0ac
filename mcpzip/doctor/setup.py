"""What the checks look at: the config, as far as it can be read, the environment, and the stored catalog."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from mcpzip.catalog import Catalog, snapshot
from mcpzip.config import Config, ServerConfig, load
from mcpzip.config.paths import mcpzip_command
from mcpzip.config.syntax import decode
from mcpzip.model import limits
from mcpzip.model.errors import ConfigError
from mcpzip.system.files import read_bytes_limited


@dataclass(frozen=True, slots=True)
class Setup:
    """path: of the config. env: the environment. config: None if the file can't be used, for the reason
    ``error``. project: the path of the project's file, or "". document: the config as it is written, {} if
    it can't be read. catalog: as stored; stored_warnings: sentences about the file of it.
    """

    path: str
    env: Mapping[str, str]
    config: Config | None
    error: str
    project: str
    document: Mapping[str, object]
    catalog: Catalog
    stored_warnings: tuple[str, ...]

    @property
    def servers(self) -> dict[str, ServerConfig]:
        """The enabled servers."""
        found = self.config.servers if self.config else {}
        return {name: server for name, server in found.items() if not server.disabled}

    def mcpzip(self, *words: str) -> str:
        """A command line of mcpzip for this config."""
        return mcpzip_command(self.path, *words, env=self.env)


def read_setup(path: str, env: Mapping[str, str], project: str = "") -> Setup:
    """Reads the config at ``path``, and what is stored beside it. Never raises."""
    config, error = None, ""
    try:
        config = load(path, env, project)
    except ConfigError as problem:
        error = str(problem)
    catalog, warnings = snapshot.load_for(config) if config else (Catalog(), ())
    return Setup(path, env, config, error, project, _document(path), catalog, warnings)


def _document(path: str) -> dict[str, object]:
    try:
        found = decode(read_bytes_limited(path, limits.CONFIG), path) if os.path.isfile(path) else {}
    except (ConfigError, OSError):
        return {}
    return dict(found) if isinstance(found, dict) else {}
