#!/usr/bin/env python3
"""What dies, is cut or is full under `nereid trace`: it is tried again, or an error, and what was kept stays.

python3 tests/trace/fault_test.py build/release/bin/nereid
"""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from processes import NAMED, generations  # noqa: E402

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve())
MODULE = """import os
import time
import torch

{named}
time.sleep({seconds})
{more}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.tensor(list(range(40000)))

    def forward(self, x):
        return x + self.table

def get_inputs():
    return [torch.randn(40000)]

def get_init_inputs():
    return []
"""
ZYGOTE, CHILD = 1, 2  # after the launcher


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Killer(threading.Thread):
    """Kills one generation of a command's processes, `kills` times, as soon as a child runs the module. Other
    children are the zygote's own housekeeping."""

    def __init__(self, process, generation, kills):
        super().__init__()
        self.process, self.generation, self.kills, self.killed = process, generation, kills, []
        self.start()

    def run(self):
        while self.process.poll() is None and len(self.killed) < self.kills:
            time.sleep(0.1)
            found = generations(self.process.pid, "nereid._worker.zygote")
            at_work = [
                pid for pid in (found[CHILD] if len(found) > CHILD else []) if name_of(pid) == "at-work"
            ]
            if not at_work:
                continue
            pid = at_work[0] if self.generation == CHILD else found[self.generation][0]
            if pid in self.killed:
                continue
            try:
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)
            except ProcessLookupError:
                pass


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.kept = pathlib.Path(self.folder.name, "kept.trace")

    def module(self, seconds=0.0, more=""):
        path = pathlib.Path(self.folder.name, "model.py")
        path.write_text(MODULE.format(named=NAMED.format(name="at-work"), seconds=seconds, more=more))
        return str(path)

    def start(self, *arguments, **more):
        return subprocess.Popen(
            [NEREID, "trace", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
        )

    # Of tests that kill no tracer: one serves them all.
    WARM = {**os.environ, "NEREID_KEEP_WARM": "60"}

    def killed(self, generation, kills, *arguments):
        """(exit status, what it wrote) of a command under which a generation is killed."""
        process = self.start(self.module(seconds=4), "-o", str(self.kept), *arguments)
        killer = Killer(process, generation, kills)
        out, errors = process.communicate(timeout=1200)
        killer.join()
        self.assertEqual(len(killer.killed), kills, errors)
        return process.returncode, out, errors

    def left(self):
        return sorted(path.name for path in pathlib.Path(self.folder.name).iterdir())

    def test_a_worker_killed_once_is_replaced(self):
        """A child: Fault.AChildThatIsKilledOnceIsTriedAgain of sandbox_test."""
        status, _, errors = self.killed(ZYGOTE, 1)
        self.assertEqual(status, 0, errors)
        done = subprocess.run(
            [NEREID, "trace", str(self.kept), "--json"], capture_output=True, text=True, timeout=1200
        )
        self.assertEqual(json.loads(done.stdout)["class"], "Model")

    def test_a_tracer_that_is_lost_twice_is_an_error_and_what_was_kept_stays(self):
        self.kept.write_text("an earlier trace")
        status, out, errors = self.killed(ZYGOTE, 2, "--json")
        self.assertEqual(status, 3, errors)
        self.assertEqual(json.loads(out)["error"]["blame"], "ours")
        self.assertEqual(self.kept.read_text(), "an earlier trace")
        self.assertEqual(self.left(), ["kept.trace", "model.py"])

    def test_a_child_that_is_killed_twice_is_said_to_be(self):
        status, out, errors = self.killed(CHILD, 2, "--json")
        self.assertEqual(status, 3, errors)  # a fault of the machine, not of the file
        self.assertIn("killed", json.loads(out)["error"]["message"])
        self.assertFalse(self.kept.exists())

    def test_a_pipe_that_the_module_cuts_is_no_trace(self):
        process = self.start(
            self.module(more="os.closerange(3, 1000)"), "-o", str(self.kept), "--json", env=self.WARM
        )
        out, errors = process.communicate(timeout=1200)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("no answer", json.loads(out)["killed"]["limit"])
        self.assertFalse(self.kept.exists())

    def test_a_full_output_is_an_error_and_what_was_kept_stays(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [NEREID, "trace", self.module()],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=1200,
                env=self.WARM,
            )
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("stdout", done.stderr)

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))

        self.kept.write_text("an earlier trace")
        process = self.start(
            self.module(), "-o", str(self.kept), "--json", preexec_fn=small_files, env=self.WARM
        )
        out, errors = process.communicate(timeout=1200)
        self.assertEqual(process.returncode, 3, errors)
        self.assertEqual(json.loads(out)["error"]["blame"], "ours")
        self.assertIn("kept.trace", errors)
        self.assertEqual(self.kept.read_text(), "an earlier trace")
        self.assertEqual(self.left(), ["kept.trace", "model.py"])


if __name__ == "__main__":
    unittest.main()
