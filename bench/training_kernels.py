"""Candidates for training's kernels against those in use (python/nereid/_compiler/engine_kernels.py):
attention over packed documents, its gradients, the losses.

    .venv/bin/python bench/training_kernels.py --seconds 120      on a GPU: compiled in parallel, checked,
                                                                  timed in turns, a table a part as it comes
    ... --shapes 100m --rounds 20 --only keys
    ... --shapes 100m --take FOLDER                               the fastest as a package FOLDER/nereid (a
                                                                  copy of $NEREID_PACKAGE, or of this tree's)
                                                                  for whole training steps: .
                                                                  FOLDER/environment, then tests/gpu/train.py
    ... --compile                                                 without one: registers, spills and shared
                                                                  memory of each on an H200
    TRITON_INTERPRET=1 ... --check [few]                          without one: each one's result at toy size
                                                                  against PyTorch's in float64 (few: tiles
                                                                  as high as wide for descriptors alone)

A candidate has the parameters of the kernel that it may replace, so that taking it over is a matter of its
text and of `tiles_of` in src/nereid/train/kernels/training_operators.cpp.
"""

import argparse
import concurrent.futures
import inspect
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import time

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from nereid._compiler import engine_kernels as own  # noqa: E402


@triton.jit
def tile_of(pointers, mask, WHOLE: tl.constexpr):
    """A tile that is there as a whole is loaded without a predicate for each of its parts."""
    if WHOLE:
        found = tl.load(pointers)
    else:
        found = tl.load(pointers, mask=mask, other=0.0)
    return found


