"""`nereid verify --batch` as a trainer lives on it, and as one that is broken or hostile uses it.
docs/batch_protocol.md is what is held.

tests/batch_protocol_test.py PATH/TO/nereid
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
ROUNDS = int(os.environ.get("NEREID_TEST_ROUNDS", "1"))  # of hogs, each of which computes for 3 s
TESTS = pathlib.Path(__file__).resolve().parent
EXAMPLES = TESTS.parent / "examples" / "layer_norm_gelu"
REFERENCE = (TESTS / "tasks/relu.py").read_text()
RELU = (TESTS / "honest/relu_one_kernel.py").read_text()
SCHEMA = json.loads((TESTS.parent / "docs/batch_protocol.schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def wrong(value, schema, at="line"):
    """What of `value` is not as the schema says; of JSON Schema what batch_protocol.schema.json uses."""
    if "$ref" in schema:
        return wrong(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], at)
    found = []
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        return [f"{at} is {value!r}, not {types}"]
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        found.append(f"{at} is {value!r}")
    if "not" in schema and not wrong(value, schema["not"], at):
        found.append(f"{at} is {value!r}")
    if "oneOf" in schema and sum(not wrong(value, one, at) for one in schema["oneOf"]) != 1:
        found.append(f"{at} is {value!r}")
    if "minimum" in schema and value < schema["minimum"] or "maximum" in schema and value > schema["maximum"]:
        found.append(f"{at} is {value!r}")
    if isinstance(value, dict):
        found += [f"{at}.{key} is not there" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            if key in schema.get("properties", {}):
                found += wrong(item, schema["properties"][key], f"{at}.{key}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{at}.{key} is not in the schema")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0) or len(value) > schema.get("maxItems", len(value)):
            found.append(f"{at} has {len(value)} items")
        for i, item in enumerate(value):
            found += wrong(item, schema.get("items", {}), f"{at}[{i}]")
    return found


class Stream:
    """One run that is fed line by line."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [
                NEREID,
                "verify",
                "--batch",
                "-",
                "--device",
                "cpu",
                "--trials",
                "1",
                "--fast-inputs",
                *map(str, options),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def ask(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else (json.dumps(line) + "\n").encode())
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"no answer: {self.process.stderr.read()[-2000:]!r}")
        verdict = json.loads(line)
        problems = wrong(verdict, SCHEMA["$defs"]["verdict"])
        if problems:
            raise AssertionError(f"{problems} in {line[:500]!r}")
        return verdict

    def end(self):
        self.process.stdin.close()
        rest = [json.loads(line) for line in self.process.stdout]
        errors = self.process.stderr.read().decode()
        self.process.stdout.close(), self.process.stderr.close()
        return self.process.wait(120), rest, errors


def pair(id, source=RELU, **more):
    return {"id": id, "reference_source": REFERENCE, "candidate_source": source, **more}


class Protocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stream = Stream("--jobs", 2, "--reward", "hierarchical", "--seed", 3)

    @classmethod
    def tearDownClass(cls):
        status, rest, errors = cls.stream.end()
        assert (status, rest) == (2, []), (status, rest, errors)

    def judge(self, line):
        self.stream.ask(line)
        return self.stream.answer()

    def test_ids_of_every_type_come_back_as_they_went(self):
        for id in (
            "a",
            "",
            "stdin:3",
            7,
            -1,
            2**70,
            1.5,
            True,
            False,
            [],
            [1, {"a": None}],
            {"step": 3},
            "größer",
            "\ud800",
            "a\udfffb",
            "\u202e\x1b\u0085\u0000",
        ):
            with self.subTest(id=id):
                self.assertEqual(self.judge(pair(id))["id"], id)

    def test_an_id_may_be_used_again(self):
        for word in ("Verified", "Malformed", "Verified"):
            self.assertEqual(
                self.judge(pair("again", RELU if word == "Verified" else "no code"))["verdict"], word
            )

    def test_an_id_under_way_is_refused_and_its_verdict_comes(self):
        slow = RELU.replace(
            "    def forward",
            "    def __init__(self):\n        super().__init__()\n        import time\n       "
            " time.sleep(4)\n\n    def forward",
        )
        self.stream.ask(pair("twice", slow))
        self.stream.ask(pair("twice"))
        first, second = self.stream.answer(), self.stream.answer()
        self.assertEqual((first["id"], first["verdict"], first["blame"]), ("twice", "Error", "input"))
        self.assertIn("under way", first["reason"])
        self.assertEqual((second["id"], second["verdict"]), ("twice", "Verified"))
        self.assertEqual(self.judge(pair("twice"))["verdict"], "Verified")

    def test_any_text_gets_a_verdict(self):
        for text, word in (
            ("\ud800", "Malformed"),
            ("x = '\udc00'\n" + RELU, "Malformed"),
            ("\u0000", "Malformed"),
            ("", "Malformed"),
            ("\x1b[2J", "Malformed"),
            ("```python\n" + RELU + "```", "Verified"),
            ("\ufeff" + RELU.replace("\n", "\r\n"), "Verified"),
        ):
            with self.subTest(text=text[:40]):
                self.assertEqual(self.judge(pair("text", text))["verdict"], word)

    def test_settings_of_a_line_are_honoured(self):
        self.assertEqual(self.judge(pair("s", seed=77, policy="strict"))["seed"], 77)
        self.assertEqual(self.judge(pair("s", policy="strict"))["policy"], "strict")
        self.assertEqual(self.judge(pair("s"))["seed"], 3)
        more = self.judge(pair("s", trials=3, fast_inputs=False))["coverage"]
        self.assertGreater(more["trials"], self.judge(pair("s"))["coverage"]["trials"] + 3)
        asleep = RELU.replace(
            "    def forward(self, x):\n",
            "    def forward(self, x):\n        import time\n        time.sleep(60)\n",
        )
        started = time.time()
        late = self.judge(pair("s", asleep, time_limit=0.5))
        self.assertEqual((late["verdict"], late["rule"]), ("TimedOut", "time-limit"))
        self.assertLess(time.time() - started, 50)
        self.assertEqual(
            self.judge(pair("s", RELU.replace("0.0)", "0.001)"), rtol=0.1, atol=0.1))["verdict"], "Verified"
        )
        self.assertEqual(self.judge(pair("s", RELU.replace("0.0)", "0.001)")))["verdict"], "Mismatch")
        self.assertEqual(self.judge(pair("s", device="cuda"))["verdict"], "Error")

    def test_what_is_not_known_is_refused(self):
        for more in (
            {"polizy": "strict"},
            {"time_limit": "5"},
            {"time_limit": 0},
            {"trials": 1.5},
            {"trials": -1},
            {"seed": 2**64},
            {"policy": "lax"},
            {"form": "python"},
            {"allow_tf32": 1},
            {"candidate": "x.py"},
            {"rtol": -1},
            {"trace": 7},
            {"reference": "a\0b"},
        ):
            with self.subTest(more=more):
                verdict = self.judge(pair("u", **more))
                self.assertEqual(
                    (verdict["id"], verdict["verdict"], verdict["blame"], verdict["rule"]),
                    ("u", "Error", "input", "input"),
                )
                self.assertIn(next(iter(more)), verdict["reason"])
                self.assertNotEqual(
                    (
                        wrong(pair("u", **more), SCHEMA["$defs"]["request"])
                        if "candidate" not in more and "reference" not in more
                        else ["two"]
                    ),
                    [],
                )

    def test_garbage_does_not_end_it(self):
        lines = (
            b"\n\r\n \t\n",
            b"\xff\xfe\x00\x01\x02\n",
            b"{\n",
            b"[]\n",
            b"null\n",
            b'"id"\n',
            b'{"id": "cut", "refer\n',
            b'{"id": null}\n',
            b"[" * 100000 + b"\n",
            b'{"id": "nested", "seed": ' + b"[" * 200 + b"]" * 200 + b"}\n",
            b'{"id": "number", "seed": 1e999999}\n',
            b'{"id": "nul", "form": "\x00"}\n',
        )
        for line in lines:
            self.stream.ask(line)
        answers = [self.stream.answer() for _ in range(len(lines) - 1)]
        self.assertEqual({(v["verdict"], v["blame"]) for v in answers}, {("Error", "input")})
        self.assertLessEqual(
            {"cut", "nested", "number", "nul"}, {v["id"] for v in answers if isinstance(v["id"], str)}
        )
        self.assertEqual(sum(str(v["id"]).startswith("stdin:") for v in answers), 7)
        self.assertEqual(self.judge(pair("after"))["verdict"], "Verified")

    def test_spans_are_pythons_slices(self):
        for before, plan in (
            ("Größe 😀: rows.\r\n", None),
            ("<think>\nich denke 日本語\n</think>", "<think>\nich denke 日本語\n</think>"),
        ):
            text = before + ("\n" if plan else "") + "```python\n" + RELU + "```\nDone."
            spans = self.judge(pair("spans", text))["spans"]
            self.assertEqual(text[slice(*spans["code"])], RELU)
            self.assertEqual(text[slice(*spans["plan"])], plan or before)
        self.assertEqual(self.judge(pair("spans"))["spans"], {"code": [0, len(RELU)], "plan": None})
        self.assertIsNone(self.judge(pair("spans", "no code"))["spans"])

    def test_rewards_have_components(self):
        right, wrong_one, cheat = (
            self.judge(pair("r")),
            self.judge(pair("r", RELU.replace("0.0)", "1.0)"))),
            self.judge(pair("r", REFERENCE.replace("Model", "ModelNew"))),
        )
        self.assertEqual(
            right["reward"],
            {
                "objective": "hierarchical",
                "valid": True,
                "correct": True,
                "speedup": None,
                "plan": 1,
                "code": 1,
            },
        )
        self.assertEqual(
            wrong_one["reward"],
            {
                "objective": "hierarchical",
                "valid": True,
                "correct": False,
                "speedup": None,
                "plan": 0,
                "code": 0,
            },
        )
        self.assertEqual(
            (cheat["verdict"], cheat["reward"]["valid"], cheat["reward"]["code"]), ("Disallowed", False, 0)
        )

    def test_escape_codes_stay_text(self):
        raising = (
            "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        raise"
            " ValueError('\\x1b[2J\\x9b31m\\u202e\\x7f')\n"
        )
        self.stream.ask(pair("escape", raising, candidate_name="\x1b]0;owned\x07.py"))
        line = self.stream.process.stdout.readline()
        self.assertTrue(all(32 <= byte < 127 for byte in line.rstrip(b"\n")), line)
        self.assertIn("\x1b[2J\x9b31m\u202e\x7f", json.loads(line)["reason"])


