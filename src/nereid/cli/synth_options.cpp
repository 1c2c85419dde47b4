#include "nereid/cli/synth_options.h"

#include <algorithm>
#include <cmath>

#include "nereid/cli/output.h"

namespace nereid::cli {
namespace {

// "2^20" or "1048576".
Result<double> number_of(const std::string& option, const std::string& text) {
  double value = 0;
  try {
    size_t used = 0;
    const size_t hat = text.find('^');
    value = std::stod(text, &used);
    if (hat != text.npos && used == hat) {
      size_t rest = 0;
      value = std::pow(value, std::stod(text.substr(hat + 1), &rest));
      used = hat + 1 + rest;
    }
    if (used != text.size()) value = 0;
  } catch (const std::exception&) {
    value = 0;
  }
  if (!(value >= 8 && value <= 0x1p45))
    return input_error("{}: expected a number from 8 to 2^45, like 2^20, got '{}'", option, text);
  return value;
}

// As a bound of the space: the largest e with 8^e at most that.
Result<int> size_bound(const std::string& option, const std::string& text) {
  NEREID_TRY(const double value, number_of(option, text));
  return static_cast<int>(std::log2(value) / synth::kBitsPerClass + 1e-9);
}

Result<std::vector<const ops::Operator*>> operators_of(const SynthOptions& options) {
  std::vector<const ops::Operator*> chosen;
  const auto add = [&](const ops::Operator* op) {
    if (std::find(chosen.begin(), chosen.end(), op) == chosen.end()) chosen.push_back(op);
  };
  std::vector<std::string> names = options.only;
  if (names.empty()) names = {"all"};
  for (const std::string& name : names) {
    if (name == "all" || name == "drtriton") {
      for (const auto& op : ops::catalogue())
        if (name == "all" || op.drtriton) add(&op);
      continue;
    }
    NEREID_TRY(const ops::Operator* op, find_operator(name));
    add(op);
  }
  return chosen;
}

}  // namespace

Result<synth::Space> space_of(const SynthOptions& options) {
  NEREID_TRY(const auto operators, operators_of(options));
  const auto given = [](const std::string& text, const char* otherwise) {
    return text.empty() ? otherwise : text;
  };
  synth::Bounds bounds;
  NEREID_TRY(bounds.elements,
             size_bound("--max-elements",
                        given(options.max_elements, options.pairs ? kMaxElementsOfPairs : kMaxElements)));
  NEREID_TRY(bounds.work,
             size_bound("--max-work", given(options.max_work, options.pairs ? kMaxWorkOfPairs : kMaxWork)));
  return synth::Space(operators, bounds);
}

synth::MakerConfig maker_config(const SynthOptions& options) {
  return {.length = options.length,
          .uniform = options.uniform == "programs" ? synth::Uniform::kPrograms : synth::Uniform::kSequences,
          .seed = options.seed,
          .free_sizes = options.free_sizes,
          .free_forms = options.free_forms};
}

bool is_in_split(const SynthOptions& options, const synth::Made& made) {
  return options.split == "all" ||
         synth::held_out(made.hashes.structure, options.held_out) == (options.split == "held-out");
}

Status read_bytes(SynthOptions& options) {
  if (!options.min_bytes.empty()) {
    NEREID_TRY(options.parsed_min_bytes, number_of("--min-bytes", options.min_bytes));
  }
  if (!options.max_bytes.empty()) {
    NEREID_TRY(options.parsed_max_bytes, number_of("--max-bytes", options.max_bytes));
  }
  if (options.parsed_min_bytes > options.parsed_max_bytes)
    return input_error("--max-bytes: expected at least --min-bytes ({}), got {}", options.min_bytes,
                       options.max_bytes);
  return ok_status();
}

bool is_in_size_range(const SynthOptions& options, const synth::Made& made) {
  if (options.parsed_min_bytes == 0 && options.parsed_max_bytes == INFINITY) return true;
  const double bytes = cost_of(made.program).bytes;
  return bytes >= options.parsed_min_bytes && bytes <= options.parsed_max_bytes;
}

std::string operators_text(int count) { return fmt::format("{} operator{}", count, count == 1 ? "" : "s"); }

Json line_of(const SynthOptions& options, const synth::Made& made) {
  Json operators = Json::array();
  for (const auto& step : made.program.steps) operators.push_back(step.applied.op->name);
  const synth::ProgramCost cost = cost_of(made.program);
  return {{"seed", options.seed},
          {"index", made.index},
          {"sizes", made.sizes},
          {"hash", fmt::format("{:016x}", made.hashes.program)},
          {"structure", fmt::format("{:016x}", made.hashes.structure)},
          {"split", synth::held_out(made.hashes.structure, options.held_out) ? "held-out" : "train"},
          {"operators", std::move(operators)},
          {"flops", cost.flops},
          {"bytes", cost.bytes}};
}

Result<Answer> report_end(const SynthOptions& options, bool json, const SynthEnd& end) {
  const bool to_file = !options.output.empty();
  if (json && to_file) {
    NEREID_TRY_STATUS(write_stdout(json_line(end.report)));
  } else {
    fmt::print(stderr, "{}{}", end.text, to_file ? end.coverage->to_text() : "");
  }
  if (end.interrupted) return Error{end.interruption, Blame::kInterrupted};
  if (!end.exhausted) return Answer::kYes;
  fmt::print(stderr, "nereid: there seem to be no more programs of these operators and bounds: {} of {} {}\n",
             end.reached, options.count, end.gave);
  return Answer::kNo;
}

}  // namespace nereid::cli
