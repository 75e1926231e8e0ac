"""The files that mcpzip keeps beside a config, each written and read by the code that keeps it."""

import os
import time

from mcpzip.catalog import Catalog, Listed, merge, snapshot
from mcpzip.config import load, paths
from mcpzip.proxy import tool_usage
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.search.remote.llm_cache import LlmCache
from mcpzip.search.remote.vector_file import VectorFile
from mcpzip.server import handshake_cache
from mcpzip.server.endpoint import HandshakeResults
from mcpzip.server.stdio import cache_of

CATALOG = merge(Catalog(), [Listed("shop", (b'{"name":"pay"}',), 1.0)])
WORDS = HandshakeResults(b'{"instructions":"ours"}', b"{}", None, None)


class File:
    """One of the files we keep. read: whether what was written can be read."""

    def __init__(self, config, kind):
        self.config, self.kind = config, kind
        self.path = {
            "snapshot": paths.snapshot_path(config),
            "handshake": paths.handshake_path(config),
            "index": paths.index_path(config),
            "usage": tool_usage.usage_path(config),
            "answers": os.path.join(paths.cache_folder(config), "llm-answers.json"),
            "vectors": os.path.join(paths.cache_folder(config), "embeddings.bin"),
        }[kind]

    def catalog_state(self):
        return CatalogState(load(self.config, {}), CATALOG, lambda warning: None, lambda changes: None)

    def write(self):
        if self.kind == "snapshot":
            snapshot.save(self.path, self.config, CATALOG)
        elif self.kind == "handshake":
            handshake_cache.write(self.config, cache_of(WORDS, handshake_cache.stamp(self.config)))
        elif self.kind == "index":
            catalog_state = self.catalog_state()
            catalog_state._index_now(CATALOG)
            catalog_state._save_index()
        elif self.kind == "usage":
            tool_usage.save(self.path, {"shop__pay": tool_usage.UseCount(1.0, time.time())}, time.time())
        elif self.kind == "answers":
            answers = LlmCache(self.path)
            answers.put("key", ["shop__pay"])
            answers.save()
        else:
            VectorFile(self.path, "me").save({bytes(32): b"abc"})

    def read(self):
        if self.kind == "snapshot":
            return bool(snapshot.load(self.path, self.config)[0].entries)
        if self.kind == "handshake":
            return handshake_cache.read(self.config) is not None
        if self.kind == "index":
            return not self.catalog_state()._index_now(CATALOG)[0]
        if self.kind == "usage":
            try:
                return bool(tool_usage.load(self.path)[0])
            except tool_usage.UnusableUsageFileError:
                return False
        if self.kind == "answers":
            return LlmCache(self.path).get("key") is not None
        return bool(VectorFile(self.path, "me").load())


KINDS = ("snapshot", "handshake", "index", "usage", "answers", "vectors")
