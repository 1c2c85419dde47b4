"""A deeper model computes the same until it is trained (bench/small_model/deepen.py), weights with fewer
mantissa bits are the nearest ones (tools/quantise), and packed weights are the same to the bit
(tools/weights).

deepen_test.py NEREID_LM MODEL             with two layers of the model
deepen_test.py NEREID_LM MODEL NEREID      the whole model, which has 4 mantissa bits, and with 2: their size,
                                           and their loss on plans of held-out programs
"""

import importlib.machinery
import importlib.util
import json
import lzma
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy

LM, MODEL = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench/small_model"))
import deepen  # noqa: E402

loader = importlib.machinery.SourceFileLoader("quantise", str(ROOT / "tools/quantise"))
quantise = importlib.util.module_from_spec(importlib.util.spec_from_loader("quantise", loader))
loader.exec_module(quantise)


def run(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def logits(model, folder, documents):
    """float32 [tokens, vocabulary] of packed documents."""
    tokens = [token for document in documents for token in document]
    ends = numpy.cumsum([0, *map(len, documents)])
    deepen.write_tensors(
        folder / "tokens.safetensors",
        [
            ("tokens", {"dtype": "I64", "shape": [len(tokens)]}, numpy.array(tokens, "<i8").tobytes()),
            ("cumulative", {"dtype": "I32", "shape": [len(ends)]}, numpy.array(ends, "<i4").tobytes()),
        ],
    )
    out = folder / "logits.safetensors"
    run(
        LM,
        "logits",
        model,
        "--tokens",
        folder / "tokens.safetensors",
        "-o",
        out,
        "--device",
        "cpu",
        "--dtype",
        "float32",
    )
    ((_, tensor, data),) = deepen.read_tensors(out)
    return numpy.frombuffer(data, "<f4").reshape(tensor["shape"])


def check_deeper(folder):
    for counts in range(1, 6):
        for wanted in range(counts, 3 * counts + 2):
            assert sum(deepen.copies(counts, wanted)) == wanted - counts
            assert max(deepen.copies(counts, wanted)) - min(deepen.copies(counts, wanted)) <= 1
    few = folder / "few"
    few.mkdir()
    for name in ("config.json", "generation_config.json", "tokenizer.json", "model.safetensors"):
        (few / name).write_bytes((MODEL / name).read_bytes())
    run(sys.executable, ROOT / "bench/remote/cut_layers.py", few, 2)
    said = json.loads(
        run(sys.executable, ROOT / "bench/small_model/deepen.py", few, folder / "deep", "--layers", 5)
    )
    assert said == {"layers": 5, "copies_of": [0, 1, 1]}, said
    assert json.loads((folder / "deep/config.json").read_text())["num_hidden_layers"] == 5
    random = numpy.random.default_rng(1)
    documents = [random.integers(5, 4000, 40).tolist(), random.integers(5, 4000, 7).tolist()]
    before, after = (logits(folder / name, folder, documents) for name in ("few", "deep"))
    assert before.shape[0] == 47 and before.std() > 0.1, before
    assert numpy.array_equal(before, after), abs(before - after).max()
    # The copies are their layers but for the two projections, and each has its own name.
    tensors = {name: data for name, _, data in deepen.read_tensors(folder / "deep/model.safetensors")}
    for number, source in enumerate((0, 0, 1, 1, 1)):
        for part in ("self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj", "mlp.gate_proj"):
            own, first = (tensors[f"model.layers.{n}.{part}.weight"] for n in (number, (0, 2)[source]))
            copied = number not in (0, 2) and part in ("self_attn.o_proj", "mlp.down_proj")
            assert own == (bytes(len(first)) if copied else first), (number, part)
    # With the projections as they were the logits are others: the copies do count.
    wrong = [
        (
            name,
            tensor,
            tensors["model.layers.0.mlp.down_proj.weight"]
            if name == "model.layers.1.mlp.down_proj.weight"
            else data,
        )
        for name, tensor, data in deepen.read_tensors(folder / "deep/model.safetensors")
    ]
    deepen.write_tensors(folder / "deep/model.safetensors", wrong)
    assert not numpy.array_equal(before, logits(folder / "deep", folder, documents))


def check_rounding():
    """Every bfloat16 number: the nearest with so many bits, of two the even one."""
    every = numpy.arange(65536, dtype=numpy.uint16)
    values = quantise.as_floats(every).astype(numpy.float64)
    finite = numpy.isfinite(values)
    for bits in range(8):
        made = quantise.rounded(every, bits)
        assert made.dtype == numpy.uint16 and not (made[finite] & ((1 << (7 - bits)) - 1)).any()
        assert numpy.array_equal(made[~finite], every[~finite])
        grid = numpy.unique(values[finite & ((every & ((1 << (7 - bits)) - 1)) == 0)])
        got = quantise.as_floats(made[finite]).astype(numpy.float64)
        at = numpy.clip(numpy.searchsorted(grid, values[finite]), 1, len(grid) - 1)
        nearest = numpy.minimum(abs(grid[at] - values[finite]), abs(grid[at - 1] - values[finite]))
        assert numpy.array_equal(abs(got - values[finite]), nearest), bits
        tie = (every[finite] & ((1 << (7 - bits)) - 1)) == (1 << (6 - bits) if bits < 7 else 1)
        inside = abs(values[finite]) < grid[-1]
        if bits < 7:
            assert not (made[finite][tie & inside] >> (7 - bits) & 1).any(), bits


def check_packing(folder):
    """Any numbers, of any count, packed as now and as before; rounded ones in fewer bytes."""
    generator = numpy.random.default_rng(2)
    normal = generator.standard_normal(100_000, dtype=numpy.float32).view(numpy.uint32) >> 16
    for count, numbers in (
        (0, []),
        (20_001, generator.integers(0, 65536, 20_001)),
        (100_000, quantise.rounded(normal.astype(numpy.uint16), 4)),
    ):
        data = numpy.array(numbers, "<u2").tobytes()
        each = folder / f"packed-{count}"
        each.mkdir()
        header = {"x": {"dtype": "BF16", "shape": [count], "data_offsets": [0, 2 * count]}}
        header = json.dumps(header).encode()
        file = len(header).to_bytes(8, "little") + header + data
        before = lzma.compress(file[: 8 + len(header)] + data[1::2] + data[0::2])
        (each / "model.safetensors").write_bytes(file)
        run(sys.executable, ROOT / "tools/weights", "pack", each)
        packed = (each / "weights.xz").read_bytes()
        for form in (packed, before):
            (each / "weights.xz").write_bytes(form)
            (each / "model.safetensors").unlink()
            run(sys.executable, ROOT / "tools/weights", "unpack", each)
            assert (each / "model.safetensors").read_bytes() == file, (count, form is before)
    assert len(packed) < 0.96 * len(before), (len(packed), len(before))


def answers(folder, nereid):
    """Documents of held-out programs, and the places of their plans' tokens, to the `</think>` after them."""
    pairs = folder / "pairs.jsonl"
    run(nereid, "synth", "--operators", 2, "--count", 12, "--split", "held-out", "--held-out", 0.05,
        "--seed", 777, "--max-elements", 2**16, "--pairs", "--brief", "--variants", 1,
        "--verify-every", 0, "-o", pairs)  # fmt: skip
    run(
        nereid,
        "train",
        "data",
        pairs,
        "-o",
        folder / "shards",
        "-t",
        MODEL / "tokenizer.json",
        "--longest",
        4096,
    )
    added = json.loads((MODEL / "tokenizer.json").read_text())["added_tokens"]
    (close,) = (token["id"] for token in added if token["content"] == "</think>")
    documents, spans = [], []
    for file in sorted((folder / "shards").glob("*.tokens")):  # docs/data.md
        data = file.read_bytes()
        tokens, count, span_count = struct.unpack_from("<QQQ", data, 48)
        ids = numpy.frombuffer(data, "<u2", tokens, 128).tolist()
        index_at = 128 + (2 * tokens + 7) // 8 * 8
        index = struct.unpack_from(f"<{2 * (count + 1)}Q", data, index_at)
        own = struct.unpack_from(f"<{2 * span_count}I", data, index_at + 16 * (count + 1))
        for i in range(count):
            documents.append(ids[index[2 * i] : index[2 * i + 2]])
            begin = own[2 * index[2 * i + 1]]
            spans.append([(begin, documents[-1].index(close, begin) + 1)])
    return documents, spans


def loss(model, folder, documents, spans):
    """Mean of the plans' tokens."""
    made, at, losses = logits(model, folder, documents).astype(numpy.float64), 0, []
    for document, own in zip(documents, spans):
        for begin, end in own:
            for place in range(max(begin, 1), end):
                row = made[at + place - 1]
                losses.append(numpy.log(numpy.exp(row - row.max()).sum()) + row.max() - row[document[place]])
        at += len(document)
    return float(numpy.mean(losses)), len(losses)


def check_shipped(folder, nereid):
    models = [MODEL, folder / "4", folder / "2"]
    said = [json.loads(run(sys.executable, ROOT / "tools/quantise", MODEL, rounded, "--bits", rounded.name))
            for rounded in models[1:]]  # fmt: skip
    # The model has 4 bits: rounding to as many changes no byte.
    assert said[0]["relative_error"] == 0 and 0.02 < said[1]["relative_error"] < 0.1, said
    weights = [(each / "model.safetensors").read_bytes() for each in models]
    assert weights[0] == weights[1] != weights[2]
    run(sys.executable, ROOT / "tools/weights", "pack", models[2])
    sizes = [(each / "weights.xz").stat().st_size for each in (MODEL, models[2])]
    documents, spans = answers(folder, nereid)
    (before, tokens), (after, _) = (loss(each, folder, documents, spans) for each in (MODEL, models[2]))
    parameters = said[0]["numbers"]
    print(json.dumps({"relative_error": said[1]["relative_error"], "bytes": sizes,
                      "bits_a_parameter": [8 * size / parameters for size in sizes],
                      "answers": len(documents), "tokens": tokens, "loss": [before, after]}))  # fmt: skip
    assert sizes[0] < 0.98 * parameters and sizes[1] < sizes[0] - 0.24 * parameters, sizes
    assert len(documents) >= 8 and tokens > 1000, (len(documents), tokens)
    assert before < 0.1 and before < after, (before, after)


with tempfile.TemporaryDirectory() as name:
    if len(sys.argv) > 3:
        check_shipped(pathlib.Path(name), os.path.abspath(sys.argv[3]))
    else:
        check_rounding()
        check_deeper(pathlib.Path(name))
        check_packing(pathlib.Path(name))
print("deeper models compute the same; weights are rounded to the nearest and packed as they are")
