"""`nereid generate --complete-sizes`, and the same by generation_config.json: the sizes of a step are
computed.

complete_sizes_test.py NEREID MODEL
"""

import json
import pathlib
import subprocess
import sys
import tempfile

nereid, model = sys.argv[1], pathlib.Path(sys.argv[2])
TASK = (pathlib.Path(__file__).parent / "tasks" / "softmax.py").read_text()
# Sizes that no model reads off the task: they are those of the given line.
BEGUN = "<think>\ngiven x [7, 9], y [9, 5]\n#1 mm(x, y"


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


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for file in model.iterdir():
        if file.suffix != ".xz":
            (folder / file.name).symlink_to(file.resolve())
    config = folder / "generation_config.json"
    usual = json.loads(config.read_text()) if config.exists() else {}
    config.unlink(missing_ok=True)
    config.write_text(json.dumps(usual))
    alone = answer(folder)
    completed = answer(folder, "--complete-sizes")
    assert completed["text"].startswith(") [7, 5]\n"), completed["text"]
    assert not alone["text"].startswith(") [7, 5]\n"), alone["text"]
    # Tokens that are completed count, and are not drawn.
    assert len(completed["tokens"]) == len(completed["logprobs"]) == 40
    assert completed["logprobs"].count(0) > alone["logprobs"].count(0)

    config.write_text(json.dumps(usual | {"complete_sizes": True}))
    assert answer(folder)["text"] == completed["text"]
    assert answer(folder, "--no-complete-sizes")["text"] == alone["text"]
    config.write_text(json.dumps(usual | {"complete_sizes": 1}))
    done = subprocess.run(
        [nereid, "generate", "--model", folder, "--prompt", "x"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "complete_sizes" in done.stderr, done
print("sizes are completed as asked")
