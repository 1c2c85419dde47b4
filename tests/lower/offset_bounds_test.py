"""What offset_bounds.py finds in kernels whose addresses are within 32 bits, and in those whose are not."""

import sys
import unittest

from offset_bounds import overflows

KERNEL = """module {{
  tt.func public @k(%x_ptr: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}, %i_ptr: !tt.ptr<i32>, %step: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %many = arith.constant 70000 : i32
    %wide_many = arith.constant 70000 : i64
    %blocks = arith.constant dense<70000> : tensor<64xi32>
    %pid = tt.get_program_id x : i32 loc(#loc1)
    %lane = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32>
    {0}
    tt.return
  }}
}}
"""
AT = """%p = tt.addptr %x_ptr, %i : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>"""
GATHER = """%s = tt.splat %i_ptr : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %a = tt.addptr %s, %lane : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %row = tt.load %a : tensor<64x!tt.ptr<i32>>
    %i = arith.muli %row, %blocks : tensor<64xi32>
    %t = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %p = tt.addptr %t, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>"""
# A step of 30,677 to add each turn: 70,000 turns pass 2^31, 1,094 do not.
COUNT = """%i = scf.for %k = %c0 to %many step {} iter_args(%n = %c0) -> (i32)  : i32 {{
      %far = arith.addi %n, %thirty : i32
      scf.yield %far : i32
    }}
    """
LAST = """%i:2 = scf.for %k = %c0 to %many step %c1 iter_args(%n = %c0, %f = %z) -> (i32, f32)  : i32 {
      %b = arith.cmpf ogt, %f, %z : f32
      %far = arith.select %b, %k, %n : i32
      scf.yield %far, %f : i32, f32
    }
    %m = arith.muli %i#0, %c64 : i32"""


class OffsetBounds(unittest.TestCase):
    def found(self, body, programs, elements=1 << 31, step=(0, 0)):
        sizes = {"x_ptr": elements, "i_ptr": 64}
        return overflows(KERNEL.format(body), programs, sizes, {"step": step})

    def test_a_product_of_the_program_and_a_row(self):
        body = "%i = arith.muli %pid, %many : i32\n    " + AT
        self.assertEqual(self.found(body, 30677), [])
        self.assertIn("reaches 2,147,530,000", self.found(body, 30680)[0])

    def test_64_bits(self):
        wide = "%w = arith.extsi %pid : i32 to i64\n    %i = arith.muli %w, %wide_many : i64"
        self.assertEqual(self.found(wide, 1 << 31), [])
        late = "%i = arith.muli %pid, %many : i32\n    %w = arith.extsi %i : i32 to i64"
        self.assertTrue(self.found(late, 40000))

    def test_parts_of_a_number(self):
        body = """%q = arith.divsi %pid, %c64 : i32
    %r = arith.remsi %pid, %c64 : i32
    %a = arith.muli %q, %many : i32
    %i = arith.addi %a, %r : i32
    """
        self.assertEqual(self.found(body + AT, 30677 * 64), [])
        self.assertTrue(self.found(body + AT, 30680 * 64))

    def test_a_parameter(self):
        body = "%i = arith.muli %step, %many : i32\n    " + AT
        self.assertEqual(self.found(body, 1, step=(0, 30677)), [])
        self.assertTrue(self.found(body, 1, step=(0, 30680)))

    def test_what_comes_from_memory(self):
        self.assertEqual(self.found(GATHER, 1, elements=(1 << 31) - 1), [])
        self.assertIn("an offset into x_ptr of 2,147,483,648", self.found(GATHER, 1)[0])

    def test_loops(self):
        thirty = "%thirty = arith.constant 30680 : i32\n    "
        self.assertTrue(self.found(thirty + COUNT.format("%c1"), 1))
        self.assertEqual(self.found(thirty + COUNT.format("%c64"), 1), [])
        self.assertEqual(self.found("%z = arith.constant 0.0 : f32\n    " + LAST, 1), [])

    def test_an_operation_that_it_does_not_know(self):
        with self.assertRaises(ValueError):
            self.found("%i = arith.strangei %pid, %many : i32", 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
