"""The wheel: what is in it, which Pythons its code needs, and that it installs and works in environments of
other Pythons.

    tests/wheel_test.py BUILD_FOLDER [TEST...]

Environments are made with python3.10 to python3.13 where PATH or pyenv has them, and with the Python of
Debian trixie (3.13), whose root folder is made by debootstrap. That needs root and takes minutes the first
time, for torch.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from environments import BASE, ROOT, environment, run  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
WORK = BUILD / "wheel_test"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# What a new user does. Paths are relative to a folder with the files of FILES.
TRIED = r"""
set -eu
nereid doctor
nereid verify softmax.py honest.py --device cpu
code=0; nereid verify softmax.py wrong.py --device cpu || code=$?; test $code = 1
code=0; nereid verify softmax.py hostile.py --device cpu || code=$?; test $code = 1
test ! -e owned
nereid lower softmax.py -o lowered.py
nereid verify softmax.py lowered.py --device cpu
TRITON_INTERPRET=1 python live.py
nereid optimize softmax.py -o fast.py --proposers compiler --first --keep-slower --device cpu
nereid package fast.py --format hf-kernels -o package
test -e package/build.toml
code=0; nereid verify softmax.py nothing.py || code=$?; test $code = 2
"""
STABLE = {"_Py_Dealloc", "_Py_NoneStruct", "_Py_TrueStruct"}  # in Python's limited API, by their macros
FILES = {
    "hostile.py": (
        """import os
import torch
os.system("touch owned")
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)
"""
    ),
    "live.py": (
        """import sys
import nereid, torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 8))
    def forward(self, x):
        return self.layers(x)
if __name__ == "__main__":
    model, x = Model().eval().requires_grad_(False), torch.randn(4, 8)
    fast = nereid.optimize(model, (x,), budget="120s", policy="hybrid", proposers="compiler", first=True)
    assert fast.nereid_verdict.verified and nereid.explain(fast, x) is None, fast.nereid_reason
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-4)
    assert fast._nereid_native.matched((x,), {}) is not None  # the extension loads in this Python
    assert "nereid" in torch._dynamo.list_backends()
    options = {"budget": "60s", "proposers": "compiler", "first": True, "fallback": "eager"}
    compiled = torch.compile(model, backend="nereid", options=options)
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
    assert [graph.calls for graph in nereid.compiled_graphs()] == [1]
    assert nereid.verify("softmax.py", "honest.py", device="cpu").verified
    print("works in Python", sys.version.split()[0])
