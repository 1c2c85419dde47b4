"""bench/ablation: its statistics by hand, its tables and plots, and its slices with a `nereid` that only pretends.

    tests/ablation_test.py
"""
import json
import math
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parents[1] / "bench" / "ablation"
sys.path.insert(0, str(HERE))
from arms import Wrong, read_table  # noqa: E402
from curves import svg, ticks  # noqa: E402
from intervals import difference, interval, mean_of, quantile  # noqa: E402

# Trains a step in 20 ms and keeps a checkpoint each `every_steps`, at the end and when it is interrupted; what came after the last one is cut off.
PRETENDER = r'''
import json, pathlib, random, signal, sys, time, tomllib
command = sys.argv[1]
asked = dict(zip(sys.argv[2::1], sys.argv[3::1]))
pathlib.Path(__file__).with_name("calls").open("a").write(json.dumps(sys.argv[1:]) + "\n")
stop = []
signal.signal(signal.SIGINT, lambda *_: stop.append(1))
if command == "serve-model":
    assert (pathlib.Path(asked["--model"]) / "tokenizer.json").exists()
    assert json.loads((pathlib.Path(asked["--model"]) / "generation_config.json").read_text()) == {"eos_token_id": 5}
    print("http://127.0.0.1:1/v1", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    time.sleep(100)
elif command == "train":
    run, folder = tomllib.loads(pathlib.Path(sys.argv[3]).read_text()), pathlib.Path(asked["-o"])
    if run.get("held_out_every") == 13:
        sys.exit("run.toml:1: what is wrong with it")
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    first = max((int(p.name[5:]) for p in (folder / "checkpoints").iterdir()), default=0)
    log = folder / "metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(True)[:first]) if log.exists() else "")
    def keep(step):
        model = folder / "checkpoints" / f"step-{step:08}" / "model"
        model.mkdir(parents=True, exist_ok=True)
        (model / "config.json").write_text("{}")
    for step in range(first, run["schedule"]["steps"]):
        time.sleep(0.02)
        share = step / run["schedule"]["steps"]
        with log.open("a") as file:
            file.write(json.dumps({"step": step, "reward": share, "entropy": 1 - share / 2, "length": 50, "verdict/Verified": share / 2,
                                   "rule/no-launch": share / 4, "write_s": 1.0, "step_s": 2.0, "loss": None}) + "\n")
        with (folder / "rollouts.jsonl").open("a") as file:
            for sample, verdict in enumerate(("Verified", "Disallowed")):
                file.write(json.dumps({"step": step, "sample": sample, "verdict": verdict, "reward": sample * (step < 3)}) + "\n")
        last = step + 1 == run["schedule"]["steps"]
        if last or stop or (step + 1) % run["checkpoints"]["every_steps"] == 0:
            keep(step + 1)
        if stop and not last:
            sys.exit(130)
elif command == "eval":
    folder = pathlib.Path(asked["-o"])
    folder.mkdir(parents=True, exist_ok=True)
    import os
    draw = random.Random(os.environ.get("NEREID_HTTP_MODEL", "compiler"))
    results = []
    for task in range(20):
        time.sleep(0.01)
        if stop:
            sys.exit(130)
        good = draw.random() < 0.7
        results.append({"id": f"t{task}", "verdict": "Verified" if good else "Mismatch", "samples": 4, "verified": 3 if good else 0,
                        "speedup": None, "speedup_modelled": 2.0 if good else None})
    (folder / "summary.json").write_text(json.dumps({"hardware": "cpu", "results": results}))
'''

BASE = """held_out_every = 4
[model]
start_from = "start"
[data]
sequence_length = 64
[schedule]
kind = "constant"
steps = 1000
[checkpoints]
every_steps = 5
[rl]
objective = "grpo"
tokenizer = "tokenizer.json"
tasks = ["a.jsonl"]
prompts_per_step = 2
samples = 4
"""
ARMS = """base = "base.toml"
seeds = [1, 2]
[compute]
rollouts = 96
[evaluations.alone]
tasks = "tasks"
options = ["--once"]
[evaluations.other]
model = false
tasks = "tasks"
[[arms]]
name = "start"
train = "none"
evaluations = ["alone", "other"]
[[arms]]
name = "hrd"
differences.rl = { objective = "hrd" }
[[comparisons]]
question = "Better?"
pairs = [["hrd", "start"], ["start/other", "start"]]
"""


