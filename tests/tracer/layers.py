"""torch.nn's layers and torch.nn.functional, small: name -> (constructor body, forward, inputs)."""

_IMAGES = {1: "randn(2, 4, 17)", 2: "randn(2, 4, 11, 9)", 3: "randn(2, 4, 7, 6, 5)"}


def _m(layer, inputs, train=True):
    return (f"self.m = nn.{layer}" + ("" if train else ".eval()"), None, inputs)


LAYERS = {
    # -- linear and bilinear
    "Identity": _m("Identity()", "randn(3, 4)"),
    "Linear_2d": _m("Linear(5, 7)", "randn(3, 5)"),
    "Linear_3d": _m("Linear(5, 7)", "randn(2, 3, 5)"),
    "Linear_4d": _m("Linear(5, 7)", "randn(2, 2, 3, 5)"),
    "Linear_1d": _m("Linear(5, 7)", "randn(5)"),
    "Linear_no_bias": _m("Linear(5, 7, bias=False)", "randn(2, 3, 5)"),
    "Linear_transposed_input": ("self.m = nn.Linear(5, 7)", "self.m(a.transpose(1, 2))", "randn(2, 5, 3)"),
    "Linear_half": ("self.m = nn.Linear(5, 7).half()", "self.m(a.half())", "randn(3, 5)"),
    "Linear_bf16": ("self.m = nn.Linear(5, 7).bfloat16()", "self.m(a.bfloat16())", "randn(3, 5)"),
    "Linear_double": ("self.m = nn.Linear(5, 7).double()", "self.m(a.double())", "randn(3, 5)"),
    "LazyLinear": ("self.m = nn.LazyLinear(7)\nself.m(torch.randn(3, 5))", None, "randn(3, 5)"),
    "LazyLinear_double": (
        "self.m = nn.LazyLinear(7, bias=False).double()\nself.m(torch.randn(3, 5).double())",
        "self.m(a.double())",
        "randn(3, 5)",
    ),
    **{
        f"LazyConv{d}d": (f"self.m = nn.LazyConv{d}d(6, 3)\nself.m(torch.{_IMAGES[d]})", None, _IMAGES[d])
        for d in (1, 2, 3)
    },
    **{
        f"LazyConvTranspose{d}d": (
            f"self.m = nn.LazyConvTranspose{d}d(6, 3)\nself.m(torch.{_IMAGES[d]})",
            None,
            _IMAGES[d],
        )
        for d in (1, 2, 3)
    },
    **{
        f"LazyBatchNorm{d}d": (
            f"self.m = nn.LazyBatchNorm{d}d()\nself.m(torch.{_IMAGES[d]})",
            None,
            _IMAGES[d],
        )
        for d in (1, 2, 3)
    },
    **{
        f"LazyInstanceNorm{d}d": (
            f"self.m = nn.LazyInstanceNorm{d}d(affine=True)\nself.m(torch.{_IMAGES[d]})",
            None,
            _IMAGES[d],
        )
        for d in (1, 2, 3)
    },
    "Bilinear": _m("Bilinear(4, 5, 6)", "randn(3, 4), randn(3, 5)"),
    # -- convolutions
    **{f"Conv{d}d": _m(f"Conv{d}d(4, 6, 3, padding=1)", _IMAGES[d]) for d in (1, 2, 3)},
    **{f"Conv{d}d_same": _m(f"Conv{d}d(4, 6, 3, padding='same')", _IMAGES[d]) for d in (1, 2, 3)},
    **{
        f"Conv{d}d_groups": _m(f"Conv{d}d(4, 8, 3, stride=2, dilation=2, padding=2, groups=4)", _IMAGES[d])
        for d in (1, 2, 3)
    },
    **{
        f"Conv{d}d_{mode}": _m(f"Conv{d}d(4, 6, 3, padding=1, padding_mode='{mode}')", _IMAGES[d])
        for d in (1, 2, 3)
        for mode in ("reflect", "replicate", "circular")
    },
    **{
        f"ConvTranspose{d}d": _m(f"ConvTranspose{d}d(4, 6, 3, stride=2, output_padding=1)", _IMAGES[d])
        for d in (1, 2, 3)
    },
    **{
        f"ConvTranspose{d}d_groups": _m(f"ConvTranspose{d}d(4, 6, 3, groups=2, bias=False)", _IMAGES[d])
        for d in (1, 2, 3)
    },
    "Conv2d_unbatched": _m("Conv2d(4, 6, 3)", "randn(4, 8, 8)"),
    "Conv2d_channels_last": (
        "self.m = nn.Conv2d(4, 6, 3).to(memory_format=torch.channels_last)",
        "self.m(a.contiguous(memory_format=torch.channels_last))",
        _IMAGES[2],
    ),
    "Conv2d_bf16": ("self.m = nn.Conv2d(4, 6, 3).bfloat16()", "self.m(a.bfloat16())", _IMAGES[2]),
    "Conv2d_1x1_depthwise_chain": (
        (
            "self.m = nn.Sequential(nn.Conv2d(4, 8, 1), nn.ReLU6(), nn.Conv2d(8, 8, 3, groups=8, padding=1),"
            " nn.Hardswish())"
        ),
        None,
        _IMAGES[2],
    ),
    "Unfold": _m("Unfold(3, padding=1)", _IMAGES[2]),
    "Fold": _m("Fold((4, 5), (2, 2))", "randn(2, 8, 12)"),
    # -- pooling
    **{f"MaxPool{d}d": _m(f"MaxPool{d}d(3, stride=2, padding=1)", _IMAGES[d]) for d in (1, 2, 3)},
    **{
        f"MaxPool{d}d_indices": _m(f"MaxPool{d}d(3, return_indices=True, ceil_mode=True)", _IMAGES[d])
        for d in (1, 2, 3)
    },
    **{
        f"MaxUnpool{d}d": (
            f"self.p = nn.MaxPool{d}d(2, return_indices=True)\nself.m = nn.MaxUnpool{d}d(2)",
            "self.m(*self.p(a), output_size=a.shape[2:])",
            _IMAGES[d],
        )
        for d in (1, 2, 3)
    },
    **{f"AvgPool{d}d": _m(f"AvgPool{d}d(3, padding=1)", _IMAGES[d]) for d in (1, 2, 3)},
    **{
        f"LPPool{d}d": _m(f"LPPool{d}d(2, 3)", f"randn({', '.join(_IMAGES[d][6:-1].split(', '))}).abs()")
        for d in (1, 2, 3)
    },
    **{f"AdaptiveMaxPool{d}d": _m(f"AdaptiveMaxPool{d}d(3)", _IMAGES[d]) for d in (1, 2, 3)},
    **{f"AdaptiveAvgPool{d}d": _m(f"AdaptiveAvgPool{d}d(3)", _IMAGES[d]) for d in (1, 2, 3)},
    **{f"AdaptiveAvgPool{d}d_1": _m(f"AdaptiveAvgPool{d}d(1)", _IMAGES[d]) for d in (1, 2, 3)},
    "FractionalMaxPool2d": _m("FractionalMaxPool2d(2, output_size=(5, 4))", _IMAGES[2]),
    "FractionalMaxPool3d": _m("FractionalMaxPool3d(2, output_size=(3, 3, 2))", _IMAGES[3]),
    # -- padding
    **{
        f"{kind}Pad{d}d": _m(f"{kind}Pad{d}d({'2, 1.5' if kind == 'Constant' else '2'})", _IMAGES[d])
        for kind in ("Reflection", "Replication", "Zero", "Constant", "Circular")
        for d in (1, 2, 3)
    },
    # -- activations
    **{
        name: _m(f"{name}()", "randn(3, 10)")
        for name in "ELU Hardshrink Hardsigmoid Hardtanh Hardswish LeakyReLU LogSigmoid PReLU ReLU ReLU6 "
        "RReLU SELU CELU GELU Sigmoid SiLU Mish Softplus Softshrink Softsign Tanh Tanhshrink "
        "Softmin GLU".split()
    },
    "PReLU_many": _m("PReLU(4)", _IMAGES[2]),
    "RReLU_eval": _m("RReLU()", "randn(3, 10)", train=False),
    "Threshold": _m("Threshold(0.1, 20)", "randn(3, 10)"),
    "GELU_tanh": _m("GELU(approximate='tanh')", "randn(3, 10)"),
    "Softmax": _m("Softmax(dim=1)", "randn(3, 10)"),
    "Softmax2d": _m("Softmax2d()", _IMAGES[2]),
    "LogSoftmax": _m("LogSoftmax(dim=0)", "randn(3, 10)"),
    "AdaptiveLogSoftmaxWithLoss": (
        "self.m = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12])",
        "tuple(self.m(a, b))",
        "randn(6, 8), randint(0, 20, (6,))",
    ),
    "AdaptiveLogSoftmaxWithLoss_log_prob": (
        "self.m = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12])",
        "self.m.log_prob(a)",
        "randn(6, 8)",
    ),
    "AdaptiveLogSoftmaxWithLoss_predict": (
        "self.m = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12])",
        "self.m.predict(a)",
        "randn(6, 8)",
    ),
    "inplace_activations": (
        (
            "self.m = nn.Sequential(nn.ReLU(inplace=True), nn.SiLU(inplace=True), nn.Hardtanh(inplace=True),"
            " nn.ELU(inplace=True))"
        ),
        "self.m(a + 1)",
        "randn(3, 10)",
    ),
    # -- normalization
    **{f"BatchNorm{d}d": _m(f"BatchNorm{d}d(4)", _IMAGES[d]) for d in (1, 2, 3)},
    **{f"BatchNorm{d}d_eval": _m(f"BatchNorm{d}d(4)", _IMAGES[d], train=False) for d in (1, 2, 3)},
    "BatchNorm1d_2d": _m("BatchNorm1d(4)", "randn(5, 4)"),
    "BatchNorm2d_no_stats": _m("BatchNorm2d(4, track_running_stats=False, affine=False)", _IMAGES[2]),
    "BatchNorm2d_cumulative": _m("BatchNorm2d(4, momentum=None)", _IMAGES[2]),
    "SyncBatchNorm_eval": _m("SyncBatchNorm(4)", _IMAGES[2], train=False),
    "GroupNorm": _m("GroupNorm(2, 4)", _IMAGES[2]),
    **{f"InstanceNorm{d}d": _m(f"InstanceNorm{d}d(4, affine=True)", _IMAGES[d]) for d in (1, 2, 3)},
    "InstanceNorm2d_stats": _m("InstanceNorm2d(4, track_running_stats=True)", _IMAGES[2]),
    "InstanceNorm2d_stats_eval": _m("InstanceNorm2d(4, track_running_stats=True)", _IMAGES[2], train=False),
    "LayerNorm": _m("LayerNorm(6)", "randn(3, 5, 6)"),
    "LayerNorm_2d": _m("LayerNorm((5, 6), elementwise_affine=False)", "randn(3, 5, 6)"),
    "LayerNorm_no_bias": _m("LayerNorm(6, bias=False)", "randn(3, 5, 6)"),
    "RMSNorm": _m("RMSNorm(6)", "randn(3, 5, 6)"),
    "RMSNorm_bf16": ("self.m = nn.RMSNorm(6).bfloat16()", "self.m(a.bfloat16())", "randn(3, 5, 6)"),
    "LocalResponseNorm": _m("LocalResponseNorm(2)", _IMAGES[2]),
    "CrossMapLRN2d": _m("CrossMapLRN2d(3)", _IMAGES[2]),
    # -- recurrent layers
    **{
        f"{kind}{suffix}": _m(f"{kind}(6, 5{options})", inputs)
        for kind in ("RNN", "LSTM", "GRU")
        for suffix, options, inputs in [
            ("", "", "randn(7, 3, 6)"),
            ("_unbatched", "", "randn(7, 6)"),
            ("_batch_first", ", batch_first=True", "randn(3, 7, 6)"),
            ("_deep", ", num_layers=3", "randn(7, 3, 6)"),
            ("_bidirectional", ", num_layers=2, bidirectional=True", "randn(7, 3, 6)"),
            ("_dropout", ", num_layers=2, dropout=0.3", "randn(7, 3, 6)"),
            ("_no_bias", ", bias=False", "randn(7, 3, 6)"),
        ]
    },
    "RNN_relu": _m("RNN(6, 5, nonlinearity='relu')", "randn(7, 3, 6)"),
    "LSTM_projection": _m("LSTM(6, 5, proj_size=3)", "randn(7, 3, 6)"),
    "LSTM_state": (
        "self.m = nn.LSTM(6, 5)",
        "self.m(a, (b, c))",
        "randn(7, 3, 6), randn(1, 3, 5), randn(1, 3, 5)",
    ),
    "GRU_state": ("self.m = nn.GRU(6, 5)", "self.m(a, b)", "randn(7, 3, 6), randn(1, 3, 5)"),
    **{
        f"{kind}_packed": (
            f"self.m = nn.{kind}(6, 5, batch_first=True)",
            (
                "p = nn.utils.rnn.pack_padded_sequence(a, [7, 5, 2], batch_first=True)\no, h = self.m(p)\n"
                "return nn.utils.rnn.pad_packed_sequence(o, batch_first=True), h"
            ),
            "randn(3, 7, 6)",
        )
        for kind in ("RNN", "LSTM", "GRU")
    },
    "LSTM_packed_unsorted": (
        "self.m = nn.LSTM(6, 5, num_layers=2, bidirectional=True)",
        (
            "p = nn.utils.rnn.pack_padded_sequence(a, b.cpu(), enforce_sorted=False)\no, h = self.m(p)\n"
            "return nn.utils.rnn.pad_packed_sequence(o), h"
        ),
        "randn(7, 3, 6), randint(1, 8, (3,))",
    ),
    "RNNCell": ("self.m = nn.RNNCell(6, 5)", "self.m(a, b)", "randn(3, 6), randn(3, 5)"),
    "RNNCell_relu": ("self.m = nn.RNNCell(6, 5, nonlinearity='relu')", "self.m(a)", "randn(3, 6)"),
    "LSTMCell": (
        "self.m = nn.LSTMCell(6, 5)",
        "h = (b, b)\nfor t in range(4):\n    h = self.m(a[t], h)\nreturn h",
        "randn(4, 3, 6), randn(3, 5)",
    ),
    "GRUCell": (
        "self.m = nn.GRUCell(6, 5)",
        "h = b\nfor t in range(4):\n    h = self.m(a[t], h)\nreturn h",
        "randn(4, 3, 6), randn(3, 5)",
    ),
    # -- attention and transformers
    "MultiheadAttention": (
        "self.m = nn.MultiheadAttention(8, 2, batch_first=True)",
        "self.m(a, a, a)",
        "randn(3, 5, 8)",
    ),
    "MultiheadAttention_eval": (
        "self.m = nn.MultiheadAttention(8, 2, batch_first=True).eval()",
        "self.m(a, a, a)",
        "randn(3, 5, 8)",
    ),
    "MultiheadAttention_eval_no_weights": (
        "self.m = nn.MultiheadAttention(8, 2, batch_first=True).eval()",
        "self.m(a, a, a, need_weights=False)[0]",
        "randn(3, 5, 8)",
    ),
    "MultiheadAttention_cross": (
        "self.m = nn.MultiheadAttention(8, 2, kdim=6, vdim=4, dropout=0.1)",
        "self.m(a, b, c)",
        "randn(5, 3, 8), randn(7, 3, 6), randn(7, 3, 4)",
    ),
    "MultiheadAttention_masks": (
        "self.m = nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)",
        (
            "self.m(a, a, a, key_padding_mask=b, attn_mask=torch.triu(torch.ones(5, 5, dtype=torch.bool), 1),"
            " average_attn_weights=False)"
        ),
        "randn(5, 3, 8), rand(3, 5) > 1.5",
    ),
    "MultiheadAttention_no_weights": (
        "self.m = nn.MultiheadAttention(8, 2)",
        "self.m(a, a, a, need_weights=False)[0]",
        "randn(5, 3, 8)",
    ),
    "sdpa": (
        None,
        "F.scaled_dot_product_attention(a, b, c)",
        "randn(2, 3, 5, 8), randn(2, 3, 7, 8), randn(2, 3, 7, 8)",
    ),
    "sdpa_causal": (None, "F.scaled_dot_product_attention(a, a, a, is_causal=True)", "randn(2, 3, 5, 8)"),
    "sdpa_mask": (
        None,
        "F.scaled_dot_product_attention(a, a, a, attn_mask=b)",
        "randn(2, 3, 5, 8), randn(5, 5)",
    ),
    "sdpa_bool_mask": (
        None,
        "F.scaled_dot_product_attention(a, a, a, attn_mask=b, scale=0.3)",
        "randn(2, 3, 5, 8), rand(5, 5) > 0.3",
    ),
    "sdpa_dropout": (None, "F.scaled_dot_product_attention(a, a, a, dropout_p=0.2)", "randn(2, 3, 5, 8)"),
    "sdpa_gqa": (
        None,
        "F.scaled_dot_product_attention(a, b, b, enable_gqa=True)",
        "randn(2, 4, 5, 8), randn(2, 2, 5, 8)",
    ),
    "sdpa_bf16": (
        None,
        "F.scaled_dot_product_attention(a, a, a).transpose(1, 2).reshape(2, 5, 24)",
        "randn(2, 3, 5, 8).bfloat16()",
    ),
    "sdpa_transposed_view": (
        None,
        "F.scaled_dot_product_attention(a, a, a).transpose(1, 2).contiguous().view(2, 5, 24)",
        "randn(2, 3, 5, 8)",
    ),
    "sdpa_math": (
        None,
        (
            "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):\n    return"
            " F.scaled_dot_product_attention(a, a, a)"
        ),
        "randn(2, 3, 5, 8)",
    ),
    "sdpa_flash": (
        None,
        (
            "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):\n    return"
            " F.scaled_dot_product_attention(a, a, a)"
        ),
        "randn(2, 3, 5, 7)",
    ),
    "TransformerEncoderLayer": _m("TransformerEncoderLayer(8, 2, 16, batch_first=True)", "randn(3, 5, 8)"),
    "TransformerEncoderLayer_eval": _m(
        "TransformerEncoderLayer(8, 2, 16, batch_first=True)", "randn(3, 5, 8)", train=False
    ),
    "TransformerEncoderLayer_norm_first": _m(
        "TransformerEncoderLayer(8, 2, 16, norm_first=True, activation='gelu', dropout=0.0)", "randn(5, 3, 8)"
    ),
    "TransformerEncoder_eval": _m(
        "TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)",
        "randn(3, 5, 8)",
        train=False,
    ),
    "TransformerEncoder_mask": (
        "self.m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)",
        "self.m(a, mask=nn.Transformer.generate_square_subsequent_mask(5), is_causal=True)",
        "randn(3, 5, 8)",
    ),
    **{
        f"TransformerEncoder_padding{suffix}": (
            (
                "self.m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),"
                f" 2{more}){evaluation}"
            ),
            f"self.m(a, src_key_padding_mask={mask})",
            "randn(3, 5, 8)",
        )
        for suffix, more, evaluation, mask in [
            ("", "", ".eval()", "torch.arange(5)[None] >= torch.tensor([5, 3, 1])[:, None]"),
            (
                "_norm",
                ", norm=nn.LayerNorm(8)",
                ".eval()",
                "torch.arange(5)[None] >= torch.tensor([5, 3, 1])[:, None]",
            ),
            ("_right", "", ".eval()", "torch.arange(5)[None] < torch.tensor([0, 3, 1])[:, None]"),
            (
                "_unchecked",
                ", mask_check=False",
                ".eval()",
                "torch.arange(5)[None] >= torch.tensor([5, 3, 1])[:, None]",
            ),
            ("_train", "", "", "torch.arange(5)[None] >= torch.tensor([5, 3, 1])[:, None]"),
        ]
    },
    "TransformerDecoderLayer": (
        "self.m = nn.TransformerDecoderLayer(8, 2, 16)",
        "self.m(a, b)",
        "randn(5, 3, 8), randn(7, 3, 8)",
    ),
    "Transformer": (
        "self.m = nn.Transformer(8, 2, 2, 2, 16)",
        "self.m(a, b)",
        "randn(5, 3, 8), randn(7, 3, 8)",
    ),
    # -- dropout
    **{
        name: _m(f"{name}(0.3)", _IMAGES[dims])
        for name, dims in [
            ("Dropout", 2),
            ("Dropout1d", 1),
            ("Dropout2d", 2),
            ("Dropout3d", 3),
            ("AlphaDropout", 2),
            ("FeatureAlphaDropout", 2),
        ]
    },
    "Dropout_inplace": ("self.m = nn.Dropout(0.3, inplace=True)", "self.m(a * 2)", "randn(3, 10)"),
    "Dropout_eval": _m("Dropout(0.3)", "randn(3, 10)", train=False),
    # -- embeddings
    "Embedding": _m("Embedding(11, 6, padding_idx=2)", "randint(0, 11, (3, 4))"),
    "Embedding_max_norm": _m("Embedding(11, 6, max_norm=1.0)", "randint(0, 11, (3, 4))"),
    "Embedding_from_pretrained": (
        "self.m = nn.Embedding.from_pretrained(torch.arange(12.0).view(4, 3))",
        None,
        "randint(0, 4, (5,))",
    ),
    **{
        f"EmbeddingBag_{mode}": _m(f"EmbeddingBag(11, 6, mode='{mode}')", "randint(0, 11, (3, 4))")
        for mode in ("sum", "mean", "max")
    },
    "EmbeddingBag_offsets": (
        "self.m = nn.EmbeddingBag(11, 6, mode='sum')",
        "self.m(a, torch.tensor([0, 4, 9]), per_sample_weights=b)",
        "randint(0, 11, (12,)), randn(12)",
    ),
    "one_hot": (None, "F.one_hot(a, 7)", "randint(0, 7, (3, 4))"),
    "one_hot_unknown_count": (None, "F.one_hot(a).sum()", "randint(0, 7, (3, 4))"),
    # -- vision and shuffling
    "PixelShuffle": _m("PixelShuffle(2)", _IMAGES[2]),
    "PixelUnshuffle": _m("PixelUnshuffle(2)", "randn(2, 4, 6, 8)"),
    "ChannelShuffle": _m("ChannelShuffle(2)", _IMAGES[2]),
    **{
        f"Upsample_{mode}": _m(f"Upsample(scale_factor=2, mode='{mode}')", _IMAGES[d])
        for mode, d in [("nearest", 2), ("bilinear", 2), ("bicubic", 2), ("linear", 1), ("trilinear", 3)]
    },
    "Upsample_size": _m("Upsample(size=(13, 7), mode='bilinear', align_corners=True)", _IMAGES[2]),
    "UpsamplingNearest2d": _m("UpsamplingNearest2d(scale_factor=2)", _IMAGES[2]),
    "UpsamplingBilinear2d": _m("UpsamplingBilinear2d(scale_factor=2)", _IMAGES[2]),
    "interpolate_area": (None, "F.interpolate(a, size=(5, 4), mode='area')", _IMAGES[2]),
    "interpolate_antialias": (
        None,
        "F.interpolate(a, size=(5, 4), mode='bicubic', antialias=True)",
        _IMAGES[2],
    ),
    "grid_sample": (
        None,
        "F.grid_sample(a, F.affine_grid(b, (2, 4, 6, 5), align_corners=False), align_corners=False)",
        f"{_IMAGES[2]}, randn(2, 2, 3)",
    ),
    "grid_sample_nearest": (
        None,
        "F.grid_sample(a, b, mode='nearest', padding_mode='border', align_corners=True)",
        f"{_IMAGES[2]}, rand(2, 5, 6, 2)",
    ),
    "Flatten": _m("Flatten(1, 2)", _IMAGES[3]),
    "Unflatten": _m("Unflatten(1, (2, 2))", _IMAGES[2]),
    # -- distances
    "CosineSimilarity": _m("CosineSimilarity()", "randn(3, 8), randn(3, 8)"),
    "PairwiseDistance": _m("PairwiseDistance(1.5)", "randn(3, 8), randn(3, 8)"),
    "cdist": (None, "torch.cdist(a, b)", "randn(5, 8), randn(6, 8)"),
    "cdist_large": (None, "torch.cdist(a, b)", "randn(40, 8), randn(30, 8)"),
    "pdist": (None, "F.pdist(a)", "randn(5, 8)"),
    # -- losses
    **{
        name: _m(f"{name}()", "randn(3, 5), randn(3, 5)")
        for name in ["L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"]
    },
    "BCELoss": _m("BCELoss()", "rand(3, 5), rand(3, 5)"),
    "BCEWithLogitsLoss": _m("BCEWithLogitsLoss(pos_weight=torch.ones(5) * 2)", "randn(3, 5), rand(3, 5)"),
    "CrossEntropyLoss": _m("CrossEntropyLoss()", "randn(6, 5), randint(0, 5, (6,))"),
    "CrossEntropyLoss_weight": _m(
        "CrossEntropyLoss(weight=torch.arange(1.0, 6.0), label_smoothing=0.1, ignore_index=2)",
        "randn(6, 5), randint(0, 5, (6,))",
    ),
    "CrossEntropyLoss_probabilities": _m("CrossEntropyLoss(reduction='none')", "randn(6, 5), rand(6, 5)"),
    "CrossEntropyLoss_2d": _m("CrossEntropyLoss()", "randn(2, 5, 3, 4), randint(0, 5, (2, 3, 4))"),
    "NLLLoss": _m("NLLLoss()", "randn(6, 5), randint(0, 5, (6,))"),
    "NLLLoss2d": _m("NLLLoss(reduction='sum')", "randn(2, 5, 3, 4), randint(0, 5, (2, 3, 4))"),
    "CTCLoss": _m(
        "CTCLoss()",
        "randn(10, 3, 5).log_softmax(-1), randint(1, 5, (3, 4)), torch.full((3,), 10), torch.full((3,), 4)",
    ),
    "PoissonNLLLoss": _m("PoissonNLLLoss(full=True)", "randn(3, 5), rand(3, 5) * 4"),
    "GaussianNLLLoss": _m("GaussianNLLLoss()", "randn(3, 5), randn(3, 5), rand(3, 5)"),
    "KLDivLoss": _m(
        "KLDivLoss(reduction='batchmean')", "randn(3, 5).log_softmax(-1), randn(3, 5).softmax(-1)"
    ),
    "KLDivLoss_log": _m(
        "KLDivLoss(log_target=True)", "randn(3, 5).log_softmax(-1), randn(3, 5).log_softmax(-1)"
    ),
    "MarginRankingLoss": _m("MarginRankingLoss(0.2)", "randn(6), randn(6), randn(6).sign()"),
    "HingeEmbeddingLoss": _m("HingeEmbeddingLoss()", "randn(6), randn(6).sign()"),
    "MultiLabelMarginLoss": _m("MultiLabelMarginLoss()", "randn(3, 5), randint(0, 5, (3, 5))"),
    "SoftMarginLoss": _m("SoftMarginLoss()", "randn(6), randn(6).sign()"),
    "MultiLabelSoftMarginLoss": _m("MultiLabelSoftMarginLoss()", "randn(3, 5), (rand(3, 5) > 0.5).float()"),
    "CosineEmbeddingLoss": _m("CosineEmbeddingLoss()", "randn(3, 5), randn(3, 5), randn(3).sign()"),
    "MultiMarginLoss": _m("MultiMarginLoss()", "randn(3, 5), randint(0, 5, (3,))"),
    "TripletMarginLoss": _m("TripletMarginLoss(swap=True)", "randn(3, 5), randn(3, 5), randn(3, 5)"),
    "TripletMarginWithDistanceLoss": _m(
        "TripletMarginWithDistanceLoss(distance_function=lambda x, y: 1 - F.cosine_similarity(x, y))",
        "randn(3, 5), randn(3, 5), randn(3, 5)",
    ),
    # -- containers and utilities
    "Sequential_ModuleList_Dict": (
        (
            "self.l = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])\nself.d = nn.ModuleDict({'a':"
            " nn.ReLU()})\nself.p = nn.ParameterList([nn.Parameter(torch.randn(4))])\nself.q ="
            " nn.ParameterDict({'k': nn.Parameter(torch.ones(4))})"
        ),
        "for m in self.l:\n    a = self.d['a'](m(a)) * self.p[0] + self.q['k']\nreturn a",
        "randn(3, 4)",
    ),
    "weight_norm": ("self.m = nn.utils.weight_norm(nn.Linear(4, 5))", None, "randn(3, 4)"),
    "weight_norm_parametrized": (
        "self.m = nn.utils.parametrizations.weight_norm(nn.Linear(4, 5))",
        None,
        "randn(3, 4)",
    ),
    "spectral_norm": ("self.m = nn.utils.spectral_norm(nn.Linear(4, 5))", None, "randn(3, 4)"),
    "spectral_norm_parametrized": (
        "self.m = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 5))",
        None,
        "randn(3, 4)",
    ),
    "orthogonal_parametrized": (
        (
            "self.m = nn.utils.parametrizations.orthogonal(nn.Linear(5, 5))\nself.n ="
            " nn.utils.parametrizations.orthogonal(nn.Linear(5, 3))"
        ),
        "self.n(self.m(a))",
        "randn(3, 5)",
    ),
    "tied_weights": (
        "self.a = nn.Linear(4, 4)\nself.b = nn.Linear(4, 4)\nself.b.weight = self.a.weight",
        "self.b(self.a(a))",
        "randn(3, 4)",
    ),
    "initializers": (
        (
            "w = self.w = nn.Parameter(torch.empty(6, 6))\nb = self.b = nn.Parameter(torch.empty(4, 2, 3,"
            " 3))\nnn.init.xavier_uniform_(w); nn.init.kaiming_normal_(b); nn.init.trunc_normal_(w,"
            " std=0.02); nn.init.orthogonal_(w)\nnn.init.dirac_(b); nn.init.sparse_(w, 0.5);"
            " nn.init.normal_(b, 1, 2); nn.init.constant_(w, 3); nn.init.eye_(w)"
        ),
        "a @ self.w + self.b.sum()",
        "randn(3, 6)",
    ),
}

_NESTED = "PyTorch's layers on nested tensors round otherwise than on padded ones"
# Cases whose results are equal up to rounding, and why.
ROUNDED = {
    "TransformerEncoder_padding": _NESTED,
    "TransformerEncoder_padding_norm": _NESTED,
    "TransformerEncoder_padding_unchecked": _NESTED,
}
