#!/usr/bin/env python3
"""Writes src/nereid/trace/op_table.inc: the class of every ATen operator, and the arguments that operators
write; and src/nereid/trace/allowed_ops.inc: the public operators that a replay runs.

    .venv/bin/python tools/op_table.py           write the tables
    .venv/bin/python tools/op_table.py --check   are they what this torch and these lists give? (a test runs
                                                 this)

The classes are lists of names made by hand, below; an operator of this torch that no list names is an error,
so that a new torch cannot bring an unreviewed one. The written arguments come from the schemas' alias
annotations, with the writes that schemas keep silent about (running statistics) added by hand. A name stands
for all its overloads and its in-place form; `name.overload` overrides it. `*` at the end is a prefix.
"""

import fnmatch
import pathlib
import sys

import torch

CLASSES = {
    # No work on data: questions about shapes and flags, assertions, seeds.
    "Query": """
        _assert_async _assert_scalar _assert_tensor_metadata _functional_assert_async
        _functional_assert_scalar _functional_sym_constrain_range* sym_* size stride is_* _is_zerotensor
        _version _print record_stream requires_grad retain_grad retains_grad output_nr can_cast result_type
        promote_types qscheme q_* dense_dim sparse_dim _dim* _nnz _debug_has_internal_overlap
        _has_compatible_shallow_copy_type _has_same_storage_numel _shape_as_tensor _fused_sdp_choice
        cudnn_is_acceptable _use_cudnn_* _use_miopen_ctc_loss _nnpack_available _cufft_* _validate_*
        _propagate_xla_data _backward data set_data _make_dep_token get_gradients _linalg_check_errors item
        _local_scalar_dense align_tensors _test_* _nested_tensor_size _nested_tensor_strides
        _nested_tensor_storage_offsets _nested_get_max_seqlen _nested_get_min_seqlen _nested_get_ragged_idx
        _nested_get_jagged_dummy _nested_compute_contiguous_strides_offsets _cslt_sparse_mm_search _foobar""",
    "View": """
        view view_as view_as_real view_as_complex _unsafe_view _reshape_alias as_strided alias detach permute
        transpose swapaxes swapdims t numpy_T mT mH matrix_H adjoint movedim moveaxis expand expand_as
        broadcast_to broadcast_tensors squeeze unsqueeze select slice narrow split split_with_sizes
        unsafe_split unsafe_split_with_sizes chunk unsafe_chunk tensor_split hsplit vsplit dsplit unbind
        unfold diagonal linalg_diagonal real imag _conj conj _neg_view flatten unflatten ravel atleast_*
        meshgrid set resize resize_as _resize_output _reshape_from_tensor positive lift lift_fresh rename
        refine_names align_to align_as _fw_primal _make_dual _unpack_dual _add_batch_dim _remove_batch_dim
        values indices _values _indices crow_indices col_indices ccol_indices row_indices _coalesced
        resolve_conj resolve_neg slice_inverse _mkldnn_reshape _mkldnn_transpose _nested_view_from_buffer
        _nested_view_from_jagged _nested_get_values _nested_get_offsets _nested_get_lengths reshape reshape_as
        contiguous unflatten_dense_tensors _sparse_broadcast_to _lazy_clone""",
    "Allocation": """
        empty empty_like empty_strided empty_permuted new_empty new_empty_strided empty_quantized
        _empty_affine_quantized _empty_per_channel_affine_quantized from_file""",
    # Values that depend on no other tensor's data.
    "Fill": """
        zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full fill zero _foreach_zero
        fill_diagonal eye arange range linspace logspace scalar_tensor tril_indices triu_indices
        _efficientzerotensor _new_zeros_with_same_feature_meta _dim_arange bartlett_window blackman_window
        hamming_window hann_window kaiser_window fft_fftfreq fft_rfftfreq""",
    "Cast": """
        to _to_copy type_as _cast_* _autocast_to_full_precision _autocast_to_reduced_precision chalf _to_cpu
        int_repr _saturate_weight_to_fp16""",
    "Copy": """
        clone copy _copy_from _copy_from_and_resize _foreach_copy lift_fresh_copy repeat tile flip fliplr
        flipud roll rot90 pin_memory _pin_memory constant_pad_nd pixel_shuffle pixel_unshuffle channel_shuffle
        native_channel_shuffle _reshape_copy slice_scatter select_scatter diagonal_scatter as_strided_scatter
        fft_fftshift fft_ifftshift diag_embed diagflat diag block_diag cartesian_prod combinations pad
        _pad_enum _pad_circular pad_sequence repeat_interleave alias_copy as_strided_copy detach_copy
        diagonal_copy expand_copy narrow_copy permute_copy select_copy slice_copy split_copy
        split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy
        view_copy view_as_real_copy view_as_complex_copy values_copy indices_copy crow_indices_copy
        col_indices_copy ccol_indices_copy row_indices_copy _conj_copy _neg_view_copy _fw_primal_copy
        _make_dual_copy _reshape_alias_copy _values_copy _indices_copy _nested_view_from_buffer_copy
        _nested_view_from_jagged_copy _nested_get_values_copy _sparse_broadcast_to_copy select_backward
        slice_backward diagonal_backward""",
    "Concatenation": "cat concat concatenate stack _stack hstack vstack dstack column_stack row_stack "
    "_chunk_cat flatten_dense_tensors",
    "Random": """
        rand rand_like randn randn_like randint randint_like randperm random normal normal_functional uniform
        bernoulli exponential cauchy geometric log_normal poisson binomial multinomial _standard_gamma
        _sample_dirichlet dropout native_dropout alpha_dropout feature_dropout feature_alpha_dropout
        _fused_dropout _fill_mem_eff_dropout_mask _cudnn_init_dropout_state _sobol_engine_* rrelu
        rrelu_with_noise rrelu_with_noise_functional""",
    "Pointwise": """
        abs absolute acos acosh add addcdiv addcmul addr angle arccos arccosh arcsin arcsinh arctan arctan2
        arctanh asin asinh atan atan2 atanh bitwise_* __and__ __iand__ __ilshift__ __ior__ __irshift__
        __ixor__ __lshift__ __or__ __rshift__ __xor__ ceil celu clamp clamp_max clamp_min clip complex
        conj_physical _conj_physical copysign cos cosh deg2rad digamma div divide elu eq erf erfc erfinv exp
        exp2 expm1 fix float_power floor floor_divide fmax fmin fmod frac frexp gcd ge gelu glu greater
        greater_equal gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 igamma igammac isclose
        isfinite isinf isnan isneginf isposinf isreal lcm ldexp le leaky_relu lerp less less_equal lgamma log
        log10 log1p log2 log_sigmoid log_sigmoid_forward logaddexp logaddexp2 logical_* logit lt masked_fill
        maximum max.other max.out minimum min.other min.out mish mul multiply mvlgamma nan_to_num ne neg
        negative nextafter not_equal polar polygamma pow prelu _prelu_kernel rad2deg reciprocal relu relu6
        remainder round rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink
        special_* sqrt square sub subtract tan tanh threshold tril triu true_divide trunc where xlogy
        _add_relu _masked_scale outer ger kron cross linalg_cross diff _foreach_* glu_jvp glu_backward_jvp
        quantize_* fake_quantize_* _fake_quantize_* dequantize _make_per_* affine_grid_generator
        cudnn_affine_grid_generator vander linalg_vander gradient linspace.Tensor_Tensor
        linspace.Tensor_Tensor_out linspace.Tensor_Scalar linspace.Tensor_Scalar_out linspace.Scalar_Tensor
        linspace.Scalar_Tensor_out logspace.Tensor_Tensor logspace.Tensor_Tensor_out logspace.Tensor_Scalar
        logspace.Tensor_Scalar_out logspace.Scalar_Tensor logspace.Scalar_Tensor_out _standard_gamma_grad
        _dirichlet_grad _rowwise_prune _amp_update_scale _amp_foreach_non_finite_check_and_unscale
        _fused_adagrad _fused_adam _fused_adamw _fused_sgd infinitely_differentiable_gelu_backward
        _transform_bias_rescale_qkv _spdiags""",
    # Losses are reductions unless the result is as large as the input (reduction="none"): op_class.cpp looks.
    "Loss": """
        binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss huber_loss
        kl_div soft_margin_loss hinge_embedding_loss margin_ranking_loss poisson_nll_loss""",
    "Reduction": """
        all any amax amin aminmax _aminmax argmax argmin max min sum nansum mean nanmean prod std std_mean var
        var_mean logsumexp special_logsumexp norm frobenius_norm nuclear_norm linalg_norm linalg_vector_norm
        linalg_matrix_norm linalg__powsum _foreach_norm _foreach_powsum _foreach_max dist count_nonzero trace
        sum_to_size allclose equal _is_all_true _is_any_true pairwise_distance cosine_similarity
        cosine_embedding_loss triplet_margin_loss cross_entropy_loss nll_loss nll_loss2d nll_loss_nd
        nll_loss_forward nll_loss2d_forward multi_margin_loss multilabel_margin_loss
        multilabel_margin_loss_forward ctc_loss _ctc_loss _cudnn_ctc_loss miopen_ctc_loss pdist _pdist_forward
        trapezoid trapz histc histogram histogramdd _histogramdd_* bincount scatter_add scatter_reduce
        scatter.reduce scatter.reduce_out scatter.value_reduce scatter.value_reduce_out index_add index_reduce
        segment_reduce _segment_reduce_backward embedding_bag _embedding_bag _embedding_bag_forward_only
        col2im hash_tensor native_norm cov corrcoef norm_except_dim value_selecting_reduction_backward
        fused_moving_avg_obs_fake_quant _fused_moving_avg_obs_fq_helper
        _fused_moving_avg_obs_fq_helper_functional unfold_backward masked_scatter_backward
        index_select_backward embedding_backward embedding_dense_backward embedding_sparse_backward
        _embedding_bag_*backward gather_backward reflection_pad*_backward replication_pad*_backward
        _unsafe_masked_index_put_accumulate choose_qparams_optimized _choose_qparams_per_tensor
        quantize_per_tensor_dynamic""",
    "Scan": "cumsum cumprod cummax cummin _cummax_helper _cummin_helper logcumsumexp _logcumsumexp "
    "cumulative_trapezoid cummaxmin_backward cumprod_backward",
    "Contraction": """
        mm bmm matmul linalg_matmul addmm _addmm_activation addmv addbmm baddbmm mv dot vdot inner
        linalg_vecdot linear bilinear _trilinear einsum tensordot chain_matmul linalg_multi_dot matrix_power
        linalg_matrix_power _int_mm _scaled_mm _scaled_mm_v2 _grouped_mm _scaled_grouped_mm
        _scaled_grouped_mm_v2 _weight_int4pack_mm* _weight_int8pack_mm _dyn_quant_matmul_4bit
        _mixed_dtypes_linear cdist _cdist_forward mkldnn_linear fbgemm_linear_* _wrapped_*
        _convert_weight_to_int4pack* _dyn_quant_pack_4bit_weight fbgemm_pack_* matrix_exp linalg_matrix_exp
        _euclidean_dist _compute_linear_combination _cslt_sparse_mm smm sspaddmm hspmm""",
    "Convolution": """
        conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
        _convolution _convolution_mode convolution_overrideable _conv_depthwise2d conv_depthwise3d
        cudnn_convolution* miopen_convolution* miopen_depthwise_convolution mkldnn_convolution
        _mps_convolution* mps_convolution* slow_conv* _slow_conv2d_forward thnn_conv2d
        _nnpack_spatial_convolution mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight
        _convolution_double_backward""",
    "Attention": """
        scaled_dot_product_attention _scaled_dot_product_* _flash_attention_forward
        _efficient_attention_forward _cudnn_attention_forward _native_multi_head_attention
        _transformer_encoder_layer_fwd _triton_* _flash_attention_backward _efficient_attention_backward
        _cudnn_attention_backward""",
    "Normalisation": """
        softmax log_softmax special_softmax special_log_softmax _softmax _log_softmax _safe_softmax
        _masked_softmax layer_norm native_layer_norm rms_norm _fused_rms_norm group_norm native_group_norm
        batch_norm native_batch_norm _native_batch_norm_* _batch_norm_* cudnn_batch_norm miopen_batch_norm
        batch_norm_* instance_norm quantized_batch_norm renorm embedding_renorm _weight_norm*
        _nested_tensor_softmax_with_shape _softmax_backward_data _log_softmax_backward_data""",
    "Pooling": """
        max_pool* avg_pool* adaptive_*_pool* _adaptive_*_pool* fractional_max_pool* max_unpool* mkldnn_*pool*
        quantized_max_pool* upsample_* _upsample_* grid_sampler* _grid_sampler_2d_cpu_fallback
        cudnn_grid_sampler""",
    "Recurrent": """
        lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell _cudnn_rnn miopen_rnn
        mkldnn_rnn_layer _lstm_mps _thnn_fused_lstm_cell _thnn_fused_gru_cell quantized_lstm quantized_gru
        quantized_*_cell _thnn_differentiable_* _thnn_fused_lstm_cell_backward_impl lstm_mps_backward
        _cudnn_rnn_flatten_weight""",
    "Indexing": """
        index index_select index_copy index_fill index_put _index_put_impl _unsafe_index _unsafe_index_put
        _unsafe_masked_index gather scatter take take_along_dim put embedding masked_select masked_scatter
        reflection_pad* replication_pad* im2col one_hot nonzero nonzero_numpy nonzero_static argwhere
        _pack_padded_sequence _pad_packed_sequence searchsorted bucketize isin _padded_dense_to_jagged_forward
        _jagged_to_padded_dense_forward nested_to_padded_tensor to_padded_tensor trace_backward
        repeat_interleave.Tensor repeat_interleave.Tensor_out""",
    "Sort": """
        sort argsort msort topk kthvalue median nanmedian mode quantile nanquantile unique_dim
        unique_consecutive unique_dim_consecutive _unique _unique2""",
    # Compute that is none of the above. An operator that no list knows counts the same.
    "Other": """
        fft_* _fft_* stft istft linalg_* _linalg_* cholesky* _cholesky_solve_helper det logdet slogdet inverse
        pinverse lu_* _lu_with_info qr geqrf orgqr ormqr svd triangular_solve to_sparse* _to_sparse* to_dense
        _to_dense to_mkldnn sparse_* _sparse_* copy_sparse_to_sparse resize_as_sparse _coalesce coalesce
        sparse_mask _nested_* _spsolve _cslt_compress _convert_indices_* _gather_sparse_backward
        to_mkldnn_backward to_dense_backward""",
}

