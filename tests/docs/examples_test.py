"""examples/slurm and examples/kubernetes: scripts that bash parses, YAML that a parser takes, and command
lines of `nereid` with options that it has.

examples_test.py NEREID
"""

import pathlib
import re
import shlex
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEREID = sys.argv[1]


def text_of(*words):
    return subprocess.run([NEREID, *words], capture_output=True, text=True, check=True).stdout


def commands(script):
    """The command lines of `nereid` in a script of bash, as words."""
    joined = re.sub(r"\\\n\s*", " ", script)
    found = []
    for line in joined.splitlines():
        line = line.split(" #")[0].strip().removeprefix("exec ").removesuffix("&")
        if line.startswith("nereid "):
            found.append(shlex.split(line)[1:])
    return found


def check_script(script, where):
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, (where, done.stderr)
    for words in commands(script):
        known = text_of(words[0], "--help")
        for word in words[1:]:
            assert not word.startswith("--") or re.search(rf"{re.escape(word)}\b", known), (where, word)
    return len(commands(script))


assert check_script((ROOT / "examples/slurm/serve.sbatch").read_text(), "serve.sbatch") == 1

documents = list(yaml.safe_load_all((ROOT / "examples/kubernetes/judges.yaml").read_text()))
names = {
    kind: {d["metadata"]["name"] for d in documents if d["kind"] == kind}
    for kind in {d["kind"] for d in documents}
}
labels = [d["spec"]["template"]["metadata"]["labels"] for d in documents if "template" in d["spec"]]
serves = 0
for document in documents:
    spec = document["spec"]
    selected = spec.get("selector", {})
    selected = selected.get("matchLabels", selected)
    if document["kind"] == "PersistentVolumeClaim":
        continue
    wanted = selected or spec["podSelector"]["matchLabels"]
    assert any(wanted.items() <= label.items() for label in labels), document["metadata"]
    if "template" not in spec:
        continue
    pod = spec["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for volume in volumes.values():
        claim = volume.get("persistentVolumeClaim")
        assert not claim or claim["claimName"] in names["PersistentVolumeClaim"], volume
    for container in pod["containers"]:
        assert container["command"] == ["bash", "-euc"] and len(container["args"]) == 1
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes), container["name"]
        serves += check_script(container["args"][0], container["name"])
        for address in re.findall(r"--address=([a-z-]+):", container["args"][0]):
            assert address in names["Service"], address
assert serves == 1

try:
    check_script("nereid serve --no-such-option", "")
except AssertionError:
    pass
else:
    raise AssertionError("an unknown option passed")
print("ok")
