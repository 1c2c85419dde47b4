"""Plans that begin with the shapes of what is given, as the engine needs them to complete sizes.

    python3 bench/small_model/given.py PAIRS.jsonl... -o FOLDER [--renamed 0.5] [--words tokenizer.json]

A brief plan begins with the traced steps: `#2 cat([#1, y], 1) [2, 160, 15, 15]`. The engine can say what
comes after the call (src/nereid/lm/plan_sizes) where it knows the shapes of x and y and every option that
decides a size. So the plan begins with these shapes, and two options that traces leave out are added,
`keepdim` of a reduction and `transposed` of a convolution:

    given x [2, 32, 15, 15], y [2, 96, 15, 15], conv_weight [64, 32, 3, 3]
    #1 convolution(x, conv_weight, [1, 1], [1, 1], [1, 1], [0, 0], 1) [2, 64, 15, 15]
    #2 cat([#1, y], 1) [2, 160, 15, 15]
    #3 mean(#2, [2, 3], keepdim) [2, 160, 1, 1]

Everything is read off the plan: shapes of given tensors are those of the kernels' lines, the options follow
from the sizes. Each of FOLDER's files is a file of PAIRS.jsonl with other plans; lines without a plan
(conversations) are left out.

With --renamed, the attributes of this share of the pairs get other names, the same in task, plan and program:
words of --words, a tokenizer's, one or two of them joined. Numbers with a point that are added, multiplied or
compared become others, too. A name that is also a word of the program is left alone, as is a number that
other operators have: a program may hold what is computed from these.
"""

import argparse
import json
import math
import pathlib
import random
import re
import zlib

STEP = re.compile(r"#(\d+) (\w+)\((.*?)\) (\[.*)$")
TENSOR = re.compile(r"([A-Za-z_]\w*) (\[[^\]]*\])")
REDUCTIONS = set(
    "sum mean amax amin std var logsumexp linalg_vector_norm nansum norm std_mean var_mean argmax argmin all "
    "any"
    " prod count_nonzero max min median nanmedian aminmax mode kthvalue".split()
)
# What an attribute's tensors are called after it, and what follows it in a program.
ENDINGS = r"_(?:weight|bias|running_mean|running_var|num_batches_tracked)(?:_ptr)?(?![A-Za-z0-9])"

SCALED = re.compile(r"#\d+ (?:add|sub|mul|div|lt|le|gt|ge)\(")


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


def transposed(operands, lists, result):
    """Whether a convolution's result is that of a transposed one alone."""
    x, weight, rank = operands[0], operands[1], len(result) - 2
    stride, padding, dilation, more = ((each * rank)[:rank] if len(each) == 1 else each for each in lists[:4])

    def length(d, of_transposed):
        reach = dilation[d] * (weight[2 + d] - 1)
        if of_transposed:
            return (x[2 + d] - 1) * stride[d] - 2 * padding[d] + reach + more[d] + 1
        return (x[2 + d] + 2 * padding[d] - reach - 1) // stride[d] + 1

    usual = all(length(d, False) == result[2 + d] for d in range(rank)) and result[1] == weight[0]
    return not usual and all(length(d, True) == result[2 + d] for d in range(rank))


def option_of(operator, arguments, shapes, result):
    """The option of a step that its arguments do not show, or ""."""
    operands = [shapes[each] for each in arguments if isinstance(each, str) and each in shapes]
    lists = [whole_numbers(each) for each in arguments if isinstance(each, list)]
    if operator == "convolution":
        known = (
            len(operands) > 1 and len(lists) >= 4 and None not in lists and len(operands[0]) == len(result)
        )
        return "transposed" if known and transposed(operands, lists, result) else ""
    if operator in REDUCTIONS and len(operands) == 1 and operands[0]:
        return "keepdim" if len(operands[0]) == len(result) else ""
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


def with_given(plan):
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
        sizes = [shape_of(text) for text in re.findall(r"\[[^\]]*\]", re.sub(r" strides[^\[]*", "", results))]
        if operator == "unsqueeze" and arguments[0] in given and sizes and sizes[0] is not None:
            # A kernel may take the result by the name of what it is a view of.
            shape = list(sizes[0])
            if arguments[1:] and re.fullmatch(r"-?\d+", arguments[1]) and int(arguments[1]) < len(shape):
                shape.pop(int(arguments[1]))
                given[arguments[0]] = shapes[arguments[0]] = shape
        if sizes and sizes[0] is not None:
            try:
                option = option_of(operator, arguments, shapes, sizes[0])
            except (IndexError, ValueError, ZeroDivisionError):  # arguments of another form
                option = ""
            for number_, size in enumerate(sizes):
                if size is not None:
                    shapes[f"#{index}" + (f".{number_ + 1}" if number_ else "")] = size
            inner += f", {option}" if option else ""
        made.append(f"#{index} {operator}({inner}) {results}")
    head = ", ".join(f"{name} {shape}" for name, shape in given.items())
    return "\n".join(([f"given {head}"] if head else []) + made + lines[steps:])


