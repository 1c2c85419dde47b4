"""Everything of Triton and PyTorch that the tracer promises, item by item, and the case that shows it.

Triton: an honest candidate (tests/honest, where `nereid verify` judges it too) and what its trace must hold.
PyTorch: cases of layers.py and functions.py, which tests/replay/bit_identity.py compares with eager to the
last bit, and the operators that their traces must hold. An item whose case goes, or no longer does what the
item says, fails here.
"""

import json
import re
import unittest

import test_tracer
import test_triton
from functions import FUNCTIONS
from identity import count_inputs, source_of, trace
from layers import LAYERS

from nereid._tracer.command import reference_inputs

HONEST = test_tracer.__file__.rsplit("/", 2)[0] + "/honest/"

# item: (honest candidate, words of its source, a word of one of its kernels' TTIR)
TRITON = {
    "@triton.jit": ("relu_one_kernel", ["@triton.jit"], "tt.func public"),
    "nested jit calls": ("cat_tanh_views", ["@triton.jit"], "tt.func public"),
    "noinline": ("gelu_libdevice_nested", ["noinline=True"], "tt.call"),
    "@triton.heuristics": ("add_relu_heuristics", ["@triton.heuristics"], "tt.store"),
    "@triton.autotune": ("matmul_autotuned", ["@triton.autotune", "key="], "tt.dot"),
    "pruning of configurations": ("scale_add_autotuned_pruned", ["early_config_prune"], "tt.store"),
    "triton.cdiv": ("relu_one_kernel", ["triton.cdiv"], "tt.store"),
    "triton.next_power_of_2": ("argmax_with_indices", ["triton.next_power_of_2"], "tt.reduce"),
    "grids as lambdas": ("bmm_three_axes", ["lambda"], "tt.dot"),
    "constexpr": ("softmax_one_row", ["tl.constexpr"], "tt.reduce"),
    "tuples": ("add_relu_tuple_arguments", [], "tt.store"),
    "tl.static_range": ("conv1d_direct", ["tl.static_range"], "tt.store"),
    "block pointers": ("matmul_block_pointers", ["tl.make_block_ptr"], "tt.dot"),
    "tensor descriptors of the host": ("matmul_host_descriptors", ["TensorDescriptor"], "tt.descriptor_load"),
    "tensor descriptors of the device": (
        "matmul_device_descriptors",
        ["tl.make_tensor_descriptor"],
        "tt.make_tensor_descriptor",
    ),
    "atomics": ("cross_entropy_atomic", ["tl.atomic_add"], "tt.atomic_rmw"),
    "scans": ("linear_scan_associative", ["tl.associative_scan"], "tt.scan"),
    "tl.sort": ("sort_rows", ["tl.sort"], "arith.xori"),
    "tl.histogram": ("histogram_builtin", ["tl.histogram"], "tt.histogram"),
    "tl.cumsum": ("cumsum_builtin", ["tl.cumsum"], "tt.scan"),
    "tl.rand": ("dropout_eval_run_time_flag", ["tl.rand"], "mul"),
    "libdevice": ("rnn_one_kernel", ["libdevice"], "__nv_tanhf"),
    "fp8": ("fp8_round_trip_casts", ["float8"], "f8E"),
    "kernel.warmup": ("add_relu_warmup", [".warmup("], "tt.store"),
    "kernel.run": ("add_relu_kernel_run", [".run("], "tt.store"),
    "torch.library.triton_op": ("relu_triton_op", ["triton_op", "wrap_triton"], "tt.store"),
    "torch.library.custom_op": ("relu_custom_op", ["custom_op"], "tt.store"),
    "torch.autograd.Function": ("relu_autograd_function", ["torch.autograd.Function"], "tt.store"),
    "torch.cuda.device contexts": ("add_relu_device_context", ["torch.cuda.device("], "tt.store"),
    "device-property queries": ("relu_persistent", ["multi_processor_count"], "scf.for"),
}

