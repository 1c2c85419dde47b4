"""Small modules, one operator each, that the compiler must lower: `cases()` gives them all.

A case is a forward in one expression (or some lines that end in one), its inputs' shapes, and what the
constructor makes. Inputs are named x, y, z; `layout` is x's layout in memory.
"""

import dataclasses
import itertools

UNARY = """torch.abs(x) torch.neg(x) torch.exp(x) torch.exp2(x) torch.sin(x) torch.cos(x) torch.tanh(x)
    torch.erf(x) torch.sigmoid(x) torch.expm1(x) torch.sign(x) torch.square(x) torch.atan(x) torch.floor(x)
    torch.ceil(x) torch.round(x) torch.trunc(x) torch.log(x.abs()+0.5) torch.log2(x.abs()+0.5)
    torch.log1p(x.abs()) torch.sqrt(x.abs()) torch.rsqrt(x.abs()+0.5) torch.reciprocal(x.abs()+0.5)
    torch.pow(x,2) torch.pow(x.abs()+0.5,1.7) x**3 torch.frac(x) torch.logit(torch.sigmoid(x))
    torch.log10(x.abs()+0.5) torch.asinh(x) torch.sinh(x) torch.cosh(x) torch.erfc(x) torch.nan_to_num(x)
    torch.sinc(x) torch.relu(x) F.leaky_relu(x,0.2) F.silu(x) F.gelu(x) F.gelu(x,approximate='tanh') F.selu(x)
    F.elu(x,0.7) F.celu(x,1.3) F.hardsigmoid(x) F.hardtanh(x) F.hardswish(x) F.softplus(x) F.softplus(x,2,10)
    F.softsign(x) F.logsigmoid(x) F.mish(x) F.relu6(x) F.tanhshrink(x) F.softshrink(x) F.hardshrink(x)
    F.threshold(x,0.1,-3.0) torch.clamp(x,-0.5,0.5) torch.clamp(x,min=0.1) torch.clamp(x,max=0.1)
    F.dropout(x,0.3,training=False) F.glu(x[...,:x.shape[-1]//2*2]) torch.logical_not(x>0) torch.isnan(x)
    torch.deg2rad(x) x.clamp_(-1,1) x.clone().mul_(2).add_(1) torch.heaviside(x,x.new_ones(())) F.rrelu(x)
    x.float().to(x.dtype) x>0.1 x.round()!=0 torch.where(x>0,x,x*0.1) torch.where(x>0,1.0,x)
    x.masked_fill(x>1,0.5) torch.bitwise_not(x>0) (x>0)&(x<1) (x>0)|(x<-1) torch.logical_xor(x>0,x>1)
    (x>0).to(x.dtype) x.masked_fill(x>1,float('-inf')).exp()""".split()
BINARY = """x+y x-y x*y x/(y.abs()+0.5) torch.maximum(x,y) torch.minimum(x,y) torch.lerp(x,y,0.3)
    torch.lerp(x,y,y.sigmoid()) torch.fmax(x,y) torch.fmin(x,y) torch.atan2(x,y) torch.hypot(x,y)
    torch.pow(x.abs()+0.5,y) torch.add(x,y,alpha=0.5) torch.addcmul(x,y,y,value=0.5)
    torch.addcdiv(x,y,y.abs()+1) x%(y.abs()+1) torch.fmod(x,y.abs()+1) x//(y.abs()+1) torch.where(x>y,x,y) x>y
    torch.xlogy(x.abs(),y.abs()+0.5) torch.logaddexp(x,y) torch.copysign(x,y) 1-x+y 2/(x.abs()+y.abs()+1)
    torch.clamp(x,max=y) torch.dist(x,y) torch.isclose(x,y) F.prelu(x,y.flatten()[:1])""".split()
REDUCE = """x.sum() x.sum(-1) x.sum(0) x.sum((0,-1)) x.sum(-1,keepdim=True) x.mean() x.mean(-1) x.mean(0)
    x.mean((0,-1),keepdim=True) x.amax(-1) x.amax(0) x.amin((0,-1)) x.max() x.min() x.max(-1).values x.max(0)
    x.min(-1) x.argmax(-1) x.argmax(0) x.argmin(-1) x.argmax() x.argmin() (x/3).prod(-1) x.var(-1) x.var(0)
    x.var() x.std(-1) x.std(0,unbiased=False) torch.var_mean(x,-1) torch.std_mean(x,0) x.norm() x.norm(dim=-1)
    x.norm(p=1,dim=0) x.norm(p=3,dim=-1) torch.linalg.vector_norm(x,dim=-1,ord=float('inf'))
    torch.logsumexp(x,-1) torch.logsumexp(x,0) (x>3).any(-1) (x>-2).all(-1) (x>100).any()
    torch.count_nonzero(x,-1) (x>0).sum(-1) torch.aminmax(x,dim=-1) x.nansum(-1) F.softmax(x,-1)
    F.softmax(x,0) F.log_softmax(x,-1) F.log_softmax(x,0) F.softmin(x,-1) F.normalize(x,dim=-1)
    F.normalize(x,p=1,dim=0) x-x.mean(-1,keepdim=True) x/x.abs().amax(0,keepdim=True).add(1)
    (x*x).mean(-1).sqrt() torch.median(x,-1).values""".split()
SCAN = """x.cumsum(-1) x.cumsum(0) (x/2).cumprod(-1) (x/2).cumprod(0) x.cummax(-1) x.cummax(0)
    x.cummin(-1).values x.logcumsumexp(-1) x.flip(-1).cumsum(-1).flip(-1) torch.diff(x)""".split()
SHAPE = """torch.cat([x,y],-1) torch.cat([x,y],0) torch.cat([x,y,x+1],-1).relu() torch.stack([x,y],0)
    torch.stack([x,y],-1) torch.stack([x,y],1) F.pad(x,(1,2)) F.pad(x,(2,1,1,0)) F.pad(x,(1,1),value=2.5)
    F.pad(x,(-1,2)) F.pad(x[None],(1,2),mode='reflect') F.pad(x[None],(1,2),mode='replicate')
    F.pad(x[None],(1,2),mode='circular') x.flip(-1) x.flip((0,-1)) torch.roll(x,2,-1)
    torch.roll(x,(1,-2),(0,-1)) x.narrow(-1,1,5)+1 x[...,::2]*2 x[1:,...]+x[:-1,...] x.split(4,-1)[0]+1
    torch.chunk(x,3,-1)[1]*2 sum(x.split(5,-1)[:2]) x.transpose(0,-1).contiguous()
    x.permute(*range(x.dim()-1,-1,-1))+1 x.reshape(-1)*2 x.flatten()+1 torch.triu(x) torch.tril(x)
    torch.triu(x,1) torch.tril(x,-2) x.expand(3,*x.shape)*2 x.repeat(2,*[1]*(x.dim()-1))
    x.repeat_interleave(2,-1) torch.tile(x,(2,)) x.unsqueeze(1)+y.unsqueeze(0) x.unfold(-1,4,2)*1
    torch.diagonal(x,0,0,-1)*2 torch.diag_embed(x) torch.outer(x.flatten()[:40],y.flatten()[:30])
    torch.rot90(x,1,(0,-1)) x.masked_fill(torch.ones_like(x,dtype=torch.bool).triu(1),0.0)
    torch.eye(x.shape[-1],device=x.device,dtype=x.dtype)+x[:1] torch.zeros_like(x)+x torch.ones_like(x)*2
    torch.full_like(x,3.0) x.new_zeros(3,4)+1 torch.arange(x.shape[-1],device=x.device)*x
    torch.linspace(0,1,x.shape[-1],device=x.device,dtype=x.dtype)*x
    torch.meshgrid(x.flatten()[:5],y.flatten()[:7],indexing='ij')[0]*1 torch.einsum('...i,...i->...',x,y)
    torch.tensordot(x,y,dims=([0],[0])) torch.kron(x[:4],y[:3])
    torch.cdist(x[:9].float().reshape(9,-1),y[:8].float().reshape(8,-1)) torch.trace(x.reshape(x.shape[0],-1))
    x.movedim(0,-1)*2 x.swapaxes(0,-1)+1""".split()