@triton.jit
def keys_of_whole_tiles(
    gradient,
    turned,
    joined,
    ends,
    logsums,
    dots,
    of_turned,
    of_joined,
    tokens,
    scale,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_PADDED: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """packed_attention_keys in two loops, the second of which has no masks at all: the last tile of queries,
    which may end after the document, is the first loop's; and heads and places are counted on, not divided
    out of one number."""
    key_head, first = tl.program_id(0), tl.program_id(1) * KEYS
    GROUP: tl.constexpr = HEADS // KEY_HEADS
    rows, columns, dims = tl.arange(0, KEYS), tl.arange(0, QUERIES), tl.arange(0, DIM_PADDED)
    dim_is = dims < DIM
    keys = first + rows
    key_is = keys < tokens
    mask = key_is[:, None] & dim_is[None, :]
    STRIDE: tl.constexpr = (HEADS + KEY_HEADS) * DIM
    VALUE_STRIDE: tl.constexpr = (HEADS + 2 * KEY_HEADS) * DIM
    WIDTH: tl.constexpr = HEADS * DIM
    of_key = first.to(tl.int64) * STRIDE + (HEADS + key_head) * DIM + rows[:, None] * STRIDE + dims[None, :]
    of_value = (
        first.to(tl.int64) * VALUE_STRIDE
        + (HEADS + KEY_HEADS + key_head) * DIM
        + rows[:, None] * VALUE_STRIDE
        + dims[None, :]
    )
    k = tl.load(turned + of_key, mask=mask, other=0.0)
    v = tl.load(joined + of_value, mask=mask, other=0.0)
    own_end = tl.load(ends + keys, mask=key_is, other=0)
    highest = tl.load(ends + tl.minimum(first + KEYS, tokens) - 1)
    tiles = tl.cdiv(highest - first, QUERIES)
    border = tl.where(
        tl.load(ends + first) == highest, tl.minimum((KEYS + QUERIES - 2) // QUERIES, tiles), tiles
    )
    masked = tl.minimum(border + 1, tiles)
    of_k = tl.zeros([KEYS, DIM_PADDED], tl.float32)
    of_v = tl.zeros([KEYS, DIM_PADDED], tl.float32)
    head = key_head * GROUP
    tile = tiles * 0
    for _ in range(0, masked * GROUP):
        at = first + tl.where(tile < border, tile, tiles - 1) * QUERIES
        queries = at + columns
        query_is = queries < highest
        here = query_is[:, None] & dim_is[None, :]
        q = tl.load(
            turned + tl.cast(at, tl.int64) * STRIDE + head * DIM + columns[:, None] * STRIDE + dims[None, :],
            mask=here,
            other=0.0,
        )
        grad = tl.load(
            gradient + tl.cast(at, tl.int64) * WIDTH + head * DIM + columns[:, None] * WIDTH + dims[None, :],
            mask=here,
            other=0.0,
        )
        logsum = tl.load(logsums + tl.cast(head, tl.int64) * tokens + queries, mask=query_is, other=0.0)
        dot = tl.load(dots + tl.cast(head, tl.int64) * tokens + queries, mask=query_is, other=0.0)
        shares = tl.exp2(tl.dot(k, tl.trans(q), input_precision="ieee") * scale - logsum[None, :])
        shares = tl.where(
            (keys[:, None] <= queries[None, :]) & (queries[None, :] < own_end[:, None]), shares, 0.0
        )
        of_v += tl.dot(shares.to(grad.dtype), grad, input_precision="ieee")
        of_scores = shares * (tl.dot(v, tl.trans(grad), input_precision="ieee") - dot[None, :])
        of_k += tl.dot(of_scores.to(q.dtype), q, input_precision="ieee")
        tile += 1
        head = tl.where(tile == masked, head + 1, head)
        tile = tl.where(tile == masked, 0, tile)
    head = key_head * GROUP
    tile = border
    for _ in range(0, (tiles - masked) * GROUP):
        at = first + tile * QUERIES
        of_query = tl.cast(at, tl.int64) * STRIDE + head * DIM + columns[:, None] * STRIDE + dims[None, :]
        of_gradient = tl.cast(at, tl.int64) * WIDTH + head * DIM + columns[:, None] * WIDTH + dims[None, :]
        q = tile_of(turned + of_query, dim_is[None, :], DIM == DIM_PADDED)
        grad = tile_of(gradient + of_gradient, dim_is[None, :], DIM == DIM_PADDED)
        logsum = tl.load(logsums + tl.cast(head, tl.int64) * tokens + at + columns)
        dot = tl.load(dots + tl.cast(head, tl.int64) * tokens + at + columns)
        shares = tl.exp2(tl.dot(k, tl.trans(q), input_precision="ieee") * scale - logsum[None, :])
        of_v += tl.dot(shares.to(grad.dtype), grad, input_precision="ieee")
        of_scores = shares * (tl.dot(v, tl.trans(grad), input_precision="ieee") - dot[None, :])
        of_k += tl.dot(of_scores.to(q.dtype), q, input_precision="ieee")
        tile += 1
        head = tl.where(tile == tiles - 1, head + 1, head)
        tile = tl.where(tile == tiles - 1, border, tile)
    tl.store(
        of_turned + of_key, (of_k * (scale * 0.6931471805599453)).to(of_turned.dtype.element_ty), mask=mask
    )
    tl.store(of_joined + of_value, of_v.to(of_joined.dtype.element_ty), mask=mask)


@triton.jit
def queries_of_whole_tiles(
    gradient,
    turned,
    joined,
    starts,
    result,
    logsums,
    dots,
    of_turned,
    tokens,
    scale,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_PADDED: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """packed_attention_queries, whose whole tiles are loaded without masks."""
    head, first = tl.program_id(0), tl.program_id(1) * QUERIES
    key_head = head // (HEADS // KEY_HEADS)
    rows, columns, dims = tl.arange(0, QUERIES), tl.arange(0, KEYS), tl.arange(0, DIM_PADDED)
    dim_is = dims < DIM
    queries = first + rows
    query_is = queries < tokens
    mask = query_is[:, None] & dim_is[None, :]
    STRIDE: tl.constexpr = (HEADS + KEY_HEADS) * DIM
    VALUE_STRIDE: tl.constexpr = (HEADS + 2 * KEY_HEADS) * DIM
    of_query = first.to(tl.int64) * STRIDE + head * DIM + rows[:, None] * STRIDE + dims[None, :]
    of_result = (
        first.to(tl.int64) * (HEADS * DIM) + head * DIM + rows[:, None] * (HEADS * DIM) + dims[None, :]
    )
    q = tl.load(turned + of_query, mask=mask, other=0.0)
    grad = tl.load(gradient + of_result, mask=mask, other=0.0)
    dot = tl.sum(grad.to(tl.float32) * tl.load(result + of_result, mask=mask, other=0.0).to(tl.float32), 1)
    at_head = tl.cast(head, tl.int64) * tokens + queries
    tl.store(dots + at_head, dot, mask=query_is)
    logsum = tl.load(logsums + at_head, mask=query_is, other=0.0)
    own_start = tl.load(starts + queries, mask=query_is, other=0)
    lowest = tl.load(starts + first)
    end = tl.minimum(first + QUERIES, tokens)
    masked_from = lowest + tl.where(tl.load(starts + end - 1) == lowest, (first - lowest) // KEYS * KEYS, 0)
    of_q = tl.zeros([QUERIES, DIM_PADDED], tl.float32)
    for at in range(lowest, masked_from, KEYS):
        of_key = tl.cast(at, tl.int64) * STRIDE + (HEADS + key_head) * DIM
        of_value = tl.cast(at, tl.int64) * VALUE_STRIDE + (HEADS + KEY_HEADS + key_head) * DIM
        k = tile_of(
            turned + of_key + columns[:, None] * STRIDE + dims[None, :], dim_is[None, :], DIM == DIM_PADDED
        )
        v = tile_of(
            joined + of_value + columns[None, :] * VALUE_STRIDE + dims[:, None],
            dim_is[:, None],
            DIM == DIM_PADDED,
        )
        shares = tl.exp2(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - logsum[:, None])
        of_scores = shares * (tl.dot(grad, v, input_precision="ieee") - dot[:, None])
        of_q += tl.dot(of_scores.to(k.dtype), k, input_precision="ieee")
    for at in range(masked_from, end, KEYS):
        keys = at + columns
        key_is = keys < end
        of_key = tl.cast(at, tl.int64) * STRIDE + (HEADS + key_head) * DIM
        of_value = tl.cast(at, tl.int64) * VALUE_STRIDE + (HEADS + KEY_HEADS + key_head) * DIM
        k = tl.load(
            turned + of_key + columns[:, None] * STRIDE + dims[None, :],
            mask=key_is[:, None] & dim_is[None, :],
            other=0.0,
        )
        v = tl.load(
            joined + of_value + columns[None, :] * VALUE_STRIDE + dims[:, None],
            mask=key_is[None, :] & dim_is[:, None],
            other=0.0,
        )
        shares = tl.exp2(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - logsum[:, None])
        shares = tl.where(
            (keys[None, :] <= queries[:, None]) & (keys[None, :] >= own_start[:, None]), shares, 0.0
        )
        of_scores = shares * (tl.dot(grad, v, input_precision="ieee") - dot[:, None])
        of_q += tl.dot(of_scores.to(k.dtype), k, input_precision="ieee")
    tl.store(
        of_turned + of_query, (of_q * (scale * 0.6931471805599453)).to(of_turned.dtype.element_ty), mask=mask
    )


# Of each kernel, and whether it is given tensor descriptors: (queries, keys, warps, stages, registers a
# thread at most; 0: as many as the compiler likes). The first of each part is in use. Of a processor's 65,536
# registers three programs of four warps have 168 a thread each, four 128. Left out are those that spill much
# and those whose products ptxas "serializes" (--compile reports it): one such took 1.6 ms where the same
# tiles take 1.3.
NARROW = {  # heads of 64
    "forward": {
        (own.packed_attention, True): (
            (64, 64, 4, 2, 0),
            (64, 64, 4, 3, 0),
            (64, 64, 4, 2, 96),
            (64, 64, 4, 4, 0),
            (64, 32, 4, 4, 0),
            (128, 64, 4, 2, 0),
            (128, 64, 8, 3, 0),
            (64, 64, 4, 1, 96),
        ),
        (own.packed_attention, False): ((64, 64, 4, 3, 0), (64, 64, 4, 3, 128)),
    },
    "queries": {
        (own.packed_attention_queries, True): ((64, 64, 4, 3, 0), (64, 64, 4, 2, 136), (64, 32, 4, 3, 0)),
        (own.packed_attention_queries, False): ((64, 64, 4, 3, 0),),
        (queries_of_whole_tiles, False): ((64, 64, 4, 3, 0),),
    },
    "keys": {
        (own.packed_attention_keys_described, True): (
            (64, 64, 4, 2, 168),
            (32, 64, 4, 4, 168),
            (64, 64, 4, 3, 0),
            (64, 64, 4, 2, 0),
        ),
        (own.packed_attention_keys, False): ((32, 64, 4, 3, 0),),
        (keys_of_whole_tiles, False): ((32, 64, 4, 4, 168), (64, 64, 4, 3, 0), (64, 64, 4, 2, 168)),
    },
}
WIDE = {  # heads of 128
    "forward": {
        (own.packed_attention, False): ((64, 64, 4, 3, 0), (64, 64, 4, 2, 0), (64, 32, 4, 3, 0)),
        (own.packed_attention, True): (
            (64, 64, 4, 3, 0),
            (64, 64, 4, 2, 0),
            (128, 64, 8, 3, 0),
            (128, 64, 8, 2, 0),
            (128, 128, 8, 2, 0),
        ),
    },
    "queries": {
        (own.packed_attention_queries, False): ((64, 32, 4, 2, 0),),
        (queries_of_whole_tiles, False): (
            (64, 32, 4, 2, 0),
            (64, 32, 4, 3, 0),
            (64, 64, 8, 2, 0),
            (64, 64, 4, 2, 0),
            (128, 32, 8, 2, 0),
            (128, 64, 8, 2, 0),
        ),
        (own.packed_attention_queries, True): (
            (64, 32, 4, 2, 0),
            (64, 32, 4, 3, 0),
            (64, 64, 4, 2, 0),
            (64, 64, 4, 1, 0),
            (128, 64, 8, 2, 0),
            (128, 64, 8, 1, 0),
        ),
    },
    "keys": {
        (own.packed_attention_keys, False): ((32, 64, 4, 3, 0),),
        (keys_of_whole_tiles, False): (
            (32, 64, 4, 3, 0),
            (32, 64, 4, 2, 0),
            (16, 64, 4, 3, 0),
            (32, 64, 8, 2, 0),
            (64, 64, 8, 2, 0),
            (64, 64, 4, 2, 0),
            (32, 128, 8, 2, 0),
            (64, 128, 8, 2, 0),
        ),
        (own.packed_attention_keys_described, True): (
            (32, 64, 4, 3, 0),
            (32, 64, 4, 2, 0),
            (64, 64, 8, 2, 0),
            (64, 64, 4, 2, 0),
            (64, 128, 8, 2, 0),
            (64, 128, 8, 1, 0),
        ),
    },
}
DESCRIPTORS = {
    "forward": (0, 1),
    "queries": (1, 2),
    "keys": (0, 1),
}  # the parameters that are some where a candidate is described
LOSSES = [
    (own.token_losses, 8192, 16),
    (own.token_losses, 16384, 16),
    (own.token_losses, 8192, 8),
    (own.token_losses, 16384, 32),
]
SHAPES = {  # tokens at once, heads, key heads, head_dim, vocabulary
    "100m": (65536, 12, 4, 64, 32768),
    "small": (65536, 6, 2, 64, 4096),
    "1.7b": (16384, 16, 8, 128, 151936),
    "toy": (147, 4, 2, 16, 61),
}
INNER = {"100m": (768, 2048), "small": (384, 1024), "1.7b": (2048, 6144)}  # hidden, intermediate
IN_USE = {
    "forward": ("packed_attention",),
    "queries": ("packed_attention_queries",),
    "keys": ("packed_attention_keys", "packed_attention_keys_described"),
    "losses": ("token_losses",),
}


def documents(tokens, longest, generator):
    """Where each token's document begins and ends, as int32: lengths as in tests/gpu/train.py."""
    bounds = [0]
    while bounds[-1] < tokens:
        bounds.append(
            min(tokens, bounds[-1] + int(torch.randint(longest // 15, longest, (1,), generator=generator)))
        )
    starts, ends = torch.empty(tokens, dtype=torch.int32), torch.empty(tokens, dtype=torch.int32)
    for begin, end in zip(bounds, bounds[1:]):
        starts[begin:end], ends[begin:end] = begin, end
    return bounds, starts, ends


def constants_of(candidate, heads, key_heads, dim):
    kernel, queries, keys, *_, described = candidate
    constants = {
        "HEADS": heads,
        "KEY_HEADS": key_heads,
        "DIM": dim,
        "DIM_PADDED": dim,
        "QUERIES": queries,
        "KEYS": keys,
        "DESCRIBED": described,
    }
    return {name: value for name, value in constants.items() if name in kernel.arg_names}


class Attention:
    """One layer's attention: what its kernels are given, and what they leave."""

    def __init__(self, shape, device, kind, drawn=True):
        self.tokens, self.heads, self.key_heads, self.dim, _ = SHAPES[shape]
        self.bounds, starts, ends = documents(
            self.tokens, 3072 if shape != "toy" else 75, torch.Generator().manual_seed(7)
        )
        self.starts, self.ends = starts.to(device), ends.to(device)
        generator = torch.Generator(device=device).manual_seed(7)

        def made(*sizes):
            given = torch.empty(*sizes, device=device, dtype=kind)
            return given.normal_(generator=generator) if drawn else given

        self.turned = made(self.tokens, self.heads + self.key_heads, self.dim)
        self.joined = made(self.tokens, self.heads + 2 * self.key_heads, self.dim)
        self.gradient = made(self.tokens, self.heads, self.dim)
        self.result, self.of_turned, self.of_joined = (
            torch.empty_like(x) for x in (self.gradient, self.turned, self.joined)
        )
        self.logsums, self.dots = (torch.empty(self.heads, self.tokens, device=device) for _ in range(2))
        self.scale = math.log2(math.e) / math.sqrt(self.dim)

    def constants(self, candidate):
        return constants_of(candidate, self.heads, self.key_heads, self.dim)

    def arguments(self, part, candidate):
        """Positional arguments, and the grid."""
        _, queries, keys, *_, described = candidate
        gradient, turned, joined = self.gradient, self.turned, self.joined
        if described:
            from triton.tools.tensor_descriptor import TensorDescriptor

            block = [queries if part == "keys" else keys, self.dim]
            turned = TensorDescriptor.from_tensor(turned.view(self.tokens, -1), block)
            if part == "keys":
                gradient = TensorDescriptor.from_tensor(gradient.view(self.tokens, -1), block)
            else:
                joined = TensorDescriptor.from_tensor(joined.view(self.tokens, -1), block)
        if part == "forward":
            return (turned, joined, self.starts, self.result, self.logsums, self.tokens, self.scale), (
                self.heads,
                triton.cdiv(self.tokens, queries),
            )
        if part == "queries":
            return (
                gradient,
                turned,
                joined,
                self.starts,
                self.result,
                self.logsums,
                self.dots,
                self.of_turned,
                self.tokens,
                self.scale,
            ), (self.heads, triton.cdiv(self.tokens, queries))
        return (
            gradient,
            turned,
            joined,
            self.ends,
            self.logsums,
            self.dots,
            self.of_turned,
            self.of_joined,
            self.tokens,
            self.scale,
        ), (self.key_heads, triton.cdiv(self.tokens, keys))

    def launcher(self, part, candidate, compile_only=False):
        kernel, _, _, warps, stages, registers, _ = candidate
        given, grid = self.arguments(part, candidate)
        named = {
            **self.constants(candidate),
            "num_warps": warps,
            "num_stages": stages,
            **({"maxnreg": registers} if registers else {}),
        }
        return lambda: (
            kernel.warmup(*given, grid=grid, **named) if compile_only else kernel[grid](*given, **named)
        )

    def left(self, part):
        of_queries, of_keys = self.of_turned.split([self.heads, self.key_heads], 1)
        of_values = self.of_joined[:, self.heads + self.key_heads :]
        return {
            "forward": (self.result, self.logsums),
            "queries": (of_queries, self.dots),
            "keys": (of_keys, of_values),
        }[part]

    def flops(self, part):
        pairs = sum(n * (n + 1) // 2 for n in (b - a for a, b in zip(self.bounds, self.bounds[1:])))
        return {"forward": 2, "queries": 3, "keys": 4}[part] * 2 * pairs * self.heads * self.dim

    def expected(self):
        """All of it by PyTorch, in float64."""
        turned, joined, gradient = (
            x.double().requires_grad_(x is not self.gradient)
            for x in (self.turned, self.joined, self.gradient)
        )
        group = self.heads // self.key_heads
        queries, keys = turned.split([self.heads, self.key_heads], 1)
        keys, values = (
            keys.repeat_interleave(group, 1),
            joined[:, self.heads + self.key_heads :].repeat_interleave(group, 1),
        )
        places = torch.arange(self.tokens, device=self.starts.device)
        seen = (places[None] <= places[:, None]) & (places[None] >= self.starts[:, None])
        scores = torch.einsum("qhd,khd->hqk", queries, keys) / math.sqrt(self.dim)
        scores = scores.masked_fill(~seen, float("-inf"))
        result = torch.einsum("hqk,khd->qhd", scores.softmax(-1), values)
        result.backward(gradient)
        of_queries, of_keys = turned.grad.split([self.heads, self.key_heads], 1)
        dots = (gradient * result).sum(-1).T
        return {
            "forward": (result, scores.logsumexp(-1) * math.log2(math.e)),
            "queries": (of_queries, dots),
            "keys": (of_keys, joined.grad[:, self.heads + self.key_heads :]),
        }


def name_of(candidate):
    kernel, *numbers = candidate
    described = " described" if numbers[-1] is True else ""
    return f"{kernel.fn.__name__}{described} {' '.join(str(x) for x in numbers if not isinstance(x, bool))}"


def farthest(found, expected):
    """How far apart, as a part of the largest that is expected."""
    return max(
        ((a.double() - b.double()).abs().max() / b.double().abs().max()).item()
        for a, b in zip(found, expected)
    )


def candidates_of(part, shape):
    """(kernel, and its tiles); the first is in use."""
    return [
        (kernel, *tiles, described)
        for (kernel, described), all_ in (NARROW if SHAPES[shape][3] <= 64 else WIDE)[part].items()
        for tiles in all_
    ]


def losses(shape, device, kind, rows):
    width = SHAPES[shape][4]
    generator = torch.Generator(device=device).manual_seed(7)
    logits = torch.randn(rows, width, device=device, generator=generator).mul_(3).to(kind)
    return (
        logits,
        torch.randint(0, width, (rows,), device=device, generator=generator),
        torch.rand(rows, device=device, generator=generator),
    )


def loss_candidates(width):
    """Tiles that are no wider than a row."""
    held = triton.next_power_of_2(width)
    return list(dict.fromkeys((kernel, min(tile, held), warps) for kernel, tile, warps in LOSSES))


def check(few):
    """At toy size, in float32, with small tiles, for Triton's interpreter."""
    case = Attention("toy", "cpu", torch.float32)
    expected = case.expected()
    for part, kernels in NARROW.items():
        if part == "keys":  # what the parts before it leave
            case.logsums.copy_(expected["forward"][1].detach())
            case.dots.copy_(expected["queries"][1].detach())
        # Those in use are held against PyTorch elsewhere (training_operators_test.cpp).
        tried = [
            (kernel, described)
            for kernel, described in kernels
            if described or not hasattr(own, kernel.fn.__name__)
        ]
        for tiles in ((16, 16), (32, 16), (16, 32)):
            for kernel, described in tried:
                own_rows, block = tiles[::-1] if part == "keys" else tiles
                if described and own_rows not in (block, 2 * block):
                    continue  # what a program keeps is one block, or two
                if few and not described and own_rows == block:
                    continue
                for left in case.left(part):
                    left.zero_()
                case.launcher(part, (kernel, *tiles, 4, 1, 0, described))()
                apart = farthest(case.left(part), expected[part])
                assert apart < 1e-5, (part, kernel, tiles, apart)
                print(f"{part}: {name_of((kernel, *tiles, described))} is {apart:.1e} from PyTorch's")
    logits, targets, weights = losses("toy", "cpu", torch.float32, 5)
    given = logits.double().requires_grad_()
    wanted = given.log_softmax(-1).gather(1, targets[:, None])[:, 0]
    (wanted * weights).sum().backward()
    for kernel, tile in ((own.token_losses, 32), (own.token_losses, 64)):
        found, changed = torch.zeros(5), logits.clone()
        kernel[(5,)](changed, targets, weights, found, WIDTH=61, TILE=tile)
        apart = max(farthest([found], [wanted.detach()]), farthest([changed], [given.grad]))
        assert apart < 1e-5, (kernel, tile, apart)
        print(f"losses: {name_of((kernel, tile))} is {apart:.1e} from PyTorch's")


def compiled(kernel, signature, constants, warps, stages, registers=0):
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource

    names = kernel.arg_names
    types = dict(zip(names, signature)) | {name: "constexpr" for name in constants}
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(signature) if kind[0] == "*"}
    source = ASTSource(fn=kernel, signature=types, constexprs=constants, attrs=aligned)
    return triton.compile(
        source,
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": warps, "num_stages": stages} | ({"maxnreg": registers} if registers else {}),
    )


def show_compiled(shapes, only):
    """Registers a thread, bytes spilled a thread and shared memory a program, of each candidate; how many
    programs fit a processor."""
    import re
    import subprocess
    import tempfile
    from triton.backends.nvidia.compiler import get_ptxas

    tool = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"

    def line(candidate, made, warps):
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(made.asm["cubin"])
            file.flush()
            said = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True)
        text = said.stdout + said.stderr
        with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
            file.write(made.asm["ptx"].encode())
            file.flush()
            log = subprocess.run(
                [get_ptxas(90).path, "-v", "--gpu-name=sm_90a", file.name, "-o", "/dev/null"],
                capture_output=True,
                text=True,
                check=True,
            )
        serialized = ", products serialized" if "are serialized" in log.stdout + log.stderr else ""
        registers, stack = (
            int(re.search(r"REG:(\d+)", text).group(1)),
            int(re.search(r"STACK:(\d+)", text).group(1)),
        )
        at_once = min(
            65536 // (registers * 32 * warps), 233472 // max(made.metadata.shared + 1024, 1), 64 // warps
        )
        print(
            f"  {name_of(candidate):48} {registers:4} registers, stack {stack:4}, shared"
            f" {made.metadata.shared:6}, {at_once} at once ({at_once * warps} warps){serialized}",
            flush=True,
        )

    for shape in shapes:
        _, heads, key_heads, dim, width = SHAPES[shape]
        for part in NARROW:
            if only and only != part:
                continue
            print(f"{shape}, {part}")
            for candidate in candidates_of(part, shape):
                kernel, queries, keys, warps, stages, registers, described = candidate
                signature = [
                    "*bf16" if kind[0] == "&" else kind.replace("*E", "*bf16")
                    for kind in own.SIGNATURES[IN_USE[part][0]].split()
                ]
                if described:
                    for i in DESCRIPTORS[part]:
                        signature[i] = f"tensordesc<bf16[{queries if part == 'keys' else keys}, {dim}]>"
                constants = constants_of(candidate, heads, key_heads, dim)
                try:
                    line(candidate, compiled(kernel, signature, constants, warps, stages, registers), warps)
                except Exception as problem:  # pylint: disable=broad-except
                    print(f"  {name_of(candidate)}: {type(problem).__name__} {str(problem)[:200]}")
        if not only or only == "losses":
            print(f"{shape}, losses")
            for candidate in loss_candidates(width):
                kernel, tile, warps = candidate
                line(
                    candidate,
                    compiled(
                        kernel,
                        own.SIGNATURES["token_losses"].replace("E", "bf16").split(),
                        {"WIDTH": width, "TILE": tile},
                        warps,
                        3,
                    ),
                    warps,
                )


class AnyHopper:
    """What Triton asks a driver when it compiles and launches nothing: an H200, without one."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)


def compile_one(shape, part, number):
    """In a process of its own: what it makes is kept on disk, where a launch finds it."""
    triton.runtime.driver.set_active(AnyHopper())
    if part == "losses":
        width = SHAPES[shape][4]
        kernel, tile, warps = loss_candidates(width)[number]
        logits, targets, weights = (
            torch.empty(1, width, dtype=torch.bfloat16),
            torch.empty(1, dtype=torch.int64),
            torch.empty(1),
        )
        kernel.warmup(
            logits, targets, weights, weights.clone(), grid=(1,), WIDTH=width, TILE=tile, num_warps=warps
        )
        return
    case = Attention(shape, "cpu", torch.bfloat16, drawn=False)
    case.launcher(part, candidates_of(part, shape)[number], compile_only=True)()


def compile_all(parts, until):
    """Those that did not compile in time, or at all: {(shape, part, number): why}."""
    counts = {
        (shape, part): len(
            loss_candidates(SHAPES[shape][4]) if part == "losses" else candidates_of(part, shape)
        )
        for shape, part in parts
    }
    # The first of all parts, then the second of all.
    jobs = [
        (shape, part, number)
        for number in range(max(counts.values()))
        for shape, part in parts
        if number < counts[shape, part]
    ]
    begin, left_out = time.monotonic(), {}
    pool = concurrent.futures.ProcessPoolExecutor(
        min(len(os.sched_getaffinity(0)), len(jobs)), multiprocessing.get_context("spawn")
    )
    futures = {pool.submit(compile_one, *job): job for job in jobs}
    done, waiting = concurrent.futures.wait(futures, max(until - begin, 0))
    for future in done:
        if future.exception() is not None:
            left_out[futures[future]] = f"{type(future.exception()).__name__} {str(future.exception())[:200]}"
    left_out.update({futures[future]: "not compiled in time" for future in waiting})
    for process in list(pool._processes.values()):  # pylint: disable=protected-access
        if waiting:
            process.terminate()
    pool.shutdown(wait=not waiting, cancel_futures=True)
    print(
        f"{len(jobs) - len(left_out)} of {len(jobs)} candidates compiled in {time.monotonic() - begin:.0f} s",
        flush=True,
    )
    return left_out


def timed(runs, rounds):
    """Median milliseconds of each, all in turns, with a cold L2."""
    cold = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    took = [[] for _ in runs]
    for turn in range(rounds + 2):
        for run, times in zip(runs, took):
            cold.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            if turn >= 2:
                times.append(begin.elapsed_time(end))
    return [statistics.median(times) for times in took]


def report(title, names, times, work=None, unit="TFLOP/s"):
    print(title)
    for name, spent in sorted(zip(names, times), key=lambda pair: pair[1]):
        rate = f", {work / spent / 1e9:6.1f} {unit}" if work else ""
        print(
            f"  {spent:8.3f} ms{rate}  {spent / times[0]:5.2f} of the one in"
            f" use{' (it)' if name == names[0] else ''}  {name}"
        )
    print(end="", flush=True)


class LostGpu(Exception):
    """A candidate (its number) left the GPU in error, which stays so in this process."""


def measure_attention(case, shape, part, rounds, left_out):
    """The candidates that are right, and their milliseconds."""
    candidates = candidates_of(part, shape)
    case.launcher(part, candidates[0])()
    expected = [x.clone() for x in case.left(part)]
    kept, runs = [], []
    for number, candidate in enumerate(candidates):
        run = case.launcher(part, candidate)
        try:
            assert (shape, part, number) not in left_out, left_out[shape, part, number]
            for left in case.left(part):
                left.fill_(float("nan"))
            run()
            torch.cuda.synchronize()
            apart = farthest(case.left(part), expected)
            assert apart < 2e-2, f"wrong by {apart:.1e}"
        except (
            triton.runtime.errors.OutOfResources,
            triton.compiler.CompilationError,
            AssertionError,
            RuntimeError,
        ) as problem:
            print(
                f"  {shape}, {part}: {name_of(candidate)}: {type(problem).__name__} {str(problem)[:200]}",
                flush=True,
            )
            try:
                torch.cuda.synchronize()
            except RuntimeError as lost:
                raise LostGpu(number) from lost
            continue
        kept.append(candidate)
        runs.append(run)
    times = timed(runs, rounds)
    report(
        f"{shape}, {part}: {case.tokens} tokens, {case.heads} and {case.key_heads} heads of {case.dim}",
        [name_of(x) for x in kept],
        times,
        case.flops(part),
    )
    case.launcher(part, candidates[0])()  # the next part begins with what this one leaves
    return kept, times


def measure_losses(shape, rounds, left_out):
    width = SHAPES[shape][4]
    rows = (1 << 29) // width // 64 * 64
    logits, targets, weights = losses(shape, "cuda", torch.bfloat16, rows)
    kept, runs, expected = [], [], None
    for number, candidate in enumerate(loss_candidates(width)):
        if (shape, "losses", number) in left_out:
            print(f"  {shape}, losses: {name_of(candidate)}: {left_out[shape, 'losses', number]}")
            continue
        kernel, tile, warps = candidate
        changed, found = logits.clone(), torch.full((rows,), float("nan"), device="cuda")
        kernel[(rows,)](changed, targets, weights, found, WIDTH=width, TILE=tile, num_warps=warps)
        expected = expected or (found, changed)
        apart = farthest((found, changed), expected)
        if not apart < 2e-2:
            print(f"  {shape}, losses: {name_of(candidate)}: wrong by {apart:.1e}")
            continue
        kept.append(candidate)
        # Losses of what they left: as long as losses of logits.
        runs.append(
            lambda kernel=kernel, tile=tile, warps=warps: kernel[(rows,)](
                logits, targets, weights, found, WIDTH=width, TILE=tile, num_warps=warps
            )
        )
    times = timed(runs, rounds)
    report(
        f"{shape}, losses of {rows} rows (a read and a write are {2 * logits.numel() * 2 / 1e6:.0f} MB)",
        [name_of(x) for x in kept],
        times,
        4 * logits.numel() / 1e-3,
        "GB/s",
    )
    return kept, times


def measure_products(shape, rounds):
    """Each matrix product of a layer and of the head, as autograd calls it, by cuBLAS and by cuBLASLt; and
    weights' gradients the other way round."""
    tokens, heads, key_heads, dim, vocabulary = SHAPES[shape]
    hidden, inner = INNER[shape]
    rows = (1 << 29) // vocabulary // 64 * 64
    for name, at_once, wide, narrow in (
        ("heads", tokens, (heads + 2 * key_heads) * dim, hidden),
        ("their result", tokens, hidden, heads * dim),
        ("gates", tokens, 2 * inner, hidden),
        ("down", tokens, hidden, inner),
        ("head", rows, vocabulary, hidden),
    ):
        x, y, weight = (
            torch.randn(*sizes, device="cuda", dtype=torch.bfloat16)
            for sizes in ((at_once, narrow), (at_once, wide), (wide, narrow))
        )
        runs = {
            "forward": lambda: x @ weight.t(),
            "of x": lambda: y @ weight,
            "of weight": lambda: y.t() @ x,
            "of weight, turned": lambda: (x.t() @ y).t(),
        }
        line = f"{shape}, {name}: [{at_once}, {narrow}] to {wide}, TFLOP/s:"
        for library in ("cublas", "cublaslt"):
            torch.backends.cuda.preferred_blas_library(library)
            for run in runs.values():
                run()
            line += f"  {library}: " + ", ".join(
                f"{what} {2 * at_once * wide * narrow / spent / 1e9:.0f}"
                for what, spent in zip(runs, timed(list(runs.values()), rounds))
            )
        print(line, flush=True)
    torch.backends.cuda.preferred_blas_library("default")


def take(folder, best):
    """FOLDER/nereid: the package with the fastest kernels in the place of those in use; FOLDER/environment:
    what makes nereid-lm use it."""
    from_ = pathlib.Path(
        os.environ.get("NEREID_PACKAGE") or pathlib.Path(__file__).resolve().parents[1] / "python/nereid"
    )
    package = pathlib.Path(folder).resolve() / "nereid"
    package.mkdir(parents=True, exist_ok=True)
    for entry in from_.iterdir():
        if entry.name not in ("engine_kernels.py", "__pycache__") and not (package / entry.name).exists():
            (package / entry.name).symlink_to(entry.resolve())
    text, tiles, taken = (
        pathlib.Path(own.__file__).read_text(),
        [],
        {},
    )  # of this tree, whose kernels were measured
    replaced = inspect.getsource(tile_of.fn)
    for part, (kernel, *numbers) in best.items():
        for name in IN_USE[part]:
            if kernel.fn.__name__ != name:
                replaced += "\n\n" + inspect.getsource(kernel.fn).replace(
                    f"def {kernel.fn.__name__}(", f"def {name}(", 1
                )
            if part == "losses":
                taken[name] = ({"TILE": numbers[0]}, {"num_warps": numbers[1]})
                continue
            words = own.SIGNATURES[name].split()
            for i in DESCRIPTORS[part]:
                words[i] = "&QUERIES" if part == "keys" else "&KEYS"
            text = text.replace(f'"{name}": "{own.SIGNATURES[name]}"', f'"{name}": "{" ".join(words)}"', 1)
            taken[name] = ({"DESCRIBED": numbers[-1]}, {})
        if part != "losses":
            tiles.append(f"{part}={','.join(map(str, numbers[:-1]))}")
    text = text.replace(
        "def ttir_of(request):\n",
        f"""TAKEN = {taken}


def ttir_of(request):
    constants, options = TAKEN.get(request["name"], ({{}}, {{}}))
    request["constants"].update(constants)
    request["options"].update(options)
""",
        1,
    )
    at = text.index("# Each parameter's type")
    (package / "_compiler/engine_kernels.py").write_text(text[:at] + replaced + "\n\n" + text[at:])
    environment = f"export NEREID_PACKAGE={package} NEREID_ATTENTION_TILES='{' '.join(tiles)}'\n"
    (package.parent / "environment").write_text(environment)
    print(
        f"{folder}: " + "; ".join(f"{part} {name_of(candidate)}" for part, candidate in best.items()),
        flush=True,
    )


def again_without(options, parts, lost):
    """In another process: the parts that are left, without a candidate."""
    shape, part = parts[0]
    print(f"begun again without {shape}, {part}: number {lost.args[0]}", flush=True)
    words = [
        sys.executable,
        *sys.argv,
        "--seconds",
        str(options.until - time.monotonic()),
        "--parts",
        *("/".join(x) for x in parts),
        "--without",
        *options.without,
        f"{shape}/{part}/{lost.args[0]}",
    ]
    os.execv(sys.executable, words)


def measure(options):
    options.until = time.monotonic() + options.seconds
    parts = (
        [tuple(x.split("/")) for x in options.parts]
        if options.parts
        else [
            (shape, part)
            for shape in options.shapes
            for part in (*NARROW, "losses")
            if options.only in (None, part)
        ]
    )
    left_out = compile_all([x for x in parts if x[1] != "products"], time.monotonic() + options.seconds * 0.6)
    left_out.update(
        {
            (shape, part, int(number)): "left the GPU in error"
            for shape, part, number in (x.split("/") for x in options.without)
        }
    )
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}", flush=True
    )
    kept_at = pathlib.Path(options.take or ".") / "fastest.json"
    fastest = json.loads(kept_at.read_text()) if options.parts and kept_at.exists() else {}
    case = None
    for at, (shape, part) in enumerate(parts):
        if time.monotonic() > options.until - 5:
            print("no time for " + ", ".join("/".join(x) for x in parts[at:]), flush=True)
            break
        try:
            if part == "losses":
                kept, times = measure_losses(shape, options.rounds, left_out)
            else:
                if case is None or case[0] != shape:
                    case = (shape, Attention(shape, "cuda", torch.bfloat16))
                    for before in NARROW:  # what a part needs of those before it
                        case[1].launcher(before, candidates_of(before, shape)[0])()
                kept, times = measure_attention(case[1], shape, part, options.rounds, left_out)
        except LostGpu as lost:
            again_without(options, parts[at:], lost)
        chosen = min(zip(kept, times), key=lambda x: x[1])[0]
        fastest[part] = (
            candidates_of(part, shape) if part != "losses" else loss_candidates(SHAPES[shape][4])
        ).index(chosen)
        if options.take:
            pathlib.Path(options.take).mkdir(parents=True, exist_ok=True)
            kept_at.write_text(json.dumps(fastest))
    if options.take:
        take(
            options.take,
            {
                part: (
                    loss_candidates(SHAPES[options.shapes[0]][4])
                    if part == "losses"
                    else candidates_of(part, options.shapes[0])
                )[number]
                for part, number in fastest.items()
            },
        )
    case = None
    for shape in options.shapes:
        if options.only in (None, "products") and not options.parts and time.monotonic() < options.until - 3:
            measure_products(shape, options.rounds)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", choices=sorted(SHAPES), default=["100m", "1.7b"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=[*NARROW, "losses", "products"])
    parser.add_argument(
        "--seconds", type=float, default=240, help="what is not done by then is left, and said"
    )
    parser.add_argument("--take", metavar="FOLDER", help="with one shape")
    parser.add_argument("--parts", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--without", nargs="*", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--check", nargs="?", const="all", choices=["all", "few"])
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if options.take and len(options.shapes) != 1:
        parser.error("--take is with one shape")
    if options.check:
        check(options.check == "few")
    elif options.compile:
        show_compiled(options.shapes, options.only)
    else:
        measure(options)


if __name__ == "__main__":
    main()
