"""`python -m nereid._tracer.tracer`: the tracer by hand, without a sandbox; for developers."""

import argparse
import json
import sys


def run(handle):
    parser = argparse.ArgumentParser(
        prog="nereid._tracer.tracer",
        description="Trace a module; prints the tracer's answer. Runs the file unsandboxed.",
    )
    parser.add_argument("file")
    parser.add_argument("--class", dest="class_name", help="Model, or ModelNew with --reference")
    parser.add_argument("--reference", help="the task whose inputs a candidate gets")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the whole answer; else a line for each step")
    options = parser.parse_args()
    given = None
    if options.reference:
        answer = handle(_request(options.reference, "Model", options.draw, None))
        if "trace" not in answer:
            return _print(answer, options.json)
        given = reference_inputs(answer["trace"])
    name = options.class_name or ("ModelNew" if options.reference else "Model")
    return _print(handle(_request(options.file, name, options.draw, given)), options.json)


def reference_inputs(trace):
    """What a candidate's request carries of its reference's trace."""
    inputs = [phase["inputs"] for phase in trace["phases"] if phase["phase"] == "make_inputs"]
    return {
        "storages": trace["storages"],
        "values": trace["values"],
        "inputs": inputs,
        "init_inputs": trace["init_inputs"],
    }


def _request(path, class_name, draw, given):
    with open(path) as file:
        return {
            "source": file.read(),
            "path": path,
            "class": class_name,
            "draw": draw,
            "globals": {},
            "calls": 3,
            "reference": given,
        }


def _print(answer, as_json):
    if as_json:
        json.dump(answer, sys.stdout)
        print()
    elif "trace" in answer:
        print_trace(answer["trace"])
    else:
        json.dump(answer, sys.stdout, indent=1)
        print()
    return 0 if "trace" in answer else 1


def print_trace(trace):
    values = trace["values"]

    def text(arg):
        if isinstance(arg, dict) and "v" in arg:
            value = values[arg["v"]]
            return f"{value['t']}{value['n']}@{value['s']}"
        if isinstance(arg, list):
            return "[" + ", ".join(map(text, arg)) + "]"
        if isinstance(arg, dict):
            ((kind, body),) = arg.items()
            return f"({text(body)[1:-1]})" if kind == "tuple" else f"{kind}:{body}"
        return repr(arg)

    for phase in trace["phases"]:
        print(f"{phase['phase']} {phase['call']}")
        for step in phase["steps"]:
            where = f"{step['at'][0]}:{step['at'][1]}"
            if "call" in step:
                arguments = [text(arg) for arg in step.get("args", [])] + [
                    f"{key}={text(arg)}" for key, arg in step.get("kwargs", [])
                ]
                print(f"  {step['call']}({', '.join(arguments)}) -> {text(step['result'])}  [{where}]")
            else:
                for alternative in step["launch"]:
                    kernel = trace["kernels"][alternative["kernel"]]
                    print(
                        f"  {kernel['name']}{alternative['grid']} {alternative['args']}"
                        f" {alternative.get('config', '')}  [{where}]"
                    )
        if "output" in phase:
            print(f"  returns {text(phase['output'])}")
    print(f"{trace['seconds'] * 1e3:.1f} ms; flags {trace['flags']}; notes {trace['notes']}")
