"""The LLM tier: Gemini, through google-genai, chooses among the tools that were found nearby.

The rule: whatever it answers, nothing comes of it but an order of real candidates (`prompt`); whatever goes
wrong is one sentence, in time, and without the key in it.
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mcpzip.config.schema import GEMINI_MODEL, LLM_DEADLINE, Secret
from mcpzip.model.entry import Entry
from mcpzip.model.retry_after import LONGEST, retry_after
from mcpzip.search.remote.prompt import INSTRUCTIONS, Prompt, Selection, picks, prompt, schema, scores
from mcpzip.search.remote.service import REFUSED_PAUSE, Clock, Service, Unavailable
from mcpzip.search.tiers import LLM, TierAbsence, TierAnswer
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.errors import APIError
    from google.genai.types import GenerateContentResponse

METHOD = "gemini"
INSTALL = "pip install 'mcpzip[gemini]'"

_OUTPUT = 2_048
"""Tokens an answer may have, a model's thoughts included."""

_STATUS = re.compile(r"[A-Z_]{1,40}")
_DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")  # as protobuf writes it in JSON


class Gemini:
    """One key and one model of Gemini.

    dropped: how many names it has invented, or said twice, so far. base_url: None for Google's, or what
    GOOGLE_GEMINI_BASE_URL says.
    """

    def __init__(
        self,
        key: Secret | None,
        model: str = GEMINI_MODEL,
        deadline: float = LLM_DEADLINE,
        *,
        clock: Clock = time.monotonic,
        base_url: str | None = None,
    ) -> None:
        self.service = Service(clock)
        self.model = model
        self.dropped = 0
        self._key, self._deadline, self._base_url = key, deadline, base_url
        self._opening: asyncio.Task[Client] | None = None

    async def rank(self, query: str, candidates: Sequence[Entry], limit: int) -> TierAnswer | TierAbsence:
        """At most ``limit`` of ``candidates``, which stand best first, for ``query``. Raises nothing."""
        try:
            found = await self._rank(query, candidates, limit)
        except Unavailable as error:
            return TierAbsence(LLM, METHOD, error.reason)
        return TierAnswer(LLM, METHOD, scores(found.names))

    async def aclose(self) -> None:
        """Close the connections it has."""
        opening, self._opening = self._opening, None
        if opening is None or not opening.done() or opening.cancelled() or opening.exception():
            return
        client = opening.result()
        await client.aio.aclose()
        client.close()

    async def _rank(self, query: str, candidates: Sequence[Entry], limit: int) -> Selection:
        if self._key is None:
            raise Unavailable("no key: set gemini_api_key, or GEMINI_API_KEY in the environment")
        if not query.strip() or not candidates:
            return Selection((), 0)
        reason = self.service.resting()
        if reason:
            raise Unavailable(reason)
        begun = asyncio.get_running_loop().time()
        client = await self._client(self._key)
        asked = prompt(query, candidates, limit)
        spent = asyncio.get_running_loop().time() - begun

        async def attempt() -> Selection:
            return self._picks(await self._generate(client, asked, limit), asked, limit)

        return await self.service.ask(attempt, self._deadline, spent=spent)

    async def _client(self, key: Secret) -> "Client":
        """The client, once google-genai is imported, which takes half a second of a thread."""
        if self._opening is None:
            self._opening = asyncio.create_task(in_thread(lambda: self._open(key), METHOD))
        try:
            async with asyncio.timeout(self._deadline):
                return await asyncio.shield(self._opening)
        except TimeoutError as error:
            raise Unavailable("google-genai is still being loaded") from error
        except ImportError as error:
            self._opening = None
            self.service.failed(INSTALL, REFUSED_PAUSE)
            raise Unavailable(INSTALL) from error
        except Exception as error:  # what a foreign constructor may raise is not for us to list
            self._opening = None
            self.service.failed("google-genai can't be used", REFUSED_PAUSE)
            raise Unavailable(f"google-genai can't be used ({type(error).__name__})") from error

    def _open(self, key: Secret) -> "Client":
        from google.genai import Client
        from google.genai.types import HttpOptions, HttpRetryOptions

        return Client(
            api_key=key.reveal(),
            vertexai=False,  # whatever the environment says: the key is for the Gemini API
            http_options=HttpOptions(
                base_url=self._base_url,
                timeout=max(1, int(self._deadline * 1_000)),  # ms
                retry_options=HttpRetryOptions(attempts=1),  # `service` retries, within the deadline
                # The key travels in a header that a redirect would take to another host.
                async_client_args={"follow_redirects": False},
            ),
        )

    async def _generate(self, client: "Client", asked: Prompt, limit: int) -> "GenerateContentResponse":
        from google.genai.errors import APIError
        from google.genai.types import GenerateContentConfig

        config = GenerateContentConfig(
            system_instruction=INSTRUCTIONS,
            response_mime_type="application/json",
            response_json_schema=schema(limit),
            max_output_tokens=_OUTPUT,
        )
        try:
            return await client.aio.models.generate_content(
                model=self.model, contents=asked.text, config=config
            )
        except APIError as error:
            raise self._refusal(error) from error
        except Exception as error:  # of one of two HTTP libraries, pydantic, or the package itself
            raise _broken(error) from error

    def _picks(self, response: "GenerateContentResponse", asked: Prompt, limit: int) -> Selection:
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason:
            raise Unavailable(f"it blocked the request ({_name(feedback.block_reason)})", refused=True)
        if not response.candidates:
            raise Unavailable("it gave an empty answer")
        ended = _name(response.candidates[0].finish_reason)
        if ended == "MAX_TOKENS":
            raise Unavailable("its answer was too long")
        text = "".join(
            part.text
            for part in (response.candidates[0].content and response.candidates[0].content.parts) or ()
            if part.text and not part.thought
        )
        if not text.strip():
            why = f" ({ended})" if ended not in ("", "STOP") else ""
            raise Unavailable(f"it gave an empty answer{why}", refused=bool(why))
        try:
            found = picks(text, asked, limit)
        except ValueError as error:
            raise Unavailable(f"its answer is {error}") from error
        self.dropped += found.dropped
        if found.dropped and not found.names:
            raise Unavailable("it named no tool that exists")
        return found

    def _refusal(self, error: "APIError") -> Unavailable:
        code, status = error.code, _name(error.status)
        details: object = error.details
        if code in (401, 403) or (code == 400 and "API_KEY_INVALID" in _reasons(details)):
            told = f" {status}" if status else ""
            return Unavailable(f"the key is refused ({code}{told}); see gemini_api_key", rest=REFUSED_PAUSE)
        if code == 404:
            return Unavailable(
                f"there is no model {self.model!r} (404); see search.model", rest=REFUSED_PAUSE
            )
        headers = getattr(error.response, "headers", None)
        wait = retry_after(headers.get("retry-after"), time.time()) if isinstance(headers, Mapping) else None
        if wait is None:
            wait = _retry_delay(details)
        if code == 429:
            return Unavailable("over its limit (429)", passing=True, wait=wait, rest=wait or 0.0)
        if code >= 500:
            return Unavailable(f"it has an error ({code})", passing=True, wait=wait, rest=wait or 0.0)
        return Unavailable(f"it refused the request ({code})")


def _broken(error: Exception) -> Unavailable:
    """What became of a request that got no answer: httpx and httpx2 call their errors alike."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"ConnectError", "ConnectTimeout"}:
        return Unavailable("it can't be reached", passing=True)
    if "TimeoutException" in kinds:
        return Unavailable("no answer in time", slow=True)
    if "TransportError" in kinds:
        return Unavailable("the connection broke off", passing=True)
    return Unavailable("its answer can't be read")


def _name(value: object) -> str:
    """An enum's value, or a status, if it looks like one."""
    text = str(getattr(value, "value", value) or "")
    return text if _STATUS.fullmatch(text) else ""


def _details(body: object) -> list[dict[str, object]]:
    """``error.details`` of Google's error shape (google.rpc.Status)."""
    error = body.get("error", body) if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    return [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []


def _reasons(body: object) -> set[object]:
    """The reasons in it (google.rpc.ErrorInfo)."""
    return {str(each.get("reason")) for each in _details(body)}


def _retry_delay(body: object) -> float | None:
    """The seconds it asks to wait (google.rpc.RetryInfo)."""
    found = (_DURATION.fullmatch(str(each.get("retryDelay"))) for each in _details(body))
    return next((min(float(each[1]), LONGEST) for each in found if each), None)
