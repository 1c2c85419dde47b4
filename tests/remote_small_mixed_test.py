"""bench/remote/small_mixed and bench/remote/bars with a `nereid` that pretends: pairs of all kinds, deeper
models that are trained in rounds on more and more of them, rounded, packed and evaluated; the tools in
between are real.

tests/remote_small_mixed_test.py
"""

import json
import lzma
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
TASK = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, NUMBER)

    def forward(self, x):
        return torch.relu(self.fc(x))


def get_inputs():
    return [torch.randn(6, 8)]


def get_init_inputs():
    return []
"""
PRETENDER = (
    "TASK = "
    + repr(TASK)
    + r"""
import json, os, pathlib, shutil, sys, time
words = sys.argv[1:]
asked = dict(zip(words, words[1:]))
with open(os.path.join(os.environ["REMOTE"], "asked.jsonl"), "a") as log:
    log.write(json.dumps(words) + "\n")
lines = lambda path: [json.loads(line) for line in open(path)]
write = lambda path, rows: pathlib.Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
PLAN = "given x [6, 8]\n#1 linear(x) [6, 9]\nreturns #1"
pair = lambda code: {"task": code, "plan": PLAN, "code": "# new", "split": "train"}
if words[0] == "synth":
    count = min(int(asked["--count"]), 4)
    first = 10 + int(asked.get("--seed", 0)) % 1000 * 10 + int(asked["--operators"])
    codes = [TASK.replace("NUMBER", str(first + i)) for i in range(count)]
    plain = lambda code: {"code": code, "forward": PLAN + "\n"}
    write(asked["-o"], [(pair if "--pairs" in words else plain)(code) for code in codes])
elif words[:2] == ["train", "pairs"]:
    rows = lines(words[2])
    write(asked["-o"], [pair(row["code"]) for row in rows])
    print(json.dumps({"tasks": len(rows), "not_lowered": 0, "verdicts": {"Verified": len(rows)}}))
elif words[:2] == ["train", "data"]:
    folder = pathlib.Path(asked["-o"])
    folder.mkdir(parents=True)
    files = words[2 : words.index("-o")]
    (folder / "tokens.json").write_text(json.dumps({"pairs": sum(len(lines(file)) for file in files)}))
elif words[:2] == ["train", "sft"]:
    run = dict(line.split(" = ", 1) for line in open(words[2]).read().splitlines() if " = " in line)
    start = json.loads(run["start_from"])
    assert pathlib.Path(json.loads(run["train"])[0], "tokens.json").exists(), run
    assert float(run["seconds"]) >= 1, run
    out = pathlib.Path("training", pathlib.Path(words[2]).stem)
    shutil.copytree(start, out / "checkpoints/step-00000002/model")
    (out / "metrics.jsonl").write_text(json.dumps({"loss": 1}) + "\n")
elif words[0] == "export":
    shutil.copytree(words[1], asked["-o"])
elif words[0] == "tokenize":
    for text in open(words[-1]).read().split("\0")[:-1]:
        print(json.dumps({"tokens": 10}))
elif words[0] == "trace":
    print(PLAN)
elif words[0] == "generate":
    for i, row in enumerate(lines(asked["--prompts"])):
        said = {"text": "answer", "tokens": [1], "finish_reason": "end"}
        print(json.dumps({"index": i, "sample": 0} | said))
elif words[0] == "verify":
    rows = lines(asked["--batch"])
    verdict = lambda row: "Verified" if "given x" in row["candidate_source"] else "Mismatch"
    said = [{"id": row["id"], "verdict": verdict(row), "reason": "", "feedback": ""} for row in rows]
    write(asked["-o"], said)
elif words[0] == "eval":
    out = pathlib.Path(asked["-o"])
    out.mkdir(parents=True)
    names = sorted(pathlib.Path(words[1]).glob("*.py"))
    verdict = lambda i: "Verified" if i % 4 else "Mismatch"
    rows = [{"id": name.stem, "verdict": verdict(i)} for i, name in enumerate(names[1:])]
    write(out / "results.jsonl", [{"question": "so"}] + rows)
else:
    sys.exit(f"the pretender does not know {words}")
