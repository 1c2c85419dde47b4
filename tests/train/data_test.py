"""`nereid train data`: what shards hold is the lines' text, whatever the threads and however often it was
killed; and a run on them."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from shards import read_shard

NEREID = os.path.abspath(sys.argv[1])
PROMPTS = pathlib.Path(__file__).parents[2] / "python/nereid/prompts"
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)


def nereid(*arguments, code=0, **more):
    done = subprocess.run([NEREID, *map(str, arguments)], capture_output=True, text=True, **more)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


# A vocabulary with the marks of a conversation, learnt from this very folder.
corpus = sorted(pathlib.Path(__file__).parent.glob("*.py"))
specials = [x for word in ("<|endoftext|>", "<|im_start|>", "<|im_end|>") for x in ("--special", word)]
nereid("tokenize", "--train", "--vocab", 700, *specials, "-o", root / "tokenizer.json", *corpus)
tokenizer = Tokenizer.from_file(str(root / "tokenizer.json"))

draw = random.Random(1)
words = [w for w in corpus[0].read_text().split() if "<|" not in w and "```" not in w]


def text(n):
    return " ".join(draw.choice(words) for _ in range(draw.randrange(1, n)))


lines, expected = [], []
task_prompt = (PROMPTS / "task.md").read_text()
system = (PROMPTS / "system.md").read_text()
for i in range(1500):
    if i % 7 == 3:
        line = {
            "messages": [{"role": "user", "content": text(20)}, {"role": "assistant", "content": text(20)}]
        }
        prompt = f"<|im_start|>user\n{line['messages'][0]['content']}<|im_end|>\n<|im_start|>assistant\n"
        answer = line["messages"][1]["content"] + "<|im_end|>"
    elif i % 7 == 5:
        line = {"prompt": text(9), "answer": text(40)}
        prompt, answer = line["prompt"], line["answer"]
    else:
        line = {
            "id": f"L1-s0-{i}",
            "task": text(60),
            "plan": text(30),
            "code": "import triton\n" + text(200) + "\n",
            "verdict": {"verdict": "Verified" if i % 7 else "Mismatch"},
        }
        asked = task_prompt.replace("{{name}}", "model.py").replace("{{source}}", line["task"])
        turns = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{asked}<|im_end|>\n"
        prompt = turns + "<|im_start|>assistant\n"
        answer = f"<think>\n{line['plan']}\n</think>\n\n```python\n{line['code'].rstrip()}\n```<|im_end|>"
    line["split"] = "held-out" if i % 10 == 0 else "train"
    lines.append(line)
    if line["split"] == "train" and line.get("verdict", {}).get("verdict") != "Mismatch":
        expected.append((prompt, answer))
first, second = lines[:900], lines[900:]
for name, part in (("a.jsonl", first), ("b.jsonl", second)):
    (root / name).write_text("".join(json.dumps(line) + "\n" for line in part))


def data(folder, *more, code=0, inputs=("a.jsonl", "b.jsonl"), split="train"):
    return nereid(
        "train",
        "data",
        *inputs,
        "-o",
        folder,
        "-t",
        "tokenizer.json",
        "--split",
        split,
        "--shard-tokens",
        60000,
        "--json",
        *more,
        code=code,
        cwd=root,
    )


def content(folder):
    return {p.name: p.read_bytes() for p in (root / folder).iterdir()}


report = json.loads(data("train").stdout)
documents = [d for shard in sorted((root / "train").glob("*.tokens")) for d in read_shard(shard)]
assert len(documents) == len(expected) == report["documents"], (len(documents), len(expected), report)
for (ids, answers), (prompt, answer) in zip(documents, expected):
    ((begin, end),) = answers
    assert end == len(ids)
    assert ids[:begin] == tokenizer.encode(prompt).ids, prompt
    assert ids[begin:] == tokenizer.encode(answer).ids, answer
assert report["left_out"]["is of another split"] == 150 and report["left_out"]["is not Verified"] > 0, report
assert report["shards"] > 1 and report["tokens"] == sum(len(ids) for ids, _ in documents)

# Conversations are written by the template of the tokenizer's folder, as they are asked later.
other = root / "chatml"
other.mkdir()
shutil.copy(root / "tokenizer.json", other)
chatml = "{{ '<|im_start|>system\nYou are Tiny<|im_end|>\n' }}{{ '<|im_start|>' + message['role'] }}"
(other / "tokenizer_config.json").write_text(json.dumps({"chat_template": chatml}))
(root / "chat.jsonl").write_text(
    json.dumps({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]})
)
for folder, usual in (("chatml", "<|im_start|>system\nYou are Tiny<|im_end|>\n"), (".", "")):
    nereid("train", "data", "chat.jsonl", "-o", f"chat-{folder}", "-t", f"{folder}/tokenizer.json", cwd=root)
    ids, ((begin, end),) = read_shard(root / f"chat-{folder}/00000.tokens")[0]
    asked = tokenizer.encode(f"{usual}<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n").ids
    assert ids == asked + tokenizer.encode("Ho<|im_end|>").ids and begin == len(asked), (folder, ids)

# Threads, a second time, other options.
data("one_thread", "--threads", 1)
assert content("one_thread") == content("train")
assert json.loads(data("train").stdout)["resumed_shards"] == report["shards"]
assert content("one_thread") == content("train")
done = data("train", "--longest", 90, code=2)
assert "train: was made with other inputs, options or another tokenizer" in done.stderr, done.stderr
short = json.loads(data("short", "--longest", 90).stdout)
assert short["left_out"]["is too long"] > 100 and short["documents"] > 0, short

# Killed at any moment, it continues to the same shards. Many lines, so that there is something to kill.
(root / "many.jsonl").write_text("".join(json.dumps(draw.choice(lines)) + "\n" for _ in range(30000)))
big = [
    "train",
    "data",
    "many.jsonl",
    "-o",
    "killed",
    "-t",
    "tokenizer.json",
    "--shard-tokens",
    "500000",
    "--json",
]
kills = 0
for attempt in range(60):
    process = subprocess.Popen([NEREID, *big], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        process.wait(timeout=0.4 + 0.2 * draw.random() if attempt < 5 else 300)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT if attempt == 2 else signal.SIGKILL)
        process.wait()
    if process.returncode == 0:
        break
    assert process.returncode == (130 if attempt == 2 else -9), (process.returncode, process.stderr.read())
    kills += 1
assert process.returncode == 0
(root / "killed/tokens.json.0123456789abcdef.tmp").write_text(
    "{"
)  # as one has it that was killed while it wrote this
nereid(*big, cwd=root)
big[big.index("killed")] = "at_once"
nereid(*big, cwd=root)
assert content("killed") == content("at_once")

# Bad input.
(root / "bad.jsonl").write_text(json.dumps(lines[0]) + '\n\n{"task": 3}\n')
assert (
    "bad.jsonl:3.task: expected"
    in nereid("train", "data", "bad.jsonl", "-o", "bad", "-t", "tokenizer.json", cwd=root, code=2).stderr
)
(root / "bad.jsonl").write_text(json.dumps(lines[0]) + "\nnonsense\n")
assert (
    "bad.jsonl:2"
    in nereid("train", "data", "bad.jsonl", "-o", "bad", "-t", "tokenizer.json", cwd=root, code=2).stderr
)
assert (
    "none.jsonl: No such file"
    in nereid("train", "data", "none.jsonl", "-o", "bad", "-t", "tokenizer.json", cwd=root, code=2).stderr
)

# And a few steps on what was made, by the command that users call.
data("held_out", split="held-out")
(root / "tiny.toml").write_text(f"""
held_out_every = 2
[model]
vocab_size = {tokenizer.get_vocab_size()}
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 2
num_attention_heads = 4
tokenizer = "tokenizer.json"
[data]
train = ["train"]
held_out = ["held_out"]
sequence_length = 2048
global_batch_size = 2
[schedule]
steps = 4
[machine]
precision = "float32"
""")
ran = nereid(
    "train",
    "sft",
    "tiny.toml",
    "--device",
    "cpu",
    "--json",
    cwd=root,
    env={**os.environ, "OMP_NUM_THREADS": "1"},
)
steps = [json.loads(line) for line in ran.stdout.splitlines()]
assert [s["step"] for s in steps] == [0, 1, 2, 3] and steps[-1]["held_out_loss"] < steps[0]["loss"], steps
model = root / "training/tiny/checkpoints/step-00000004/model"
assert "held out" in ran.stderr and str(model.relative_to(root)) in ran.stderr, ran.stderr
# Its checkpoint answers as it is; a run that continues from it keeps the tokenizer; one of another tokenizer
# is refused.
assert (model / "tokenizer.json").read_bytes() == (root / "tokenizer.json").read_bytes()
nereid(
    "generate", "--model", model, "--chat", "--prompt", "x", "--max-tokens", 3, "--device", "cpu", cwd=root
)
tiny = (root / "tiny.toml").read_text()
(root / "further.toml").write_text(
    re.sub(r"\[model\].*?\[data\]", f'[model]\nstart_from = "{model}"\n[data]', tiny, flags=re.S).replace(
        "steps = 4", "steps = 1"
    )
)
nereid(
    "train", "sft", "further.toml", "--device", "cpu", cwd=root, env={**os.environ, "OMP_NUM_THREADS": "1"}
)
assert (root / "training/further/checkpoints/step-00000001/model/tokenizer.json").exists()
(root / "other.json").write_text((root / "tokenizer.json").read_text() + " ")
(root / "wrong.toml").write_text(tiny.replace('"tokenizer.json"', '"other.json"'))
assert (
    "wrong.toml: model.tokenizer: expected what the data was made with"
    in nereid("train", "sft", "wrong.toml", "--device", "cpu", cwd=root, code=2).stderr
)
assert "tiny" in nereid("runs", cwd=root).stdout
print(f"shards hold what the lines say; killed {kills} times")
