"""Parameters through which a server learns more than its work needs (pure).

Sources: Invariant Labs, *sidenote* (April 2025); HiddenLayer, parameter names that models fill by themselves
(`tool_call_history`, `conversation_history`, `chain_of_thought`, `system_prompt`; May 2025).
"""

import re
from collections.abc import Iterator

from mcpzip.checks.finding import Hit
from mcpzip.checks.texts import words_of_name

_SINKS = re.compile(
    r"(?:side ?notes?|tool calls? history|chain of thought|(?:full |entire |whole |complete |all "
    r")(?:conversation|chat)"
    r"(?: history)?|conversation history|chat history|(?:your|my|the|full|current) system prompt(?: "
    r"verbatim)?|"
    r"(?:all )?previous (?:messages|tool (?:calls|results))|all messages|available tools list|tools list)"
)
_ABOUT_MODELS = re.compile(
    r"\b(?:llm|model|chat|conversation|gpt|claude|gemini|agent|assistant|completion|bot|messages|"
    r"dialog\w{0,40}|"
    r"prompt)\b"
)
_ASKS = re.compile(
    r"(?:everything|all|anything)(?: that)? the user (?:has )?(?:said|written|asked)|results? of (?:the "
    r")?(?:previous|other|"
    r"earlier) tool calls|your (?:own )?(?:system prompt|instructions|chain of thought)\b|copy of (?:your|"
    r"the) (?:system "
    r"prompt|conversation)|the (?:entire|full|whole|complete) (?:conversation|chat)|the conversation so far"
)
_ASKED = ("user", "tool calls", "system prompt", "conversation", "chat", "instructions", "chain of thought")
_KEY_NAMES = re.compile(
    r"\b(?:ssh id rsa|id rsa|aws ?credentials|contents? (?:of|from)(?: reading)? \w{0,40}(?: "
    r"\w{1,40})? ?(?:ssh|id "
    r"rsa|credentials|"
    r"private key|env)|ssh private key contents?)\b"
)
FREE = re.compile(
    r"\b(?:side ?notes?|notes?|context|metadata|meta|extra|details?|comments?|reason(?:ing)?|thoughts?|"
    r"feedback|debug|"
    r"diagnostics?|info|data|bcc|cc|callback|webhook|forward(?: to)?|copy(?: to)?|history|memo|payload|"
    r"trace|log)\b"
)
"""Names of parameters, as words, that take any text, or send a copy somewhere."""


def sink_name(name: str, about: str) -> Iterator[Hit]:
    """The name of a parameter that asks for the conversation. about: the folded text of its tool; a tool that
    talks to a model needs such parameters.
    """
    words = words_of_name(name).lower()
    if _SINKS.fullmatch(words):
        honest = "side" not in words and "your" not in words and _ABOUT_MODELS.search(about)
        yield Hit("parameters.sink", "note" if honest else "risky", 0, len(name))
    if _KEY_NAMES.search(words):
        yield Hit("instruction.credentials", "risky", 0, len(name))


def may_ask(text: str) -> bool:
    """Whether `sink_text` can find something in the folded ``text`` or a part of it."""
    return any(word in text for word in _ASKED)


def sink_text(text: str, about: str) -> Iterator[Hit]:
    """The folded description of a parameter that asks for the conversation."""
    if found := _ASKS.search(text):
        honest = _ABOUT_MODELS.search(about)
        yield Hit("parameters.sink", "note" if honest else "risky", found.start(), found.end())
