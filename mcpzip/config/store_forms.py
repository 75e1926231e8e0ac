"""The ``store`` of a config in the JSON Schema."""

from mcpzip.config import store
from mcpzip.config.schema_forms import VARIABLE, Schema, object_of
from mcpzip.system.sealing import MOST_KEYS


def settings() -> Schema:
    """The object."""
    return {
        **object_of(
            "A store that several processes share.",
            {
                store.URL: {
                    "description": "The server: redis://…, rediss://… (with TLS) or postgresql://….",
                    "type": ["string", "null"],
                    "pattern": rf"{VARIABLE}|^\s*({'|'.join(store.SCHEMES)})://",
                },
                store.KEYS_KEY: {
                    "description": "The keys with which what lies in it is sealed, each 32 random bytes as "
                    "base64. The first seals, all open.",
                    "type": ["array", "null"],
                    "minItems": 1,
                    "maxItems": MOST_KEYS,
                    "items": {"type": "string"},
                },
                store.NAMESPACE: {
                    "description": "The first part of all names in the store. Configs with the same share "
                    "what lies there.",
                    "type": ["string", "null"],
                    "pattern": rf"{VARIABLE}|^\s*[A-Za-z0-9_.-]{{1,64}}\s*$",
                    "default": store.DEFAULT_NAMESPACE,
                },
            },
        ),
        "required": [store.URL, store.KEYS_KEY],
    }
