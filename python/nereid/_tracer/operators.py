"""What the recorder must know about an operator: how it is recorded, what it writes, whether it draws random
numbers.

The recorder sits below autograd and autocast and above everything else, and sees operators as they were
called: composite ones too. A composite is taken apart and its parts recorded, unless what it becomes depends
on the device, the layout or on how the tensors are made: such a call is recorded whole, so that each replay
takes it apart in its own way.
"""

import enum

import torch
from torch._C import DispatchKey

from . import composites


class Kind(enum.IntEnum):
    QUERY = 0  # asks about metadata; leaves no step
    EXPAND = 1  # a composite: its parts are recorded
    RECORD = 2  # recorded as called
    COMPOSITE = 3  # recorded as called; its parts are only listed
    READ = 4  # answers with data
    CUSTOM = 5  # implemented in Python by the module itself: what it does is recorded


# Composites whose C++ looks at the device, at cuDNN or oneDNN, or at whether a tensor is a subclass, and
# thereby computes differently.
RECORDED_COMPOSITES = frozenset(
    """
    lstm.input lstm.data gru.input gru.data rnn_tanh.input rnn_tanh.data rnn_relu.input rnn_relu.data
    lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    batch_norm instance_norm rms_norm
    dropout dropout_ feature_dropout feature_dropout_ alpha_dropout alpha_dropout_ feature_alpha_dropout
    feature_alpha_dropout_ max_pool1d ctc_loss.IntList ctc_loss.Tensor grid_sampler log_sigmoid
    linalg_eigvalsh linalg_eigvals linalg_svdvals
    """.split()
)


def _softmax_widens(args, kwargs):
    """On CUDA a half is softmaxed into a float by one kernel, on the CPU it is cast first."""
    dtype = args[2] if len(args) > 2 else kwargs.get("dtype")
    return dtype is not None and args[0].dtype != dtype


def _linear_is_one_product(args, kwargs):
    """Otherwise its C++ chooses between mm and bmm by strides and by whether the weight requires a
    gradient."""
    return args[0].dim() <= 2 or args[0].is_contiguous()


def _attention_may_choose(args, kwargs):
    """Not where the module allows the plain mathematics alone."""
    cuda = torch.backends.cuda
    return cuda.flash_sdp_enabled() or cuda.mem_efficient_sdp_enabled() or cuda.cudnn_sdp_enabled()


# Composites that are recorded whole for some arguments alone, and else taken apart.
RECORDED_WHEN = {
    "softmax.int": _softmax_widens, "log_softmax.int": _softmax_widens, "linear": _linear_is_one_product,
    "scaled_dot_product_attention": _attention_may_choose,
}  # fmt: skip

# Operators that are recorded under another name: zeros without memory are forward-mode derivatives' own
# business.
RECORDED_AS = {"aten::_efficientzerotensor": "aten::zeros"}

READS = frozenset("item _local_scalar_dense is_nonzero equal allclose".split())
QUERIES = frozenset(
    """
    size.int size stride.int stride sym_size sym_size.int sym_stride sym_stride.int sym_numel
    sym_storage_offset dim numel is_contiguous is_contiguous.memory_format is_strides_like_format
    is_non_overlapping_and_dense sym_is_contiguous sym_is_contiguous.default
    is_same_size _has_compatible_shallow_copy_type is_floating_point is_complex is_signed is_inference
    is_pinned is_pinned.device is_coalesced _has_same_storage_numel _is_zerotensor is_conj is_neg _version
    output_nr is_leaf retains_grad result_type.Tensor result_type.Scalar can_cast promote_types is_neg is_conj
    _nested_tensor_size layout device is_set_to
    """.split()
)


# Operators whose results have no strides for a trace: FakeTensorMode takes some of them for strided ones.
UNTRACED_LAYOUTS = {
    "nested": ("_nested_tensor_from", "_nested_from"),
    "sparse": (
        "_to_sparse",
        "_sparse_coo_tensor",
        "_sparse_compressed",
        "sparse_coo_tensor",
        "sparse_compressed",
        "_sparse_csr",
        "_sparse_csc",
        "_sparse_bs",
    ),
}
ADVICE = {
    "nested": "pad the sequences and mask what was padded",
    "sparse": "keep the tensor dense, or its indices and values as two tensors",
    "named": "leave the names out (`rename(None)` where a tensor comes with them)",
}  # fmt: skip


