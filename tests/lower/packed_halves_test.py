"""packed_halves.py on PTX that LLVM wrote, and on what ptxas compiles rightly."""

import unittest

from packed_halves import dropped_constants

WRONG = """
	mov.b32 	%r85, 4;
	add.s16x2 	%r86, %r84, %r85;
	mov.b32 	{%rs43, _}, %r86;
	add.s16 	%rs44, %rs43, %rs39;
"""
SUM = "add.s16x2 	%r86, %r84, %r85;"


class Test(unittest.TestCase):
    def test_finds_a_constant_where_one_half_is_used(self):
        self.assertEqual(dropped_constants(WRONG), [SUM])
        swapped = WRONG.replace("%r84, %r85", "%r85, %r84")
        self.assertEqual(dropped_constants(swapped), ["add.s16x2 	%r86, %r85, %r84;"])
        for taken in (
            "mov.b32 	{_, %rs43}, %r86;",
            "mov.b32 	{%rs43, %rs99}, %r86;",
            "cvt.u16.u32 	%rs43, %r86;",
        ):
            self.assertEqual(dropped_constants(WRONG.replace("mov.b32 	{%rs43, _}, %r86;", taken)), [SUM])

    def test_whole_pairs_and_variables_are_right(self):
        both = WRONG.replace("{%rs43, _}", "{%rs43, %rs39}")
        self.assertEqual(dropped_constants(both), [])
        self.assertEqual(dropped_constants(WRONG + "\tst.global.b32 	[%rd1], %r86;\n"), [])
        variable = WRONG.replace("mov.b32 	%r85, 4;", "add.s32 	%r85, %r1, %r2;")
        self.assertEqual(dropped_constants(variable), [])


unittest.main()
