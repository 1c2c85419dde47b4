"""Commands with a store in PostgreSQL: what they keep, what they say without a server, and where passwords
show.

tests/postgres_store_test.py PATH/TO/nereid
"""

import hashlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
import postgres_server  # noqa: E402
import processes  # noqa: E402
from judge_server import Server, wrong  # noqa: E402

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else ""
PASSWORD, QUOTED = "open sesame 7", "open%20sesame%207"


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = postgres_server.Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.sql(f"CREATE ROLE secret LOGIN PASSWORD '{PASSWORD}'")
        cls.server.sql("GRANT CREATE ON DATABASE postgres TO secret")
        cls.uri = cls.server.uri("secret", password=QUOTED)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def setUp(self):
        self.server.sql("DROP SCHEMA IF EXISTS nereid CASCADE")

    def run_nereid(self, *arguments, code=0, watched=None, **environment):
        process = subprocess.Popen(
            [NEREID, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NEREID_STORE": self.uri, **environment},
        )
        if watched is not None:
            threading.Thread(target=watch, args=(process, watched), daemon=True).start()
        out, err = process.communicate(timeout=1200)
        self.assertEqual(process.returncode, code, out + err)
        for text in (out, err):
            self.assertNotIn(PASSWORD, text)
            self.assertNotIn(QUOTED, text)
        return out, err

    def json(self, *arguments, **more):
        return [json.loads(line) for line in self.run_nereid(*arguments, "--json", **more)[0].splitlines()]

    def optimize(self, name, *arguments, **more):
        return self.run_nereid(
            "optimize", TESTS / "tasks/softmax.py", "-o", self.folder / name, "--first", "--device", "cpu",
            "--trials", "1",
            "--keep-slower", "--proposers", "compiler", *arguments, **more
        )  # fmt: skip


def watch(process, found):
    """What the children of a process say of themselves: command lines and environments."""
    while process.poll() is None:
        for pid in processes.descendants(process.pid):
            for name in ("cmdline", "environ"):
                try:
                    found.setdefault(pid, {})[name] = pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
                except OSError:
                    pass
        time.sleep(0.005)


class Command(Case):
    def test_store(self):
        shown = self.json("store")[0]
        self.assertEqual(shown["path"], self.server.uri("secret"))
        self.assertEqual(shown["records"], {"verdict": 0, "time": 0, "proposal": 0, "run": 0})
        self.assertGreater(shown["bytes"], 0)
        self.server.sql(
            "INSERT INTO nereid.records VALUES ('0abc', 'verdict', 't', 's', 'q', 'cpu', 'old', 'Verified',"
            " 1.5, '{\"x\": 1}', 1000),('1abc', 'run', 't', 's', 'q', 'cpu', 'old', 'done', NULL, '{}',"
            " 1001); INSERT INTO nereid.texts VALUES ('s', 'import torch', 1)"
        )
        self.assertEqual([record["state"] for record in self.json("store", "list")], ["done", "Verified"])
        record = self.json("store", "show", "0a", "--store", self.uri, NEREID_STORE="/nowhere")[0]
        self.assertEqual(
            (record["document"], record["ms"], record["subject_source"]), ({"x": 1}, 1.5, "import torch")
        )
        self.assertIn("is not what its key says", self.json("store", "check", code=1)[0]["trouble"])
        self.assertEqual(self.json("store", "prune", "--older-than", "1d"), [{"removed": 2}])
        self.assertEqual(self.json("store", "check"), [{"ok": True, "trouble": ""}])

    def test_copying(self):
        """A file to a database and back; what is there already stays."""
        first, second = self.folder / "first.db", self.folder / "second.db"
        self.run_nereid("store", NEREID_STORE=str(first))
        source, keys = "import torch", []
        text = hashlib.sha256(source.encode()).hexdigest()
        with sqlite3.connect(first) as base:
            for made in range(300):
                parts = ("verdict", text, f"candidate {made}", "strict", "cpu", "0.1")
                keys.append(
                    hashlib.sha256("".join(f"{len(part)}:{part}," for part in parts).encode()).hexdigest()
                )
                row = (keys[-1], *parts, "Verified", None, '{"x": 1}', 1000 + made)
                base.execute(f"INSERT INTO records VALUES ({','.join('?' * len(row))})", row)
            base.execute("INSERT INTO texts VALUES (?, ?, 1)", (text, source))
        copy = ("store", "copy", "--store")
        self.assertEqual(self.json(*copy, first, self.uri), [{"copied": 300, "present": 0}])
        self.assertEqual(self.json("store", "check"), [{"ok": True, "trouble": ""}])
        self.server.sql(
            "DELETE FROM nereid.records WHERE made >= 1200; UPDATE nereid.records SET word = 'Mismatch',"
            f" made = 2000 WHERE key = '{keys[0]}'"
        )
        self.assertIn(
            "100 records copied to postgresql://secret@/postgres", self.run_nereid(*copy, first, self.uri)[0]
        )
        self.assertEqual(self.json(*copy, self.uri, second), [{"copied": 300, "present": 0}])
        self.assertEqual(self.json(*copy, second, first), [{"copied": 1, "present": 299}])
        shown = self.json("store", "show", keys[0], "--store", first)[0]
        self.assertEqual((shown["state"], shown["made"], shown["task_source"]), ("Mismatch", 2000, source))

    def test_what_is_wrong(self):
        for uri, said in (
            (self.uri.replace("7@", "8@"), "password authentication failed"),
            ("postgresql://secret:open%ZZsesame@/x", "expected postgresql://"),
            ("mysql://secret:sesame@db/x", "expected a file's path or postgresql://"),
        ):
            err = self.run_nereid("store", code=2, NEREID_STORE=uri)[1]
            self.assertIn(said, err)
            self.assertNotIn("sesame", err)
            # A name on the command line is an error, the environment's a warning.
            self.assertIn(said, self.optimize("none.py", "--store", uri, code=2)[1])
        self.run_nereid("store", code=3, NEREID_STORE="postgresql://secret@/x?host=/nowhere")
        self.assertFalse(pathlib.Path("mysql:").exists())

    def test_doctor(self):
        for uri, state in ((self.uri, "ok"), ("postgresql://x@/x?host=/nowhere", "warning")):
            process = subprocess.run(
                [NEREID, "doctor", "--json"],
                capture_output=True,
                text=True,
                env={**os.environ, "NEREID_STORE": uri},
            )
            checks = {check["name"]: check for check in json.loads(process.stdout)["checks"]}
            self.assertEqual(checks["store"]["state"], state, checks["store"])
            self.assertNotIn(QUOTED, process.stdout)


class Search(Case):
    def test_results_are_remembered_and_passwords_are_not(self):
        children = {}
        self.optimize("first.py", watched=children)
        self.assertTrue(children)
        for child in children.values():
            for text in child.values():
                self.assertNotIn(QUOTED.encode(), text)
        records = self.json("store")[0]["records"]
        self.assertGreaterEqual(records["verdict"], 1)
        self.assertEqual(records["run"], 1)
        self.optimize("second.py")
        again = self.json("store")[0]["records"]
        self.assertEqual((again["verdict"], again["run"]), (records["verdict"], 2))
        self.assertEqual((self.folder / "first.py").read_text(), (self.folder / "second.py").read_text())
        self.assertEqual(self.json("store", "check"), [{"ok": True, "trouble": ""}])

    def test_a_server_that_is_gone_costs_a_warning(self):
        self.server.stop()
        try:
            err = self.optimize("alone.py", "--store", self.uri)[1]
        finally:
            self.server.start()
        self.assertRegex(
            err, r"nereid: results are not stored: the store postgresql://secret@/\S+: .*tries in"
        )
        self.assertIn("class ModelNew", (self.folder / "alone.py").read_text())

    def test_a_server_that_goes_meanwhile_costs_a_warning(self):
        self.json("store")
        # Each session ends at its first statement on the tables.
        self.server.sql("ALTER TABLE nereid.records RENAME TO away")
        try:
            err = self.optimize("meanwhile.py")[1]
        finally:
            self.server.sql("ALTER TABLE nereid.away RENAME TO records")
        self.assertRegex(err, r'nereid: not all was remembered: .*"records" does not exist')


class Service(Case):
    def start(self):
        server = Server(NEREID, self.folder, jobs=1, store=self.uri)
        self.addCleanup(lambda: server.process.returncode is None and server.end(9))
        return server

    def test_nothing_is_lost_to_kill_9(self):
        """Of the service, and of the database under it."""
        server = self.start()
        with self.assertRaisesRegex(RuntimeError, "used by another server"):
            Server(NEREID, self.folder, store=self.uri)
        items = [{"completion": wrong(number)} for number in range(8)]
        tasks = server.ask("/v1/tasks", {"items": items, "reference": "relu"})[1]["tasks"]
        ids, before = [task["id"] for task in tasks], {}

        def wait(answers, least):
            while len(answers) < least:
                left = [id for id in ids if id not in answers]
                answers.update(server.ask("/v1/tasks/wait", {"ids": left})[1]["answers"])

        wait(before, 2)
        self.server.kill()
        self.server.start()
        wait(before, 4)
        server.end(9)
        server = self.start()
        after = {}
        wait(after, len(ids))
        self.assertEqual({answer["status"] for answer in after.values()}, {"refused"})
        for id, answer in before.items():
            self.assertEqual(after[id], answer)  # not judged again
        self.assertLessEqual(
            server.metric('nereid_verdicts_total{verdict="Mismatch"}'), len(ids) - len(before)
        )
        self.assertEqual(server.end(), 0)

    def test_without_its_database(self):
        server = self.start()
        self.server.stop()
        try:
            begin = time.monotonic()
            status, answer = server.verify(wrong(100))
            self.assertLess(time.monotonic() - begin, 100)
            self.assertEqual((status, answer["status"]), (503, "error"))
            self.assertIsNone(answer.get("reward"))
        finally:
            self.server.start()
        deadline = time.monotonic() + 600
        while server.verify(wrong(100))[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.5)
        self.assertEqual(server.verify(wrong(100))[1]["status"], "refused")
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main()
