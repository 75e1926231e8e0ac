"""The ``replicas`` in the JSON Schema of the config file (pure)."""

from mcpzip.config import replicas
from mcpzip.config.schema import ReplicasConfig
from mcpzip.config.schema_forms import Schema, number, object_of, text


def settings() -> Schema:
    """The object."""
    return object_of(
        "What several processes of `mcpzip serve --http` with this config share, behind a balancer.",
        {
            "keys": {
                "description": "The keys that sessions and handles are sealed with, each 32 bytes or more as "
                "base64: the first seals, all open. Write ${VARIABLE}.",
                "type": ["array", "null"],
                "items": {"type": "string"},
            },
            "listen": text("The private address, [HOST:]PORT, at which other replicas reach this one."),
            "address": text(
                "HOST or HOST:PORT by which they reach it, if it isn't that of listen. Each replica has "
                "another: write ${VARIABLE}."
            ),
            "drain_seconds": number(
                "How long calls under way may take after SIGTERM.",
                ReplicasConfig(()).drain,
                least=0,
                most=replicas.LONGEST_DRAIN,
            ),
        },
    )
