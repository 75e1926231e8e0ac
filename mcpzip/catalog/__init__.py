"""The tools, prompts and resources of all upstreams: in memory, and on disk between runs."""

from mcpzip.catalog.catalog import Catalog, Failed, Listed, ServerRecord, Update, merge, retain
from mcpzip.catalog.visibility import View, allowed

__all__ = ["Catalog", "Failed", "Listed", "ServerRecord", "Update", "View", "allowed", "merge", "retain"]
