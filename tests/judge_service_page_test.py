"""The live page of `nereid serve` in Chromium: at two widths, light and dark, with verdicts, errors and a
token. Installs Debian's Chromium where there is none.

judge_service_page_test.py NEREID [--screenshots FOLDER]
"""

import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
from judge_server import GOOD, WRONG, Server, quick, wrong  # noqa: E402

SCREENSHOTS = None
if "--screenshots" in sys.argv:
    at = sys.argv.index("--screenshots")
    SCREENSHOTS = pathlib.Path(sys.argv[at + 1])
    del sys.argv[at : at + 2]
NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else ""
TOKEN = "a-token-of-some-length"
WIDTHS = {"phone": (390, 844), "desktop": (1280, 900)}
# What is wider than the window, other than what scrolls by itself; and texts whose contrast with what is
# under them is below 4.5.
OVERFLOW = """
const wide = document.documentElement.clientWidth, found = [];
const taken = document.documentElement.scrollWidth;
if (taken > wide) found.push("the page: " + taken);
for (const node of document.querySelectorAll("body *"))
  if (!node.closest(".scroll") && node.getBoundingClientRect().right > wide + 1)
    found.push(node.tagName + " " + node.id);
return found;
"""
CONTRAST = """
const channel = value => {
  value /= 255;
  return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
};
const light = text => {
  const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
};
const under = node => {
  for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (!/, 0\\)$/.test(colour) && colour !== "transparent") return colour;
  }
  return "rgb(255, 255, 255)";
};
const found = [];
for (const node of document.querySelectorAll("body *")) {
  const hasText = [...node.childNodes].some(one => one.nodeType === 3 && one.textContent.trim());
  if (!node.checkVisibility() || !hasText || node.tagName === "SCRIPT") continue;
  const [a, b] = [light(getComputedStyle(node).color), light(under(node))].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  const shown = node.tagName + " " + node.textContent.slice(0, 40);
  if (contrast < 4.5) found.push(shown + ": " + contrast.toFixed(2));
}
return found;
"""


def install():
    if shutil.which("chromedriver"):
        return
    root = [] if os.geteuid() == 0 else ["sudo"]
    subprocess.run([*root, "apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)
    words = [
        "apt-get",
        "install",
        "-y",
        "-q",
        "--no-install-recommends",
        "chromium",
        "chromium-driver",
        "fonts-dejavu-core",
    ]
    subprocess.run(
        [*root, "env", "DEBIAN_FRONTEND=noninteractive", *words], check=True, stdout=subprocess.DEVNULL
    )


class Browser:
    """Chromium by the WebDriver protocol."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ]
        wanted = {
            "alwaysMatch": {
                "goog:chromeOptions": {"args": arguments},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
        }
        end = time.monotonic() + 60
        while True:
            try:
                self.session = self.call("POST", "/session", {"capabilities": wanted})["sessionId"]
                return
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            None if body is None else json.dumps(body).encode(),
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:2000]) from error

    def do(self, command, body=None, method="POST"):
        return self.call(
            method, f"/session/{self.session}/{command}", {} if body is None and method == "POST" else body
        )

    def run(self, script, *arguments):
        return self.do("execute/sync", {"script": script, "args": list(arguments)})

    def text(self, id):
        return self.run("return document.getElementById(arguments[0]).innerText", id)

    def look(self, size, scheme):
        """A window of a size and a colour scheme."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.do("goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.do("goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": media})

    def screenshot(self, name):
        if SCREENSHOTS:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            whole = self.do(
                "goog/cdp/execute",
                {"cmd": "Page.captureScreenshot", "params": {"captureBeyondViewport": True}},
            )
            (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(whole["data"]))

    def errors(self):
        return [
            entry["message"] for entry in self.do("se/log", {"type": "browser"}) if entry["level"] == "SEVERE"
        ]

    def close(self):
        try:
            self.call("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait(20)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        install()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        if self.server.process.returncode is None:
            self.server.end(signal.SIGTERM)
        self.folder.cleanup()

    def wait(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not (found := what()):
            self.assertLess(time.monotonic(), end, self.browser.text("main")[:2000])
            time.sleep(0.2)
        return found

    def test_it_shows_what_goes_on(self):
        self.server = Server(NEREID, self.folder.name)
        browser, url = self.browser, f"http://127.0.0.1:{self.server.port}/"
        browser.look(WIDTHS["desktop"], "light")
        browser.do("url", {"url": url})
        self.wait(lambda: browser.text("state") == "running")
        browser.errors()  # what other pages met
        self.assertIn("none yet", browser.text("latest"))
        # Live: no reload from here on.
        for text in (GOOD, WRONG, quick(1), "<img src=x onerror=document.title='run'>", "</script>" + WRONG):
            self.server.verify(text)
        self.wait(lambda: "Verified" in browser.text("latest") and "Mismatch" in browser.text("kinds"))
        self.assertIn("relu", browser.text("latest"))
        self.assertRegex(browser.text("latest"), r"output is wrong at \d+ of \d+ elements")
        self.assertRegex(browser.text("judges"), r"cpu\s+runs")
        self.assertGreater(
            browser.run(
                "return Math.max(...[...document.querySelectorAll('#series rect')].map(one =>"
                " +one.getAttribute('height')))"
            ),
            10,
        )
        self.server.ask(
            "/v1/tasks", {"items": [{"completion": wrong(i)} for i in range(400)], "reference": "relu"}
        )
        self.wait(lambda: "127.0.0.1" in browser.text("clients"))
        for pid in self.server.judges():
            os.kill(pid, signal.SIGKILL)
        self.wait(lambda: "is started again" in browser.text("errors"))
        for name, size in WIDTHS.items():
            for scheme in ("light", "dark"):
                browser.look(size, scheme)
                self.assertEqual(browser.run("return innerWidth"), size[0])
                dark = (
                    browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
                )
                self.assertEqual(dark, scheme == "dark")
                self.assertEqual(browser.run(OVERFLOW), [], (name, scheme))
                self.assertEqual(browser.run(CONTRAST), [], (name, scheme))
                browser.screenshot(f"{name}-{scheme}")
        self.assertEqual(browser.run("return document.title"), "nereid serve")
        self.assertEqual(browser.errors(), [])
        self.server.end(signal.SIGKILL)
        self.wait(lambda: browser.text("state") == "no answer from the server")

    def test_it_asks_for_a_token(self):
        tokens = pathlib.Path(self.folder.name) / "tokens.txt"
        tokens.write_text(f"ada {TOKEN}\n")
        self.server = Server(NEREID, self.folder.name, "--tokens", tokens)
        browser = self.browser
        for name, size in WIDTHS.items():
            for scheme in ("light", "dark"):
                browser.look(size, scheme)
                browser.do("url", {"url": f"http://127.0.0.1:{self.server.port}/"})
                self.wait(lambda: browser.text("state") == "a token is needed")
                self.assertEqual(browser.run(OVERFLOW) + browser.run(CONTRAST), [], (name, scheme))
        self.assertEqual(browser.run("return document.getElementById('main').hidden"), True)
        for typed, state in ((TOKEN + "x", "this token is not known"), (TOKEN, "running")):
            script = (
                "document.getElementById('token').value = arguments[0]; document.querySelector('#login"
                " button').click()"
            )
            browser.run(script, typed)
            self.wait(lambda: browser.text("state") == state)
        self.assertIn("waiting", browser.text("tiles"))


if __name__ == "__main__":
    unittest.main()
