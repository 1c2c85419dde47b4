"""Training pairs of the same tasks at other sizes, answered by the compiler at these sizes.

    python3 bench/small_model/reshaped.py TASKS.jsonl... OUT.jsonl [--count 1000] [--jobs 2]

A number of the inputs that is at least 5 becomes another one wherever the task's text has it: in
get_inputs(), get_init_inputs(), constructors and shapes. One to three numbers of a task change. A product or
a quotient of a changed number and another one that the text has changes with it (of 4 heads of 16 in 64, 64
becomes 4 * 24 with 16 to 24). What PyTorch refuses then cannot be traced and is left out; a pair is an answer
of `nereid train pairs`, of which one in --verify-every is judged and kept if it is Verified. The last line on
stdout counts, per minute of one core.
"""

import argparse
import ast

from answers import LeftOut, add_options, function_of, parsed, run, text_of

SIZES = [
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    20,
    21,
    24,
    25,
    28,
    30,
    32,
    33,
    36,
    40,
    48,
    50,
    56,
    60,
    63,
]
SIZES += [
    64,
    65,
    72,
    80,
    96,
    100,
    112,
    120,
    127,
    128,
    129,
    144,
    160,
    192,
    200,
    224,
    255,
    256,
    320,
    384,
    512,
    640,
]
MOST_ELEMENTS = 1 << 21
SMALLEST = 5


class Numbers(ast.NodeTransformer):
    def __init__(self, changed):
        self.changed = changed

    def visit_Constant(self, node):
        if type(node.value) is int and node.value in self.changed:
            return ast.copy_location(ast.Constant(self.changed[node.value]), node)
        return node


def numbers_of(tree):
    return [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is int
    ]


def elements_of(tree):
    """Of the largest list of sizes in get_inputs()."""
    most = 1
    for node in ast.walk(function_of(tree, "get_inputs")):
        sizes = (
            node.args
            if isinstance(node, ast.Call)
            else node.elts
            if isinstance(node, (ast.Tuple, ast.List))
            else []
        )
        product = 1
        for size in sizes:
            if isinstance(size, ast.Constant) and type(size.value) is int:
                product *= max(size.value, 1)
        most = max(most, product)
    return most


def changes(sizes, known, rng):
    """{number: other} of some sizes, and of numbers that are products with them."""
    chosen = rng.sample(sizes, min(len(sizes), rng.choice([1, 1, 2, 2, 3])))
    changed = {}
    for size in chosen:
        near = [other for other in SIZES if size / 4 <= other <= size * 4 and other != size]
        # Widths that are split over heads or groups often stay multiples.
        even = [other for other in near if other % 4 == 0] if size % 4 == 0 and rng.random() < 0.7 else near
        if near:
            changed[size] = rng.choice(even or near)
    for number in known:
        if number in changed:
            continue
        for size, other in list(changed.items()):
            factor, rest = divmod(number, size)
            if rest == 0 and 2 <= factor <= 16:
                changed[number] = factor * other
                break
    return changed


def reshaped(tasks, rng):
    source, code = rng.choice(tasks)
    tree = parsed(code)
    sizes = sorted({number for number in numbers_of(function_of(tree, "get_inputs")) if number >= SMALLEST})
    if not sizes:
        raise LeftOut("no sizes")
    known = sorted({number for number in numbers_of(tree) if number >= 2 * SMALLEST})
    changed = changes(sizes, known, rng)
    if not changed:
        raise LeftOut("no sizes")
    tree = Numbers(changed).visit(tree)
    if elements_of(tree) > MOST_ELEMENTS:
        raise LeftOut("a large tensor")
    return source, text_of(tree)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    run(parser.parse_args(), reshaped, "reshaped")


if __name__ == "__main__":
    main()
