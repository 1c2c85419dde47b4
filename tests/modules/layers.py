"""torch.nn's layers as references: a name, the layer, its inputs, and where needed how forward calls it.

`entries()` gives `Entry` values; `write_references.py` makes a file of each in KernelBench's format.
"""

from dataclasses import dataclass


@dataclass
class Entry:
    name: str
    layer: str  # what the constructor makes
    inputs: list[str]  # one expression for each argument of forward
    forward: str = ""  # of self.layer and x0, x1, ...; the plain call where empty
    eval: bool = False


def flatten(shape):
    return ", ".join(map(str, shape))


def spatial(dims, size):
    return flatten([size + d for d in range(dims)])


def randn(*shape):
    return f"torch.randn({flatten(shape)})"


def image(channels, dims, size=9, batch=2):
    return f"torch.randn({batch}, {channels}, {spatial(dims, size)})"


def convolutions():
    for d in (1, 2, 3):
        x = image(4, d)
        yield Entry(f"conv{d}d", f"nn.Conv{d}d(4, 6, 3, padding=1)", [x])
        yield Entry(
            f"conv{d}d_strided_dilated", f"nn.Conv{d}d(4, 6, 3, stride=2, dilation=2, bias=False)", [x]
        )
        yield Entry(f"conv{d}d_grouped", f"nn.Conv{d}d(4, 8, 3, groups=4)", [x])
        yield Entry(f"conv{d}d_pointwise", f"nn.Conv{d}d(4, 5, 1)", [x])
        yield Entry(f"conv{d}d_same", f"nn.Conv{d}d(4, 4, 4, padding='same')", [x])
        for mode in ("reflect", "replicate", "circular"):
            yield Entry(f"conv{d}d_{mode}", f"nn.Conv{d}d(4, 4, 3, padding=1, padding_mode='{mode}')", [x])
        yield Entry(f"conv_transpose{d}d", f"nn.ConvTranspose{d}d(4, 6, 3)", [x])
        yield Entry(
            f"conv_transpose{d}d_strided",
            f"nn.ConvTranspose{d}d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False)",
            [x],
        )
        yield Entry(
            f"conv_transpose{d}d_output_size",
            f"nn.ConvTranspose{d}d(4, 6, 3, stride=2)",
            [x],
            f"self.layer(x0, output_size=[{spatial(d, 20)}])"
            if d == 1
            else f"self.layer(x0, output_size=[{', '.join(str(2 * (9 + i) + 2) for i in range(d))}])",
        )
        yield Entry(f"conv{d}d_unbatched", f"nn.Conv{d}d(4, 6, 3)", [f"torch.randn(4, {spatial(d, 8)})"])
        yield Entry(f"lazy_conv{d}d", f"materialized(nn.LazyConv{d}d(6, 3), {x})", [x])
    yield Entry(
        "conv2d_channels_last",
        "nn.Conv2d(4, 6, 3)",
        [image(4, 2)],
        "self.layer(x0.contiguous(memory_format=torch.channels_last))",
    )
    yield Entry("conv2d_bf16", "nn.Conv2d(4, 6, 3).to(torch.bfloat16)", [image(4, 2) + ".to(torch.bfloat16)"])
    yield Entry("conv2d_fp64", "nn.Conv2d(4, 6, 3).double()", [image(4, 2) + ".double()"])


