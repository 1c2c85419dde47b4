// Every operator of this torch against the list, and what a list written by hand must never let in.
#include "nereid/trace/allowed_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace nereid::replay {
namespace {

using c10::TypeKind;

// aten's operators by base name, those that `is_allowed` lets in.
std::vector<c10::OperatorName> allowed_operators() {
  std::vector<c10::OperatorName> allowed;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames())
    if (name.name.starts_with("aten::") && trace::is_allowed(std::string_view(name.name).substr(6)))
      allowed.push_back(name);
  return allowed;
}

// The kinds of values in a type: those of Optional[List[int]] are Optional, List and int.
void kinds_in(const c10::Type& type, std::set<TypeKind>& kinds) {
  kinds.insert(type.kind());
  for (const auto& inner : type.containedTypes()) kinds_in(*inner, kinds);
}

// cmake/torch_start.cpp: kernels that no program runs are left out, those that one can run are there.
TEST(Registrations, AreOfKernelsThatProgramsRun) {
  using enum c10::DispatchKey;
  const auto with_kernels_for = [](c10::DispatchKey key) {
    auto& dispatcher = c10::Dispatcher::singleton();
    return std::ranges::count_if(dispatcher.getAllOpNames(), [&](const c10::OperatorName& name) {
      const auto op = dispatcher.findOp(name);
      return op && op->hasKernelForDispatchKey(key);
    });
  };
  for (const auto key : {Tracer, Functionalize, Meta, FuncTorchBatched, AutocastXPU})
    EXPECT_EQ(with_kernels_for(key), 0) << key;
  for (const auto key :
       {CPU, Autograd, ADInplaceOrView, CompositeImplicitAutograd, CompositeExplicitAutograd})
    EXPECT_GT(with_kernels_for(key), 700) << key;
  for (const auto key : {Conjugate, Negative, Named, AutocastCPU, QuantizedCPU, SparseCPU})
    EXPECT_GT(with_kernels_for(key), 70) << key;
}

TEST(AllowedOps, TakeTensorsNumbersAndWordsAlone) {
  const std::set kKnown = {
      TypeKind::TensorType,     TypeKind::OptionalType, TypeKind::ListType,         TypeKind::NumberType,
      TypeKind::IntType,        TypeKind::SymIntType,   TypeKind::FloatType,        TypeKind::SymFloatType,
      TypeKind::ScalarTypeType, TypeKind::LayoutType,   TypeKind::MemoryFormatType, TypeKind::BoolType,
      TypeKind::SymBoolType,    TypeKind::StringType,   TypeKind::DeviceObjType,
      TypeKind::GeneratorType,  // named in a trace, and made by the replay for the machine it is on
  };
  // Words that choose a rule, none of them a file's, a library's or a class's name.
  const std::set<std::string> kWords = {
      "UPLO",     "approximate",  "dim",       "dim0",          "dim1",     "dim2",
      "driver",   "end_dim",      "ord",       "equation",      "indexing", "interpolation",
      "mode",     "norm",         "names",     "out_dim",       "p",        "outdim",
      "pad_mode", "padding",      "reduce",    "rounding_mode", "side",     "start_dim",
      "dims",     "padding_side", "reduction", "assert_msg",    "api_name", "attribute"};
  const auto allowed = allowed_operators();
  EXPECT_GT(allowed.size(), 1500u);
  for (const auto& name : allowed) {
    const auto schema = c10::Dispatcher::singleton().findSchema(name);
    if (!schema || !schema->hasSchema()) continue;
    for (const auto& argument : schema->schema().arguments()) {
      std::set<TypeKind> kinds;
      kinds_in(*argument.real_type(), kinds);
      for (const auto kind : kinds)
        EXPECT_TRUE(kKnown.contains(kind))
            << name << "'s " << argument.name() << " is " << argument.real_type()->str();
      if (kinds.contains(TypeKind::StringType)) {
        EXPECT_TRUE(kWords.contains(argument.name())) << name << " takes the words " << argument.name();
      }
    }
    for (const auto& result : schema->schema().returns()) {
      std::set<TypeKind> kinds;
      kinds_in(*result.real_type(), kinds);
      for (const auto kind : kinds)
        EXPECT_TRUE(kKnown.contains(kind)) << name << " returns " << result.real_type()->str();
    }
  }
}

