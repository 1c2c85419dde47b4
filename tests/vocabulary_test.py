"""A vocabulary learnt from pairs (bench/small_model/vocabulary.py) and a model that is given it
(retokenize.py).

vocabulary_test.py NEREID MODEL
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
from tokenizers import Tokenizer

NEREID, MODEL = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
TOOLS = pathlib.Path(__file__).resolve().parents[1] / "bench/small_model"
sys.path.insert(0, str(TOOLS))
import deepen  # noqa: E402
import further_tasks  # noqa: E402
import retokenize  # noqa: E402


def run(*words):
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, env={**os.environ, "NEREID": NEREID}
    )
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def embedding(folder):
    for name, header, data in deepen.read_tensors(folder / "model.safetensors"):
        if name == retokenize.EMBEDDING:
            return retokenize.rows_of_bfloat16(header, data)
    raise AssertionError(folder)


def check_vocabulary(folder):
    pairs = folder / "pairs.jsonl"
    run(NEREID, "synth", "--operators", 2, "--count", 150, "--seed", 5, "--max-elements", 2**16, "--pairs",
        "--brief", "--variants", 1, "--verify-every", 0, "-o", pairs, "--json")  # fmt: skip
    said = run(sys.executable, TOOLS / "vocabulary.py", folder / "tokenizer.json", pairs, "--vocab", 3000,
               "--phrases", 400)  # fmt: skip
    assert said["pairs"] == 150 and said["functions"] > 1 and said["words"] > 50, said
    new = Tokenizer.from_file(str(folder / "tokenizer.json"))
    old = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    assert new.get_vocab_size() == 3000
    rows = [json.loads(line) for line in pairs.read_text().splitlines()]
    for row in rows:
        assert new.decode(new.encode(row["code"]).ids, skip_special_tokens=False) == row["code"]
    counts = [sum(len(each.encode(row["code"]).ids) for row in rows) for each in (old, new)]
    # Half as many tokens as the model has, of few programs; without phrases answers take twice as many.
    assert counts[1] < 1.25 * counts[0], counts
    # A function that many answers have is one token.
    helper = next(code for code in (row["code"] for row in rows) if "def dot_tf32x3" in code)
    helper = helper[helper.index("@triton.jit\ndef dot_tf32x3") :]
    assert len(new.encode(helper[: helper.index("\n\n\n") + 3]).ids) == 1
    # Ours cuts texts as Hugging Face's.
    text = folder / "text"
    text.write_text(rows[0]["code"])
    done = subprocess.run([NEREID, "tokenize", "-t", folder / "tokenizer.json", text], capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert list(map(int, done.stdout.split())) == new.encode(rows[0]["code"]).ids
    return old, new


def check_retokenized(folder, old, new):
    out = folder / "model"
    said = run(sys.executable, TOOLS / "retokenize.py", MODEL, folder / "tokenizer.json", out)
    assert said["tokens"] == 3000 and 256 < said["kept"] < 3000, said
    assert json.loads((out / "config.json").read_text())["vocab_size"] == 3000
    before, after = embedding(MODEL), embedding(out)
    assert after.shape == (3000, before.shape[1])
    kept = made = 0
    for spelling, token in new.get_vocab().items():
        same = old.token_to_id(spelling)
        if same is not None:
            assert numpy.array_equal(after[token], before[same]), spelling
            kept += 1
            continue
        text = new.decode([token], skip_special_tokens=False)
        pieces = old.encode(text, add_special_tokens=False).ids
        if old.decode(pieces, skip_special_tokens=False) == text:
            mean = before[pieces].mean(0)
            assert (abs(after[token] - mean) <= abs(mean) / 256 + 1e-30).all(), text  # rounded to bfloat16
            made += 1
    assert kept == said["kept"] and made > 200, (kept, made)
    # All other weights are the model's.
    others = [
        {name: data for name, _, data in deepen.read_tensors(each / "model.safetensors")}
        for each in (MODEL, out)
    ]
    for each in others:
        del each[retokenize.EMBEDDING]
    assert others[0] == others[1]


def check_further_tasks(folder):
    def file(name, *rows, end=""):
        path = folder / name
        lines = [json.dumps({"digest": d, "structure": s, "code": c}) + "\n" for d, s, c in rows]
        path.write_text("".join(lines) + end)
        return path

    known, held = file("known", ("a", "1", "x")), file("held", ("b", "2", "x"))
    found = file("found", ("a", "1", "x"), ("c", "2", "x"), ("d", "3", "x"), ("d", "3", "x"),
                 ("e", "4", "y" * 99),
                 end='{"digest": "f", "str')  # fmt: skip
    out = folder / "out"
    said = run(sys.executable, TOOLS / "further_tasks.py", out, found, folder / "none", "--known", known, out,
               "--held-out", held, "--longest", 50)  # fmt: skip
    assert said == {"tasks": 1}, said
    assert [row["digest"] for row in further_tasks.rows_of(out)] == ["d"]


with tempfile.TemporaryDirectory() as name:
    check_retokenized(pathlib.Path(name), *check_vocabulary(pathlib.Path(name)))
    check_further_tasks(pathlib.Path(name))
print("ok")
