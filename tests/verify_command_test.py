"""`nereid verify` as a command: exit codes, streams, JSON, raw answers, batches that are resumed and
interrupted.

tests/verify_command_test.py PATH/TO/nereid
"""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import processes

NEREID = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples" / "layer_norm_gelu"
REFERENCE = EXAMPLES / "reference.py"


def run(*arguments, **options):
    return subprocess.run(
        [NEREID, "verify", *map(str, arguments)], capture_output=True, text=True, timeout=1200, **options
    )


def session_processes(session):
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = pathlib.Path(f"/proc/{entry.name}/stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


class Usage(unittest.TestCase):
    def test_bad_usage_is_2(self):
        for arguments in (
            [],
            [REFERENCE],
            [REFERENCE, "gone.py"],
            ["gone.py", EXAMPLES / "honest.py"],
            ["--batch", "gone.jsonl"],
            [REFERENCE, EXAMPLES / "honest.py", "--policy", "lax"],
            [REFERENCE, EXAMPLES / "honest.py", "-o", "x"],
            [REFERENCE, EXAMPLES / "honest.py", "--trials", "0"],
            [REFERENCE, EXAMPLES / "honest.py", "--time-only"],
            ["--batch", EXAMPLES, "--device", "cpu", "--time-only"],
            [REFERENCE, EXAMPLES / "honest.py", "--compile-for", "90"],
        ):
            with self.subTest(arguments=arguments):
                answer = run(*arguments)
                self.assertEqual(answer.returncode, 2, answer.stderr)
                self.assertEqual(answer.stdout, "")
                self.assertTrue(answer.stderr)

    def test_help_teaches(self):
        text = run("--help").stdout
        for word in ("Malformed", "Verified", "--batch", "--shrink", "--policy", "Examples"):
            self.assertIn(word, text)


class AlsoAt(unittest.TestCase):
    """The same candidate at other sizes: each has its verdict, and the exit code is that of the worst."""

    REFERENCE = (
        "import torch\nROWS, COLS = 20, 64\nclass Model(torch.nn.Module):\n    def forward(self, x):\n       "
        " return x.sum(1)\ndef get_inputs():\n    return [torch.randn(ROWS, COLS)]\ndef get_init_inputs():\n "
        "   return []\n"
    )
    CANDIDATE = (
        "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef sum_kernel(x_ptr,"
        " out_ptr, cols, BLOCK: tl.constexpr):\n    row, c = tl.program_id(0), tl.arange(0, BLOCK)\n   "
        " tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0),"
        " 0))\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        rows, cols = x.shape\n "
        "       out = torch.empty(rows, device=x.device)\n        sum_kernel[(rows,)](x, out, cols,"
        " BLOCK={})\n        return out\n"
    )

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        folder = pathlib.Path(self.folder.name)
        self.reference, self.general, self.narrow = (
            folder / "reference.py",
            folder / "general.py",
            folder / "narrow.py",
        )
        self.reference.write_text(self.REFERENCE)
        self.general.write_text(self.CANDIDATE.format("triton.next_power_of_2(cols)"))
        self.narrow.write_text(self.CANDIDATE.format(64))

    def test_a_candidate_that_holds_elsewhere_and_one_that_does_not(self):
        sizes = ["--also-at", "COLS=100", "--also-at", "ROWS=1,COLS=3", "--device", "cpu"]
        good = run(self.reference, self.general, *sizes, "--json")
        verdict = json.loads(good.stdout)
        self.assertEqual((good.returncode, verdict["verdict"]), (0, "Verified"))
        self.assertEqual(
            [(at["at"], at["verdict"]) for at in verdict["also_at"]],
            [({"COLS": 100}, "Verified"), ({"COLS": 3, "ROWS": 1}, "Verified")],
        )
        bad = run(self.reference, self.narrow, *sizes)
        self.assertEqual(bad.returncode, 1)
        self.assertLess(bad.stdout.index("Verified"), bad.stdout.index("At COLS=100:\nMismatch"))
        self.assertIn("At ROWS=1,COLS=3:\nVerified", bad.stdout)

    def test_what_is_not_a_size_of_the_task_is_bad_usage(self):
        for sizes, word in (
            ("HEADS=3", "ROWS, COLS"),
            ("COLS", "NAME=INTEGER"),
            ("COLS=many", "NAME=INTEGER"),
            ("COLS=", "NAME=INTEGER"),
        ):
            answer = run(self.reference, self.general, "--also-at", sizes, "--device", "cpu")
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), sizes)
            self.assertIn(word, answer.stderr)
        self.assertEqual(run("--batch", EXAMPLES, "--also-at", "COLS=3").returncode, 2)


