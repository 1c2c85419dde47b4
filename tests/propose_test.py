"""Nereid's own language model as a proposer, at toy size: one that has learnt two verified answers by heart
proposes them, for a whole program and for a fragment; one that writes garbage is refused and the compiler
still wins; a killed process, Ctrl-C, folders that hold no model; `nereid export`.

    propose_test.py NEREID NEREID_LM
"""

import http.server
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "NEREID_STORE": str(root / "store.db"),
    "HF_HUB_OFFLINE": "1",
}
RELU = REPOSITORY / "tests/tasks/relu.py"


def ran(*arguments, code=0, program=NEREID, env=ENV):
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, cwd=root, env=env, timeout=1200
    )
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def optimize(task, *arguments, code=0, **more):
    budget = [] if "--budget" in arguments else ["--budget", "270s"]  # also of a loaded machine
    done = ran(
        "optimize", task, "-o", "out.py", "--device", "cpu", "--json", *budget, *arguments, code=code, **more
    )
    return json.loads(done.stdout), done.stderr


# A program of which the compiler has no kernel for one part: the requests for its subgraphs are recorded.
(root / "mixed.py").write_text(
    "import torch\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n      "
    "  self.fc = torch.nn.Linear(32, 24)\n    def forward(self, x):\n        return"
    " torch.sort(torch.relu(self.fc(x)), dim=-1)[0]\ndef get_inputs():\n    return [torch.randn(17, 32)]\ndef"
    " get_init_inputs():\n    return []\n"
)
asked = []


