"""Opens the list of what a person has allowed: in the store of a config, if it has one, else its file."""

from mcpzip.config import Config
from mcpzip.config.paths import mcpzip_command, seen_path
from mcpzip.policy.allowances import Allowances, AllowedFile


def open_allowances(config: Config) -> Allowances:
    """The list of ``config``. Nothing is read yet."""
    if config.store is None:
        return AllowedFile(config.path)
    from mcpzip.config.store_opening import place_of, ring_of, store_thread
    from mcpzip.policy.shared_allowances import SharedAllowances
    from mcpzip.store.seen import SeenCounters

    place, namespace = place_of(config.store), config.store.namespace
    return SharedAllowances(
        store_thread(config.store),
        ring_of(config.store),
        namespace,
        place,
        SeenCounters(seen_path(config.path, "allowed"), place, namespace),
        mcpzip_command(config.path, "allow", "--clear"),
    )
