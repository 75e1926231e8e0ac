"""The step of `mcpzip init` that sets up the optional tiers of the search."""

import asyncio
import os
from collections.abc import Mapping

from mcpzip.cli import console
from mcpzip.cli.edit_config import save_change
from mcpzip.cli.questions import Questions
from mcpzip.clients.config_file import ConfigFile
from mcpzip.config import Config, load, parse
from mcpzip.config.schema import SemanticConfig
from mcpzip.model.entry import Entry
from mcpzip.model.errors import ConfigError
from mcpzip.search.remote import embedder
from mcpzip.search.remote.gemini import Gemini
from mcpzip.search.remote.service import Unavailable
from mcpzip.search.tiers import TierAbsence

_CHECK_DEADLINE = 30.0
"""Seconds. Importing google-genai alone may take some."""
_EXAMPLE = Entry.parse("time", b'{"name":"get_current_time","description":"The current time"}')


class SearchSettings:
    """The ``search`` and ``gemini_api_key`` of the config at ``path``. check: whether a tier is tried before
    it is written.
    """

    def __init__(self, path: str, questions: Questions, *, check: bool) -> None:
        self._path, self._questions, self._check = path, questions, check

    def is_open(self) -> bool:
        """Whether there are servers to search, and nothing is set yet."""
        try:
            config = load(self._path, os.environ)
        except ConfigError:
            return False
        return (
            bool(config.servers)
            and config.gemini_api_key is None
            and config.search.semantic == SemanticConfig()
        )

    def ask(self) -> None:
        """Asks for the tiers, if the person wants any."""
        console.say("\nTools are found by words, and by meaning with a table that ships with mcpzip.")
        question = "Set up more: a transformer, an embedding server or Gemini?"
        if not self._questions.confirm(question, default=False):
            return
        console.say("  onnx: a small transformer that runs here (pip install 'mcpzip[semantic]')")
        console.say("  ollama, or the URL of an embedding server: every tool and request is sent to it")
        if text := self._questions.read("By meaning (Enter for the table)").strip():
            self.set_semantic(text)
        console.say(
            "With a Gemini key a model of Google's chooses; it gets the requests and likeliest tools."
        )
        if key := self._questions.secret("Gemini API key (Enter for none)"):
            self._set((), {"gemini_api_key": key.replace("${", "$${")}, "Gemini")

    def set_semantic(self, text: str) -> bool:
        """Sets ``search.semantic``, if it is valid and answers. Returns whether it is set."""
        return self._set(("search",), {"semantic": text}, text)

    def _set(self, keys: tuple[str, ...], values: Mapping[str, object], what: str) -> bool:
        try:
            change = ConfigFile(self._path, os.environ).set(keys, values)
            config = parse(change.after, self._path, os.environ)
        except ConfigError as error:
            console.warn(str(error))
            return False
        problem = asyncio.run(_problem(config, gemini="gemini_api_key" in values)) if self._check else ""
        if problem:
            missing = problem.startswith("pip install")
            why = f"needs an extra: {problem}" if missing else f"does not answer: {problem}"
            console.warn(f"{what} {why}{'' if why.endswith('?') else '.'}")
            if not self._questions.ask or not self._questions.confirm("Use it all the same?", default=False):
                return False
        save_change(change)
        console.say(f"The search uses {what}.")
        return True


async def _problem(config: Config, *, gemini: bool) -> str:
    """Why the tier can't be used, or ""."""
    if gemini:
        llm = Gemini(config.gemini_api_key, config.search.model or "", _CHECK_DEADLINE)
        try:
            found = await llm.rank("what time is it", [_EXAMPLE], 1)
        finally:
            await llm.aclose()
        return found.reason if isinstance(found, TierAbsence) else ""
    if config.search.semantic.provider in ("local", "off"):
        return ""
    meaning = embedder(config.search.semantic, asyncio.get_running_loop().time)
    try:
        async with asyncio.timeout(_CHECK_DEADLINE):
            await meaning.embed(["what time is it"], query=False)
    except Unavailable as error:
        return error.reason
    except TimeoutError:
        return f"no answer within {_CHECK_DEADLINE:g} s"
    finally:
        await meaning.aclose()
    return ""
