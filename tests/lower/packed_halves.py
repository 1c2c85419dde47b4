"""Finds what ptxas 12.8 to 13.0 compile wrongly for sm_90 and sm_100: a constant that is added to a pair of
16-bit numbers of which one is used afterwards.

    mov.b32 %r3, 4;
    add.s16x2 %r4, %r2, %r3;     // becomes VIADD.16x2 R0, R9, 0x0
    mov.b32 {%rs3, _}, %r4;

LLVM writes such pairs where it narrows divisions of numbers that may be negative (docs/compiler.md,
"Divisions of sums").
"""

import re

CONSTANT = re.compile(r"mov\.b32\s+(%r\d+), -?\d+;")
SUM = re.compile(r"add\.[su]16x2\s+(%r\d+), (%r\d+|-?\d+), (%r\d+|-?\d+);")


def is_used(name, ptx):
    """Whether a register is read: it is written once, and that is where its name comes first."""
    return len(re.findall(rf"{name}\b", ptx)) > 1


def halves_used(pair, ptx):
    """The halves that are used of a register; both where it is used as a whole."""
    used, parts = set(), 0
    for halves in re.findall(rf"mov\.b32\s+\{{(%rs\d+|_), (%rs\d+|_)\}}, {pair};", ptx):
        used |= {i for i, half in enumerate(halves) if half != "_" and is_used(half, ptx)}
        parts += 1
    lower = len(re.findall(rf"cvt\.u16\.u32\s+%rs\d+, {pair};", ptx))
    if lower:
        used.add(0)
    whole = len(re.findall(rf"{pair}\b", ptx)) - 1 > parts + lower  # it is written in one place
    return {0, 1} if whole else used


def dropped_constants(ptx):
    """The instructions of a PTX text whose constant ptxas drops."""
    constants = set(CONSTANT.findall(ptx))
    return [
        found[0]
        for found in SUM.finditer(ptx)
        if any(operand in constants or not operand.startswith("%") for operand in found.groups()[1:])
        and len(halves_used(found[1], ptx)) == 1
    ]