def pools():
    for d in (1, 2, 3):
        x = image(3, d, 8)
        yield Entry(f"max_pool{d}d", f"nn.MaxPool{d}d(3, stride=2, padding=1)", [x])
        yield Entry(f"max_pool{d}d_ceil_dilated", f"nn.MaxPool{d}d(2, dilation=2, ceil_mode=True)", [x])
        yield Entry(f"max_pool{d}d_indices", f"nn.MaxPool{d}d(2, return_indices=True)", [x])
        yield Entry(
            f"max_unpool{d}d",
            f"nn.MaxUnpool{d}d(2)",
            [x],
            f"self.layer(*nn.functional.max_pool{d}d(x0, 2, return_indices=True), output_size=x0.shape[2:])",
        )
        yield Entry(f"avg_pool{d}d", f"nn.AvgPool{d}d(3, stride=2, padding=1)", [x])
        yield Entry(f"avg_pool{d}d_ceil", f"nn.AvgPool{d}d(3, ceil_mode=True, count_include_pad=False)", [x])
        yield Entry(f"lp_pool{d}d", f"nn.LPPool{d}d(2, 3, stride=2)", [x])
        yield Entry(f"adaptive_max_pool{d}d", f"nn.AdaptiveMaxPool{d}d(3)", [x])
        yield Entry(f"adaptive_max_pool{d}d_indices", f"nn.AdaptiveMaxPool{d}d(3, return_indices=True)", [x])
        yield Entry(f"adaptive_avg_pool{d}d", f"nn.AdaptiveAvgPool{d}d(3)", [x])
        yield Entry(f"adaptive_avg_pool{d}d_one", f"nn.AdaptiveAvgPool{d}d(1)", [x])
    yield Entry("fractional_max_pool2d", "nn.FractionalMaxPool2d(2, output_size=4)", [image(3, 2)])
    yield Entry("fractional_max_pool3d", "nn.FractionalMaxPool3d(2, output_ratio=0.6)", [image(3, 3)])


def paddings():
    for d in (1, 2, 3):
        x = image(3, d, 6)
        for name in ("Reflection", "Replication", "Zero", "Circular"):
            yield Entry(f"{name.lower()}_pad{d}d", f"nn.{name}Pad{d}d(2)", [x])
        yield Entry(f"constant_pad{d}d", f"nn.ConstantPad{d}d({tuple(range(2 * d))}, 3.5)", [x])
        yield Entry(f"constant_pad{d}d_negative", f"nn.ConstantPad{d}d(-1, 0.0)", [x])


def activations():
    simple = """ELU() Hardshrink() Hardsigmoid() Hardtanh() Hardtanh(-2,0.5) Hardswish() LeakyReLU()
    LeakyReLU(0.3) LogSigmoid() PReLU() PReLU(5) ReLU() ReLU6() SELU() CELU() CELU(0.7) GELU() GELU('tanh')
    Sigmoid() SiLU() Mish() Softplus() Softplus(2.0,3.0) Softshrink() Softsign() Tanh() Tanhshrink()
    Threshold(0.1,7.0) GLU(0) Softmin(-1) Softmax(-1) Softmax(1) LogSoftmax(-1) LogSoftmax(0)
    ReLU(inplace=True) SiLU(inplace=True) Hardswish(inplace=True) ELU(inplace=True) Identity()""".split()
    for i, call in enumerate(simple):
        name = call.split("(")[0].lower()
        copy = "self.layer(x0.clone())" if "inplace" in call else ""
        yield Entry(f"activation_{i:02}_{name}", f"nn.{call}", [randn(4, 5, 6)], copy)
    yield Entry("rrelu_train", "nn.RReLU()", [randn(4, 30)])
    yield Entry("rrelu_eval", "nn.RReLU()", [randn(4, 30)], eval=True)
    yield Entry("softmax2d", "nn.Softmax2d()", [image(5, 2, 4)])
    yield Entry("gelu_half", "nn.GELU()", [randn(4, 30) + ".half()"])
    yield Entry("softmax_bf16", "nn.Softmax(-1)", [randn(4, 30) + ".to(torch.bfloat16)"])
    yield Entry(
        "adaptive_log_softmax",
        "nn.AdaptiveLogSoftmaxWithLoss(12, 20, [5, 12])",
        [randn(7, 12), "torch.randint(0, 20, (7,))"],
        "tuple(self.layer(x0, x1))",
    )
    yield Entry(
        "adaptive_log_softmax_log_prob",
        "nn.AdaptiveLogSoftmaxWithLoss(12, 20, [5, 12])",
        [randn(7, 12)],
        "self.layer.log_prob(x0)",
    )