class Statistics(unittest.TestCase):
    def test_means_are_of_weights(self):
        self.assertEqual(mean_of([[(1, 1), (0, 1)], [(1, 1), (1, 1)]]), 0.75)
        self.assertEqual(mean_of([[(4, 1), (7, 0)], [(1, 3), (9, 0)]]), 7 / 4)
        self.assertIsNone(mean_of([[(1, 0)]]))
        self.assertIsNone(interval([[(1, 0)]]))

    def test_quantiles_are_values(self):
        self.assertEqual([quantile([4, 1, 3, 2], share) for share in (0, 0.25, 0.26, 0.5, 1)], [1, 1, 2, 2, 4])

    def test_of_one_seed_the_tasks_draw(self):
        # The mean of ten draws of 0 or 1 is binomial: P(<= 0.1) = 11 / 1024 < 0.025 < P(<= 0.2) = 56 / 1024, and the same from above.
        found = interval([[(i % 2, 1) for i in range(10)]])
        self.assertEqual((found.mean, found.low, found.high), (0.5, 0.2, 0.8))

    def test_seeds_are_drawn_too(self):
        # All tasks alike, two seeds, 0 and 1: the mean of two draws is 0, 1/2, 1/2 or 1.
        found = interval([[(0, 1)] * 50, [(1, 1)] * 50])
        self.assertEqual((found.mean, found.low, found.high), (0.5, 0, 1))
        # Nothing to draw from.
        found = interval([[(3, 1)] * 5] * 3)
        self.assertEqual((found.mean, found.low, found.high), (3, 3, 3))

    def test_differences_are_of_the_same_tasks(self):
        hard = [(task / 10, 1) for task in range(10)]
        easier = [(value + 0.25, 1) for value, _ in hard]
        found = difference([easier], [hard])
        for value in (found.mean, found.low, found.high):
            self.assertAlmostEqual(value, 0.25)  # apart, either would be a third off
        self.assertGreater(interval([easier]).high - interval([easier]).low, 0.3)
        self.assertIsNone(difference([easier], [[(1, 0)] * 10]))

    def test_resamples_cover(self):
        # Against the formula: of n values the mean's deviation is s / sqrt(n), and 1.96 of it lie on either side.
        values = [math.sin(i * 12.9898) for i in range(400)]
        mean = sum(values) / 400
        deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / 400 / 400)
        found = interval([[(v, 1) for v in values]])
        self.assertAlmostEqual(found.high - found.mean, 1.96 * deviation, delta=0.1 * deviation)
        self.assertAlmostEqual(found.mean - found.low, 1.96 * deviation, delta=0.1 * deviation)


class Curves(unittest.TestCase):
    def test_ticks(self):
        self.assertEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1])
        self.assertEqual(ticks(-3, 994, 6), [0, 200, 400, 600, 800])

    def test_it_is_an_image_of_its_own(self):
        for lines in ([("one", [(0, 1, 1, 1)])], [("flat", [(0, 2, 2, 2), (9, 2, 2, 2)])],
                      [(f"<arm {i}>", [(x, x * i, x * i - 1, x * i + 1) for x in range(50)]) for i in range(11)]):
            text = svg("T & t", "step", "up", lines)
            root = xml.etree.ElementTree.fromstring(text)
            texts = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]
            for name, _ in lines:
                self.assertIn(name, texts)
            self.assertIn("step", texts)
            self.assertNotRegex(text.lower().replace('xmlns="http://www.w3.org/2000/svg"', ""), r"nan|inf\b|http|script")
            x0, y0, width, height = map(float, root.get("viewBox").split())
            for node in root.iter():
                for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", node.get("points") or ""):
                    self.assertTrue(0 <= float(x) <= width and 0 <= float(y) <= height, (x, y))
                for key in ("x", "x1", "x2", "cx"):
                    self.assertTrue(0 <= float(node.get(key) or 0) <= width, (node.tag, node.attrib))


