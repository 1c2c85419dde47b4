#include "nereid/dataset/plan_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>

#include "nereid/compiler/output/size_text.h"
#include "nereid/trace/cost.h"

namespace nereid::dataset {
namespace {

using compiler::LoweredKernel;
using Words = std::initializer_list<const char*>;

constexpr size_t kLine = 100;

// Breaks at spaces; what follows a line begins with `indent`.
std::string wrapped(const std::string& text, const std::string& indent = "") {
  std::string lines, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > kLine) {
      lines += line + "\n";
      line = indent + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = end + 1;
  }
  return lines + line + "\n";
}

std::string in_words(size_t count) {
  constexpr std::array kWords = {"no",   "one", "two",   "three", "four",
                                 "five", "six", "seven", "eight", "nine"};
  return count < kWords.size() ? kWords[count] : std::to_string(count);
}

// "12.8 kB", or to the byte.
std::string quantity(double amount, const char* unit, bool exact) {
  if (exact && amount < 1e9) return fmt::format("{:.0f} {}", amount, unit);
  constexpr std::array kPrefix = {"", "k", "M", "G", "T", "P"};
  size_t step = 0;
  for (; amount >= 1000 && step + 1 < kPrefix.size(); ++step) amount /= 1000;
  return fmt::format("{:.3g} {}{}", amount, kPrefix[step], unit);
}

class PlanWriter {
 public:
  PlanWriter(const TaskFacts& task, const Variant& variant, synth::Rng& rng)
      : task_(task),
        variant_(variant),
        kernels_(variant.module.kernels),
        rng_(rng),
        exact_(rng.below(3) == 0),
        ticks_(rng.below(2) == 0) {}

  std::string plan() {
    std::string text = wrapped(situation()) + (rng_.below(2) == 0 ? "\n" : "");
    text += wrapped(decision());
    const uint32_t list = rng_.below(3);  // "1. ", "- ", or sentences
    for (size_t k = 0; k < kernels_.size(); ++k) {
      const std::string mark = list == 0 ? fmt::format("{}. ", k + 1) : list == 1 ? "- " : "";
      text += wrapped(mark + about(kernels_[k], list == 2 ? lead(k) : ""), std::string(mark.size(), ' '));
    }
    text += wrapped(chosen()) + wrapped(totals());
    while (text.find("\n\n\n") != text.npos) text.replace(text.find("\n\n\n"), 3, "\n\n");
    return text;
  }

  std::string headline() {
    return fmt::format("{} in {} Triton kernel{}.", fmt::join(task_.operators, ", "),
                       in_words(kernels_.size()), kernels_.size() == 1 ? "" : "s");
  }

 private:
  const char* one_of(Words words) {
    return *(words.begin() + rng_.below(static_cast<uint32_t>(words.size())));
  }
  std::string bytes(double amount) const { return quantity(amount, "B", exact_); }
  std::string named(const std::string& name) const { return ticks_ ? "`" + name + "`" : name; }
  static std::string capital(std::string text) {
    if (!text.empty()) text[0] = static_cast<char>(std::toupper(text[0]));
    return text;
  }

  std::string situation() {
    const std::string ops = fmt::format("{}", fmt::join(task_.operators, rng_.below(2) == 0 ? ", " : " -> "));
    const std::string moved = bytes(task_.bytes);
    switch (rng_.below(4)) {
      case 0:
        return fmt::format(
            "The module computes {}. Run one operator at a time, PyTorch makes {} call{} that move {}.", ops,
            task_.calls, task_.calls == 1 ? "" : "s", moved);
      case 1:
        return fmt::format("Operators: {}. Eager PyTorch: {} call{}, {} of memory traffic, {}.", ops,
                           task_.calls, task_.calls == 1 ? "" : "s", moved,
                           quantity(task_.flops, "FLOP", exact_));
      case 2:
        return fmt::format(
            "What there is to do: {}. Each operator alone would read and write memory again: {} in all.", ops,
            moved);
      default:
        return fmt::format("{}. In PyTorch that is {} operator call{} and {} moved.", ops, task_.calls,
                           task_.calls == 1 ? "" : "s", moved);
    }
  }