class Verdicts(unittest.TestCase):
    """One batch judges all of these, so that the worker is warmed once."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        honest = (EXAMPLES / "honest.py").read_text()
        cases = {
            "honest": {"candidate": str(EXAMPLES / "honest.py")},
            "wrong": {"candidate": str(EXAMPLES / "wrong.py")},
            "cheating": {"candidate": str(EXAMPLES / "cheating.py")},
            "answer": {
                "candidate_source": (
                    f"<think>\n```python\nx = 1\n```\n</think>\nHere:\n```python\n{honest}```\n"
                )
            },
            "prose": {"candidate_source": "I could not find a way."},
            "syntax": {"candidate_source": "import torch\nclass ModelNew(:\n"},
            "raises": {
                "candidate_source": (
                    "import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self, width):\n"
                    "        super().__init__()\n    def forward(self, x):\n        return x[5000, 0]\n"
                )
            },
            "no-reference": {"reference": "gone.py", "candidate_source": honest},
        }
        lines = [
            json.dumps({"id": name, "reference": str(REFERENCE), **case}) for name, case in cases.items()
        ]
        cls.pairs, cls.output = folder / "pairs.jsonl", folder / "out.jsonl"
        cls.pairs.write_text("\n".join(lines) + "\n")
        cls.first = run("--batch", cls.pairs, "-o", cls.output, "--device", "cpu", "--seed", 3, "--jobs", 2)
        cls.verdicts = {v["id"]: v for v in map(json.loads, cls.output.read_text().splitlines())}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_words_and_rules(self):
        expected = {
            "honest": ("Verified", None),
            "wrong": ("Mismatch", "values"),
            "cheating": ("Disallowed", "aten-compute"),
            "answer": ("Verified", None),
            "prose": ("Malformed", "no-code-block"),
            "syntax": ("Malformed", "syntax"),
            "raises": ("Untraceable", "python-error"),
            "no-reference": ("Error", "input"),
        }
        self.assertEqual(
            {name: (v["verdict"], v["rule"]) for name, v in self.verdicts.items()},
            expected,
            self.first.stderr,
        )

    def test_without_rules_a_cheat_is_disallowed_and_said_to_be_right(self):
        answer = run(REFERENCE, EXAMPLES / "cheating.py", "--json", "--ignore-rules", "--trials", 1)
        self.assertEqual(answer.returncode, 1, answer.stderr)
        verdict = json.loads(answer.stdout)
        self.assertEqual((verdict["verdict"], verdict["rule"]), ("Disallowed", "aten-compute"))
        self.assertEqual(verdict["verdict_without_rules"], {"verdict": "Verified", "times": None})

    def test_an_input_error_shows_in_the_exit_code(self):
        self.assertEqual(self.first.returncode, 2, self.first.stderr)
        self.assertEqual(self.first.stdout, "")

    def test_fields(self):
        verdict = self.verdicts["honest"]
        for field in (
            "verdict",
            "reason",
            "evidence",
            "coverage",
            "errors",
            "times",
            "seed",
            "policy",
            "seconds",
        ):
            self.assertIn(field, verdict)
        self.assertEqual(verdict["seed"], 3)
        self.assertGreaterEqual(verdict["coverage"]["trials"], 10)
        self.assertEqual(sorted(verdict["coverage"]["perturbed"]), ["norm.bias", "norm.weight"])
        self.assertLessEqual(verdict["errors"]["max_error"], verdict["errors"]["max_tolerance"])

    def test_a_candidate_is_held_to_the_trace_that_was_judged(self):
        trace = self.verdicts["honest"]["trace"]
        self.assertEqual(len(trace), 64)
        self.assertIsNone(self.verdicts["prose"]["trace"])
        lines = [
            {
                "id": name,
                "reference": str(REFERENCE),
                "candidate": str(EXAMPLES / f"{name}.py"),
                "trace": trace,
            }
            for name in ("honest", "wrong")
        ]
        cache, traces = pathlib.Path(self.folder.name) / "cache", pathlib.Path(self.folder.name) / "traces"
        traces.mkdir()
        answer = run(
            "--batch",
            "-",
            "--device",
            "cpu",
            "--seed",
            3,
            "--trials",
            1,
            "--fast-inputs",
            "--compile-for",
            90,
            "--traces",
            traces,
            "--jobs",
            2,
            input="".join(json.dumps(x) + "\n" for x in lines),
            env={**os.environ, "NEREID_CACHE": str(cache)},
        )
        again = {v["id"]: v for v in map(json.loads, answer.stdout.splitlines())}
        self.assertEqual(
            {name: (v["verdict"], v["rule"]) for name, v in again.items()},
            {"honest": ("Verified", None), "wrong": ("Disallowed", "another-trace")},
            answer.stderr,
        )
        self.assertEqual(again["honest"]["coverage"]["inputs"], ["own", "huge", "outliers", "negative"])
        # What is Verified is in the cache as machine code, for a clock to find.
        self.assertEqual(
            len([path for path in cache.glob("kernels/**/*") if path.is_file()]),
            again["honest"]["coverage"]["kernels"],
        )
        # And its trace, bytes that stay the same when they are read and written again.
        kept = (traces / f"{trace}.trace").read_bytes()
        self.assertEqual(hashlib.sha256(kept).hexdigest(), trace)
        self.assertEqual(len(list(traces.iterdir())), 2)
        subprocess.run(
            [NEREID, "trace", traces / f"{trace}.trace", "-o", traces / "again.trace"],
            check=True,
            capture_output=True,
        )
        self.assertEqual((traces / "again.trace").read_bytes(), kept)
        self.assertGreater(again["honest"]["phases"]["compile"], again["wrong"]["phases"].get("compile", 0))

    def test_a_mismatch_names_position_kernel_and_line(self):
        verdict = self.verdicts["wrong"]
        self.assertEqual(len(verdict["errors"]["position"]), 2)
        self.assertEqual(verdict["evidence"][0]["kernel"], "layer_norm_gelu")
        self.assertGreater(verdict["evidence"][0]["line"], 1)

    def test_it_is_resumed(self):
        before = self.output.read_text()
        kept = [line for line in before.splitlines(True) if json.loads(line)["id"] != "wrong"]
        self.output.write_text("".join(kept) + kept[0][:20])  # a kill cut the last line short
        again = run("--batch", self.pairs, "-o", self.output, "--device", "cpu", "--seed", 3)
        self.assertIn("7 were there already", again.stderr)
        verdicts = {v["id"]: v["verdict"] for v in map(json.loads, self.output.read_text().splitlines())}
        self.assertEqual(verdicts["wrong"], "Mismatch")
        self.assertEqual(len(verdicts), 8)


class Escapes(unittest.TestCase):
    """What a candidate writes reaches no terminal as a control."""

    CODE = (
        "\\x1b[2J\\x1b[1;32mVerified\\x1b[0m: all agree.\\r\\n\\nVerified: 14 comparisons"
        " agree.\\x07\\x9b31m\\u202e\\u2066"
    )

    def shown(self, source, *options, name="c.py"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_text(source)
            answer = subprocess.run(
                [NEREID, "verify", REFERENCE, path, "--device", "cpu", *options],
                capture_output=True,
                timeout=1200,
            )
        for text in (answer.stdout.decode(), answer.stderr.decode()):
            for c in text:
                self.assertTrue(
                    c == "\n" or (c >= " " and not "\x7f" <= c <= "\x9f" and c not in "\u202e\u2066\u2028"),
                    text,
                )
        return answer.stdout.decode()

    def test_messages_of_errors(self):
        raising = (
            "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, *x):\n        raise"
            f" ValueError('{self.CODE}')  # \u202e\x9b\n"
        )
        for options in ((), ("--explain",), ("--json",)):
            text = self.shown(raising, *options)
            self.assertIn("Untraceable", text)
            self.assertFalse(any(line.startswith("Verified") for line in text.splitlines()), text)

    def test_names_of_files(self):
        text = self.shown(
            "import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self, *sizes):\n       "
            " super().__init__()\n\n    def forward(self, *x):\n        return gone\n",
            "--explain",
            name="c\x1b]0;owned\x07\u202e.py",
        )
        self.assertIn("\\x1b]0;owned\\x07\\u202e", text)

    def test_messages_of_triton(self):
        honest = (EXAMPLES / "honest.py").read_text()
        text = self.shown(
            honest.replace("tl.store(", f"tl.static_assert(False, '{self.CODE}')\n    tl.store("), "--explain"
        )
        self.assertIn("CompileFailed", text)
        self.assertFalse(any(line.startswith("Verified") for line in text.splitlines()), text)

    def test_errors_of_ours(self):
        answer = subprocess.run(
            [NEREID, "verify", "gone\x1b[2J\u202e.py", EXAMPLES / "honest.py"],
            capture_output=True,
            timeout=1200,
        )
        self.assertEqual(answer.returncode, 2)
        self.assertIn(b"gone\\x1b[2J\\u202e.py", answer.stderr)
        self.assertNotIn(b"\x1b", answer.stderr)


class Stream(unittest.TestCase):
    def test_pairs_are_judged_as_they_come(self):
        process = subprocess.Popen(
            [NEREID, "verify", "--batch", "-", "--device", "cpu", "--jobs", "2"],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        for name, word in (("honest", "Verified"), ("wrong", "Mismatch")):
            line = {"id": name, "reference": str(REFERENCE), "candidate": str(EXAMPLES / f"{name}.py")}
            process.stdin.write(json.dumps(line) + "\n{\n")
            process.stdin.flush()
            verdicts = {
                v["id"]: v["verdict"] for v in (json.loads(process.stdout.readline()) for _ in range(2))
            }
            self.assertEqual(verdicts[name], word)
            self.assertEqual({v for k, v in verdicts.items() if k.startswith("stdin:")}, {"Error"})
        process.send_signal(signal.SIGINT)  # while it waits for a line
        self.assertEqual(process.wait(timeout=1200), 130)
        process.communicate()


NEARLY = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0) * GAIN, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
"""
RELU = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return []
"""


class Protocols(unittest.TestCase):
    def test_a_line_chooses_what_compares_and_with_which_seed(self):
        def line(name, gain, **keys):
            return {
                "id": name,
                "reference_source": RELU,
                "candidate_source": NEARLY.replace("GAIN", gain),
                **keys,
            }

        lines = [
            line("ours", "1.00005"),
            line("theirs", "1.00005", protocol="kernelbench", seed=11),
            line("neither", "1.01", protocol="kernelbench"),
            line("unknown", "1.0", protocol="allclose"),
        ]
        answer = run(
            "--batch", "-", "--device", "cpu", "--seed", 3, input="".join(json.dumps(x) + "\n" for x in lines)
        )
        verdicts = {v["id"]: v for v in map(json.loads, answer.stdout.splitlines())}
        self.assertEqual(
            {name: v["verdict"] for name, v in verdicts.items()},
            {"ours": "Mismatch", "theirs": "Verified", "neither": "Mismatch", "unknown": "Error"},
            answer.stderr,
        )
        self.assertEqual(verdicts["ours"]["protocol"], "nereid")
        theirs = verdicts["theirs"]
        self.assertEqual(
            (theirs["protocol"], theirs["seed"], theirs["coverage"]["inputs"]), ("kernelbench", 11, ["own"])
        )
        self.assertGreaterEqual(theirs["coverage"]["trials"], 5)
        self.assertEqual(verdicts["ours"]["seed"], 3)


class EqualRows(unittest.TestCase):
    """A layer norm by hand of what is cut off: of ones in all places a row's mean is 0.83, exactly, in
    PyTorch and in float64, and an ulp next to it where it is summed and multiplied by 1 / 79. Divided by the
    root of 1e-5 that is 4e-5 for 0."""

    REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        h = x.clamp(-1.0, 0.83)
        return (h - h.mean(-1, keepdim=True)) / torch.sqrt(h.var(-1, keepdim=True, unbiased=False) + 1e-5)
def get_inputs():
    return [torch.randn(50, 79)]
def get_init_inputs():
    return []
"""
    CANDIDATE = """
import torch, triton
import triton.language as tl
@triton.jit
def kernel(x_ptr, out_ptr):
    column = tl.arange(0, 128)
    x = tl.load(x_ptr + tl.program_id(0) * 79 + column, mask=column < 79, other=0)
    h = tl.minimum(tl.maximum(x, -1.0, propagate_nan=tl.PropagateNan.ALL), 0.83,
                   propagate_nan=tl.PropagateNan.ALL)
    mean = tl.sum(tl.where(column < 79, h, 0.0), axis=0) * (1 / 79)
    apart = h - mean
    variance = tl.sum(tl.where(column < 79, apart * apart, 0.0), axis=0) * (1 / 79)
    out = apart / tl.sqrt_rn(variance + 1e-5)
    tl.store(out_ptr + tl.program_id(0) * 79 + column, out, mask=column < 79)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(50,)](x, out)
        return out
"""
    WRONG = {
        "a mean in half": (
            "(1 / 79)\n    apart",
            "(1 / 79)\n    mean = mean.to(tl.bfloat16).to(tl.float32)\n    apart",
        ),
        "another epsilon": ("variance + 1e-5", "variance + 2e-5"),
        "equal rows are not 0": (
            "    tl.store",
            "    out = tl.where(variance < 1e-9, out + 0.02, out)\n    tl.store",
        ),
    }

    def test_the_rounding_of_a_mean_is_forgiven_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as name:
            reference = pathlib.Path(name) / "reference.py"
            reference.write_text(self.REFERENCE)
            sources = {
                "right": self.CANDIDATE,
                **{case: self.CANDIDATE.replace(*change) for case, change in self.WRONG.items()},
            }
            self.assertEqual(len(set(sources.values())), 4)
            lines = [
                json.dumps({"id": case, "reference": str(reference), "candidate_source": source}) + "\n"
                for case, source in sources.items()
            ]
            answer = run("--batch", "-", "--device", "cpu", input="".join(lines))
            verdicts = {v["id"]: v["verdict"] for v in map(json.loads, answer.stdout.splitlines())}
        self.assertEqual(
            verdicts, {"right": "Verified", **dict.fromkeys(self.WRONG, "Mismatch")}, answer.stdout
        )