def norms():
    for d in (1, 2, 3):
        x = image(6, d, 5, 3)
        for evaluate in (False, True):
            mode = "eval" if evaluate else "train"
            yield Entry(f"batch_norm{d}d_{mode}", f"nn.BatchNorm{d}d(6)", [x], eval=evaluate)
            yield Entry(f"instance_norm{d}d_{mode}", f"nn.InstanceNorm{d}d(6)", [x], eval=evaluate)
            yield Entry(
                f"instance_norm{d}d_tracked_{mode}",
                f"nn.InstanceNorm{d}d(6, affine=True, track_running_stats=True)",
                [x],
                eval=evaluate,
            )
            yield Entry(
                f"batch_norm{d}d_cumulative_{mode}", f"nn.BatchNorm{d}d(6, momentum=None)", [x], eval=evaluate
            )
        yield Entry(f"batch_norm{d}d_no_statistics", f"nn.BatchNorm{d}d(6, track_running_stats=False)", [x])
        yield Entry(f"batch_norm{d}d_no_affine", f"nn.BatchNorm{d}d(6, affine=False)", [x], eval=True)
        yield Entry(f"lazy_batch_norm{d}d", f"materialized(nn.LazyBatchNorm{d}d(), {x})", [x])
        yield Entry(f"local_response_norm_{d}d", "nn.LocalResponseNorm(3)", [x])
    yield Entry("batch_norm1d_rows", "nn.BatchNorm1d(6)", [randn(9, 6)])
    yield Entry("sync_batch_norm_eval", "nn.SyncBatchNorm(6)", [image(6, 2, 5)], eval=True)
    for groups in (1, 2, 6):
        yield Entry(f"group_norm_{groups}", f"nn.GroupNorm({groups}, 6)", [image(6, 2, 5)])
    yield Entry("layer_norm", "nn.LayerNorm(10)", [randn(4, 7, 10)])
    yield Entry("layer_norm_two_axes", "nn.LayerNorm((7, 10))", [randn(4, 7, 10)])
    yield Entry("layer_norm_no_affine", "nn.LayerNorm(10, elementwise_affine=False)", [randn(4, 10)])
    yield Entry("layer_norm_no_bias", "nn.LayerNorm(10, bias=False)", [randn(4, 10)])
    yield Entry("layer_norm_half", "nn.LayerNorm(10).half()", [randn(4, 10) + ".half()"])
    yield Entry("rms_norm", "nn.RMSNorm(10)", [randn(4, 7, 10)])
    yield Entry("rms_norm_eps", "nn.RMSNorm(10, eps=1e-5, elementwise_affine=False)", [randn(4, 10)])
    yield Entry("weight_norm", "nn.utils.parametrizations.weight_norm(nn.Linear(5, 4))", [randn(3, 5)])
    yield Entry(
        "spectral_norm_train", "nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4))", [randn(3, 5)]
    )
    yield Entry(
        "spectral_norm_eval",
        "nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4))",
        [randn(3, 5)],
        eval=True,
    )
    yield Entry("orthogonal", "nn.utils.parametrizations.orthogonal(nn.Linear(5, 5))", [randn(3, 5)])