// A name that this torch does not have would let in what another torch calls so.
TEST(AllowedOps, AreOperatorsOfThisTorch) {
  std::set<std::string> names;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) names.insert(name.name);
  for (const auto name : trace::allowed_names())
    EXPECT_TRUE(names.contains("aten::" + std::string(name))) << name;
  for (const auto name : trace::allowed_names()) EXPECT_TRUE(trace::is_allowed(name)) << name;
}

TEST(AllowedOps, LeaveOutWhatReachesBeyondTensors) {
  for (const auto* name : {"from_file",
                           "set",
                           "set_",
                           "set_data",
                           "data",
                           "resize_",
                           "resize_as_sparse_",
                           "rename_",
                           "pin_memory",
                           "record_stream",
                           "retain_grad",
                           "requires_grad_",
                           "data_ptr",
                           "_backward",
                           "_record_function_enter",
                           "_foobar",
                           "_test_string_default",
                           "_test_optional_intlist",
                           "_cudnn_init_dropout_state",
                           "_cudnn_rnn",
                           "_pin_memory",
                           "_print",
                           "_make_dual",
                           "_make_dep_token",
                           "_copy_from",
                           "_load",
                           "_sobol_engine_draw",
                           "_nested_view_from_buffer",
                           "_sparse_coo_tensor_unsafe",
                           "_sparse_csr_tensor_unsafe",
                           "to_sparse",
                           "sparse_coo_tensor",
                           "sparse_resize_",
                           "copy_sparse_to_sparse_",
                           "embedding_sparse_backward",
                           "indices",
                           "values",
                           "_coalesced_",
                           "nested_to_padded_tensor",
                           "to_mkldnn",
                           "mkldnn_linear",
                           "mkldnn_rnn_layer",
                           "mkldnn_reorder_conv2d_weight",
                           "_mkldnn_reshape",
                           "cudnn_convolution",
                           "miopen_rnn",
                           "mps_convolution_backward",
                           "lstm_mps_backward",
                           "is_vulkan_available",
                           "quantize_per_tensor",
                           "quantized_lstm",
                           "dequantize",
                           "q_scale",
                           "empty_quantized",
                           "_empty_affine_quantized",
                           "fake_quantize_per_tensor_affine",
                           "fused_moving_avg_obs_fake_quant",
                           "fbgemm_pack_gemm_matrix_fp16",
                           "fbgemm_linear_int8_weight",
                           "_wrapped_quantized_linear_prepacked",
                           "_cslt_sparse_mm",
                           "_triton_multi_head_attention",
                           "_convert_weight_to_int4pack",
                           "_weight_int4pack_mm",
                           "_foreach_of_nothing",
                           "sym_size",
                           "sym_constrain_range",
                           "size",
                           "can_cast",
                           "promote_types",
                           "result_type",
                           "is_pinned",
                           "__class__",
                           "__getitem__",
                           "",
                           "_",
                           "add__",
                           "add.Tensor",
                           "aten::add"})
    EXPECT_FALSE(trace::is_allowed(name)) << name;
}

TEST(AllowedOps, LetInWhatModulesAreMadeOf) {
  for (const auto* name : {"add", "add_", "__and__", "_foreach_add_", "_softmax", "native_batch_norm",
                           "convolution", "convolution_backward", "native_layer_norm_backward",
                           "native_batch_norm_backward", "max_pool2d_with_indices_backward",
                           "nll_loss_backward", "embedding_dense_backward", "lift_fresh", "mT", "numpy_T"})
    EXPECT_TRUE(trace::is_allowed(name)) << name;
}

}  // namespace
}  // namespace nereid::replay