# A backward that no list names is of its forward's class.
WRITES_WITHOUT_SAYING = {
    # running_mean, running_var, where the call trains: the condition is the argument at position 5
    "aten::batch_norm": "3 running_mean,4 running_var?5",
    "aten::native_batch_norm": "3 running_mean,4 running_var?5",
    "aten::instance_norm": "3 running_mean,4 running_var?5",
    "aten::cudnn_batch_norm": "3 running_mean,4 running_var?5",
    "aten::miopen_batch_norm": "3 running_mean,4 running_var?5",
    "aten::_batch_norm_impl_index": "3 running_mean,4 running_var?5",
    "aten::batch_norm_gather_stats": "3 running_mean,4 running_var",
    "aten::batch_norm_gather_stats_with_counts": "3 running_mean,4 running_var",
    "aten::batch_norm_update_stats": "1 running_mean,2 running_var",
    "aten::_no_grad_embedding_renorm_": "0 weight",
    "aten::embedding_renorm_": "0 self",
}

# Operators whose names have no leading underscore, and which a replay nevertheless does not run: other back
# ends' and sparse, quantised and nested tensors', questions, those that reach files or a tensor's insides,
# and a few that trust their caller. A hostile trace may give any other any arguments. (Of those with an
# underscore, allowed_ops.cpp lists what is run.)
NOT_REPLAYED = """
    from_file pin_memory record_stream data set_data set resize* get_gradients retain_grad
    rename refine_names align_*
    quantize* dequantize fake_quantize_* fused_moving_avg_* choose_qparams_* int_repr empty_quantized q_*
    qscheme fbgemm_* *sparse* coalesce hspmm sspaddmm smm dense_dim to_dense* indices* values* crow_indices*
    col_indices* ccol_indices* row_indices* nested_* to_padded_tensor to_mkldnn*
    cudnn_* miopen_* mkldnn_* mps_* lstm_mps_* is_vulkan_available
    convolution_overrideable convolution_backward_overrideable slow_conv3d* slow_conv_dilated* thnn_conv2d
    conv_depthwise3d can_cast promote_types result_type sym_* size stride is_coalesced is_complex is_conj
    is_distributed is_floating_point is_inference is_leaf is_neg is_pinned is_same_size is_set_to is_signed
    output_nr requires_grad retains_grad batch_norm_* rrelu_with_noise_backward segment_reduce linear_backward
    matmul_backward max_pool2d_backward unflatten_dense_tensors flatten_dense_tensors lift hash_tensor
    slice_inverse linalg_ldl_solve"""