class Ends(unittest.TestCase):
    def test_a_last_line_without_its_end_is_judged(self):
        stream = Stream("--jobs", 1)
        stream.ask(pair("whole"))
        stream.ask(json.dumps(pair("last")).encode())
        status, rest, errors = stream.end()
        self.assertEqual(
            (status, [(v["id"], v["verdict"]) for v in rest]),
            (0, [("whole", "Verified"), ("last", "Verified")]),
            errors,
        )

    def test_a_line_that_never_ends_keeps_its_id_and_little_memory(self):
        stream = Stream("--jobs", 1)
        stream.ask(b'{"id": "endless", "candidate_source": "')
        for _ in range(160):
            stream.ask(b"x" * (1 << 20))
        stream.ask(b'"}\n')
        verdict = stream.answer()
        self.assertEqual((verdict["id"], verdict["verdict"]), ("endless", "Error"))
        stream.ask(pair("next"))
        self.assertEqual(stream.answer()["verdict"], "Verified")
        stream.end()

    def test_interrupted_it_ends_whatever_its_candidates_do(self):
        asleep = RELU.replace(
            "    def forward(self, x):\n",
            "    def forward(self, x):\n        import time\n        time.sleep(600)\n",
        )
        spins = RELU.replace(
            "    def forward(self, x):\n", "    def forward(self, x):\n        while True: pass\n"
        )
        with tempfile.TemporaryDirectory() as name:
            output = pathlib.Path(name) / "out.jsonl"
            stream = Stream("--jobs", 3, "--time-limit", 600, "-o", output)
            for n, source in enumerate((RELU, asleep, spins)):
                stream.ask(pair(n, source))
            while not output.exists() or not output.read_text():
                time.sleep(0.1)
            stream.process.send_signal(signal.SIGINT)
            started = time.time()
            status, _, errors = stream.end()
            self.assertEqual(status, 130, errors)
            self.assertLess(time.time() - started, 200, errors)  # of 600; fault_injection has the 5 s
            self.assertEqual([json.loads(line)["id"] for line in output.read_text().splitlines()], [0])


class Neighbours(unittest.TestCase):
    """What one candidate does to the machine costs the others nothing."""

    HOSTILE = {
        "spin": (
            "import threading\n        for _ in range(24):\n            threading.Thread(target=lambda: [0"
            " for _ in iter(int, 1)], daemon=True).start()\n        while True: pass"
        ),
        "fork": (
            "import os\n        while True:\n            try: os.fork()\n            except OSError: pass"
        ),
        "allocate": "keep = []\n        while True: keep.append(bytearray(1 << 26))",
        "sleep": "import time\n        time.sleep(600)",
        "print": (
            "import os\n        while True: os.write(1, b'\\x1b[2J' * 1000), os.write(2, b'\\x07' * 1000)"
        ),
    }

    def test_honest_ones_are_verified_next_to_hogs(self):
        stream = Stream("--jobs", 4, "--time-limit", 2)
        expected = {}
        for n in range(ROUNDS):
            for name, code in self.HOSTILE.items():
                stream.ask(
                    pair(
                        f"{name} {n}",
                        RELU.replace(
                            "    def forward(self, x):\n", f"    def forward(self, x):\n        {code}\n"
                        ),
                    )
                )
            for m in range(6):
                stream.ask(pair(f"honest {n} {m}", RELU + f"# {n} {m}\n"))
                expected[f"honest {n} {m}"] = "Verified"
        words = {}
        for _ in range(ROUNDS * (len(self.HOSTILE) + 6)):
            verdict = stream.answer()
            words[verdict["id"]] = verdict["verdict"]
        status, rest, errors = stream.end()
        self.assertEqual(
            {id: word for id, word in words.items() if id.startswith("honest")}, expected, errors
        )
        self.assertLessEqual(set(words.values()), {"Verified", "TimedOut", "Untraceable"}, words)
        self.assertEqual((status, rest), (0, []), errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
