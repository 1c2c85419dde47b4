"""A row a suite: how many are Verified, how many faster than eager PyTorch, the geometric mean; then what is
not, by name.

    table.py TASKS VERDICTS.jsonl | SUMMARY.json     of `nereid verify --batch`, or of `nereid eval`; the
                                                     latter with a second table where PyTorch was timed
"""
import json
import math
import pathlib
import sys

tasks = [path.stem for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py"))]
if sys.argv[2].endswith(".jsonl"):
    verdicts = {verdict["id"]: verdict for verdict in map(json.loads, open(sys.argv[2]))}
else:
    verdicts = {result["id"]: result for result in json.load(open(sys.argv[2]))["results"]}


def suite_of(name):
    head = name.split("_")[0]
    return head if head[0] == "L" and head[1:].isdigit() else "real"


def speedup_of(verdict):
    verdict = verdict or {}
    return (verdict.get("times") or verdict).get("speedup")


def ratio(key):
    return lambda verdict: verdict.get(key)


def mean_of(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0


suites = {}
for name in tasks:
    suites.setdefault(suite_of(name), []).append(name)
suites = sorted(suites.items(), key=lambda item: (item[0] == "real", len(item[0]), item[0]))
print(f"{'suite':6} {'tasks':>5} {'verified':>9} {'faster':>9} {'geomean':>8}")
for suite, names in suites:
    verified = [n for n in names if verdicts.get(n, {}).get("verdict") == "Verified"]
    speedups = [s for s in (speedup_of(verdicts[n]) for n in verified) if s]
    faster = sum(s > 1 for s in speedups)
    percent = 100 / len(names)
    print(f"{suite:6} {len(names):5} {len(verified) * percent:8.1f}% {faster * percent:8.1f}% "
          f"{mean_of(speedups):8.2f}")
# Shares are of all tasks, as fast_p is; the mean is of those that were measured on both sides.
compared = {"Inductor's kernels, both as graphs": ratio("speedup_compile"), 
            "torch.compile, both as called": ratio("speedup_compile_called")}
for what, speedup in compared.items():
    if not any(speedup(verdict) for verdict in verdicts.values()):
        continue
    print(f"\nagainst {what}\n{'suite':6} {'measured':>9} {'> 0.8':>8} {'> 1':>8} {'> 1.2':>8} {'> 2':>8} "
          f"{'geomean':>8}")
    for suite, names in suites:
        ratios = [r for r in (speedup(verdicts.get(n, {})) for n in names) if r]
        shares = " ".join(f"{100 * sum(r > p for r in ratios) / len(names):7.1f}%" for p in (0.8, 1, 1.2, 2))
        print(f"{suite:6} {len(ratios):9} {shares} {mean_of(ratios):8.2f}")
print()
for name in tasks:
    verdict = verdicts.get(name)
    word = verdict["verdict"] if verdict else "none"
    if word != "Verified":
        print(f"{name:36} {word:14} {((verdict or {}).get('reason') or '')[:120]}")
for name in sorted((n for n in tasks if speedup_of(verdicts.get(n))), key=lambda n: speedup_of(verdicts[n])):
    if speedup_of(verdicts[name]) < 1:
        print(f"{name:36} {speedup_of(verdicts[name]):6.2f}")
for name in sorted((n for n in tasks if (verdicts.get(n) or {}).get("speedup_compile")),
                   key=lambda n: verdicts[n]["speedup_compile"]):
    if verdicts[name]["speedup_compile"] < 1:
        print(f"{name:36} {verdicts[name]['speedup_compile']:6.2f} of Inductor's kernels")
