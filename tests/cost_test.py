"""What launches cost, found from a kernel's text, is what running every program of it finds: kernels by hand
and of the compiler's.

tests/cost_test.py NEREID COST_CHECK [--all] --all: every honest candidate, and many programs of each length
"""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HONEST = ROOT / "tests/honest"
CHOSEN = """add_relu_two_launches argmax_custom_combine attention_flash attention_causal_two_stages
    conv2d_implicit_gemm conv2d_im2col
depthwise_conv2d_rows group_norm_group max_pool2d_window matmul_grouped_order matmul_persistent
matmul_host_descriptors matmul_device_descriptors rope_halves softmax_online swiglu_views
transpose_tiles""".split()
nereid, check, everything = sys.argv[1], sys.argv[2], "--all" in sys.argv


def reference_of(candidate):
    return HONEST / re.search(r"reference:\s*(\S+)", candidate.read_text()).group(1)


def traced(pair):
    candidate, reference, output = pair
    subprocess.run([nereid, "trace", candidate, "--reference", reference, "-o", output], capture_output=True)
    return output if output.exists() else None


def compiled(folder):
    """What the compiler writes for sampled programs, small enough to walk."""
    for length, count in ((1, 12), (2, 8), (5, 6), (20, 2)) if everything else ((1, 3), (5, 2)):
        tasks = folder / f"L{length}"
        subprocess.run(
            [
                nereid,
                "synth",
                "--operators",
                str(length),
                "--count",
                str(count),
                "--seed",
                "7",
                "--max-elements",
                "2^15",
                "--max-work",
                "2^21",
                "-o",
                tasks,
            ],
            check=True,
            capture_output=True,
        )
        written = folder / f"W{length}"
        subprocess.run([nereid, "lower", *sorted(tasks.glob("*.py")), "-o", written], capture_output=True)
        yield from ((file, tasks / file.name) for file in sorted(written.glob("*.py")))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        honest = [file for file in sorted(HONEST.glob("*.py")) if everything or file.stem in CHOSEN]
        pairs = [*((file, reference_of(file)) for file in honest), *compiled(folder)]
        pairs = [
            (candidate, reference, folder / f"{k}.trace") for k, (candidate, reference) in enumerate(pairs)
        ]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            traces = [trace for trace in pool.map(traced, pairs) if trace]
        answer = subprocess.run([check, *traces], capture_output=True, text=True)
    launches = [json.loads(line) for line in answer.stdout.splitlines()]
    wrong = [launch for launch in launches if not launch["agree"]]
    for launch in wrong:
        print(json.dumps(launch))
    sampled = [launch for launch in launches if launch["unknown"] and not launch["moves_by_data"]]
    exact = sum(launch["error"] == 0 for launch in launches)
    print(
        f"{len(traces)} of {len(pairs)} traces, {len(launches)} launches: {exact} exact, {len(wrong)} wrong,"
        f" {len(sampled)} sampled though no data decides; {max(launch['ms'] for launch in launches):.1f} ms"
        " at most"
    )
    assert answer.returncode == 0 and not wrong, answer.stderr
    assert len(traces) >= 0.9 * len(pairs) and len(launches) > 10
    assert exact >= 0.8 * len(launches) and not sampled


if __name__ == "__main__":
    main()
