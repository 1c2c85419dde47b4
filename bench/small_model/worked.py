"""Plans that show their work: shapes of what is given first, and the arithmetic of each new size.

    python3 bench/small_model/worked.py PAIRS.jsonl... -o FOLDER

A brief plan begins with the traced steps: `#2 cat([#1, y], 1) [2, 160, 15, 15]`. A model that writes it from
a program's text has to add 64 and 96 in its head, and to know sizes that it has not written yet. Here the
plan begins with the given tensors' shapes, and a step says how a size comes about before it says the size:

    given x [2, 32, 15, 15], y [2, 96, 15, 15], conv_weight [64, 32, 3, 3]
    #1 convolution(x, conv_weight, [1, 1], [1, 1], [1, 1], [0, 0], 1) 15 + 2 - 2 = 15 -> [2, 64, 15, 15]
    #2 cat([#1, y], 1) 64 + 96 = 160 -> [2, 160, 15, 15]

Everything is read off the plan: shapes of given tensors are those of the kernels' lines. Each of FOLDER's
files is a file of PAIRS.jsonl with other plans; lines without a plan (conversations) are left out.
"""

import argparse
import json
import math
import pathlib
import re

STEP = re.compile(r"#(\d+) (\w+)\((.*?)\) (\[.*)$")
TENSOR = re.compile(r"([A-Za-z_]\w*) (\[[^\]]*\])")
POOLS = {"avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"}
PADS = {"constant_pad_nd"} | {f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)}
VIEWS = {"view", "reshape", "_unsafe_view", "_reshape_copy"}


def number(text):
    """A size: an integer or a product of integers."""
    return math.prod(int(part) for part in text.split("*")) if re.fullmatch(r"[\d *]+", text) else None


def shape_of(text):
    inner = text.strip()[1:-1]
    sizes = [number(part.strip()) for part in inner.split(",")] if inner.strip() else []
    return None if None in sizes else sizes


def arguments_of(text):
    """Arguments at the outer level: names, numbers, and lists of them as lists."""
    found, depth, word = [], 0, ""
    for character in text + ",":
        if character == "," and depth == 0:
            if word.strip():
                found.append(word.strip())
            word = ""
            continue
        depth += (character == "[") - (character == "]")
        word += character
    return [arguments_of(each[1:-1]) if each.startswith("[") else each for each in found]


def whole_numbers(values):
    return (
        [int(each) for each in values] if all(re.fullmatch(r"-?\d+", str(each)) for each in values) else None
    )


def window(length, kernel, stride, padding, dilation, size):
    """How a convolution or a pool comes from `length` to `size`, or None."""
    reach = dilation * (kernel - 1)
    first = length + 2 * padding - reach
    if (first - 1) // stride + 1 != size:
        return None
    span = f"{length}" + (f" + {2 * padding}" if padding else "") + (f" - {reach}" if reach else "")
    steps = [f"{span} = {first}"] if padding or reach else []
    return "; ".join(steps + ([f"({first} - 1) // {stride} + 1 = {size}"] if stride > 1 else []))


def added(terms):
    """A sum, two terms at a time."""
    steps, total = [], terms[0]
    for term in terms[1:]:
        steps.append(f"{total} + {term} = {total + term}")
        total += term
    return "; ".join(steps)


