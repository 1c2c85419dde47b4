"""tests/preloaded.py: a script in a server's child is what Python would have started."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PRELOADED = str(pathlib.Path(__file__).resolve().parent / "preloaded.py")
SHOWS = """
import os, pickle, sys
class Own:
    pass
pickle.loads(pickle.dumps(Own()))
print(sys.argv, __name__, __file__, os.getcwd(), sys.path[0], os.environ.get("OF_THE_CALLER"), os.getppid(),
      "wave" in sys.modules, [name for name in globals() if not name.startswith("__")], sys.stdin.read())
sys.exit(int(sys.argv[1]))
"""
WAITS = """
import pathlib, sys, time
try:
    print("begun", flush=True)
    time.sleep(600)
finally:
    pathlib.Path(sys.argv[1]).write_text("cleaned up")
"""

ENDS = """
import atexit, gc, sys, threading, time
class Taken:
    def __del__(self):
        print("taken down")
kept = Taken()
atexit.register(print, "registered")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
print(gc.isenabled(), gc.get_freeze_count() > 1000)
sys.exit("why")
"""


def command(*words, package="wave"):
    return [sys.executable, PRELOADED, package, *map(str, words)]


class Preloaded(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()

    def script(self, text):
        path = self.folder / "script.py"
        path.write_text(text)
        return path

    def test_everything_is_the_callers(self):
        script, said = self.script(SHOWS), {}
        for by in ("server", "server again", "itself"):
            done = subprocess.run(
                command(script, 3, "two words"),
                input="by stdin",
                capture_output=True,
                text=True,
                cwd=self.folder,
                env={**os.environ, "OF_THE_CALLER": "yes"}
                | ({"NEREID_TEST_PRELOADED": "0"} if by == "itself" else {}),
            )
            self.assertEqual(done.returncode, 3, done.stderr)
            said[by] = done.stdout.replace(f"yes {os.getpid()} False", "yes PARENT True")
        parents = [text.split("yes ")[1].split()[0] for text in said.values()]
        self.assertNotEqual(parents[0], parents[2], "no server")
        for text, parent in zip(said.values(), parents):
            self.assertEqual(
                text.replace(parent, "PARENT"),
                f"['{script}', '3', 'two words'] __main__ {script} {self.folder} {self.folder} yes PARENT"
                " True ['os', 'pickle', 'sys', 'Own'] by stdin\n",
            )

    def test_errors_and_signals_are_the_scripts(self):
        done = subprocess.run(
            command(self.script("raise ValueError('ours')")), capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("ValueError: ours", done.stderr)
        dies = self.script("import os\nos.kill(os.getpid(), 15)")
        self.assertEqual(subprocess.run(command(dies)).returncode, -signal.SIGTERM)
        lacks = subprocess.run(command(dies, package="no_such_package")).returncode
        self.assertEqual(lacks, -signal.SIGTERM, "without a server the script runs all the same")

    def test_it_ends_as_python_does_but_takes_nothing_down(self):
        done = subprocess.run(command(self.script(ENDS)), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "why\n"))
        self.assertEqual(done.stdout, "True True\nthread\nregistered\n")
        interrupted = subprocess.run(command("-c", "raise KeyboardInterrupt"), stderr=subprocess.DEVNULL)
        self.assertEqual(interrupted.returncode, -signal.SIGINT)
        with open("/dev/full", "w") as full:
            done = subprocess.run(command("-c", "print(1)"), stdout=full, stderr=subprocess.PIPE)
        self.assertNotEqual(done.returncode, 0, done.stderr)

    def test_a_text_is_a_script(self):
        text = "import sys; print(sys.argv, __name__, '__file__' in globals(), sys.path[0] == '')"
        for more in ({}, {"NEREID_TEST_PRELOADED": "0"}):
            done = subprocess.run(
                command("-c", text, "a b"), capture_output=True, text=True, env={**os.environ, **more}
            )
            self.assertEqual(done.stdout, "['-c', 'a b'] __main__ False True\n", done.stderr)

    def test_a_script_ends_with_its_caller(self):
        mark = self.folder / "mark"
        caller = subprocess.Popen(command(self.script(WAITS), mark), stdout=subprocess.PIPE, text=True)
        self.assertEqual(caller.stdout.readline(), "begun\n")
        caller.kill()
        caller.wait()
        for _ in range(600):
            if mark.exists() and mark.read_text():
                break
            time.sleep(0.1)
        self.assertEqual(mark.read_text(), "cleaned up")
        caller.stdout.close()

    def test_what_packages_read_at_import_is_the_callers(self):
        # The kernel shows what a process, here the server, was started with.
        script = self.script("print(open('/proc/self/environ').read().split(chr(0)))")
        for threads in "121":
            environment = {**os.environ, "OMP_NUM_THREADS": threads}
            done = subprocess.run(command(script), capture_output=True, text=True, env=environment)
            self.assertIn(f"'OMP_NUM_THREADS={threads}'", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
