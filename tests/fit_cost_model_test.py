"""tools/fit_cost_model.py: times made by known constants are fitted by these; a fit that is worse on held-out
programs is refused; bad lines are named.

    python tests/fit_cost_model_test.py TOOL
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

TOOL = pathlib.Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("fit_cost_model", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

PEAKS = {"bytes": 3.36e12, "f32": 67e12}
TRUE = {
    "launch_seconds": 1.6e-6,
    "bandwidth_share": 0.82,
    "cache_ratio": 3.0,
    "tensor_share": 0.45,
    "vector_share": 0.3,
    "wave_seconds": 7e-7,
    "thread_seconds": 4e-9,
}
TABLE = """{"sm_90",
 {.launch_seconds = 2.5e-06,
  .bandwidth_share = 1,
  .cache_ratio = 8,
  .tensor_share = 0.7,
  .vector_share = 1,
  .wave_seconds = 0,
  .thread_seconds = 0,
  .date = "2026-01-01",
  .source = "a test"}},
"""
OLD = {
    "launch_seconds": 2.5e-6,
    "bandwidth_share": 1,
    "cache_ratio": 8,
    "tensor_share": 0.7,
    "vector_share": 1,
}
OLD |= {"wave_seconds": 0, "thread_seconds": 0}


def kernel(rng, product):
    """Features of one kernel: a product, or elements and reductions."""
    programs = int(10 ** rng.uniform(0, 4.5))
    made = dict.fromkeys(tool.FEATURES, 0.0)
    made |= {"programs": programs, "width": 132 if product else 528, "launches": 1, "rate": 67e12}
    made["read"], made["written"] = 10 ** rng.uniform(4, 8.3), 10 ** rng.uniform(4, 8)
    if product:
        made |= {
            "products": 10 ** rng.uniform(7, 11.5),
            "rate": float(rng.choice([494e12 / 3, 989e12, 67e12])),
        }
        made["asked"] = made["products"] / 10 ** rng.uniform(0.8, 2)
    else:
        made |= {"other_flops": 10 ** rng.uniform(5, 10), "elements": float(2 ** rng.integers(0, 8))}
    return made


def lines(count, seed, constants_of, noise=0.02):
    rng = np.random.default_rng(seed)
    for number in range(count):
        line = {"id": f"p{number}", "hash": f"{rng.integers(1 << 60):016x}", "device": "a test's GPU"}
        line |= {"target": "sm_90", "peaks": PEAKS, "choices": []}
        base = [kernel(rng, rng.random() < 0.4) for _ in range(rng.integers(1, 4))]
        for choice in range(8):
            features = [dict(k) for k in base]
            for k in features:  # other tiles of the same kernels
                factor = 2.0 ** rng.integers(-3, 4)
                k["programs"] = max(1, round(k["programs"] * factor))
                k["elements"], k["asked"] = k["elements"] / factor, k["asked"] * factor**0.5
            line["choices"].append({"first": choice == 0})
            line["choices"][-1] |= {"features": features, "kept": []}
        choices = [{"features": c["features"], "seconds": 1.0, "own": False} for c in line["choices"]]
        times = tool.Times([choices])
        seconds = tool.modelled(times, constants_of(line), PEAKS) * np.exp(rng.normal(0, noise, len(choices)))
        for choice, value in zip(line["choices"], seconds):
            choice["seconds"] = float(value)
        yield json.dumps(line)


def run(folder, name, text, *words):
    file, table = folder / f"{name}.jsonl", folder / f"{name}.inc"
    file.write_text(text)
    table.write_text(TABLE)
    done = subprocess.run(
        [sys.executable, TOOL, file, "--table", table, *words], capture_output=True, text=True, timeout=1200
    )
    return done, table.read_text()


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    done, table = run(folder, "known", "\n".join(lines(150, 1, lambda line: TRUE)), "--json", "--write")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for constant, value in TRUE.items():
        got = report["constants"][constant]
        assert abs(got / value - 1) < 0.15, (constant, got, value)
    before, after = report["before"], report["after"]
    assert after["spearman"] > 0.9 > before["spearman"], (before, after)
    assert after["regret"] < 0.01 < before["regret"], (before, after)
    assert after["spearman_pooled"] > before["spearman_pooled"] and not report["worse"]
    written = tool.read_table(folder / "known.inc")["sm_90"]
    assert {key: written[key] for key in TRUE} == report["constants"], written
    assert "a test's GPU" in written["source"] and written["date"] > "2026-01-01"

    done, _ = run(
        folder, "kept", "\n".join(lines(40, 1, lambda line: TRUE)), "--json", "--keep", "launch_seconds"
    )
    kept = json.loads(done.stdout)["constants"]
    assert kept["launch_seconds"] == OLD["launch_seconds"] and kept["tensor_share"] < 0.6, kept

    # Held-out programs follow the old constants, those that are fitted follow others.
    def other_side(line):
        return OLD if tool.is_held_out(line["hash"], 0.3) else TRUE

    done, table = run(folder, "worse", "\n".join(lines(80, 2, other_side)), "--write")
    assert done.returncode == 1 and "worse on held-out programs" in done.stderr, done
    assert table == TABLE

    # Ranks: equal values share one, and a perfect order is 1.
    assert list(tool.ranks(np.array([3.0, 1.0, 3.0, 7.0]))) == [1.5, 0, 1.5, 3]
    assert tool.spearman(np.array([1.0, 2, 3]), np.array([10.0, 20, 30])) == 1
    assert tool.spearman(np.array([1.0, 2, 3]), np.array([3.0, 2, 1])) == -1

    for text, said in (
        ("{}", "1: expected a line of `nereid choices`"),
        ('{"id": "a", "left_out": "untraceable"}', "got none"),
        ("not json", "expected a line"),
    ):
        done, _ = run(folder, "bad", text)
        assert done.returncode == 2 and said in done.stderr, done
print("fit_cost_model: ok")
