"""Sentences from templates of voice assistants (pure).

The grammar, as hassil and Open Voice OS have it: `(a|b)` one of them, `[a]` perhaps, `<rule>` a template by
its name, `{slot}` or `{list:slot}` a value. Permutations (`a;b`) are left in the order in which they stand.
"""

import random
import re
from collections.abc import Mapping, Sequence

_TOKEN = re.compile(r"[()\[\]|;]|<[^<>]*>|\{[^{}]*\}|[^()\[\]|;<>{}]+")
_SPACE = re.compile(r"\s+")
_DEPTH = 12

# Values of the slots that stand for anything.
ANYTHING: Mapping[str, Sequence[str]] = {
    "name": (
        "bedroom lamp",
        "garage door",
        "ceiling fan",
        "coffee maker",
        "front door",
        "tv",
        "heater",
        "vacuum",
    ),
    "area": ("kitchen", "bedroom", "living room", "garage", "office", "bathroom", "hallway", "garden"),
    "floor": ("first floor", "upstairs", "basement", "ground floor"),
    "message": ("dinner is ready", "it is time to leave", "the kids are home"),
    "location": ("paris", "berlin", "new york", "tokyo"),
    "city": ("paris", "berlin", "new york", "tokyo"),
    "item": ("milk", "eggs", "bread", "apples", "call the dentist"),
    "todo_list_item": ("milk", "eggs", "bread", "apples", "call the dentist"),
    "shopping_list_item": ("milk", "eggs", "bread", "apples", "batteries"),
    "search_query": ("jazz", "the news", "a film with tom hanks"),
}
_NUMBERS = ("2", "5", "10", "15", "20", "45", "50")


class Templates:
    """Samples of templates. rules: of `<name>`. slots: values of `{name}`. The order of calls counts."""

    def __init__(
        self, rules: Mapping[str, str], slots: Mapping[str, Sequence[str]], generator: random.Random
    ) -> None:
        self._rules = rules
        self._slots = {**slots, **ANYTHING}
        self._random = generator

    def some(self, template: str, count: int) -> list[str]:
        """At most `count` different sentences, in the order in which they came."""
        found: dict[str, None] = {}
        for _ in range(count):
            text = _SPACE.sub(" ", self._expand(template, 0)).strip()
            if text:
                found[text] = None
        return list(found)

    def _expand(self, template: str, depth: int) -> str:
        if depth > _DEPTH:
            return ""
        tokens = _TOKEN.findall(template)
        text, _ = self._alternatives(tokens, 0, depth)
        return text

    def _alternatives(self, tokens: list[str], at: int, depth: int) -> tuple[str, int]:
        """One of the alternatives from `at` to the closing bracket, and where that stands."""
        options = [""]
        while at < len(tokens) and tokens[at] not in ")]":
            token = tokens[at]
            if token == "|":
                options.append("")
            elif token == "(":
                text, at = self._alternatives(tokens, at + 1, depth)
                options[-1] += text
            elif token == "[":
                text, at = self._alternatives(tokens, at + 1, depth)
                options[-1] += text if self._random.random() < 0.5 else ""
            elif token[0] == "<":
                options[-1] += self._expand(self._rules.get(token[1:-1], ""), depth + 1)
            elif token[0] == "{":
                options[-1] += self._value(token[1:-1])
            else:
                options[-1] += " " if token == ";" else token
            at += 1
        return self._random.choice(options), at

    def _value(self, slot: str) -> str:
        for name in reversed(slot.split(":")):
            if self._slots.get(name):
                return self._random.choice(self._slots[name])
        last = slot.split(":")[0]
        if re.search(
            "number|minutes|seconds|hours|percent|brightness|temperature|position|speed|level|count", last
        ):
            return self._random.choice(_NUMBERS)
        return last.replace("_", " ")