# Draws, which PyTorch makes again from the same stream.
RANDOM = """F.dropout(x,0.3) F.dropout(x,0.5).relu()+x F.dropout(x*2,0.1,inplace=True) F.dropout(x,1.0)+x
    F.dropout(x.t(),0.3).t() F.dropout(x[:,3:],0.2)*2 F.dropout(x[:1].expand(7,x.shape[1]),0.3)
    F.dropout(F.dropout(x,0.3).tanh(),0.3) torch.native_dropout(x,0.3,True) F.alpha_dropout(x,0.3,True)
    F.feature_alpha_dropout(x.reshape(3,11,5,13),0.3,True) F.dropout2d(x.reshape(3,11,5,13),0.3)
    F.dropout1d(x.reshape(3,11,65),0.3).sin() F.dropout3d(x.reshape(3,11,5,13,1),0.3) x+torch.randn_like(x)
    x*torch.rand_like(x) x+torch.randn(x.shape[1],device=x.device) x+torch.rand(33,1,device=x.device)
    x+torch.randn(x.shape).to(x.device) torch.where(torch.rand_like(x)<0.3,x,-x)
    x+torch.randint(0,9,x.shape,device=x.device) x*torch.randint_like(x,3)
    x+torch.zeros_like(x).normal_(0.5,2) x+torch.empty_like(x).uniform_(-1,1)
    x+torch.empty(33,65,device=x.device).exponential_(2.0) x*torch.bernoulli(x,0.3)
    x*torch.empty_like(x).bernoulli_(0.3) torch.normal(x,0.5)*2 torch.normal(0.5,x.abs())+1
    torch.normal(x,x.abs())+1 torch.normal(0.0,1.0,(33,65),device=x.device)+x
    x[torch.randperm(33,device=x.device)]*2 x.t()+torch.randn_like(x.t())
    (x.clone()[:,::2].normal_(),x*2)[1]+torch.rand_like(x)""".split()


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    forward: str
    inputs: tuple  # of (name, shape) or (name, text)
    init: str = ""
    dtype: str = "float32"
    layout: str = ""
    family: str = ""
    setup: str = ""

    def source(self):
        def made(value):
            if isinstance(value, str):
                return value.replace("DTYPE", f"torch.{self.dtype}")
            return f"torch.randn({', '.join(map(str, value))}, dtype=torch.{self.dtype})"

        inputs = [made(value) for _, value in self.inputs]
        if self.layout == "transposed":
            inputs[0] += ".transpose(0, -1).contiguous().transpose(0, -1)"
        elif self.layout == "sliced":
            inputs[0] = f"torch.cat([{inputs[0]}] * 2, -1)[..., :{self.inputs[0][1][-1]}]"
        *lines, last = self.forward.split("\n")
        init = self.init.split("\n") if self.init else []
        if init and self.dtype != "float32":
            init.append(f"self.to(torch.{self.dtype})")
        names = ", ".join(name for name, _ in self.inputs)
        body = "\n        ".join(["super().__init__()", *init])
        steps = "\n        ".join([*lines, f"return {last}"])
        return f"""import torch
import torch.nn as nn
import torch.nn.functional as F
{self.setup}

class Model(nn.Module):
    def __init__(self):
        {body}

    def forward(self, {names}):
        {steps}


def get_inputs():
    return [{", ".join(inputs)}]


def get_init_inputs():
    return []
"""


def layer(name, init, *shapes, forward="self.f(x)", extra=(), **more):
    inputs = tuple(("xyzuvw"[i], shape) for i, shape in enumerate(shapes))
    return Case(name, forward, inputs, "self.f = " + init if init else "", family="layer", **more)


