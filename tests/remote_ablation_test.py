"""bench/remote/ablation with a `nereid` that pretends: two runs on a remote machine, of which the first is
cut off in the middle, with nothing between them but what was fetched; and a third with another model.

tests/remote_ablation_test.py
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

import ablation_test

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What else the scripts of runs/ ask for. best/seed-2 waits until it may go on.
PRETENDER = (
    r"""
import json, os, pathlib, sys, time
asked = dict(zip(sys.argv[2::1], sys.argv[3::1]))
if sys.argv[1] == "synth":
    lines = [json.dumps({"code": f"task {i}", "task": "class Model:\n    pass\n", "plan": "", "kernels": []})
             + "\n" for i in range(int(asked["--count"]))]
    pathlib.Path(asked["-o"]).write_text("".join(lines))
    pathlib.Path(asked["-o"].replace(".jsonl", ".coverage.json")).write_text("{}")
    sys.exit(0)
if sys.argv[1:3] == ["train", "data"]:
    folder = pathlib.Path(asked["-o"])
    folder.mkdir(parents=True)
    files = sys.argv[3:sys.argv.index("-o")]
    shards = [sum(1 for line in open(file)) for file in files if file.endswith(".jsonl")]
    tokens = {"tokenizer": pathlib.Path(asked["-t"]).read_text(), "shards": shards}
    folder.joinpath("tokens.json").write_text(json.dumps(tokens))
    sys.exit(0)
if sys.argv[1] == "train" and "best/seed-2" in sys.argv[3]:
    while not pathlib.Path(os.environ["REMOTE"]).with_name("hurry").exists() and os.getppid() != 1:
        time.sleep(0.02)