def words_of(path):
    """Lower-case words of a tokenizer's vocabulary, without Python's own."""
    import keyword

    vocabulary = json.loads(path.read_text())["model"]["vocab"]
    words = {re.sub("^[Ġ ]", "", word) for word in vocabulary}
    return sorted(w for w in words if re.fullmatch(r"[a-z]{3,12}", w) and not keyword.iskeyword(w))


def renamed(pair, words, draw):
    """The pair with other names of attributes, and other numbers with a point."""
    task, plan, code = pair["task"], pair["plan"], pair["code"]
    text = "\n".join((task, plan, code))
    taken = set(re.findall(r"[A-Za-z_]\w*", text))
    for name in sorted(set(re.findall(r"self\.([a-z]\w*) = nn\.", task)), key=len, reverse=True):
        word = rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9])"
        # All its places are self.NAME, NAME_weight and the like, or "NAME" of a state's name.
        uses = len(re.findall(word, text))
        known = len(re.findall(rf"self\.{name}(?![A-Za-z0-9_])", text)) + len(
            re.findall(rf"(?<![A-Za-z0-9_.]){name}{ENDINGS}", text)
        )
        attribute = len(re.findall(rf"self\.{name}_", text))  # another attribute, which begins alike
        if uses != known or attribute or re.search(rf"[A-Za-z0-9]_{name}_", text):
            continue
        new = draw.choice(words) if draw.random() < 0.5 else "_".join(draw.sample(words, 2))
        new += draw.choice(["", "", "", str(draw.randrange(10))])
        if new in taken or any(each.startswith(new) for each in taken):
            continue
        taken.add(new)
        task, plan, code = (re.sub(word, new, each) for each in (task, plan, code))
        text = "\n".join((task, plan, code))
    for value in sorted(set(re.findall(r"(?<![\w.*-])\d+\.\d+(?![\w.*])", task))):
        literal = rf"(?<![\w.]){re.escape(value)}(?![\w.])"
        steps = [line for line in plan.split("\n") if re.search(literal, line)]
        if float(value) == 0 or not steps or not all(SCALED.match(line) for line in steps):
            continue
        if not re.search(literal, code):
            continue
        new = repr(float(f"{float(value) * draw.uniform(0.4, 1):.{draw.randint(1, 4)}g}"))
        if "e" in new or re.search(rf"(?<![\w.]){re.escape(new)}(?![\w.])", text):
            continue
        task, plan, code = (re.sub(literal, new, each) for each in (task, plan, code))
        text = "\n".join((task, plan, code))
    return pair | {"task": task, "plan": plan, "code": code}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="+", type=pathlib.Path, help="files of nereid train pairs")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder of the same files")
    parser.add_argument(
        "--renamed", type=float, default=0, help="share of pairs with other names (default: 0)"
    )
    parser.add_argument(
        "--words", type=pathlib.Path, help="tokenizer.json whose words are names, with --renamed"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the names (default: 1)")
    options = parser.parse_args()
    if options.renamed and not options.words:
        parser.error("--renamed: expected --words with it")
    words = words_of(options.words) if options.renamed else []
    options.output.mkdir(parents=True, exist_ok=True)
    lines = changed = left_out = renamed_ones = 0
    for path in options.pairs:
        draw = random.Random(options.seed + zlib.crc32(path.name.encode()))
        with open(path) as file, open(options.output / path.name, "w") as out:
            for line in file:
                pair = json.loads(line)
                lines += 1
                if "plan" not in pair:
                    left_out += 1
                    continue
                if draw.random() < options.renamed:
                    new = renamed(pair, words, draw)
                    renamed_ones += new != pair
                    pair = new
                plan = with_given(pair["plan"])
                changed += plan != pair["plan"]
                out.write(json.dumps(pair | {"plan": plan}) + "\n")
    print(json.dumps({"lines": lines, "changed": changed, "renamed": renamed_ones, "left_out": left_out}))


if __name__ == "__main__":
    main()
