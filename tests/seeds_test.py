"""bench/seeds.py says on stderr why a run ended, whatever ended it."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = [
    sys.executable,
    ROOT / "bench/seeds.py",
    "--seeds",
    "2",
    "--only",
    "add_relu_kernel_run",
    ROOT / "tests/honest",
]
VERDICT = '{"id": "honest/add_relu_kernel_run.py#1", "verdict": "%s", "reason": "because"}'
ENDS = [  # what a judge does, exit status, what stderr ends with
    ("exit 1", 1, "2 verdicts did not come: nereid ended before"),
    ("kill -9 $$", 1, "ended with status -9"),
    (f"echo '{VERDICT % 'Verified'}'; exit 3", 1, "1 verdicts did not come: nereid ended before"),
    ("echo Segmentation fault", 1, "wrote a line that is no verdict: 'Segmentation fault\\n'"),
    (f"echo '{VERDICT % 'Error'}'; echo '{VERDICT % 'Verified'}'", 1, "less than 99.9% of the seeds: "
     "honest/add_relu_kernel_run.py"),
    (f"echo '{VERDICT % 'Verified'}'; echo '{VERDICT % 'Verified'}'", 0, ""),
]  # fmt: skip


# bench/seeds.py, which gets a signal before it knows the process that it has started.
SIGNAL_AT_START = """
import os, runpy, signal, subprocess, sys

class Popen(subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        os.kill(os.getpid(), signal.SIGINT)

subprocess.Popen = Popen
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def judge(folder, text):
    path = pathlib.Path(folder) / "nereid"
    path.write_text("#!/bin/bash\n" + text + "\n")
    path.chmod(0o755)
    return [*COMMAND, "--nereid", path]


def main():
    with tempfile.TemporaryDirectory() as folder:
        for text, status, said in ENDS:
            done = subprocess.run(judge(folder, text), capture_output=True, text=True)
            assert done.returncode == status, (text, done)
            assert done.stderr.strip().endswith(said), (text, done.stderr)
            assert "verdicts of 1 candidates" in done.stdout, (text, done.stdout)
        # A signal that comes while the program is started ends the program, too: it has stderr open.
        words = judge(folder, "exec sleep 30")
        done = subprocess.run([sys.executable, "-c", SIGNAL_AT_START, *words[1:]], capture_output=True,
                              text=True, timeout=25)  # fmt: skip
        assert done.returncode == 128 + signal.SIGINT, done
        assert done.stderr.strip().endswith("2 verdicts did not come: ended by SIGINT"), done.stderr
        for number in (signal.SIGINT, signal.SIGTERM):
            runs = pathlib.Path(folder) / f"runs{number}"
            text = f"touch {runs}; exec sleep 30"
            with subprocess.Popen(judge(folder, text), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as process:  # fmt: skip
                for _ in range(2000):
                    if runs.exists():
                        break
                    time.sleep(0.01)
                process.send_signal(number)
                out, said = process.communicate(timeout=20)
            assert process.returncode == 128 + number, (number, process.returncode)
            assert said.strip().endswith(f"2 verdicts did not come: ended by {number.name}"), said
            assert "0 verdicts of 1 candidates" in out, out


if __name__ == "__main__":
    main()