class Slices(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)
        (self.root / "nereid").write_text(f"#!{sys.executable}\n{PRETENDER}")
        (self.root / "nereid").chmod(0o755)
        (self.root / "base.toml").write_text(BASE)
        (self.root / "start").mkdir()
        (self.root / "start" / "config.json").write_text("{}")
        (self.root / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"content": "<|im_end|>", "id": 5}]}))
        self.arms(ARMS)

    def tearDown(self):
        self.scratch.cleanup()

    def arms(self, text):
        (self.root / "arms.toml").write_text(text)

    def tool(self, *arguments, code=0, name="ablation.py"):
        done = subprocess.run([sys.executable, HERE / name, *map(str, arguments)], capture_output=True, text=True, cwd=self.root, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def run_slice(self, *more, code=0):
        return self.tool("run", "arms.toml", "-o", "out", "--nereid", self.root / "nereid", "--patience", 20, *more, code=code)

    def steps(self, unit):
        return [line["step"] for line in map(json.loads, (self.root / "out" / unit / "run" / "metrics.jsonl").read_text().splitlines())]

    def calls(self, command):
        return sum(json.loads(line)[0] == command for line in (self.root / "calls").read_text().splitlines())

    def test_slices_go_on_and_compute_is_equal(self):
        slices = 0
        while self.one_slice():
            slices += 1
            self.assertLess(slices, 40)
        self.assertGreater(slices, 1)
        for seed in (1, 2):
            self.assertEqual(self.steps(f"hrd/seed-{seed}"), list(range(12)))  # 96 rollouts, 8 a step
            trained = json.loads((self.root / f"out/hrd/seed-{seed}/trained.json").read_text())
            self.assertEqual((trained["rollouts"], trained["steps"], trained["seconds"]), (96, 12, 24))
        before = self.calls("train") + self.calls("eval")
        self.run_slice()
        self.assertEqual(self.calls("train") + self.calls("eval"), before)  # nothing is done twice
        self.tool("pack", "out", "-o", "home", "--most", 1500)
        parts = list((self.root / "home").iterdir())
        self.assertGreater(len(parts), 1)
        self.assertTrue(all(part.stat().st_size <= 1500 for part in parts))
        self.tool("unpack", "home", "-o", "again")
        for folder in ("out", "again"):
            self.tool("arms.toml", folder, "-o", f"report_{folder}", name="report.py")
        some = [json.loads(line) for line in (self.root / "again/hrd/seed-1/run/some_rollouts.jsonl").read_text().splitlines()]
        self.assertEqual({(r["step"], r["sample"]) for r in some}, {(0, 1), (1, 1), (2, 1), (11, 0), (11, 1)})  # paid for though refused; the last step's
        text = (self.root / "report_out/results.md").read_text()
        self.assertEqual(text, (self.root / "report_again/results.md").read_text())
        for part in ("| hrd/alone |", "| start/other |", "**Better?**", "| hrd/alone - start/alone | 20 |", "| hrd | 2 of 2 | 96 | 24 |", "no-launch 21.9 %",
                     "the cost model's"):
            self.assertIn(part, text)
        self.assertEqual({p.name for p in (self.root / "report_out").iterdir()}, {"results.md", "reward.svg", "verdict_verified.svg", "entropy.svg"})
        # By hand: what the pretender said of both seeds.
        shown = re.search(r"\| hrd/alone \|[^|]*\| 2 \| 20 \| ([\d.]+) \[", text)[1]
        results = [r for seed in (1, 2) for r in json.loads((self.root / f"out/hrd/seed-{seed}/eval-alone/summary.json").read_text())["results"]]
        self.assertEqual(shown, f"{100 * sum(r['verdict'] == 'Verified' for r in results) / 40:.1f}")

    def one_slice(self):
        done = subprocess.run([sys.executable, HERE / "ablation.py", "run", "arms.toml", "-o", "out", "--nereid", self.root / "nereid", "--patience", "20",
                               "--slice", "0.5"], capture_output=True, text=True, cwd=self.root, timeout=60)
        self.assertIn(done.returncode, (0, 75), done.stdout + done.stderr)
        return done.returncode == 75

    def test_equal_seconds_and_a_killed_run(self):
        self.arms(ARMS.replace("rollouts = 96", "seconds = 40"))
        process = subprocess.Popen([sys.executable, HERE / "ablation.py", "run", "arms.toml", "-o", "out", "--nereid", self.root / "nereid"], cwd=self.root,
                                   stdout=subprocess.DEVNULL, start_new_session=True)
        metrics = self.root / "out/hrd/seed-1/run/metrics.jsonl"
        while not metrics.exists() or metrics.read_text().count("\n") < 8:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.run_slice()  # though the killed call's training may still be about
        for seed in (1, 2):
            trained = json.loads((self.root / f"out/hrd/seed-{seed}/trained.json").read_text())
            self.assertGreaterEqual(trained["seconds"], 40)
            self.assertEqual(trained["steps"] * 2, trained["seconds"])
            self.assertEqual(self.steps(f"hrd/seed-{seed}")[:trained["steps"]], list(range(trained["steps"])))

    def test_one_that_fails_leaves_the_others(self):
        self.arms(ARMS.replace('name = "hrd"', 'name = "bad"\ndifferences.held_out_every = 13\n[[arms]]\nname = "hrd"'))
        done = self.run_slice(code=1)
        self.assertIn("bad/seed-1: ", done.stderr)
        self.assertIn("what is wrong with it", done.stderr)
        self.assertTrue((self.root / "out/hrd/seed-2/eval-alone/summary.json").exists())

    def test_another_table_may_not_go_on(self):
        self.run_slice("--share", "0/2")
        self.run_slice("--share", "1/4")
        self.assertEqual(sorted(p.name for p in (self.root / "out/hrd").iterdir()), ["seed-1"])
        self.arms(ARMS.replace("96", "80"))
        self.assertIn("is of another table", self.run_slice(code=1).stderr)

    def test_wrong_tables_are_told(self):
        for old, new, message in (("rollouts = 96", "rollouts = 97", "arms.toml: arms.hrd: compute.rollouts: expected a multiple of 8"),
                                  ("rollouts = 96", "", "either rollouts or seconds"),
                                  ("rollouts = 96", "rollouts = -8", "expected a number above 0"),
                                  ('base = "base.toml"', 'bass = "x"', "arms.toml has no key 'bass'; it has arms, base,"),
                                  ("seeds = [1, 2]", 'seeds = "all"', 'seeds: expected list, got "all"'),
                                  ('train = "none"', 'train = "ppo"', "expected rl, sft or none"),
                                  ('evaluations = ["alone", "other"]', 'evaluations = ["search"]', "expected some of alone, other"),
                                  ('differences.rl', 'without = ["rl.clip"]\ndifferences.rl', "the base has no 'rl.clip'"),
                                  ('[["hrd", "start"]', '[["hrd", "stat"]', 'got "stat"'),
                                  ('name = "start"', 'name = "hrd"', "two are called hrd")):
            self.arms(ARMS.replace(old, new))
            with self.assertRaises(Wrong) as caught:
                read_table(self.root / "arms.toml")
            self.assertIn(message, str(caught.exception), (old, new))

    def test_the_real_arms_can_be_read(self):
        table = read_table(HERE / "arms.toml")
        self.assertEqual({unit.run["schedule"]["steps"] for arm in table.arms for unit in arm.units if unit.program == "rl"}, {200})
        self.assertIn("rule_reward = false", next(a for a in table.arms if a.name == "no_rules").units[0].run_file())


if __name__ == "__main__":
    unittest.main()