class Operator:
    """Facts about one overload; made once, then looked up."""

    __slots__ = (
        "name",
        "recorded_name",
        "kind",
        "composite",
        "written_positions",
        "written_names",
        "random",
        "argument_names",
        "generator",
        "recorded_when",
        "shape",
        "parts",
        "by_value",
        "first_only",
        "takes_storage",
        "factory",
        "makes_dtype",
        "layout",
    )

    def __init__(self, func):
        namespace, short = func._schema.name.split("::", 1)
        overload = func._overloadname
        self.name = f"{namespace}::{short}" + ("" if overload == "default" else f".{overload}")
        self.recorded_name = RECORDED_AS.get(self.name, self.name)
        key = self.name.split("::", 1)[1]
        self.argument_names = [argument.name for argument in func._schema.arguments]
        writes = [
            (position, argument.name)
            for position, argument in enumerate(func._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        self.written_positions = tuple(position for position, _ in writes)
        self.written_names = tuple(name for _, name in writes)
        self.random = torch.Tag.nondeterministic_seeded in func.tags
        self.generator = "generator" in self.argument_names
        self.composite = None
        self.recorded_when = RECORDED_WHEN.get(key) if namespace == "aten" else None
        self.shape = composites.SHAPES.get(key) if namespace == "aten" else None
        self.parts = composites.PARTS.get(key, [])
        self.by_value = composites.sizes_by_value(self.name)
        self.factory = composites.FACTORIES.get(self.name)
        self.makes_dtype = any(
            argument.name == "dtype" and argument.kwarg_only for argument in func._schema.arguments
        )
        self.layout = next(
            (layout for layout, starts in UNTRACED_LAYOUTS.items() if key.startswith(starts)), None
        )
        if "name" in overload.lower():  # names, dim_DimnameList, from_names_out
            self.layout = "named"
        self.takes_storage = self.name in (
            "aten::set_.source_Storage",
            "aten::set_.source_Storage_storage_offset",
        )
        self.first_only = self.name in composites.FIRST_RESULT_ONLY
        self.kind = self._kind(func, namespace, key)
        if self.name == "aten::scaled_dot_product_attention":
            self.composite = composites.with_plain_attention(self.composite)

    def _kind(self, func, namespace, key):
        if namespace in ("prim", "profiler"):
            return Kind.QUERY
        if namespace == "aten" and key in READS:
            return Kind.READ
        if namespace == "aten" and key in QUERIES:
            return Kind.QUERY
        if self.by_value:
            return Kind.RECORD
        if namespace not in ("aten", "prims") and _implemented_in_python(func, namespace, key):
            self.composite = _python_implementation(func)
            return Kind.CUSTOM
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        if has_kernel(func.name(), "CompositeImplicitAutograd") and not has_kernel(
            func.name(), "ADInplaceOrView"
        ):
            self.composite = lambda *args, **kwargs: func._op_dk(
                DispatchKey.CompositeImplicitAutograd, *args, **kwargs
            )
            return (
                Kind.COMPOSITE
                if namespace == "aten" and key in RECORDED_COMPOSITES and self.recorded_when is None
                else Kind.EXPAND
            )
        return Kind.RECORD


def _implemented_in_python(func, namespace, key):
    return (
        any(
            f"{namespace}/{key}/{dispatch_key}" in torch.library._impls
            or f"{func._schema.name.replace('::', '/')}/{dispatch_key}" in torch.library._impls
            for dispatch_key in ("CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
        )
        or func._schema.name in _custom_op_names()
    )


def _custom_op_names():
    return {name for name in torch._library.custom_ops.OPDEFS}


def _python_implementation(func):
    for key in ("CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key):
            dispatch_key = getattr(DispatchKey, key)
            return lambda *args, **kwargs: func._op_dk(dispatch_key, *args, **kwargs)
    return func


_known = {}


def operator(func):
    found = _known.get(func)
    if found is None:
        found = _known[func] = Operator(func)
    return found
