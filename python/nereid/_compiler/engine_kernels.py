"""The engine's own kernels and training's, in Triton, and the program that compiles them: without a GPU, once
for a model's shape.

    python -m nereid._compiler.engine_kernels '{"arch": 90, "kernels": [
        {"name": "decode_attention", "element": "bf16", "constants": {...}, "options": {"num_warps": 4}}]}'

answers with one JSON object a kernel, in order: {"ttir": text, "image": what kernel_compiler.py answers};
`image` is absent for arch 0, whose text is for the executor of TTIR on the CPU. Pointers are aligned to 16
bytes.
"""

import json
import re
import sys

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend


@triton.jit
def decode_attention(
    query,
    keys,
    values,
    tables,
    lengths,
    result,
    partial,
    logsums,
    table_width,
    scale,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_PADDED: tl.constexpr,
    GROUP_PADDED: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """One query of a sequence over its keys and values in blocks; a program takes the heads that share a key
    head, over one split of the keys.

    query, result [sequences, HEADS, DIM]; keys, values [blocks, BLOCK_SIZE, KEY_HEADS, DIM]; tables
    [sequences, table_width]; lengths [sequences]; of splits: partial [sequences, HEADS, SPLITS, DIM] and
    logsums [sequences, HEADS, SPLITS], base 2. scale has log2(e) in it.
    """
    sequence, key_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    GROUP: tl.constexpr = HEADS // KEY_HEADS
    length = tl.load(lengths + sequence)
    share = tl.cdiv(tl.cdiv(length, SPLITS), TILE) * TILE
    begin = split * share
    end = tl.minimum(begin + share, length)

    heads = tl.arange(0, GROUP_PADDED)
    dims = tl.arange(0, DIM_PADDED)
    head_is, dim_is = heads < GROUP, dims < DIM
    rows = sequence.to(tl.int64) * HEADS + key_head * GROUP + heads
    q = tl.load(
        query + rows[:, None] * DIM + dims[None, :], mask=head_is[:, None] & dim_is[None, :], other=0.0
    )

    largest = tl.full([GROUP_PADDED], float("-inf"), tl.float32)
    total = tl.zeros([GROUP_PADDED], tl.float32)
    seen = tl.zeros([GROUP_PADDED, DIM_PADDED], tl.float32)
    table = tables + sequence.to(tl.int64) * table_width
    for start in range(begin, end, TILE):
        at = start + tl.arange(0, TILE)
        key_is = at < end
        block = tl.load(table + at // BLOCK_SIZE, mask=key_is, other=0)
        places = ((block.to(tl.int64) * BLOCK_SIZE + at % BLOCK_SIZE) * KEY_HEADS + key_head) * DIM
        k = tl.load(keys + places[None, :] + dims[:, None], mask=key_is[None, :] & dim_is[:, None], other=0.0)
        v = tl.load(
            values + places[:, None] + dims[None, :], mask=key_is[:, None] & dim_is[None, :], other=0.0
        )
        scores = tl.where(key_is[None, :], tl.dot(q, k, input_precision="ieee") * scale, float("-inf"))
        now_largest = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2(largest - now_largest)
        shares = tl.exp2(scores - now_largest[:, None])
        total = total * shrink + tl.sum(shares, 1)
        seen = seen * shrink[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        largest = now_largest

    mask = head_is[:, None] & dim_is[None, :]
    if SPLITS == 1:
        tl.store(
            result + rows[:, None] * DIM + dims[None, :],
            (seen / total[:, None]).to(result.dtype.element_ty),
            mask=mask,
        )
    else:
        some = begin < end  # a short sequence has fewer splits than there are
        tl.store(
            partial + (rows[:, None] * SPLITS + split) * DIM + dims[None, :],
            tl.where(some, seen / total[:, None], 0.0),
            mask=mask,
        )
        tl.store(
            logsums + rows * SPLITS + split,
            tl.where(some, largest + tl.log2(total), float("-inf")),
            mask=head_is,
        )


@triton.jit
def combine_splits(
    partial,
    logsums,
    result,
    DIM: tl.constexpr,
    DIM_PADDED: tl.constexpr,
    SPLITS: tl.constexpr,
    SPLITS_PADDED: tl.constexpr,
):
    """What the splits of one head of one sequence saw, weighted by the sums of their shares: see
    decode_attention."""
    row = tl.program_id(0).to(tl.int64)
    splits, dims = tl.arange(0, SPLITS_PADDED), tl.arange(0, DIM_PADDED)
    split_is, dim_is = splits < SPLITS, dims < DIM
    logs = tl.load(logsums + row * SPLITS + splits, mask=split_is, other=float("-inf"))
    weights = tl.exp2(logs - tl.max(logs, 0))
    seen = tl.load(
        partial + (row * SPLITS + splits[:, None]) * DIM + dims[None, :],
        mask=split_is[:, None] & dim_is[None, :],
        other=0.0,
    )
    both = tl.sum(seen * weights[:, None], 0) / tl.sum(weights, 0)
    tl.store(result + row * DIM + dims, both.to(result.dtype.element_ty), mask=dim_is)


@triton.jit
def prepare_heads(
    joined,
    cosines,
    sines,
    query_norm,
    key_norm,
    slots,
    query,
    keys,
    values,
    epsilon,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    HALF_PADDED: tl.constexpr,
    NORMED: tl.constexpr,
):
    """Between the projection and attention, for one head of one token: the norm of queries and keys, their
    rotation, and keys and values into the cache.

    joined [tokens, HEADS + 2 * KEY_HEADS, DIM]; cosines, sines [tokens, DIM / 2]; norms [DIM]; slots
    [tokens]; query [tokens, HEADS, DIM]; keys, values [places, KEY_HEADS, DIM].
    """
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    HALF: tl.constexpr = DIM // 2
    dims = tl.arange(0, HALF_PADDED)
    dim_is = dims < HALF
    row = joined + (token * (HEADS + 2 * KEY_HEADS) + head) * DIM
    first = tl.load(row + dims, mask=dim_is, other=0.0)
    second = tl.load(row + HALF + dims, mask=dim_is, other=0.0)
    if head >= HEADS + KEY_HEADS:
        to = values + (tl.load(slots + token) * KEY_HEADS + head - HEADS - KEY_HEADS) * DIM
        tl.store(to + dims, first, mask=dim_is)
        tl.store(to + HALF + dims, second, mask=dim_is)
    else:
        a, b = first.to(tl.float32), second.to(tl.float32)
        if NORMED:
            inverse = tl.rsqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / DIM + epsilon)
            weight = query_norm
            if head >= HEADS:
                weight = key_norm
            # The norm's result has the model's type, and so it is rounded here.
            a = (
                (a * inverse * tl.load(weight + dims, mask=dim_is, other=0.0).to(tl.float32))
                .to(first.dtype)
                .to(tl.float32)
            )
            b = (
                (b * inverse * tl.load(weight + HALF + dims, mask=dim_is, other=0.0).to(tl.float32))
                .to(first.dtype)
                .to(tl.float32)
            )
        c = tl.load(cosines + token * HALF + dims, mask=dim_is, other=0.0)
        s = tl.load(sines + token * HALF + dims, mask=dim_is, other=0.0)
        to = query + (token * HEADS + head) * DIM
        if head >= HEADS:
            to = keys + (tl.load(slots + token) * KEY_HEADS + head - HEADS) * DIM
        tl.store(to + dims, (a * c - b * s).to(first.dtype), mask=dim_is)
        tl.store(to + HALF + dims, (b * c + a * s).to(first.dtype), mask=dim_is)


@triton.jit
def add_and_norm(residual, added, weight, normed, epsilon, WIDTH: tl.constexpr, WIDTH_PADDED: tl.constexpr):
    """residual += added, and normed = RMS norm of it. All but weight [WIDTH] are [tokens, WIDTH]."""
    row = tl.program_id(0).to(tl.int64) * WIDTH
    at = tl.arange(0, WIDTH_PADDED)
    is_one = at < WIDTH
    sum_ = tl.load(residual + row + at, mask=is_one, other=0.0) + tl.load(
        added + row + at, mask=is_one, other=0.0
    )
    tl.store(residual + row + at, sum_, mask=is_one)
    x = sum_.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(x * x, 0) / WIDTH + epsilon)
    tl.store(
        normed + row + at,
        (x * inverse * tl.load(weight + at, mask=is_one, other=0.0).to(tl.float32)).to(sum_.dtype),
        mask=is_one,
    )


@triton.jit
def gate(joined, result, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """silu(gate) * up: joined [tokens, 2, WIDTH], result [tokens, WIDTH]."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    is_one = at < WIDTH
    g = tl.load(joined + row * 2 * WIDTH + at, mask=is_one, other=0.0)
    up = tl.load(joined + row * 2 * WIDTH + WIDTH + at, mask=is_one, other=0.0)
    x = g.to(tl.float32)
    tl.store(result + row * WIDTH + at, (x / (1 + tl.exp(-x))).to(g.dtype) * up, mask=is_one)


@triton.jit
def gate_backward(gradient, joined, of_joined, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """The gradients of both factors of gate's product: gradient [tokens, WIDTH], joined, of_joined [tokens,
    2, WIDTH]."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    is_one = at < WIDTH
    grad = tl.load(gradient + row * WIDTH + at, mask=is_one, other=0.0).to(tl.float32)
    x = tl.load(joined + row * 2 * WIDTH + at, mask=is_one, other=0.0).to(tl.float32)
    up = tl.load(joined + row * 2 * WIDTH + WIDTH + at, mask=is_one, other=0.0).to(tl.float32)
    share = 1 / (1 + tl.exp(-x))
    tl.store(
        of_joined + row * 2 * WIDTH + WIDTH + at,
        (grad * x * share).to(of_joined.dtype.element_ty),
        mask=is_one,
    )
    tl.store(
        of_joined + row * 2 * WIDTH + at,
        (grad * up * share * (1 + x * (1 - share))).to(of_joined.dtype.element_ty),
        mask=is_one,
    )


@triton.jit
def sum_and_norm(
    residual,
    added,
    weight,
    result,
    normed,
    epsilon,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    ADDED: tl.constexpr,
):
    """result = residual + added, and normed = RMS norm of it. All but weight [WIDTH] are [tokens, WIDTH]. Not
    ADDED: of residual alone, and no result."""
    row = tl.program_id(0).to(tl.int64) * WIDTH
    at = tl.arange(0, WIDTH_PADDED)
    is_one = at < WIDTH
    sum_ = tl.load(residual + row + at, mask=is_one, other=0.0)
    if ADDED:
        sum_ += tl.load(added + row + at, mask=is_one, other=0.0)
        tl.store(result + row + at, sum_, mask=is_one)
    x = sum_.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(x * x, 0) / WIDTH + epsilon)
    tl.store(
        normed + row + at,
        (x * inverse * tl.load(weight + at, mask=is_one, other=0.0).to(tl.float32)).to(sum_.dtype),
        mask=is_one,
    )


