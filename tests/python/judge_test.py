"""`nereid.verify` and `nereid.Judge`: verdicts by the real judge on the CPU, from threads, from asyncio, and
where things go wrong.

tests/python/judge_test.py PATH/TO/nereid
"""

import asyncio
import gc
import os
import pathlib
import pickle
import pydoc
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

if len(sys.argv) > 1:
    os.environ["NEREID_PROGRAM"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "python"), str(TESTS)]

import nereid  # noqa: E402
import processes  # noqa: E402

REFERENCE, RELU = TESTS / "tasks/relu.py", TESTS / "honest/relu_one_kernel.py"
SOURCE, WRONG = RELU.read_text(), RELU.read_text().replace("0.0", "0.25")
FAST = dict(device="cpu", trials=1, seed=3)


def answer(source, before="I fuse all of it."):
    return f"{before}\n```python\n{source}\n```\nDone."


class Importing(unittest.TestCase):
    def test_it_imports_no_torch(self):
        code = (
            "import sys, nereid, nereid.rewards; nereid.Judge; nereid.verify; assert 'torch' not in"
            " sys.modules; print(nereid.__all__)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": sys.path[0]},
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_help_shows_all_names(self):
        text = pydoc.render_doc(nereid, renderer=pydoc.plaintext)  # what help(nereid) shows
        for name in nereid.__all__:
            self.assertIn(name, text)
            self.assertTrue(getattr(nereid, name).__doc__, name)

    def test_an_unknown_name_is_an_attribute_error(self):
        with self.assertRaisesRegex(AttributeError, "verifier"):
            nereid.verifier


