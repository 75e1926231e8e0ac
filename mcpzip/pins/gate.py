"""Where the pins decide: between what a server listed and what the proxy's catalog has of it.

The rule: until something was listed, or something is asked for that only the pins know, nothing of them is
imported or read. So a start costs nothing: the catalog on disk has nothing that is held.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from mcpzip.catalog import Catalog, Listed, ServerRecord
from mcpzip.config import Config

if TYPE_CHECKING:
    from mcpzip.model.surface import Item
    from mcpzip.pins.decisions import Decisions
    from mcpzip.pins.held import Held
    from mcpzip.pins.record import Hold


class Gate:
    """The pins of one proxy. `admit`, `admits`, `reload` and `load` are for a thread."""

    def __init__(
        self,
        config: Config,
        catalog: Callable[[], Catalog],
        warn: Callable[[str], None] = lambda text: None,
        whole: "Gate | None" = None,
    ) -> None:
        """catalog: what was admitted of all servers. warn: is told why the pins can't be used. whole: whose
        pins they are, where this is that of one person.
        """
        self._config, self._catalog, self._warn, self._whole = config, catalog, warn, whole
        self._made: Decisions | None = None
        self._making = threading.Lock()

    @property
    def _decisions(self) -> "Decisions":
        if self._made is not None:
            return self._made
        from mcpzip.pins.decisions import Decisions

        with self._making:  # threads may need the first one at once, and what one of them decides is for all
            if self._made is None:
                store = None if self._whole is None else self._whole._decisions.store
                self._made = Decisions(self._config, self._catalog, self._warn, store)
            return self._made

    def of_person(self, catalog: Callable[[], Catalog]) -> "Gate":
        """That of what servers list for one person. The pins are the same, and what is held back is theirs.
        catalog: what was admitted of all servers that they use.
        """
        return Gate(self._config, catalog, self._warn, self)

    def reconfigure(self, config: Config) -> None:
        """Uses ``config`` from now on."""
        self._config = config
        if self._made is not None:
            self._made.reconfigure(config)

    def is_open(self, server: str) -> bool:
        """Whether nothing of ``server`` is ever held."""
        config = self._config.servers.get(server)
        return config is None or config.trust == "open"

    # --- what is held, as far as it is known ---

    @property
    def loaded(self) -> bool:
        """Whether what other processes hold is known."""
        return self._made is not None and self._made.loaded

    @property
    def problem(self) -> str:
        """Why the pins can't be used, as far as they were read; "" if they can."""
        return "" if self._made is None else self._made.problem

    @property
    def holding(self) -> Collection[str]:
        """The servers of which something is held."""
        return () if self._made is None else self._made.holding

    def summaries(self) -> Mapping[str, str]:
        """How many items of each server nobody has decided about, by its name: ``2 tools``."""
        return {} if self._made is None else self._made.summaries()

    def held(self, server: str) -> "Held":
        """What is held of ``server``."""
        return self._decisions.held(server)

    def load(self, *, wait: bool = False) -> None:
        """Reads what is held, unless that was done. wait: also for a store."""
        self._decisions.load(wait=wait)

    def close(self) -> None:
        """Ends what is open. It may block for a few seconds."""
        if self._made is not None:
            self._made.close()

    # --- decisions ---

    def admit(self, update: Listed, offered: ServerRecord | None) -> Listed:
        """See `Decisions.admit`."""
        return self._decisions.admit(update, offered)

    def admits(self, server: str, items: "Iterable[Item]") -> "Mapping[str, Hold]":
        """See `Decisions.admits`."""
        return self._decisions.admits(server, items)

    def merged(self, server: str) -> None:
        """See `Decisions.merged`."""
        if self._made is not None:
            self._made.merged(server)

    # --- what others decide ---

    @property
    def outdated(self) -> bool:
        """Whether the pins were written since `reload`."""
        return self._made is not None and self._made.outdated

    def reload(self) -> "tuple[list[tuple[ServerRecord, ServerRecord]], list[str]]":
        """See `Decisions.reload`."""
        return self._decisions.reload()

    def again(self) -> None:
        """See `Decisions.again`."""
        self._decisions.again()

    def take_released(self) -> bool:
        """See `Decisions.take_released`."""
        return self._made is not None and self._made.take_released()