@triton.jit
def sum_and_norm_backward(
    gradient,
    passed,
    x,
    weight,
    of_x,
    of_weight,
    rows,
    programs,
    epsilon,
    WIDTH: tl.constexpr,
    WIDTH_PADDED: tl.constexpr,
    PASSED: tl.constexpr,
):
    """x [rows, WIDTH] is the sum that was normed, `gradient` the norm's and `passed` (where PASSED) the sum's
    own. of_x is that of both summands; of_weight [programs, WIDTH], float32, is to be added up."""
    at = tl.arange(0, WIDTH_PADDED)
    is_one = at < WIDTH
    w = tl.load(weight + at, mask=is_one, other=0.0).to(tl.float32)
    total = tl.zeros([WIDTH_PADDED], tl.float32)
    for row in range(tl.program_id(0), rows, programs):
        place = row.to(tl.int64) * WIDTH + at
        grad = tl.load(gradient + place, mask=is_one, other=0.0).to(tl.float32)
        a = tl.load(x + place, mask=is_one, other=0.0).to(tl.float32)
        inverse = tl.rsqrt(tl.sum(a * a, 0) / WIDTH + epsilon)
        a *= inverse
        total += grad * a
        grad *= w
        grad = (grad - a * (tl.sum(grad * a, 0) / WIDTH)) * inverse
        if PASSED:
            grad += tl.load(passed + place, mask=is_one, other=0.0).to(tl.float32)
        tl.store(of_x + place, grad.to(of_x.dtype.element_ty), mask=is_one)
    tl.store(of_weight + tl.program_id(0).to(tl.int64) * WIDTH + at, total, mask=is_one)