  std::string decision() {
    const std::string count = in_words(kernels_.size());
    if (kernels_.size() == 1) {
      switch (rng_.below(3)) {
        case 0:
          return "All of it becomes one kernel.";
        case 1:
          return "One kernel does everything, in one launch.";
        default:
          return fmt::format("I write one kernel, {}.", named(kernels_[0].name));
      }
    }
    switch (rng_.below(3)) {
      case 0:
        return fmt::format("It becomes {} kernels.", count);
      case 1:
        return fmt::format("I write {} kernels, one after the other.", count);
      default:
        return fmt::format("{} kernels, launched in this order:", capital(count));
    }
  }

  std::string lead(size_t k) {
    if (kernels_.size() == 1) return "";
    if (k == 0) return "First ";
    if (k + 1 == kernels_.size()) return one_of({"Last ", "At the end "});
    return one_of({"Then ", "Next "});
  }

  std::string about(const LoweredKernel& kernel, const std::string& lead) {
    std::string text = lead + named(kernel.name);
    text +=
        rng_.below(2) == 0 ? fmt::format(" does {}", kernel.does) : fmt::format(" computes {}", kernel.does);
    text += over(kernel) + ": " + reason(kernel) + ".";
    if (rng_.below(4) != 0) text += " " + cut(kernel) + ".";
    if (rng_.below(3) != 0)
      text += fmt::format(" It reads {} and writes {}.", bytes(kernel.estimate.bytes_read),
                          bytes(kernel.estimate.bytes_written));
    return text;
  }

  std::string over(const LoweredKernel& kernel) {
    if (rng_.below(4) == 0) return "";
    const std::string rows = fmt::format("[{}]", fmt::join(kernel.rows, ", "));
    if (kernel.columns.empty()) return " over " + rows;
    return fmt::format(" over {} by [{}]", rows, fmt::join(kernel.columns, ", "));
  }

  static bool several(const LoweredKernel& kernel) { return kernel.does.find(',') != std::string::npos; }

  std::string reason(const LoweredKernel& kernel) {
    if (kernel.steps > 0) return "one launch for each step of time, the state stays in memory between them";
    if (kernel.choice.m > 0 && kernel.choice.k == 0 && kernel.choice.n > 0)
      return one_of({"blocks of queries or samples stay in registers while the rest goes by",
                     "a program keeps its block in registers and goes over the other dimension"});
    if (kernel.choice.m > 0)
      return several(kernel)
                 ? one_of({"what is done element by element is done on the tile in registers, next to the "
                           "product",
                           "the elementwise part rides along with the tiles of the product, no extra pass "
                           "over memory",
                           "a product of tiles whose neighbours need no launch of their own"})
                 : one_of({"a product of tiles", "a matrix product in tiles, accumulated in registers"});
    if (kernel.reduces)
      return several(kernel) ? one_of({"a program holds rows and does everything to them before it stores",
                                       "elements are computed while they are reduced",
                                       "all that is done to a row is done by one program"})
                             : one_of({"a reduction of rows", "each program reduces some of the rows"});
    return several(kernel)
               ? one_of({"elementwise throughout, so nothing between is stored",
                         "a chain of elementwise steps, held in registers from load to store",
                         "every element goes through all of it before it is stored"})
               : one_of({"elementwise", "a map over the elements", "one element in, one element out"});
  }

  std::string cut(const LoweredKernel& kernel) {
    const auto& c = kernel.choice;
    const std::string programs =
        fmt::format("{} program{}", kernel.programs, kernel.programs == 1 ? "" : "s");
    std::string text;
    if (c.m > 0 && c.k > 0)
      text = fmt::format("{} {} x {} with steps of {}, {}", one_of({"Tiles of", "Tile size:", "Blocks of"}),
                         c.m, c.n, c.k, programs);
    else if (c.m > 0)
      text = fmt::format("Blocks of {} by {}, {}", c.m, c.n, programs);
    else if (kernel.columns.empty())
      text = fmt::format("{} elements a program, {}", c.rows, programs);
    else
      text = fmt::format("Blocks of {} rows by {} columns, {}", c.rows, c.columns, programs);
    if (c.warps > 0) text += fmt::format(", {} warps", c.warps);
    if (!c.precision.empty()) text += "; products in " + c.precision;
    if (c.precision == "tf32x3" || c.precision == "bf16x6")
      text += one_of({"", ", which keeps float32's accuracy where TF32 alone would not"});
    return text;
  }