LAYERS = [
    layer("linear", "nn.Linear(40, 70)", (33, 40)),
    layer(
        "linear_along_its_inner_size", "nn.Linear(24, 40)", (33, 24), (24, 33, 40), forward="self.f(x) * y"
    ),
    layer(
        "loop_as_long_as_its_state",
        "nn.Linear(14, 6)\nself.g = nn.Linear(6, 7)",
        (6, 3, 8),
        (3, 6),
        forward=(
            "outs = []\nfor t in range(6):\n    y = torch.tanh(self.f(torch.cat([x[t], y], 1)))\n"
            "    outs.append(self.g(y))\ntorch.stack(outs)"
        ),
    ),
    layer("linear3d", "nn.Linear(40, 24, bias=False)", (4, 9, 40)),
    layer("linear1d", "nn.Linear(40, 24)", (40,)),
    layer("mlp", "nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, 8))", (33, 40)),
    layer("bilinear", "nn.Bilinear(10, 12, 7)", (9, 10), (9, 12), forward="self.f(x, y)"),
    layer("mm", "", (33, 65), (65, 20), forward="x @ y"),
    layer("mm_ta", "", (65, 33), (65, 20), forward="x.t() @ y"),
    layer("mm_tb", "", (33, 65), (20, 65), forward="x @ y.t()"),
    layer("mm_tt", "", (65, 33), (20, 65), forward="x.t() @ y.t()"),
    layer("mv", "", (33, 65), (65,), forward="x @ y"),
    layer("dot", "", (650,), (650,), forward="x @ y"),
    layer("bmm", "", (3, 33, 20), (3, 20, 17), forward="torch.bmm(x, y)"),
    layer("matmul4d", "", (2, 3, 17, 20), (2, 3, 20, 9), forward="x @ y"),
    layer("matmul_broadcast", "", (2, 3, 17, 20), (20, 9), forward="x @ y"),
    layer("matmul_broadcast2", "", (2, 1, 17, 20), (3, 20, 9), forward="x @ y"),
    layer("addmm", "", (33,), (20, 65), (65, 33), forward="torch.addmm(x, y, z, beta=0.5, alpha=2)"),
    layer("baddbmm", "", (3, 8, 9), (3, 8, 20), (3, 20, 9), forward="torch.baddbmm(x, y, z)"),
    layer("einsum", "", (3, 8, 20), (3, 9, 20), forward="torch.einsum('bik,bjk->bij', x, y)"),
    layer("einsum2", "", (3, 8, 20), (20, 6, 5), forward="torch.einsum('bik,kho->bhio', x, y)"),
    layer("mm_triu", "", (33, 33), (33, 33), forward="torch.triu(x) @ torch.tril(y)"),
    layer("mm_diag", "", (33,), (33, 20), forward="torch.diag(x) @ y"),
    layer("mm_sum", "", (33, 65), (65, 20), forward="(x @ y).sum(1)"),
    layer("mm_mean_all", "", (33, 65), (65, 20), forward="(x @ y).mean()"),
    layer("linear_max", "nn.Linear(40, 70)", (33, 40), forward="self.f(x).max(dim=1).values"),
    layer("linear_softmax", "nn.Linear(40, 70)", (33, 40), forward="F.softmax(self.f(x), -1)"),
    layer("long_k", "", (9, 5000), (5000, 8), forward="x @ y"),
    layer("conv1d", "nn.Conv1d(6, 10, 3, padding=1)", (4, 6, 50)),
    layer("conv2d", "nn.Conv2d(6, 10, 3, stride=2, padding=1)", (2, 6, 17, 18)),
    layer("conv2d_1x1", "nn.Conv2d(16, 24, 1)", (2, 16, 9, 10)),
    layer("conv2d_dilated", "nn.Conv2d(6, 10, 3, dilation=2, bias=False)", (2, 6, 17, 18)),
    layer("conv2d_same", "nn.Conv2d(6, 10, (3, 4), padding='same')", (2, 6, 17, 18)),
    layer("conv2d_grouped", "nn.Conv2d(8, 12, 3, groups=4)", (2, 8, 12, 13)),
    layer("conv2d_depthwise", "nn.Conv2d(8, 8, 3, padding=1, groups=8)", (2, 8, 12, 13)),
    layer("conv2d_reflect", "nn.Conv2d(6, 10, 3, padding=1, padding_mode='reflect')", (2, 6, 12, 13)),
    layer("conv3d", "nn.Conv3d(3, 5, 3, padding=1)", (2, 3, 6, 7, 8)),
    layer("conv1d_depthwise", "nn.Conv1d(8, 16, 5, groups=8)", (2, 8, 40)),
    layer("conv3d_grouped", "nn.Conv3d(4, 6, 2, groups=2)", (2, 4, 5, 6, 7)),
    layer("conv_unbatched", "nn.Conv2d(6, 10, 3)", (6, 12, 13)),
    layer("conv_transpose1d", "nn.ConvTranspose1d(6, 10, 4, stride=2, padding=1)", (4, 6, 25)),
    layer(
        "conv_transpose2d",
        "nn.ConvTranspose2d(6, 10, 3, stride=2, padding=1, output_padding=1)",
        (2, 6, 9, 10),
    ),
    layer("conv_transpose2d_1", "nn.ConvTranspose2d(6, 10, 3)", (2, 6, 9, 10)),
    layer("conv_transpose2d_dilated", "nn.ConvTranspose2d(6, 10, 3, stride=3, dilation=2)", (2, 6, 7, 8)),
    layer("conv_transpose2d_grouped", "nn.ConvTranspose2d(8, 12, 4, stride=2, groups=4)", (2, 8, 6, 7)),
    layer("conv_transpose3d", "nn.ConvTranspose3d(3, 5, 3, stride=2)", (2, 3, 4, 5, 6)),
    layer(
        "conv_bn_relu",
        "nn.Sequential(nn.Conv2d(6, 10, 3), nn.BatchNorm2d(10), nn.ReLU()).eval()",
        (2, 6, 12, 13),
    ),
    layer("conv_relu_pool", "nn.Sequential(nn.Conv2d(6, 10, 3), nn.ReLU(), nn.MaxPool2d(2))", (2, 6, 12, 13)),
    layer("batch_norm1d", "nn.BatchNorm1d(40)", (33, 40)),
    layer("batch_norm1d_3d", "nn.BatchNorm1d(8)", (9, 8, 21)),
    layer("batch_norm2d", "nn.BatchNorm2d(8)", (4, 8, 9, 10)),
    layer("batch_norm3d", "nn.BatchNorm3d(4)", (2, 4, 5, 6, 7)),
    layer("batch_norm_eval", "nn.BatchNorm2d(8).eval()", (4, 8, 9, 10)),
    layer("batch_norm_plain", "nn.BatchNorm2d(8, affine=False, track_running_stats=False)", (4, 8, 9, 10)),
    Case(
        "batch_norm_and_scalar",
        "[self.f(x), F.mish(y)]",
        (("x", (33, 40)), ("y", "torch.randn((), dtype=DTYPE)")),
        init="self.f = nn.BatchNorm1d(40)",
    ),
    layer("batch_norm_average", "nn.BatchNorm2d(8, momentum=None)", (4, 8, 9, 10)),
    layer("group_norm", "nn.GroupNorm(4, 8)", (4, 8, 9, 10)),
    layer("group_norm_plain", "nn.GroupNorm(2, 8, affine=False)", (4, 8, 30)),
    layer("instance_norm", "nn.InstanceNorm2d(8)", (4, 8, 9, 10)),
    layer("instance_norm_affine", "nn.InstanceNorm1d(8, affine=True)", (4, 8, 50)),
    layer("instance_norm_running", "nn.InstanceNorm2d(8, track_running_stats=True).eval()", (4, 8, 9, 10)),
    layer("layer_norm", "nn.LayerNorm(40)", (33, 40)),
    layer("layer_norm_2d", "nn.LayerNorm((9, 10), eps=1e-3)", (4, 8, 9, 10)),
    layer("layer_norm_plain", "nn.LayerNorm(40, elementwise_affine=False)", (3, 5, 40)),
    layer("layer_norm_large", "nn.LayerNorm((40, 500))", (3, 40, 500)),
    layer("rms_norm", "nn.RMSNorm(40)", (33, 40)),
    layer("local_response_norm", "nn.LocalResponseNorm(3)", (2, 8, 9, 10)),
    layer("weight_norm", "nn.utils.parametrizations.weight_norm(nn.Linear(20, 30))", (9, 20)),
    layer("dropout_eval", "nn.Dropout(0.5).eval()", (33, 40)),
    layer("prelu", "nn.PReLU(8)", (4, 8, 9, 10)),
    layer("embedding", "nn.Embedding(50, 20, padding_idx=0)", "torch.randint(0, 50, (7, 9))"),
    layer("embedding_sum", "nn.EmbeddingBag(50, 20, mode='mean')", "torch.randint(0, 50, (7, 9))"),
    layer("one_hot", "", "torch.randint(0, 11, (7, 9))", forward="F.one_hot(x, 11)"),
    layer("gather", "", (33, 40), "torch.randint(0, 40, (33, 5))", forward="torch.gather(x, 1, y)"),
    layer("gather0", "", (33, 40), "torch.randint(0, 33, (5, 40))", forward="torch.gather(x, 0, y) * 2"),
    layer("index_select", "", (33, 40), "torch.randint(0, 40, (7,))", forward="torch.index_select(x, 1, y)"),
    layer("index", "", (33, 40), "torch.randint(-33, 33, (7,))", forward="x[y] + 1"),
    layer(
        "index2", "", (33, 40), "torch.randint(0, 33, (7,))", "torch.randint(0, 40, (7,))", forward="x[y, z]"
    ),
    layer("index3", "", (5, 33, 40), "torch.randint(0, 33, (7, 2))", forward="x[:, y]"),
    layer("take", "", (33, 40), "torch.randint(0, 1320, (7, 3))", forward="torch.take(x, y)"),
    layer(
        "take_along_dim",
        "",
        (33, 40),
        "torch.randint(0, 40, (33, 3))",
        forward="torch.take_along_dim(x, y, 1)",
    ),
    # Which of several equal elements an index names is for PyTorch to say, where it does not promise to keep
    # their order.
    layer("sort_columns", "", (65, 33), forward="torch.sort(x, dim=0, descending=True, stable=True)"),
    layer("sort_ties", "", (33, 65), forward="torch.sort((x * 2).round(), dim=-1, stable=True)"),
    layer("argsort", "", (4, 33, 65), forward="torch.argsort(x, dim=1, stable=True)"),
    layer("topk_both", "", (5, 200, 3), forward="a = torch.topk(x, 7, 1)\na.values, x.gather(1, a.indices)"),
    layer("topk_smallest", "", (33, 65), forward="torch.topk(x, 5, -1, largest=False).values"),
    layer(
        "topk_long",
        "",
        (3, 5000),
        forward="torch.topk(x, 40, -1).values, x.gather(1, torch.topk(x, 3, -1, largest=False).indices)",
    ),
    layer("kthvalue", "", (33, 65), forward="torch.kthvalue(x, 4, -1).values"),
    layer("median_all", "", (33, 64), forward="x.median(1), x.flatten().median()"),
    layer(
        "scatter_rows",
        "",
        (33, 40),
        "torch.stack([torch.randperm(33)[:9] for _ in range(35)], 1)",
        (9, 40),
        forward="x.scatter(0, y, z), x.scatter(0, y, 2.5)",
    ),
    layer(
        "scatter_reduce",
        "",
        (33, 40),
        "torch.randint(0, 40, (33, 9))",
        (33, 9),
        forward=(
            "x.scatter_reduce(1, y, z, 'amax'), x.scatter_reduce(1, y, z, 'prod'), x.scatter_reduce(1, y, z,"
            " 'sum')"
        ),
    ),
    layer(
        "index_copy",
        "",
        (33, 40),
        "torch.randperm(33)[:9]",
        (9, 40),
        forward="x.index_copy(0, y, z), x.index_fill(0, y, 1.5)",
    ),
    layer("embedding_mean", "nn.EmbeddingBag(50, 12, mode='mean')", "torch.randint(0, 50, (9, 7))"),
    layer("embedding_max", "nn.EmbeddingBag(50, 12, mode='max')", "torch.randint(0, 50, (9, 7))"),
    layer(
        "embedding_offsets",
        "nn.EmbeddingBag(50, 12, mode='sum')",
        "torch.randint(0, 50, (40,))",
        "torch.tensor([0, 3, 3, 20, 39])",
        "torch.rand(40).to(DTYPE)",
        forward="self.f(x, y, z)",
    ),
    layer("written_out_columns", "", (33, 40), "torch.tensor([5, 0, 17, 3, 30, 8])", forward="x[:, y]"),
    layer("written_out_number", "", (33, 40), "torch.tensor(3)", "torch.tensor(0.75)", forward="x * y + z"),
    layer("scatter", "", (33, 40), "torch.randint(0, 40, (33, 1))", (33, 1), forward="x.scatter(1, y, z)"),
    layer(
        "scatter_add",
        "",
        (33, 40),
        "torch.randint(0, 40, (33, 9))",
        (33, 9),
        forward="x.scatter_add(1, y, z)",
    ),
    layer("index_add", "", (33, 40), "torch.randint(0, 33, (9,))", (9, 40), forward="x.index_add(0, y, z)"),
    layer("topk", "", (33, 40), forward="torch.topk(x, 4, -1).values"),
    layer("sort", "", (33, 40), forward="torch.sort(x, -1).values"),
    layer(
        "slice_assign", "", (33, 40), forward="y = torch.zeros_like(x)\ny[:, 3:20] = x[:, :17]\ny[2] += 1\ny"
    ),
    layer("bool_mask", "", (33, 40), forward="x[:, None, :] * (x > 0)[:, :, None]"),
    layer("avg_pool1d", "nn.AvgPool1d(3, 2, 1)", (4, 6, 50)),
    layer("avg_pool2d", "nn.AvgPool2d(3, 2, 1)", (4, 6, 17, 18)),
    layer("avg_pool2d_exclude", "nn.AvgPool2d(3, 2, 1, count_include_pad=False)", (4, 6, 17, 18)),
    layer("avg_pool2d_ceil", "nn.AvgPool2d(3, 2, ceil_mode=True)", (4, 6, 17, 18)),
    layer("avg_pool3d", "nn.AvgPool3d(2)", (2, 3, 6, 7, 8)),
    layer("max_pool1d", "nn.MaxPool1d(3, 2, 1)", (4, 6, 50)),
    layer("max_pool2d", "nn.MaxPool2d(3, 2, 1)", (4, 6, 17, 18)),
    layer("max_pool2d_ceil", "nn.MaxPool2d(2, ceil_mode=True)", (4, 6, 17, 19)),
    layer("max_pool2d_dilated", "nn.MaxPool2d(3, dilation=2)", (4, 6, 17, 19)),
    layer("max_pool2d_indices", "nn.MaxPool2d(2, return_indices=True)", (4, 6, 16, 18)),
    layer("max_pool3d", "nn.MaxPool3d(3, 2, 1)", (2, 3, 6, 7, 8)),
    layer("max_pool_large", "nn.MaxPool2d(8)", (2, 3, 33, 33)),
    layer("lp_pool", "nn.LPPool2d(2, 3)", (2, 3, 12, 12)),
    layer("adaptive_avg_pool1d", "nn.AdaptiveAvgPool1d(7)", (4, 6, 50)),
    layer("adaptive_avg_pool2d", "nn.AdaptiveAvgPool2d((5, 7))", (4, 6, 17, 18)),
    layer("adaptive_avg_pool2d_1", "nn.AdaptiveAvgPool2d(1)", (4, 6, 17, 18)),
    layer("adaptive_avg_pool3d", "nn.AdaptiveAvgPool3d(2)", (2, 3, 6, 7, 8)),
    layer("adaptive_max_pool1d", "nn.AdaptiveMaxPool1d(7)", (4, 6, 50)),
    layer("adaptive_max_pool2d", "nn.AdaptiveMaxPool2d((5, 7))", (4, 6, 17, 18)),
    layer("upsample_nearest", "nn.Upsample(scale_factor=2)", (2, 3, 6, 7)),
    layer("upsample_bilinear", "nn.Upsample(scale_factor=2, mode='bilinear')", (2, 3, 6, 7)),
    layer(
        "upsample_bilinear_corners",
        "nn.Upsample(size=(11, 9), mode='bilinear', align_corners=True)",
        (2, 3, 6, 7),
    ),
    layer("upsample_linear", "nn.Upsample(scale_factor=2, mode='linear')", (2, 3, 6)),
    layer("pixel_shuffle", "nn.PixelShuffle(2)", (2, 8, 6, 7)),
    layer("pixel_unshuffle", "nn.PixelUnshuffle(2)", (2, 3, 6, 8)),
    layer("channel_shuffle", "nn.ChannelShuffle(2)", (2, 8, 6, 7)),
    layer("unfold", "nn.Unfold(3, padding=1)", (2, 3, 6, 7)),
    layer("fold", "nn.Fold((6, 7), 3, padding=1)", (2, 27, 42)),
    layer("mse_loss", "nn.MSELoss()", (33, 40), (33, 40), forward="self.f(x, y)"),
    layer("l1_loss", "nn.L1Loss(reduction='sum')", (33, 40), (33, 40), forward="self.f(x, y)"),
    layer("smooth_l1", "nn.SmoothL1Loss(beta=0.5)", (33, 40), (33, 40), forward="self.f(x, y)"),
    layer("huber", "nn.HuberLoss(delta=0.7)", (33, 40), (33, 40), forward="self.f(x, y)"),
    layer(
        "cross_entropy",
        "nn.CrossEntropyLoss()",
        (33, 40),
        "torch.randint(0, 40, (33,))",
        forward="self.f(x, y)",
    ),
    layer(
        "cross_entropy_2d",
        "nn.CrossEntropyLoss(ignore_index=3)",
        (4, 10, 5, 6),
        "torch.randint(0, 10, (4, 5, 6))",
        forward="self.f(x, y)",
    ),
    layer(
        "cross_entropy_smooth",
        "nn.CrossEntropyLoss(label_smoothing=0.1)",
        (33, 40),
        "torch.randint(0, 40, (33,))",
        forward="self.f(x, y)",
    ),
    layer(
        "cross_entropy_soft", "nn.CrossEntropyLoss()", (33, 40), (33, 40), forward="self.f(x, y.softmax(-1))"
    ),
    layer(
        "cross_entropy_none",
        "nn.CrossEntropyLoss(reduction='none')",
        (33, 40),
        "torch.randint(0, 40, (33,))",
        forward="self.f(x, y)",
    ),
    layer(
        "nll_loss",
        "nn.NLLLoss()",
        (33, 40),
        "torch.randint(0, 40, (33,))",
        forward="self.f(x.log_softmax(-1), y)",
    ),
    layer(
        "kl_div",
        "nn.KLDivLoss(reduction='batchmean')",
        (33, 40),
        (33, 40),
        forward="self.f(x.log_softmax(-1), y.softmax(-1))",
    ),
    layer(
        "kl_div_log",
        "nn.KLDivLoss(reduction='sum', log_target=True)",
        (33, 40),
        (33, 40),
        forward="self.f(x.log_softmax(-1), y.log_softmax(-1))",
    ),
    layer("bce", "nn.BCELoss()", (33, 40), (33, 40), forward="self.f(x.sigmoid(), y.sigmoid())"),
    layer("bce_logits", "nn.BCEWithLogitsLoss()", (33, 40), (33, 40), forward="self.f(x, y.sigmoid())"),
    layer("hinge", "", (330,), (330,), forward="torch.mean(torch.clamp(1 - x * y.sign(), min=0))"),
    layer(
        "hinge_embedding",
        "nn.HingeEmbeddingLoss()",
        (33, 40),
        (33, 40),
        forward="self.f(x, (y > 0).to(x.dtype) * 2 - 1)",
    ),
    layer(
        "margin_ranking", "nn.MarginRankingLoss(0.3)", (33,), (33,), (33,), forward="self.f(x, y, z.sign())"
    ),
    layer("soft_margin", "nn.SoftMarginLoss()", (33, 40), (33, 40), forward="self.f(x, y.sign())"),
    layer(
        "multi_margin",
        "nn.MultiMarginLoss()",
        (33, 40),
        "torch.randint(0, 40, (33,))",
        forward="self.f(x, y)",
    ),
    layer(
        "cosine_embedding",
        "nn.CosineEmbeddingLoss()",
        (33, 40),
        (33, 40),
        (33,),
        forward="self.f(x, y, z.sign())",
    ),
    layer("cosine_similarity", "nn.CosineSimilarity(dim=1)", (33, 40), (33, 40), forward="self.f(x, y)"),
    layer("triplet", "nn.TripletMarginLoss()", (33, 40), (33, 40), (33, 40), forward="self.f(x, y, z)"),
    layer("pairwise_distance", "nn.PairwiseDistance()", (33, 40), (33, 40), forward="self.f(x, y)"),
    layer("poisson_nll", "nn.PoissonNLLLoss()", (33, 40), (33, 40), forward="self.f(x, y.abs())"),
    layer(
        "gaussian_nll",
        "nn.GaussianNLLLoss()",
        (33, 40),
        (33, 40),
        (33, 40),
        forward="self.f(x, y, z.abs() + 0.1)",
    ),
    layer(
        "attention",
        "",
        (2, 3, 33, 16),
        (2, 3, 40, 16),
        (2, 3, 40, 16),
        forward="F.scaled_dot_product_attention(x, y, z)",
    ),
    layer(
        "attention_causal",
        "",
        (2, 3, 33, 16),
        (2, 3, 33, 16),
        (2, 3, 33, 16),
        forward="F.scaled_dot_product_attention(x, y, z, is_causal=True)",
    ),
    layer(
        "attention_mask",
        "",
        (2, 3, 33, 20),
        (2, 3, 40, 20),
        (2, 3, 40, 24),
        (2, 1, 33, 40),
        forward="F.scaled_dot_product_attention(x, y, z, attn_mask=u)",
    ),
    layer(
        "attention_bool",
        "",
        (2, 3, 33, 20),
        (2, 3, 40, 20),
        (2, 3, 40, 24),
        (33, 40),
        forward="F.scaled_dot_product_attention(x, y, z, attn_mask=u > -1, scale=0.3)",
    ),
    layer(
        "attention_gqa",
        "",
        (2, 4, 33, 16),
        (2, 2, 40, 16),
        (2, 2, 40, 16),
        forward="F.scaled_dot_product_attention(x, y, z, enable_gqa=True)",
    ),
    layer(
        "attention_written",
        "",
        (2, 3, 33, 16),
        (2, 3, 40, 16),
        (2, 3, 40, 16),
        forward="F.softmax(x @ y.transpose(-2, -1) / 4, -1) @ z",
    ),
    layer(
        "attention_long",
        "",
        (1, 2, 150, 64),
        (1, 2, 150, 64),
        (1, 2, 150, 64),
        forward="F.scaled_dot_product_attention(x, y, z, is_causal=True)",
    ),
    layer(
        "attention_extreme",
        "",
        (31, 14, 64, 6),
        (31, 14, 7, 6),
        (31, 14, 7, 6),
        forward="F.scaled_dot_product_attention(x, y, z).amax(2)",
    ),
    layer(
        "attention_wide",
        "",
        (1, 2, 33, 200),
        (1, 2, 70, 200),
        (1, 2, 70, 200),
        forward="F.scaled_dot_product_attention(x, y, z)",
    ),
    layer(
        "attention_blind",
        "",
        (2, 3, 33, 16),
        (2, 3, 40, 16),
        (2, 3, 40, 16),
        forward=(
            "F.scaled_dot_product_attention(x, y, z, attn_mask=torch.ones(33, 40, dtype=torch.bool,"
            " device=x.device).tril(-3))"
        ),
    ),
    layer(
        "attention_tril",
        "",
        (2, 3, 70, 16),
        (2, 3, 70, 16),
        (2, 3, 70, 16),
        forward=(
            "s = (x @ y.mT) * 0.25\nF.softmax(s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1),"
            " float('-inf')), -1) @ z"
        ),
    ),
    layer(
        "attention_returned",
        "",
        (2, 3, 33, 16),
        (2, 3, 40, 16),
        (2, 3, 40, 16),
        forward="w = F.softmax(x @ y.mT / 4, -1)\nw @ z, w",
    ),
    layer(
        "attention_einsum",
        "",
        (2, 33, 3, 16),
        (2, 40, 3, 16),
        (2, 40, 3, 20),
        forward="torch.einsum('bhqk,bkhd->bqhd', F.softmax(torch.einsum('bqhd,bkhd->bhqk', x, y), -1), z)",
    ),
    layer(
        "index_two_buffers",
        "None\nrows, columns = torch.tril_indices(9, 9, offset=-1)\nself.register_buffer('rows',"
        " rows)\nself.register_buffer('columns', columns)",
        (5, 9, 9),
        forward="x[:, self.rows, self.columns]",
    ),
    layer(
        "gather_of_pad",
        "",
        (8,),
        "torch.randint(0, 16, (33,))",
        forward="F.pad(x, (0, 8)).index_select(0, y)",
    ),
    layer(
        "pool_of_gather",
        "",
        (9, 40),
        "torch.randint(0, 4, (9, 10, 10))",
        forward="F.max_pool1d((x * 2).view(9, 4, 10).gather(1, y), 3, stride=2, padding=1)",
    ),
    layer(
        "mean_of_infinite",
        "nn.BatchNorm1d(5)",
        (40, 5),
        forward="self.f(torch.maximum(x.exp(), x ** 3)).sum()",
    ),
    layer("cumprod_vanishes", "", (2, 400), forward="torch.cat([x * 1e-8, x * 1e8, x * 1e8], 1).cumprod(1)"),
    layer("cumprod_overflows", "", (24, 70), (24, 70), forward="x.lerp(y, 0.3).cumprod(0)"),
    layer(
        "cumsum_cancels", "", (200, 70), (200, 70), forward="torch.exp(-y.abs()) * (x * y.exp()).cumsum(0)"
    ),
    layer(
        "norm_of_constant_rows",
        "",
        (200, 127),
        forward="F.layer_norm(x.cummax(1).values.cummax(1).values, (127,))",
    ),
    # Huge inputs' products are about the largest float32: in which order they are added decides what comes
    # out.
    layer("matmul_overflows", "", (64, 3), (3, 900), forward="(x * 1.6e16) @ (y * 1.6e16)"),
    layer("var_overflows", "", (31, 80), forward="x.exp2().cumsum(1).var(1)"),
    layer("lerp_far", "", (31, 80), (31, 80), forward="torch.lerp(x, y, 0.9) - y"),
    layer("rsqrt_of_subnormal", "", (31, 80), forward="F.softplus(x).rsqrt()"),
    layer("long_sum", "nn.Linear(5000, 70)", (9, 5000), forward="self.f(x).relu()"),
    layer("long_sum_whole", "nn.Linear(8192, 40)", (9, 8192), forward="F.gelu(self.f(x))"),
    layer("conv_thin", "nn.Conv2d(3, 40, 7, stride=2, padding=3)", (4, 3, 64, 64)),
    layer(
        "conv_thin_even",
        "nn.Conv2d(3, 33, 4, padding=(1, 2), bias=False)",
        (3, 3, 65, 64),
        forward="self.f(x).relu()",
    ),
    layer("conv_thin1d", "nn.Conv1d(6, 64, 9, padding=4, stride=3)", (4, 6, 8000)),
    layer(
        "conv_thin3d", "nn.Conv3d(2, 16, (2, 3, 5), padding=(0, 1, 2), dilation=(2, 2, 1))", (2, 2, 9, 40, 41)
    ),
    layer("conv_thin_one", "nn.Conv3d(8, 1, 5, padding=2)", (6, 8, 7, 11, 50)),
    layer("conv_halves", "nn.Conv2d(40, 48, 3, padding=1, stride=2)", (3, 40, 60, 62), dtype="float16"),
    layer(
        "conv_halves_1x1",
        "nn.Conv2d(64, 48, 1)",
        (3, 64, 60, 40),
        forward="self.f(x.relu()).relu()",
        dtype="bfloat16",
    ),
    layer("conv_one", "nn.Conv2d(40, 1, 3, padding=1)", (5, 40, 64, 64)),
    # Windows of which outer taps see padding alone.
    layer("conv_wide_point", "nn.Conv2d(96, 80, 3, padding=1)", (6, 96, 1, 1)),
    layer("conv_wide", "nn.Conv2d(24, 32, 5, padding=2)", (4, 24, 1, 2)),
    layer("conv_wide_strided", "nn.Conv2d(6, 10, 7, padding=6, stride=5, dilation=2)", (2, 6, 3, 4)),
    layer("conv_wide_halves", "nn.Conv2d(40, 48, 3, padding=1)", (3, 40, 1, 9), dtype="float16"),
    layer("conv_wide_depthwise", "nn.Conv2d(8, 8, 5, padding=2, groups=8)", (2, 8, 1, 2)),
    layer(
        "conv_transpose_depthwise_weights",
        "",
        (2, 6, 5, 9),
        (6, 1, 3, 3),
        forward="F.conv_transpose2d(x, y, padding=1, groups=6)",
    ),
    layer(
        "conv_transpose_depthwise_strided_weights",
        "",
        (2, 6, 5, 9),
        (6, 1, 4, 4),
        forward="F.conv_transpose2d(x, y, stride=2, padding=1, groups=6)",
    ),
    layer(
        "conv_transpose_depthwise_dilated_weights",
        "",
        (2, 6, 5, 9),
        (6, 1, 3, 3),
        forward="F.conv_transpose2d(x, y, stride=2, dilation=2, groups=6)",
    ),
    layer(
        "conv_transpose_weights",
        "",
        (4, 2, 5, 64),
        (2, 2, 5, 5),
        forward="F.conv_transpose2d(x, y, padding=2)",
    ),
    layer(
        "conv_transpose_strided_weights",
        "",
        (8, 3, 4, 5),
        (3, 32, 3, 3),
        forward="F.conv_transpose2d(x, y, stride=2, padding=1)",
    ),
    layer(
        "conv_transpose_grouped_weights",
        "",
        (2, 32, 9),
        (32, 16, 3),
        forward="F.conv_transpose1d(x, y, padding=1, groups=2)",
    ),
    layer("conv_transpose_wide", "nn.ConvTranspose3d(20, 1, 5, padding=2)", (2, 20, 9, 1, 7)),
    layer("conv_transpose_wide_strided", "nn.ConvTranspose2d(6, 10, 7, stride=2, padding=3)", (2, 6, 1, 2)),
    layer(
        "conv_transpose_wide_dilated",
        "nn.ConvTranspose2d(6, 10, 4, stride=3, dilation=2, padding=2)",
        (2, 6, 1, 2),
    ),
    layer("long_sum_conv", "nn.Conv2d(512, 24, 3, padding=1)", (1, 512, 5, 6)),
    layer(
        "columns_in_parts", "", (3000, 200), forward="x.sum(0), x.var(0), x.argmax(0), torch.softmax(x, 0)"
    ),
    layer(
        "transposes",
        "",
        (3, 70, 90),
        (130, 130),
        forward="x.mT.contiguous(), x.permute(2, 0, 1).contiguous() + 1, (y.t() + y).relu()",
    ),
    layer(
        "attention_heads",
        "nn.Linear(24, 72)",
        (2, 19, 24),
        forward=(
            "q, k, v = self.f(x).view(2, 19, 3, 4, 6).permute(2, 0, 3, 1,"
            " 4)\nF.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 19, 24)"
        ),
    ),
    layer(
        "multihead_attention",
        "nn.MultiheadAttention(24, 4, batch_first=True)",
        (2, 9, 24),
        forward="self.f(x, x, x)[0]",
    ),
    layer(
        "multihead_attention_weights", "nn.MultiheadAttention(24, 4)", (9, 2, 24), forward="self.f(x, x, x)"
    ),
    layer(
        "transformer_layer",
        "nn.TransformerEncoderLayer(24, 4, 48, dropout=0.0, batch_first=True)",
        (2, 9, 24),
    ),
    layer(
        "transformer_layer_eval",
        "nn.TransformerEncoderLayer(24, 4, 48, batch_first=True, activation='gelu').eval()",
        (2, 9, 24),
    ),
    layer(
        "transformer_layer_first",
        "nn.TransformerEncoderLayer(24, 4, 48, batch_first=True, norm_first=True).eval()",
        (2, 9, 24),
    ),
    layer("rnn", "nn.RNN(10, 12, batch_first=True)", (3, 5, 10), forward="self.f(x)"),
    layer("lstm", "nn.LSTM(10, 12, batch_first=True)", (3, 5, 10), forward="self.f(x)[0]"),
    layer("lstm2", "nn.LSTM(10, 12, 2, bidirectional=True)", (5, 3, 10), forward="self.f(x)"),
    layer("gru", "nn.GRU(10, 12)", (5, 3, 10), forward="self.f(x)"),
    layer(
        "lstm_steps", "nn.LSTM(24, 80)", (7, 20, 24), (1, 20, 80), (1, 20, 80), forward="self.f(x, (y, z))"
    ),
    layer("gru_steps", "nn.GRU(24, 140, 2, bidirectional=True)", (4, 9, 24), forward="self.f(x)"),
    layer("gru_long", "nn.GRU(6, 20, batch_first=True, bias=False)", (5, 150, 6), forward="self.f(x)"),
    layer("rnn_relu_steps", "nn.RNN(24, 140, nonlinearity='relu')", (4, 9, 24), forward="self.f(x)"),
    layer("lstm_persistent", "nn.LSTM(20, 132, batch_first=True)", (37, 6, 20), forward="self.f(x)"),
    layer("gru_persistent", "nn.GRU(20, 96, bidirectional=True)", (9, 21, 20), forward="self.f(x)"),
    layer("rnn_persistent", "nn.RNN(20, 200)", (5, 70, 20), forward="self.f(x)"),
    # Rows of which several programs hold a part each.
    layer("softmax_of_shared_rows", "", (24, 90001), forward="torch.softmax(x, -1)"),
    layer("layer_norm_of_shared_rows", "nn.LayerNorm([3, 400, 351])", (5, 3, 400, 351)),
    layer("group_norm_of_shared_rows", "nn.GroupNorm(3, 12)", (2, 12, 300, 301)),
    layer(
        "sums_of_shared_rows",
        "",
        (240, 9000),
        (240, 9000),
        forward="x * y * torch.rsqrt((x * y).pow(2).sum(-1, keepdim=True) + 1)",
    ),
    # An element's number times 256 leaves 32 bits.
    layer(
        "cat_of_transposed_wide",
        "",
        (540, 64, 16, 16),
        (1, 1, 64),
        forward="torch.cat([y.expand(x.shape[0], -1, -1), x.flatten(2).transpose(1, 2)], 1) * 2",
    ),
    # Rows that are not shared, for they are short runs in memory.
    layer("batch_norm_of_short_runs", "nn.BatchNorm1d(6)", (32000, 6, 17)),
    layer("rnn_cell", "nn.RNNCell(10, 12)", (3, 10), (3, 12), forward="self.f(x, y)"),
    layer("lstm_cell", "nn.LSTMCell(10, 12)", (3, 10), (3, 12), (3, 12), forward="self.f(x, (y, z))"),
    layer("gru_cell", "nn.GRUCell(10, 12)", (3, 10), (3, 12), forward="self.f(x, y)"),
    layer(
        "mlp_dropout",
        "nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 8))",
        (33, 40),
    ),
    layer("conv_dropout2d", "nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Dropout2d(0.4))", (2, 3, 9, 10)),
    layer("transformer_layer_train", "nn.TransformerEncoderLayer(24, 4, 48, batch_first=True)", (2, 9, 24)),
    layer(
        "scores_dropout",
        "",
        (2, 9, 24),
        (2, 11, 24),
        forward="F.dropout((x @ y.transpose(1, 2)).softmax(-1), 0.1) @ y",
    ),
    layer(
        "drawn_state",
        "nn.GRUCell(10, 12)",
        (5, 3, 10),
        forward="h = torch.randn(3, 12, device=x.device)\nfor s in range(5): h = self.f(x[s], h)\nh",
    ),
    layer(
        "drawn_and_dropped",  # what the second draws comes after the first, whatever becomes of that
        "",
        (33, 40),
        forward="torch.rand(7, device=x.device)\nx + torch.randn_like(x)",
    ),
    layer("long_sum", "", (3, 40000), forward="x.sum(-1)"),
    layer("long_softmax", "", (3, 40000), forward="x.softmax(-1)"),
    layer("long_argmax", "", (3, 40000), forward="x.argmax(-1)"),
    layer("long_max", "", (3, 40000), forward="x.max(-1)"),
    layer("long_logsumexp", "", (3, 40000), forward="torch.logsumexp(x, -1)"),
    layer("long_var", "", (3, 40000), forward="x.var(-1)"),
    layer("long_cumsum", "", (3, 9000), forward="x.cumsum(-1)"),
    layer(
        "long_scans",
        "",
        (3, 40001),
        forward="x.cumsum(-1) + 1, x.t().contiguous().cumsum(0), x.flatten().cumsum(0)",
    ),
    layer("all_argmax", "", (60000,), forward="x.argmax()"),
    layer("several", "", (33, 40), forward="[x.sin(), x.cos(), (x * 2, x.sum(-1))]"),
    layer("dict", "", (33, 40), forward="{'a': x.sin(), 'b': x.mean(-1)}"),
    layer("number", "", (33, 40), forward="x.relu(), x.shape[0]"),
    layer(
        "buffer",
        "nn.ReLU()\nself.register_buffer('scale', torch.tensor([1.0, 2.0]))",
        (33, 2),
        forward="x * self.scale",
    ),
    layer(
        "scalar_parameter",
        "nn.ReLU()\nself.alpha = nn.Parameter(torch.tensor(0.5))",
        (33, 2),
        forward="x * self.alpha + self.f(x)",
    ),
    layer(
        "parameter_list",
        "nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(3)])",
        (33, 4),
        forward="sum(x * p for p in self.f)",
    ),
    layer(
        "constant", "", (33, 3), forward="x * torch.tensor([0.1, 0.2, 0.3], device=x.device, dtype=x.dtype)"
    ),
    layer(
        "two_layers",
        "nn.ModuleList([nn.Linear(20, 20) for _ in range(2)])",
        (9, 20),
        forward="for f in self.f: x = f(x).relu()\nx",
    ),
    layer("views_and_map", "", (33, 40), (9, 4), forward="x.relu(), x.t(), x[3:7, 1::2], y, y.reshape(4, 9)"),
    Case(
        "long_sum_of_quotients",
        "x.bmm(y / z)",
        (("x", (16, 2, 1025)), ("y", (16, 1025, 20)), ("z", "torch.rand(1, 1025, 20, dtype=DTYPE) + 0.5")),
    ),
    layer("views_of_result", "nn.Linear(40, 24)", (33, 40), forward="a = self.f(x)\n[*a.split(8, 1), a.t()]"),
    layer("part_of_result", "nn.Linear(40, 24)", (33, 40), forward="self.f(x)[:, 5:9]"),
    layer(
        "parameter_handed_out",
        "nn.Linear(40, 24)",
        (33, 40),
        forward="self.f(x), self.f.weight.t(), self.f.bias",
    ),
    layer("identity", "", (33, 40), forward="x"),
    layer("view_output", "", (33, 40), forward="x.t()"),
]


