"""The ``policy`` and the ``audit`` of a config in the JSON Schema."""

from mcpzip.config import policy
from mcpzip.config.schema import DECISIONS
from mcpzip.config.schema_forms import Schema, choice, object_of, text
from mcpzip.model.risk import RISK_CLASSES


def audit_form() -> Schema:
    """The form of ``audit`` as an object."""
    return object_of(
        "The audit log.",
        {
            "path": text("Its file; a relative path is from the folder of the config."),
            "arguments": choice(
                policy.ARGUMENTS, "Whether it has the values of arguments, or only names and a hash.", "names"
            ),
            "to": text('Where it is: "file", "stdout" (of serve --http), or postgresql://…, a database.'),
        },
    )


def policy_form() -> Schema:
    """The form of a ``policy``."""
    classes = {
        "reads": "Tools that only read.",
        "writes": "Tools that change something, those that may destroy among them.",
        "destroys": "Tools that may destroy something: all without annotations.",
        "reaches_out": "Tools that deal with an open world, as a web search does: all without annotations.",
    }
    return object_of(
        "What is decided about calls.",
        {
            policy.DEFAULT: choice(
                DECISIONS,
                "What happens to a call, unless another key says something else of its tool.",
                "allow",
            ),
            **{each: choice(DECISIONS, classes[each]) for each in RISK_CLASSES},
            policy.TOOLS: {
                "description": "The decision by a glob of names of tools, which wins over that by class.",
                "type": ["object", "null"],
                "additionalProperties": choice(DECISIONS, "What happens to a call."),
            },
            policy.FLOWS: {
                "description": "Only at the top level: what happens to a call after results of a server.",
                "type": ["array", "null"],
                "items": object_of(
                    "A flow between servers.",
                    {
                        "from": {"type": "string", "description": "A glob of servers, or of server__tool."},
                        "to": {"type": "string", "description": "A glob of servers, or of server__tool."},
                        "do": {"enum": [*DECISIONS], "description": "What happens to a call."},
                    },
                ),
            },
        },
    )
