#!/usr/bin/env python3
"""`nereid trace` end to end: what it prints, keeps and draws, its exit codes, and Ctrl-C.

python3 tests/trace/command_test.py build/release/bin/nereid
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

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import processes  # noqa: E402

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve())
REFERENCE = str(ROOT / "tests/tasks/cross_entropy.py")
CANDIDATE = str(ROOT / "tests/honest/cross_entropy_two_kernels.py")


def nereid(*args, **more):
    return subprocess.run([NEREID, "trace", *args], capture_output=True, text=True, timeout=1200, **more)


class TraceCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name, text=None):
        path = pathlib.Path(self.folder.name) / name
        if text is not None:
            path.write_text(text)
        return str(path)

    def test_a_reference_is_kept_and_printed_in_every_way(self):
        kept = self.path("kept.trace")
        done = nereid(REFERENCE, "-o", kept)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        page = nereid(kept)
        self.assertEqual(page.returncode, 0)
        self.assertIn("forward 2 (calls 0, 1 do the same)", page.stdout)
        document = json.loads(nereid(kept, "--json").stdout)
        for field in ("phases", "kernels", "storages", "flops", "bytes", "seconds"):
            self.assertIn(field, document)
        self.assertGreater(document["flops"], 0)
        self.assertEqual(
            nereid(self.path("document.json", json.dumps(document)), "--json").stdout,
            nereid(kept, "--json").stdout,
        )
        self.assertTrue(nereid(kept, "--graph").stdout.startswith("digraph"))
        self.assertIn("\nreturns #", nereid(kept, "--summary").stdout)

    def test_a_candidate_gets_the_references_inputs(self):
        done = nereid(CANDIDATE, "--reference", REFERENCE, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["class"], "ModelNew")
        launches = [step for step in document["phases"][-1]["steps"] if "launch" in step]
        self.assertEqual(
            [document["kernels"][step["launch"][0]["kernel"]]["name"] for step in launches],
            ["row_loss_kernel", "mean_kernel"],
        )
        self.assertTrue(all(step["reaches_output"] for step in launches))

    def test_an_untraceable_module_is_a_no_with_its_line(self):
        text = (
            "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
            "        return x * x.sum().item()\ndef get_inputs():\n    return [torch.randn(4)]\n"
            "def get_init_inputs():\n    return []\n"
        )
        done = nereid(self.path("reads.py", text), "--json")
        self.assertEqual(done.returncode, 1)
        why = json.loads(done.stdout)["untraceable"]
        self.assertEqual((why["phase"], why["line"]), ("forward", 4))
        self.assertIn("reads.py:4: untraceable in forward", done.stderr)

    def test_bad_usage_and_bad_input_are_two(self):
        self.assertEqual(nereid().returncode, 2)
        self.assertEqual(nereid("--no-such-option", REFERENCE).returncode, 2)
        missing = nereid(self.path("missing.py"), "--json")
        self.assertEqual(missing.returncode, 2)
        self.assertEqual(json.loads(missing.stdout)["error"]["blame"], "input")
        broken = nereid(self.path("broken.trace", '{"nereid_trace": 1, "storages": [{"bytes": -1}]}'))
        self.assertEqual(broken.returncode, 2)
        self.assertIn("trace.storages[0].bytes: expected an integer from 0 to", broken.stderr)
        self.assertEqual(nereid(REFERENCE, "-o", "/nowhere/kept.trace").returncode, 2)

    def test_ctrl_c_ends_it_and_leaves_nothing(self):
        name = f"endless-{os.getpid()}"
        text = processes.NAMED.format(name=name) + "class Model:\n    pass\nwhile True:\n    pass\n"
        process = subprocess.Popen(
            [NEREID, "trace", self.path("endless.py", text)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        processes.wait_for_named(name, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=1200)
        self.assertEqual(process.returncode, 130)
        deadline = time.time() + 120
        while time.time() < deadline and self.session(process.pid):
            time.sleep(0.1)
        self.assertEqual(self.session(process.pid), [])

    @staticmethod
    def session(leader):
        """Processes of the session that `leader` began."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if os.getsid(int(entry)) == leader:
                        found.append(int(entry))
                except ProcessLookupError:
                    pass
        return found

    def test_a_reader_that_goes_away_is_no_error(self):
        golden = str(ROOT / "tests/golden/traces/ragged.Model.json")
        done = subprocess.run(
            f"set -o pipefail; '{NEREID}' trace '{golden}' --json | head -c 10",
            shell=True,
            executable="/bin/bash",
            capture_output=True,
        )
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