"""
    + ablation_test.PRETENDER
)


class RemoteRuns(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(lambda: [self.lose(number) for number in (1, 2, 3, 4)])
        self.root, self.checkout = pathlib.Path(scratch.name), pathlib.Path(scratch.name) / "checkout"
        for name in ("bench/remote", "bench/ablation", "bench/small_model", "runs"):
            shutil.copytree(
                ROOT / name,
                self.checkout / name,
                ignore=shutil.ignore_patterns("results", "tasks.tar.xz", "__pycache__"),
            )
        (self.checkout / "models/small").mkdir(parents=True)
        (self.checkout / "models/small/tokenizer.json").write_text("older")
        model = self.checkout / "carry/start"
        (model / "prompts").mkdir(parents=True)
        for name, text in (
            ("config.json", "{}"),
            ("tokenizer.json", "newer"),
            ("prompts/task.md", "Do {{source}}."),
            ("prompts/system.md", ""),
        ):
            (model / name).write_text(text)
        (self.checkout / "carry/commit").write_text("abc1234\n")
        table = (self.checkout / "bench/ablation/arms.toml").read_text()
        arms = [
            arm
            for arm in re.findall(r"^\[\[arms\]\].*?(?=^\[\[|^#)", table, re.M | re.S)
            if re.search('name = "(sft|compiler|best)"', arm)
        ]
        (self.checkout / "bench/ablation/few.toml").write_text(
            table[: table.index("[[arms]]")].replace("seeds = [1, 2, 3]", "seeds = [1, 2]")
            + "".join(arms)
            + '[[comparisons]]\nquestion = "Better?"\npairs = [["best", "sft"]]\n'
        )
        site = self.root / "site/nereid/bin"
        site.mkdir(parents=True)
        (site / "nereid").write_text(f"#!{sys.executable}\n{PRETENDER}")
        (site / "nereid").chmod(0o755)
        with tarfile.open(self.checkout / "carry/site.tar.xz", "w:xz") as tar:
            tar.add(self.root / "site", arcname=".")
        (self.root / "stand-in/torch").mkdir(parents=True)
        (self.root / "stand-in/torch/__init__.py").write_text("")

    def call(self, number, until, **settings):
        environment = {
            **os.environ,
            "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.root / "stand-in"),
            "REMOTE": str(self.remote(number)),
            "OUT": str(self.root / f"out{number}"),
            "UNTIL": str(until),
            "DEVICE": "cpu",
            "MODEL": "carry/start",
            "ARMS": "bench/ablation/few.toml",
            "PROGRAMS": "400",
            "TOTAL": "500",
            "G": "1",
            "EVERY": "0.2",
            **settings,
        }
        said = self.root / "said.txt"
        with said.open("w") as out:  # what runs on there holds a pipe
            code = subprocess.run(
                ["bash", "bench/remote/call", "ablation"],
                cwd=self.checkout,
                env=environment,
                stdout=out,
                stderr=out,
                timeout=1200,
            ).returncode
        self.assertEqual(code, 0, said.read_text())
        home = self.root / f"home{number}"
        with tarfile.open(self.root / f"out{number}/notes.tgz") as tar:
            tar.extractall(home, filter="data")
        return said.read_text(), home / "home"

    def remote(self, number):
        return self.root / f"remote{number}"

    def lose(self, number):
        """The machine goes back: all that runs there ends."""
        own = f"REMOTE={self.remote(number)}".encode()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if own in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.remote(number), ignore_errors=True)

    def units(self, archive):
        with tarfile.open(archive) as tar:
            return {"/".join(name.split("/")[:2]) for name in tar.getnames()}

    def test_a_run_goes_on_with_what_is_left(self):
        for _ in range(60):  # calls, each of which looks in
            said, home = self.call(1, 2)
            kept = (home / "kept.txt").read_text() if (home / "kept.txt").exists() else ""
            if (
                "3 units kept" in kept and (self.root / "out1/ablation-000.tar.gz.00").exists()
            ):  # packed less often
                break
        self.assertNotIn("ended", said)
        self.assertEqual((self.remote(1) / "tree/models/small/tokenizer.json").read_text(), "newer")
        self.assertIn("4 of 4 units in 120 s of 1 GPUs", (home / "plan.txt").read_text())
        self.assertEqual(
            self.units(home / "results/01.tar.xz"), {"sft/seed-1", "compiler/seed-1", "best/seed-1"}
        )
        self.assertTrue((self.root / "out1/ablation-000.tar.gz.00").exists())
        self.lose(1)

        results = self.checkout / "bench/ablation/results"
        results.mkdir()
        shutil.copy(home / "results/01.tar.xz", results)
        (self.root / "hurry").touch()
        said, home = self.call(2, 150)
        self.assertIn("ended, 0", said)
        self.assertIn("4 units, 3 of them are of earlier runs", said)
        self.assertEqual(
            (home / "run-0.txt").read_text(),
            "best/seed-2: trains (0 steps are done)\nbest/seed-2: is evaluated (alone)\n4 of 4 units are"
            " done\n",
        )
        self.assertEqual(self.units(home / "results/02.tar.xz"), {"best/seed-2"})
        report = (home / "report/results.md").read_text()
        self.assertIn("| best/alone |", report)
        self.assertIn("On CPU. Programs of commit abc1234.", report)
        self.assertEqual(
            {
                json.loads(line)["commit"]
                for line in [
                    (self.remote(2) / f"work/ablation/best/seed-{seed}/fingerprint.json").read_text()
                    for seed in (1, 2)
                ]
            },
            {"abc1234"},
        )

        (self.checkout / "carry/start/config.json").write_text('{"another": 1}')
        said, home = self.call(3, 150)
        self.assertIn("ended, 1", said)
        self.assertRegex(
            said,
            r"results of earlier runs were done with something else \(ANEW=1 leaves them out\):"
            r" ablation/sft/seed-1: done with another base model: its weights are \w+, those here \w+\n",
        )
        self.assertNotIn("data: ", said)  # it was reported at once
        # The same model, and other data: reported when these are there.
        (self.checkout / "carry/start/config.json").write_text("{}")
        said, home = self.call(4, 150, SFT_MIX_PAIRS="800")
        self.assertRegex(
            said,
            r"data: 0\n(.*\n)*.*: ablation/best/seed-1: done with tasks or data of another sampler, or of"
            r" another number of programs: data/small/train \(commit abc1234 there, abc1234 here\)\n",
        )
        self.assertFalse(list((home / "results").iterdir()))

        # A machine that is another one, and nothing carried there.
        (self.checkout / "carry/site.tar.xz").unlink()
        refused = subprocess.run(
            ["bash", "bench/remote/call", "ablation"],
            cwd=self.checkout,
            env={**os.environ, "REMOTE": str(self.remote(5)), "OUT": str(self.root / "out5")},
            capture_output=True,
            text=True,
            timeout=1200,
        )
        self.assertEqual(refused.returncode, 2)
        self.assertIn("another machine than before", refused.stderr)
        self.assertFalse(self.remote(5).exists())


if __name__ == "__main__":
    unittest.main()
