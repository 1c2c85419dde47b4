#include "nereid/replay/cuda/kernel_image.h"

#include "nereid/base/json.h"

namespace nereid::replay::cuda {
namespace {

constexpr int64_t kMostShared = 1 << 20, kMostScratch = int64_t{1} << 30;

// Reads fields of a document that a process which saw hostile text wrote; the first thing wrong is kept.
class Fields {
 public:
  explicit Fields(const Json& document) : document_(document) {}

  int64_t integer(const char* name, int64_t low, int64_t high, int64_t otherwise) {
    const Json* field = find(name);
    return field == nullptr ? otherwise : in_range(*field, name, low, high);
  }
  bool flag(const char* name) {
    const Json* field = find(name);
    if (field == nullptr) return false;
    if (!field->is_boolean() && !field->is_number_integer()) fail(name, "a flag");
    return field->is_boolean() ? field->get<bool>()
                               : field->is_number_integer() && field->get<int64_t>() != 0;
  }
  std::string text(const char* name) {
    const Json* field = find(name);
    if (field == nullptr || !field->is_string()) {
      fail(name, "text");
      return {};
    }
    return field->get<std::string>();
  }
  const Json* list(const char* name) {
    const Json* field = find(name);
    if (field != nullptr && field->is_array()) return field;
    if (field != nullptr) fail(name, "a list");
    return nullptr;
  }
  // [bytes, align]
  std::pair<int64_t, int64_t> scratch(const char* name) {
    const Json* field = list(name);
    if (field == nullptr) return {0, 1};
    if (field->size() != 2) {
      fail(name, "[bytes, align]");
      return {0, 1};
    }
    return {in_range((*field)[0], name, 0, kMostScratch), in_range((*field)[1], name, 1, 1 << 20)};
  }
  int64_t in_range(const Json& field, const char* name, int64_t low, int64_t high) {
    if (field.is_number_integer())
      if (const int64_t value = field.get<int64_t>(); value >= low && value <= high) return value;
    fail(name, fmt::format("an integer in [{}, {}]", low, high));
    return low;
  }
  void fail(const char* name, std::string_view expected) {
    if (error.empty()) error = fmt::format("compiled kernel: \"{}\" must be {}", name, expected);
  }

  std::string error;

 private:
  const Json* find(const char* name) const {
    const auto found = document_.find(name);
    return found == document_.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& document_;
};

DescriptorMeta descriptor_from(const Json& document, std::string& error) {
  Fields fields(document);
  DescriptorMeta meta;
  meta.swizzle = static_cast<int>(fields.integer("swizzle", 0, 3, 0));
  meta.element_bytes = static_cast<int>(fields.integer("elem_size", 1, 8, 0));
  meta.element_type = static_cast<int>(fields.integer("elem_type", 0, 15, 0));
  meta.fp4_padded = fields.flag("fp4_padded");
  if (const Json* block = fields.list("block_size");
      block != nullptr && !block->empty() && block->size() <= 5)
    for (const Json& size : *block)
      meta.block.push_back(static_cast<uint32_t>(fields.in_range(size, "block_size", 1, 256)));
  else
    fields.fail("block_size", "a list of 1 to 5 sizes");
  if (error.empty()) error = fields.error;
  return meta;
}

}  // namespace

Json to_json(const KernelImage& image) {
  Json metas = Json::array();
  for (const DescriptorMeta& meta : image.descriptors)
    metas.push_back({{"swizzle", meta.swizzle},
                     {"elem_size", meta.element_bytes},
                     {"elem_type", meta.element_type},
                     {"block_size", meta.block},
                     {"fp4_padded", meta.fp4_padded}});
  return {{"cubin", base64_encode(image.cubin)},
          {"name", image.name},
          {"params", image.parameter_types},
          {"tensordesc_meta", std::move(metas)},
          {"shared", image.shared_bytes},
          {"num_warps", image.num_warps},
          {"num_ctas", image.num_ctas},
          {"global_scratch", {image.global_scratch_bytes, image.global_scratch_align}},
          {"profile_scratch", {image.profile_scratch_bytes, image.profile_scratch_align}},
          {"cooperative", image.cooperative},
          {"pdl", image.dependent_launch}};
}

Result<KernelImage> kernel_image_from_json(const Json& document) {
  if (!document.is_object()) return input_error("compiled kernel: must be an object");
  Fields fields(document);
  KernelImage image;
  image.name = fields.text("name");
  const std::string cubin = fields.text("cubin");
  if (const Json* types = fields.list("params"))
    for (const Json& type : *types) {
      if (!type.is_string()) return input_error("compiled kernel: \"params\" must be a list of types");
      image.parameter_types.push_back(type.get<std::string>());
    }
  else
    fields.fail("params", "a list of types");
  if (const Json* metas = fields.list("tensordesc_meta"))
    for (const Json& meta : *metas) image.descriptors.push_back(descriptor_from(meta, fields.error));
  image.shared_bytes = fields.integer("shared", 0, kMostShared, 0);
  image.num_warps = static_cast<int>(fields.integer("num_warps", 1, 32, 4));
  image.num_ctas = static_cast<int>(fields.integer("num_ctas", 1, 16, 1));
  std::tie(image.global_scratch_bytes, image.global_scratch_align) = fields.scratch("global_scratch");
  std::tie(image.profile_scratch_bytes, image.profile_scratch_align) = fields.scratch("profile_scratch");
  image.cooperative = fields.flag("cooperative");
  image.dependent_launch = fields.flag("pdl");
  if (!fields.error.empty()) return Error{fields.error, Blame::kInput};
  NEREID_TRY(image.cubin, base64_decode(cubin));
  return image;
}

}  // namespace nereid::replay::cuda
