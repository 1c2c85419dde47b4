"""`nereid doctor` on this machine, and where something is missing: each absence is made, and the line that
names it is looked at.

tests/doctor_command_test.py PATH/TO/nereid
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve())


def doctor(*prefix, **environment):
    """(exit code, the JSON answer, its checks by name). A value None removes a variable."""
    own = {**os.environ, **{key: value for key, value in environment.items() if value is not None}}
    for key, value in environment.items():
        if value is None:
            own.pop(key, None)
    done = subprocess.run([*prefix, NEREID, "doctor", "--json"], env=own, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    return done.returncode, answer, {check["name"]: check for check in answer["checks"]}


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        os.environ["NEREID_STORE"] = str(cls.folder / "store.db")
        cls.code, cls.answer, cls.checks = doctor(NEREID_KEEP_WARM="60")  # its tracer serves another test
        assert cls.answer["can"]["remember"], cls.answer

    def fake_python(self, **packages):
        """A folder for PYTHONPATH with packages that only have a version, and the path of a Python that has
        none."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        for name, text in packages.items():
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text(text)
        bare = folder / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        return {"PYTHONPATH": str(folder), "NEREID_PYTHON": str(bare / "bin" / "python")}

    def disk_is_short(self, name):
        """Below the 2 GB that doctor wants: no fault of this machine, and said in the check."""
        path = pathlib.Path(self.checks[name]["found"].rpartition(", ")[0])
        disk = os.statvfs(path if path.exists() else path.parent)
        return disk.f_bavail * disk.f_frsize < 2.1e9 and "free some space" in (self.checks[name]["fix"] or "")

    def test_here_everything_is_there_to_judge(self):
        self.assertEqual(self.code, 0, self.answer)
        self.assertTrue(self.answer["can"]["judge"])
        for name in ("program", "python", "torch", "triton", "numpy", "ptxas", "tracing", "store", "cache"):
            expected = "warning" if name in ("store", "cache") and self.disk_is_short(name) else "ok"
            self.assertEqual(self.checks[name]["state"], expected, self.checks[name])
        for check in self.answer["checks"]:
            self.assertEqual(check["fix"] is None, check["state"] in ("ok", "skipped"), check)

    def test_for_a_person_and_a_store_that_cannot_be_written(self):
        own = {**os.environ, "NEREID_STORE": "/proc/nowhere/store.db", "NEREID_KEEP_WARM": "60"}
        done = subprocess.run([NEREID, "doctor"], env=own, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^ok +torch +2\.11\.")
        self.assertRegex(done.stdout, r"(?m)^warning +store +/proc/nowhere.*\n +mend: .*NEREID_STORE")
        self.assertIn("Nereid judges", done.stdout.splitlines()[-1])
        code, answer, _ = doctor(NEREID_STORE="/proc/nowhere/store.db", **self.fake_python())
        self.assertEqual((code, answer["can"]["remember"]), (1, False))

    def test_no_python(self):
        code, answer, checks = doctor(NEREID_PYTHON="/nonexistent/python")
        self.assertEqual((code, answer["can"]["judge"]), (1, False))
        self.assertEqual(checks["python"]["state"], "missing")
        self.assertIn("/nonexistent/python", checks["python"]["found"])
        self.assertIn("NEREID_PYTHON", checks["python"]["fix"])
        self.assertEqual(
            {checks[name]["state"] for name in ("torch", "triton", "isolation", "tracing")}, {"skipped"}
        )

    def test_a_python_that_is_none(self):
        code, _, checks = doctor(NEREID_PYTHON=shutil.which("false"))
        self.assertEqual((code, checks["python"]["state"]), (1, "missing"))

    def test_no_packages(self):
        environment = self.fake_python()
        code, _, checks = doctor(**environment)
        self.assertEqual((code, checks["python"]["state"]), (1, "ok"))
        for name in ("torch", "triton", "numpy"):
            self.assertEqual(checks[name]["state"], "missing")
            self.assertIn(f"No module named '{name}'", checks[name]["found"])
            self.assertIn(f"{environment['NEREID_PYTHON']} -m pip install", checks[name]["fix"])
        self.assertEqual(checks["isolation"]["state"], "skipped")

    def test_other_versions_and_a_package_that_does_not_load(self):
        environment = self.fake_python(
            torch="__version__ = '2.5.1'\nclass version: cuda = '12.4'\n",
            triton="__version__ = '3.6.0'\n",
            numpy="raise ImportError('libopenblas.so.0: cannot open shared object file')\n",
        )
        code, _, checks = doctor(**environment)
        self.assertEqual(code, 1)
        self.assertRegex(checks["torch"]["found"], r"2\.5\.1, expected 2\.11\.")
        self.assertEqual(checks["triton"]["state"], "ok")
        self.assertIn("libopenblas", checks["numpy"]["found"])
        self.assertEqual(checks["ptxas"]["state"], "missing")

    def test_a_damaged_store(self):
        path = self.folder / "damaged.db"
        path.write_bytes(b"no database" * 1000)
        _, _, checks = doctor(NEREID_STORE=str(path), **self.fake_python())
        self.assertEqual(checks["store"]["state"], "warning", checks["store"])

    def test_a_cache_and_a_temporary_folder_that_are_none(self):
        file = self.folder / "file"
        file.write_text("")
        code, _, checks = doctor(NEREID_CACHE=str(file / "cache"), NEREID_PYTHON="/nonexistent")
        self.assertEqual(code, 1)
        self.assertNotIn("cache", checks)  # without an installation
        code, _, checks = doctor(NEREID_CACHE=str(file / "cache"), **self.fake_python())
        self.assertEqual(checks["cache"]["state"], "warning")

    def test_no_compiler(self):
        bare = self.fake_python()
        for environment, says in (
            ({"PATH": "/nonexistent", "CC": None}, "none on PATH"),
            ({"CC": "/nonexistent/cc"}, "/nonexistent/cc"),
        ):
            _, _, checks = doctor(**bare, **environment)
            self.assertEqual(checks["c compiler"]["state"], "warning")
            self.assertIn(says, checks["c compiler"]["found"])

    def test_no_namespaces(self):
        """A machine where no user namespace can be made: Landlock and seccomp alone."""
        without = (
            "unshare",
            "-Ur",
            "sh",
            "-c",
            'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"',
            "sh",
        )
        tried = subprocess.run([*without, "unshare", "-U", "true"], capture_output=True)
        if tried.returncode == 0 or b"max_user_namespaces" in tried.stderr:
            self.skipTest("namespaces cannot be forbidden here")
        code, _, checks = doctor(*without)
        self.assertNotEqual(checks["isolation"]["state"], "ok", checks["isolation"])
        self.assertIn("user namespaces", checks["isolation"]["fix"])
        self.assertEqual(code, 0 if checks["isolation"]["state"] == "warning" else 1)

    def driver(self, **functions):
        """A folder with a libcuda.so.1 of which the named functions have these bodies; others return 0."""
        if not shutil.which("gcc"):
            self.skipTest("no gcc")
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        header = (ROOT / "src/nereid/gpu/driver.h").read_text()
        names = set(re.findall(r"X\((cu\w+)\)", header))
        text = "#include <string.h>\ntypedef long long L;\n"
        for name in sorted(names):
            for symbol in (name, f"{name}_v2", f"{name}_v3"):
                text += f"int {symbol}(L a, L b, L c) {{ {functions.get(name, 'return 0;')} }}\n"
        (folder / "fake.c").write_text(text)
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-w", "-o", folder / "libcuda.so.1", folder / "fake.c"], check=True
        )
        return {"LD_LIBRARY_PATH": str(folder), **self.fake_python()}

    def test_a_driver_without_a_device(self):
        _, answer, checks = doctor(**self.driver(cuInit="return 100;"))
        self.assertEqual(checks["gpu"]["state"], "warning")
        self.assertIn("cuInit", checks["gpu"]["found"])
        self.assertFalse(answer["can"]["time"])

    def test_a_device(self):
        ones = dict(
            cuDeviceGetCount="*(int*)a = 1; return 0;", cuDriverGetVersion="*(int*)a = 12040; return 0;",
            cuDeviceGetName='strcpy((char*)a, "Fake GPU"); return 0;',
            cuDeviceGetAttribute="*(int*)a = 9; return 0;",
            cuDeviceTotalMem="*(L*)a = 80000000000; return 0;",
        )  # fmt: skip
        environment = self.driver(**ones)
        _, _, checks = doctor(**environment)
        self.assertIn("Fake GPU, compute capability 9.9, 80 GB", checks["gpu"]["found"])
        self.assertEqual((checks["gpu"]["state"], checks["driver"]["state"]), ("ok", "ok"))
        fake = self.fake_python(torch="__version__ = '2.11.0'\nclass version: cuda = '13.0'\n")
        _, _, checks = doctor(**{**environment, **fake})
        self.assertEqual(checks["driver"]["state"], "warning")
        self.assertIn("CUDA 12.4, torch is built for 13.0", checks["driver"]["found"])

    def test_several_devices_and_an_old_one(self):
        two = dict(
            cuDeviceGetCount="*(int*)a = 2; return 0;",
            cuDeviceGetName='strcpy((char*)a, "Old GPU"); return 0;',
            cuDeviceGetAttribute="*(int*)a = 6; return 0;",
        )  # fmt: skip
        _, _, checks = doctor(**self.driver(**two))
        self.assertEqual({checks["gpu 0"]["state"], checks["gpu 1"]["state"]}, {"warning"})
        self.assertIn("compute capability from 7.5", checks["gpu 0"]["fix"])

    def test_a_driver_that_is_too_old(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "libcuda.so.1").write_text("")
        _, _, checks = doctor(**{"LD_LIBRARY_PATH": str(folder), **self.fake_python()})
        self.assertEqual(checks["gpu"]["state"], "warning")


if __name__ == "__main__":
    unittest.main()
