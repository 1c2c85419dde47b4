// nereid-cost-check [--no-walk] TRACE...: what each launch of kept traces costs, by the analysis of its text
// and by running every program; one JSON line a launch. Exit code 1 where the two disagree: where the
// analysis says that it is exact they are equal, and where it does not the walk is no further off than the
// error that it states.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <set>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/trace/format/codec.h"
#include "nereid/verify/analysis/kernel_library.h"

namespace nereid::verify {
namespace {

Json json_of(const ttir::Cost& cost) {
  return {{"flops", cost.flops}, {"read", cost.bytes_read}, {"written", cost.bytes_written}};
}

// Whether a figure is the walk's, or as near as its error says. Bounds that are not met are no disagreement.
bool agrees(double found, double walked, double error) {
  if (error == 0) return found == walked;
  return std::abs(found - walked) <= error * std::max(found, walked) + 1e-9 * walked;
}

class Check {
 public:
  Check(const std::string& file, const trace::Trace& trace, bool walk)
      : file_(file), trace_(trace), walk_(walk) {}

  // True where all agree.
  bool all() {
    bool agree = true;
    for (const trace::Phase& phase : trace_.phases)
      for (const trace::Step& step : phase.steps)
        if (const auto* launch = std::get_if<trace::Launch>(&step))
          for (const trace::Alternative& one : launch->alternatives) agree = alternative(one) && agree;
    return agree;
  }

 private:
  bool alternative(const trace::Alternative& one) {
    const trace::Kernel& kernel = trace_.kernels[static_cast<size_t>(one.kernel)];
    const ReadKernel read = library_.read(kernel);
    if (read.kernel == nullptr) return true;
    const SizedLaunch sized = launch_of(trace_, one, *read.kernel);
    Stopwatch watch;
    const ttir::Cost cost = read.kernel->cost(sized.launch, sized.buffer_bytes);
    const double ms = watch.seconds() * 1e3;
    Json line;
    line["trace"] = file_;
    line["kernel"] = kernel.name;
    line["grid"] = one.grid;
    line["found"] = json_of(cost);
    line["exact"] = cost.exact;
    line["error"] = cost.error;
    line["unknown"] = cost.unknown;
    line["moves_by_data"] = read.facts.moves_by_data;
    if (!seen_.insert(line.dump()).second) return true;
    line["ms"] = ms;
    bool agree = true;
    if (walk_) {
      const ttir::Cost walked = read.kernel->walked_cost(sized.launch);
      line["walked"] = json_of(walked);
      // A walk reads zeros: where data decides, it is no measure.
      agree = read.facts.moves_by_data || (agrees(cost.flops, walked.flops, cost.error) &&
                                           agrees(cost.bytes_read, walked.bytes_read, cost.error) &&
                                           agrees(cost.bytes_written, walked.bytes_written, cost.error));
      line["agree"] = agree;
    }
    std::printf("%s\n", line.dump().c_str());
    return agree;
  }

  const std::string& file_;
  const trace::Trace& trace_;
  const bool walk_;
  KernelLibrary library_;
  std::set<std::string> seen_;
};

Result<bool> check(const std::string& file, bool walk) {
  NEREID_TRY(const std::string bytes, read_file(file, JsonLimits{}.max_bytes));
  NEREID_TRY(const trace::Trace trace, trace::parse(bytes, file));
  return Check(file, trace, walk).all();
}

}  // namespace
}  // namespace nereid::verify

int main(int argc, char** argv) {
  bool walk = true, all = true;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--no-walk") == 0) {
      walk = false;
      continue;
    }
    const auto checked = nereid::verify::check(argv[k], walk);
    if (!checked) {
      fmt::print(stderr, "{}: {}\n", argv[k], checked.error().message);
      return 2;
    }
    all = all && *checked;
  }
  return all ? 0 : 1;
}
