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
            "".join(json.dumps({"step": i, "loss": loss, "lr": 0.1}) + "\n" for i, loss in enumerate(losses))
            + '{"step": 9'
        )
    listed = [json.loads(line) for line in nereid("list", folder, "--json").stdout.splitlines()]
    assert sorted((pathlib.Path(r["run"]).name, r["step"], r["loss"]) for r in listed) == [
        ("a", 2, 2.5),
        ("b", 0, 4.0),
    ], listed
    assert "2.5" in nereid("list", folder).stdout
    shown = json.loads(nereid("show", folder / "a", "--json").stdout)["figures"]["loss"]
    assert shown == {"steps": 3, "first": 3, "last": 2.5, "lowest": 2, "highest": 3}, shown
    page = folder / "page.html"
    nereid("page", folder / "a", folder / "deep/b", "-o", page)
    assert page.read_text().count('role="img"') == 2
    assert "<details>" not in page.read_text()
    # Rollouts: listed, chosen from, and on the page, as text.
    answer = {"class": 0, "task": 3, "prompt": 0, "reward": 0.0, "tokens": 9}
    rollouts = [
        {"step": 0, "sample": 0, "verdict": "Malformed", "answer": "old"},
        {
            "step": 1,
            "sample": 0,
            "verdict": "Mismatch",
            "rule": "values",
            "reason": "output is wrong",
            "answer": "<b>text</b>",
            "advantage": -0.5,
        },
        {"step": 1, "sample": 1, "verdict": "Mismatch", "same_as": 0},
        {"step": 1, "sample": 2, "verdict": "Verified", "reward": 1.0, "speedup": 1.5, "answer": "good"},
    ]
    (folder / "a" / "rollouts.jsonl").write_text(
        "".join(json.dumps({**answer, **rollout}) + "\n" for rollout in rollouts)
    )
    rollouts = [
        json.loads(line) for line in nereid("show", folder / "a", "--rollouts", "--json").stdout.splitlines()
    ]
    assert (
        [r["answer"] for r in rollouts] == ["old", "<b>text</b>", "<b>text</b>", "good"]
        and rollouts[3]["speedup"] == 1.5
        and rollouts[0]["advantage"] is None
    ), rollouts
    chosen = nereid(
        "show", folder / "a", "--rollouts", "--step", 1, "--verdict", "Mismatch"
    ).stdout.splitlines()
    assert len(chosen) == 3 and "0/3" in chosen[1] and "output is wrong" in chosen[1], chosen
    assert "--rollouts" in nereid("show", folder / "a", "--step", 1, code=2).stderr
    for words in (("--verdict", "Mismatched"), ("--step", 7)):
        assert (
            "a step from 0 to 1, and a verdict of Malformed, Mismatch, Verified"
            in nereid("show", folder / "a", "--rollouts", *words, code=2).stderr
        )
    assert (
        "expected the folder of a run of `nereid train rl`"
        in nereid("show", folder / "deep/b", "--rollouts", code=2).stderr
    )
    # A reader that stops early is no trouble.
    cut = subprocess.run(
        [
            "sh",
            "-c",
            (
                'i=0; while [ $i -lt 3000 ]; do cat "$2/a/rollouts.jsonl"; i=$((i+1)); done >'
                ' "$2/deep/b/rollouts.jsonl"; "$1" runs show "$2/deep/b" --rollouts | head -1; rm'
                ' "$2/deep/b/rollouts.jsonl"'
            ),
            "sh",
            NEREID,
            folder,
        ],
        capture_output=True,
        text=True,
    )
    assert cut.stdout.split()[:2] == ["step", "task"] and cut.stderr == "", cut
    nereid("page", folder / "a", folder / "deep/b", "-o", page)
    text = page.read_text().split("some answers of step 1", 1)[1]
    assert (
        text.count("<details>") == 2
        and text.index("good") < text.index("&lt;b&gt;text")
        and "old" not in text
    ), text
    assert "No such file" in nereid("show", folder / "none", code=2).stderr
    assert "No such file" in nereid("list", folder / "none", code=2).stderr
    (folder / "a" / "metrics.jsonl").write_text('{"step": 1}\nnonsense\n')
    assert "metrics.jsonl:2" in nereid("show", folder / "a", code=2).stderr
print("nereid runs lists, shows and draws")