class TooBig(unittest.TestCase):
    """A task of 420 GB, on the CPU."""

    REFERENCE = """
import torch
ROWS, WIDTH = 800_000, 65536
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(ROWS, WIDTH) - 0.5]
def get_init_inputs():
    return []
"""
    CANDIDATE = """
import torch, triton
import triton.language as tl
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096)
        return out
"""

    def judged(self, *options, reference=REFERENCE):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "reference.py").write_text(reference)
            (folder / "candidate.py").write_text(self.CANDIDATE)
            return run(folder / "reference.py", folder / "candidate.py", "--device", "cpu", *options)

    def test_what_does_not_fit_is_an_error_that_says_how_much_it_needs(self):
        answer = self.judged("--json")
        self.assertIn(answer.returncode, (2, 3), answer.stderr)
        verdict = json.loads(answer.stdout)
        self.assertEqual((verdict["verdict"], verdict["rule"]), ("Error", "too-big"))
        needs = re.search(
            r"the task needs ([\d.]+) GiB to be replayed on the CPU.*; ([\d.]+) GiB are free",
            verdict["reason"],
        )
        self.assertTrue(needs, verdict["reason"])
        # Input and output, at least; in their own dtype and twice in float64, at most.
        self.assertGreater(float(needs[1]), 2 * 800_000 * 65536 * 4 / 2**30)
        self.assertLess(float(needs[1]), 10 * 800_000 * 65536 * 4 / 2**30)
        self.assertIn("--shrink", verdict["reason"])

    def test_shrink_says_what_it_chose(self):
        few = ("--shrink", "--trials", 1, "--fast-inputs")
        answer = self.judged("--json", *few)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        chosen = {
            s["constant"]: (s["from"], s["to"]) for s in json.loads(answer.stdout)["coverage"]["shrunk"]
        }
        self.assertEqual(chosen["ROWS"][0], 800_000)
        self.assertLess(chosen["ROWS"][1], 800_000)
        self.assertIn(f"ROWS 800000 -> {chosen['ROWS'][1]}", self.judged(*few).stdout)

    def test_sizes_that_cannot_shrink_are_named(self):
        fixed = self.REFERENCE.replace("ROWS, WIDTH = 800_000, 65536", "HEADS = 2").replace(
            "(ROWS, WIDTH)", "(800_000, 65536)"
        )
        verdict = json.loads(self.judged("--json", "--shrink", reference=fixed).stdout)
        self.assertEqual((verdict["verdict"], verdict["rule"]), ("Error", "shrink"))
        self.assertIn("HEADS = 2", verdict["reason"])


