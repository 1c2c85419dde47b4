#include "nereid/replay/worker/allowed_ops.h"

#include <algorithm>
#include <array>

namespace nereid::replay {
namespace {

using namespace std::string_view_literals;

// An operator with a leading underscore is PyTorch's own affair and often trusts its caller, so it has to be
// here.
constexpr std::array kPrivateAllowed = {
    "_adaptive_avg_pool2d"sv,
    "_adaptive_avg_pool3d"sv,
    "_add_relu"sv,
    "_add_relu_"sv,
    "_addmm_activation"sv,
    "_assert_async"sv,
    "_assert_tensor_metadata"sv,
    "_batch_norm_no_update"sv,
    "_batch_norm_with_update"sv,
    "_cast_Byte"sv,
    "_cast_Char"sv,
    "_cast_Double"sv,
    "_cast_Float"sv,
    "_cast_Half"sv,
    "_cast_Int"sv,
    "_cast_Long"sv,
    "_cast_Short"sv,
    "_cdist_forward"sv,
    "_chunk_cat"sv,
    "_conj"sv,
    "_conj_physical"sv,
    "_convolution"sv,
    "_convolution_mode"sv,
    "_ctc_loss"sv,
    "_dim_arange"sv,
    "_efficientzerotensor"sv,
    "_embedding_bag"sv,
    "_embedding_bag_forward_only"sv,
    "_euclidean_dist"sv,
    "_fft_c2c"sv,
    "_fft_c2r"sv,
    "_fft_r2c"sv,
    "_fused_rms_norm"sv,
    "_fused_sdp_choice"sv,
    "_grouped_mm"sv,
    "_index_put_impl_"sv,
    "_int_mm"sv,
    "_is_all_true"sv,
    "_is_any_true"sv,
    "_linalg_check_errors"sv,
    "_linalg_det"sv,
    "_linalg_eigh"sv,
    "_linalg_slogdet"sv,
    "_linalg_solve_ex"sv,
    "_linalg_svd"sv,
    "_local_scalar_dense"sv,
    "_log_softmax"sv,
    "_logcumsumexp"sv,
    "_native_batch_norm_legit"sv,
    "_native_batch_norm_legit_functional"sv,
    "_native_batch_norm_legit_no_training"sv,
    "_native_multi_head_attention"sv,
    "_neg_view"sv,
    "_pack_padded_sequence"sv,
    "_pad_circular"sv,
    "_pad_enum"sv,
    "_pad_packed_sequence"sv,
    "_pdist_forward"sv,
    "_prelu_kernel"sv,
    "_reshape_alias"sv,
    "_reshape_copy"sv,
    "_safe_softmax"sv,
    "_scaled_dot_product_attention_math"sv,
    "_scaled_dot_product_efficient_attention"sv,
    "_scaled_dot_product_flash_attention"sv,
    "_scaled_dot_product_flash_attention_for_cpu"sv,
    "_scaled_dot_product_cudnn_attention"sv,
    "_scaled_mm"sv,
    "_shape_as_tensor"sv,
    "_softmax"sv,
    "_sparse_softmax"sv,
    "_stack"sv,
    "_standard_gamma"sv,
    "_thnn_fused_gru_cell"sv,
    "_thnn_fused_lstm_cell"sv,
    "_to_copy"sv,
    "_transform_bias_rescale_qkv"sv,
    "_transformer_encoder_layer_fwd"sv,
    "_trilinear"sv,
    "_unique"sv,
    "_unique2"sv,
    "_unsafe_index"sv,
    "_unsafe_index_put"sv,
    "_unsafe_masked_index"sv,
    "_unsafe_view"sv,
    "_upsample_bicubic2d_aa"sv,
    "_upsample_bilinear2d_aa"sv,
    "_upsample_nearest_exact1d"sv,
    "_upsample_nearest_exact2d"sv,
    "_upsample_nearest_exact3d"sv,
    "_weight_norm"sv,
    "_weight_norm_interface"sv,
};

constexpr std::array kRefused = {
    "from_file"sv,
    "pin_memory"sv,
    "record_stream"sv,
    "data"sv,
    "set_data"sv,
    "result_type"sv,
    "rename"sv,
    "rename_"sv,
    "align_to"sv,
    "align_as"sv,
    "qscheme"sv,
    "int_repr"sv,
    "dequantize"sv,
    "fake_quantize_per_tensor_affine"sv,
    "resize_as_sparse_"sv,
    "copy_sparse_to_sparse_"sv,
    "ccol_indices"sv,
    "coalesce"sv,
    "segment_reduce"sv,
    "rrelu_with_noise_backward"sv,
    "retain_grad"sv,
    "requires_grad_"sv,
    "set_"sv,
};
constexpr std::array kRefusedPrefixes = {
    "sparse_"sv,          "to_sparse"sv,      "to_mkldnn"sv, "mkldnn_"sv, "cudnn_"sv,
    "miopen_"sv,          "fbgemm_"sv,        "quantize"sv,  "q_"sv,      "quantized_"sv,
    "to_padded_tensor"sv, "choose_qparams"sv, "nested_"sv,   "hspmm"sv,   "sspaddmm"sv,
};

}  // namespace

bool is_allowed(std::string_view name) {
  if (name.starts_with("__")) return true;  // __and__, __lshift__, ...: Python's operators
  if (name.starts_with("_foreach_")) return true;
  if (name.starts_with("_")) return std::ranges::find(kPrivateAllowed, name) != kPrivateAllowed.end();
  if (name.find("data_ptr") != name.npos) return false;
  if (std::ranges::find(kRefused, name) != kRefused.end()) return false;
  return std::ranges::none_of(kRefusedPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace nereid::replay
