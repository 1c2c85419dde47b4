"""The live page of `nereid runs watch --port` in Chromium: at two widths, light and dark, while steps come
in, with hostile texts in answers. Installs Debian's Chromium where there is none.

run_page_test.py NEREID [--screenshots FOLDER]
"""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from judge_service_page_test import CONTRAST, NEREID, OVERFLOW, WIDTHS, Browser, install  # noqa: E402

RUN_FILE = """
[model]
start_from = "model"
[data]
sequence_length = 64
[optimizer]
learning_rate = 0.1
[schedule]
kind = "constant"
steps = 40
[rl]
tasks = ["tasks.jsonl"]
"""
HOSTILE = "</pre><img src=x onerror=document.title='run'><script>document.title='run'</script>"


def line(step):
    shares = {"engine": 0.5, "judge": 0.02, "clock": 0.2, "trainer": 0.25, "other": 0.03}
    figures = {"step": step, "loss": 1 / (step + 1), "reward": step / 40, "verdict/Verified": step / 40}
    figures |= {"step_s": 12.5, "tokens_per_s": 4321, "rollouts_per_h": 36000, "memory_gb": 23.5}
    figures |= {f"wall/{part}": share for part, share in shares.items()}
    figures |= {"busy/gpu": 0.83, "busy/gpu_engine": 0.95, "busy/gpu_clock": 0.4, "busy/judge": 0.6}
    return json.dumps(figures) + "\n"


def rollout(step, sample, verdict, answer):
    found = {"step": step, "class": 0, "task": 0, "prompt": 0, "sample": sample, "verdict": verdict}
    return json.dumps(found | {"reward": 0.0, "tokens": 9, "reason": HOSTILE, "answer": answer}) + "\n"


class Page(unittest.TestCase):
    def setUp(self):
        install()
        self.browser = Browser()
        self.folder = tempfile.TemporaryDirectory()
        self.run_folder = (
            pathlib.Path(self.folder.name) / "a-run-with-a-name-that-is-long-enough-to-be-broken"
        )
        self.run_folder.mkdir()
        (self.run_folder / "run.toml").write_text(RUN_FILE)
        self.metrics, self.rollouts = (
            (self.run_folder / f"{name}.jsonl").open("a", buffering=1) for name in ("metrics", "rollouts")
        )
        self.held = os.open(self.run_folder, os.O_RDONLY)
        fcntl.flock(self.held, fcntl.LOCK_EX)
        self.server = subprocess.Popen(
            [NEREID, "runs", "watch", self.run_folder, "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = json.loads(self.server.stdout.readline())["url"]

    def tearDown(self):
        self.browser.close()
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        self.server.wait(10)
        self.folder.cleanup()

    def wait(self, text, id="main", seconds=60):
        end = time.monotonic() + seconds
        while text not in (shown := self.browser.text(id)):
            self.assertLess(time.monotonic(), end, shown[:2000])
            time.sleep(0.2)

    def test_it_shows_a_run_that_goes_on(self):
        browser = self.browser
        browser.look(WIDTHS["desktop"], "light")
        browser.do("url", {"url": self.url})
        self.wait("0 of 40")
        browser.errors()  # what other pages met
        self.rollouts.write(rollout(0, 0, "Mismatch", HOSTILE) + rollout(0, 1, "Verified", "x" * 400))
        self.metrics.write(line(0) + line(1))
        self.wait("2 of 40")  # live: no reload
        for text in ("running", "8 min", "4321", "36000", "83 %", "engine", "95 %", "some answers of step 0"):
            self.wait(text)
        # What is open stays open when the next step comes.
        browser.run("document.querySelector('details').open = true")
        self.metrics.write(line(2))
        self.wait("3 of 40")
        self.assertTrue(browser.run("return document.querySelector('details').open"))
        self.assertIn("onerror", browser.text("main"))
        self.assertGreater(browser.run("return document.querySelectorAll('#main svg').length"), 5)
        for name, size in WIDTHS.items():
            for scheme in ("light", "dark"):
                browser.look(size, scheme)
                dark = (
                    browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
                )
                self.assertEqual(dark, scheme == "dark")
                self.assertEqual(browser.run(OVERFLOW), [], (name, scheme))
                self.assertEqual(browser.run(CONTRAST), [], (name, scheme))
                browser.screenshot(f"run-{name}-{scheme}")
        fcntl.flock(self.held, fcntl.LOCK_UN)
        self.wait("stopped")
        self.metrics.write("".join(line(step) for step in range(3, 40)))
        self.wait("finished")
        self.assertNotEqual(browser.run("return document.title"), "run")
        self.assertEqual(browser.errors(), [])
        self.server.send_signal(signal.SIGKILL)
        self.wait("no answer from nereid runs watch", "state")


if __name__ == "__main__":
    unittest.main()
