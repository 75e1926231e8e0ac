"""A server is tried before it is added to the config: whether it answers, and what it lists."""

from collections.abc import Callable

from mcpzip.catalog import Failed, Listed, snapshot
from mcpzip.config import Config
from mcpzip.config.paths import cache_folder
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.state_files import foreign_files
from mcpzip.system.threads import in_thread


async def listed_by(config: Config, name: str, warn: Callable[[str], None]) -> Listed | Failed:
    """The tools of ``name``, which ``config`` has, asked by a proxy of its own. What it lists is kept in the
    snapshot of the config, as after any listing. warn: is told what is wrong with the files.
    """
    catalog, warnings = await in_thread(lambda: snapshot.load_for(config), "snapshot")
    for warning in (*config.warnings, *warnings, *foreign_files(cache_folder(config.path))):
        warn(warning)
    proxy = Proxy(config, catalog, warn)
    try:
        (found,) = await proxy.refresh([name])
    finally:
        await proxy.close()
    return found
