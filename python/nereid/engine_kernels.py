"""The engine's own kernels, in Triton, and the program that compiles them: without a GPU, once for a model's shape.

    python -m nereid.engine_kernels '{"arch": 90, "kernels": [{"name": "decode_attention", "element": "bf16",
        "constants": {"HEADS": 32, ...}, "options": {"num_warps": 4, "num_stages": 3}}]}'

answers with one JSON object a kernel, in order: {"ttir": text, "image": what kernel_compiler.py answers}; `image` is absent for
arch 0, whose text is for the executor of TTIR on the CPU. Pointers are aligned to 16 bytes.
"""

import json
import sys

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend


@triton.jit
def decode_attention(query, keys, values, tables, lengths, result, partial, logsums, table_width, scale,
                     HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr, GROUP_PADDED: tl.constexpr,
                     BLOCK_SIZE: tl.constexpr, TILE: tl.constexpr, SPLITS: tl.constexpr):
    """One query of a sequence over its keys and values in blocks; a program takes the heads that share a key head, over one split of the keys.

    query, result [sequences, HEADS, DIM]; keys, values [blocks, BLOCK_SIZE, KEY_HEADS, DIM]; tables [sequences, table_width]; lengths
    [sequences]; of splits: partial [sequences, HEADS, SPLITS, DIM] and logsums [sequences, HEADS, SPLITS], base 2. scale has log2(e) in it.
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
    q = tl.load(query + rows[:, None] * DIM + dims[None, :], mask=head_is[:, None] & dim_is[None, :], other=0.0)

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
        v = tl.load(values + places[:, None] + dims[None, :], mask=key_is[:, None] & dim_is[None, :], other=0.0)
        scores = tl.where(key_is[None, :], tl.dot(q, k, input_precision="ieee") * scale, float("-inf"))
        now_largest = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp2(largest - now_largest)
        shares = tl.exp2(scores - now_largest[:, None])
        total = total * shrink + tl.sum(shares, 1)
        seen = seen * shrink[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        largest = now_largest

    mask = head_is[:, None] & dim_is[None, :]
    if SPLITS == 1:
        tl.store(result + rows[:, None] * DIM + dims[None, :], (seen / total[:, None]).to(result.dtype.element_ty), mask=mask)
    else:
        some = begin < end  # a short sequence has fewer splits than there are
        tl.store(partial + (rows[:, None] * SPLITS + split) * DIM + dims[None, :], tl.where(some, seen / total[:, None], 0.0), mask=mask)
        tl.store(logsums + rows * SPLITS + split, tl.where(some, largest + tl.log2(total), float("-inf")), mask=head_is)


@triton.jit
def combine_splits(partial, logsums, result, DIM: tl.constexpr, DIM_PADDED: tl.constexpr, SPLITS: tl.constexpr, SPLITS_PADDED: tl.constexpr):
    """What the splits of one head of one sequence saw, weighted by the sums of their shares: see decode_attention."""
    row = tl.program_id(0).to(tl.int64)
    splits, dims = tl.arange(0, SPLITS_PADDED), tl.arange(0, DIM_PADDED)
    split_is, dim_is = splits < SPLITS, dims < DIM
    logs = tl.load(logsums + row * SPLITS + splits, mask=split_is, other=float("-inf"))
    weights = tl.exp2(logs - tl.max(logs, 0))
    seen = tl.load(partial + (row * SPLITS + splits[:, None]) * DIM + dims[None, :], mask=split_is[:, None] & dim_is[None, :], other=0.0)
    both = tl.sum(seen * weights[:, None], 0) / tl.sum(weights, 0)
    tl.store(result + row * DIM + dims, both.to(result.dtype.element_ty), mask=dim_is)


@triton.jit
def prepare_heads(joined, cosines, sines, query_norm, key_norm, slots, query, keys, values, epsilon,
                  HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, DIM: tl.constexpr, HALF_PADDED: tl.constexpr, NORMED: tl.constexpr):
    """Between the projection and attention, for one head of one token: the norm of queries and keys, their rotation, and keys and values into the cache.

    joined [tokens, HEADS + 2 * KEY_HEADS, DIM]; cosines, sines [tokens, DIM / 2]; norms [DIM]; slots [tokens]; query [tokens, HEADS, DIM];
    keys, values [places, KEY_HEADS, DIM].
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
            a = (a * inverse * tl.load(weight + dims, mask=dim_is, other=0.0).to(tl.float32)).to(first.dtype).to(tl.float32)
            b = (b * inverse * tl.load(weight + HALF + dims, mask=dim_is, other=0.0).to(tl.float32)).to(first.dtype).to(tl.float32)
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
    sum_ = tl.load(residual + row + at, mask=is_one, other=0.0) + tl.load(added + row + at, mask=is_one, other=0.0)
    tl.store(residual + row + at, sum_, mask=is_one)
    x = sum_.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(x * x, 0) / WIDTH + epsilon)
    tl.store(normed + row + at, (x * inverse * tl.load(weight + at, mask=is_one, other=0.0).to(tl.float32)).to(sum_.dtype), mask=is_one)


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
def rotate(x, cosines, sines, result, sign,
           HEADS: tl.constexpr, HEADS_PADDED: tl.constexpr, DIM: tl.constexpr, HALF_PADDED: tl.constexpr):
    """All heads of one token turned by its angles, or, with a sign of -1, back: the gradient's way. x, result [tokens, HEADS, DIM]."""
    token = tl.program_id(0).to(tl.int64)
    HALF: tl.constexpr = DIM // 2
    heads, dims = tl.arange(0, HEADS_PADDED), tl.arange(0, HALF_PADDED)
    is_one = (heads < HEADS)[:, None] & (dims < HALF)[None, :]
    at = (token * HEADS + heads[:, None]) * DIM + dims[None, :]
    a = tl.load(x + at, mask=is_one, other=0.0).to(tl.float32)
    b = tl.load(x + at + HALF, mask=is_one, other=0.0).to(tl.float32)
    c = tl.load(cosines + token * HALF + dims, mask=dims < HALF, other=0.0)[None, :]
    s = tl.load(sines + token * HALF + dims, mask=dims < HALF, other=0.0)[None, :] * sign
    tl.store(result + at, (a * c - b * s).to(result.dtype.element_ty), mask=is_one)
    tl.store(result + at + HALF, (b * c + a * s).to(result.dtype.element_ty), mask=is_one)


