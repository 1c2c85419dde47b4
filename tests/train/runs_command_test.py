"""`nereid runs`: list, show, page, and what it says of folders that hold no runs."""
import json
import pathlib
import subprocess
import sys
import tempfile

NEREID = sys.argv[1]


def nereid(*arguments, code=0):
    done = subprocess.run([NEREID, "runs", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for run, losses in {"a": [3, 2, 2.5], "deep/b": [4.0]}.items():
        (folder / run).mkdir(parents=True)
        (folder / run / "metrics.jsonl").write_text(
            "".join(json.dumps({"step": i, "loss": loss, "lr": 0.1}) + "\n" for i, loss in enumerate(losses)) + '{"step": 9')
    listed = [json.loads(line) for line in nereid("list", folder, "--json").stdout.splitlines()]
    assert sorted((pathlib.Path(r["run"]).name, r["step"], r["loss"]) for r in listed) == [("a", 2, 2.5), ("b", 0, 4.0)], listed
    assert "2.5" in nereid("list", folder).stdout
    shown = json.loads(nereid("show", folder / "a", "--json").stdout)["figures"]["loss"]
    assert shown == {"steps": 3, "first": 3, "last": 2.5, "lowest": 2, "highest": 3}, shown
    page = folder / "page.html"
    nereid("page", folder / "a", folder / "deep/b", "-o", page)
    assert page.read_text().count("<svg") == 2
    assert "No such file" in nereid("show", folder / "none", code=2).stderr
    assert "No such file" in nereid("list", folder / "none", code=2).stderr
    (folder / "a" / "metrics.jsonl").write_text('{"step": 1}\nnonsense\n')
    assert "metrics.jsonl:2" in nereid("show", folder / "a", code=2).stderr
print("nereid runs lists, shows and draws")
