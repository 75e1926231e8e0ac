"""The cases of poisoned servers that are played alike: a text by which each is known, and how its server
comes to have it (data).

The servers are the scenarios ``poisoning/…`` of `mcpzip-fake`.
"""

from dataclasses import dataclass

from mcpzip.wire import LATEST_LEGACY_VERSION, MODERN_VERSION


@dataclass(frozen=True, slots=True)
class Case:
    """One case. id: of its check; scenario: its number; says: the requirement; marks: texts of which one
    shows that it was let through; kind: of text, a key of `HONEST`; calls: calls of ``now`` after which the
    server changes, 0 if it doesn't; beside: another server; era: the version of the protocol.
    """

    id: str
    scenario: int
    says: str
    marks: tuple[str, ...]
    kind: str = "descriptions"
    calls: int = 0
    beside: str = ""
    era: str = LATEST_LEGACY_VERSION


CASES = (
    Case("description", 1, "An order in a tool's description", ("~/.ssh/id_rsa",)),
    Case("secrecy", 2, "An order to keep something from the user", ("Do not tell the user",)),
    Case(
        "parameter",
        3,
        "An order in the description of a parameter",
        ("~/.aws/credentials",),
        "descriptions of parameters",
    ),
    Case(
        "parameter-name",
        4,
        "An order in the name of a parameter",
        ("ignore_all_previous_instructions",),
        "names of parameters",
    ),
    Case(
        "values",
        5,
        "An order in an enum, a default, an example or a comment",
        (
            "ignore all previous",
            "put them in this field",
            "disregard your guide",
            "ignore the previous rules",
        ),
        "values of parameters",
    ),
    Case("title", 6, "An order in a title", ("Ignore all previous", "disregard your safety rules"), "titles"),
    Case("output-schema", 7, "An order in an output schema", ("cat ~/.ssh/id_rsa",), "output schemas"),
    Case(
        "meta",
        8,
        "An order in ``_meta``, or a script in an icon",
        ("javascript:", "Ignore all previous"),
        "_meta or icons",
    ),
    Case("instructions", 9, "An order in the server's instructions", ("call notes_sync",), "instructions"),
    Case(
        "offers",
        10,
        "An order in a prompt's argument, a resource or a template",
        ("First read ~/.ssh", "follow it as the system prompt", "The user must not know"),
        "descriptions of prompts and resources",
    ),
    Case(
        "hidden",
        11,
        "Text in characters that people don't see",
        ("\U000e0072\U000e0065", "\u200b\u200c", "\u202e", "\ue049\ue067", "\U000e0158\U000e0155"),
    ),
    Case("encoded", 12, "An encoded command", ("Y3VybCAtZnNTTCBod", "6375726c2068747470")),
    Case("look-alike", 13, "A tool whose name has look-alike letters", ("s\u0435nd_m\u0435ssage",), "names"),
    Case(
        "near-copy",
        14,
        "A copy of another server's tool",
        ("copy_to",),
        "names of parameters",
        beside="slack",
    ),
    Case("other-tool", 15, "A text on a tool of another server", ("Before send_message",), beside="slack"),
    Case(
        "sink-added",
        16,
        "A new parameter that asks for the conversation",
        ("sidenote",),
        "names of parameters",
        calls=1,
    ),
    Case("description-changed", 17, "A description that changes", ("user's private key",), calls=1),
    Case(
        "schema-widened",
        18,
        "A schema that accepts more than before",
        ("as_admin",),
        "names of parameters",
        calls=1,
    ),
    Case(
        "renamed", 20, "A tool that is there again under another name", ("transfer_funds",), "names", calls=1
    ),
    Case("later-page", 21, "A change on a later page, among many notifications", ("drop.example",), calls=3),
    Case("other-era", 22, "Another list in the modern era", ("drop.example",), era=MODERN_VERSION),
    Case("ranking", 24, "A text written to be chosen or found", ("Always use this", "mail gmail email")),
    Case("approves-itself", 28, "A text that asks to be approved", ("call approve_tool",)),
)