class Verify(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.judge = nereid.Judge(jobs=2, **FAST)

    @classmethod
    def tearDownClass(cls):
        cls.judge.close()

    def test_one_call_with_paths(self):
        verdict = nereid.verify(REFERENCE, str(RELU), **FAST)
        self.assertTrue(verdict.verified, verdict)
        self.assertEqual((verdict.seed, verdict.rule, verdict.coverage["kernels"]), (3, None, 1))
        self.assertGreater(verdict.seconds, 0)
        with self.assertRaises(AttributeError):
            verdict.seed = 4

    def test_text_and_paths_get_the_same_verdict(self):
        of_paths = self.judge.verify(REFERENCE, RELU)
        of_text = self.judge.verify(REFERENCE.read_text(), SOURCE)
        self.assertEqual((of_paths.verdict, of_paths.reason), (of_text.verdict, of_text.reason))

    def test_a_wrong_kernel_is_a_verdict(self):
        verdict = self.judge.verify(REFERENCE, WRONG)
        self.assertEqual((verdict.verdict, verdict.verified), ("Mismatch", False))
        self.assertTrue(verdict.evidence[0].sentence)
        self.assertIn("Mismatch: ", str(verdict))

    def test_what_is_no_kernel_is_a_verdict(self):
        for candidate, kind in (
            ("def (\n", "Malformed"),
            ("\n", "Malformed"),
            (SOURCE.replace("relu_kernel[", "torch.relu_[", 1), None),
        ):
            verdict = self.judge.verify(REFERENCE, candidate)
            self.assertFalse(verdict.verified)
            self.assertIn(verdict.verdict, [kind] if kind else ["Malformed", "Untraceable", "CompileFailed"])

    def test_pickles(self):
        verdict = self.judge.verify(REFERENCE, RELU)
        self.assertEqual(pickle.loads(pickle.dumps(verdict)), verdict)

    def test_what_the_caller_gets_wrong(self):
        for reference, candidate, options, says in (
            ("nowhere.py", SOURCE, {}, "nowhere.py: no such file"),
            (REFERENCE, "nowhere.py", {}, "candidate: .*nowhere.py"),
            ("import torch\n", SOURCE, {}, "Model"),
            (
                (
                    "class Model:\n    pass\n\n\ndef get_inputs():\n    raise ValueError('empty')\n\n\ndef"
                    " get_init_inputs():\n    return []\n"
                ),
                SOURCE,
                {},
                ".",
            ),
            (REFERENCE, SOURCE, {"polcy": "strict"}, "polcy.*policy"),
            (REFERENCE, SOURCE, {"policy": "strictest"}, "policy"),
            (REFERENCE, SOURCE, {"trials": 0}, "trials"),
            (REFERENCE, 7, {}, "int"),
        ):
            with self.subTest(says=says), self.assertRaisesRegex(nereid.InputError, says):
                self.judge.verify(reference, candidate, **options)
        with self.assertRaisesRegex(nereid.InputError, "jobs"):
            nereid.Judge(jobs=0)
        with self.assertRaisesRegex(nereid.InputError, "polcy"):
            nereid.Judge(polcy="strict")

    def test_the_policy_of_one_call(self):
        eager = (
            "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return"
            " torch.relu(x)\n"
        )
        self.assertEqual(self.judge.verify(REFERENCE, eager, policy="strict").verdict, "Disallowed")

    def test_threads(self):
        found = [None] * 8
        sources = [SOURCE if i % 2 == 0 else WRONG for i in range(8)]

        def work(i):
            found[i] = self.judge.verify(REFERENCE, sources[i]).verdict

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        self.assertEqual(found, ["Verified", "Mismatch"] * 4)

    def test_asyncio(self):
        async def work():
            pairs = [self.judge.averify(REFERENCE, source) for source in (SOURCE, WRONG, SOURCE)]
            cancelled = asyncio.ensure_future(self.judge.averify(REFERENCE, SOURCE))
            await asyncio.sleep(0)
            cancelled.cancel()
            return [verdict.verdict for verdict in await asyncio.gather(*pairs)]

        self.assertEqual(asyncio.run(work()), ["Verified", "Mismatch", "Verified"])


class Faults(unittest.TestCase):
    """A fault of the judge is an exception or an error, never a low reward."""

    def test_a_process_that_is_killed_is_started_anew(self):
        with nereid.Judge(jobs=1, **FAST) as judge:
            self.assertTrue(judge.verify(REFERENCE, SOURCE).verified)
            future = judge.submit(REFERENCE, SOURCE.replace("BLOCK", "SIZE"))
            os.kill(judge._process._process.pid, signal.SIGKILL)
            self.assertTrue(future.result(60).verified)
            self.assertTrue(judge.verify(REFERENCE, SOURCE).verified)

    def test_one_that_always_dies_is_a_nereid_error(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "dies"
            program.write_text("#!/bin/sh\necho 'the disk is full' >&2\nexit 3\n")
            program.chmod(0o755)
            before = os.environ.get("NEREID_PROGRAM")
            os.environ["NEREID_PROGRAM"] = str(program)
            try:
                with nereid.Judge(jobs=1) as judge:
                    with self.assertRaisesRegex(nereid.NereidError, "the disk is full"):
                        judge.verify(REFERENCE, SOURCE)
                    (reward,) = judge.rewards(["p"], [answer(SOURCE)], [REFERENCE])
                os.environ["NEREID_PROGRAM"] = folder + "/nothing"
                with self.assertRaisesRegex(nereid.NereidError, "nothing"):
                    nereid.verify(REFERENCE, SOURCE)
            finally:
                (
                    os.environ.pop("NEREID_PROGRAM")
                    if before is None
                    else os.environ.update(NEREID_PROGRAM=before)
                )
        self.assertEqual((reward.status, reward.reward, reward.verdict), ("error", None, None))
        self.assertIn("the disk is full", reward.error)

    def test_closing_and_time_limits(self):
        judge = nereid.Judge(jobs=1, **FAST)
        with self.assertRaisesRegex(nereid.NereidError, "0.001 s"):
            judge.verify(REFERENCE, SOURCE, timeout=0.001)
        future = judge.submit(REFERENCE, SOURCE)
        judge.close()
        self.assertIsInstance(future.exception(20), (nereid.NereidError, type(None)))
        with self.assertRaisesRegex(nereid.NereidError, "closed"):
            judge.verify(REFERENCE, SOURCE)

    def test_a_judge_that_nothing_refers_to_ends(self):
        def judges():
            below = processes.descendants(os.getpid())
            return [pid for pid, line in below.items() if "verify --batch" in line and "--jobs 3" in line]

        holder = {"judge": nereid.Judge(jobs=3, device="cpu", trials=1)}
        holder["itself"] = holder  # found by the collector alone
        future = holder["judge"].submit(REFERENCE, RELU)
        self.assertEqual(len(judges()), 1)
        holder = None
        gc.collect()
        self.assertTrue(future.result(120).verified)
        end = time.monotonic() + 200
        while judges() and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(judges(), [])

    def test_a_copy_and_a_forked_child_judge_too(self):
        with nereid.Judge(jobs=1, **FAST) as judge:
            judge.verify(REFERENCE, SOURCE)
            with pickle.loads(pickle.dumps(judge)) as copied:
                self.assertTrue(copied.verify(REFERENCE, SOURCE).verified)
            if (child := os.fork()) == 0:
                os._exit(0 if judge.verify(REFERENCE, SOURCE).verified else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue(judge.verify(REFERENCE, SOURCE).verified)


class Commands(unittest.TestCase):
    def test_trace_lower_and_synth(self):
        trace = nereid.trace(REFERENCE)
        self.assertTrue(
            any(
                step.get("call", "").startswith("aten::relu")
                for phase in trace["phases"]
                for step in phase["steps"]
            ),
            trace["phases"],
        )
        source = nereid.lower(REFERENCE.read_text())
        self.assertTrue(nereid.verify(REFERENCE, source, policy="strict", **FAST).verified)
        programs = nereid.synth(2, operators=2, seed=4)
        self.assertEqual(len(programs), 2)
        self.assertEqual(programs, nereid.synth(2, operators=2, seed=4))
        self.assertIn("class Model", programs[0]["code"])
        with self.assertRaises(nereid.InputError):
            nereid.trace("import torch\n")
        with self.assertRaises(nereid.InputError):
            nereid.lower("nowhere.py")


if __name__ == "__main__":
    unittest.main()