"""
)


def checkpoint(folder):
    """Two layers with names as a Qwen 3 has them, in bfloat16."""
    (folder / "prompts").mkdir(parents=True)
    names = [
        "model.embed_tokens",
        *(
            f"model.layers.{i}.{part}"
            for i in range(2)
            for part in ("self_attn.o_proj", "mlp.down_proj", "mlp.up_proj")
        ),
    ]
    data = b"".join(struct.pack("<H", 0x3F80 + i % 128) for i in range(16))
    header = {
        f"{name}.weight": {"dtype": "BF16", "shape": [4, 4], "data_offsets": [32 * i, 32 * i + 32]}
        for i, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data * len(names))
    (folder / "config.json").write_text('{"num_hidden_layers": 2, "max_position_embeddings": 8192}')
    (folder / "generation_config.json").write_text('{\n  "eos_token_id": 2\n}\n')
    (folder / "tokenizer.json").write_text(
        json.dumps(
            {"model": {"vocab": {word: i for i, word in enumerate(["alder", "birch", "cedar", "maple"])}}}
        )
    )
    (folder / "prompts/task.md").write_text("{{source}}")
    (folder / "prompts/system.md").write_text("")
    (folder / "prompts/prefill.md").write_text("<think>\n{{calls}}\n")


class RemoteRuns(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(self.end)
        self.root, self.checkout = pathlib.Path(scratch.name), pathlib.Path(scratch.name) / "checkout"
        ignored = shutil.ignore_patterns("results", "__pycache__")
        for name in ("bench/remote", "bench/small_model", "runs"):
            shutil.copytree(ROOT / name, self.checkout / name, ignore=ignored)
        (self.checkout / "tools").mkdir()
        for name in ("weights", "quantise"):
            shutil.copy(ROOT / "tools" / name, self.checkout / "tools")
        checkpoint(self.checkout / "models/small")
        tests = self.checkout / "tests/tasks"
        tests.mkdir(parents=True)
        (tests / "one.py").write_text(TASK.replace("NUMBER", "7"))
        harvest = self.root / "harvest"
        harvest.mkdir()
        rows = [
            {
                "id": f"h{i}",
                "code": TASK.replace("NUMBER", str(900 + i)),
                "structure": f"s{i % 7}",
                "split": "train",
            }
            for i in range(9)
        ]
        (harvest / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (harvest / "held_out.jsonl").write_text(json.dumps(rows[3] | {"split": "held-out"}) + "\n")
        site = self.root / "site/nereid/bin"
        site.mkdir(parents=True)
        (site.parent / "prompts").mkdir()
        (site.parent / "prompts/repair.md").write_text("Wrong: {{evidence}}")
        (site / "nereid").write_text(f"#!{sys.executable}\n{PRETENDER}")
        (site / "nereid").chmod(0o755)
        (self.checkout / "carry").mkdir()
        for name, source in (("site", self.root / "site"), ("harvest", harvest)):
            with tarfile.open(self.checkout / f"carry/{name}.tar.xz", "w:xz") as tar:
                tar.add(source, arcname="." if name == "site" else "harvest")
        extra = {"task": TASK, "plan": "given x [6, 8]", "code": "# carried", "split": "train"}
        with lzma.open(self.checkout / "carry/extra-1.jsonl.xz", "wt") as out:
            out.write(json.dumps(extra) + "\n")
        (self.root / "stand-in/torch").mkdir(parents=True)
        (self.root / "stand-in/torch/__init__.py").write_text("")

    def end(self):
        own = f"REMOTE={self.root / 'remote'}".encode()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if own in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                pass

    def call(self, chain, **settings):
        environment = {
            **os.environ,
            "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.root / "stand-in"),
            "REMOTE": str(self.root / "remote"),
            "OUT": str(self.root / "out"),
            "DEVICE": "cpu",
            "JOBS": "2",
            "UNTIL": "280",
            **settings,
        }
        said = self.root / "said.txt"
        with said.open("w") as out:  # what continues there holds a pipe
            code = subprocess.run(
                ["bash", "bench/remote/call", chain],
                cwd=self.checkout,
                env=environment,
                stdout=out,
                stderr=out,
                timeout=300,
            ).returncode
        self.assertEqual(code, 0, said.read_text())
        with tarfile.open(self.root / "out/notes.tgz") as tar:
            tar.extractall(self.root / "home", filter="data")
        return said.read_text(), self.root / "home/home"

    def test_a_model_is_made_and_evaluated(self):
        said, home = self.call(
            "small_mixed", CUDA_VISIBLE_DEVICES="0,1", TOTAL="200", EVALUATION="60", SEARCH="1",
            SEARCH_TASKS="1", TASKS="2", TYPED="0",
            DATA_SECONDS="20", ROUNDS="2", LAYERS="3", TRAIN_SECONDS="80", REPAIRS="3", EACH="3",
            SHARES_OF="30 25 0 15 15 15",
        )  # fmt: skip
        self.assertIn("ended, 0", said)
        remote = self.root / "remote"
        asked = [json.loads(line) for line in (remote / "asked.jsonl").read_text().splitlines()]
        # Each round learns from its own pairs and from those of the rounds before; the second has all kinds.
        counts = [
            json.loads((remote / f"tree/data/mixed/train-{i}/tokens.json").read_text())["pairs"]
            for i in (1, 2)
        ]
        self.assertGreater(counts[1], 4)
        for i, folders in ((1, ["1"]), (2, ["1", "1-repairs", "2"])):
            text = (remote / f"tree/runs/mixed-{i}.toml").read_text()
            learnt = ", ".join(f'"data/mixed/train-{name}"' for name in folders)
            self.assertIn(f"\ntrain = [{learnt}]\n", text)
        # All but programs are there three times: as they are, and twice with other names.
        pairs = [json.loads(line) for line in (remote / "mixed/round-1.jsonl").read_text().splitlines()]
        others = (remote / "mixed/others-1.jsonl").read_text().splitlines()
        self.assertEqual(len(pairs), counts[0])
        programs = sum(
            len(path.read_text().splitlines()) for path in (remote / "mixed/pairs").glob("programs*-1.jsonl")
        )
        self.assertEqual(len(pairs), programs + 3 * len(others))
        self.assertTrue(any(pair["code"] == "# carried" for pair in pairs))
        self.assertTrue(any("self.fc" not in pair["task"] for pair in pairs))
        kinds = {path.name.rsplit("-", 1)[0] for path in (remote / "mixed/pairs").glob("*.jsonl")}
        for kind in ("programs5large", "harvested", "reshaped.jsonl", "joined.jsonl", "renamed.jsonl"):
            self.assertTrue(any(kind.split(".")[0] in each for each in kinds), (kind, kinds))
        # The model's own failures, with the evidence, in the second round.
        path = remote / "mixed/repairs.jsonl"
        repairs = [json.loads(line)["messages"][2]["content"] for line in path.read_text().splitlines()]
        self.assertTrue(repairs and all(text.startswith("Wrong: ") for text in repairs), repairs)
        # A task with the structure of a held-out one is not learnt from: 9 tasks of 7 structures, one of them
        # held out.
        learnt = (remote / "mixed/tasks/harvested.jsonl").read_text().splitlines()
        self.assertEqual(len(learnt), 8)
        self.assertEqual(len(list((remote / "mixed/harvested-packages").glob("*.py"))), 1)
        runs = [words for words in asked if words[:2] == ["train", "sft"]]
        self.assertEqual([words[2] for words in runs], ["runs/mixed-1.toml", "runs/mixed-2.toml"])
        self.assertTrue(all(words[-2:] == ["--ranks", "2"] for words in runs), runs)
        second = (remote / "tree/runs/mixed-2.toml").read_text()
        self.assertIn('start_from = "training/mixed-1/checkpoints/step-00000002/model"', second)
        self.assertIn("final_share = 0\n", second)
        # The model: three layers, rounded, with the sizes of what is given in its prompts, packed.
        self.assertEqual(json.loads((remote / "v12/config.json").read_text())["num_hidden_layers"], 3)
        self.assertTrue(json.loads((remote / "v12/generation_config.json").read_text())["complete_sizes"])
        self.assertEqual((remote / "v12/prompts/prefill.md").read_text(), "<think>\n{{steps}}\n")
        self.assertEqual(json.loads((home / "quantised.txt").read_text())["bits"], 4)
        self.assertEqual(
            (remote / "home/large/weights.xz.0").read_bytes(), (remote / "v12/weights.xz").read_bytes()
        )
        # Evaluated behind the trace summary, which the pretender answers rightly, and from text, which it
        # does not.
        for name, share in (
            ("traced", 1),
            ("tests", 1),
            ("packages", 1),
            ("text", 0),
            ("tests-text", 0),
            ("packages-text", 0),
        ):
            rows = [
                json.loads(line)
                for line in (home / f"evaluated/{name}/results.jsonl").read_text().splitlines()
            ]
            self.assertTrue(
                rows and all((row["verdict"] == "Verified") == bool(share) for row in rows), (name, rows)
            )
        self.assertTrue(list(home.glob("searched-*.txt")), said)
        for line in (home / "counts.jsonl").read_text().splitlines():
            self.assertIn("verdicts", json.loads(line))

    def test_bars_of_the_shipped_model(self):
        said, home = self.call("bars", CUDA_VISIBLE_DEVICES="0,1", TASKS="4", TOTAL="60", SEARCH="1")
        self.assertIn("bars: 0", said)
        table = (home / "bars.md").read_text()
        # 12 programs in two parts; the pretender judges all but the first of each, and verifies three of
        # four.
        self.assertIn("2 tasks were not judged in time", table)
        self.assertRegex(table, r"\| 1 operator \| \d of \d \| [\d.]+% \[.*\] \| 99%, (missed|reached) \|")
        judged = sum(
            int(row.split(" of ")[1].split(" ")[0]) for row in table.splitlines() if "operator" in row
        )
        self.assertEqual(judged, 10)


if __name__ == "__main__":
    unittest.main()
