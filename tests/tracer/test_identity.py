"""Every layer of torch.nn and many functions: a trace replayed on the CPU is what PyTorch computes there, bit by bit."""
import sys
import unittest

from functions import FUNCTIONS
from identity import check, count_inputs, source_of
from layers import LAYERS

TABLES = {"layers": LAYERS, "functions": FUNCTIONS}


def cases_of(table, wanted=""):
    cases = {}
    for name, (init, forward, inputs) in table.items():
        if forward is None:
            forward = "self.m(" + ", ".join("abcdefgh"[: count_inputs(inputs)]) + ")"
        if wanted in name:
            cases[name] = source_of(init, forward, inputs)
    return cases


class Identity(unittest.TestCase):
    def check_table(self, table):
        cases = cases_of(table)
        wrong = check(cases)
        self.assertEqual({}, wrong, f"{len(wrong)} of {len(cases)} differ")

    def test_layers(self):
        self.check_table(LAYERS)

    def test_functions(self):
        self.check_table(FUNCTIONS)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in TABLES:  # test_identity.py layers [PART OF A NAME]: what differs, case by case
        found = check(cases_of(TABLES[sys.argv[1]], *sys.argv[2:3]))
        for case, why in found.items():
            print(f"{case}: {why}")
        sys.exit(bool(found))
    unittest.main()