"""
    ),
}


def uv_install(python, *packages, uv=BASE.parent / "uv"):
    return [uv, "pip", "install", "--python", python, *packages]


def found_pythons():
    """One of each version: of PATH, or of pyenv, whose commands on PATH work for the chosen version alone."""
    found = {}
    folders = [*os.get_exec_path(), *sorted(map(str, pathlib.Path.home().glob(".pyenv/versions/*/bin")))]
    for version in PYTHONS:
        for path in (pathlib.Path(folder, f"python{version}") for folder in folders):
            works = path.exists() and subprocess.run([path, "-c", "import venv"], capture_output=True)
            if works and works.returncode == 0:
                found.setdefault(version, path)
    return list(found.values())


def tools_environment():
    """This environment with the certificates' variables that uv reads."""
    own = dict(os.environ)
    for ours, theirs in (("PIP_CERT", "SSL_CERT_FILE"), ("PIP_INDEX_URL", "UV_DEFAULT_INDEX")):
        if ours in own:
            own.setdefault(theirs, own[ours])
    return own


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        WORK.mkdir(exist_ok=True)
        run([ROOT / "tools/dist", BUILD], cwd=ROOT)
        (cls.wheel,) = (ROOT / "dist").glob("nereid-*.whl")

    def task_folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=WORK))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        shutil.copy(ROOT / "tests/tasks/softmax.py", folder)
        shutil.copy(ROOT / "tests/honest/softmax_one_row.py", folder / "honest.py")
        text = (folder / "honest.py").read_text()
        (folder / "wrong.py").write_text(text.replace("tl.exp(", "tl.exp2("))
        self.assertNotEqual(text, (folder / "wrong.py").read_text())
        for name, content in FILES.items():
            (folder / name).write_text(content)
        return folder

    def test_it_holds_every_package(self):
        sources = {
            str(path.relative_to(ROOT / "python"))
            for path in (ROOT / "python/nereid").rglob("*.py")
            if path.parent.name != "__pycache__"
        }
        held = {name for name in zipfile.ZipFile(self.wheel).namelist() if name.endswith(".py")}
        self.assertEqual(sources - held, set())

    def test_its_tags_and_its_metadata_allow_each_python(self):
        self.assertRegex(self.wheel.name, r"-py3-none-manylinux_\d+_\d+_x86_64\.whl$")
        metadata = next(name for name in zipfile.ZipFile(self.wheel).namelist() if name.endswith("METADATA"))
        text = zipfile.ZipFile(self.wheel).read(metadata).decode()
        self.assertIn("Requires-Python: <3.14,>=3.10", text)

    def test_no_library_is_built_for_one_python(self):
        """No library uses torch's Python library, which is of one version; of Python's API the limited one
        alone, as its suffix says: test_pythons_of_this_machine loads it."""
        folder = tempfile.TemporaryDirectory(dir=WORK)
        self.addCleanup(folder.cleanup)
        zipfile.ZipFile(self.wheel).extractall(folder.name)
        binaries = [*pathlib.Path(folder.name, "nereid/bin").iterdir()]
        self.assertGreater(len(binaries), 5)
        for binary in binaries:
            needed = run(["readelf", "-d", binary])
            self.assertNotRegex(needed, r"libpython|libtorch_python", binary.name)
            undefined = run(["nm", "-D", "--undefined-only", binary])
            names = set(re.findall(r"\b_?Py[A-Z_]\w+", undefined))
            limited = binary.name.endswith(".abi3.so")
            self.assertEqual({n for n in names if n.startswith("_") or not limited} - STABLE, set())

    def test_its_code_needs_no_newer_python(self):
        vermin = environment(WORK / "vermin", ["vermin==1.9.2"]) / "vermin"
        files = sorted((ROOT / "python").rglob("*.py"))
        run([vermin, "--target=3.10-", "--eval-annotations", "--no-tips", "--quiet", *files])

    def test_pythons_of_this_machine(self):
        for python in found_pythons() or [BASE]:
            with self.subTest(python):
                folder = WORK / f"with_{pathlib.Path(python).name}"
                shutil.rmtree(folder, ignore_errors=True)
                run([python, "-m", "venv", "--without-pip", folder])
                run(uv_install(folder / "bin/python", self.wheel), env=tools_environment())
                own = {
                    **os.environ,
                    "PATH": f"{folder}/bin:{os.environ['PATH']}",
                    "NEREID_STORE": f"{folder}/store.db",
                }
                for name in ("NEREID_PROGRAM", "NEREID_PYTHON", "PYTHONPATH"):
                    own.pop(name, None)
                done = run(["bash", "-c", TRIED], cwd=self.task_folder(), env=own)
                self.assertIn("works in Python 3.", done)
                shutil.rmtree(folder)  # 4 GB each

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("debootstrap"), "needs root and debootstrap")
    def test_debian_trixie(self):
        root = WORK / "trixie"
        if not (root / "made").exists():
            shutil.rmtree(root, ignore_errors=True)
            with_python = "--include=python3,python3-venv,ca-certificates"
            run(["debootstrap", "--variant=minbase", with_python, "trixie", root])
            (root / "made").touch()
        tried = self.task_folder()
        shutil.copy(self.wheel, tried)
        shutil.copy(BASE.parent / "uv", tried / "uv")
        certificates = pathlib.Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
        shutil.copy(certificates, tried / "certificates.crt")
        for name in ("root/.cache/uv", "tried"):
            (root / name).mkdir(parents=True, exist_ok=True)
        index = os.environ.get("PIP_INDEX_URL", "")
        inside = f"""set -eu; cd /tried; export HOME=/root PATH=/venv/bin:/usr/bin:/bin
            export SSL_CERT_FILE=/tried/certificates.crt
            {f"export UV_DEFAULT_INDEX={index}" if index else ""}
            rm -rf /venv; python3 -m venv --without-pip /venv
            UV_LINK_MODE=copy ./uv pip install --quiet --python /venv/bin/python ./nereid-*.whl
            {TRIED}"""
        # A root of its own by pivot_root: a process in a chroot may not make user namespaces.
        script = f"""set -eu; mount --make-rprivate /; mount --bind {root} {root}; cd {root}
            mkdir -p ~/.cache/uv old; mount --bind ~/.cache/uv root/.cache/uv; mount --bind {tried} tried
            mount -t proc proc proc; mount --rbind /dev dev; mount --rbind /sys sys
            pivot_root . old; umount -l /old; cd /; exec env -i bash -c "$0" """
        done = run(["unshare", "--mount", "bash", "-c", script, inside])
        self.assertIn("works in Python 3.13", done)
        self.assertNotRegex(done, r"(?m)^(warning|error) +isolation")


if __name__ == "__main__":
    unittest.main()
