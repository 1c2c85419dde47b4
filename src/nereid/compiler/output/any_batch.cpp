#include "nereid/compiler/output/any_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "nereid/compiler/ir/size.h"
#include "nereid/render/line_breaks.h"
#include "nereid/render/python_tokens.h"

namespace nereid::compiler {
namespace {

using render::tokens_of;
using std::string_view;

std::optional<int64_t> whole_number(string_view token) {
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), number);
  if (token.empty() || failure != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return number;
}

// "(3 * batch_size + 1)" of three numbers; empty: no such function.
std::string affine(const std::array<int64_t, 3>& batches, const std::array<string_view, 3>& tokens) {
  std::array<int64_t, 3> numbers;
  for (size_t i = 0; i < 3; ++i) {
    const auto number = whole_number(tokens[i]);
    if (!number) return "";
    numbers[i] = *number;
  }
  const int64_t run = batches[1] - batches[0], rise = numbers[1] - numbers[0];
  if (run == 0 || rise % run != 0) return "";
  const Size size = Size::of_batch(batches[0], rise / run, numbers[0] - rise / run * batches[0]);
  return rise / run * batches[2] + numbers[0] - rise / run * batches[0] == numbers[2]
             ? size.text(Size::Place::kFactor)
             : "";
}

// In which function of the file a token stands.
class Region {
 public:
  enum class Kind { kOutside, kKernel, kForward, kMember };

  // `line`: from its first character on.
  void begin_line(string_view line, string_view before) {
    if (line.starts_with("class ")) kind_ = Kind::kOutside, in_class_ = line.starts_with("class ModelNew");
    if (line.starts_with("def ")) {
      in_class_ = false;
      name_ = line.substr(4, std::min(line.find('('), line.size()) - 4);
      kind_ = before.ends_with("@triton.jit\n") ? Kind::kKernel : Kind::kOutside;
    }
    if (in_class_ && line.starts_with("    def "))
      kind_ = line.starts_with("    def forward(") ? Kind::kForward : Kind::kMember;
  }
  Kind kind() const { return kind_; }
  const std::string& name() const { return name_; }

 private:
  Kind kind_ = Kind::kOutside;
  bool in_class_ = false;
  std::string name_;
};

Error differs(string_view what, const std::string& where) {
  return input_error("--dynamic batch: {} {}: these kernels cannot be written for any batch", what, where);
}

// Puts the argument in front of a kernel's own, in its definition and its launches.
Status pass_batch(std::string& code, const std::string& kernel) {
  const std::string head = "def " + kernel + "(";
  const size_t definition = code.find("@triton.jit\n" + head);
  if (definition == code.npos) return differs("there is no kernel", kernel);
  code.insert(code.find_first_not_of(" \n", definition + 12 + head.size()),
              fmt::format("{}: tl.tensor, ", kBatchName));
  const std::string launch = kernel + "[(";
  size_t launches = 0;
  for (size_t at = code.find(launch); at != code.npos; at = code.find(launch, at + 1)) {
    const size_t open = code.find("](", at);
    if (open == code.npos) break;
    const size_t first = code.find_first_not_of(" \n", open + 2);
    code.insert(first, fmt::format("{}, ", kBatchName));
    ++launches;
  }
  return launches > 0 ? ok_status() : Status(differs("there is no launch of", kernel));
}

bool prime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

}  // namespace

Result<std::string> for_any_batch(const std::array<WrittenFor, 3>& broken, const std::string& input) {
  std::array<WrittenFor, 3> written = broken;  // where lines are broken depends on their numbers' lengths
  for (WrittenFor& each : written) each.code = render::without_line_breaks(each.code);
  const std::array<int64_t, 3> batches = {written[0].batch, written[1].batch, written[2].batch};
  const std::vector<string_view> tokens = tokens_of(written[0].code);
  const std::array<std::vector<string_view>, 3> all = {tokens, tokens_of(written[1].code),
                                                       tokens_of(written[2].code)};
  if (all[1].size() != tokens.size() || all[2].size() != tokens.size())
    return differs("the steps or the cuts depend on the batch,",
                   "so that other kernels are written for another one");
  std::string made;
  std::set<std::string> kernels;
  Region region;
  string_view rest = written[0].code;
  bool line_begins = true;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const string_view token = tokens[t];
    if (line_begins)
      region.begin_line(rest.substr(0, rest.find('\n')),
                        string_view(written[0].code).substr(0, written[0].code.size() - rest.size()));
    rest.remove_prefix(token.size());
    line_begins = token == "\n";
    const bool same = all[1][t] == token && all[2][t] == token;
    // What PyTorch's own calls are given stands in the trace as a number.
    const bool forward = region.kind() == Region::Kind::kForward;
    const std::string given = same || !forward ? "" : affine(batches, {token, all[1][t], all[2][t]});
    if (!same && !token.starts_with('#') && given.empty())
      return differs(
          "a number depends on the batch that is not a size of a tensor, nor made of sizes",
          fmt::format("(`{}` at a batch of {}, `{}` at {})", token, batches[0], all[1][t], batches[1]));
    const bool kernel = region.kind() == Region::Kind::kKernel;
    if (kernel && token == kBatchName) kernels.insert(region.name());
    // triton.cdiv is for numbers that are known when a kernel is compiled.
    const bool cdiv = kernel && token == "triton" && t + 2 < tokens.size() && tokens[t + 2] == "cdiv";
    made += !given.empty() ? given : cdiv ? "tl" : std::string(token);
  }
  for (const std::string& kernel : kernels) NEREID_TRY_STATUS(pass_batch(made, kernel));
  const size_t forward = made.find("    def forward(", std::min(made.find("\nclass ModelNew"), made.size()));
  const size_t body = forward == made.npos ? forward : made.find(":\n        ", forward);
  if (body == made.npos) return differs("there is no", "forward");
  if (made.substr(forward, body - forward).find(fmt::format(" {}:", kBatchName)) != made.npos)
    return differs("forward has a parameter of its own", fmt::format("called {}", kBatchName));
  made.insert(body + 2, fmt::format("        {} = {}.shape[0]\n", kBatchName, input));
  return render::with_line_breaks(made);
}

std::array<int64_t, 3> batches_around(int64_t batch, const std::vector<int64_t>& taken) {
  int64_t power = 8;
  while (power < batch) power *= 2;
  const auto next = [&](int64_t from, int64_t step) {
    while (!prime(from) || std::ranges::binary_search(taken, from)) from += step;
    return from;
  };
  const int64_t middle = next(power + 1, 1);
  int64_t least = power - 1;
  while (least > 1 && (!prime(least) || std::ranges::binary_search(taken, least))) --least;
  return {least > 1 ? least : next(power + 1, 1), middle, next(2 * power + 1, 1)};
}

std::string with_batch(const std::string& source, int64_t from, int64_t to) {
  return source + fmt::format(R"(

_nereid_own_inputs = get_inputs


def get_inputs():
    import torch

    def resized(x):
        if isinstance(x, torch.Tensor):
            return x[torch.arange({1}) % {0}] if x.dim() > 0 and x.shape[0] == {0} else x
        if isinstance(x, (list, tuple)):
            return type(x)(map(resized, x))
        if isinstance(x, dict):
            return {{key: resized(item) for key, item in x.items()}}
        return x

    return resized(_nereid_own_inputs())
)",
                              from, to);
}

}  // namespace nereid::compiler
