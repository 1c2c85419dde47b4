"""`nereid store` as a command: where the file is, what it shows, what it prunes, what it refuses.

tests/store_command_test.py PATH/TO/nereid
"""

import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

NEREID = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()


class StoreCommand(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "data" / "nereid" / "store.db"
        self.environment = {name: value for name, value in os.environ.items() if name != "NEREID_STORE"}
        self.environment["XDG_DATA_HOME"] = str(self.path.parent.parent)

    def tearDown(self):
        self.folder.cleanup()

    def run_store(self, *arguments, code=0, **environment):
        answer = subprocess.run(
            [NEREID, "store", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=1200,
            env={**self.environment, **environment},
        )
        self.assertEqual(answer.returncode, code, answer.stderr)
        return answer

    def json(self, *arguments, **options):
        return [
            json.loads(line) for line in self.run_store(*arguments, "--json", **options).stdout.splitlines()
        ]

    def fill(self):
        """Records as the program writes them: `store` itself only reads and prunes."""
        self.run_store()
        base = sqlite3.connect(self.path)
        for number, (kind, word) in enumerate(
            [("verdict", "Verified"), ("verdict", "Mismatch"), ("run", "done")]
        ):
            base.execute(
                "INSERT INTO records VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                (
                    f"{number}abc",
                    kind,
                    "t" * 64,
                    "s" * 64,
                    "strict",
                    "cpu",
                    "old",
                    word,
                    1.5 if number == 0 else None,
                    '{"x": 1}',
                    1000 + number,
                ),
            )
        base.execute("INSERT INTO texts VALUES (?, 'import torch', 1)", ("s" * 64,))
        base.commit()
        base.close()

    def test_where_it_lies(self):
        self.assertEqual(self.json()[0]["path"], str(self.path))
        other = pathlib.Path(self.folder.name) / "other.db"
        self.assertEqual(self.json(NEREID_STORE=str(other))[0]["path"], str(other))
        third = pathlib.Path(self.folder.name) / "third.db"
        self.assertEqual(self.json("--store", third, NEREID_STORE=str(other))[0]["path"], str(third))
        self.assertEqual(self.json("list", "--store", third), [])

    def test_showing(self):
        self.fill()
        self.assertEqual(self.json()[0]["records"], {"verdict": 2, "time": 0, "proposal": 0, "run": 1})
        self.assertEqual([r["state"] for r in self.json("list")], ["done", "Mismatch", "Verified"])
        self.assertEqual(
            [r["state"] for r in self.json("list", "--kind", "verdict", "--limit", 1)], ["Mismatch"]
        )
        self.assertIn("1.5000 ms", self.run_store("list").stdout)
        shown = self.json("show", "0ab")[0]
        self.assertEqual((shown["document"], shown["subject_source"]), ({"x": 1}, "import torch"))
        self.assertIn("import torch", self.run_store("show", "0ab").stdout)
        self.assertIn("no record", self.run_store("show", "ffff", code=2).stderr)

    def test_pruning(self):
        self.fill()
        self.assertIn("which records", self.run_store("prune", code=2).stderr)
        self.assertIn("expected a number", self.run_store("prune", "--older-than", "month", code=2).stderr)
        self.assertEqual(self.json("prune", "--state", "Mismatch", "--dry-run"), [{"would_remove": 1}])
        self.assertEqual(self.json("prune", "--state", "Mismatch"), [{"removed": 1}])
        self.assertEqual(self.json("prune", "--other-versions", "--kind", "run"), [{"removed": 1}])
        self.assertEqual(self.json("prune", "--older-than", "1d"), [{"removed": 1}])
        self.assertEqual(self.json("list"), [])

    def test_damage_and_strangers(self):
        self.fill()
        self.assertEqual(self.json("check"), [{"ok": True, "trouble": ""}])
        self.path.write_text("this is no database at all, but it is long enough")
        self.assertIn("not a database", self.run_store(code=2).stderr)

    def test_help_teaches(self):
        text = self.run_store("--help").stdout
        for word in ("NEREID_STORE", "prune", "Examples"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
