"""What dies under `nereid verify` is made again: no verdict is lost, and none changes.

    tests/fault_injection_test.py PATH/TO/nereid            without what is slow
    tests/fault_injection_test.py PATH/TO/nereid --all

Workers are killed with SIGKILL, one kind at a time, while a batch runs: the process that traces and its
children, the replay server and its workers. A disk that is full and a reader that goes away end a batch with
an error, and what was said stays.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from processes import descendants, seconds_of, soon_enough

ALL = "--all" in sys.argv and not sys.argv.remove("--all")
NEREID = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples" / "layer_norm_gelu"
EXPECTED = {"honest": "Verified", "wrong": "Mismatch", "cheating": "Disallowed"}


def pairs_file(folder, count):
    path = folder / "pairs.jsonl"
    with open(path, "w") as file:
        for i in range(count):
            for name in EXPECTED:
                # Each text another, so that nothing is remembered.
                source = (EXAMPLES / f"{name}.py").read_text() + f"\n# {i}\n"
                file.write(
                    json.dumps(
                        {
                            "id": f"{name}-{i}",
                            "reference": str(EXAMPLES / "reference.py"),
                            "candidate_source": source,
                        }
                    )
                    + "\n"
                )
    return path


class Killed(unittest.TestCase):
    def batch_while_killing(self, wanted, kills, count=4):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            output = folder / "out.jsonl"
            process = subprocess.Popen(
                [
                    NEREID,
                    "verify",
                    "--batch",
                    pairs_file(folder, count),
                    "-o",
                    output,
                    "--device",
                    "cpu",
                    "--jobs",
                    "2",
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            killed = []

            def kill():
                chance = random.Random(7)
                while process.poll() is None and len(killed) < kills:
                    time.sleep(0.15)
                    if not output.exists() or not output.read_text():
                        continue  # until the first verdict everything is still being warmed
                    victims = [pid for pid, words in descendants(process.pid).items() if wanted(words)]
                    if victims:
                        victim = chance.choice(sorted(victims))
                        try:
                            os.kill(victim, signal.SIGKILL)
                            killed.append(victim)
                        except ProcessLookupError:
                            pass
                        time.sleep(0.5)

            killer = threading.Thread(target=kill)
            killer.start()
            _, errors = process.communicate(timeout=1200)
            killer.join()
            verdicts = {v["id"]: v["verdict"] for v in map(json.loads, output.read_text().splitlines())}
            self.assertGreater(len(killed), 0, "nothing was killed: the test says nothing")
            self.assertEqual(len(verdicts), 3 * count, errors)
            wrong = {
                id: word for id, word in verdicts.items() if word not in (EXPECTED[id.split("-")[0]], "Error")
            }
            self.assertEqual(wrong, {}, errors)
            # A fault is tried again before it is reported: errors are rare even so.
            reported = sum(word == "Error" for word in verdicts.values())
            self.assertLessEqual(reported, len(killed), errors)
            self.assertEqual(process.returncode, 3 if reported else 0, errors)
            return reported, len(killed)

    def test_the_tracing_process(self):
        self.batch_while_killing(lambda words: "nereid._worker.zygote" in words, kills=1)

    def test_the_replay_processes(self):
        self.batch_while_killing(lambda words: "nereid-replay" in words, kills=2)


class Interrupted(unittest.TestCase):
    def test_a_replay_without_end_is_left_at_once(self):
        tests = pathlib.Path(__file__).resolve().parent
        process = subprocess.Popen(
            [
                NEREID,
                "verify",
                tests / "tasks/relu.py",
                tests / "hostile/loop_in_kernel_huge_bound.py",
                "--time-limit",
                "200",
                "--device",
                "cpu",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def busy():  # a worker that has computed for as long as no honest replay of this task does
            return any(
                "nereid-replay" in words and seconds_of(pid) > 1
                for pid, words in descendants(process.pid).items()
            )

        while process.poll() is None and not busy():
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        started = time.time()
        _, errors = process.communicate(timeout=1200)
        self.assertEqual((process.returncode, errors), (130, "nereid: interrupted\n"))
        self.assertLess(time.time() - started, 150, "it waited for the time limit")


class Obeyed(unittest.TestCase):
    """SIGINT on a machine with four busy processes a core: obeyed within 5 s, and what was judged is kept."""

    SECONDS = 5
    TASKS = (
        "relu",
        "softmax",
        "matmul",
        "layer_norm",
        "gelu",
        "row_sum",
        "cumsum",
        "argmax",
        "silu",
        "rms_norm",
        "clamp",
        "mlp",
    )

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.hogs = []

    def tearDown(self):
        self.make_idle()
        self.temporary.cleanup()

    def make_busy(self):
        """Only now, so that what is interrupted has not been slow to get there."""
        for _ in range(4 * os.cpu_count()):
            self.hogs.append(subprocess.Popen(["sh", "-c", "while :; do :; done"]))
        while min(seconds_of(hog.pid) for hog in self.hogs) < 0.03:
            time.sleep(0.02)

    def make_idle(self):
        while self.hogs:
            hog = self.hogs.pop()
            hog.kill()
            hog.wait()

    def interrupt(self, command, when, kept, stop=None, signals=1):
        process = subprocess.Popen(
            [NEREID, *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(
                os.environ,
                NEREID_STORE=str(self.folder / "store.db"),
                NEREID_CACHE=str(self.folder / "cache"),
            ),
        )
        started = time.time()
        while process.poll() is None and not when(process.pid) and time.time() - started < 600:
            time.sleep(0.05)
        self.assertIsNone(process.poll(), "it ended before it was interrupted: the test says nothing")
        self.make_busy()
        stopped = [
            pid
            for pid, words in descendants(process.pid).items()
            if stop is not None and stop in words and "nereid-jail" not in words
        ]  # the launcher is ours
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        before = kept()
        started = time.time()
        for number in range(signals):
            time.sleep(0.02 if number > 0 else 0)
            process.send_signal(signal.SIGINT)
        # Also until no process holds its stderr open.
        _, errors = process.communicate(timeout=1200)
        seconds = time.time() - started
        in_time = soon_enough(seconds, self.SECONDS, load=5)  # our busy processes and it
        self.make_idle()
        left = stopped
        self.assertEqual(process.returncode, 130, errors)
        if signals == 1:
            self.assertIn("interrupted", errors)
        self.assertTrue(in_time, f"{seconds} s: {errors}")
        after = kept()
        self.assertEqual(after[: len(before)], before)
        deadline = time.time() + 200
        while left and time.time() < deadline:
            time.sleep(0.1)
            left = [pid for pid in left if "Z" not in state_of(pid)]
        self.assertEqual(left, [], "stopped processes remain")

    def results(self):
        path = self.folder / "out" / "results.jsonl"
        return (
            [json.loads(line) for line in path.read_text().splitlines(True) if line.endswith("\n")]
            if path.exists()
            else []
        )

    def eval_command(self):
        tests = pathlib.Path(__file__).resolve().parent
        tasks = self.folder / "tasks"
        tasks.mkdir()
        for name in self.TASKS:
            (tasks / f"{name}.py").write_text((tests / "tasks" / f"{name}.py").read_text())
        return [
            "eval",
            tasks,
            "-o",
            self.folder / "out",
            "--proposer",
            "compiler",
            "--once",
            "--device",
            "cpu",
            "--jobs",
            "3",
            "--budget",
            "300",
        ]

    def busy(self, words, seconds):
        return lambda root: any(
            words in line and seconds_of(pid) > seconds for pid, line in descendants(root).items()
        )

    # By default a replay worker that does not answer stands for one that does, and for a tracer.
    @unittest.skipUnless(ALL, "slow")
    def test_eval_while_it_replays(self):
        self.interrupt(self.eval_command(), lambda root: len(self.results()) > 0, self.results)

    def test_eval_while_the_tracer_warms_up(self):
        self.interrupt(self.eval_command(), self.busy("nereid._worker.zygote", 0.5), self.results)

    def test_eval_whose_replay_worker_does_not_answer(self):
        self.interrupt(
            self.eval_command(), lambda root: len(self.results()) > 0, self.results, stop="nereid-replay"
        )

    def test_eval_that_is_interrupted_twice_and_whose_replay_worker_does_not_answer(self):
        """The second signal ends it without destructors: what is stopped ends with it all the same."""
        self.interrupt(
            self.eval_command(),
            lambda root: len(self.results()) > 0,
            self.results,
            stop="nereid-replay",
            signals=2,
        )

    @unittest.skipUnless(ALL, "slow")
    def test_eval_whose_tracer_does_not_answer(self):
        self.interrupt(
            self.eval_command(),
            lambda root: len(self.results()) > 0,
            self.results,
            stop="nereid._worker.zygote",
        )

    def test_a_batch_while_it_compiles(self):
        output = self.folder / "out.jsonl"

        def kept():
            return (
                [json.loads(line) for line in output.read_text().splitlines(True) if line.endswith("\n")]
                if output.exists()
                else []
            )

        command = [
            "verify",
            "--batch",
            pairs_file(self.folder, 6),
            "-o",
            output,
            "--device",
            "cpu",
            "--jobs",
            "2",
            "--compile-for",
            "90",
        ]
        self.interrupt(
            command,
            lambda root: (
                any("nereid._compiler.kernel_compiler" in words for words in descendants(root).values())
                and kept()
            ),
            kept,
        )


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


class Full(unittest.TestCase):
    WARM = {**os.environ, "NEREID_KEEP_WARM": "60"}  # no worker dies here

    def test_a_full_disk_is_an_error_and_keeps_what_was_said(self):
        with tempfile.TemporaryDirectory() as name:
            answer = subprocess.run(
                [
                    NEREID,
                    "verify",
                    "--batch",
                    pairs_file(pathlib.Path(name), 1),
                    "-o",
                    "/dev/full",
                    "--device",
                    "cpu",
                ],
                capture_output=True,
                text=True,
                timeout=1200,
                env=self.WARM,
            )
            self.assertIn(answer.returncode, (2, 3), answer.stderr)
            self.assertIn("/dev/full", answer.stderr)

    def test_a_reader_that_goes_away_ends_it(self):
        with tempfile.TemporaryDirectory() as name:
            process = subprocess.Popen(
                [NEREID, "verify", "--batch", pairs_file(pathlib.Path(name), 20), "--device", "cpu"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=self.WARM,
            )
            first = process.stdout.readline()
            self.assertIn(json.loads(first)["verdict"], EXPECTED.values())
            process.stdout.close()
            started = time.time()
            errors = process.stderr.read()
            process.stderr.close()
            process.wait(600)
            self.assertLess(time.time() - started, 200)
            self.assertNotEqual(process.returncode, 0, errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