def recurrent():
    kinds = {
        "rnn": "nn.RNN(5, 7",
        "rnn_relu": "nn.RNN(5, 7, nonlinearity='relu'",
        "lstm": "nn.LSTM(5, 7",
        "gru": "nn.GRU(5, 7",
    }
    packed = "self.layer(nn.utils.rnn.pack_padded_sequence(x0, [9, 6, 2], batch_first=True))[0].data"
    unpacked = (
        "nn.utils.rnn.pad_packed_sequence("
        "self.layer(nn.utils.rnn.pack_padded_sequence(x0, x1.cpu(), enforce_sorted=False))[0])[0]"
    )
    for name, start in kinds.items():
        lstm = name == "lstm"
        state = "(x1, x2)" if lstm else "x1"
        states = [randn(2, 3, 7)] * (2 if lstm else 1)
        yield Entry(name, f"{start})", [randn(9, 3, 5)])
        yield Entry(f"{name}_batch_first", f"{start}, batch_first=True)", [randn(3, 9, 5)])
        yield Entry(f"{name}_two_layers", f"{start}, num_layers=2)", [randn(9, 3, 5)])
        yield Entry(f"{name}_bidirectional", f"{start}, bidirectional=True)", [randn(9, 3, 5)])
        yield Entry(
            f"{name}_deep_bidirectional",
            f"{start}, num_layers=3, bidirectional=True, bias=False)",
            [randn(9, 3, 5)],
        )
        yield Entry(
            f"{name}_with_state",
            f"{start}, num_layers=2)",
            [randn(9, 3, 5), *states],
            f"self.layer(x0, {state})",
        )
        yield Entry(f"{name}_unbatched", f"{start})", [randn(9, 5)])
        yield Entry(
            f"{name}_dropout_eval", f"{start}, num_layers=2, dropout=0.5)", [randn(9, 3, 5)], eval=True
        )
        yield Entry(f"{name}_dropout_train", f"{start}, num_layers=2, dropout=0.5)", [randn(9, 3, 5)])
        yield Entry(f"{name}_packed", f"{start}, batch_first=True)", [randn(3, 9, 5)], packed)
        yield Entry(
            f"{name}_packed_bidirectional",
            f"{start}, bidirectional=True)",
            [randn(9, 3, 5), "torch.randint(1, 10, (3,))"],
            unpacked,
        )
    yield Entry("lstm_projection", "nn.LSTM(5, 7, proj_size=3)", [randn(9, 3, 5)])
    yield Entry("rnn_cell", "nn.RNNCell(5, 7)", [randn(3, 5), randn(3, 7)])
    yield Entry("rnn_cell_relu", "nn.RNNCell(5, 7, nonlinearity='relu')", [randn(3, 5)])
    yield Entry(
        "lstm_cell", "nn.LSTMCell(5, 7)", [randn(3, 5), randn(3, 7), randn(3, 7)], "self.layer(x0, (x1, x2))"
    )
    yield Entry("lstm_cell_no_state", "nn.LSTMCell(5, 7)", [randn(3, 5)])
    yield Entry("gru_cell", "nn.GRUCell(5, 7)", [randn(3, 5), randn(3, 7)])


def attention():
    q, k, v = randn(6, 2, 8), randn(9, 2, 8), randn(9, 2, 8)
    yield Entry("multihead_attention", "nn.MultiheadAttention(8, 2)", [q, k, v], "self.layer(x0, x1, x2)")
    yield Entry(
        "multihead_attention_no_weights",
        "nn.MultiheadAttention(8, 2, batch_first=True)",
        [randn(2, 6, 8)],
        "self.layer(x0, x0, x0, need_weights=False)[0]",
    )
    yield Entry(
        "multihead_attention_eval",
        "nn.MultiheadAttention(8, 2, batch_first=True)",
        [randn(2, 6, 8)],
        "self.layer(x0, x0, x0, need_weights=False)[0]",
        eval=True,
    )
    yield Entry(
        "multihead_attention_masked",
        "nn.MultiheadAttention(8, 2)",
        [q],
        "self.layer(x0, x0, x0, attn_mask=nn.Transformer.generate_square_subsequent_mask(6, x0.device))[0]",
    )
    yield Entry(
        "multihead_attention_padding",
        "nn.MultiheadAttention(8, 2)",
        [q],
        "self.layer(x0, x0, x0, key_padding_mask=(torch.arange(6, device=x0.device) > 3).expand(2, 6))[0]",
    )
    yield Entry(
        "multihead_attention_other_widths",
        "nn.MultiheadAttention(8, 2, kdim=5, vdim=3, add_bias_kv=True)",
        [q, randn(9, 2, 5), randn(9, 2, 3)],
        "self.layer(x0, x1, x2)",
    )
    for name, arguments in {
        "": "",
        "_gelu_norm_first": ", activation='gelu', norm_first=True",
        "_no_bias": ", bias=False",
    }.items():
        for evaluate in (False, True):
            mode = "eval" if evaluate else "train"
            yield Entry(
                f"transformer_encoder_layer{name}_{mode}",
                f"nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0{arguments}, batch_first=True)",
                [randn(2, 6, 8)],
                eval=evaluate,
            )
            yield Entry(
                f"transformer_decoder_layer{name}_{mode}",
                f"nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0{arguments})",
                [randn(6, 2, 8), randn(9, 2, 8)],
                eval=evaluate,
            )
    yield Entry(
        "transformer_encoder_layer_dropout",
        "nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)",
        [randn(2, 6, 8)],
    )
    yield Entry(
        "transformer_encoder",
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)",
        [randn(2, 6, 8)],
        eval=True,
    )
    yield Entry(
        "transformer_encoder_causal",
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2)",
        [randn(2, 6, 8)],
        "self.layer(x0, mask=nn.Transformer.generate_square_subsequent_mask(6, x0.device), is_causal=True)",
    )
    yield Entry(
        "transformer_decoder",
        "nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2)",
        [randn(6, 2, 8), randn(9, 2, 8)],
    )
    yield Entry(
        "transformer",
        "nn.Transformer(8, 2, 2, 2, 16, batch_first=True)",
        [randn(2, 6, 8), randn(2, 5, 8)],
        eval=True,
    )


