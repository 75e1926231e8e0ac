"""Opens the pins of a config: those in its store, if it has one, else those in their file."""

from mcpzip.config import Config
from mcpzip.config.paths import seen_path
from mcpzip.pins.store import PinFile, PinStore


def open_pins(config: Config) -> PinStore:
    """Where the pins of ``config`` are. Nothing is read yet. Close it."""
    own = PinFile(config.path)
    if config.store is None:
        return own
    from mcpzip.config.store_opening import place_of, ring_of, store_thread
    from mcpzip.pins.shared_pins import SharedPins
    from mcpzip.store.seen import SeenCounters

    place, namespace = place_of(config.store), config.store.namespace
    seen = SeenCounters(seen_path(config.path, "pins"), place, namespace)
    return SharedPins(store_thread(config.store), ring_of(config.store), namespace, place, own, seen)
