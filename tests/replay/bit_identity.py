"""nereid-replay gives, to the last bit, what PyTorch gives eagerly on the CPU under the same seed.

    bit_identity.py NEREID_REPLAY [--references FOLDER] [--parts N] [NAME...]

Cases: torch.nn's layers and functions (tests/tracer/layers.py, functions.py) and the tasks of tests/tasks; or
the files of FOLDER (tests/modules/write_references.py makes one). NAMEs choose those that contain one of
them. Each is traced, replayed by the program, and run eagerly in a process whose PyTorch is unpatched.
Compared: the inputs and the output of the judged call. Layers and functions are also replayed by the tracer's
own check (tests/tracer/replay.py), of which every call's output is compared.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tracer"), str(HERE.parents[1] / "python")]
import preloaded  # noqa: E402
from layers import ROUNDED  # noqa: E402
from sample import sampled  # noqa: E402

SEED = 1234

# What a difference is due to, where there is one that stays.
EXCEPTIONS = {
    **ROUNDED,
    "lazy_in_forward": "its parameters are drawn in the first call; eager makes one call alone",
    "task_topk_in_any_order": "topk(sorted=False) promises no order",
    "task_topk_weights": "topk(sorted=False) promises no order",
    "stateful": "what earlier calls do to state that the constructor made is undone before the judged call",
}


def eager(folder):
    """In a process of its own: runs every case's judged call and writes how the replay's tensors differ from
    it."""
    import eager  # noqa: F401  before torch: it makes torch.compile eager
    import torch

    torch.set_num_threads(1)
    wrong = {}
    for case in json.loads((folder / "cases.json").read_text()):
        try:
            why = compare(folder / case["name"], run(case))
        except Exception as error:
            why = f"eager: {type(error).__name__}: {error}"[:500]
        if why:
            wrong[case["name"]] = why
    (folder / "wrong.json").write_text(json.dumps(wrong))


def run(case):
    import types

    import torch
    from eager import plain, put_pins
    from seeds import phase_seed
    from torch.utils._pytree import tree_leaves

    with torch.no_grad():
        module = types.ModuleType("case")
        sys.modules["case"] = module
        torch.manual_seed(phase_seed(SEED, "module", 0))
        exec(compile(case["source"], case["name"], "exec"), module.__dict__)
        torch.manual_seed(phase_seed(SEED, "init", 0))
        arguments = module.get_init_inputs()
        instance = module.Model(**arguments) if isinstance(arguments, dict) else module.Model(*arguments)
        torch.manual_seed(phase_seed(SEED, "make_inputs", 2))
        inputs = module.get_inputs()
        put_pins(inputs, 2, case["pins"])
        kept = plain(inputs)
        torch.manual_seed(phase_seed(SEED, "forward", 2))
        output = plain(instance(**inputs) if isinstance(inputs, dict) else instance(*inputs))
        return [[t for t in tree_leaves(tree) if isinstance(t, torch.Tensor)] for tree in (kept, output)]


def compare(folder, theirs):
    """None, or how the replay in `folder` and eager differ."""
    import torch

    manifest = json.loads((folder / "manifest.json").read_text())
    if "failure" in manifest:
        return manifest["failure"]
    for group, tensors in zip(("inputs", "outputs"), theirs):
        if len(manifest[group]) != len(tensors):
            return f"{len(manifest[group])} {group} for {len(tensors)}"
        for ours, tensor in zip(manifest[group], tensors):
            if ours["sizes"] != list(tensor.shape):
                return f"{group} {ours['path']}: {ours['sizes']} for {list(tensor.shape)}"
            mine = (folder / ours["file"]).read_bytes()
            flat = tensor.resolve_conj().resolve_neg().contiguous().flatten()
            its = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
            if mine != its:
                count = sum(a != b for a, b in zip(mine, its))
                return f"{group} {ours['path']}: {count} of {len(its)} bytes differ ({len(mine)} came)"
    return None


def sources(folder, wanted, parts):
    cases = sources_of_folder(folder) if folder else all_sources()
    chosen = {
        name: source for name, source in cases.items() if not wanted or any(word in name for word in wanted)
    }
    return {name: chosen[name] for name in sampled(chosen, parts)}


def sources_of_folder(folder):
    return {path.stem: path.read_text() for path in sorted(pathlib.Path(folder).glob("*.py"))}


def all_sources():
    from functions import FUNCTIONS
    from identity import count_inputs, source_of
    from layers import LAYERS

    cases = {}
    for table in (LAYERS, FUNCTIONS):
        for name, (init, forward, inputs) in table.items():
            assert name not in cases, f"two cases are called {name}"
            call = forward or "self.m(" + ", ".join("abcdefgh"[: count_inputs(inputs)]) + ")"
            cases[name] = source_of(init, call, inputs)
    for path in sorted((HERE.parent / "tasks").glob("*.py")):
        cases["task_" + path.stem] = path.read_text()
    return cases


def trace_all(cases, folder):
    """Traces each; returns what eager must know, what the tracer's own replayer gives for the requested ones,
    and what went wrong."""
    from functions import FUNCTIONS
    from identity import pins_of, replay_outputs, trace
    from layers import LAYERS

    listed, replays, wrong = [], {}, {}
    for name, source in cases.items():
        answer = trace(source, name)
        if "trace" not in answer:
            wrong[name] = "not traced: " + json.dumps(answer)[:300]
            continue
        document = json.loads(json.dumps(answer["trace"]))
        (folder / f"{name}.json").write_text(json.dumps(document))
        listed.append({"name": name, "source": source, "pins": pins_of(document)})
        if name in LAYERS or name in FUNCTIONS:
            replays[name] = replay_outputs(document)
    return listed, replays, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--references")
    parser.add_argument("--parts", type=int, default=1, help="run one of so many parts (tests/sample.py)")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cases, replays, wrong = trace_all(sources(options.references, options.names, options.parts), folder)
        (folder / "cases.json").write_text(json.dumps(cases))
        if not cases:
            sys.exit(f"nothing was traced: {wrong}")
        arguments = [
            word
            for case in cases
            for word in ("--trace", folder / f"{case['name']}.json", "--dump", folder / case["name"])
        ]
        subprocess.run([options.program, "--seed", str(SEED), *arguments], check=False)
        subprocess.run(preloaded.command("torch", __file__, "--eager", folder), check=True)
        wrong.update(json.loads((folder / "wrong.json").read_text()))
    for name, why in wrong.items():
        print(f"{name}: {why}" + (f" (known: {EXCEPTIONS[name]})" if name in EXCEPTIONS else ""))
    print(f"{len(cases)} cases, {len(wrong)} differ")
    by_tracer = {}
    if replays:
        from identity import differences

        by_tracer = differences([case for case in cases if case["name"] in replays], replays)
        for name, why in by_tracer.items():
            print(f"{name}, by the tracer's own replayer: {why}")
        print(f"{len(replays)} replayed by the tracer's own replayer, {len(by_tracer)} differ")
    sys.exit(bool(by_tracer) or any(name not in EXCEPTIONS for name in wrong))


if __name__ == "__main__":
    if sys.argv[1] == "--eager":
        eager(pathlib.Path(sys.argv[2]))
    else:
        main()
