"""Candidates for training's kernels beside those in use (python/nereid/engine_kernels.py): attention over packed documents, its gradients, the losses.

    .venv/bin/python bench/training_kernels.py                    on a GPU: checked, then timed in turns, a table a shape; minutes
    ... --shapes 100m --rounds 20 --only keys
    ... --compile                                                 without one: registers, spills and shared memory of each on an H200
    TRITON_INTERPRET=1 ... --check                                without one: each one's result at toy size beside PyTorch's in float64

A candidate has the parameters of the kernel that it may replace, so that taking it over is a matter of its text and of `tiles_of` in
src/nereid/engine/runner/training_operators.cpp.
"""
import argparse
import math
import pathlib
import statistics
import sys

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from nereid import engine_kernels as own  # noqa: E402

LOWEST = tl.constexpr(-1e30)  # a largest score before there is one: finite, so that -inf less it is no NaN


@triton.jit
def attention_of_raw_scores(turned, joined, starts, result, logsums, tokens, scale,
                            HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """packed_attention, whose largest score is kept unscaled: scaling and subtracting are one instruction then."""
    head, first = tl.program_id(0), tl.program_id(1) * QUERIES
    key_head = head // (HEADS // KEY_HEADS)
    rows, columns, dims = tl.arange(0, QUERIES), tl.arange(0, KEYS), tl.arange(0, DIM_PADDED)
    dim_is = dims < DIM
    queries = first + rows
    query_is = queries < tokens
    mask = query_is[:, None] & dim_is[None, :]
    STRIDE: tl.constexpr = (HEADS + KEY_HEADS) * DIM
    VALUE_STRIDE: tl.constexpr = (HEADS + 2 * KEY_HEADS) * DIM
    q = tl.load(turned + first.to(tl.int64) * STRIDE + head * DIM + rows[:, None] * STRIDE + dims[None, :], mask=mask, other=0.0)
    own_start = tl.load(starts + queries, mask=query_is, other=0)
    lowest = tl.load(starts + first)
    end = tl.minimum(first + QUERIES, tokens)
    masked_from = lowest + tl.where(tl.load(starts + end - 1) == lowest, (first - lowest) // KEYS * KEYS, 0)
    largest = tl.full([QUERIES], LOWEST, tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    seen = tl.zeros([QUERIES, DIM_PADDED], tl.float32)
    for at in range(lowest, masked_from, KEYS):
        of_key = tl.cast(at, tl.int64) * STRIDE + (HEADS + key_head) * DIM
        of_value = tl.cast(at, tl.int64) * VALUE_STRIDE + (HEADS + KEY_HEADS + key_head) * DIM
        k = tl.load(turned + of_key + columns[None, :] * STRIDE + dims[:, None], mask=dim_is[:, None], other=0.0)
        v = tl.load(joined + of_value + columns[:, None] * VALUE_STRIDE + dims[None, :], mask=dim_is[None, :], other=0.0)
        scores = tl.dot(q, k, input_precision="ieee")
        now_largest = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2((largest - now_largest) * scale)
        shares = tl.exp2(scores * scale - (now_largest * scale)[:, None])
        total = total * shrink + tl.sum(shares, 1)
        seen = seen * shrink[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        largest = now_largest
    for at in range(masked_from, end, KEYS):
        keys = at + columns
        key_is = keys < end
        of_key = tl.cast(at, tl.int64) * STRIDE + (HEADS + key_head) * DIM
        of_value = tl.cast(at, tl.int64) * VALUE_STRIDE + (HEADS + KEY_HEADS + key_head) * DIM
        k = tl.load(turned + of_key + columns[None, :] * STRIDE + dims[:, None], mask=key_is[None, :] & dim_is[:, None], other=0.0)
        v = tl.load(joined + of_value + columns[:, None] * VALUE_STRIDE + dims[None, :], mask=key_is[:, None] & dim_is[None, :], other=0.0)
        scores = tl.dot(q, k, input_precision="ieee")
        scores = tl.where((keys[None, :] <= queries[:, None]) & (keys[None, :] >= own_start[:, None]), scores, float("-inf"))
        now_largest = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2((largest - now_largest) * scale)
        shares = tl.exp2(scores * scale - (now_largest * scale)[:, None])
        total = total * shrink + tl.sum(shares, 1)
        seen = seen * shrink[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        largest = now_largest
    to = result + first.to(tl.int64) * (HEADS * DIM) + head * DIM + rows[:, None] * (HEADS * DIM) + dims[None, :]
    tl.store(to, (seen / total[:, None]).to(result.dtype.element_ty), mask=mask)
    tl.store(logsums + tl.cast(head, tl.int64) * tokens + queries, largest * scale + tl.log2(total), mask=query_is)


@triton.jit
def attention_by_tma(turned, joined, starts, result, logsums, tokens, scale,
                     HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """attention_of_raw_scores, whose keys and values are fetched by the tensor memory accelerator: turned and joined are descriptors of blocks [KEYS, DIM] of
    [tokens, (HEADS + KEY_HEADS) * DIM] and [tokens, (HEADS + 2 * KEY_HEADS) * DIM]. Heads of a power of two. To take it over the launcher has to make descriptors."""
    head, first = tl.program_id(0), tl.program_id(1) * QUERIES
    key_head = head // (HEADS // KEY_HEADS)
    rows, columns, dims = tl.arange(0, QUERIES), tl.arange(0, KEYS), tl.arange(0, DIM)
    queries = first + rows
    query_is = queries < tokens
    q = turned.load([first, head * DIM])
    if QUERIES > KEYS:
        q = tl.join(q, turned.load([first + KEYS, head * DIM])).permute(2, 0, 1).reshape(QUERIES, DIM)
    own_start = tl.load(starts + queries, mask=query_is, other=0)
    lowest = tl.load(starts + first)
    end = tl.minimum(first + QUERIES, tokens)
    masked_from = lowest + tl.where(tl.load(starts + end - 1) == lowest, (first - lowest) // KEYS * KEYS, 0)
    largest = tl.full([QUERIES], LOWEST, tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    seen = tl.zeros([QUERIES, DIM], tl.float32)
    for at in range(lowest, masked_from, KEYS):
        k = turned.load([at, (HEADS + key_head) * DIM])
        v = joined.load([at, (HEADS + KEY_HEADS + key_head) * DIM])
        scores = tl.dot(q, k.T, input_precision="ieee")
        now_largest = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2((largest - now_largest) * scale)
        shares = tl.exp2(scores * scale - (now_largest * scale)[:, None])
        total = total * shrink + tl.sum(shares, 1)
        seen = seen * shrink[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        largest = now_largest
    for at in range(masked_from, end, KEYS):
        keys = at + columns
        k = turned.load([at, (HEADS + key_head) * DIM])
        v = joined.load([at, (HEADS + KEY_HEADS + key_head) * DIM])
        scores = tl.dot(q, k.T, input_precision="ieee")
        scores = tl.where((keys[None, :] <= queries[:, None]) & (keys[None, :] >= own_start[:, None]), scores, float("-inf"))
        now_largest = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2((largest - now_largest) * scale)
        shares = tl.exp2(scores * scale - (now_largest * scale)[:, None])
        total = total * shrink + tl.sum(shares, 1)
        seen = seen * shrink[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        largest = now_largest
    to = result + first.to(tl.int64) * (HEADS * DIM) + head * DIM + rows[:, None] * (HEADS * DIM) + dims[None, :]
    tl.store(to, (seen / total[:, None]).to(result.dtype.element_ty), mask=query_is[:, None])
    tl.store(logsums + tl.cast(head, tl.int64) * tokens + queries, largest * scale + tl.log2(total), mask=query_is)


@triton.jit
def keys_masked_where_needed(gradient, turned, joined, ends, logsums, dots, of_turned, of_joined, tokens, scale,
                             HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr,
                             QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """packed_attention_keys in two loops: behind the diagonal of a tile of one document's keys nothing is masked. Queries behind its end have a sum of
    infinity, and so no share."""
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
    of_value = first.to(tl.int64) * VALUE_STRIDE + (HEADS + KEY_HEADS + key_head) * DIM + rows[:, None] * VALUE_STRIDE + dims[None, :]
    k = tl.load(turned + of_key, mask=mask, other=0.0)
    v = tl.load(joined + of_value, mask=mask, other=0.0)
    own_end = tl.load(ends + keys, mask=key_is, other=0)
    highest = tl.load(ends + tl.minimum(first + KEYS, tokens) - 1)
    tiles = tl.cdiv(highest - first, QUERIES)
    masked = tl.where(tl.load(ends + first) == highest, tl.minimum((KEYS + QUERIES - 2) // QUERIES, tiles), tiles)
    of_k = tl.zeros([KEYS, DIM_PADDED], tl.float32)
    of_v = tl.zeros([KEYS, DIM_PADDED], tl.float32)
    for tile in range(0, masked * GROUP):
        head = key_head * GROUP + tile // masked
        at = first + tile % masked * QUERIES
        queries = at + columns
        query_is = queries < highest
        here = query_is[:, None] & dim_is[None, :]
        q = tl.load(turned + tl.cast(at, tl.int64) * STRIDE + head * DIM + columns[:, None] * STRIDE + dims[None, :], mask=here, other=0.0)
        grad = tl.load(gradient + tl.cast(at, tl.int64) * WIDTH + head * DIM + columns[:, None] * WIDTH + dims[None, :], mask=here, other=0.0)
        logsum = tl.load(logsums + tl.cast(head, tl.int64) * tokens + queries, mask=query_is, other=0.0)
        dot = tl.load(dots + tl.cast(head, tl.int64) * tokens + queries, mask=query_is, other=0.0)
        shares = tl.exp2(tl.dot(k, tl.trans(q), input_precision="ieee") * scale - logsum[None, :])
        shares = tl.where((keys[:, None] <= queries[None, :]) & (queries[None, :] < own_end[:, None]), shares, 0.0)
        of_v += tl.dot(shares.to(grad.dtype), grad, input_precision="ieee")
        of_scores = shares * (tl.dot(v, tl.trans(grad), input_precision="ieee") - dot[None, :])
        of_k += tl.dot(of_scores.to(q.dtype), q, input_precision="ieee")
    rest = tiles - masked
    for tile in range(0, rest * GROUP):
        head = key_head * GROUP + tile // tl.maximum(rest, 1)
        at = first + (masked + tile % tl.maximum(rest, 1)) * QUERIES
        queries = at + columns
        query_is = queries < highest
        here = query_is[:, None] & dim_is[None, :]
        q = tl.load(turned + tl.cast(at, tl.int64) * STRIDE + head * DIM + columns[:, None] * STRIDE + dims[None, :], mask=here, other=0.0)
        grad = tl.load(gradient + tl.cast(at, tl.int64) * WIDTH + head * DIM + columns[:, None] * WIDTH + dims[None, :], mask=here, other=0.0)
        logsum = tl.load(logsums + tl.cast(head, tl.int64) * tokens + queries, mask=query_is, other=float("inf"))
        dot = tl.load(dots + tl.cast(head, tl.int64) * tokens + queries, mask=query_is, other=0.0)
        shares = tl.exp2(tl.dot(k, tl.trans(q), input_precision="ieee") * scale - logsum[None, :])
        of_v += tl.dot(shares.to(grad.dtype), grad, input_precision="ieee")
        of_scores = shares * (tl.dot(v, tl.trans(grad), input_precision="ieee") - dot[None, :])
        of_k += tl.dot(of_scores.to(q.dtype), q, input_precision="ieee")
    tl.store(of_turned + of_key, (of_k * (scale * 0.6931471805599453)).to(of_turned.dtype.element_ty), mask=mask)
    tl.store(of_joined + of_value, of_v.to(of_joined.dtype.element_ty), mask=mask)


@triton.jit
def losses_read_once(logits, targets, weights, found, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """token_losses of a row that one program's registers hold: WIDTH <= TILE."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    weight = tl.load(weights + row)
    at = tl.arange(0, TILE)
    given = tl.load(logits + row * WIDTH + at, mask=at < WIDTH, other=float("-inf"))
    x = given.to(tl.float32)
    largest = tl.max(x, 0)
    logsum = largest + tl.log(tl.sum(tl.exp(x - largest), 0))
    tl.store(found + row, tl.sum(tl.where(at == target, x, 0.0), 0) - logsum)
    tl.store(logits + row * WIDTH + at, (weight * (tl.where(at == target, 1.0, 0.0) - tl.exp(x - logsum))).to(given.dtype), mask=at < WIDTH)


# What an attention kernel's program takes at once: (queries, keys, warps, stages, registers a thread at most; 0: as many as the compiler likes). The first of each is
# in use. Of a processor's 65,536 registers three programs of four warps have 168 a thread each, four 128. Those that spill much (--compile) are left out.
NARROW = {  # heads of 64
    "forward": {own.packed_attention: ((64, 64, 4, 3, 0), (64, 64, 4, 3, 128), (128, 64, 8, 3, 128), (64, 32, 4, 3, 0)),
                attention_of_raw_scores: ((64, 64, 4, 3, 0), (64, 64, 4, 3, 128), (64, 64, 4, 2, 128), (64, 128, 4, 2, 0), (128, 64, 8, 3, 128), (128, 64, 8, 3, 0), (128, 64, 4, 3, 0),
                                          (128, 32, 4, 4, 168), (64, 32, 4, 3, 0), (128, 32, 8, 3, 0), (128, 128, 8, 2, 0)),
                attention_by_tma: ((64, 64, 4, 3, 0), (64, 64, 4, 2, 0), (64, 32, 4, 3, 0), (128, 64, 8, 3, 0), (128, 64, 8, 2, 0), (128, 64, 4, 3, 0), (128, 128, 8, 2, 0))},
    "queries": {own.packed_attention_queries: ((64, 64, 4, 3, 0), (64, 64, 4, 3, 128), (64, 64, 4, 2, 0), (64, 64, 4, 2, 128), (64, 32, 4, 4, 0), (64, 32, 4, 3, 96), (64, 64, 8, 2, 0),
                                               (128, 64, 8, 3, 0), (128, 64, 8, 2, 128), (128, 32, 8, 4, 0), (128, 32, 8, 2, 0), (64, 16, 4, 3, 0))},
    "keys": {own.packed_attention_keys: ((32, 64, 4, 3, 0), (32, 64, 4, 3, 128), (32, 64, 4, 2, 0), (32, 64, 8, 2, 0)),
             keys_masked_where_needed: ((32, 64, 4, 3, 168), (32, 64, 4, 3, 0), (32, 64, 4, 2, 168), (64, 64, 4, 2, 0), (64, 64, 4, 2, 168), (32, 64, 8, 2, 0), (64, 64, 8, 2, 128), (32, 128, 8, 3, 128),
                                        (64, 128, 8, 2, 0), (16, 64, 4, 3, 168))}}
WIDE = {  # heads of 128
    "forward": {own.packed_attention: ((64, 64, 4, 3, 0), (64, 32, 4, 3, 0)),
                attention_of_raw_scores: ((64, 64, 4, 3, 0), (64, 32, 4, 3, 0), (64, 32, 4, 3, 168), (64, 32, 4, 2, 128), (128, 64, 8, 3, 0), (128, 32, 8, 3, 128), (128, 128, 8, 2, 0)),
                attention_by_tma: ((64, 64, 4, 3, 0), (64, 64, 4, 2, 0), (64, 64, 4, 2, 128), (64, 32, 4, 3, 0), (128, 64, 8, 3, 0), (128, 128, 8, 2, 0))},
    "queries": {own.packed_attention_queries: ((64, 32, 4, 2, 0), (64, 32, 4, 2, 168), (64, 32, 4, 4, 0), (64, 16, 4, 3, 168), (64, 32, 8, 2, 0), (64, 64, 8, 2, 0), (64, 64, 4, 2, 0), (128, 32, 8, 2, 0),
                                               (128, 32, 8, 2, 128))},
    "keys": {own.packed_attention_keys: ((32, 64, 4, 3, 0), (32, 64, 4, 2, 0), (32, 64, 8, 2, 0)),
             keys_masked_where_needed: ((32, 64, 4, 3, 0), (32, 64, 4, 2, 0), (16, 64, 4, 3, 0), (32, 64, 8, 2, 0), (64, 64, 8, 2, 0), (64, 128, 8, 2, 0))}}
LOSSES = [(own.token_losses, 8192, 8), (own.token_losses, 8192, 16), (own.token_losses, 16384, 16), (own.token_losses, 4096, 8),
          (losses_read_once, 32768, 16), (losses_read_once, 32768, 32)]
SHAPES = {  # tokens at once, heads, key heads, head_dim, vocabulary
    "100m": (65536, 12, 4, 64, 32768), "small": (65536, 6, 2, 64, 4096), "1.7b": (16384, 16, 8, 128, 151936), "toy": (147, 4, 2, 16, 61)}


def documents(tokens, longest, generator):
    """Where each token's document begins and ends, as int32: lengths as in tests/gpu/train.py."""
    bounds = [0]
    while bounds[-1] < tokens:
        bounds.append(min(tokens, bounds[-1] + int(torch.randint(longest // 15, longest, (1,), generator=generator))))
    starts, ends = torch.empty(tokens, dtype=torch.int32), torch.empty(tokens, dtype=torch.int32)
    for begin, end in zip(bounds, bounds[1:]):
        starts[begin:end], ends[begin:end] = begin, end
    return bounds, starts, ends


class Attention:
    """One layer's attention: what its kernels are given, and what they leave."""

    def __init__(self, shape, device, kind):
        self.tokens, self.heads, self.key_heads, self.dim, _ = SHAPES[shape]
        generator = torch.Generator().manual_seed(7)
        self.bounds, starts, ends = documents(self.tokens, 3072 if shape != "toy" else 75, generator)
        self.starts, self.ends = starts.to(device), ends.to(device)

        def drawn(*sizes):
            return torch.randn(*sizes, generator=generator).to(device=device, dtype=kind)
        self.turned = drawn(self.tokens, self.heads + self.key_heads, self.dim)
        self.joined = drawn(self.tokens, self.heads + 2 * self.key_heads, self.dim)
        self.gradient = drawn(self.tokens, self.heads, self.dim)
        self.result, self.of_turned, self.of_joined = (torch.zeros_like(x) for x in (self.gradient, self.turned, self.joined))
        self.logsums, self.dots = (torch.zeros(self.heads, self.tokens, device=device) for _ in range(2))
        self.scale = math.log2(math.e) / math.sqrt(self.dim)

    def constants(self, queries, keys):
        return {"HEADS": self.heads, "KEY_HEADS": self.key_heads, "DIM": self.dim, "DIM_PADDED": self.dim, "QUERIES": queries, "KEYS": keys}

    def arguments(self, part, kernel, queries, keys):
        """Positional arguments, and the grid."""
        if part == "forward":
            turned, joined = self.turned, self.joined
            if kernel is attention_by_tma:
                from triton.tools.tensor_descriptor import TensorDescriptor
                block = [keys, self.dim]
                turned, joined = (TensorDescriptor.from_tensor(x.view(self.tokens, -1), block) for x in (turned, joined))
            return (turned, joined, self.starts, self.result, self.logsums, self.tokens, self.scale), (self.heads, triton.cdiv(self.tokens, queries))
        if part == "queries":
            return (self.gradient, self.turned, self.joined, self.starts, self.result, self.logsums, self.dots, self.of_turned, self.tokens,
                    self.scale), (self.heads, triton.cdiv(self.tokens, queries))
        return (self.gradient, self.turned, self.joined, self.ends, self.logsums, self.dots, self.of_turned, self.of_joined, self.tokens,
                self.scale), (self.key_heads, triton.cdiv(self.tokens, keys))

    def launcher(self, part, candidate):
        kernel, queries, keys, warps, stages, registers = candidate
        given, grid = self.arguments(part, kernel, queries, keys)
        return lambda: kernel[grid](*given, **self.constants(queries, keys), num_warps=warps, num_stages=stages, **({"maxnreg": registers} if registers else {}))

    def left(self, part):
        of_queries, of_keys = self.of_turned.split([self.heads, self.key_heads], 1)
        of_values = self.of_joined[:, self.heads + self.key_heads:]
        return {"forward": (self.result, self.logsums), "queries": (of_queries, self.dots), "keys": (of_keys, of_values)}[part]

    def flops(self, part):
        pairs = sum(n * (n + 1) // 2 for n in (b - a for a, b in zip(self.bounds, self.bounds[1:])))
        return {"forward": 2, "queries": 3, "keys": 4}[part] * 2 * pairs * self.heads * self.dim

    def expected(self):
        """All of it by PyTorch, in float64."""
        turned, joined, gradient = (x.double().requires_grad_(x is not self.gradient) for x in (self.turned, self.joined, self.gradient))
        group = self.heads // self.key_heads
        queries, keys = turned.split([self.heads, self.key_heads], 1)
        keys, values = keys.repeat_interleave(group, 1), joined[:, self.heads + self.key_heads:].repeat_interleave(group, 1)
        places = torch.arange(self.tokens, device=self.starts.device)
        seen = (places[None] <= places[:, None]) & (places[None] >= self.starts[:, None])
        scores = torch.einsum("qhd,khd->hqk", queries, keys) / math.sqrt(self.dim)
        scores = scores.masked_fill(~seen, float("-inf"))
        result = torch.einsum("hqk,khd->qhd", scores.softmax(-1), values)
        result.backward(gradient)
        of_queries, of_keys = turned.grad.split([self.heads, self.key_heads], 1)
        dots = (gradient * result).sum(-1).T
        return {"forward": (result, scores.logsumexp(-1) * math.log2(math.e)), "queries": (of_queries, dots),
                "keys": (of_keys, joined.grad[:, self.heads + self.key_heads:])}


def name_of(candidate):
    kernel, *numbers = candidate
    return f"{kernel.fn.__name__} {' '.join(map(str, numbers))}"


def farthest(found, expected):
    """How far apart, as a part of the largest that is expected."""
    return max(((a.double() - b.double()).abs().max() / b.double().abs().max()).item() for a, b in zip(found, expected))


def candidates_of(part, shape):
    """(kernel, and its tiles); the first is in use."""
    return [(kernel, *tiles) for kernel, all_ in (NARROW if SHAPES[shape][3] <= 64 else WIDE)[part].items() for tiles in all_]


def losses(shape, device, kind, rows):
    width = SHAPES[shape][4]
    generator = torch.Generator(device=device).manual_seed(7)
    logits = torch.randn(rows, width, device=device, generator=generator).mul_(3).to(kind)
    return logits, torch.randint(0, width, (rows,), device=device, generator=generator), torch.rand(rows, device=device, generator=generator)


def loss_candidates(width):
    """Those that hold a row, and of the others those whose tile is no wider than one."""
    held = triton.next_power_of_2(width)
    fitting = [(kernel, min(tile, held), warps) for kernel, tile, warps in LOSSES if kernel is not losses_read_once]
    whole = [(losses_read_once, held, warps) for kernel, _, warps in LOSSES if kernel is losses_read_once and held <= 65536]
    return list(dict.fromkeys(fitting)) + list(dict.fromkeys(whole))


def check():
    """At toy size, in float32, with small tiles, for Triton's interpreter."""
    case = Attention("toy", "cpu", torch.float32)
    expected = case.expected()
    for part, kernels in NARROW.items():
        if part == "keys":  # what the parts before it leave
            case.logsums.copy_(expected["forward"][1].detach())
            case.dots.copy_(expected["queries"][1].detach())
        # Those in use are held against PyTorch elsewhere (training_operators_test.cpp).
        tried = [kernel for kernel in kernels if not hasattr(own, kernel.fn.__name__)]
        for tiles in ((16, 16), (32, 16), (16, 32)):
            for kernel in tried:
                if kernel is attention_by_tma and tiles[0] not in (tiles[1], 2 * tiles[1]):
                    continue  # a block of queries is one of keys, or two
                for left in case.left(part):
                    left.zero_()
                case.launcher(part, (kernel, *tiles, 4, 1, 0))()
                apart = farthest(case.left(part), expected[part])
                assert apart < 1e-5, (part, kernel, tiles, apart)
                print(f"{part}: {name_of((kernel, *tiles))} is {apart:.1e} from PyTorch's")
    logits, targets, weights = losses("toy", "cpu", torch.float32, 5)
    given = logits.double().requires_grad_()
    wanted = given.log_softmax(-1).gather(1, targets[:, None])[:, 0]
    (wanted * weights).sum().backward()
    for kernel, tile in ((own.token_losses, 32), (losses_read_once, 64)):
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
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": stages} | ({"maxnreg": registers} if registers else {}))


def show_compiled(shapes, only):
    """Registers a thread, bytes spilled a thread and shared memory a program, of each candidate; how many programs fit a processor."""
    import re
    import subprocess
    import tempfile
    tool = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"

    def line(candidate, made, warps):
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(made.asm["cubin"])
            file.flush()
            said = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True)
        text = said.stdout + said.stderr
        registers, stack = int(re.search(r"REG:(\d+)", text).group(1)), int(re.search(r"STACK:(\d+)", text).group(1))
        at_once = min(65536 // (registers * 32 * warps), 233472 // max(made.metadata.shared + 1024, 1), 64 // warps)
        print(f"  {name_of(candidate):48} {registers:4} registers, stack {stack:4}, shared {made.metadata.shared:6}, {at_once} at once ({at_once * warps} warps)", flush=True)

    for shape in shapes:
        _, heads, key_heads, dim, width = SHAPES[shape]
        for part in NARROW:
            if only and only != part:
                continue
            print(f"{shape}, {part}")
            for candidate in candidates_of(part, shape):
                kernel, queries, keys, warps, stages, registers = candidate
                kind = {"forward": "packed_attention", "queries": "packed_attention_queries", "keys": "packed_attention_keys"}[part]
                signature = own.SIGNATURES[kind].replace("E", "bf16").split()
                if kernel is attention_by_tma:
                    signature[:2] = [f"tensordesc<bf16[{keys}, {dim}]>"] * 2
                constants = {"HEADS": heads, "KEY_HEADS": key_heads, "DIM": dim, "DIM_PADDED": dim, "QUERIES": queries, "KEYS": keys}
                try:
                    line(candidate, compiled(kernel, signature, constants, warps, stages, registers), warps)
                except Exception as problem:  # pylint: disable=broad-except
                    print(f"  {name_of(candidate)}: {type(problem).__name__} {str(problem)[:200]}")
        if not only or only == "losses":
            print(f"{shape}, losses")
            for candidate in loss_candidates(width):
                kernel, tile, warps = candidate
                line(candidate, compiled(kernel, own.SIGNATURES["token_losses"].replace("E", "bf16").split(), {"WIDTH": width, "TILE": tile}, warps, 3), warps)


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


def tell(title, names, times, work=None, unit="TFLOP/s"):
    print(title)
    for name, time in sorted(zip(names, times), key=lambda pair: pair[1]):
        rate = f", {work / time / 1e9:6.1f} {unit}" if work else ""
        print(f"  {time:8.3f} ms{rate}  {time / times[0]:5.2f} of the one in use{' (it)' if name == names[0] else ''}  {name}", flush=True)


def measure(shapes, rounds, only):
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}")
    for shape in shapes:
        case = Attention(shape, "cuda", torch.bfloat16)
        for part in NARROW:
            candidates = candidates_of(part, shape)
            case.launcher(part, candidates[0])()
            expected = [x.clone() for x in case.left(part)]  # the next part begins with these
            if only and only != part:
                continue
            names, runs = [], []
            for candidate in candidates:
                run = case.launcher(part, candidate)
                try:
                    for left in case.left(part):
                        left.zero_()
                    run()
                    torch.cuda.synchronize()
                    apart = farthest(case.left(part), expected)
                    assert apart < 2e-2, f"wrong by {apart:.1e}"
                except (triton.runtime.errors.OutOfResources, triton.compiler.CompilationError, AssertionError, RuntimeError) as problem:
                    print(f"  {name_of(candidate)}: {type(problem).__name__} {str(problem)[:120]}")
                    continue
                names.append(name_of(candidate))
                runs.append(run)
            tell(f"{shape}, {part}: {case.tokens} tokens, {case.heads} and {case.key_heads} heads of {case.dim}", names, timed(runs, rounds), case.flops(part))
            case.launcher(part, candidates[0])()
        if only and only != "losses":
            continue
        width = SHAPES[shape][4]
        rows = (1 << 27) // width
        logits, targets, weights = losses(shape, "cuda", torch.bfloat16, rows)
        found = torch.zeros(rows, device="cuda")
        names, runs = [], []
        expected = None
        for candidate in loss_candidates(width):
            kernel, tile, warps = candidate
            changed = logits.clone()
            kernel[(rows,)](changed, targets, weights, found, WIDTH=width, TILE=tile, num_warps=warps)
            expected = (found.clone(), changed.clone()) if expected is None else expected
            assert farthest((found, changed), expected) < 2e-2, candidate
            names.append(name_of(candidate))
            runs.append(lambda kernel=kernel, changed=changed, tile=tile, warps=warps: kernel[(rows,)](changed, targets, weights, found, WIDTH=width, TILE=tile, num_warps=warps))
        tell(f"{shape}, losses of {rows} rows (a read and a write are {2 * logits.numel() * 2 / 1e6:.0f} MB)", names, timed(runs, rounds), 4 * logits.numel() / 1e-3, "GB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=sorted(SHAPES), default=["100m", "1.7b"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=[*NARROW, "losses"])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if options.check:
        check()
    elif options.compile:
        show_compiled(options.shapes, options.only)
    else:
        measure(options.shapes, options.rounds, options.only)


if __name__ == "__main__":
    main()