def cases():
    """Every case in float32, at one shape."""

    def name_of(text):
        return "".join(c if c.isalnum() else "_" for c in text).strip("_")

    for expression in UNARY:
        yield Case(name_of(expression), expression, (("x", (33, 65)),), family="unary")
    for expression in BINARY:
        yield Case(name_of(expression), expression, (("x", (33, 65)), ("y", (33, 65))), family="binary")
    for expression in REDUCE:
        yield Case(name_of(expression), expression, (("x", (33, 65)),), family="reduce")
    for expression in SCAN:
        yield Case(name_of(expression), expression, (("x", (33, 65)),), family="scan")
    for expression in SHAPE:
        names = (("x", (33, 65)), ("y", (33, 65)))
        yield Case(name_of(expression), expression, names if "y" in expression else names[:1], family="shape")
    for expression in RANDOM:
        yield Case(name_of(expression), expression, (("x", (33, 65)),), family="random")
    yield from LAYERS


# PyTorch has no kernel for halves of these on the CPU; and forwards that are no such thing for three
# dimensions, or a transposed x.
NO_HALVES = ("multi_margin", "local_response_norm", "avg_pool3d", "torch_trace")
ONLY_MATRICES = ("sum(x.split(5", "torch.eye(", "torch.cdist(", "mode='re", "mode='circular")
ONLY_PLAIN = ("torch.kron(",)