# item: {case: operators of its trace}
TORCH = {
    **{f"convolution {d}d": {f"Conv{d}d": ["convolution"], f"Conv{d}d_groups": ["convolution"],
        f"Conv{d}d_same": ["convolution"]} for d in (1, 2, 3)},
    **{f"transposed convolution {d}d": {f"ConvTranspose{d}d": ["convolution"],
        f"ConvTranspose{d}d_groups": ["convolution"]} for d in (1, 2, 3)},
    "LSTM, packed and not": {"LSTM": ["lstm"], "LSTM_packed": ["_pack_padded_sequence", "lstm"],
        "LSTM_packed_unsorted": ["lstm"]},
    "GRU, packed and not": {"GRU": ["gru"], "GRU_packed": ["_pack_padded_sequence", "gru"]},
    "RNN, packed and not": {"RNN": ["rnn_tanh"], "RNN_relu": ["rnn_relu"],
        "RNN_packed": ["_pack_padded_sequence", "rnn_tanh"]},
    "scaled_dot_product_attention": {"sdpa": ["scaled_dot_product_attention"],
        "sdpa_causal": ["scaled_dot_product_attention"], "sdpa_gqa": ["scaled_dot_product_attention"]},
    "MultiheadAttention": {"MultiheadAttention": ["baddbmm|bmm"],
        "MultiheadAttention_eval": ["_native_multi_head_attention"],
        "MultiheadAttention_masks": ["baddbmm|bmm"]},
    "Transformer layers": {"TransformerEncoderLayer": ["linear", "native_layer_norm"],
        "TransformerEncoder_eval": ["_transformer_encoder_layer_fwd"],
                           "TransformerEncoder_padding": ["_transformer_encoder_layer_fwd", "masked_fill"],
                           "TransformerDecoderLayer": ["linear"], "Transformer": ["linear"]},
    "norms in train mode": {"BatchNorm2d": ["batch_norm"], "InstanceNorm2d_stats": ["instance_norm"],
        "LayerNorm": ["native_layer_norm"], "GroupNorm": ["native_group_norm"],
                            "RMSNorm": ["rms_norm"]},
    "norms in eval mode": {"BatchNorm2d_eval": ["batch_norm"],
        "InstanceNorm2d_stats_eval": ["instance_norm"]},
    "embeddings": {"Embedding": ["embedding"], "EmbeddingBag_mean": ["_embedding_bag"],
        "EmbeddingBag_offsets": ["_embedding_bag"]},
    "pooling": {"MaxPool2d": ["max_pool2d_with_indices"], "AvgPool3d": ["avg_pool3d"],
        "AdaptiveAvgPool2d": ["_adaptive_avg_pool2d"], "FractionalMaxPool2d": ["fractional_max_pool2d"]},
    "einsum": {"einsum": ["bmm"]},
    "indexing": {"indexing": ["index", "gather", "index_select"],
        "index_writes": ["index_put_", "scatter_", "masked_fill_"], "masked_select": ["index"]},
    "losses": {"CrossEntropyLoss": ["_log_softmax|cross_entropy_loss"], "MSELoss": ["mse_loss"],
        "CTCLoss": ["ctc_loss"], "KLDivLoss": ["xlogy|kl_div|mul"],
               "TripletMarginLoss": ["norm|linalg_vector_norm|pairwise_distance"]},
    "torch.func": {"func_grad": ["cos"], "func_vmap": ["mul"], "func_jacobian": ["cos"], "func_jvp": ["exp"],
        "func_call": ["linear|addmm"]},
    "torch.no_grad": {"no_grad": ["linear|addmm"]},
    "torch.compile": {"compiled": ["linear|addmm", "relu"]},
    "buffers": {"stateful": ["add_"], "constants": ["add"], "rotary": ["cos"]},
    "random operators": {"random_in_forward": ["randn", "rand_like", "randint", "bernoulli", "randperm",
        "multinomial"], "Dropout": ["dropout"], "manual_seed": ["nereid::manual_seed"],
                         "generators": ["randn"], "fork_rng": ["nereid::save_generator",
                             "nereid::restore_generator"]},
    "views and aliasing": {"views": ["transpose|t", "permute", "as_strided"], "same_output_twice": ["add"]},
    "in-place writes": {"inplace_views": ["add_", "mul_", "copy_"], "input_returned": ["add_"]},
    "outputs of every kind": {"python_outputs": ["mul"], "named_tuple_and_dataclass": ["add"]},
    "host code that reads known values": {"known_values": ["index|slice"], "known_constants": ["mul"],
        "offsets_loop": ["sum"]},
}  # fmt: skip

