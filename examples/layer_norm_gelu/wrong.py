"""The same, with a mistake that is easy to make: the lanes beyond the row's end count in its variance."""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer_norm_gelu(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    x = tl.load(x_ptr + row * width + columns, mask=inside, other=0.0)
    mean = tl.sum(x) / width
    centred = x - mean
    variance = tl.sum(centred * centred) / width
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + columns, mask=inside, other=0.0)
    y = centred * tl.rsqrt(variance + eps) * weight + bias
    y = 0.5 * y * (1.0 + tl.erf(y * 0.7071067811865476))
    tl.store(out_ptr + row * width + columns, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        width = x.shape[-1]
        layer_norm_gelu[(x.numel() // width,)](x, self.norm.weight, self.norm.bias, out, width, self.norm.eps,
                                               BLOCK=triton.next_power_of_2(width))
        return out