NO_DATA = (
    "aten::record_stream",
    "aten::retain_grad",
    "aten::set_data",
)  # annotated, but no element is written

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/nereid/trace/op_table.inc"
ALLOWED = ROOT / "src/nereid/trace/allowed_ops.inc"


def base_name(name):
    if name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    return name


def dispatcher_names():
    """name -> set of overloads, of every aten operator."""
    names = {}
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("aten::"):
            name, _, overload = full[6:].partition(".")
            names.setdefault(base_name(name), set()).add(overload)
    return names


def classify(names):
    exact, patterns = {}, []
    for klass, text in CLASSES.items():
        for name in text.split():
            if "*" in name:
                patterns.append((name, klass))
            elif exact.setdefault(name, klass) != klass:
                raise SystemExit(f"{name} is in two lists: {exact[name]} and {klass}")
    patterns.sort(key=lambda p: -len(p[0]))
    matched = set()

    def look(name):
        if name in exact:
            return exact[name]
        for pattern, klass in patterns:
            if fnmatch.fnmatchcase(name, pattern):
                matched.add(pattern)
                return klass
        return None

    table, missing = {}, []
    for name in sorted(names):
        klass = look(name)
        if klass is None and "_backward" in name:
            klass = look(name.split("_backward")[0]) or look(name.split("_backward")[0] + "_forward")
        if klass is None and name.endswith("_with_indices"):
            klass = look(name[: -len("_with_indices")])
        if klass is None:
            missing.append(name)
        else:
            table[name] = klass
    for name, klass in exact.items():
        stem = name.partition(".")[0]
        if stem not in names:
            raise SystemExit(f"{name} is listed as {klass}, but this torch has no such operator")
        if "." in name:
            table[name] = klass
    for pattern, klass in patterns:
        if pattern not in matched and not any(fnmatch.fnmatchcase(n, pattern) for n in exact):
            raise SystemExit(f"{pattern} is listed as {klass}, but matches nothing")
    if missing:
        raise SystemExit("operators that no list names: " + " ".join(missing))
    return table


