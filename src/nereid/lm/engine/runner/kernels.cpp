#include "nereid/lm/engine/runner/kernels.h"

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::lm {
namespace {

constexpr double kMaxSeconds = 300;
constexpr size_t kMaxBytes = size_t{64} << 20;

Result<std::vector<BuiltKernel>> read_answer(const std::string& text, const std::string& what, int arch,
                                             size_t count) {
  NEREID_TRY(const Json document, parse_json(text, what));
  const JsonField root(document, what);
  NEREID_TRY(const size_t answers, root.size(1000));
  if (answers != count) return root.expected(fmt::format("{} kernels", count));
  std::vector<BuiltKernel> kernels;
  NEREID_TRY_STATUS(root.each(count, [&](const JsonField& answer) -> Status {
    BuiltKernel kernel;
    NEREID_TRY(const JsonField ttir, answer.at("ttir"));
    NEREID_TRY(kernel.ttir, ttir.text(kMaxBytes));
    if (arch != 0) {
      NEREID_TRY(const JsonField image, answer.at("image"));
      NEREID_TRY(kernel.image, tracer::compiled_kernel_from_json(image.json()));
    }
    kernels.push_back(std::move(kernel));
    return ok_status();
  }));
  return kernels;
}

}  // namespace

std::string element_name(lm::Dtype dtype) {
  switch (dtype) {
    case lm::Dtype::kBF16:
      return "bf16";
    case lm::Dtype::kF16:
      return "fp16";
    case lm::Dtype::kF32:
      return "fp32";
    default:
      break;
  }
  NEREID_CHECK(false, "a model of bfloat16, float16 or float32, got {}", lm::torch_name(dtype));
}

Result<std::vector<BuiltKernel>> build_kernels(const Installation& installation, int arch,
                                               const std::vector<KernelRequest>& requests) {
  Json request = {{"arch", arch}, {"kernels", Json::array()}};
  for (const auto& kernel : requests) {
    Json options = {{"num_warps", kernel.warps}, {"num_stages", kernel.stages}};
    if (kernel.registers > 0) options["maxnreg"] = kernel.registers;
    request["kernels"].push_back({{"name", kernel.name},
                                  {"element", kernel.element},
                                  {"constants", kernel.constants},
                                  {"options", options}});
  }
  const std::string asked = request.dump();
  std::string sources;
  for (const char* name : {"_compiler/engine_kernels.py", "_compiler/kernel_compiler.py"}) {
    NEREID_TRY(const std::string source, read_file(installation.package / name));
    sources += source;
  }
  const auto kept = installation.cache / "engine" / (sha256_hex(asked + sources) + ".json");
  std::error_code failure;
  if (std::filesystem::exists(kept, failure)) {
    if (const auto text = read_file(kept, kMaxBytes); text.ok())
      if (auto kernels = read_answer(*text, kept.string(), arch, requests.size()); kernels.ok())
        return kernels;
  }
  sandbox::SpawnSpec spec{
      .words = {installation.python.string(), "-m", "nereid._compiler.engine_kernels", asked},
      .environment = sandbox::own_environment()};
  spec.environment.push_back("PYTHONPATH=" + installation.package.parent_path().string());
  NEREID_TRY(const std::string text,
             sandbox::run_program(std::move(spec), Deadline::after(kMaxSeconds), kMaxBytes));
  NEREID_TRY(auto kernels, read_answer(text, "nereid._compiler.engine_kernels", arch, requests.size()));
  // Not kept: built again next time.
  std::filesystem::create_directories(kept.parent_path(), failure);
  (void)write_file_atomically(kept, text).ok();
  return kernels;
}

}  // namespace nereid::lm