class Listening(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        asked.append(re.search("```python\n(.*)\n```", message, re.S).group(1))
        body = json.dumps(
            {"choices": [{"message": {"content": "I do not know."}, "finish_reason": "stop"}]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listening)
threading.Thread(target=server.serve_forever, daemon=True).start()
optimize(
    "mixed.py",
    "--proposers",
    "http",
    "--repairs",
    "0",
    "--policy",
    "hybrid",
    code=1,
    env={
        **ENV,
        "NEREID_HTTP_BASE": f"http://127.0.0.1:{server.server_port}/v1",
        "NEREID_HTTP_MODEL": "listening",
    },
)
server.shutdown()
fragment = next(text for text in asked if "aten.relu" in text and text.count("torch.ops.aten.") == 1)
(root / "fragment.py").write_text(fragment)

# Two answers by heart.
pairs = []
for task in (RELU, root / "fragment.py"):
    ran("lower", task, "-o", f"lowered_{task.stem}.py")
    code = (root / f"lowered_{task.stem}.py").read_text().split("\n# ---- Guard")[0]  # the kernels alone
    (root / f"lowered_{task.stem}.py").write_text(code)
    pairs.append(
        {
            "task": task.read_text(),
            "plan": "One kernel for all elements.",
            "code": code,
            "verdict": {"verdict": "Verified"},
        }
    )
(root / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
small = root / "small"
(small / "prompts").mkdir(parents=True)
for name, text in (("system", ""), ("task", "{{source}}"), ("repair", "")):
    (small / "prompts" / f"{name}.md").write_text(text)
specials = [x for word in ("<|im_start|>", "<|im_end|>", "<think>", "</think>") for x in ("--special", word)]
ran(
    "tokenize",
    "--train",
    "--vocab",
    1200,
    *specials,
    "-o",
    "small/tokenizer.json",
    *[RELU, "fragment.py", "lowered_relu.py", "lowered_fragment.py"] * 3,
)
vocab = max(json.loads((small / "tokenizer.json").read_text())["model"]["vocab"].values()) + 8
report = json.loads(
    ran("train", "data", "pairs.jsonl", "-o", "data", "-t", "small/tokenizer.json", "--json").stdout
)
assert report["documents"] == 2, report


def trained(name, steps, context):
    """A checkpoint's folder, with tokenizer and prompts."""
    (root / f"{name}.toml").write_text(f"""
[model]
vocab_size = {vocab}
hidden_size = 64
intermediate_size = 128
num_hidden_layers = 2
num_attention_heads = 4
max_position_embeddings = {context}
[data]
train = ["data"]
sequence_length = {report["tokens"]}
global_batch_size = 1
[optimizer]
learning_rate = 0.005
[schedule]
steps = {steps}
warmup_steps = 5
[machine]
precision = "float32"
recompute = false
""")
    ran("train-sft", f"{name}.toml", "--device", "cpu", program=LM)
    model = root / f"training/{name}/checkpoints/step-{steps:08}/model"
    subprocess.run(["cp", "-r", small / "prompts", small / "tokenizer.json", model], check=True)
    return model


learnt = trained("learnt", 120, report["tokens"] + 16)

# Greedily, and drawn: sample 0 is what was learnt, and samples are the same again (without what the store
# knows).
result, _ = optimize(RELU, "--proposers", "model", "--model", learnt)
assert (result["verdict"], result["proposer"], result["plan"]) == (
    "Verified",
    "model",
    "One kernel for all elements.",
), result
assert (
    result["cost"]["completion_tokens"] > 50
    and result["cost"]["prompt_tokens"] > 50
    and result["cost"]["seconds"] > 0
), result["cost"]
assert "Proposed by model" in (root / "out.py").read_text()
again, _ = optimize(RELU, "--proposers", "model", "--model", learnt)
assert again["tried"][0]["remembered"] and again["cost"]["completion_tokens"] == 0, again
drawn = [
    optimize(
        RELU,
        "--proposers",
        "model",
        "--model",
        learnt,
        "--samples",
        3,
        "--every-sample",
        "--no-store",
        "--whole-only",
    )[0]
    for _ in range(2)
]
verdicts = [sorted((t["verdict"], t["reason"], t["plan"]) for t in one["tried"]) for one in drawn]
assert len(verdicts[0]) == 3 and verdicts[0] == verdicts[1], verdicts
print("what was learnt is proposed and verified, the same again")


def answers(model, **request):
    """What `nereid-lm propose` says of one request, by sample."""
    process = subprocess.Popen(
        [LM, "propose", "--model", model, "--device", "cpu"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENV,
        text=True,
    )
    asked = {"id": 0, "messages": [{"role": "user", "content": RELU.read_text()}], "seed": 7, **request}
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    said = {}
    for line in process.stdout:
        line = json.loads(line)
        if "over" in line or "refused" in line:
            break
        if "sample" in line:
            said[line["sample"]] = line
    process.stdin.close()
    process.wait()
    return said or line


# Others go on from the first answer's plan and kernel. What they draw is a function of their beginning and
# their seed: it is the same whether they fork from it while it is written or after it.
forked, later = (
    answers(learnt, samples=list(range(8)), temperature=2, branches=when) for when in ("at_once", "after")
)
assert sorted(forked) == sorted(later) == list(range(8)), (forked, later)
trunk = forked[0]
assert trunk["branch"] == "" and trunk["shared"] == trunk["tokens"] and "@triton.jit" in trunk["text"], trunk
for sample, answer in forked.items():
    assert all(
        answer[key] == later[sample][key] for key in ("text", "branch", "shared", "tokens", "finish")
    ), (
        answer,
        later[sample],
    )
    assert answer["from"] <= answer["seconds"] and later[sample]["from"] >= (
        later[0]["seconds"] if sample else 0
    )
branches = [answer["branch"] for answer in forked.values()]
assert (branches.count("plan"), branches.count("kernel"), branches.count("")) == (2, 1, 5), branches
for answer in forked.values():
    plan = trunk["text"][: trunk["text"].index("</think>")]
    kernel = trunk["text"][: trunk["text"].index("tl.store")]
    assert answer["branch"] == "" or answer["text"].startswith(plan + "</think>"), answer
    assert answer["branch"] != "kernel" or answer["text"].startswith(kernel), answer
assert len({answer["text"] for answer in forked.values()}) > 1, "all are the same"
assert "at_once or after" in answers(learnt, samples=[0, 1], branches="soon")["refused"]

speculative = optimize(
    RELU,
    "--proposers",
    "model",
    "--model",
    learnt,
    "--samples",
    5,
    "--every-sample",
    "--speculate",
    "--whole-only",
    "--no-store",
    "--report",
    "speculative.html",
)[0]
assert len(speculative["tried"]) == 5 and speculative["verdict"] == "Verified", speculative
assert 0 < speculative["first_seconds"] <= speculative["best_seconds"] <= speculative["seconds"], speculative
spans = speculative["timeline"]["spans"]
assert sum(span["label"].endswith("from plan") for span in spans) == 1, spans
assert 0 < speculative["timeline"]["writing"] <= 1 and 0 < speculative["timeline"]["judging"] <= 1, spans
page = (root / "speculative.html").read_text()
assert "Writing and judging" in page and "model sample 0" in page, page
first = optimize(
    RELU, "--proposers", "model", "--model", learnt, "--samples", 5, "--speculate", "--first", "--no-store"
)[0]
assert first["verdict"] == "Verified" and len(first["tried"]) < 5, first
print("branches go on from a plan and a kernel, whenever they begin")

# Where its folder says how an answer begins it continues from there, with the steps where it says so.
begun = root / "begun"
shutil.copytree(learnt, begun)
(begun / "prompts" / "prefill.md").write_text("<think>\nOne kernel for\n")
shorter, _ = optimize(RELU, "--proposers", "model", "--model", begun)
assert (shorter["verdict"], shorter["plan"]) == ("Verified", "One kernel for all elements."), shorter
assert 0 < shorter["cost"]["completion_tokens"] < result["cost"]["completion_tokens"], (
    shorter["cost"],
    result["cost"],
)
assert shorter["cost"]["prompt_tokens"] > result["cost"]["prompt_tokens"], (shorter["cost"], result["cost"])
# Sample 1 begins otherwise, and is greedy; sample 2 has no beginning of its own, and is drawn.
(begun / "prompts" / "prefill-1.md").write_text("<think>\nA kernel for all\n")
several = [
    optimize(
        RELU,
        "--proposers",
        "model",
        "--model",
        begun,
        "--samples",
        3,
        "--every-sample",
        "--no-store",
        "--whole-only",
        "--seed",
        seed,
    )[0]["tried"]
    for seed in (0, 1)
]
plans = [sorted(t["plan"] for t in tried if t["proposer"] == "model") for tried in several]
assert all(len(of) == 3 and "One kernel for all elements." in of for of in plans), plans
otherwise = [[plan for plan in of if plan.startswith("A kernel for all")] for of in plans]
assert len(otherwise[0]) == 1 and otherwise[0] == otherwise[1], plans
(begun / "prompts" / "prefill-1.md").unlink()
(begun / "prompts" / "prefill.md").write_text("{{steps}}\n</think>")
prefilled = optimize(RELU, "--proposers", "compiler,model", "--model", begun, "--whole-only")[0]["tried"]
assert any(
    t["proposer"] == "model" and re.match(r"given x \[.*\]\n#1 relu\(x\) \[.*\]\nreturns #1$", t["plan"])
    for t in prefilled
), prefilled
(begun / "prompts" / "prefill.md").write_text("{{what}}")
assert (
    "prefill.md:1: unknown placeholder '{{what}}'"
    in optimize(RELU, "--proposers", "model", "--model", begun, code=2)[1]
)
print("answers begin as their folder says")

# A fragment's answer stands in place of the fragment.
result, errors = optimize("mixed.py", "--proposers", "model", "--model", learnt, "--policy", "hybrid")
assert (result["verdict"], result["proposer"]) == ("Verified", "subgraphs") and "model" in result["plan"], (
    result,
    errors,
)
text = (root / "out.py").read_text()
assert "torch.ops.aten.sort" in text and "subgraph_1_ModelNew" in text, text
print("a fragment is the model's, the rest PyTorch's")

# One that knows nothing, and never ends: greedily it repeats itself, which is stopped, and drawn it
# does not.
garbage = trained("garbage", 6, 100_000)
result, errors = optimize(
    RELU,
    "--proposers",
    "compiler,model",
    "--model",
    trained("short", 6, report["tokens"] + 16),
    "--samples",
    2,
    "--whole-only",
)
assert (result["verdict"], result["proposer"]) == ("Verified", "compiler"), result
assert [t["verdict"] for t in result["tried"] if t["proposer"] == "model"] == ["Malformed"] * 2, result[
    "tried"
]
assert errors.count("model: Malformed") == 2, errors


for folder, code, what in (
    (root / "nowhere", 2, "config.json is not there"),
    (REPOSITORY / "tests/tasks", 2, "config.json is not there"),
):
    assert (
        what
        in ran("optimize", RELU, "-o", "out.py", "--proposers", "model", "--model", folder, code=code).stderr
    )
broken = root / "broken"
subprocess.run(["cp", "-r", learnt, broken], check=True)
(broken / "model.safetensors").write_bytes(b"no weights")
why = ran(
    "optimize", RELU, "-o", "out.py", "--proposers", "model", "--model", broken, "--no-store", code=2
).stderr
assert "model.safetensors" in why, why

# Many tasks, side by side.
for level, names in (("level1", ("relu", "gelu")), ("level2", ("mlp",))):
    (root / "suite" / level).mkdir(parents=True)
    for name in names:
        (root / "suite" / level / f"{name}.py").write_text(
            (REPOSITORY / f"tests/tasks/{name}.py").read_text()
        )
done = ran(
    "eval",
    "suite",
    "-o",
    "results",
    "--proposer",
    "model",
    "--model",
    learnt,
    "--once",
    "--device",
    "cpu",
    "--samples",
    2,
    "--json",
)
result = json.loads(done.stdout)
assert (
    result["folders"]["level1"]["verified"] == 1
    and result["folders"]["level2"]["verified"] == 0
    and result["verified"] == 1
), result
assert result["folders"]["level1"]["pass_at_k"]["2"] == 0.5 and result["errors"] == 0, result["folders"]
print("a suite is found by its folders")

# What is exported holds the weights, rounded; that transformers loads it is decoder_test's.
exported = ran("export", learnt, "-o", "exported", "--dtype", "bfloat16").stderr
assert "parameters in bfloat16" in exported, exported


def tensors_of(path):
    """{name: (type, bytes)} of a .safetensors file: numpy has no bfloat16."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    places = {name: [start + at for at in tensor["data_offsets"]] for name, tensor in header.items()}
    return {name: (header[name]["dtype"], content[slice(*place)]) for name, place in places.items()}


def rounded(content):
    """Of float32 numbers the nearest in bfloat16, the even one of two."""
    bits = numpy.frombuffer(content, numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16).tobytes()


original, kept = (tensors_of(folder / "model.safetensors") for folder in (learnt, root / "exported"))
assert len(original) > 10 and kept == {
    name: ("BF16", rounded(content)) for name, (_, content) in original.items()
}
assert json.loads((root / "exported/config.json").read_text())["torch_dtype"] == "bfloat16"
assert (root / "exported/tokenizer.json").read_bytes() == (small / "tokenizer.json").read_bytes() and (
    root / "exported/prompts/task.md"
).exists()
print("exported")


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def model_process(pid):
    for _ in range(20000):
        for child in children(pid):
            if b"nereid-lm" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0]:
                return child
        time.sleep(0.01)
    raise AssertionError("no nereid-lm")


def is_there(pid):
    try:
        return "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def at_work(pid):
    """Waits until a model's process has computed for longer than it takes to load: the task is traced, the
    model asked."""
    for _ in range(30000):
        spent = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        if sum(map(int, spent)) > 0.8 * os.sysconf("SC_CLK_TCK"):
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} does nothing")


def started(errors=subprocess.PIPE):
    process = subprocess.Popen(
        [
            NEREID,
            "optimize",
            RELU,
            "-o",
            "nothing.py",
            "--device",
            "cpu",
            "--proposers",
            "model",
            "--model",
            garbage,
            "--samples",
            "200",
            "--every-sample",
        ],
        cwd=root,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
    child = model_process(process.pid)
    at_work(child)
    return process, child


process, child = started()
os.kill(child, signal.SIGKILL)
out, errors = process.communicate(timeout=1200)
assert (
    process.returncode == 3
    and "nereid-lm) was killed by signal 9" in errors
    and not (root / "nothing.py").exists()
), (process.returncode, out, errors)

# Where there is another proposer the search continues without it, and names the one that is lost.
process = subprocess.Popen(
    [
        NEREID,
        "optimize",
        RELU,
        "-o",
        "other.py",
        "--device",
        "cpu",
        "--proposers",
        "compiler,model",
        "--model",
        garbage,
        "--samples",
        "200",
        "--every-sample",
        "--no-store",
        "--json",
    ],
    cwd=root,
    env=ENV,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
)
child = model_process(process.pid)
at_work(child)
os.kill(child, signal.SIGKILL)
out, errors = process.communicate(timeout=1200)
result = json.loads(out)
assert (
    process.returncode == 0
    and (result["verdict"], result["proposer"]) == ("Verified", "compiler")
    and (root / "other.py").exists()
), (process.returncode, out, errors)
assert "nereid-lm) was killed by signal 9" in errors and {
    t["verdict"] for t in result["tried"] if t["proposer"] == "model"
} <= {"Malformed"}, (out, errors)


def drained(terminal):
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:  # no writer is left
        pass


# A terminal shows how much is written, and how fast.
mine, its = pty.openpty()
process, child = started(its)
os.close(its)
shown = ""
while not re.search(r"asking model; model: [1-9]\d* tokens, [1-9]\d* a second", shown):
    shown += os.read(mine, 1 << 16).decode()
threading.Thread(target=drained, args=(mine,), daemon=True).start()
begin = time.time()
process.send_signal(signal.SIGINT)
process.communicate(timeout=1200)
seconds = time.time() - begin
assert process.returncode == 130 and seconds < 100 and not is_there(child), (
    process.returncode,
    seconds,
)  # a second, and what a busy machine adds; its 200 answers take minutes

process, child = started()
process.kill()
process.communicate()
for _ in range(20000):
    if not is_there(child):
        break
    time.sleep(0.01)
assert not is_there(child), "it outlives its parent"
print(f"a killed process is an error of ours; Ctrl-C took {seconds:.2f} s")