# Items for which eager on the CPU has no other side: the tests that show them.
ELSEWHERE = {
    "autocast": (test_tracer.Cuda, "test_autocast_casts_are_recorded"),
    "module-level tensors": (test_tracer.Phases, "test_tensors_made_at_import"),
    "floating-point data is Untraceable, with its line": (
        test_tracer.KnownValues,
        "test_floating_point_data_is_not_known",
    ),
    "all configurations kept": (test_triton.Autotuning, "test_every_configuration_is_an_alternative"),
    "keys of the autotuner": (test_triton.Autotuning, "test_a_configuration_is_chosen_once_for_a_key"),
    "every way to launch": (test_triton.Launches, "test_other_ways_to_launch"),
}

# The same module with its tensors put on the device in every way.
PLAIN = ("self.m = nn.Linear(3, 3)\nself.t = torch.ones(3)", "self.m(a) + self.t + torch.zeros(3)")
ON_CUDA = {
    ".cuda() of a module": ("self.m = nn.Linear(3, 3).cuda()\nself.t = torch.ones(3)", PLAIN[1]),
    ".to('cuda') of a module": ("self.m = nn.Linear(3, 3).to('cuda')\nself.t = torch.ones(3)", PLAIN[1]),
    ".to(device) of self": (PLAIN[0] + "\nself.to(torch.device('cuda:0'))", PLAIN[1]),
    ".cuda() of tensors": (
        "self.m = nn.Linear(3, 3)\nself.t = torch.ones(3).cuda()",
        "self.m(a.cuda()) + self.t + torch.zeros(3).cuda()",
    ),
    ".to('cuda') of tensors": (
        "self.m = nn.Linear(3, 3)\nself.t = torch.ones(3).to('cuda')",
        "self.m(a.to('cuda:0')) + self.t + torch.zeros(3).to(a.device)",
    ),
    "device='cuda'": (
        "self.m = nn.Linear(3, 3, device='cuda')\nself.t = torch.ones(3, device='cuda')",
        "self.m(a) + self.t + torch.zeros(3, device=a.device)",
    ),
    "a default device": ("torch.set_default_device('cuda')\n" + PLAIN[0], PLAIN[1]),
    "a device context": ("with torch.device('cuda'):\n    " + PLAIN[0].replace("\n", "\n    "), PLAIN[1]),
}


def operators_of(document):
    return {
        step["call"].removeprefix("aten::").split(".")[0]
        for phase in document["phases"]
        for step in phase["steps"]
        if "call" in step
    }


class Surface(test_tracer.Case):
    def test_triton(self):
        references = {}
        for item, (name, words, in_kernel) in TRITON.items():
            with self.subTest(item):
                with open(HONEST + name + ".py") as file:
                    source = file.read()
                for word in words:
                    self.assertIn(word, source)
                path = HONEST + re.search(r"^reference:\s*(\S+)", source, re.M).group(1)
                if path not in references:
                    with open(path) as file:
                        references[path] = reference_inputs(trace(file.read(), "reference")["trace"])
                answer = trace(source, "candidate", "ModelNew", references[path])
                self.assertIn("trace", answer, json.dumps(answer)[:500])
                self.assertTrue(
                    any(in_kernel in kernel["ttir"] for kernel in answer["trace"]["kernels"]), in_kernel
                )

    def test_torch(self):
        tables = {**LAYERS, **FUNCTIONS}
        for item, cases in TORCH.items():
            for name, wanted in cases.items():
                with self.subTest(item, case=name):
                    init, forward, inputs = tables[name]
                    call = forward or "self.m(" + ", ".join("abcdefgh"[: count_inputs(inputs)]) + ")"
                    answer = trace(source_of(init, call, inputs), "case")
                    self.assertIn("trace", answer, json.dumps(answer)[:500])
                    found = operators_of(answer["trace"])
                    for words in wanted:
                        self.assertTrue(found & set(words.split("|")), f"{words} is not in {sorted(found)}")

    def test_wherever_cuda_stands(self):
        plain = test_tracer.calls(self.module(*PLAIN, "randn(2, 3)"))
        for item, (init, forward) in ON_CUDA.items():
            with self.subTest(item):
                answer = self.module(init, forward, "randn(2, 3)")
                self.assertEqual(plain, test_tracer.calls(answer))
                self.assertEqual(
                    {"cuda"}, {storage.get("device", "cuda") for storage in answer["trace"]["storages"]}
                )

    def test_elsewhere(self):
        for item, (where, name) in ELSEWHERE.items():
            self.assertTrue(callable(getattr(where, name, None)), item)


if __name__ == "__main__":
    unittest.main()
