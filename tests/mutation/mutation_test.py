"""`nereid mutate` as a command: a slice of the verdict's kill rate, resumption, saved traces, what it
refuses.

tests/mutation/mutation_test.py PATH/TO/nereid
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

NEREID = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()
HONEST = pathlib.Path(__file__).resolve().parent.parent / "honest"
# Of every kind that a kernel may be of, and quick: pointwise, reductions, products, atomics, integers,
# configurations.
SLICE = [
    "gelu_erf",
    "layer_norm_two_kernels",
    "softmax_online",
    "linear_gelu_fused",
    "cross_entropy_atomic",
    "matmul_autotuned",
]


def mutate(*arguments, check=None, **more):
    done = subprocess.run(
        [NEREID, "mutate", *map(str, arguments)], capture_output=True, text=True, timeout=1200, **more
    )
    if check is not None:
        assert done.returncode in check, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


class Mutation(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.out = self.folder / "out"

    def tearDown(self):
        self.temporary.cleanup()

    def results(self):
        return [json.loads(line) for line in (self.out / "results.jsonl").read_text().splitlines()[1:]]

    def test_the_verdict_kills_a_slice_and_refuses_nothing_honest(self):
        files = [HONEST / f"{name}.py" for name in SLICE]
        saved, page = self.folder / "subjects", self.folder / "page.html"
        common = ["--each", 16, "--seed", 7, "--jobs", 2, "-o", self.out, "--json"]
        first = mutate(*files, *common, "--limit", 12, "--save", saved, check=[0, 1])
        report = json.loads(first.stdout)
        self.assertEqual(report["all"]["mutants"], 12)
        self.assertGreater(report["left"], 60)
        # From the traces alone, where the first run stopped: no mutant is judged twice.
        environment = dict(os.environ, NEREID_PYTHON="/bin/false")
        second = mutate(saved, *common, "--limit", 30, "--page", page, check=[0, 1], env=environment)
        report = json.loads(second.stdout)
        self.assertEqual(report["all"]["mutants"], 42)
        ids = [line["id"] for line in self.results()]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(report["honest_refused"], [])
        self.assertEqual(report["all"]["errors"], 0)
        self.assertGreater(report["all"]["witnessed"], 20)
        self.assertGreaterEqual(len(report["classes"]), 10)
        self.assertEqual([s["what"] for s in report["survivors"]], [])
        # What is witnessed is killed by the verdict; KernelBench's check lets some of it pass.
        self.assertGreater(report["all"]["kernelbench_kills"], 5)
        self.assertGreater(report["all"]["kernelbench_passes"], 0)
        self.assertIn("Survivors", page.read_text())

    def test_a_line_that_a_kill_cut_short_is_judged_again(self):
        file = HONEST / "gelu_erf.py"
        common = [file, "--each", 3, "--rewrites", 0, "--jobs", 1, "-o", self.out]
        mutate(*common, check=[0, 1])
        path = self.out / "results.jsonl"
        whole = path.read_text()
        path.write_text(whole[:-40])
        mutate(*common, check=[0, 1])

        def content(text):
            return sorted((l["id"], l["verdict"]) for l in map(json.loads, text.splitlines()[1:]))

        self.assertEqual(content(path.read_text()), content(whole))

    def test_an_interrupt_keeps_what_was_judged(self):
        process = subprocess.Popen(
            [NEREID, "mutate", HONEST / "gelu_erf.py", "--jobs", "1", "-o", self.out],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        path, end = self.out / "results.jsonl", time.monotonic() + 600
        while time.monotonic() < end and not (path.exists() and len(path.read_text().splitlines()) > 7):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=1200)
        self.assertEqual(process.returncode, 130)
        self.assertGreater(len(self.results()), 5)
        self.assertTrue((self.out / "report.json").exists())

    def test_a_time_budget_ends_what_is_under_way(self):
        slow = [HONEST / f"{name}.py" for name in SLICE]
        begin = time.monotonic()
        budget = ["--seconds", 4, "--each", 200, "--jobs", 2, "-o", self.out, "--json"]
        done = mutate(*slow, *budget, check=[0, 1])
        self.assertLess(time.monotonic() - begin, 4 + 100)
        report = json.loads(done.stdout)
        self.assertGreater(report["left"] + report["sources_left"], 0)
        self.assertEqual(report["all"]["errors"], 0)  # what was cut short is left, not judged

    def test_what_it_refuses(self):
        task = HONEST.parent / "tasks" / "layer_norm.py"
        done = mutate(task, "-o", self.out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("reference: PATH", done.stderr)
        self.assertEqual(mutate("-o", self.out).returncode, 2)
        self.assertEqual(mutate(HONEST / "gelu_erf.py", "-o", self.out, "--fault", "typo").returncode, 2)
        mutate(HONEST / "gelu_erf.py", "-o", self.out, "--each", 0, "--rewrites", 0, check=[0])
        done = mutate(HONEST, "-o", self.out, "--only", "honest/typo")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no candidate is named 'honest/typo'", done.stderr)
        done = mutate(HONEST / "gelu_erf.py", "-o", self.out, "--each", 1)
        self.assertEqual(done.returncode, 2)
        self.assertIn("other settings", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