def linear_and_sparse():
    yield Entry("linear", "nn.Linear(5, 7)", [randn(3, 4, 5)])
    yield Entry("linear_no_bias", "nn.Linear(5, 7, bias=False)", [randn(3, 5)])
    yield Entry("linear_vector", "nn.Linear(5, 7)", [randn(5)])
    yield Entry("linear_half", "nn.Linear(5, 7).half()", [randn(3, 5) + ".half()"])
    yield Entry("linear_bf16", "nn.Linear(5, 7).to(torch.bfloat16)", [randn(3, 5) + ".to(torch.bfloat16)"])
    yield Entry("lazy_linear", f"materialized(nn.LazyLinear(7), {randn(3, 5)})", [randn(3, 5)])
    yield Entry("bilinear", "nn.Bilinear(5, 6, 7)", [randn(3, 5), randn(3, 6)])
    tokens = "torch.randint(0, 20, (3, 6))"
    yield Entry("embedding", "nn.Embedding(20, 5)", [tokens])
    yield Entry("embedding_padding", "nn.Embedding(20, 5, padding_idx=2)", [tokens])
    yield Entry("embedding_max_norm", "nn.Embedding(20, 5, max_norm=1.0)", [tokens])
    for mode in ("sum", "mean", "max"):
        yield Entry(f"embedding_bag_{mode}", f"nn.EmbeddingBag(20, 5, mode='{mode}')", [tokens])
    yield Entry(
        "embedding_bag_offsets",
        "nn.EmbeddingBag(20, 5, mode='sum', padding_idx=1)",
        ["torch.randint(0, 20, (12,))"],
        "self.layer(x0, torch.tensor([0, 4, 4, 9], device=x0.device))",
    )
    yield Entry(
        "embedding_bag_weights",
        "nn.EmbeddingBag(20, 5, mode='sum')",
        [tokens, "torch.rand(3, 6)"],
        "self.layer(x0, per_sample_weights=x1)",
    )
    for layer in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"):
        x = image(4, {"1": 1, "2": 2, "3": 3}.get(layer[7:8], 2), 4)
        yield Entry(f"{layer.lower()}_train", f"nn.{layer}(0.4)", [x])
        yield Entry(f"{layer.lower()}_eval", f"nn.{layer}(0.4)", [x], eval=True)
    yield Entry("cosine_similarity", "nn.CosineSimilarity(dim=1)", [randn(4, 6), randn(4, 6)])
    yield Entry("pairwise_distance", "nn.PairwiseDistance(p=2)", [randn(4, 6), randn(4, 6)])
    yield Entry("pairwise_distance_p1", "nn.PairwiseDistance(p=1, keepdim=True)", [randn(4, 6), randn(4, 6)])
    yield Entry("flatten", "nn.Flatten()", [image(3, 2, 4)])
    yield Entry("unflatten", "nn.Unflatten(1, (2, 3))", [randn(4, 6)])
    yield Entry("sequential", "nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 2))", [randn(3, 5)])
    yield Entry(
        "module_list",
        "nn.ModuleList([nn.Linear(5, 5) for _ in range(3)])",
        [randn(3, 5)],
        "self.layer[2](self.layer[1](self.layer[0](x0)))",
    )
    yield Entry(
        "module_dict",
        "nn.ModuleDict({'a': nn.Linear(5, 5), 'b': nn.Tanh()})",
        [randn(3, 5)],
        "self.layer['b'](self.layer['a'](x0))",
    )
    yield Entry(
        "parameter_list",
        "nn.ParameterList([nn.Parameter(torch.randn(5)) for _ in range(2)])",
        [randn(3, 5)],
        "x0 * self.layer[0] + self.layer[1]",
    )
    yield Entry(
        "parameter_dict",
        "nn.ParameterDict({'a': nn.Parameter(torch.randn(5))})",
        [randn(3, 5)],
        "x0 * self.layer['a']",
    )


