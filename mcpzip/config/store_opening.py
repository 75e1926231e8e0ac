"""Opens what a config's `store` names. The package for it is imported when it is first used."""

from collections.abc import Callable
from urllib.parse import urlsplit

from mcpzip.config.schema import StoreConfig
from mcpzip.store.opening import open_store, place
from mcpzip.store.thread import StoreThread
from mcpzip.system.sealing import KeyRing, read_key


def store_thread(config: StoreConfig) -> StoreThread:
    """The store, on a thread of its own."""
    return StoreThread(lambda: open_store(config.url, config.namespace))


def place_of(config: StoreConfig) -> str:
    """Its address without a password, for sentences."""
    return place(urlsplit(config.url))


def ring_of(config: StoreConfig) -> Callable[[], KeyRing]:
    """Makes the ring of its keys; that may raise SealingMissingError."""
    return lambda: KeyRing([read_key(key.reveal()) for key in config.keys])
