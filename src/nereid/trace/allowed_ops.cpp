#include "nereid/trace/allowed_ops.h"

#include <algorithm>
#include <array>

namespace nereid::trace {
namespace {

using namespace std::string_view_literals;

// An operator with a leading underscore is PyTorch's own affair and often trusts its caller, so it has to be
// here.
constexpr std::array kPrivateAllowed = {
    "_adaptive_avg_pool2d"sv,
    "_adaptive_avg_pool2d_backward"sv,
    "_adaptive_avg_pool3d"sv,
    "_adaptive_avg_pool3d_backward"sv,
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
    "_cdist_backward"sv,
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
    "_fused_rms_norm_backward"sv,
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
    "_log_softmax_backward_data"sv,
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
    "_prelu_kernel_backward"sv,
    "_reshape_alias"sv,
    "_reshape_copy"sv,
    "_safe_softmax"sv,
    "_scaled_dot_product_attention_math"sv,
    "_scaled_dot_product_cudnn_attention"sv,
    "_scaled_dot_product_efficient_attention"sv,
    "_scaled_dot_product_flash_attention"sv,
    "_scaled_dot_product_flash_attention_for_cpu"sv,
    "_scaled_mm"sv,
    "_shape_as_tensor"sv,
    "_softmax"sv,
    "_softmax_backward_data"sv,
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
    "_weight_norm_interface_backward"sv,
};

// kPublicAllowed, of the other names: tools/op_table.py has the list of those that are left out.
#include "nereid/trace/allowed_ops.inc"
static_assert(std::ranges::is_sorted(kPrivateAllowed) && std::ranges::is_sorted(kPublicAllowed));

}  // namespace

bool is_allowed(std::string_view name) {
  return std::ranges::binary_search(kPublicAllowed, name) ||
         std::ranges::binary_search(kPrivateAllowed, name);
}

std::vector<std::string_view> allowed_names() {
  std::vector<std::string_view> names(std::begin(kPublicAllowed), std::end(kPublicAllowed));
  names.insert(names.end(), kPrivateAllowed.begin(), kPrivateAllowed.end());
  return names;
}

}  // namespace nereid::trace
