"""The LLM tier: Gemini, called with google-genai, chooses among the best tools of the other tiers.

The rule: whatever the model answers, the result is only an order of candidates (`prompt`); any failure is
reported within the deadline as one sentence without the key.
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mcpzip.config.schema import GEMINI_MODEL, LLM_DEADLINE, Secret
from mcpzip.model.entry import Entry
from mcpzip.model.retry_after import LONGEST, retry_after
from mcpzip.search.remote.prompt import (
    INSTRUCTIONS,
    Prompt,
    Selection,
    parse_selection,
    prompt,
    schema,
    scores,
)
from mcpzip.search.remote.service import REFUSED_PAUSE, Clock, Service, Unavailable, overloaded
from mcpzip.search.tiers import LLM, TierAbsence, TierAnswer
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.errors import APIError
    from google.genai.types import GenerateContentResponse

METHOD = "gemini"
INSTALL = "pip install 'mcpzip[gemini]'"

_MAX_OUTPUT = 2_048
"""Tokens of an answer, thoughts included."""

_STATUS = re.compile(r"[A-Z_]{1,40}")
_DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")  # google.protobuf.Duration in JSON


class Gemini:
    """A key and a model of Gemini.

    invalid_names: the number of names so far that did not exist or were repeated. base_url: None for
    GOOGLE_GEMINI_BASE_URL, or else Google's.
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
        self.invalid_names = 0
        self._key, self._deadline, self._base_url = key, deadline, base_url
        self._opening: asyncio.Task[Client] | None = None

    async def rank(self, query: str, candidates: Sequence[Entry], limit: int) -> TierAnswer | TierAbsence:
        """The ``limit`` best of ``candidates``, which are best first, for ``query``. Never raises."""
        try:
            selection = await self._rank(query, candidates, limit)
        except Unavailable as error:
            return TierAbsence(LLM, METHOD, error.reason)
        return TierAnswer(LLM, METHOD, scores(selection.names))

    async def aclose(self) -> None:
        """Close the connections."""
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
        reason = self.service.paused()
        if reason:
            raise Unavailable(reason)
        started = asyncio.get_running_loop().time()
        client = await self._client(self._key)
        request = prompt(query, candidates, limit)
        spent = asyncio.get_running_loop().time() - started

        async def attempt() -> Selection:
            return self._selection(await self._generate(client, request, limit), request, limit)

        return await self.service.ask(attempt, self._deadline, spent=spent)

    async def _client(self, key: Secret) -> "Client":
        """The client. Opened in a thread, because importing google-genai takes half a second."""
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
        except Exception as error:  # the exceptions of the library's constructor are not documented
            self._opening = None
            self.service.failed("google-genai can't be used", REFUSED_PAUSE)
            raise Unavailable(f"google-genai can't be used ({type(error).__name__})") from error

    def _open(self, key: Secret) -> "Client":
        from google.genai import Client
        from google.genai.types import HttpOptions, HttpRetryOptions

        return Client(
            api_key=key.reveal(),
            vertexai=False,  # overrides the environment: the key is for the Gemini API
            http_options=HttpOptions(
                base_url=self._base_url,
                timeout=max(1, int(self._deadline * 1_000)),  # ms
                retry_options=HttpRetryOptions(attempts=1),  # `service` retries, within the deadline
                # The key is in a header, which a redirect would send to another host.
                async_client_args={"follow_redirects": False},
            ),
        )

    async def _generate(self, client: "Client", request: Prompt, limit: int) -> "GenerateContentResponse":
        from google.genai.errors import APIError
        from google.genai.types import GenerateContentConfig

        config = GenerateContentConfig(
            system_instruction=INSTRUCTIONS,
            response_mime_type="application/json",
            response_json_schema=schema(limit),
            max_output_tokens=_MAX_OUTPUT,
        )
        try:
            return await client.aio.models.generate_content(
                model=self.model, contents=request.text, config=config
            )
        except APIError as error:
            raise self._api_failure(error) from error
        except Exception as error:  # of httpx or httpx2, of pydantic, or of google-genai itself
            raise _transport_failure(error) from error

    def _selection(self, response: "GenerateContentResponse", request: Prompt, limit: int) -> Selection:
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason:
            raise Unavailable(f"it blocked the request ({_name(feedback.block_reason)})", bad_request=True)
        if not response.candidates:
            raise Unavailable("its answer is empty")
        finish_reason = _name(response.candidates[0].finish_reason)
        if finish_reason == "MAX_TOKENS":
            raise Unavailable("its answer was too long")
        text = "".join(
            part.text
            for part in (response.candidates[0].content and response.candidates[0].content.parts) or ()
            if part.text and not part.thought
        )
        if not text.strip():
            why = f" ({finish_reason})" if finish_reason not in ("", "STOP") else ""
            raise Unavailable(f"its answer is empty{why}", bad_request=bool(why))
        try:
            selection = parse_selection(text, request, limit)
        except ValueError as error:
            raise Unavailable(f"its answer is {error}") from error
        self.invalid_names += selection.invalid
        if selection.invalid and not selection.names:
            raise Unavailable("it chose only tools that don't exist")
        return selection

    def _api_failure(self, error: "APIError") -> Unavailable:
        code, status = error.code, _name(error.status)
        details: object = error.details
        if code in (401, 403) or (code == 400 and "API_KEY_INVALID" in _reasons(details)):
            shown = f"{code} {status}" if status else f"{code}"
            return Unavailable(f"the key is refused ({shown}); see gemini_api_key", pause=REFUSED_PAUSE)
        if code == 404:
            return Unavailable(
                f"there is no model {self.model!r} (404); see search.model", pause=REFUSED_PAUSE
            )
        if code == 429 or code >= 500:
            headers = getattr(error.response, "headers", None)
            header = headers.get("retry-after") if isinstance(headers, Mapping) else None
            wait = retry_after(header, time.time())
            return overloaded(code, _retry_delay(details) if wait is None else wait)
        return Unavailable(f"it refused the request ({code})")


def _transport_failure(error: Exception) -> Unavailable:
    """The failure of a request without a response. By class names, which httpx and httpx2 have in common."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"ConnectError", "ConnectTimeout"}:
        return Unavailable("it can't be reached", transient=True)
    if "TimeoutException" in kinds:
        return Unavailable("no answer in time", timed_out=True)
    if "TransportError" in kinds:
        return Unavailable("the connection was closed", transient=True)
    return Unavailable("its answer can't be read")


def _name(value: object) -> str:
    """The name of a status or enum value (``RESOURCE_EXHAUSTED``), fit to be shown; "" for any other text,
    because a response may contain anything.
    """
    text = str(getattr(value, "value", value) or "")
    return text if _STATUS.fullmatch(text) else ""


def _details(body: object) -> list[dict[str, object]]:
    """``error.details`` of an error response of Google's APIs (google.rpc.Status)."""
    error = body.get("error", body) if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    return [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []


def _reasons(body: object) -> set[object]:
    """The reasons in an error response (google.rpc.ErrorInfo)."""
    return {str(each.get("reason")) for each in _details(body)}


def _retry_delay(body: object) -> float | None:
    """The seconds to wait before a retry, of an error response (google.rpc.RetryInfo)."""
    found = (_DURATION.fullmatch(str(each.get("retryDelay"))) for each in _details(body))
    return next((min(float(each[1]), LONGEST) for each in found if each), None)