def variants(case):
    """The case in other types, shapes and layouts."""
    for dtype in ("float16", "bfloat16"):
        if case.name.startswith(NO_HALVES):
            continue
        yield dataclasses.replace(case, name=f"{case.name}_{dtype}", dtype=dtype)
    shapes = {
        "unary": ((1000,), (2, 3, 8, 9)),
        "binary": ((1000,), (2, 3, 8, 9)),
        "reduce": ((5, 7, 9), (4, 3, 1025)),
        "scan": ((5, 7, 9), (3, 1500)),
        "shape": ((5, 7, 9),),
    }
    if case.family not in shapes:  # a layer, or what has its own inputs: no other shapes
        return
    for shape in shapes[case.family]:
        if len(shape) > 2 and any(text in case.forward for text in ONLY_MATRICES):
            continue
        name = f"{case.name}_{'x'.join(map(str, shape))}"
        yield dataclasses.replace(case, name=name, inputs=tuple((n, shape) for n, _ in case.inputs))
    for layout in ("transposed", "sliced"):
        if layout == "transposed" and any(text in case.forward for text in ONLY_PLAIN):
            continue
        yield dataclasses.replace(case, name=f"{case.name}_{layout}", layout=layout)
    if case.family == "binary":
        for shape in ((65,), (33, 1), (1,)):
            name = f"{case.name}_with_{'x'.join(map(str, shape))}"
            yield dataclasses.replace(case, name=name, inputs=(case.inputs[0], ("y", shape)))