@triton.jit
def gate_pair(gates, ups, result, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """silu(gate) * up. All [tokens, WIDTH]."""
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    is_one = at < WIDTH
    at += tl.program_id(0).to(tl.int64) * WIDTH
    g = tl.load(gates + at, mask=is_one, other=0.0)
    x = g.to(tl.float32)
    tl.store(result + at, (x / (1 + tl.exp(-x))).to(g.dtype) * tl.load(ups + at, mask=is_one, other=0.0), mask=is_one)


@triton.jit
def gate_pair_backward(gradient, gates, ups, of_gates, of_ups, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """The gradients of both factors of gate_pair's product."""
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    is_one = at < WIDTH
    at += tl.program_id(0).to(tl.int64) * WIDTH
    grad = tl.load(gradient + at, mask=is_one, other=0.0).to(tl.float32)
    x = tl.load(gates + at, mask=is_one, other=0.0).to(tl.float32)
    up = tl.load(ups + at, mask=is_one, other=0.0).to(tl.float32)
    share = 1 / (1 + tl.exp(-x))
    tl.store(of_ups + at, (grad * x * share).to(of_ups.dtype.element_ty), mask=is_one)
    tl.store(of_gates + at, (grad * up * share * (1 + x * (1 - share))).to(of_gates.dtype.element_ty), mask=is_one)


@triton.jit
def norm_rotate(x, weight, cosines, sines, result, rows, epsilon,
                HEADS: tl.constexpr, DIM: tl.constexpr, HALF_PADDED: tl.constexpr, ROWS: tl.constexpr):
    """The RMS norm of each head of each token (a row), then its rotation. x, result [rows, DIM], rows = tokens * HEADS; weight [DIM]."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    HALF: tl.constexpr = DIM // 2
    dims = tl.arange(0, HALF_PADDED)[None, :]
    dim_is = dims < HALF
    is_one = (row < rows) & dim_is
    at = row.to(tl.int64) * DIM + dims
    first = tl.load(x + at, mask=is_one, other=0.0)
    a, b = first.to(tl.float32), tl.load(x + at + HALF, mask=is_one, other=0.0).to(tl.float32)
    inverse = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / DIM + epsilon)[:, None]
    # The norm's result has the model's type, and so it is rounded here.
    a = (a * inverse * tl.load(weight + dims, mask=dim_is, other=0.0).to(tl.float32)).to(first.dtype).to(tl.float32)
    b = (b * inverse * tl.load(weight + HALF + dims, mask=dim_is, other=0.0).to(tl.float32)).to(first.dtype).to(tl.float32)
    angle = (row // HEADS).to(tl.int64) * HALF + dims
    c = tl.load(cosines + angle, mask=is_one, other=0.0)
    s = tl.load(sines + angle, mask=is_one, other=0.0)
    tl.store(result + at, (a * c - b * s).to(first.dtype), mask=is_one)
    tl.store(result + at + HALF, (b * c + a * s).to(first.dtype), mask=is_one)


@triton.jit
def norm_rotate_backward(gradient, x, weight, cosines, sines, of_x, of_weight, rows, epsilon,
                         HEADS: tl.constexpr, DIM: tl.constexpr, HALF_PADDED: tl.constexpr, ROWS: tl.constexpr):
    """The gradients of norm_rotate's x, and of its weight by each program: of_weight [programs, DIM], float32, to be added up."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    HALF: tl.constexpr = DIM // 2
    dims = tl.arange(0, HALF_PADDED)[None, :]
    dim_is = dims < HALF
    is_one = (row < rows) & dim_is
    at = row.to(tl.int64) * DIM + dims
    angle = (row // HEADS).to(tl.int64) * HALF + dims
    c = tl.load(cosines + angle, mask=is_one, other=0.0)
    s = tl.load(sines + angle, mask=is_one, other=0.0)
    grad_a = tl.load(gradient + at, mask=is_one, other=0.0).to(tl.float32)
    grad_b = tl.load(gradient + at + HALF, mask=is_one, other=0.0).to(tl.float32)
    back_a, back_b = grad_a * c + grad_b * s, grad_b * c - grad_a * s
    a = tl.load(x + at, mask=is_one, other=0.0).to(tl.float32)
    b = tl.load(x + at + HALF, mask=is_one, other=0.0).to(tl.float32)
    inverse = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / DIM + epsilon)[:, None]
    a, b = a * inverse, b * inverse
    to_weight = of_weight + tl.program_id(0).to(tl.int64) * DIM + tl.arange(0, HALF_PADDED)
    tl.store(to_weight, tl.sum(back_a * a, 0), mask=tl.arange(0, HALF_PADDED) < HALF)
    tl.store(to_weight + HALF, tl.sum(back_b * b, 0), mask=tl.arange(0, HALF_PADDED) < HALF)
    back_a *= tl.load(weight + dims, mask=dim_is, other=0.0).to(tl.float32)
    back_b *= tl.load(weight + HALF + dims, mask=dim_is, other=0.0).to(tl.float32)
    along = ((tl.sum(back_a * a, 1) + tl.sum(back_b * b, 1)) / DIM)[:, None]
    tl.store(of_x + at, ((back_a - a * along) * inverse).to(of_x.dtype.element_ty), mask=is_one)
    tl.store(of_x + at + HALF, ((back_b - b * along) * inverse).to(of_x.dtype.element_ty), mask=is_one)


@triton.jit
def token_losses(logits, targets, weights, found, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """Of each row: found = log softmax(logits)[target], and the logits become weight times its gradient. logits [rows, WIDTH]."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    weight = tl.load(weights + row)
    logits += row * WIDTH
    largest = float("-inf")
    total = 0.0
    chosen = 0.0
    for start in range(0, WIDTH, TILE):
        at = start + tl.arange(0, TILE)
        x = tl.load(logits + at, mask=at < WIDTH, other=float("-inf")).to(tl.float32)
        now_largest = tl.maximum(largest, tl.max(x, 0))
        total = total * tl.exp(largest - now_largest) + tl.sum(tl.exp(x - now_largest), 0)
        chosen += tl.sum(tl.where(at == target, x, 0.0), 0)
        largest = now_largest
    logsum = largest + tl.log(total)
    tl.store(found + row, chosen - logsum)
    for start in range(0, WIDTH, TILE):
        at = start + tl.arange(0, TILE)
        x = tl.load(logits + at, mask=at < WIDTH, other=float("-inf"))
        share = tl.exp(x.to(tl.float32) - logsum)
        tl.store(logits + at, (weight * (tl.where(at == target, 1.0, 0.0) - share)).to(x.dtype), mask=at < WIDTH)


# Each parameter's type, in order; E is the model's own.
SIGNATURES = {
    "decode_attention": "*E *E *E *i32 *i32 *E *fp32 *fp32 i32 fp32",
    "combine_splits": "*fp32 *fp32 *E",
    "prepare_heads": "*E *fp32 *fp32 *E *E *i64 *E *E *E fp32",
    "add_and_norm": "*E *E *E *E fp32",
    "gate": "*E *E",
    "rotate": "*E *fp32 *fp32 *E fp32",
    "gate_pair": "*E *E *E",
    "gate_pair_backward": "*E *E *E *E *E",
    "norm_rotate": "*E *E *fp32 *fp32 *E i32 fp32",
    "norm_rotate_backward": "*E *E *E *fp32 *fp32 *E *fp32 i32 fp32",
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
    types = SIGNATURES[request["name"]].replace("E", request["element"]).split()
    constants = {name: request["constants"][name] for name in function.arg_names[len(types):]}
    signature = dict(zip(function.arg_names, types, strict=False)) | {name: "constexpr" for name in constants}
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(types) if kind[0] == "*"}
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=aligned)
    stages = {}
    backend.add_stages(stages, options, source.language)
    module = source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    return str(stages["ttir"](module, {}))


def main():
    request = json.loads(sys.argv[1])
    answers = []
    for kernel in request["kernels"]:
        answer = {"ttir": ttir_of(kernel)}
        if request["arch"]:
            from nereid import kernel_compiler  # pylint: disable=import-outside-toplevel
            answer["image"] = kernel_compiler.handle({"ttir": answer["ttir"], "arch": request["arch"], "options": kernel.get("options", {})})
            if "error" in answer["image"]:
                raise SystemExit(f"{kernel['name']}: {answer['image']['error']}")
        answers.append(answer)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
