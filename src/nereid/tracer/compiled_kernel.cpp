#include "nereid/tracer/compiled_kernel.h"

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"

namespace nereid::tracer {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 32;

Result<TensorMapMeta> meta_from(const JsonField& field) {
  TensorMapMeta meta;
  auto small = [&](const char* name, int& into, int64_t low, int64_t high) -> Status {
    NEREID_TRY(const JsonField member, field.at(name));
    NEREID_TRY(const int64_t value, member.integer(low, high));
    into = static_cast<int>(value);
    return ok_status();
  };
  NEREID_TRY_STATUS(small("swizzle", meta.swizzle, 0, 15));
  NEREID_TRY_STATUS(small("elem_size", meta.elem_size, 1, 16));
  NEREID_TRY_STATUS(small("elem_type", meta.elem_type, 0, 31));
  NEREID_TRY(meta.fp4_padded, field.boolean_at("fp4_padded", false));
  NEREID_TRY(const JsonField blocks, field.at("block_size"));
  NEREID_TRY_STATUS(blocks.each(5, [&](const JsonField& item) -> Status {
    NEREID_TRY(const int64_t size, item.integer(1, 1 << 16));
    meta.block_size.push_back(size);
    return ok_status();
  }));
  return meta;
}

Status read_scratch(const JsonField& document, const char* name, std::array<int64_t, 2>& into) {
  NEREID_TRY(const JsonField field, document.at(name));
  NEREID_TRY(const size_t size, field.size(2));
  if (size != 2) return field.expected("[bytes, alignment]");
  NEREID_TRY(into[0], field.item(0).integer(0, kMaxBytes));
  NEREID_TRY(into[1], field.item(1).integer(1, 1 << 20));
  return ok_status();
}

Status read_code(const JsonField& document, CompiledKernel& kernel) {
  NEREID_TRY(const JsonField name, document.at("name"));
  NEREID_TRY(kernel.name, name.text(4096));
  if (kernel.name.empty() || kernel.name.find('\0') != std::string::npos) return name.expected("a symbol");
  NEREID_TRY(const JsonField cubin, document.at("cubin"));
  NEREID_TRY(const std::string text, cubin.text(kMaxCubinBytes / 3 * 4));
  NEREID_TRY(kernel.cubin, base64_decode(text));
  if (!kernel.cubin.starts_with("\x7f"
                                "ELF"))
    return cubin.expected("an ELF file in base64");
  return ok_status();
}

Status read_parameters(const JsonField& document, CompiledKernel& kernel) {
  NEREID_TRY(const JsonField params, document.at("params"));
  NEREID_TRY_STATUS(params.each(4096, [&](const JsonField& item) -> Status {
    NEREID_TRY(auto type, item.text(4096));
    kernel.params.push_back(std::move(type));
    return ok_status();
  }));
  NEREID_TRY(const JsonField metas, document.at("tensordesc_meta"));
  NEREID_TRY_STATUS(metas.each(4096, [&](const JsonField& item) -> Status {
    NEREID_TRY(auto meta, meta_from(item));
    kernel.tensordesc_meta.push_back(std::move(meta));
    return ok_status();
  }));
  NEREID_TRY(kernel.expanded_descriptors, document.boolean_at("expanded_descriptors", false));
  size_t descriptors = 0;
  for (const auto& type : kernel.params) descriptors += type.starts_with("!tt.tensordesc");
  if (!kernel.expanded_descriptors && descriptors != kernel.tensordesc_meta.size())
    return metas.expected(fmt::format("one entry for each of {} tensor descriptors", descriptors));
  return ok_status();
}

Status read_launch(const JsonField& document, CompiledKernel& kernel) {
  NEREID_TRY(kernel.shared, document.integer_at("shared", 0, 0, 1 << 24));
  NEREID_TRY(const int64_t warps, document.integer_at("num_warps", 4, 1, 64));
  NEREID_TRY(const int64_t ctas, document.integer_at("num_ctas", 1, 1, 64));
  kernel.num_warps = static_cast<int>(warps);
  kernel.num_ctas = static_cast<int>(ctas);
  NEREID_TRY_STATUS(read_scratch(document, "global_scratch", kernel.global_scratch));
  NEREID_TRY_STATUS(read_scratch(document, "profile_scratch", kernel.profile_scratch));
  NEREID_TRY(kernel.tmem, document.integer_at("tmem", 0, 0, 1 << 16));
  NEREID_TRY(kernel.cooperative, document.boolean_at("cooperative", false));
  NEREID_TRY(kernel.pdl, document.boolean_at("pdl", false));
  NEREID_TRY(kernel.registers, document.integer_at("registers", 0, 0, 1 << 16));
  NEREID_TRY(kernel.spills, document.integer_at("spills", 0, 0, kMaxBytes));
  return ok_status();
}

}  // namespace

Json to_json(const CompiledKernel& kernel) {
  Json metas = Json::array();
  for (const auto& meta : kernel.tensordesc_meta)
    metas.push_back({{"swizzle", meta.swizzle},
                     {"elem_size", meta.elem_size},
                     {"elem_type", meta.elem_type},
                     {"block_size", meta.block_size},
                     {"fp4_padded", meta.fp4_padded}});
  return {{"cubin", base64_encode(kernel.cubin)},
          {"name", kernel.name},
          {"params", kernel.params},
          {"tensordesc_meta", metas},
          {"expanded_descriptors", kernel.expanded_descriptors},
          {"shared", kernel.shared},
          {"num_warps", kernel.num_warps},
          {"num_ctas", kernel.num_ctas},
          {"cluster_dims", {kernel.num_ctas, 1, 1}},
          {"global_scratch", kernel.global_scratch},
          {"profile_scratch", kernel.profile_scratch},
          {"tmem", kernel.tmem},
          {"cooperative", kernel.cooperative},
          {"pdl", kernel.pdl},
          {"registers", kernel.registers},
          {"spills", kernel.spills}};
}

Result<CompiledKernel> compiled_kernel_from_json(const Json& json) {
  const JsonField document(json, "kernel");
  CompiledKernel kernel;
  NEREID_TRY_STATUS(read_code(document, kernel));
  NEREID_TRY_STATUS(read_parameters(document, kernel));
  NEREID_TRY_STATUS(read_launch(document, kernel));
  return kernel;
}

}  // namespace nereid::tracer