def transposed(length, kernel, stride, padding, dilation, output_padding, size):
    made = (length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1
    if made != size:
        return None
    ends = dilation * (kernel - 1) + output_padding + 1 - 2 * padding
    first = (length - 1) * stride
    return f"({length} - 1) * {stride} = {first}; {first} {'-' if ends < 0 else '+'} {abs(ends)} = {size}"


def convolution(operands, lists, result):
    x, weight, rank = operands[0], operands[1], len(result) - 2
    stride, padding, dilation, output = (
        (each * rank)[:rank] if len(each) == 1 else each for each in lists[:4]
    )
    made = []
    for d in range(rank):
        length, size, kernel = x[2 + d], result[2 + d], weight[2 + d]
        text = window(length, kernel, stride[d], padding[d], dilation[d], size)
        if text is None:
            text = transposed(length, kernel, stride[d], padding[d], dilation[d], output[d], size)
        if text is None:
            return ""
        made.append(text)
    return joined(made)


def pool(operands, lists, result):
    x, rank = operands[0], len(lists[0])
    kernel = lists[0]
    stride = lists[1] if len(lists) > 1 and lists[1] else kernel
    padding = lists[2] if len(lists) > 2 else [0] * rank
    dilation = lists[3] if len(lists) > 3 else [1] * rank
    made = [
        window(x[d - rank], kernel[d], stride[d], padding[d], dilation[d], result[d - rank])
        for d in range(rank)
    ]
    return "" if None in made else joined(made)


def joined(texts):
    return ", ".join(dict.fromkeys(text for text in texts if text))


def padded(operands, lists, result):
    x, pads, made = operands[0], lists[0], []
    for d in range(len(pads) // 2):
        before, after = pads[2 * d], pads[2 * d + 1]
        length, size = x[-1 - d], result[-1 - d]
        if before + length + after != size:
            return ""
        if before or after:
            made.append(added([each for each in (before, length, after) if each]))
    return joined(reversed(made))


def regrouped(old, new):
    """A view: which neighbours become one size, or one size several."""
    made, a, b = [], 0, 0
    while a < len(old) or b < len(new):
        left, right, p, q = [], [], 1, 1
        while True:
            if p <= q and a < len(old) and (p < q or not left):
                left.append(old[a])
                p *= old[a]
                a += 1
            elif b < len(new) and (q < p or not right):
                right.append(new[b])
                q *= new[b]
                b += 1
            elif p == q:
                break
            else:
                return ""
            if p == q and left and right:
                break
        left, right = [n for n in left if n != 1], [n for n in right if n != 1]
        if left != right:
            if len(right) <= 1:
                made.append(f"{' * '.join(map(str, left)) or 1} = {right[0] if right else 1}")
            else:
                made.append(f"{' * '.join(map(str, left)) or 1} = {' * '.join(map(str, right))}")
    return joined(made)


def work_of(operator, arguments, shapes, result):
    """The arithmetic of `result`, "" where there is none to show."""
    tensors = [each for each in arguments if isinstance(each, str) and each in shapes]
    operands = [shapes[each] for each in tensors]
    lists = [whole_numbers(each) for each in arguments if isinstance(each, list)]
    rest = whole_numbers(
        [e for e in arguments if isinstance(e, str) and e not in shapes and re.fullmatch(r"-?\d+", e)]
    )
    if operator == "cat" and isinstance(arguments[0], list) and all(each in shapes for each in arguments[0]):
        d = rest[0] if rest else 0
        sizes = [shapes[each][d] for each in arguments[0]]
        if len(sizes) > 1 and sum(sizes) == result[d]:
            return added(sizes)
        return ""
    if not operands or None in lists:
        return ""
    x = operands[0]
    if operator == "convolution" and len(operands) > 1 and len(lists) >= 4 and len(x) == len(result):
        return convolution(operands, lists, result)
    if operator in POOLS and lists:
        return pool(operands, lists, result)
    if operator in PADS and lists:
        return padded(operands, lists, result)
    if operator in VIEWS:
        return regrouped(x, result)
    if operator == "slice" and len(rest) >= 3 and len(rest) < 5:
        d, begin, end = rest[:3]
        length = x[d]
        begin = begin + length if begin < 0 else begin
        end = min(end + length if end < 0 else end, length)
        step = rest[3] if len(rest) > 3 else 1
        if -(-(end - begin) // step) == result[d] and result[d] != length:
            less = f"{end} - {begin} = {end - begin}"
            return less if step == 1 else f"({end} - {begin}) / {step} = {result[d]}"
        return ""
    if operator == "repeat" and lists and len(lists[0]) == len(result):
        old = [1] * (len(result) - len(x)) + x
        return joined(
            f"{n} * {times} = {size}" for n, times, size in zip(old, lists[0], result) if times != 1 != n
        )
    return ""


def shapes_in(lines):
    """Shapes of tensors in kernels' lines; of one that some kernel takes with neighbouring axes as one, the
    whole."""
    shapes = {}
    for line in lines:
        if ": " not in line or " -> " not in line:
            continue
        for name, text in TENSOR.findall(line.split(": ", 1)[1]):
            shape = shape_of(text)
            if shape is not None and (name not in shapes or len(shape) > len(shapes[name])):
                shapes[name] = shape
    return shapes


def worked(plan):
    lines = plan.split("\n")
    steps = next((i for i, line in enumerate(lines) if not line.startswith("#") and line != ""), 0)
    if not lines[steps].startswith("returns"):
        return plan
    first, shapes, given, made = shapes_in(lines[steps + 1 :]), {}, {}, []
    for line in lines[:steps]:
        step = STEP.fullmatch(line)
        if not step:
            made.append(line)
            continue
        index, operator, inner, results = step.groups()
        arguments = arguments_of(inner)
        for name in [n for each in arguments for n in (each if isinstance(each, list) else [each])]:
            if isinstance(name, str) and name in first and name not in given:
                given[name] = shapes[name] = first[name]
        sizes = [shape_of(text) for text in re.findall(r"\[[^\]]*\]", results.split(" strides")[0])]
        text = ""
        if sizes and sizes[0] is not None:
            try:
                text = work_of(operator, arguments, shapes, sizes[0])
            except (IndexError, ValueError):  # arguments of another form
                text = ""
            for number_, size in enumerate(sizes):
                if size is not None:
                    shapes[f"#{index}" + (f".{number_ + 1}" if number_ else "")] = size
        made.append(f"#{index} {operator}({inner}) {text + ' -> ' if text else ''}{results}")
    head = ", ".join(f"{name} {shape}" for name, shape in given.items())
    return "\n".join(([f"given {head}"] if head else []) + made + lines[steps:])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="+", type=pathlib.Path, help="files of nereid train pairs")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder of the same files")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    lines = changed = left_out = 0
    for path in options.pairs:
        with open(path) as file, open(options.output / path.name, "w") as out:
            for line in file:
                pair = json.loads(line)
                lines += 1
                if "plan" not in pair:
                    left_out += 1
                    continue
                plan = worked(pair["plan"])
                changed += plan != pair["plan"]
                out.write(json.dumps(pair | {"plan": plan}) + "\n")
    print(json.dumps({"lines": lines, "changed": changed, "left_out": left_out}))


if __name__ == "__main__":
    main()
