"""The model that ships: its files are those that were written down, small enough, loaded by transformers to
the same logits; and commands that name no model find it, and it writes kernels that are verified. Where the
weights are not in this checkout there is nothing to test (exit code 77).

    small_model_test.py NEREID NEREID_LM            one held-out program (make test)
    small_model_test.py NEREID NEREID_LM --all      all three (make slow)
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
ALL = "--all" in sys.argv
REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
MODEL = REPOSITORY / "models/small"
MOST_BYTES = 32_000_000
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {
    **os.environ,
    "CUDA_VISIBLE_DEVICES": "",
    "NEREID_STORE": str(root / "store.db"),
    "HF_HUB_OFFLINE": "1",
}


def ran(*arguments, code=0, program=NEREID, **options):
    done = subprocess.run(
        [program, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=root,
        env=ENV,
        timeout=1200,
        **options,
    )
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


weights, packed, manifest = MODEL / "model.safetensors", MODEL / "weights.xz", MODEL / "manifest.json"
if not weights.exists() and not manifest.exists():
    assert not (MODEL / "config.json").exists(), (
        f"{MODEL} has a config.json and no weights: commands would take it for a model"
    )
    message = ran(
        "optimize", REPOSITORY / "tests/tasks/relu.py", "-o", "out.py", "--proposers", "model", code=2
    ).stderr
    assert "no model comes with this installation" in message and "name a checkpoint's folder" in message, (
        message
    )
    print(f"{weights} is not there: nothing to test")
    sys.exit(77)

# The manifest names every file with its digest, and the committed files that the model was made by.
assert manifest.exists(), f"{weights} is there and {manifest} is not: tools/ship-model writes it"
written = json.loads(manifest.read_text())
prompts = {f"prompts/{file.name}" for file in (MODEL / "prompts").glob("*.md")}
needed = {
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "weights.xz",
    "tokenizer.json",
} | prompts
assert written["files"].keys() == needed, (
    f"{manifest}: expected {sorted(needed)}, got {sorted(written['files'])}"
)
for name, digest in written["files"].items():
    found = hashlib.sha256((MODEL / name).read_bytes()).hexdigest()
    assert found == digest, f"{MODEL / name}: expected the SHA-256 {digest} of {manifest}, got {found}"
assert any(source["path"].endswith(".toml") for source in written["made_by"]), f"{manifest} names no run file"
history = subprocess.run(
    ["git", "-C", REPOSITORY, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True
)
if history.stdout.strip() == "false":
    for source in written["made_by"]:
        shown = subprocess.run(
            ["git", "-C", REPOSITORY, "show", f"{source['commit']}:{source['path']}"], capture_output=True
        )
        assert hashlib.sha256(shown.stdout).hexdigest() == source["sha256"], (
            f"{manifest}: {source} is not in the history"
        )
size = packed.stat().st_size + (MODEL / "tokenizer.json").stat().st_size
assert size <= MOST_BYTES, f"weights and tokenizer have {size} bytes, expected at most {MOST_BYTES}"
# Packed and unpacked they are the same to the bit; what is cut off is reported.
subprocess.run(
    [
        REPOSITORY / "tools/weights",
        "unpack",
        shutil.copytree(MODEL, root / "unpacked", ignore=lambda _, names: {"model.safetensors"} & {*names}),
    ],
    check=True,
)
assert (root / "unpacked/model.safetensors").read_bytes() == weights.read_bytes()
(root / "unpacked/model.safetensors").unlink()
(root / "unpacked/weights.xz").write_bytes(packed.read_bytes()[:1_000_000])
cut = subprocess.run(
    [REPOSITORY / "tools/weights", "unpack", root / "unpacked"], capture_output=True, text=True
)
assert (
    cut.returncode == 1 and "weights.xz" in cut.stderr and not (root / "unpacked/model.safetensors").exists()
), cut
print(f"{size} bytes, as written down")

# Exported, and in transformers: the same weights to the bit, and the same logits as far as float32 rounds.
ran("export", "-o", "exported")
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

exported = load_file(root / "exported/model.safetensors")
original = load_file(weights)
assert exported.keys() == original.keys() and all(
    torch.equal(exported[name], original[name]) for name in original
)
assert json.loads((root / "exported/generation_config.json").read_text()) == json.loads(
    (MODEL / "generation_config.json").read_text()
)
config = json.loads((MODEL / "config.json").read_text())
# Drawn once (`nereid synth --operators 2 --seed 4711 --held-out 0.05 --split held-out`): a sampler that
# learns more operators draws others, which this model may not know.
tasks = sorted((REPOSITORY / "tests/held_out").glob("*.py"))
assert len(tasks) == 3
short = next(task for task in tasks if task.stem == "gelu")
encoded = ran("tokenize", "-t", MODEL / "tokenizer.json", tasks[0]).stdout.split()
tokens = torch.tensor([int(token) for token in encoded])
assert 50 < len(tokens) < 2000 and int(tokens.max()) < config["vocab_size"]
save_file(
    {"tokens": tokens, "cumulative": torch.tensor([0, len(tokens)], dtype=torch.int32)},
    root / "tokens.safetensors",
)
ran(
    "logits",
    "exported",
    "--tokens",
    "tokens.safetensors",
    "-o",
    "logits.safetensors",
    "--device",
    "cpu",
    "--dtype",
    "float32",
    program=LM,
)
ours = load_file(root / "logits.safetensors")["logits"]
with torch.no_grad():
    theirs = (
        AutoModelForCausalLM.from_pretrained(root / "exported", dtype=torch.float32)
        .eval()(tokens[None])
        .logits[0]
    )
apart, scale = (ours - theirs).abs().max().item(), theirs.abs().max().item()
assert apart <= 1e-5 * max(scale, 10), (apart, scale)
print(f"exported; logits of up to {scale:.1f} differ by {apart:.1e} from transformers'")

# Without --model: a raw answer, and verified kernels.
answer = ran(
    "generate",
    "--chat",
    "--prompt",
    "-",
    "--temperature",
    0,
    "--max-tokens",
    4096,
    "--device",
    "cpu",
    input=short.read_text(),
).stdout
assert "class ModelNew" in answer and "@triton.jit" in answer and answer.rstrip().endswith("```"), answer[
    -500:
]
for task in tasks if ALL else [short]:
    result = json.loads(
        ran(
            "optimize",
            task,
            "-o",
            "out.py",
            "--proposers",
            "model",
            "--samples",
            8,
            "--first",
            "--whole-only",
            "--device",
            "cpu",
            "--policy",
            "strict",
            "--budget",
            "250s",
            "--json",
        ).stdout
    )
    assert result["verdict"] == "Verified" and result["proposer"] == "model", result
    assert ran("verify", task, "out.py", "--device", "cpu", "--policy", "strict").stdout.startswith(
        "Verified"
    )
print("held-out programs of two operators: Verified")

# A program written by hand, which it may only understand as rewritten from its trace.
SOFTMAX = REPOSITORY / "tests/tasks/softmax.py"
result = json.loads(
    ran(
        "optimize",
        SOFTMAX,
        "-o",
        "softmax.py",
        "--proposers",
        "model",
        "--samples",
        16,
        "--first",
        "--device",
        "cpu",
        "--policy",
        "strict",
        "--budget",
        "250s",
        "--json",
    ).stdout
)
assert result["verdict"] == "Verified" and result["proposer"] in ("model", "subgraphs"), result
assert ran("verify", SOFTMAX, "softmax.py", "--device", "cpu", "--policy", "strict").stdout.startswith(
    "Verified"
)
print(f"a softmax written by hand: Verified, by {result['proposer']}")

# With the compiler: both are in one object.
result = json.loads(
    ran(
        "optimize",
        short,
        "-o",
        "both.py",
        "--proposers",
        "compiler,model",
        "--whole-only",
        "--device",
        "cpu",
        "--budget",
        "250s",
        "--json",
    ).stdout
)
tried = {judged["proposer"]: judged["verdict"] for judged in result["tried"]}
assert tried == {"compiler": "Verified", "model": "Verified"} and result["verdict"] == "Verified", result
print("compiler and model: both Verified")

# Ctrl-C keeps what the compiler has, and ends the model, which writes.
with open(root / "log", "w") as log:
    process = subprocess.Popen(
        [
            NEREID,
            "optimize",
            SOFTMAX,
            "-o",
            "kept.py",
            "--proposers",
            "compiler,model",
            "--samples",
            "64",
            "--every-sample",
            "--device",
            "cpu",
            "--no-store",
            "--budget",
            "250s",
            "--json",
        ],
        cwd=root,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    while "compiler: Verified" not in (root / "log").read_text() and process.poll() is None:
        time.sleep(0.05)
    children = [
        int(child)
        for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]
    writer = [
        child for child in children if b"propose" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    process.send_signal(signal.SIGINT)
    result = json.loads(process.communicate(timeout=1200)[0])
assert (
    process.returncode == 0
    and result["interrupted"]
    and result["proposer"] == "compiler"
    and "class ModelNew" in (root / "kept.py").read_text()
), result
assert len(writer) == 1 and not pathlib.Path(f"/proc/{writer[0]}/exe").exists(), (children, writer)
print("Ctrl-C: what was verified is kept, and no process writes any more")
