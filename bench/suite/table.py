"""A row a suite: how many are Verified, how many faster than eager PyTorch, the geometric mean; then what is not, by name."""
import json
import math
import pathlib
import sys

tasks = [path.stem for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py"))]
verdicts = {}
for line in open(sys.argv[2]):
    verdict = json.loads(line)
    verdicts[verdict["id"]] = verdict


def suite_of(name):
    head = name.split("_")[0]
    return head if head[0] == "L" and head[1:].isdigit() else "real"


def speedup_of(verdict):
    return ((verdict or {}).get("times") or {}).get("speedup")


suites = {}
for name in tasks:
    suites.setdefault(suite_of(name), []).append(name)
print(f"{'suite':6} {'tasks':>5} {'verified':>9} {'faster':>9} {'geomean':>8}")
for suite, names in sorted(suites.items(), key=lambda item: (item[0] == "real", len(item[0]), item[0])):
    verified = [n for n in names if verdicts.get(n, {}).get("verdict") == "Verified"]
    speedups = [s for s in (speedup_of(verdicts[n]) for n in verified) if s]
    faster = sum(s > 1 for s in speedups)
    mean = math.exp(sum(map(math.log, speedups)) / len(speedups)) if speedups else 0
    percent = 100 / len(names)
    print(f"{suite:6} {len(names):5} {len(verified) * percent:8.1f}% {faster * percent:8.1f}% {mean:8.2f}")
for name in tasks:
    verdict = verdicts.get(name)
    word = verdict["verdict"] if verdict else "none"
    if word != "Verified":
        print(f"{name:36} {word:14} {((verdict or {}).get('reason') or '')[:120]}")
for name in sorted((n for n in tasks if speedup_of(verdicts.get(n))), key=lambda n: speedup_of(verdicts[n])):
    if speedup_of(verdicts[name]) < 1:
        print(f"{name:36} {speedup_of(verdicts[name]):6.2f}")