def losses():
    x, y = randn(6, 5), randn(6, 5)
    labels, signs = "torch.randint(0, 5, (6,))", "2 * torch.randint(0, 2, (6,)) - 1"
    p, q = "torch.rand(6, 5)", "torch.randint(0, 2, (6, 5)).float()"
    for reduction in ("mean", "sum", "none"):
        r = f"reduction='{reduction}'"
        yield Entry(f"l1_loss_{reduction}", f"nn.L1Loss({r})", [x, y])
        yield Entry(f"mse_loss_{reduction}", f"nn.MSELoss({r})", [x, y])
        yield Entry(f"huber_loss_{reduction}", f"nn.HuberLoss({r}, delta=0.7)", [x, y])
        yield Entry(f"smooth_l1_loss_{reduction}", f"nn.SmoothL1Loss({r}, beta=0.5)", [x, y])
        yield Entry(f"cross_entropy_{reduction}", f"nn.CrossEntropyLoss({r})", [x, labels])
        yield Entry(f"nll_loss_{reduction}", f"nn.NLLLoss({r})", [f"torch.log_softmax({x}, 1)", labels])
        yield Entry(f"bce_loss_{reduction}", f"nn.BCELoss({r})", [p, q])
        yield Entry(f"bce_with_logits_{reduction}", f"nn.BCEWithLogitsLoss({r})", [x, q])
        yield Entry(f"poisson_nll_{reduction}", f"nn.PoissonNLLLoss({r})", [x, "torch.rand(6, 5) * 4"])
        yield Entry(
            f"kl_div_{reduction}",
            f"nn.KLDivLoss({r})",
            [f"torch.log_softmax({x}, 1)", f"torch.softmax({y}, 1)"],
        )
        yield Entry(f"soft_margin_{reduction}", f"nn.SoftMarginLoss({r})", [randn(6), signs])
        yield Entry(f"hinge_embedding_{reduction}", f"nn.HingeEmbeddingLoss({r})", [randn(6), signs])
        yield Entry(
            f"margin_ranking_{reduction}",
            f"nn.MarginRankingLoss({r}, margin=0.2)",
            [randn(6), randn(6), signs],
        )
        yield Entry(
            f"cosine_embedding_{reduction}", f"nn.CosineEmbeddingLoss({r}, margin=0.1)", [x, y, signs]
        )
        yield Entry(f"multi_margin_{reduction}", f"nn.MultiMarginLoss({r})", [x, labels])
        yield Entry(
            f"multilabel_margin_{reduction}",
            f"nn.MultiLabelMarginLoss({r})",
            [x, "torch.randint(-1, 5, (6, 5))"],
        )
        yield Entry(f"multilabel_soft_margin_{reduction}", f"nn.MultiLabelSoftMarginLoss({r})", [x, q])
        yield Entry(f"triplet_margin_{reduction}", f"nn.TripletMarginLoss({r})", [x, y, randn(6, 5)])
        yield Entry(
            f"triplet_margin_distance_{reduction}",
            f"nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(p=1), swap=True, {r})",
            [x, y, randn(6, 5)],
        )
        yield Entry(
            f"gaussian_nll_{reduction}",
            f"nn.GaussianNLLLoss({r}, full=True)",
            [x, y, "torch.rand(6, 5) + 0.1"],
        )
        yield Entry(
            f"ctc_loss_{reduction}",
            f"nn.CTCLoss({r})",
            [f"torch.log_softmax({randn(12, 3, 6)}, 2)", "torch.randint(1, 6, (3, 4))"],
            "self.layer(x0, x1, torch.tensor([12, 10, 9]), torch.tensor([4, 3, 2]))",
        )
    yield Entry(
        "cross_entropy_weighted", "nn.CrossEntropyLoss(weight=torch.rand(5), ignore_index=2)", [x, labels]
    )
    yield Entry("cross_entropy_smoothed", "nn.CrossEntropyLoss(label_smoothing=0.1)", [x, labels])
    yield Entry("cross_entropy_probabilities", "nn.CrossEntropyLoss()", [x, f"torch.softmax({y}, 1)"])
    yield Entry(
        "cross_entropy_image", "nn.CrossEntropyLoss()", [image(5, 2, 4), "torch.randint(0, 5, (2, 4, 5))"]
    )
    yield Entry(
        "nll_loss_image",
        "nn.NLLLoss(weight=torch.rand(5))",
        [image(5, 2, 4), "torch.randint(0, 5, (2, 4, 5))"],
    )
    yield Entry("bce_with_logits_pos_weight", "nn.BCEWithLogitsLoss(pos_weight=torch.rand(5) + 1)", [x, q])


