"""`nereid generate --complete-sizes`, and the same by generation_config.json and `nereid serve-model`: the
sizes of a step are computed, and are those of the trace.

complete_sizes_test.py NEREID MODEL PLAN_SIZES_CHECK
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import urllib.request

nereid, model = sys.argv[1], pathlib.Path(sys.argv[2])
TASK = (pathlib.Path(__file__).parent / "tasks" / "softmax.py").read_text()
# Sizes that no model reads off the task, and a sum that a small one does not make.
BEGUN = "<think>\ngiven x [3, 517], y [3, 394]\n#1 cat([x, y], 1"


def answer(folder, *options):
    prompts = folder / "prompts.jsonl"
    prompts.write_text(json.dumps({"messages": [{"role": "user", "content": TASK}], "prefill": BEGUN}) + "\n")
    done = subprocess.run(
        [nereid, "generate", "--model", folder, "--prompts", prompts, "--temperature", "0", "--json"]
        + ["--max-tokens", "40", "--device", "cpu", *options],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def served(folder):
    """What `nereid serve-model` continues with, whole and as a stream of pieces, and the number of tokens."""
    words = [nereid, "serve-model", "--model", folder, "--port", "0", "--device", "cpu", "--sequences", "4"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip()
    conversation = [{"role": "user", "content": TASK}, {"role": "assistant", "content": BEGUN}]
    body = {"messages": conversation, "continue_final_message": True, "temperature": 0, "max_tokens": 40}
    texts = []
    for stream in (False, True):
        request = urllib.request.Request(
            f"{address}/chat/completions", json.dumps(body | {"stream": stream, "n": 2}).encode()
        )
        with urllib.request.urlopen(request, timeout=100) as response:
            texts.append(response.read().decode())
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0
    whole = json.loads(texts[0])
    events = [json.loads(line[6:]) for line in texts[1].split("\n\n") if line and line != "data: [DONE]"]
    pieces = [
        "".join(choice["delta"].get("content", "") for event in events for choice in event["choices"]
                if choice["index"] == index)
        for index in (0, 1)
    ]  # fmt: skip
    contents = [choice["message"]["content"] for choice in whole["choices"]]
    assert pieces == contents and contents[0] == contents[1], (pieces, contents)
    return contents[0], whole["usage"]["completion_tokens"]


def sizes_are_those_of_traces(folder):
    """Plans of sampled programs, whose sizes are the trace's: what is completed is what is written there."""
    programs = folder / "programs.jsonl"
    words = "synth --forward --operators 5 --count 60 --seed 7 --json -o".split()
    subprocess.run([nereid, *words, programs], check=True, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in programs.read_text().splitlines()]
    plans = [{"task": row["code"], "plan": row["forward"]} for row in rows if row["forward"]]
    assert len(plans) > 40 and all(row["plan"].startswith("given ") for row in plans), len(plans)
    # One size that is not the trace's is found.
    wrong = {"task": "x = 1", "plan": "given x [7, 9]\n#1 relu(x) [7, 8]\nreturns #1\n"}
    for more, expected in (([], 0), ([wrong], 1)):
        (folder / "plans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in plans + more))
        done = subprocess.run([sys.argv[3], folder / "plans.jsonl"], capture_output=True, text=True)
        counts = json.loads(done.stdout)
        assert counts["wrong"] == done.returncode == expected, done.stdout
    assert counts["completed"] > 0.9 * counts["steps"], counts


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for file in model.iterdir():
        if file.suffix != ".xz":
            (folder / file.name).symlink_to(file.resolve())
    config = folder / "generation_config.json"
    usual = json.loads(config.read_text()) if config.exists() else {}
    usual.pop("complete_sizes", None)
    config.unlink(missing_ok=True)
    config.write_text(json.dumps(usual))
    alone = answer(folder)
    completed = answer(folder, "--complete-sizes")
    assert completed["text"].startswith(") [3, 911]\n"), completed["text"]
    assert not alone["text"].startswith(") [3, 911]\n"), alone["text"]
    # Tokens that are completed count, and are not drawn.
    assert len(completed["tokens"]) == len(completed["logprobs"]) == 40
    assert completed["logprobs"].count(0) > alone["logprobs"].count(0)

    config.write_text(json.dumps(usual | {"complete_sizes": True}))
    assert answer(folder)["text"] == completed["text"]
    assert answer(folder, "--no-complete-sizes")["text"] == alone["text"]
    text, tokens = served(folder)
    assert text == completed["text"] and tokens == 80, (text, tokens)
    sizes_are_those_of_traces(folder)
    config.write_text(json.dumps(usual | {"complete_sizes": 1}))
    done = subprocess.run(
        [nereid, "generate", "--model", folder, "--prompt", "x"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "complete_sizes" in done.stderr, done
print("sizes are completed as asked")
