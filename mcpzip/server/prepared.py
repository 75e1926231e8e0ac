"""What is read from disk before the event loop runs. Nothing here imports `asyncio`."""

import os
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from mcpzip.catalog import Catalog, snapshot
from mcpzip.config import Config, paths
from mcpzip.config.watched_file import WatchedFile
from mcpzip.server import handshake_cache
from mcpzip.system.state_files import foreign_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpzip.search import Searcher


class Prepared(msgspec.Struct, frozen=True):
    """What is read from disk. searcher: with the index of ``catalog``, if that is loaded already."""

    file: WatchedFile
    config: Config
    catalog: Catalog
    warnings: tuple[str, ...]
    stamp: list[object] | None
    project: str = ""
    searcher: "Searcher | None" = None

    def with_searcher(self, searcher: "Searcher") -> "Prepared":
        return replace(self, searcher=searcher)


def prepare(
    config_path: str, project: str = "", *, required: bool = True, env: Mapping[str, str] = os.environ
) -> Prepared:
    """Reads config and snapshot. project: the path of the project's file, or "". required: see
    `WatchedFile.load`. env: values for the variables in the config. Raises ConfigError.
    """
    # The stamp is taken first: it must not be newer than what is read.
    stamp = handshake_cache.stamp(config_path, project)
    file = WatchedFile(config_path, env, project)
    config = file.load(required=required)
    catalog, warnings = snapshot.load_for(config)
    strange = foreign_files(paths.cache_folder(config.path))
    return Prepared(file, config, catalog, (*config.warnings, *warnings, *strange), stamp, project)