  std::string chosen() {
    std::string text;
    for (const Choice& choice : variant_.choices) {
      switch (choice.kind) {
        case Choice::Kind::kCut:
          text += fmt::format("For {} I take {}{}. ", named(choice.kernel), choice.text,
                              one_of({"", " instead of the cost model's first choice",
                                      ", not what the cost model ranks first"}));
          break;
        case Choice::Kind::kFusion:
          text += fmt::format(
              "{} {}: what comes before it is stored, and a kernel of its own begins there. ",
              one_of({"No fusion across", "A boundary is kept before", "Not fused with what precedes:"}),
              choice.text);
          break;
        case Choice::Kind::kWay:
          text += fmt::format("Done here: {}. ", choice.text);
          break;
      }
    }
    if (!text.empty()) text.pop_back();
    return text;
  }

  std::string totals() {
    double moved = 0;
    for (const auto& kernel : kernels_) moved += kernel.estimate.bytes_read + kernel.estimate.bytes_written;
    if (rng_.below(4) == 0) return "";
    if (moved < 0.95 * task_.bytes)
      return fmt::format("{} {} instead of {}.", one_of({"Memory traffic:", "In all that moves", "Moved:"}),
                         bytes(moved), bytes(task_.bytes));
    return fmt::format(
        "{} {}{}.", one_of({"Memory traffic:", "In all that moves", "Moved:"}), bytes(moved),
        static_cast<int64_t>(kernels_.size()) < task_.calls ? ", in fewer launches than before" : "");
  }

  const TaskFacts& task_;
  const Variant& variant_;
  const std::vector<LoweredKernel>& kernels_;
  synth::Rng& rng_;
  const bool exact_, ticks_;
};

// Comments of kernels' lines, each true of every line that begins so.
struct LineComment {
  const char *first, *second;
  bool (*is)(std::string_view line);
};
constexpr LineComment kLineComments[] = {
    {"which elements this program has", "the elements of this program",
     [](std::string_view line) { return line.starts_with("i = tl.program_id(0)"); }},
    {"which rows this program has", "the rows of this program",
     [](std::string_view line) { return line.starts_with("row = tl.program_id(0)"); }},
    {"which tile this program has", "the tile of this program",
     [](std::string_view line) { return line.starts_with("pid = tl.program_id(0)"); }},
    {"a block at a time", "block after block",
     [](std::string_view line) { return line.starts_with("for start in range("); }},
    {"a product of two blocks, added up in float32", "block times block, added to the total",
     [](std::string_view line) { return line.starts_with("total = tl.dot("); }},
    {"to memory", "the result", [](std::string_view line) { return line.starts_with("tl.store("); }},
};

enum class Comments { kAsTheyAre, kNone, kOfLines };

// Comment lines that stand alone, as the compiler writes them at the top of a kernel, stay or go; others are
// added.
std::string commented(const std::string& code, Comments how, synth::Rng& rng) {
  if (how == Comments::kAsTheyAre) return code;
  const bool first = rng.below(2) == 0;
  std::string to;
  std::string_view last;
  for (size_t at = 0; at < code.size();) {
    const size_t end = std::min(code.find('\n', at), code.size() - 1) + 1;
    const std::string_view line(code.data() + at, end - at);
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view text = line.substr(indent);
    at = end;
    if (how == Comments::kNone && text.starts_with("# ")) continue;
    if (how == Comments::kOfLines && indent > 0)
      for (const LineComment& comment : kLineComments) {
        const std::string_view said = first ? comment.first : comment.second;
        if (!comment.is(text) || said == last) continue;
        to += std::string(indent, ' ') + "# " + std::string(said) + "\n";
        last = said;
      }
    to += line;
  }
  return to;
}

std::string without_plan(const compiler::Module& module) {
  const std::string docstring = "\"\"\"" + module.plan + "\"\"\"\n";
  return module.text.substr(module.text.starts_with(docstring) ? docstring.size() : 0);
}

}  // namespace

TaskFacts facts_of(const trace::Trace& trace, std::vector<std::string> operators) {
  const auto totals = trace::totals_of(trace::costs_of(trace, trace.phases.back(), {}));
  return {std::move(operators), totals.calls, totals.all().bytes(), totals.all().flops};
}

