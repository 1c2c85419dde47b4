"""`nereid verify` as a command: exit codes, streams, JSON, raw answers, batches that are resumed and interrupted.

    tests/verify_command_test.py PATH/TO/nereid
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
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples" / "layer_norm_gelu"
REFERENCE = EXAMPLES / "reference.py"


def run(*arguments, **options):
    return subprocess.run([NEREID, "verify", *map(str, arguments)], capture_output=True, text=True, timeout=280, **options)


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
        for arguments in ([], [REFERENCE], [REFERENCE, "gone.py"], ["gone.py", EXAMPLES / "honest.py"], ["--batch", "gone.jsonl"],
                          [REFERENCE, EXAMPLES / "honest.py", "--policy", "lax"], [REFERENCE, EXAMPLES / "honest.py", "-o", "x"],
                          [REFERENCE, EXAMPLES / "honest.py", "--trials", "0"]):
            with self.subTest(arguments=arguments):
                answer = run(*arguments)
                self.assertEqual(answer.returncode, 2, answer.stderr)
                self.assertEqual(answer.stdout, "")
                self.assertTrue(answer.stderr)

    def test_help_teaches(self):
        text = run("--help").stdout
        for word in ("Malformed", "Verified", "--batch", "--shrink", "--policy", "Examples"):
            self.assertIn(word, text)


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
            "answer": {"candidate_source": f"<think>\n```python\nx = 1\n```\n</think>\nHere:\n```python\n{honest}```\n"},
            "prose": {"candidate_source": "I could not find a way."},
            "syntax": {"candidate_source": "import torch\nclass ModelNew(:\n"},
            "raises": {"candidate_source": "import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self, width):\n"
                                           "        super().__init__()\n    def forward(self, x):\n        return x[5000, 0]\n"},
            "no-reference": {"reference": "gone.py", "candidate_source": honest},
        }
        lines = [json.dumps({"id": name, "reference": str(REFERENCE), **case}) for name, case in cases.items()]
        cls.pairs, cls.output = folder / "pairs.jsonl", folder / "out.jsonl"
        cls.pairs.write_text("\n".join(lines) + "\n")
        cls.first = run("--batch", cls.pairs, "-o", cls.output, "--device", "cpu", "--seed", 3, "--jobs", 2)
        cls.verdicts = {v["id"]: v for v in map(json.loads, cls.output.read_text().splitlines())}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_words_and_rules(self):
        expected = {"honest": ("Verified", None), "wrong": ("Mismatch", "values"), "cheating": ("Disallowed", "aten-compute"),
                    "answer": ("Verified", None), "prose": ("Malformed", "no-code-block"), "syntax": ("Malformed", "syntax"),
                    "raises": ("Untraceable", "python-error"), "no-reference": ("Error", "input")}
        self.assertEqual({name: (v["verdict"], v["rule"]) for name, v in self.verdicts.items()}, expected, self.first.stderr)

    def test_an_input_error_shows_in_the_exit_code(self):
        self.assertEqual(self.first.returncode, 2, self.first.stderr)
        self.assertEqual(self.first.stdout, "")

    def test_fields(self):
        verdict = self.verdicts["honest"]
        for field in ("verdict", "reason", "evidence", "coverage", "errors", "times", "seed", "policy", "seconds"):
            self.assertIn(field, verdict)
        self.assertEqual(verdict["seed"], 3)
        self.assertGreaterEqual(verdict["coverage"]["trials"], 10)
        self.assertEqual(sorted(verdict["coverage"]["perturbed"]), ["norm.bias", "norm.weight"])
        self.assertLessEqual(verdict["errors"]["max_error"], verdict["errors"]["max_tolerance"])

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


class Interrupted(unittest.TestCase):
    def test_ctrl_c_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            loop = "import torch\nwhile True: pass\n"
            pairs, output, scratch = folder / "pairs.jsonl", folder / "out.jsonl", folder / "tmp"
            scratch.mkdir()
            pairs.write_text("".join(json.dumps({"id": str(i), "reference": str(REFERENCE), "candidate_source": loop}) + "\n"
                                     for i in range(4)))
            process = subprocess.Popen([NEREID, "verify", "--batch", pairs, "-o", output, "--device", "cpu"], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                       env=dict(os.environ, TMPDIR=str(scratch)))
            time.sleep(6)
            process.send_signal(signal.SIGINT)
            started = time.time()
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, errors)
            self.assertLess(time.time() - started, 30)
            for _ in range(50):
                left = session_processes(process.pid)
                if not left:
                    break
                time.sleep(0.1)
            self.assertEqual(left, [])
            self.assertEqual(list(scratch.iterdir()), [])
            self.assertTrue(all(line.endswith("\n") for line in output.read_text().splitlines(True)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
