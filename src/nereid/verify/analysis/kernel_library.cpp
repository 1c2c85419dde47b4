#include "nereid/verify/analysis/kernel_library.h"

#include <algorithm>
#include <bit>
#include <map>

namespace nereid::verify {
namespace {

using trace::StorageId;

// A scalar's bits in the parameter's own type. Types narrower than f32 are given as f32: a cost does not look
// at them.
uint64_t bits_of(const trace::LaunchArg& arg, const std::string& type) {
  if (const auto* number = std::get_if<trace::FloatArg>(&arg))
    return type == "f64" ? std::bit_cast<uint64_t>(number->value)
                         : std::bit_cast<uint32_t>(static_cast<float>(number->value));
  const auto value = static_cast<uint64_t>(std::get<trace::IntArg>(arg).value);
  if (type == "i1") return value & 1;
  if (type == "i8") return value & 0xff;
  if (type == "i16") return value & 0xffff;
  if (type == "i32") return value & 0xffffffff;
  return value;
}

}  // namespace

KernelAnalysis facts_of_unreadable(const std::string& ttir, const std::string& trouble) {
  KernelAnalysis facts{.unreadable = trouble, .malformed = !trouble.starts_with("Unsupported")};
  facts.int_to_ptr = ttir.find("tt.int_to_ptr") != std::string::npos;
  constexpr std::string_view kAssembly = "tt.elementwise_inline_asm \"",
                             kExternal = "Unsupported: external function ";
  for (size_t at = 0; (at = ttir.find(kAssembly, at)) != std::string::npos;) {
    at += kAssembly.size();
    std::string text;
    for (; at < ttir.size() && ttir[at] != '"'; ++at) {
      if (ttir[at] == '\\' && at + 2 < ttir.size() && ttir[at + 1] == '0') {  // \0A is a line end
        text += '\n', at += 2;
        continue;
      }
      text += ttir[at];
    }
    facts.assembly.push_back(std::move(text));
  }
  if (trouble.starts_with(kExternal)) {
    const size_t end = std::min(trouble.find_first_of(" (", kExternal.size()), trouble.size());
    facts.foreign_function = trouble.substr(kExternal.size(), end - kExternal.size());
  }
  return facts;
}

ReadKernel KernelLibrary::read(const trace::Kernel& kernel) {
  {
    std::lock_guard lock(mutex_);
    const auto found = read_.find(kernel.hash);
    if (found != read_.end()) return found->second;
  }
  ReadKernel read;
  auto loaded = ttir::Kernel::load(kernel.ttir);
  if (loaded.ok()) {
    read.kernel = std::make_shared<const ttir::Kernel>(std::move(*loaded));
    read.facts = {.int_to_ptr = read.kernel->uses_int_to_ptr(),
                  .assembly = read.kernel->inline_assembly(),
                  .branches_on_float_data = read.kernel->branches_on_float_data(),
                  .moves_by_data = read.kernel->moves_by_data()};
    for (const auto& parameter : read.kernel->parameters())
      read.uses.push_back({.read = parameter.read, .written = parameter.written, .chosen = parameter.chosen});
    read.paths = read.kernel->data_paths();
  } else {
    read.facts = facts_of_unreadable(kernel.ttir, loaded.error().message);
  }
  std::lock_guard lock(mutex_);
  if (read_.size() >= most_) read_.clear();
  read_[kernel.hash] = read;
  return read;
}

SizedLaunch launch_of(const trace::Trace& trace, const trace::Alternative& alternative,
                      const ttir::Kernel& kernel) {
  SizedLaunch sized;
  ttir::Launch& launch = sized.launch;
  launch.grid = alternative.grid;
  std::map<StorageId, int> buffers;
  const auto pointer = [&](trace::ValueId id, int64_t offset) -> ttir::Pointer {
    if (id < 0) return {};
    const auto& value = trace.values[static_cast<size_t>(id)];
    const auto [at, fresh] = buffers.try_emplace(value.storage, static_cast<int>(buffers.size()));
    if (fresh) sized.buffer_bytes.push_back(trace.storages[static_cast<size_t>(value.storage)].bytes);
    return {at->second, value.offset * trace::element_bytes(value.dtype) + offset};
  };
  size_t parameter = 0;
  for (const auto& arg : alternative.args) {
    const std::string type =
        parameter < kernel.parameters().size() ? kernel.parameters()[parameter].type : "";
    ++parameter;
    if (const auto* p = std::get_if<trace::PointerArg>(&arg)) {
      launch.arguments.emplace_back(pointer(p->value, p->offset));
    } else if (const auto* d = std::get_if<trace::DescriptorArg>(&arg)) {
      launch.arguments.emplace_back(
          ttir::Descriptor{pointer(d->value, 0), d->shape, d->strides, d->nan_padding});
      parameter += 2 * d->shape.size();
    } else {
      launch.arguments.emplace_back(ttir::Scalar{bits_of(arg, type)});
    }
  }
  return sized;
}

ttir::Cost launch_cost(const trace::Trace& trace, const trace::Alternative& alternative,
                       const ttir::Kernel& kernel) {
  const SizedLaunch sized = launch_of(trace, alternative, kernel);
  return kernel.cost(sized.launch, sized.buffer_bytes);
}

}  // namespace nereid::verify
