"""Where results cannot be written: a missing folder is refused before the work, a full disk costs the store
alone.

tests/output_files_test.py PATH/TO/nereid
"""

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

import processes

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve())
TASKS = pathlib.Path(__file__).resolve().parent / "tasks"
SECONDS = 3  # to say that there is no folder; a start of the tracer takes longer


class Outputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_nereid(self, *arguments):
        return subprocess.run([NEREID, *map(str, arguments)], capture_output=True, text=True)

    def commands(self, output):
        task = TASKS / "softmax.py"
        pairs = self.folder / "pairs.jsonl"
        pairs.write_text("")
        (self.folder / "run").mkdir(exist_ok=True)
        return (
            ["optimize", task, "-o", output],
            ["optimize", task, "-o", self.folder / "fast.py", "--report", output],
            ["trace", task, "-o", output],
            ["lower", task, "-o", output],
            ["verify", "--batch", pairs, "-o", output],
            ["tokenize", "--train", task, "-o", output],
            ["runs", "page", self.folder / "run", "-o", output],
        )

    def test_a_missing_folder_is_refused_at_once(self):
        output = self.folder / "none" / "file"
        folders = (
            ["import", "tritonbench", TASKS, "-o", output],
            ["package", TASKS, "--format", "backendbench", "-o", output],
        )
        for arguments in (*self.commands(output), *folders):
            with self.subTest(" ".join(map(str, arguments))):
                begin = time.monotonic()
                done = self.run_nereid(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"there is no folder {output.parent}", done.stderr)
                self.assertTrue(processes.soon_enough(time.monotonic() - begin, SECONDS))
                self.assertFalse(output.parent.exists())

    def test_a_loop_of_links_is_the_inputs_fault(self):
        loop = self.folder / "loop"
        loop.symlink_to("loop")
        for arguments in (
            ["optimize", loop, "-o", self.folder / "fast.py"],
            ["verify", TASKS / "softmax.py", loop],
            ["lower", loop],
            ["eval", loop, "-o", self.folder / "results"],
            ["train", "check", loop],
            ["runs", "show", loop],
        ):
            with self.subTest(arguments[0]):
                done = self.run_nereid(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, "loop.*: (Too many levels of symbolic links|expected a folder)")

    def test_a_folder_is_no_file(self):
        for arguments in self.commands(self.folder):
            if arguments[0] == "lower":  # writes into a folder
                continue
            done = self.run_nereid(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertIn("expected a file, got a folder", done.stderr)

    def test_a_full_disk_under_the_store_is_a_warning(self):
        disk, out = self.folder / "disk", self.folder / "fast.py"
        disk.mkdir()
        mount = f"mount -t tmpfs -o size=64k none {shlex.quote(str(disk))}"
        if subprocess.run(["unshare", "-rm", "bash", "-c", mount], capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        command = [NEREID, "optimize", str(TASKS / "softmax.py"), "-o", str(out), "--first", "--device",
                   "cpu", "--trials", "1",
                   "--keep-slower", "--proposers", "compiler", "--budget", "270s", "--store",
                   str(disk / "store.db")]  # fmt: skip
        # Full from the start, and full while the store is written.
        for fill in ("head -c 100000 /dev/zero", "head -c 30000 /dev/zero"):
            out.unlink(missing_ok=True)
            line = (
                f"{mount} && {{ {fill} > {shlex.quote(str(disk / 'filled'))} 2> /dev/null || true; }} && exec"
                f" {shlex.join(command)}"
            )
            done = subprocess.run(
                ["unshare", "-rm", "bash", "-c", line], capture_output=True, text=True, env={**os.environ}
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("class ModelNew", out.read_text())
            self.assertRegex(
                done.stderr, r"nereid: (results are not stored|not all was remembered): .*(full|disk I/O)"
            )
        # Another file is a wrong name, and stays an error.
        (self.folder / "text").write_text("no database, but long enough to be read as one " * 20)
        done = self.run_nereid(*command[1:-1], self.folder / "text")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not a database", done.stderr)


if __name__ == "__main__":
    unittest.main()