def written():
    rows = dict(WRITES_WITHOUT_SAYING)
    named = set()
    dispatched = set(torch._C._dispatch_get_all_op_names())
    for schema in torch._C._jit_get_all_schemas():
        full = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        if not schema.name.startswith("aten::") or full not in dispatched or schema.name in NO_DATA:
            continue
        writes = [(i, a) for i, a in enumerate(schema.arguments) if a.alias_info and a.alias_info.is_write]
        named.update(a.name for _, a in writes if a.kwarg_only)
        in_place = schema.name.endswith("_") and not schema.name.endswith("__")
        positional = [(i, a.name) for i, a in writes if not a.kwarg_only]
        if positional and not (in_place and positional == [(0, schema.arguments[0].name)]):
            rows[full] = ",".join(f"{i} {name}" for i, name in positional)
        if in_place and not positional and full not in rows:
            raise SystemExit(f"{full} ends in _ and writes nothing: say so in this script")
    return rows, named


def seeded():
    """Operators that PyTorch says draw from a generator."""
    found = set()
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("aten::"):
            name, _, overload = full[6:].partition(".")
            op = getattr(getattr(torch.ops.aten, name, None), overload or "default", None)
            if op is not None and torch.Tag.nondeterministic_seeded in op.tags:
                found.add(base_name(name))
    return found


