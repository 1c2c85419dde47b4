"""Functions, indexing, randomness, state, odd Python: name -> (constructor body, forward, inputs)."""

FUNCTIONS = {
    "einsum": (None, "torch.einsum('bij,bjk,k->bi', a, b, c)", "randn(2, 3, 4), randn(2, 4, 5), randn(5)"),
    "matmuls": (
        None,
        (
            "a @ b, torch.bmm(c, c), torch.mv(b[:4], d), a.matmul(c), torch.dot(d, d), torch.outer(d, d),"
            " torch.addmm(a, a, b[:4, :4])"
        ),
        "randn(4, 4), randn(4, 5)[:, :4], randn(2, 4, 4), randn(4)",
    ),
    "matmul_parameter_folds": (
        "self.w = nn.Parameter(torch.randn(5, 6))",
        "torch.matmul(a, self.w), a @ self.w.t().contiguous().t()",
        "randn(2, 3, 5)",
    ),
    "linalg": (
        None,
        (
            "torch.linalg.inv(a), torch.linalg.det(a), torch.linalg.solve(a, b), torch.linalg.qr(a),"
            " torch.linalg.norm(a), torch.linalg.cholesky(a @ a.T + 4 * torch.eye(4))"
        ),
        "randn(4, 4), randn(4, 2)",
    ),
    "linalg_decompositions": (
        None,
        (
            "torch.linalg.eigvalsh(a + a.T), torch.linalg.svdvals(a), torch.linalg.matrix_exp(a),"
            " torch.linalg.lu_factor(a), torch.linalg.pinv(a)"
        ),
        "randn(4, 4)",
    ),
    "reductions": (
        None,
        (
            "a.sum(), a.mean(1), a.var(0), a.std(), a.prod(), a.max(), a.min(dim=1), a.argmax(1),"
            " a.norm(p=1), a.logsumexp(1), a.amax(0), torch.var_mean(a), a.median(), a.nansum(), a.any(),"
            " a.all()"
        ),
        "randn(3, 5)",
    ),
    "scans": (
        None,
        (
            "a.cumsum(1), a.cumprod(0), a.cummax(1), a.cummin(0), a.logcumsumexp(1), a.flip(0), a.roll(1, 0),"
            " a.diff()"
        ),
        "randn(3, 5)",
    ),
    "sorting": (
        None,
        (
            "a.sort(1), a.topk(2), a.argsort(0), a.kthvalue(2), torch.searchsorted(b.sort().values, a),"
            " torch.bucketize(a, b.sort().values), a.msort()"
        ),
        "randn(3, 5), randn(6)",
    ),
    "pointwise": (
        None,
        (
            "(a.exp() + b.sin()) * a.abs().sqrt() / (b ** 2 + 1) - a.clamp(-1, 1).round() + torch.where(a >"
            " 0, a, b) + a.lerp(b, 0.3) + torch.atan2(a, b) + a.erf() + a.sign() + torch.addcmul(a, a, b,"
            " value=0.5)"
        ),
        "randn(3, 5), randn(3, 5)",
    ),
    "integers": (
        None,
        (
            "a // 3, a % 4, a << 1, a & 7, ~a, a.float() / 2, a.bitwise_xor(5), torch.div(a, 2,"
            " rounding_mode='floor'), torch.gcd(a, a + 6)"
        ),
        "randint(0, 50, (3, 4))",
    ),
    "casts": (
        None,
        (
            "a.half(), a.bfloat16().float(), a.double(), a.int(), a.bool(),"
            " a.to(torch.float8_e4m3fn).float(), a.type(torch.int16), a.to(b)"
        ),
        "randn(3, 4), randn(1).double()",
    ),
    "comparisons": (
        None,
        (
            "a > b, a.eq(b), torch.isclose(a, b), torch.isnan(a), a.isfinite(), torch.logical_and(a > 0, b >"
            " 0), torch.maximum(a, b)"
        ),
        "randn(3, 4), randn(3, 4)",
    ),
    "views": (
        None,
        (
            "a.view(6, 4).t()[1:3], a.permute(2, 0, 1), a.unfold(2, 2, 1), a.diagonal(0, 1, 2), a.expand(2,"
            " 2, 3, 4), a.as_strided((2, 2), (12, 1), 3), a.narrow(1, 1, 2), a.movedim(0, 2), a.swapaxes(0,"
            " 1), a.squeeze(), a.unsqueeze(-1), a.flatten(), a.unflatten(2, (2, 2)), a.view_as(a)"
        ),
        "randn(2, 3, 4)",
    ),
    "split_chunk": (
        None,
        (
            "torch.cat(a.split(2, 1)[::-1], 1), a.chunk(3, 1), torch.stack(a.unbind(0)), torch.hstack([a,"
            " a]), torch.tensor_split(a, 2), torch.meshgrid(a[0], a[1], indexing='ij')"
        ),
        "randn(3, 6)",
    ),
    "indexing": (
        None,
        (
            "a[b], a[:, None, 1:], a[..., -1], a[b, 0], a.gather(0, b[:, None].expand(4, 5)),"
            " a.index_select(1, b), a.take(b), torch.take_along_dim(a, b[:, None].expand(4, 5), 0)"
        ),
        "randn(5, 5), randint(0, 5, (4,))",
    ),
    "index_writes": (
        None,
        (
            "y = a.clone()\ny[0] = 1.0\ny[:, 2] += 3\ny[b] = 0\ny.index_add_(0, b, a[:4])\ny.scatter_(0,"
            " b[None, :], 2.5)\ny.masked_fill_(a > 1, -1)\ny.index_put_((b, b), torch.ones(4),"
            " accumulate=True)\ny.index_copy_(0, torch.tensor([1]), a[:1])\nreturn y"
        ),
        "randn(5, 5), randint(0, 4, (4,))",
    ),
    "scatter_reduce": (
        None,
        (
            "torch.zeros(4).scatter_add(0, a, b), torch.zeros(4).scatter_reduce(0, a, b, 'amax'),"
            " torch.bincount(a, minlength=5), torch.zeros(4, 3).index_add(0, a[:2], torch.ones(2, 3))"
        ),
        "randint(0, 4, (9,)), randn(9)",
    ),
    "inplace_views": (
        None,
        "y = torch.zeros(4, 6)\nv = y[1:3]\nv.add_(a)\nv[:, 0].mul_(2)\ny.t()[2].copy_(b)\nreturn y, v",
        "randn(2, 6), randn(4)",
    ),
    "out_arguments": (
        None,
        (
            "y = torch.empty(3, 3)\ntorch.mm(a, a, out=y)\nz = torch.empty(0)\ntorch.add(a, y, out=z)\nreturn"
            " y, z"
        ),
        "randn(3, 3)",
    ),
    "metadata_in_place": (
        None,
        (
            "y = a.clone()\ny.t_()\ny.unsqueeze_(0)\ny.squeeze_(0)\ny.resize_(2, 2)\nreturn y,"
            " y.transpose_(0, 1)"
        ),
        "randn(3, 4)",
    ),
    "constants": (
        (
            "self.t = torch.tensor([[1.0, 2.0], [3.0, 4.0]])\nself.register_buffer('u', torch.tensor([5, 6]),"
            " persistent=False)"
        ),
        "a @ self.t + self.u + torch.tensor(2.5) + torch.as_tensor([1, 2])",
        "randn(3, 2)",
    ),
    "numpy_constants": (
        (
            "import numpy\nself.t = torch.from_numpy(numpy.arange(4, dtype=numpy.float32))\nself.s ="
            " torch.tensor(numpy.float64(0.5))"
        ),
        "a * self.t.to(a.device) * self.s",
        "randn(3, 4)",
    ),
    "lists_as_indices": (
        None,
        (
            "import numpy\ny = a[[2, 0]] + a[:, [1, 1, 0, 3]][numpy.array([0, 1])] + a[range(2)]\n"
            "a = a.clone()\na[:, [0, 2]] = 5.0\na[[True, False, True]] *= 2\n"
            "return y, a, a[[]], a[..., [[0, 1], [2, 3]]], a[[[0, 1], [2, 0]]]"
        ),
        "randn(3, 4)",
    ),
    "factories": (
        None,
        (
            "torch.arange(5), torch.arange(0.0, 1.0, 0.1), torch.linspace(0, 1, 7), torch.eye(3),"
            " torch.full((2, 2), 7), torch.zeros_like(a), torch.ones(3, dtype=torch.int8), a.new_zeros(2),"
            " a.new_full((2,), 3.0), torch.tril(torch.ones(3, 3)), torch.hann_window(8), torch.logspace(0, 1,"
            " 3), torch.empty(0)"
        ),
        "randn(3)",
    ),
    "random_in_forward": (
        None,
        (
            "torch.randn(3) + torch.rand_like(a) + torch.randint(0, 9, (3,)) + torch.normal(0.0, 1.0, (3,)) +"
            " torch.bernoulli(a.abs().clamp(0, 1)), torch.randperm(5), torch.multinomial(a.abs(), 2),"
            " torch.empty(3).exponential_(), torch.poisson(a.abs())"
        ),
        "randn(3)",
    ),
    "generators": (
        None,
        (
            "g = torch.Generator().manual_seed(3)\nx = torch.randn(3, generator=g)\ny = torch.randn(3,"
            " generator=g)\ng.manual_seed(3)\nreturn x, y, torch.randn(3, generator=g), torch.randperm(4,"
            " generator=torch.Generator().manual_seed(7))"
        ),
        "randn(1)",
    ),
    "fork_rng": (
        None,
        (
            "with torch.random.fork_rng():\n    torch.manual_seed(3)\n    x = torch.randn(3)\nreturn x,"
            " torch.randn(3)"
        ),
        "randn(1)",
    ),
    "fork_rng_unseeded": (
        None,
        (
            "with torch.random.fork_rng(devices=[]):\n    x = torch.randn(3)\nwith"
            " torch.random.fork_rng(enabled=False):\n    y = torch.randn(3)\nreturn x, y, torch.randn(3)"
        ),
        "randn(1)",
    ),
    "rng_state": (
        None,
        (
            "s = torch.get_rng_state()\nx = torch.randn(3)\ntorch.manual_seed(5)\ny ="
            " F.dropout(a)\ntorch.set_rng_state(s)\nreturn x, y, torch.randn(3),"
            " torch.random.get_rng_state().dtype is torch.uint8"
        ),
        "randn(4)",
    ),
    "rng_state_in_constructor": (
        (
            "s = torch.get_rng_state()\nself.u = nn.Linear(3, 3)\ntorch.set_rng_state(s)\nself.m ="
            " nn.Linear(3, 3)"
        ),
        "self.m(a) - self.u(a)",
        "randn(2, 3)",
    ),
    "generator_state": (
        "self.g = torch.Generator().manual_seed(3)",
        (
            "s = self.g.get_state()\nx = torch.randn(3, generator=self.g)\nself.g.set_state(s)\nh ="
            " torch.Generator()\nh.set_state(self.g.get_state())\nreturn x, torch.randn(2, generator=self.g),"
            " torch.randn(3, generator=h)"
        ),
        "randn(1)",
    ),
    "manual_seed": (
        None,
        "torch.manual_seed(11)\nx = torch.randn(3)\ntorch.manual_seed(11)\nreturn x, torch.randn(3)",
        "randn(1)",
    ),
    "distributions": (
        None,
        (
            "torch.distributions.Normal(a, a.abs() + 1).log_prob(b),"
            " torch.distributions.Categorical(logits=a).entropy(),"
            " torch.distributions.kl_divergence(torch.distributions.Normal(a, 1.0),"
            " torch.distributions.Normal(b, 2.0))"
        ),
        "randn(3, 4), randn(3, 4)",
    ),
    "distribution_sample": (
        None,
        (
            "torch.distributions.Normal(a, 1.0).sample(), torch.distributions.Bernoulli(logits=a).sample(),"
            " torch.distributions.Categorical(logits=a).sample()"
        ),
        "randn(3, 4)",
    ),
    "complex": (
        None,
        (
            "torch.fft.rfft(a), torch.fft.ifft(torch.fft.fft(a) * 2).real,"
            " torch.view_as_real(torch.complex(a, a)), torch.polar(a.abs(), a).imag,"
            " (torch.fft.fft2(a).conj() * 1j).abs(), torch.complex(a, a).mH @ torch.complex(a, a)"
        ),
        "randn(4, 8)",
    ),
    "stft": (
        None,
        (
            "s = torch.stft(a, 8, window=torch.hann_window(8), return_complex=True)\nreturn s, torch.istft(s,"
            " 8, window=torch.hann_window(8))"
        ),
        "randn(2, 64)",
    ),
    "neg_bit": (None, "torch.complex(a, b).conj().imag + 1", "randn(3), randn(3)"),
    "pads": (
        None,
        (
            "F.pad(a, (1, 2)), F.pad(a, (1, 1, 2, 0), value=3.0), F.pad(a[None], (1, 1), mode='reflect'),"
            " F.normalize(a), F.softmax(a.half(), 0, dtype=torch.float32), F.log_softmax(a.bfloat16(), -1,"
            " dtype=torch.float32)"
        ),
        "randn(3, 4)",
    ),
    "gumbel_softmax": (None, "F.gumbel_softmax(a, hard=True)", "randn(3, 4)"),
    "repeat": (
        None,
        (
            "a.repeat(2, 3), a.repeat_interleave(2, 0), torch.tile(a, (2,)),"
            " a.repeat_interleave(torch.tensor([1, 0, 2]), dim=0), torch.block_diag(a, a), torch.kron(a, a),"
            " torch.combinations(a[0]), torch.cartesian_prod(a[0], a[1])"
        ),
        "randn(3, 4)",
    ),
    "quantiles": (
        None,
        (
            "torch.quantile(a, 0.3), torch.histc(a, 5), a.nanmedian(), torch.unique(b), torch.nonzero(b > 1),"
            " torch.mode(b), torch.unique_consecutive(b, return_counts=True)"
        ),
        "randn(12), randint(0, 3, (9,))",
    ),
    "known_values": (
        None,
        (
            "n = int(b.max())\nx = a[:n]\nfor i in b.tolist():\n    x = x * (i + 1)\nreturn x, n,"
            " b.sum().item(), bool((b > 1).any()), b.float().mean().item()"
        ),
        "randn(9, 2), randint(1, 6, (3,))",
    ),
    "known_constants": (
        None,
        (
            "s = torch.linspace(0, 0.5, 4).tolist()\nt = torch.zeros(3, dtype=torch.long)\nt[1] = 4\nt +="
            " 1\nreturn a * s[2] * t[1].item() * float(torch.tensor([1.5, 2.5]).sum())"
        ),
        "randn(3)",
    ),
    "offsets_loop": (
        None,
        (
            "o = F.pad(b.cumsum(0), (1, 0))\nreturn torch.stack([a[o[i]:o[i + 1]].sum(0) for i in"
            " range(len(b))])"
        ),
        "randn(20, 3), randint(1, 5, (4,))",
    ),
    "masked_select": (
        None,
        "a[b], torch.masked_select(a, b), b.nonzero(), b.sum().item()",
        "randn(4, 5), rand(4, 5) > 0.5",
    ),
    "lazy_in_forward": (
        "self.m = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.LazyLinear(2))",
        None,
        "randn(5, 3)",
    ),
    "stateful": (
        "self.register_buffer('count', torch.zeros(1))\nself.cache = None",
        (
            "self.count += 1\nself.cache = a if self.cache is None else self.cache + a\nreturn self.cache *"
            " self.count"
        ),
        "randn(3)",
    ),
    "python_outputs": (
        None,
        "return {'x': a, 'n': 3, 'f': 0.5, 's': 'text', 'none': None, 'nested': [a * 2, (a,)]}",
        "randn(3)",
    ),
    "named_tuple_and_dataclass": (
        (
            "import collections, dataclasses\nself.T = collections.namedtuple('T', 'x y')\nself.D ="
            " dataclasses.make_dataclass('D', ['x', 'y'])"
        ),
        "self.T(a, self.D(a + 1, 2))",
        "randn(3)",
    ),
    "same_output_twice": (None, "y = a + 1\nreturn y, y, y[0]", "randn(3)"),
    "input_returned": (None, "a.add_(1), a", "randn(3)"),
    "hooks": (
        (
            "self.m = nn.Linear(3, 3)\nself.m.register_forward_hook(lambda m, i, o: o *"
            " 2)\nself.m.register_forward_pre_hook(lambda m, i: (i[0] + 1,))"
        ),
        None,
        "randn(2, 3)",
    ),
    "autograd_function": (
        (
            "class Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n       "
            " ctx.save_for_backward(x)\n        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n "
            "       return g * 2\nself.f = Double"
        ),
        "self.f.apply(a)",
        "randn(3)",
    ),
    "grad_inside": (
        "self.m = nn.Linear(3, 1)",
        (
            "with torch.enable_grad():\n    x = a.detach().requires_grad_()\n    y ="
            " torch.tanh(self.m(x)).sum()\n    g, = torch.autograd.grad(y, x)\nreturn g"
        ),
        "randn(2, 3)",
    ),
    "grad_of_pools": (
        None,
        (
            "f = nn.functional\nwith torch.enable_grad():\n    x = a.detach().requires_grad_()\n    y ="
            " f.max_pool2d(x, 2).sum() + f.adaptive_max_pool2d(x, 3).square().sum() +"
            " f.adaptive_avg_pool2d(x, 3).square().sum()\n    g, = torch.autograd.grad(y, x)\nreturn g"
        ),
        "randn(2, 3, 8, 8)",
    ),
    "grad_of_norms": (
        (
            "self.l, self.g = nn.LayerNorm(8), nn.GroupNorm(2, 4)\nself.w ="
            " nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))"
        ),
        (
            "with torch.enable_grad():\n    x = a.detach().requires_grad_()\n    y ="
            " self.w(self.l(x)).square().sum() + self.g(x).square().sum()\n    g, = torch.autograd.grad(y,"
            " x)\nreturn g"
        ),
        "randn(2, 4, 8)",
    ),
    "grad_of_losses": (
        "self.e, self.p = nn.Embedding(5, 4), nn.PReLU()",
        (
            "f, i = nn.functional, torch.arange(3, device=a.device)\nwith torch.enable_grad():\n    x ="
            " a.detach().requires_grad_()\n    y = f.cross_entropy(x, i, reduction='none').square().sum() +"
            " (torch.softmax(self.p(x), -1) * self.e(i)).sum() + torch.cdist(x, x * 2).sum()\n    return"
            " torch.autograd.grad(y, (x, self.e.weight))"
        ),
        "randn(3, 4)",
    ),
    "func_grad": (
        "self.m = nn.Linear(3, 1)",
        "torch.func.grad(lambda x: torch.sin(self.m(x)).sum())(a)",
        "randn(2, 3)",
    ),
    "func_vmap": (
        None,
        (
            "torch.vmap(lambda x, y: (x * y).sum() + torch.softmax(x, 0))(a, b),"
            " torch.func.vmap(torch.dot)(a, b)"
        ),
        "randn(4, 3), randn(4, 3)",
    ),
    "func_jacobian": (
        None,
        (
            "torch.func.jacrev(lambda x: x.sin() * x.sum())(a), torch.func.jacfwd(lambda x: x ** 2)(a),"
            " torch.func.hessian(lambda x: (x ** 3).sum())(a)"
        ),
        "randn(3)",
    ),
    "func_jvp": (
        None,
        "torch.func.jvp(lambda x: x.exp() * 2, (a,), (b,)), torch.func.vjp(lambda x: x.tanh(), a)[1](b)",
        "randn(3), randn(3)",
    ),
    "func_call": (
        "self.m = nn.Linear(3, 3)",
        "torch.func.functional_call(self.m, {'weight': a, 'bias': a[0]}, (b,))",
        "randn(3, 3), randn(2, 3)",
    ),
    "checkpoint": (
        "self.m = nn.Linear(3, 3)",
        "torch.utils.checkpoint.checkpoint(self.m, a, use_reentrant=False)",
        "randn(2, 3)",
    ),
    "compiled": (
        "self.m = torch.compile(nn.Linear(3, 3))",
        "torch.compile(lambda x: x.relu(), mode='max-autotune')(self.m(a))",
        "randn(2, 3)",
    ),
    "scripted": ("self.m = torch.jit.script(nn.Linear(3, 3))", None, "randn(2, 3)"),
    "no_grad": (
        "self.m = nn.Linear(3, 3)",
        (
            "with torch.no_grad():\n    y = self.m(a)\nwith torch.enable_grad(), torch.no_grad():\n    return"
            " y, self.m(y)"
        ),
        "randn(2, 3)",
    ),
    "inference_mode": (
        "self.m = nn.Linear(3, 3)",
        (
            "with torch.inference_mode():\n    y = self.m(a)\n    y += 1\n    z = F.dropout(y, 0.5)\n   "
            " return z.clone()"
        ),
        "randn(2, 3)",
    ),
    "foreach": (
        None,
        "torch._foreach_add([a, b], 1.0), torch._foreach_mul([a, b], [a, b])",
        "randn(3), randn(4)",
    ),
    "deepcopy": (
        "import copy\nself.m = nn.Linear(3, 3)\nself.n = copy.deepcopy(self.m)",
        "self.n(self.m(a))",
        "randn(2, 3)",
    ),
    "state_dict_load": (
        "self.m = nn.Linear(3, 3)\nself.n = nn.Linear(3, 3)\nself.n.load_state_dict(self.m.state_dict())",
        "self.n(a) - self.m(a)",
        "randn(2, 3)",
    ),
    "module_to": (
        (
            "self.m = nn.Linear(3, 3).to(torch.float64)\nself.m.to(device='cpu' if not"
            " torch.cuda.is_available() else 'cuda')"
        ),
        "self.m(a.double())",
        "randn(2, 3)",
    ),
    "parameter_data": (
        (
            "self.w = nn.Parameter(torch.zeros(3))\nself.w.data = torch.randn(3)\nself.w.data.mul_(2)\nself.v"
            " = nn.Parameter(self.w.detach()[1:])"
        ),
        "a * self.w, self.v",
        "randn(3)",
    ),
    "legacy_constructors": (
        None,
        (
            "torch.Tensor([1.0, 2.0]) + a, torch.LongTensor([1, 2]), torch.FloatTensor(2).fill_(3),"
            " torch.Tensor(2, 2).zero_(), a.new([3.0, 4.0])"
        ),
        "randn(2)",
    ),
    "storage_games": (
        None,
        (
            "y = torch.empty(6)\ny.set_(a.untyped_storage(), 1, (2, 2), (2, 1))\nreturn y * 1, a.data[0],"
            " a.detach().view(-1)[2:]"
        ),
        "randn(2, 3)",
    ),
    "special_functions": (
        None,
        (
            "torch.special.i0(a), torch.lgamma(a.abs() + 1), torch.digamma(a.abs() + 1),"
            " torch.erfinv(a.tanh()), torch.special.expit(a), torch.sinc(a), torch.nan_to_num(a / 0),"
            " torch.frexp(a), torch.xlogy(a.abs(), a.abs()), torch.heaviside(a, a), torch.hypot(a, a)"
        ),
        "randn(5)",
    ),
    "type_promotion": (
        None,
        (
            "a + 1, a.half() * 2.5, torch.tensor(3) * a, a.long() + 0.5, a.bool() + 1, 2 ** a, 1 - a.int(),"
            " torch.true_divide(3, a), a * True, a.half() + torch.tensor(1.0, dtype=torch.float64)"
        ),
        "randn(4)",
    ),
    "chained_matrices": (
        None,
        (
            "torch.chain_matmul(a, b, c) if False else torch.linalg.multi_dot([a, b, c]), torch.tensordot(a,"
            " b, 1), torch.baddbmm(torch.zeros(1, 3, 5), a[None], b[None]), torch.matrix_power(c @ c.T, 3),"
            " torch.trace(a), torch.cross(a[:, :3], a[:, :3], dim=1)"
        ),
        "randn(3, 4), randn(4, 5), randn(5, 4)",
    ),
    "convolution_functional": (
        None,
        (
            "F.conv2d(a, b, stride=2), F.conv1d(a[:, :, 0], b[:, :, 0]), F.conv_transpose2d(a, b.transpose(0,"
            " 1)), F.unfold(a, 3), F.avg_pool2d(a, 2), F.max_pool2d(a, 2), F.adaptive_avg_pool2d(a, 1),"
            " F.lp_pool2d(a.abs(), 2, 2)"
        ),
        "randn(2, 4, 8, 8), randn(6, 4, 3, 3)",
    ),
    "rotary": (
        (
            "f = 1.0 / (10000 ** (torch.arange(0, 8, 2).float() / 8))\nt ="
            " torch.outer(torch.arange(5).float(), f)\nself.register_buffer('cos',"
            " t.cos())\nself.register_buffer('sin', t.sin())"
        ),
        (
            "x1, x2 = a[..., ::2], a[..., 1::2]\nreturn torch.stack([x1 * self.cos - x2 * self.sin, x1 *"
            " self.sin + x2 * self.cos], -1).flatten(-2)"
        ),
        "randn(2, 5, 8)",
    ),
    "mixture_of_experts": (
        "self.g = nn.Linear(4, 3)\nself.e = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])",
        (
            "w, i = self.g(a).softmax(-1).topk(2)\ny = torch.zeros_like(a)\nfor n, e in enumerate(self.e):\n "
            "   m = (i == n).float() * w\n    y = y + e(a) * m.sum(-1, keepdim=True)\nreturn y"
        ),
        "randn(6, 4)",
    ),
    "flex_attention": (
        "from torch.nn.attention.flex_attention import flex_attention\nself.f = flex_attention",
        "self.f(a, a, a, score_mod=lambda s, b, h, q, k: s + (q - k))",
        "randn(1, 2, 16, 16)",
    ),
    "cond": (None, "torch.cond(a.shape[0] > 2, lambda x: x + 1, lambda x: x - 1, (a,))", "randn(3, 3)"),
    "optimizer_step": (
        "self.m = nn.Linear(3, 3)\nself.o = torch.optim.SGD(self.m.parameters(), lr=0.1)",
        (
            "with torch.enable_grad():\n   "
            " self.m(a).sum().backward()\nself.o.step()\nself.o.zero_grad()\nreturn self.m(a)"
        ),
        "randn(2, 3)",
    ),
    "printing": (None, "str(a.shape) + repr(a.dtype) + f'{a.device}' + str(len(a))\nreturn a", "randn(2, 3)"),
    "keyword_inputs": (None, "a * 2", "randn(3)"),
    "dict_input": (None, "a['x'] + a['y'][0]", "{'x': randn(3), 'y': [randn(3), 4]}"),
    "scalar_inputs": (None, "a * b + c", "randn(3), 2, 0.5"),
    "half_inputs": (
        None,
        "a.float() @ b.float().t(), (a * b).sum(0)",
        "randn(3, 4).half(), randn(3, 4).bfloat16()",
    ),
    # -- random generators, the default dtype, checks that would read data
    "default_generator_seeded": (
        None,
        (
            "g = torch.default_generator.manual_seed(5)\nx = torch.randn(3)\nreturn x, torch.rand(2,"
            " generator=g), torch.initial_seed()"
        ),
        "randn(3)",
    ),
    "default_generator_as_an_argument": (
        None,
        (
            "torch.randn(3, generator=torch.default_generator), torch.randperm(5,"
            " generator=torch.default_generator)"
        ),
        "randn(3)",
    ),
    "generator_of_the_constructor": (
        "self.g = torch.Generator().manual_seed(4)\nself.w = nn.Parameter(torch.randn(3, generator=self.g))",
        "a * self.w",
        "randn(3)",
    ),
    "default_dtype": (
        (
            "torch.set_default_dtype(torch.float64)\nself.m = nn.Linear(3, 3)\nself.t = torch.arange(3),"
            " torch.ones(3)\ntorch.set_default_dtype(torch.float32)"
        ),
        "self.m(a.double()) + self.t[0] * self.t[1]",
        "randn(2, 3)",
    ),
    "distribution_validated": (
        None,
        (
            "d = torch.distributions.Normal(a, a.abs() + 1, validate_args=True)\nreturn d.log_prob(a),"
            " d.rsample((2,)), d.expand((2, 3, 4)).entropy()"
        ),
        "randn(3, 4)",
    ),
    "assert_of_a_tensor": (None, "torch._assert((a < 100).all(), 'large')\nreturn a + 1", "randn(3, 4)"),
}