def vision():
    yield Entry("pixel_shuffle", "nn.PixelShuffle(2)", [image(8, 2, 4)])
    yield Entry("pixel_unshuffle", "nn.PixelUnshuffle(2)", ["torch.randn(2, 3, 6, 8)"])
    yield Entry("channel_shuffle", "nn.ChannelShuffle(2)", [image(8, 2, 4)])
    for mode, d in (
        ("nearest", 1),
        ("linear", 1),
        ("nearest", 2),
        ("nearest-exact", 2),
        ("bilinear", 2),
        ("bicubic", 2),
        ("area", 2),
        ("nearest", 3),
        ("trilinear", 3),
    ):
        name = mode.replace("-", "_")
        x = image(3, d, 5)
        aligned = ", align_corners=True" if mode.endswith("linear") or mode == "bicubic" else ""
        yield Entry(f"upsample_{name}_{d}d", f"nn.Upsample(scale_factor=2, mode='{mode}')", [x])
        yield Entry(
            f"upsample_{name}_{d}d_size", f"nn.Upsample(size=({spatial(d, 8)},), mode='{mode}'{aligned})", [x]
        )
    yield Entry(
        "upsample_antialias",
        "nn.Identity()",
        [image(3, 2, 9)],
        "nn.functional.interpolate(self.layer(x0), scale_factor=0.5, mode='bilinear', antialias=True)",
    )
    yield Entry("upsampling_nearest2d", "nn.UpsamplingNearest2d(scale_factor=3)", [image(3, 2, 5)])
    yield Entry("upsampling_bilinear2d", "nn.UpsamplingBilinear2d(scale_factor=2)", [image(3, 2, 5)])
    yield Entry("fold", "nn.Fold(output_size=(6, 7), kernel_size=(2, 3))", [randn(2, 12, 25)])
    yield Entry("unfold", "nn.Unfold(kernel_size=(2, 3), padding=1, stride=2)", [image(3, 2, 6)])
    yield Entry(
        "grid_sample",
        "nn.Identity()",
        [image(3, 2, 6), "torch.rand(2, 4, 5, 2) * 2 - 1"],
        "nn.functional.grid_sample(self.layer(x0), x1, align_corners=False)",
    )
    yield Entry(
        "affine_grid",
        "nn.Identity()",
        [randn(2, 2, 3)],
        "nn.functional.affine_grid(self.layer(x0), (2, 3, 4, 5), align_corners=False)",
    )


def entries():
    for group in (
        convolutions,
        pools,
        paddings,
        activations,
        norms,
        recurrent,
        attention,
        linear_and_sparse,
        losses,
        vision,
    ):
        yield from group()