def tags_agree(table):
    """PyTorch's own tags, where it has them, must not contradict the lists."""
    allowed = {
        "pointwise": {
            "Pointwise",
            "Fill",
            "Cast",
            "Copy",
            "Random",
            "Loss",
            "Indexing",
            "View",
            "Contraction",
            "Normalisation",
        },
        "reduction": {"Reduction", "Normalisation", "Loss", "Sort"},
        "view_copy": {"Copy"},
    }
    wrong = []
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::"):
            continue
        name, _, overload = full[6:].partition(".")
        try:
            op = getattr(getattr(torch.ops.aten, name), overload or "default")
        except AttributeError:
            continue
        key = base_name(name)
        klass = table.get(key + "." + overload, table[key])
        for tag in op.tags:
            if (
                tag.name in allowed
                and klass not in allowed[tag.name]
                and "backward" not in name
                and name != "equal"
                and not name.startswith("_test")
            ):
                wrong.append(f"{full} is tagged {tag.name} by PyTorch and listed as {klass}")
    if wrong:
        raise SystemExit("\n".join(wrong))


def render():
    table = classify(dispatcher_names())
    tags_agree(table)
    rows, named = written()
    lines = [
        "// Written by tools/op_table.py; do not edit. clang-format off",
        f"// torch {torch.__version__.split('+')[0]}: {len(table)} names.",
        "",
        "constexpr OpRow kOps[] = {",
    ]
    lines += [f'    {{"{name}", Listed::k{table[name]}}},' for name in sorted(table)]
    lines += [
        "};",
        "",
        "// Positions and names of written arguments, where the rules in access.cpp do not give them.",
        "constexpr WriteRow kWrites[] = {",
    ]
    lines += [f'    {{"{name}", "{rows[name]}"}},' for name in sorted(rows)]
    lines += [
        "};",
        "",
        "// Names of keyword-only arguments that are written (out= and its kin).",
        "constexpr std::string_view kOutNames[] = {",
    ]
    lines += [f'    "{name}",' for name in sorted(named)]
    lines += [
        "};",
        "",
        "// Names of operators that draw from a generator (some only with certain arguments: access.cpp "
        "looks).",
        "constexpr std::string_view kSeeded[] = {",
    ]
    lines += [f'    "{name}",' for name in sorted(seeded())]
    lines += ["};", ""]
    return "\n".join(lines)


