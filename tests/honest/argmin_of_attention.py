"""The least of four weighted means whose terms cancel: where all are nearly equal, which of them is least is rounding.

reference: ../tasks/argmin_of_attention.py
verdict: Verified
"""
import torch
from torch import nn
from torch.nn import functional as F
import triton
import triton.language as tl

@triton.jit
def first_smaller_of(a, i, b, j):
    equal = (a == b) | ((a != a) & (b != b))
    second = (b < a) | ((b != b) & (a == a)) | (equal & (j < i))
    return tl.where(second, b, a), tl.where(second, j, i)


@triton.jit
def larger_of(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def scores_kernel(
    query_ptr, key_ptr, scores_ptr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # scores
    pid = tl.program_id(0)
    batch = pid
    first_m = 0
    first_n = 0
    m = first_m + tl.arange(0, BLOCK_M)[:, None]
    n = first_n + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    query = tl.load(query_ptr + m + batch * 4, mask=m < 4, other=0)
    key = tl.load(key_ptr + n + batch * 7, mask=n < 7, other=0)
    for start in range(0, 1, BLOCK_K):
        k_left = start + tl.arange(0, BLOCK_K)[None, :]
        left = tl.where(k_left < 1, query, 0.0)
        left_1 = tl.broadcast_to(left, [BLOCK_M, BLOCK_K])
        k_right = start + tl.arange(0, BLOCK_K)[:, None]
        right = tl.where(k_right < 1, key, 0.0)
        right_1 = tl.broadcast_to(right, [BLOCK_K, BLOCK_N])
        total = tl.dot(left_1, right_1, total, input_precision="tf32x3")
    tl.store(scores_ptr + m * 7 + n + batch * (4 * 7), total, mask=(m < 4) & (n < 7))


@triton.jit
def attention_weights_kernel(
    scores_ptr, mask_ptr, attention_weights_ptr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    # score_max, weight_sum, attention_weights
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLUMNS)[None, :]
    scores = tl.load(scores_ptr + row * 7 + column, mask=(row < 48 * 50 * 4) & (column < 7), other=0)
    bias = tl.load(mask_ptr + column + (row % 4) * 7, mask=(row < 48 * 50 * 4) & (column < 7), other=0)
    add = scores + bias
    score_max = tl.reduce(tl.where(column < 7, add, float("-inf")), 1, larger_of)[:, None]
    equal = score_max == float("-inf")
    where = tl.where(equal, 0.0, score_max)
    subtract = add - where
    exp = tl.exp(subtract)
    weight_sum = tl.sum(tl.where(column < 7, exp, 0.0), axis=1)[:, None]
    equal_1 = weight_sum == 0.0
    divide = exp / weight_sum
    attention_weights = tl.where(equal_1, 0.0, divide)
    tl.store(attention_weights_ptr + row * 7 + column, attention_weights, mask=(row < 48 * 50 * 4) & (column < 7))


@triton.jit
def attention_kernel(
    attention_weights_ptr, key_ptr, t1_ptr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    # attention
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLUMNS)[None, :]
    attention_weights = tl.load(attention_weights_ptr + row * 7 + column, mask=(row < 48 * 50 * 4) & (column < 7), other=0)
    key = tl.load(key_ptr + column + (row // 4) * 7, mask=(row < 48 * 50 * 4) & (column < 7), other=0)
    multiply = attention_weights * key
    attention = tl.sum(tl.where(column < 7, multiply, 0.0), axis=1)[:, None]
    tl.store(t1_ptr + row, attention, mask=row < 48 * 50 * 4)


@triton.jit
def argmin_kernel(t1_ptr, argmin_ptr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr):
    # argmin
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLUMNS)[None, :]
    t1 = tl.load(t1_ptr + row * 4 + column, mask=row < 48 * 50, other=0)
    argmin_of, argmin = tl.reduce((t1, tl.zeros([BLOCK_ROWS, BLOCK_COLUMNS], tl.int32) + column), 1, first_smaller_of)
    argmin_1 = argmin[:, None].to(tl.int64)
    tl.store(argmin_ptr + row, argmin_1, mask=row < 48 * 50)


class ModelNew(nn.Module):
    def forward(self, query, key, mask):
        device = query.device
        scores = torch.empty((48, 50, 4, 7), device=device, dtype=torch.float32)
        scores_kernel[((48 * 50) * triton.cdiv(4, 32) * triton.cdiv(7, 32),)](
            query, key, scores, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, num_warps=4, num_stages=4,
        )
        attention_weights = torch.empty((48, 50, 4, 7), device=device, dtype=torch.float32)
        attention_weights_kernel[(triton.cdiv(48 * 50 * 4, 32),)](
            scores, mask, attention_weights, BLOCK_ROWS=32, BLOCK_COLUMNS=8, num_warps=4,
        )
        t1 = torch.empty((48, 50, 4, 1), device=device, dtype=torch.float32)
        attention_kernel[(triton.cdiv(48 * 50 * 4, 32),)](
            attention_weights, key, t1, BLOCK_ROWS=32, BLOCK_COLUMNS=8, num_warps=4,
        )
        argmin = torch.empty((48, 50, 1), device=device, dtype=torch.int64)
        argmin_kernel[(triton.cdiv(48 * 50, 64),)](t1, argmin, BLOCK_ROWS=64, BLOCK_COLUMNS=4, num_warps=4)
        return argmin