@triton.jit
def turn_heads(
    joined,
    query_norm,
    key_norm,
    cosines,
    sines,
    turned,
    rows,
    epsilon,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    HALF_PADDED: tl.constexpr,
    NORMED: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The RMS norm (where NORMED) of each head of queries and keys of each token (a row), then its rotation:
    each pair of dimensions (i, i + DIM / 2) by its token's angle. joined [tokens, HEADS + 2 * KEY_HEADS,
    DIM]; turned [rows, DIM], rows = tokens * (HEADS + KEY_HEADS)."""
    BOTH: tl.constexpr = HEADS + KEY_HEADS
    HALF: tl.constexpr = DIM // 2
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    token, head = (row // BOTH).to(tl.int64), row % BOTH
    dims = tl.arange(0, HALF_PADDED)[None, :]
    dim_is = dims < HALF
    is_one = (row < rows) & dim_is
    at = token * ((HEADS + 2 * KEY_HEADS) * DIM) + head * DIM + dims
    first = tl.load(joined + at, mask=is_one, other=0.0)
    a, b = first.to(tl.float32), tl.load(joined + at + HALF, mask=is_one, other=0.0).to(tl.float32)
    if NORMED:
        inverse = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / DIM + epsilon)[:, None]
        is_query = head < HEADS
        of_a = tl.where(
            is_query,
            tl.load(query_norm + dims, mask=dim_is, other=0.0),
            tl.load(key_norm + dims, mask=dim_is, other=0.0),
        )
        of_b = tl.where(
            is_query,
            tl.load(query_norm + HALF + dims, mask=dim_is, other=0.0),
            tl.load(key_norm + HALF + dims, mask=dim_is, other=0.0),
        )
        # The norm's result has the model's type, and so it is rounded here.
        a = (a * inverse * of_a.to(tl.float32)).to(first.dtype).to(tl.float32)
        b = (b * inverse * of_b.to(tl.float32)).to(first.dtype).to(tl.float32)
    c = tl.load(cosines + token * HALF + dims, mask=is_one, other=0.0)
    s = tl.load(sines + token * HALF + dims, mask=is_one, other=0.0)
    to = row.to(tl.int64) * DIM + dims
    tl.store(turned + to, (a * c - b * s).to(first.dtype), mask=is_one)
    tl.store(turned + to + HALF, (b * c + a * s).to(first.dtype), mask=is_one)


@triton.jit
def turn_heads_backward(
    of_turned,
    joined,
    query_norm,
    key_norm,
    cosines,
    sines,
    of_joined,
    of_norms,
    rows,
    programs,
    epsilon,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    HALF_PADDED: tl.constexpr,
    NORMED: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The gradients of turn_heads' joined queries and keys, and of its norms by each program: of_norms
    [programs, 2, DIM], float32, to be added up."""
    BOTH: tl.constexpr = HEADS + KEY_HEADS
    HALF: tl.constexpr = DIM // 2
    dims = tl.arange(0, HALF_PADDED)[None, :]
    dim_is = dims < HALF
    of_query_a = tl.zeros([ROWS, HALF_PADDED], tl.float32)
    of_query_b = tl.zeros([ROWS, HALF_PADDED], tl.float32)
    of_key_a = tl.zeros([ROWS, HALF_PADDED], tl.float32)
    of_key_b = tl.zeros([ROWS, HALF_PADDED], tl.float32)
    for start in range(tl.program_id(0) * ROWS, rows, programs * ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        token, head = (row // BOTH).to(tl.int64), row % BOTH
        is_one = (row < rows) & dim_is
        c = tl.load(cosines + token * HALF + dims, mask=is_one, other=0.0)
        s = tl.load(sines + token * HALF + dims, mask=is_one, other=0.0)
        place = row.to(tl.int64) * DIM + dims
        grad_a = tl.load(of_turned + place, mask=is_one, other=0.0).to(tl.float32)
        grad_b = tl.load(of_turned + place + HALF, mask=is_one, other=0.0).to(tl.float32)
        back_a, back_b = grad_a * c + grad_b * s, grad_b * c - grad_a * s
        at = token * ((HEADS + 2 * KEY_HEADS) * DIM) + head * DIM + dims
        if NORMED:
            a = tl.load(joined + at, mask=is_one, other=0.0).to(tl.float32)
            b = tl.load(joined + at + HALF, mask=is_one, other=0.0).to(tl.float32)
            inverse = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / DIM + epsilon)[:, None]
            a, b = a * inverse, b * inverse
            is_query = head < HEADS
            of_query_a += tl.where(is_query, back_a * a, 0.0)
            of_query_b += tl.where(is_query, back_b * b, 0.0)
            of_key_a += tl.where(is_query, 0.0, back_a * a)
            of_key_b += tl.where(is_query, 0.0, back_b * b)
            of_a = tl.where(
                is_query,
                tl.load(query_norm + dims, mask=dim_is, other=0.0),
                tl.load(key_norm + dims, mask=dim_is, other=0.0),
            )
            of_b = tl.where(
                is_query,
                tl.load(query_norm + HALF + dims, mask=dim_is, other=0.0),
                tl.load(key_norm + HALF + dims, mask=dim_is, other=0.0),
            )
            back_a *= of_a.to(tl.float32)
            back_b *= of_b.to(tl.float32)
            along = ((tl.sum(back_a * a, 1) + tl.sum(back_b * b, 1)) / DIM)[:, None]
            back_a = (back_a - a * along) * inverse
            back_b = (back_b - b * along) * inverse
        tl.store(of_joined + at, back_a.to(of_joined.dtype.element_ty), mask=is_one)
        tl.store(of_joined + at + HALF, back_b.to(of_joined.dtype.element_ty), mask=is_one)
    if NORMED:
        to = of_norms + tl.program_id(0).to(tl.int64) * (2 * DIM) + tl.arange(0, HALF_PADDED)
        half_is = tl.arange(0, HALF_PADDED) < HALF
        tl.store(to, tl.sum(of_query_a, 0), mask=half_is)
        tl.store(to + HALF, tl.sum(of_query_b, 0), mask=half_is)
        tl.store(to + DIM, tl.sum(of_key_a, 0), mask=half_is)
        tl.store(to + DIM + HALF, tl.sum(of_key_b, 0), mask=half_is)


# Attention of training, over documents that lie one behind the other. A query's largest score before it has
# seen one: finite, so that what is hidden, -inf, less it is no NaN. (Were it that, too, what is hidden would
# weigh exp2(-inf * scale + inf * scale); were both -1e30, a fused multiply and add would round one of them.)
LOWEST = tl.constexpr(-1e30)


@triton.jit
def rows_of(blocks, first, column, ROWS: tl.constexpr, BLOCK: tl.constexpr, DIM: tl.constexpr):
    """[ROWS, DIM] through a descriptor of blocks [BLOCK, DIM]: one of them, or two."""
    found = blocks.load([first, column])
    if ROWS > BLOCK:
        found = tl.join(found, blocks.load([first + BLOCK, column])).permute(2, 0, 1).reshape(ROWS, DIM)
    return found


@triton.jit
def packed_attention(
    turned,
    joined,
    starts,
    result,
    logsums,
    tokens,
    scale,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_PADDED: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """Each query sees the keys from its document's beginning to its own place; a program takes QUERIES of
    them, of one head.

    turned [tokens, HEADS + KEY_HEADS, DIM]: queries and keys; joined [tokens, HEADS + 2 * KEY_HEADS, DIM], of
    which the last are values; starts [tokens]: where each token's document begins; result [tokens, HEADS,
    DIM]; logsums [HEADS, tokens], base 2. scale has log2(e) in it. DESCRIBED: turned and joined are
    descriptors of blocks [KEYS, DIM], for the tensor memory accelerator, which spares the addresses'
    registers; QUERIES are KEYS or twice as many then, and DIM is a power of two.
    """
    head, first = tl.program_id(0), tl.program_id(1) * QUERIES
    key_head = head // (HEADS // KEY_HEADS)
    rows, columns, dims = tl.arange(0, QUERIES), tl.arange(0, KEYS), tl.arange(0, DIM_PADDED)
    dim_is = dims < DIM
    queries = first + rows
    query_is = queries < tokens
    mask = query_is[:, None] & dim_is[None, :]
    STRIDE: tl.constexpr = (HEADS + KEY_HEADS) * DIM
    VALUE_STRIDE: tl.constexpr = (HEADS + 2 * KEY_HEADS) * DIM
    if DESCRIBED:
        q = rows_of(turned, first, head * DIM, QUERIES, KEYS, DIM)
    else:
        q = tl.load(
            turned + first.to(tl.int64) * STRIDE + head * DIM + rows[:, None] * STRIDE + dims[None, :],
            mask=mask,
            other=0.0,
        )
    own = tl.load(starts + queries, mask=query_is, other=0)
    lowest = tl.load(starts + first)
    end = tl.minimum(first + QUERIES, tokens)
    # Queries of one document all see the keys before the first of them.
    masked_from = lowest + tl.where(tl.load(starts + end - 1) == lowest, (first - lowest) // KEYS * KEYS, 0)
    # Of scores as they are: scaling them and subtracting the largest is one instruction then.
    largest = tl.full([QUERIES], LOWEST, tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    seen = tl.zeros([QUERIES, DIM_PADDED], tl.float32)
    for at in range(lowest, masked_from, KEYS):
        if DESCRIBED:
            k = turned.load([at, (HEADS + key_head) * DIM]).T
            v = joined.load([at, (HEADS + KEY_HEADS + key_head) * DIM])
        else:
            of_key = tl.cast(at, tl.int64) * STRIDE + (HEADS + key_head) * DIM
            of_value = tl.cast(at, tl.int64) * VALUE_STRIDE + (HEADS + KEY_HEADS + key_head) * DIM
            k = tl.load(
                turned + of_key + columns[None, :] * STRIDE + dims[:, None], mask=dim_is[:, None], other=0.0
            )
            v = tl.load(
                joined + of_value + columns[:, None] * VALUE_STRIDE + dims[None, :],
                mask=dim_is[None, :],
                other=0.0,
            )
        scores = tl.dot(q, k, input_precision="ieee")
        now_largest = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2((largest - now_largest) * scale)
        shares = tl.exp2(scores * scale - (now_largest * scale)[:, None])
        total = total * shrink + tl.sum(shares, 1)
        seen = seen * shrink[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        largest = now_largest
    for at in range(masked_from, end, KEYS):
        keys = at + columns
        if DESCRIBED:
            k = turned.load([at, (HEADS + key_head) * DIM]).T
            v = joined.load([at, (HEADS + KEY_HEADS + key_head) * DIM])
        else:
            key_is = keys < end
            of_key = tl.cast(at, tl.int64) * STRIDE + (HEADS + key_head) * DIM
            of_value = tl.cast(at, tl.int64) * VALUE_STRIDE + (HEADS + KEY_HEADS + key_head) * DIM
            k = tl.load(
                turned + of_key + columns[None, :] * STRIDE + dims[:, None],
                mask=key_is[None, :] & dim_is[:, None],
                other=0.0,
            )
            v = tl.load(
                joined + of_value + columns[:, None] * VALUE_STRIDE + dims[None, :],
                mask=key_is[:, None] & dim_is[None, :],
                other=0.0,
            )
        scores = tl.dot(q, k, input_precision="ieee")
        scores = tl.where(
            (keys[None, :] <= queries[:, None]) & (keys[None, :] >= own[:, None]), scores, float("-inf")
        )
        now_largest = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2((largest - now_largest) * scale)
        shares = tl.exp2(scores * scale - (now_largest * scale)[:, None])
        total = total * shrink + tl.sum(shares, 1)
        seen = seen * shrink[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        largest = now_largest
    to = (
        result
        + first.to(tl.int64) * (HEADS * DIM)
        + head * DIM
        + rows[:, None] * (HEADS * DIM)
        + dims[None, :]
    )
    tl.store(to, (seen / total[:, None]).to(result.dtype.element_ty), mask=mask)
    tl.store(logsums + head.to(tl.int64) * tokens + queries, largest * scale + tl.log2(total), mask=query_is)


@triton.jit
def packed_attention_queries(
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
    DESCRIBED: tl.constexpr,
):
    """The gradients of packed_attention's queries, and dots [HEADS, tokens], float32: of each query's result
    with its gradient [tokens, HEADS, DIM]. DESCRIBED as there."""
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
    if DESCRIBED:
        q = rows_of(turned, first, head * DIM, QUERIES, KEYS, DIM)
    else:
        q = tl.load(turned + of_query, mask=mask, other=0.0)
    grad = tl.load(gradient + of_result, mask=mask, other=0.0)
    dot = tl.sum(grad.to(tl.float32) * tl.load(result + of_result, mask=mask, other=0.0).to(tl.float32), 1)
    at_head = tl.cast(head, tl.int64) * tokens + queries
    tl.store(dots + at_head, dot, mask=query_is)
    logsum = tl.load(logsums + at_head, mask=query_is, other=0.0)
    own = tl.load(starts + queries, mask=query_is, other=0)
    lowest = tl.load(starts + first)
    end = tl.minimum(first + QUERIES, tokens)
    masked_from = lowest + tl.where(tl.load(starts + end - 1) == lowest, (first - lowest) // KEYS * KEYS, 0)
    of_q = tl.zeros([QUERIES, DIM_PADDED], tl.float32)
    for at in range(lowest, masked_from, KEYS):
        if DESCRIBED:
            k = turned.load([at, (HEADS + key_head) * DIM])
            v = joined.load([at, (HEADS + KEY_HEADS + key_head) * DIM]).T
        else:
            of_key = tl.cast(at, tl.int64) * STRIDE + (HEADS + key_head) * DIM
            of_value = tl.cast(at, tl.int64) * VALUE_STRIDE + (HEADS + KEY_HEADS + key_head) * DIM
            k = tl.load(
                turned + of_key + columns[:, None] * STRIDE + dims[None, :], mask=dim_is[None, :], other=0.0
            )
            v = tl.load(
                joined + of_value + columns[None, :] * VALUE_STRIDE + dims[:, None],
                mask=dim_is[:, None],
                other=0.0,
            )
        shares = tl.exp2(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - logsum[:, None])
        of_scores = shares * (tl.dot(grad, v, input_precision="ieee") - dot[:, None])
        of_q += tl.dot(of_scores.to(k.dtype), k, input_precision="ieee")
    for at in range(masked_from, end, KEYS):
        keys = at + columns
        if DESCRIBED:
            k = turned.load([at, (HEADS + key_head) * DIM])
            v = joined.load([at, (HEADS + KEY_HEADS + key_head) * DIM]).T
        else:
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
        shares = tl.where((keys[None, :] <= queries[:, None]) & (keys[None, :] >= own[:, None]), shares, 0.0)
        of_scores = shares * (tl.dot(grad, v, input_precision="ieee") - dot[:, None])
        of_q += tl.dot(of_scores.to(k.dtype), k, input_precision="ieee")
    tl.store(
        of_turned + of_query, (of_q * (scale * 0.6931471805599453)).to(of_turned.dtype.element_ty), mask=mask
    )


@triton.jit
def packed_attention_keys(
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
    """The gradients of packed_attention's keys and values; a program takes KEYS of them, of one key head, and
    the queries of all heads that share it. ends [tokens]: where each token's document ends; dots: as
    packed_attention_queries left them."""
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
    own = tl.load(ends + keys, mask=key_is, other=0)
    highest = tl.load(ends + tl.minimum(first + KEYS, tokens) - 1)
    tiles = tl.cdiv(highest - first, QUERIES)
    of_k = tl.zeros([KEYS, DIM_PADDED], tl.float32)
    of_v = tl.zeros([KEYS, DIM_PADDED], tl.float32)
    # One loop over heads and their queries: two, one in the other, take more registers than there are.
    for tile in range(0, tiles * GROUP):
        head = key_head * GROUP + tile // tiles
        at = first + tile % tiles * QUERIES
        queries = at + columns
        query_is = queries < highest
        here = query_is[:, None] & dim_is[None, :]
        q = tl.load(
            turned + at.to(tl.int64) * STRIDE + head * DIM + columns[:, None] * STRIDE + dims[None, :],
            mask=here,
            other=0.0,
        )
        grad = tl.load(
            gradient + at.to(tl.int64) * WIDTH + head * DIM + columns[:, None] * WIDTH + dims[None, :],
            mask=here,
            other=0.0,
        )
        logsum = tl.load(logsums + head.to(tl.int64) * tokens + queries, mask=query_is, other=0.0)
        dot = tl.load(dots + head.to(tl.int64) * tokens + queries, mask=query_is, other=0.0)
        shares = tl.exp2(tl.dot(k, tl.trans(q), input_precision="ieee") * scale - logsum[None, :])
        shares = tl.where(
            (keys[:, None] <= queries[None, :]) & (queries[None, :] < own[:, None]), shares, 0.0
        )
        of_v += tl.dot(shares.to(grad.dtype), grad, input_precision="ieee")
        of_scores = shares * (tl.dot(v, tl.trans(grad), input_precision="ieee") - dot[None, :])
        of_k += tl.dot(of_scores.to(q.dtype), q, input_precision="ieee")
    tl.store(
        of_turned + of_key, (of_k * (scale * 0.6931471805599453)).to(of_turned.dtype.element_ty), mask=mask
    )
    tl.store(of_joined + of_value, of_v.to(of_joined.dtype.element_ty), mask=mask)


@triton.jit
def packed_attention_keys_described(
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
    """packed_attention_keys, whose gradient and turned are descriptors of blocks [QUERIES, DIM]; KEYS are
    QUERIES or twice as many, and DIM is a power of two.

    In two loops, the second of which has no masks at all: the last tile of queries, which may end behind the
    document, is the first loop's; and heads and places are counted on, not divided out of one number."""
    key_head, first = tl.program_id(0), tl.program_id(1) * KEYS
    GROUP: tl.constexpr = HEADS // KEY_HEADS
    rows, columns, dims = tl.arange(0, KEYS), tl.arange(0, QUERIES), tl.arange(0, DIM_PADDED)
    dim_is = dims < DIM
    keys = first + rows
    key_is = keys < tokens
    mask = key_is[:, None] & dim_is[None, :]
    STRIDE: tl.constexpr = (HEADS + KEY_HEADS) * DIM
    VALUE_STRIDE: tl.constexpr = (HEADS + 2 * KEY_HEADS) * DIM
    of_key = first.to(tl.int64) * STRIDE + (HEADS + key_head) * DIM + rows[:, None] * STRIDE + dims[None, :]
    of_value = (
        first.to(tl.int64) * VALUE_STRIDE
        + (HEADS + KEY_HEADS + key_head) * DIM
        + rows[:, None] * VALUE_STRIDE
        + dims[None, :]
    )
    k = rows_of(turned, first, (HEADS + key_head) * DIM, KEYS, QUERIES, DIM)
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
        q = turned.load([at, head * DIM])
        grad = gradient.load([at, head * DIM])
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
        q = turned.load([at, head * DIM])
        grad = gradient.load([at, head * DIM])
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
def token_losses(logits, targets, weights, found, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """Of each row: found = log softmax(logits)[target], and the logits become weight times its gradient.
    logits [rows, WIDTH]. Largest and sums are of eight neighbours' lane until the row is over: no thread
    waits for another in the loop."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    weight = tl.load(weights + row)
    logits += row * WIDTH
    chosen = tl.load(logits + target).to(tl.float32)
    places = tl.arange(0, TILE // 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    largest = tl.full([TILE // 8], -1e30, tl.float32)
    total = tl.zeros([TILE // 8], tl.float32)
    for start in range(0, WIDTH, TILE):
        at = start + places
        x = tl.load(logits + at, mask=at < WIDTH, other=float("-inf")).to(tl.float32)
        now_largest = tl.maximum(largest, tl.max(x, 1))
        total = total * tl.exp(largest - now_largest) + tl.sum(tl.exp(x - now_largest[:, None]), 1)
        largest = now_largest
    top = tl.max(largest, 0)
    logsum = top + tl.log(tl.sum(total * tl.exp(largest - top), 0))
    tl.store(found + row, chosen - logsum)
    tl.debug_barrier()  # the loop below overwrites the logit that `chosen` was read from
    for start in range(0, WIDTH, TILE):
        at = start + places
        x = tl.load(logits + at, mask=at < WIDTH, other=float("-inf"))
        share = tl.exp(x.to(tl.float32) - logsum)
        tl.store(
            logits + at, (weight * (tl.where(at == target, 1.0, 0.0) - share)).to(x.dtype), mask=at < WIDTH
        )


# Each parameter's type, in order; E is the model's own, &ROWS a descriptor of blocks [ROWS, DIM_PADDED] of
# such, or *E where the kernel is not DESCRIBED.
SIGNATURES = {
    "decode_attention": "*E *E *E *i32 *i32 *E *fp32 *fp32 i32 fp32",
    "combine_splits": "*fp32 *fp32 *E",
    "prepare_heads": "*E *fp32 *fp32 *E *E *i64 *E *E *E fp32",
    "add_and_norm": "*E *E *E *E fp32",
    "gate": "*E *E",
    "gate_backward": "*E *E *E",
    "sum_and_norm": "*E *E *E *E *E fp32",
    "sum_and_norm_backward": "*E *E *E *E *E *fp32 i32 i32 fp32",
    "turn_heads": "*E *E *E *fp32 *fp32 *E i32 fp32",
    "turn_heads_backward": "*E *E *E *E *fp32 *fp32 *E *fp32 i32 i32 fp32",
    "packed_attention": "&KEYS &KEYS *i32 *E *fp32 i32 fp32",
    "packed_attention_queries": "*E &KEYS &KEYS *i32 *E *fp32 *fp32 *E i32 fp32",
    "packed_attention_keys": "*E *E *E *i32 *fp32 *fp32 *E *E i32 fp32",
    "packed_attention_keys_described": "&QUERIES &QUERIES *E *i32 *fp32 *fp32 *E *E i32 fp32",
    "token_losses": "*E *i64 *fp32 *fp32",
}


def ttir_of(request):
    function = globals()[request["name"]]
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({"sanitize_overflow": False, **request.get("options", {})})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    given = request["constants"]
    types = [
        (
            f"tensordesc<{request['element']}[{given[kind[1:]]}, {given['DIM_PADDED']}]>"
            if kind[0] == "&" and given["DESCRIBED"]
            else re.sub("^&.*|[*]E$", "*" + request["element"], kind)
        )
        for kind in SIGNATURES[request["name"]].split()
    ]
    constants = {name: given[name] for name in function.arg_names[len(types) :]}
    signature = dict(zip(function.arg_names, types, strict=False)) | {name: "constexpr" for name in constants}
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(types) if kind[0] == "*"}
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=aligned)
    stages = {}
    backend.add_stages(stages, options, source.language)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    return str(stages["ttir"](module, {}))


def main():
    request = json.loads(sys.argv[1])
    answers = []
    for kernel in request["kernels"]:
        answer = {"ttir": ttir_of(kernel)}
        if request["arch"]:
            from nereid._compiler import kernel_compiler  # pylint: disable=import-outside-toplevel

            answer["image"] = kernel_compiler.handle(
                {"ttir": answer["ttir"], "arch": request["arch"], "options": kernel.get("options", {})}
            )
            if "error" in answer["image"]:
                raise SystemExit(f"{kernel['name']}: {answer['image']['error']}")
        answers.append(answer)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
