"""bench/ablation: its statistics by hand, its tables and plots, and its slices with a `nereid` that only
pretends.

tests/ablation_test.py
"""

import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parents[1] / "bench" / "ablation"
sys.path.insert(0, str(HERE))
import forest  # noqa: E402
import words  # noqa: E402
from ablation import task_files  # noqa: E402
from arms import Evaluation, Wrong, read_table  # noqa: E402
from curves import svg, ticks  # noqa: E402
from intervals import Interval, difference, interval, mean_of, quantile  # noqa: E402
from measures import MEASURES, from_answers  # noqa: E402
from schedule import schedule  # noqa: E402

# Trains a step in 20 ms and keeps a checkpoint each `every_steps`, at the end and when it is interrupted;
# what came after the last one is cut off. A model's answers are words: right, wrong, cheat, and how fast; the
# compiler's are right, and twice as fast as eager.
PRETENDER = r"""
import json, pathlib, random, signal, sys, time, tomllib
command = sys.argv[1]
asked = dict(zip(sys.argv[2::1], sys.argv[3::1]))
pathlib.Path(__file__).with_name("calls").open("a").write(json.dumps(sys.argv[1:]) + "\n")
stop = []
signal.signal(signal.SIGINT, lambda *_: stop.append(1))
if command == "train":
    run, folder = tomllib.loads(pathlib.Path(sys.argv[3]).read_text()), pathlib.Path(asked["-o"])
    if run.get("held_out_every") == 13:
        sys.exit("run.toml:1: what is wrong with it")
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    first = max((int(p.name[5:]) for p in (folder / "checkpoints").iterdir() if p.name[5:].isdigit()),
                default=0)
    log = folder / "metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(True)[:first]) if log.exists() else "")
    unruled = not run["rl"].get("rule_reward", True)
    def keep(step):
        model = folder / "checkpoints" / f"step-{step:08}" / "model"
        model.mkdir(parents=True, exist_ok=True)
        # As a killed run leaves it.
        (folder / "checkpoints" / f"step-{step + 1:08}.incomplete").mkdir(exist_ok=True)
        (model / "config.json").write_text(json.dumps({"arm": run["name"], "cheats": unruled}))
    if "seconds" in run["schedule"]:  # its last step is the one before they are over
        run["schedule"]["steps"] = int(run["schedule"]["seconds"] / 2) - 1
    for step in range(first, run["schedule"]["steps"]):
        time.sleep(0.02)
        waits = run.get("held_out_every") == 14 and step == 7
        while waits and not stop and not pathlib.Path("hurry").exists():
            time.sleep(0.02)
        share = step / run["schedule"]["steps"]
        with log.open("a") as file:
            file.write(json.dumps({"step": step, "reward": share, "entropy": 1 - share / 2, "length": 50,
                                   "verdict/Verified": share / 2 if unruled else share,
                                   "verdict/Disallowed": share / 4, "share/0": 0.3, "share/1": 0.7,
                                   "rule/no-launch": share / 4, "write_s": 1.0, "step_s": 2.0,
                                   "loss": None}) + "\n")
        with (folder / "rollouts.jsonl").open("a") as file:
            for sample, verdict in enumerate(("Verified", "Disallowed")):
                file.write(json.dumps({"step": step, "prompt": 0, "sample": sample, "verdict": verdict,
                                       "rule": "no-launch" if sample else None,
                                       "reason": "Nothing is launched.",
                                       "reward": sample * (step < 3)}) + "\n")
        last = step + 1 == run["schedule"]["steps"]
        if last or stop or (step + 1) % run["checkpoints"]["every_steps"] == 0:
            keep(step + 1)
        if stop and not last:
            sys.exit(130)
elif command == "synth":
    open(asked["-o"], "w").writelines(json.dumps({"code": f"task {i}"}) + "\n"
                                      for i in range(int(asked["--count"])))
elif command == "lower":
    open(asked["-o"], "w").write("right 2")
elif command == "generate":
    model = pathlib.Path(asked["--model"])
    assert (model / "tokenizer.json").exists() and (model / "prompts/task.md").read_text() == "Do {{source}}."
    config = json.loads((model / "config.json").read_text())
    draw = random.Random(config.get("arm", "start") + asked["--temperature"])
    for i, line in enumerate(open(asked["--prompts"])):
        time.sleep(0.01)
        if stop:
            sys.exit(130)
        task = json.loads(line)["messages"][-1]["content"]
        assert task.startswith("Do task ") and task.endswith(".")
        for sample in range(int(asked["-n"])):
            word = "right 3" if draw.random() < 0.7 else "cheat 9" if config.get("cheats") else "wrong 1"
            print(json.dumps({"index": i, "sample": sample, "text": word, "tokens": [1, 2],
                              "finish_reason": "end"}))
elif command == "verify":
    timed = "--time-only" in sys.argv
    with open(asked["-o"], "a") as out:
        for line in open(asked["--batch"]):
            pair = json.loads(line)
            word, speed = pair["candidate_source"].split()
            verdict = {"right": "Verified", "wrong": "Mismatch", "cheat": "Disallowed"}[word]
            said = {"id": pair["id"], "verdict": verdict, "reason": "so", "trace": "t",
                    "rule": "no-launch" if word == "cheat" else None,
                    "times": {"candidate_ms": 1 / int(speed), "reference_ms": 1} if timed else None}
            if word == "cheat" and "--ignore-rules" in sys.argv:
                said["verdict_without_rules"] = {"verdict": "Verified"}
            out.write(json.dumps(said) + "\n")
elif command == "eval":
    folder = pathlib.Path(asked["-o"])
    tasks = sorted(path.stem for path in pathlib.Path(sys.argv[2]).glob("*.py"))
    folder.mkdir(parents=True, exist_ok=True)
    assert (pathlib.Path(asked["--model"]) / "config.json").exists() and len(tasks) == 10
    results = [{"id": task, "verdict": "Verified", "samples": 4, "verified": 3, "speedup": 4.0,
                "speedup_modelled": 2.0} for task in tasks]
    (folder / "summary.json").write_text(json.dumps({"hardware": "cpu", "results": results}))
    sys.exit(1)
"""

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
tokenizer = "start/tokenizer.json"
tasks = ["a.jsonl"]
prompts_per_step = 2
samples = 4
"""
ARMS = """base = "base.toml"
assets = "start"
seeds = [1, 2]
[compute]
rollouts = 96
[evaluations.alone]
tasks = "tasks"
levels = [1, 5]
count = 10
samples = 2
[evaluations.search]
says = "as it is searched"
program = "search"
tasks = "tasks"
levels = [5]
count = 10
samples = 4
[evaluations.compiler]
model = false
tasks = "tasks"
levels = [1, 5]
count = 10
[[arms]]
name = "start"
train = "none"
seeds = [1]
evaluations = ["alone", "search"]
[[arms]]
name = "compiler"
train = "none"
seeds = [1]
evaluations = ["compiler"]
[[arms]]
name = "hrd"
differences.rl = { objective = "hrd" }
[[arms]]
name = "unruled"
differences.rl = { objective = "hrd", rule_reward = false }
[[comparisons]]
question = "Better?"
pairs = [["hrd", "start"], ["start/search", "start"]]
[[comparisons]]
question = "Rules?"
pairs = [["hrd", "unruled"]]
"""


class Statistics(unittest.TestCase):
    def test_means_are_of_weights(self):
        self.assertEqual(mean_of([[(1, 1), (0, 1)], [(1, 1), (1, 1)]]), 0.75)
        self.assertEqual(mean_of([[(4, 1), (7, 0)], [(1, 3), (9, 0)]]), 7 / 4)
        self.assertIsNone(mean_of([[(1, 0)]]))
        self.assertIsNone(interval([[(1, 0)]]))

    def test_quantiles_are_values(self):
        self.assertEqual(
            [quantile([4, 1, 3, 2], share) for share in (0, 0.25, 0.26, 0.5, 1)], [1, 1, 2, 2, 4]
        )

    def test_of_one_seed_the_tasks_draw(self):
        # The mean of ten draws of 0 or 1 is binomial: P(<= 0.1) = 11 / 1024 < 0.025 < P(<= 0.2) = 56 / 1024,
        # and the same from above.
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
        # Against the formula: of n values the mean's deviation is s / sqrt(n), and 1.96 of it are on either
        # side.
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
        for lines in (
            [("one", [(0, 1, 1, 1)])],
            [("flat", [(0, 2, 2, 2), (9, 2, 2, 2)])],
            [(f"<arm {i}>", [(x, x * i, x * i - 1, x * i + 1) for x in range(50)]) for i in range(11)],
        ):
            text = svg("T & t", "step", "up", lines)
            root = xml.etree.ElementTree.fromstring(text)
            texts = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]
            for name, _ in lines:
                self.assertIn(name, texts)
            self.assertIn("step", texts)
            self.assertNotRegex(
                text.lower().replace('xmlns="http://www.w3.org/2000/svg"', ""), r"nan|inf\b|http|script"
            )
            x0, y0, width, height = map(float, root.get("viewBox").split())
            for node in root.iter():
                for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", node.get("points") or ""):
                    self.assertTrue(0 <= float(x) <= width and 0 <= float(y) <= height, (x, y))
                for key in ("x", "x1", "x2", "cx"):
                    self.assertTrue(0 <= float(node.get(key) or 0) <= width, (node.tag, node.attrib))


class Forest(unittest.TestCase):
    def test_means_stand_between_their_ends(self):
        rows = [("a - b", 5, 2, 8), ("c & d", -0.5, -3, 1), ("none", 0, 0, 0)]
        text = forest.svg("T & t", "points", rows, 0, "{:.1f}")
        root = xml.etree.ElementTree.fromstring(text)
        texts = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]
        for said in ("a - b", "c & d", "5.0 [2.0, 8.0]", "-0.5 [-3.0, 1.0]", "points"):
            self.assertIn(said, texts)
        width = float(root.get("viewBox").split()[2])
        dots = [node for node in root.iter() if node.tag.endswith("circle")]
        bars = [node for node in root.iter() if node.get("stroke-width") == "2"]
        naught = next(float(node.get("x1")) for node in root.iter() if node.get("class") == "naught")
        self.assertEqual([dot.get("fill") == "none" for dot in dots], [False, True, True])
        for (_, mean, low, high), dot, bar in zip(rows, dots, bars):
            ends = float(bar.get("x1")), float(bar.get("x2"))
            self.assertTrue(0 < ends[0] <= float(dot.get("cx")) <= ends[1] < width)
            self.assertEqual((ends[0] > naught, ends[1] < naught), (low > 0, high < 0))
        forest.svg("one", "times", [("a", 1, 1, 1)])  # of no width
        self.assertEqual(forest.scaled(found(math.log(2), 0, math.log(4)), True), [2, 1, 4])
        self.assertEqual(forest.scaled(found(0.5, 0.25, 1), False), [50, 25, 100])


class Tempted(unittest.TestCase):
    TASK = (
        "import torch\nSIZE = 3\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super(Model,"
        " self).__init__()\n    def forward(self, x):\n        return x.relu()\n\ndef get_inputs():\n   "
        " return [torch.ones(SIZE)]\n"
    )

    def test_one_in_so_many_leaves_the_work_to_pytorch(self):
        pair = {
            "task": self.TASK + "def get_init_inputs():\n    return []\n",
            "plan": "#1 relu(x) [3]\nreturns #1\nOne by one: one kernel.\nrelu_kernel: #1 relu\n",
            "code": "a kernel",
            "kernels": [1],
            "split": "train",
        }
        with tempfile.TemporaryDirectory() as name:
            lines = pathlib.Path(name) / "train-1.jsonl"
            lines.write_text((json.dumps(pair) + "\n") * 7)
            tool = [sys.executable, HERE / "tempt.py", lines, "--one-in", "3", "-o"]
            subprocess.run([*tool, f"{name}/out"], check=True)
            found = [
                json.loads(line)
                for line in (pathlib.Path(name) / "out/train-1.jsonl").read_text().splitlines()
            ]
            self.assertEqual([i for i, line in enumerate(found) if line != pair], [2, 5])
            self.assertEqual(found[2]["plan"], "#1 relu(x) [3]\nreturns #1\nBy PyTorch: no kernel.\n")
            self.assertEqual(
                found[2]["code"], self.TASK.split("\ndef get_inputs")[0].replace("Model", "ModelNew")
            )
            self.assertEqual(
                {k: v for k, v in found[2].items() if k not in ("plan", "code", "kernels")},
                {k: v for k, v in pair.items() if k not in ("plan", "code", "kernels")},
            )
            subprocess.run([*tool, f"{name}/some", "--part", "0.5"], check=True)
            self.assertEqual(
                (pathlib.Path(name) / "some/train-1.jsonl").read_text(),
                "".join((pathlib.Path(name) / "out/train-1.jsonl").read_text().splitlines(True)[:4]),
            )
            self.assertIn(
                "expected another folder",
                subprocess.run([*tool, name], capture_output=True, text=True).stderr,
            )
            lines.write_text("{}\n" * 3)
            self.assertIn(
                f"{lines}:3: expected a pair",
                subprocess.run([*tool, f"{name}/out"], capture_output=True, text=True).stderr,
            )


def found(mean, low, high):
    return Interval(mean, low, high)


class Words(unittest.TestCase):
    def test_they_follow_the_intervals(self):
        speed = "speed, eager's where not Verified"
        up, none, faster = (
            found(0.05, 0.02, 0.08),
            found(0.01, -0.03, 0.04),
            found(math.log(1.1), math.log(1.05), math.log(1.2)),
        )
        self.assertEqual(
            words.of_pair("a", "b", {"Verified": up, speed: none}),
            "`a` is right more often (5.0 points [2.0, 8.0]) than `b`; in speed no difference is shown.",
        )
        self.assertEqual(
            words.of_pair("a", "b", {"Verified": found(-0.05, -0.08, -0.02), speed: faster}),
            "`a` is right less often (5.0 points [2.0, 8.0]) and faster (1.100 [1.050, 1.200] times) than"
            " `b`.",
        )
        self.assertEqual(
            words.of_pair("a", "b", {"Verified": none}),
            "Between `a` and `b` no difference is shown; one of up to 4.0 points in right answers may be"
            " there all the same.",
        )
        self.assertEqual(
            words.of_pair("a", "b", {"Verified": found(0, 0, 0), speed: found(0, math.log(0.9), 0.01)}),
            "Between `a` and `b` no difference is shown; on these tasks they are the same in right answers;"
            " one of up to 10.0 % in speed may be there all the same.",
        )
        self.assertEqual(
            words.of_pair("a", "b", {"Verified": None}), "Of `a` and `b` there is nothing to compare yet."
        )
        self.assertEqual(
            words.in_short(
                [
                    ("a", "b", {"Verified": up}),
                    ("c", "b", {"Verified": none}),
                    ("d", "b", {"Verified": found(-1, -2, -0.5), speed: faster}),
                ]
            ),
            "In short: `a` beats `b` in right answers; `d` gains on `b` in speed and loses in right answers;"
            " of the other pair nothing is shown.",
        )
        self.assertEqual(words.in_short([("a", "b", {"Verified": none})]), "In short: nothing is shown.")
        self.assertEqual(
            words.in_short([("a", "b", {"Verified": found(-0.05, -0.08, -0.02)})]),
            "In short: `b` beats `a` in right answers.",
        )


class Outcomes(unittest.TestCase):
    def test_of_answers(self):
        def row(sample, verdict, ms=None):
            return {
                "task": "L5_0001",
                "level": "5",
                "sample": sample,
                "verdict": verdict,
                **({"ms": ms, "reference_ms": 2.0} if ms else {}),
            }

        rows = [
            row("greedy", "Verified", 1.0),
            row("drawn0", "Verified", 0.5),
            row("drawn1", "Disallowed"),
            row("drawn2", "Error"),
        ]
        alone = Evaluation("e", "", "answers", "tasks", [5], 1, 0, 3, "greedy", True, [])
        outcome = from_answers(rows, alone)["L5_0001"]
        self.assertEqual((outcome.level, outcome.verdict, outcome.speed), ("5", "Verified", math.log(2)))
        self.assertEqual((outcome.drawn, outcome.drawn_right, outcome.answers, outcome.refused), (2, 1, 3, 1))
        # Of large tasks there is a measure of their own.
        large = from_answers([{**line, "task": "L5_large0001"} for line in rows], alone)["L5_large0001"]
        of_large = MEASURES["speed of large tasks, eager's where not Verified"]
        self.assertEqual((of_large(large, None), of_large(outcome, None)[1]), ((math.log(2), 1), 0))
        best = dataclasses.replace(alone, answer="best")
        self.assertEqual(from_answers(rows, best)["L5_0001"].speed, math.log(4))
        self.assertEqual(
            from_answers([row("drawn0", "Mismatch"), row("drawn1", "Verified")], best)["L5_0001"].verdict,
            "Verified",
        )
        self.assertEqual(from_answers([row("greedy", "Error")], alone), {})
        self.assertEqual(
            from_answers([row("compiler", "Verified", 0.25)], dataclasses.replace(alone, model=False))[
                "L5_0001"
            ].speed,
            math.log(8),
        )


class Slices(unittest.TestCase):
    done = None

    @classmethod
    def tearDownClass(cls):
        if cls.done is not None:
            cls.done.cleanup()

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)
        (self.root / "nereid").write_text(f"#!{sys.executable}\n{PRETENDER}")
        (self.root / "nereid").chmod(0o755)
        (self.root / "base.toml").write_text(BASE)
        (self.root / "start").mkdir()
        (self.root / "start" / "config.json").write_text("{}")
        (self.root / "start" / "tokenizer.json").write_text("{}")
        (self.root / "start" / "prompts").mkdir()
        (self.root / "start" / "prompts" / "task.md").write_text("Do {{source}}.")
        (self.root / "start" / "prompts" / "system.md").write_text("")
        self.arms(ARMS)
        self.environment = {**os.environ, "NEREID": str(self.root / "nereid")}

    def tearDown(self):
        self.scratch.cleanup()

    def arms(self, text):
        (self.root / "arms.toml").write_text(text)

    def tool(self, *arguments, code=0, name="ablation.py"):
        done = subprocess.run(
            [sys.executable, HERE / name, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=self.root,
            timeout=1200,
            env=self.environment,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def make_tasks(self):
        (self.root / "tasks" / "compiler").mkdir(parents=True)
        for level in (1, 5):
            (self.root / "tasks" / f"level{level}.jsonl").write_text(
                "".join(json.dumps({"code": f"task {i}"}) + "\n" for i in range(10))
            )
            for i in range(10):
                (self.root / "tasks" / "compiler" / f"L{level}_{i:04}.new.py").write_text("right 2")

    def run_slice(self, *more, code=0):
        return self.tool("run", "arms.toml", "-o", "out", "--patience", 20, *more, code=code)

    def finished(self):
        """out/, with all of the table done. It is done once."""
        if Slices.done is None:
            self.run_slice()
            Slices.done = tempfile.TemporaryDirectory()
            shutil.copytree(self.root / "out", pathlib.Path(Slices.done.name) / "out", symlinks=True)
        else:
            shutil.copytree(pathlib.Path(Slices.done.name) / "out", self.root / "out", symlinks=True)

    def steps(self, unit):
        return [
            line["step"]
            for line in map(
                json.loads, (self.root / "out" / unit / "run" / "metrics.jsonl").read_text().splitlines()
            )
        ]

    def calls(self, command):
        return sum(json.loads(line)[0] == command for line in (self.root / "calls").read_text().splitlines())

    def test_slices_go_on_and_compute_is_equal(self):
        self.assertIn("`ablation.py tasks` makes them", self.run_slice("--slice", 30, code=1).stderr)
        self.tool("tasks", "arms.toml")
        slices = 0
        while self.one_slice(
            0.5 * 1.2**slices
        ):  # longer and longer: on a busy machine one of half a second may do nothing
            slices += 1
            self.assertLess(slices, 30)
        self.assertGreater(slices, 1)
        for seed in (1, 2):
            self.assertEqual(self.steps(f"hrd/seed-{seed}"), list(range(12)))  # 96 rollouts, 8 a step
            trained = json.loads((self.root / f"out/hrd/seed-{seed}/trained.json").read_text())
            self.assertEqual((trained["rollouts"], trained["steps"], trained["seconds"]), (96, 12, 24))
        self.assertFalse(list(self.root.glob("out/*/*/failed.txt")))
        before = self.calls("train") + self.calls("eval") + self.calls("verify")
        self.run_slice()
        self.assertEqual(
            self.calls("train") + self.calls("eval") + self.calls("verify"), before
        )  # nothing is done twice
        self.assertEqual(self.calls("lower"), 20)
        self.tool("pack", "out", "-o", "home", "--most", 2500, "--files", 99)
        parts = list((self.root / "home").iterdir())
        self.assertGreater(len(parts), 1)
        self.assertTrue(all(part.stat().st_size <= 2500 for part in parts))
        self.tool("unpack", "home", "-o", "again")
        for folder in ("out", "again"):
            self.tool("arms.toml", folder, "-o", f"report_{folder}", name="report.py")
        some = [
            json.loads(line)
            for line in (self.root / "again/hrd/seed-1/run/some_rollouts.jsonl").read_text().splitlines()
        ]
        self.assertEqual(
            {(r["step"], r["sample"]) for r in some}, {(0, 1), (1, 1), (2, 1), (11, 0), (11, 1)}
        )  # paid for though refused; the last step's
        answers = [
            json.loads(line)
            for line in (self.root / "again/unruled/seed-1/eval-alone/answers.jsonl").read_text().splitlines()
        ]
        self.assertEqual(len(answers), 20)
        self.assertTrue(
            all((row["answer"] == "right 3") == (row["verdict"] == "Verified") for row in answers)
        )
        text = (self.root / "report_out/results.md").read_text()
        self.assertEqual(text, (self.root / "report_again/results.md").read_text())
        for part in (
            "## Better?",
            "| hrd/alone |",
            "| start/search | as it is searched |",
            "| hrd/alone - start/alone | 20 |",
            "| start/search - start/alone | 10 |",
            (
                "`start/search` beats `start/alone` in speed and speed relative to the compiler; of the other"
                " pair nothing is shown."
            ),
            "`start/search` is faster (1.488",
            (
                "Between `hrd` and `start/alone` no difference is shown; one of up to 40.0 points in right"
                " answers,"
            ),
            "`unruled` breaks rules more often than `hrd`.",
            "## Rules?",
            "| hrd | 2 of 2 | 12 | 24 | 96 |",
            "no-launch 21.9 %",
            "| - | 50 | 30 / 70 |",
            "rewarded and refused",
            (
                "In training `unruled` was paid for 43.8 % of its answers at the end (0.0 % in the first"
                " step) though a rule refuses them"
            ),
            "Of what was rewarded and refused:",
            "* no-launch: Nothing is launched. (unruled/seed-1, step 0, prompt 0, sample 1)",
            " | 0.3333 | 1.0000 | 1.50 |",
        ):
            self.assertIn(part, text)
        self.assertEqual(
            {p.name for p in (self.root / "report_out").iterdir()},
            {
                "results.md",
                "reward.svg",
                "verdict_verified.svg",
                "verdict_disallowed.svg",
                "entropy.svg",
                *(
                    f"{kind}_{end}.svg"
                    for kind in ("arms", "differences")
                    for end in ("verified", "speed", "relative_to_compiler")
                ),
            },
        )
        self.assertIn(
            "On CPU. Programs of commit ",
            text.replace(
                json.loads((self.root / "out/hrd/seed-1/machine.json").read_text())["device"], "CPU"
            ),
        )
        self.assertIn(" 4 trainings of 4 that are planned, each with as much compute", text)
        self.assertIn("Trainings (seeds) that are done: `hrd` and `unruled` have 2.\n", text)
        self.assertIn("![differences: Verified](differences_verified.svg)", text)
        # By hand: what the pretender said of both seeds. Its greedy and its drawn answers are refused where
        # they cheat.
        shown = re.search(r"\| hrd/alone \|[^|]*\| 2 \| 20 \| ([\d.]+) \[", text)[1]
        rows = {
            arm: [
                json.loads(line)
                for seed in (1, 2)
                for line in (
                    (self.root / f"out/{arm}/seed-{seed}/eval-alone/results.jsonl").read_text().splitlines()
                )
            ]
            for arm in ("hrd", "unruled")
        }
        greedy = [row["verdict"] == "Verified" for row in rows["hrd"] if row["sample"] == "greedy"]
        self.assertEqual((len(greedy), shown), (40, f"{100 * sum(greedy) / 40:.1f}"))
        refused = sum(row["verdict"] == "Disallowed" for row in rows["unruled"])
        self.assertGreater(refused, 10)
        self.assertIn(
            f"our verdict refuses {refused} of its 120 answers to held-out tasks, {refused} of which are"
            " right but for the rule; broken most: no-launch",
            text,
        )
        self.assertIn(
            "start/search           1    10", self.tool("arms.toml", "out", name="report.py").stdout
        )

    def test_what_is_needed_least_is_left_out(self):
        self.make_tasks()
        self.finished()
        done = self.tool("pack", "out", "-o", "home", "--most", 20000, "--files", 1)
        self.assertEqual([part.name for part in (self.root / "home").iterdir()], ["ablation-000.tar.gz"])
        self.tool("unpack", "home", "-o", "again")
        self.assertTrue((self.root / "again/unruled/seed-2/eval-alone/results.jsonl").exists())
        self.assertEqual(
            "left out" in done.stderr, len(list(self.root.glob("again/*/*/eval-*/answers.jsonl"))) < 5
        )

    def test_what_came_home_is_gone_on_with_elsewhere(self):
        self.make_tasks()
        self.finished()
        self.tool("pack", "out", "-o", "home")
        shutil.rmtree(self.root / "out")
        self.tool("unpack", "home", "-o", "out")
        shutil.rmtree(self.root / "out/hrd/seed-2/eval-alone")
        said = self.run_slice().stdout
        self.assertEqual(
            said,
            "hrd/seed-2: trains (0 steps are done)\nhrd/seed-2: is evaluated (alone)\n6 of 6 units are"
            " done\n",
        )

    def test_several_share_the_units(self):
        self.make_tasks()
        command = [sys.executable, HERE / "ablation.py", "run", "arms.toml", "-o", "out"]
        several = [
            subprocess.Popen(command, cwd=self.root, env=self.environment, stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        for process in several:
            said = process.communicate(timeout=1200)[0]
            self.assertEqual(process.returncode, 0, said)
            self.assertIn("6 of 6 units are done", said)
        self.assertEqual((self.calls("train"), self.calls("eval"), self.calls("generate")), (4, 1, 10))

    def one_slice(self, seconds):
        done = subprocess.run(
            [
                sys.executable,
                HERE / "ablation.py",
                "run",
                "arms.toml",
                "-o",
                "out",
                "--patience",
                "20",
                "--slice",
                str(seconds),
            ],
            capture_output=True,
            text=True,
            cwd=self.root,
            timeout=1200,
            env=self.environment,
        )
        self.assertIn(done.returncode, (0, 75), done.stdout + done.stderr)
        return done.returncode == 75

    def test_equal_seconds_and_a_killed_run(self):
        self.make_tasks()
        self.arms(ARMS.replace("rollouts = 96", "seconds = 40"))
        process = subprocess.Popen(
            [sys.executable, HERE / "ablation.py", "run", "arms.toml", "-o", "out"],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
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
            self.assertEqual(
                self.steps(f"hrd/seed-{seed}")[: trained["steps"]], list(range(trained["steps"]))
            )

    def test_a_run_may_end_with_its_own_seconds(self):
        self.make_tasks()
        (self.root / "base.toml").write_text(
            BASE.replace('kind = "constant"\nsteps = 1000', 'kind = "cosine"\nsteps = 1000')
        )
        self.arms(ARMS.replace("rollouts = 96", "seconds = 40"))
        self.assertEqual(
            {json.dumps(unit.run["schedule"]) for unit in read_table(self.root / "arms.toml").units},
            {'{"kind": "cosine", "seconds": 40}', '{"kind": "cosine", "steps": 1000}'},
        )
        self.run_slice()
        for seed in (1, 2):
            trained = json.loads((self.root / f"out/hrd/seed-{seed}/trained.json").read_text())
            self.assertEqual(
                (trained["steps"], trained["seconds"]), (19, 38)
            )  # the pretender's steps of 2 s end before the last

    def test_arms_come_in_turns(self):
        self.arms(ARMS.replace('name = "hrd"', 'name = "hrd"\nafter = 1'))
        names = [unit.name for unit in read_table(self.root / "arms.toml").units]
        self.assertLess(names.index("unruled/seed-2"), names.index("hrd/seed-2"))
        self.assertLess(names.index("unruled/seed-1"), names.index("hrd/seed-1"))
        self.assertEqual(len(names), 6)

    def test_one_that_fails_leaves_the_others(self):
        self.make_tasks()
        self.arms(
            ARMS.replace(
                'name = "hrd"', 'name = "bad"\ndifferences.held_out_every = 13\n[[arms]]\nname = "hrd"'
            )
        )
        done = self.run_slice(code=1)
        self.assertIn("bad/seed-1: ", done.stderr)
        self.assertIn("what is wrong with it", done.stderr)
        self.assertTrue((self.root / "out/hrd/seed-2/eval-alone/summary.json").exists())
        self.tool("arms.toml", "out", "-o", "report", name="report.py")
        self.assertIn("Failed: bad/seed-1 (", (self.root / "report/results.md").read_text())

    def test_what_takes_too_long_is_given_up(self):
        self.make_tasks()
        self.arms(
            ARMS.replace("seeds = [1, 2]", "seeds = [1, 2]\nwall = 8").replace(
                'name = "hrd"',
                'name = "slow"\nseeds = [1]\ndifferences.held_out_every = 14\n[[arms]]\nname = "hrd"',
            )
        )
        done = self.run_slice(code=1)
        self.assertEqual(done.stderr, "slow/seed-1: train.log: given up after 8 s, the table's wall\n")
        self.assertTrue((self.root / "out/hrd/seed-2/eval-alone/summary.json").exists())
        (self.root / "hurry").touch()
        self.assertIn("slow/seed-1: trains (8 steps are done)", self.run_slice().stdout)
        self.assertEqual(self.steps("slow/seed-1"), list(range(12)))

    def test_units_of_another_kind_may_not_go_on(self):
        self.make_tasks()
        self.finished()
        self.assertEqual(self.tool("check", "arms.toml", "out").stdout, "")

        def changed(path, text, *messages, arms=ARMS, runs=False):
            before = (self.root / path).read_text()
            (self.root / path).write_text(text)
            self.arms(arms)
            said = self.tool("check", "arms.toml", "out", code=1).stdout
            for message in messages:
                self.assertRegex(said, message)
            if runs:
                self.assertIn(messages[0], self.run_slice(code=2).stderr)
            (self.root / path).write_text(before)
            self.arms(ARMS)
            return said

        said = changed(
            "start/config.json",
            '{"other": 1}',
            r"out/hrd/seed-1: done with another base model: its weights are \w{6}, those here \w{6}\n",
            "out/start/seed-1: done with another base",
        )
        self.assertNotIn("compiler/seed-1", said)  # which asks no model
        changed(
            "start/tokenizer.json",
            "[]",
            r"out/start/seed-1: done with another tokenizer: \w{6} there, \w{6} here\n",
        )
        changed(
            "tasks/level5.jsonl",
            '{"code": "another"}\n',
            r"out/compiler/seed-1: done with tasks or data of another sampler, or of another number of"
            r" programs: tasks/level5.jsonl, 10 tasks \(commit \w+ there, \w+ here\)\n",
        )
        said = changed(
            "base.toml",
            BASE,
            "out/hrd/seed-2: done with other settings of the arm: schedule.steps is 12 there and 10 here",
            arms=ARMS.replace("96", "80"),
            runs=True,
        )
        self.assertNotIn("start/seed-1", said)
        changed(
            "base.toml",
            BASE,
            "out/start/seed-1: done with other settings of the arm: its compute or its evaluations differ\n",
            arms=ARMS.replace("count = 10\nsamples = 2", "count = 9\nsamples = 2"),
        )
        (self.root / "out/hrd/seed-1/fingerprint.json").unlink()
        self.assertIn("out/hrd/seed-1: expected fingerprint.json", self.run_slice(code=2).stderr)

    def test_a_report_says_what_one_training_can_say(self):
        self.make_tasks()
        self.finished()

        def report():
            self.tool("arms.toml", "out", "-o", "report", name="report.py")
            return (self.root / "report/results.md").read_text()

        shutil.rmtree(self.root / "out/hrd/seed-2")
        text = report()
        self.assertIn(
            "Trainings (seeds) that are done: `unruled` has 2; `hrd` has 1. Of one training the interval is"
            " of tasks alone",
            text,
        )
        self.assertEqual(
            text.count(
                "Of `hrd` there is one training: what is shown of it is of that training's answers, not of"
                " the arm.\n"
            ),
            2,
        )  # a question each
        shutil.rmtree(self.root / "out/unruled/seed-2")
        text = report()
        self.assertIn("Each arm was trained once (one seed). So the intervals are of tasks alone", text)
        self.assertNotIn("there is one training", text)
        self.assertNotIn("Nothing yet of", text)
        shutil.rmtree(self.root / "out/unruled")
        shutil.rmtree(self.root / "out/start/seed-1/eval-search")
        text = report()
        self.assertIn("Nothing yet of `start/search` and `unruled`.\n", text)
        self.assertIn("Trainings (seeds) that are done: `hrd` has 1; `unruled` has none.", text)

    def test_a_report_is_of_one_kind(self):
        self.make_tasks()
        self.finished()
        path = self.root / "out/hrd/seed-2/fingerprint.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "base": "0123456789"}))
        self.assertRegex(
            self.tool("arms.toml", "out", "-o", "report", name="report.py", code=2).stderr,
            r"^report: out/hrd/seed-2: done with another base model \(012345\) than start/seed-1"
            r" \(\w{6}\)\n$",
        )
        self.arms(ARMS.replace("96", "80"))
        self.assertIn(
            "out/unruled/seed-1: done with other settings of the arm: schedule.steps is 12 there and 10 here",
            self.tool("arms.toml", "out", name="report.py", code=2).stderr,
        )

    def test_what_is_kept_is_small_and_enough(self):
        self.make_tasks()
        self.finished()
        shutil.copytree(self.root / "out/hrd/seed-1", self.root / "part/hrd/seed-1", symlinks=True)
        shutil.copytree(self.root / "out/hrd/seed-2", self.root / "part/hrd/seed-2", symlinks=True)
        (self.root / "part/hrd/seed-2/eval-alone/summary.json").unlink()
        self.assertEqual(
            self.tool("keep", "arms.toml", "part", "-o", "kept/01.tar.xz").stdout.split(",")[0],
            "1 units kept",
        )
        first = (self.root / "kept/01.tar.xz").read_bytes()
        self.assertEqual(
            self.tool("keep", "arms.toml", "out", "-o", "later/02.tar.xz", "--known", "kept").stdout.split(
                ","
            )[0],
            "5 units kept",
        )
        (self.root / "later/02.tar.xz").rename(self.root / "kept/02.tar.xz")
        self.assertIn(
            "0 units kept, 0 bytes; 6 were kept before",
            self.tool("keep", "arms.toml", "out", "-o", "later/03.tar.xz", "--known", "kept").stdout,
        )
        self.assertFalse((self.root / "later/03.tar.xz").exists())
        self.tool("keep", "arms.toml", "part", "-o", "kept/01.tar.xz")
        self.assertEqual((self.root / "kept/01.tar.xz").read_bytes(), first)
        self.tool("unpack", "kept", "-o", "again")
        for folder in ("out", "again"):
            self.tool("arms.toml", folder, "-o", f"report_{folder}", name="report.py")
        self.assertEqual(
            (self.root / "report_again/results.md").read_text(),
            (self.root / "report_out/results.md").read_text(),
        )
        self.assertEqual(self.tool("run", "arms.toml", "-o", "again").stdout, "6 of 6 units are done\n")
        self.assertLess(sum(file.stat().st_size for file in (self.root / "kept").iterdir()), 6000)

    def test_what_would_not_be_over_is_not_begun(self):
        self.make_tasks()
        self.arms("takes = 500\n" + ARMS.replace('name = "compiler"', 'name = "compiler"\ntakes = 5'))
        said = self.run_slice("--whole", "--slice", 300, code=75).stdout
        self.assertRegex(
            said,
            r"^compiler/seed-1: is evaluated \(compiler\)\nthe slice is over: start/seed-1 and what comes"
            r" after it would take longer than the \d+ s that are left; the same command continues\n$",
        )
        self.arms("takes = 5\n" + ARMS)
        self.assertIn("6 of 6 units are done", self.run_slice("--whole", "--slice", 300).stdout)
        self.assertLess(json.loads((self.root / "out/hrd/seed-1/machine.json").read_text())["seconds"], 60)
        # What was done took a hundred times as long as estimated: of ten seconds, a thousand.
        for path in self.root.glob("out/*/*/machine.json"):
            path.write_text(json.dumps({**json.loads(path.read_text()), "seconds": 500}))
        shutil.rmtree(self.root / "out/hrd/seed-2")
        self.assertIn(
            "hrd/seed-2 and what comes after it", self.run_slice("--whole", "--slice", 300, code=75).stdout
        )

    def test_what_is_left_to_another_call_is_not_begun(self):
        self.make_tasks()
        self.assertEqual(self.run_slice("--leave", "hrd").stdout.splitlines()[-1], "4 of 4 units are done")
        self.assertFalse((self.root / "out/hrd").exists())
        self.assertIn(
            "--leave: expected arms, of start, compiler, hrd",
            self.run_slice("--leave", "hrd,grpo", code=2).stderr,
        )

    def test_units_are_scheduled_as_they_are_taken(self):
        units = read_table(self.root / "arms.toml").units
        for unit, takes in zip(units, (10, 4, 20, 90, 5, 8)):
            unit.takes = takes
        self.assertEqual(
            [(begin, end, gpu, units.index(unit)) for begin, end, gpu, unit in schedule(units, 2, 40)],
            [(0, 10, 0, 0), (0, 4, 1, 1), (4, 24, 1, 2), (10, 15, 0, 4), (15, 23, 0, 5)],
        )

    def test_wrong_tables_are_refused(self):
        for old, new, message in (
            (
                "rollouts = 96",
                "rollouts = 97",
                "arms.toml: arms.hrd: compute.rollouts: expected a multiple of 8",
            ),
            ("rollouts = 96", "", "expected one of rollouts, seconds and steps"),
            ("rollouts = 96", "rollouts = -8", "expected a number above 0"),
            ('base = "base.toml"', 'bass = "x"', "arms.toml has no key 'bass'; it has arms, assets, base,"),
            ("seeds = [1, 2]", 'seeds = "all"', 'seeds: expected list, got "all"'),
            ('train = "none"', 'train = "ppo"', "expected one of rl, sft, none"),
            (
                'evaluations = ["alone", "search"]',
                'evaluations = ["other"]',
                "expected one of alone, search, compiler",
            ),
            ('program = "search"', 'program = "search"\nanswer = "greedy"', "a search's is its best"),
            (
                'program = "search"',
                'program = "search"\nlarge = 1',
                "large: a search takes small tasks alone",
            ),
            ("samples = 2", 'answer = "best"', "expected at least 1, of which the best is taken, got 0"),
            ("differences.rl", 'without = ["rl.clip"]\ndifferences.rl', "the base has no 'rl.clip'"),
            ('[["hrd", "start"]', '[["hrd", "stat"]', 'got "stat"'),
            ('name = "start"', 'name = "hrd"', "two are called hrd"),
        ):
            self.arms(ARMS.replace(old, new))
            with self.assertRaises(Wrong) as caught:
                read_table(self.root / "arms.toml")
            self.assertIn(message, str(caught.exception), (old, new))

    def test_large_tasks_come_behind_the_small_ones_of_a_level(self):
        self.arms(ARMS.replace("samples = 2", "samples = 2\nlarge = 2", 1))
        alone = read_table(self.root / "arms.toml").arms[0].units[0].evaluations[0]
        alone = dataclasses.replace(alone, tasks=str(self.root / "of_both"))
        (self.root / "of_both").mkdir()
        for level in alone.levels:
            (self.root / "of_both" / f"level{level}.jsonl").write_text(
                "".join(json.dumps({"code": f"task {i}"}) + "\n" for i in range(alone.count))
            )
        with self.assertRaisesRegex(
            Wrong, r"-large.jsonl: expected 2 tasks, got 0: `ablation.py tasks` makes them"
        ):
            list(task_files(alone))
        for level in alone.levels:
            (self.root / "of_both" / f"level{level}-large.jsonl").write_text(
                "".join(json.dumps({"code": f"large {i}"}) + "\n" for i in range(3))
            )
        found = dict(task_files(alone))
        self.assertEqual(len(found), len(alone.levels) * (alone.count + 2))
        self.assertEqual(
            (found[f"L{alone.levels[-1]}_0000"], found[f"L{alone.levels[-1]}_large0001"]),
            ("task 0", "large 1"),
        )

    def test_another_objective_leaves_the_others_keys_out(self):
        base = BASE.replace(
            'objective = "grpo"', 'objective = "hrd"\nalpha = 0.2\nclip = 0.1\nuniform_reward = true'
        )
        (self.root / "base.toml").write_text(base)
        self.arms(
            ARMS.replace(
                "seeds = [1, 2]",
                'seeds = [1, 2]\nwithout = ["rl.uniform_reward", "rl.speedup_limit"]\ndifferences.rl = { clip'
                " = 0.3 }",
            ).replace(
                'name = "hrd"',
                'name = "grpo"\ndifferences.rl = { objective = "grpo" }\n[[arms]]\nname ='
                ' "drpo"\ndifferences.rl = { objective = "drpo", tau = 2 }\n[[arms]]\nname = "hrd"',
            )
        )
        own = {
            arm.name: {
                key: value
                for key, value in arm.units[0].run["rl"].items()
                if key in ("alpha", "clip", "tau", "uniform_reward")
            }
            for arm in read_table(self.root / "arms.toml").arms
        }
        self.assertEqual(
            {name: own[name] for name in ("start", "grpo", "drpo")},
            {"start": {"alpha": 0.2, "clip": 0.3}, "grpo": {"clip": 0.3}, "drpo": {"tau": 2}},
        )

    def test_the_real_arms_can_be_read(self):
        table = read_table(HERE / "arms.toml")
        units = [arm.units[0] for arm in table.arms]
        self.assertEqual({str(unit.compute) for unit in units if unit.program == "rl"}, {"120 seconds"})
        self.assertEqual(
            {
                (unit.run["schedule"]["kind"], unit.run["schedule"]["seconds"])
                for unit in units
                if unit.program == "rl"
            },
            {("cosine", 120)},
        )
        first = "sft compiler best hrd uniform grpo drpo tempted unruled levels learnt plans no_plans".split()
        first.append("search")
        self.assertEqual(
            [unit.name for unit in table.units][: len(first) + 1],
            [*(f"{arm}/seed-1" for arm in first), "best/seed-2"],
        )
        in_a_run = [unit.name for *_, unit in schedule(table.units, 2, 1480)]
        self.assertEqual(in_a_run[: len(first)], [f"{arm}/seed-1" for arm in first])  # a whole table
        self.assertEqual({unit.run["schedule"]["steps"] for unit in units if unit.program == "sft"}, {900})
        self.assertEqual(
            {
                unit.run["data"]["global_batch_size"] * unit.run["data"]["sequence_length"]
                for unit in units
                if unit.program == "sft"
            },
            {1 << 18},
        )
        self.assertIn("rule_reward = false", next(unit for unit in units if unit.arm == "unruled").run_file())
        self.assertEqual(
            {
                unit.arm: set(unit.run["rl"]) & {"alpha", "baseline"}
                for unit in units
                if unit.arm in ("hrd", "grpo", "drpo")
            },
            {"hrd": {"alpha", "baseline"}, "grpo": {"baseline"}, "drpo": set()},
        )
        self.assertEqual(
            {unit.arm for unit in units if unit.program == "rl" and "sft_mix" not in unit.run},
            {"best_alone", "hrd_alone"},
        )
        # Of two arms that are compared, what is not named differs in nothing.
        tempted, unruled = (
            next(unit.run for unit in units if unit.arm == arm) for arm in ("tempted", "unruled")
        )
        self.assertEqual(
            {**unruled, "name": "", "rl": {**unruled["rl"], "rule_reward": True}},
            {**tempted, "name": "", "rl": {**tempted["rl"], "rule_reward": True}},
        )
        self.assertEqual(
            {
                unit.arm
                for unit in units
                if unit.program == "rl" and "plan_incorrect_penalty" in unit.run["rl"]
            },
            {"best", "best_alone"},
        )
        ships = tomllib.loads((HERE.parents[1] / "runs/small-rl.toml").read_text())["rl"]
        self.assertEqual(
            {
                key: value
                for key, value in next(unit.run["rl"] for unit in units if unit.arm == "best").items()
                if key in ("objective", "speedup_limit", "updates", "samples")
            },
            {key: ships[key] for key in ("objective", "speedup_limit", "updates", "samples")},
        )
        self.assertEqual(
            {
                arm: unit.run["rl"]["objective"]
                for unit in units
                for arm in [unit.arm]
                if arm in ("best", "best_alone", "uniform", "levels")
            },
            {"best": "best", "best_alone": "best", "uniform": "hrd", "levels": "hrd"},
        )


if __name__ == "__main__":
    unittest.main()