namespace {

bool is_contiguous(const compiler::KernelArgument& argument) {
  int64_t stride = 1;
  for (size_t d = argument.sizes.size(); d-- > 0; stride *= argument.sizes[d])
    if (argument.sizes[d] != 1 && argument.strides[d] != stride) return false;
  return true;
}

std::string named(const compiler::KernelArgument& argument) {
  std::string text = fmt::format("{} [{}]", argument.name, fmt::join(argument.sizes, ", "));
  if (is_contiguous(argument)) return text;
  // Products of sizes in the order of memory, so that a reader need not multiply.
  std::vector<size_t> order(argument.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](size_t d) { return argument.strides[d]; });
  std::vector<int64_t> sizes, strides = argument.strides;
  for (const size_t d : order) {
    sizes.push_back(argument.sizes[d]);
    if (argument.sizes[d] == 1) strides[d] = 0;  // any would do, as in compiler/output/trace_summary.h
  }
  return text + fmt::format(" strides [{}]", compiler::strides_text(strides, sizes));
}

// "#1 relu, #2 #3 mean, mean_rest, variance": what is done, after the step that it is of, or the steps.
std::string work_text(const LoweredKernel& kernel) {
  std::string text;
  const auto number = [&](auto from, auto to) {
    for (; from != to; ++from) text += fmt::format("#{} ", *from + 1);
  };
  auto next = kernel.covers.begin();
  for (const auto& [step, word] : kernel.work) {
    if (!text.empty()) text += ", ";
    const auto own = kernel.covers.upper_bound(step);
    if (std::distance(kernel.covers.begin(), next) < std::distance(kernel.covers.begin(), own)) {
      number(next, own);
      next = own;
    }
    text += word;
  }
  if (next != kernel.covers.end()) text += " ";
  number(next, kernel.covers.end());
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// With that in place of the words at the top of each kernel, where they are wanted next.
std::string with_work(std::string code, const compiler::Module& module) {
  for (const LoweredKernel& kernel : module.kernels) {
    const std::string words = fmt::format("    # {}\n", kernel.does);
    const size_t def = code.find(fmt::format("def {}(", kernel.name));
    if (const size_t at = code.find(words, def); at != code.npos)
      code.replace(at, words.size(), fmt::format("    # {}\n", work_text(kernel)));
  }
  return code;
}

std::string named(const LoweredKernel& kernel, bool written) {
  std::vector<std::string> all;
  for (const auto& argument : kernel.arguments)
    if (argument.written == written) all.push_back(named(argument));
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

// A writer goes from left to right, so what follows from something stands after it: a kernel's name after
// what it does, and how many kernels there are nowhere.
PlanText write_brief_plan(const std::string& steps, const Variant& variant) {
  const auto& kernels = variant.module.kernels;
  constexpr std::array kKinds = {"One by one", "Simply fused", "Fused", "As compiled"};
  std::string plan = steps + fmt::format("{}:\n", kKinds[static_cast<size_t>(variant.kind)]);
  for (const LoweredKernel& kernel : kernels) {
    const auto& c = kernel.choice;
    plan += fmt::format("{}\n{}: {} -> {}\nover [{}]", work_text(kernel), kernel.name, named(kernel, false),
                        named(kernel, true), fmt::join(kernel.rows, ", "));
    if (!kernel.columns.empty()) plan += fmt::format(" by [{}]", fmt::join(kernel.columns, ", "));
    plan += fmt::format(". {}\n", compiler::to_string(c));
  }
  return {.plan = plan, .code = with_work(without_plan(variant.module), variant.module)};
}

PlanText write_plan_text(const TaskFacts& task, const Variant& variant, int number, synth::Rng& rng) {
  const compiler::Module& module = variant.module;
  if (number == 0) return {module.plan, module.text};
  PlanWriter writer(task, variant, rng);
  PlanText made{.plan = writer.plan(), .code = {}};
  const std::string code = without_plan(module);
  switch (rng.below(3)) {
    case 0:
      break;
    case 1:
      made.code = "\"\"\"" + writer.headline() + "\"\"\"\n";
      break;
    default:
      made.code = "\"\"\"" + made.plan + "\"\"\"\n";
  }
  constexpr std::array kComments = {Comments::kAsTheyAre, Comments::kNone, Comments::kOfLines};
  made.code += commented(code, kComments[rng.below(3)], rng);
  return made;
}

}  // namespace nereid::dataset