PAIR_FIRST = [
    "x.relu()",
    "x * 2 + 1",
    "x.softmax(-1)",
    "x.cumsum(0)",
    "x.transpose(0, 1)",
    "self.f(x)",
    "x - x.mean(0, keepdim=True)",
    "torch.cat([x, x.sin()], 0)",
    "F.layer_norm(x, (40,))",
    "F.avg_pool1d(x, 2)",
    "x @ x.t()",
    "x.flip(0)",
    "x[:, ::2]",
]
PAIR_SECOND = [
    "F.gelu(a)",
    "a.sum(-1)",
    "a.mean()",
    "a.softmax(0)",
    "a.t() @ a",
    "a.cummax(-1)",
    "F.pad(a, (1, 1))",
    "a.std(0)",
    "torch.stack([a, -a])",
    "F.max_pool1d(a, 3)",
    "a.argmax(-1)",
    "torch.tril(a)",
    "a.permute(1, 0).reshape(-1)",
    "F.conv1d(a[None], a[None, :, :3])",
]
# Equal up to rounding are the elements of which the second names the largest.
UNDECIDED = {
    ("F.layer_norm(x, (40,))", "a.mean()"),
    ("F.layer_norm(x, (40,))", "a.sum(-1)"),  # nothing but rounding
    ("x.softmax(-1)", "a.cummax(-1)"),
    ("x.softmax(-1)", "a.argmax(-1)"),
    ("x - x.mean(0, keepdim=True)", "a.cummax(-1)"),
    ("x - x.mean(0, keepdim=True)", "a.argmax(-1)"),
}


def pairs():
    for (i, first), (j, second) in itertools.product(enumerate(PAIR_FIRST), enumerate(PAIR_SECOND)):
        if (first, second) in UNDECIDED:
            continue
        yield Case(
            f"pair_{i}_{j}",
            f"a = {first}\n{second}",
            (("x", (33, 40)),),
            "self.f = nn.Linear(40, 40)",
            family="pair",
        )