def replayed(table):
    """The public names, in-place forms as names of their own, that NOT_REPLAYED leaves: those without a
    leading underscore, Python's own (__and__) and the operators over lists."""
    patterns = NOT_REPLAYED.split()
    dispatched = {
        full[6:].partition(".")[0]
        for full in torch._C._dispatch_get_all_op_names()
        if full.startswith("aten::")
    }
    public = {name for name in dispatched if not name.startswith("_") or name.startswith(("__", "_foreach_"))}
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(base_name(name), pattern) for name in public):
            raise SystemExit(f"{pattern} is not to be replayed, but matches nothing")
    kept = {
        name
        for name in public
        if not any(fnmatch.fnmatchcase(base_name(name), pattern) for pattern in patterns)
    }
    unknown = [name for name in kept if base_name(name) not in table]
    if unknown:
        raise SystemExit("operators that no list names: " + " ".join(unknown))
    return kept


def render_allowed():
    names = replayed(classify(dispatcher_names()))
    lines = [
        "// Written by tools/op_table.py; do not edit. clang-format off",
        f"// torch {torch.__version__.split('+')[0]}: {len(names)} names.",
        "",
        "constexpr std::string_view kPublicAllowed[] = {",
    ]
    return "\n".join(lines + [f'    "{name}",' for name in sorted(names)] + ["};", ""])


def main():
    for target, text in ((TABLE, render()), (ALLOWED, render_allowed())):
        if "--check" not in sys.argv[1:]:
            target.write_text(text)
        elif target.read_text() != text:
            raise SystemExit(f"{target} is not what tools/op_table.py writes; run it")
    if "--check" in sys.argv[1:]:
        print("the operator tables are up to date")


if __name__ == "__main__":
    main()