class Interrupted(unittest.TestCase):
    def test_ctrl_c_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            marker = f"endless-{os.getpid()}"
            loop = "import torch\n" + processes.NAMED.format(name=marker) + "while True: pass\n"
            pairs, output, scratch = folder / "pairs.jsonl", folder / "out.jsonl", folder / "tmp"
            scratch.mkdir()
            pairs.write_text(
                "".join(
                    json.dumps({"id": str(i), "reference": str(REFERENCE), "candidate_source": loop}) + "\n"
                    for i in range(4)
                )
            )
            process = subprocess.Popen(
                [NEREID, "verify", "--batch", pairs, "-o", output, "--device", "cpu"],
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=dict(os.environ, TMPDIR=str(scratch)),
            )
            processes.wait_for_named(marker, process)
            process.send_signal(signal.SIGINT)
            started = time.time()
            _, errors = process.communicate(timeout=1200)
            self.assertEqual(process.returncode, 130, errors)
            self.assertLess(time.time() - started, 100)
            for _ in range(1200):
                left = session_processes(process.pid)
                if not left:
                    break
                time.sleep(0.1)
            self.assertEqual(left, [])
            self.assertEqual(list(scratch.iterdir()), [])
            self.assertTrue(all(line.endswith("\n") for line in output.read_text().splitlines(True)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
