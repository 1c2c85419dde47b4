#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "nereid/base/json.h"
#include "nereid/cli/command.h"
#include "nereid/cli/output.h"
#include "nereid/ops/cost.h"
#include "nereid/ops/example.h"
#include "nereid/ops/form.h"
#include "nereid/ops/operator.h"
#include "nereid/ops/spelling.h"

namespace nereid::cli {
namespace {

constexpr const char* kOpsHelp = R"(Examples:
  nereid ops                     every operator: operands, lowering class, ATen schema, how it is written
  nereid ops softmax conv2d      some of them, with every form they are applied in, at small sizes
  nereid ops --lowering scan     those of one lowering class
  nereid ops --json | jq -r .name

A form is a way to apply an operator: ranks, axes, broadcasts, windows; everything but sizes. The sampler
(`nereid synth`) draws from forms, so what is listed here is what it writes. Costs are of float32.)";

struct OpsOptions {
  std::vector<std::string> names;
  std::string lowering;
  int variant = 0;
};

Json shape_json(const ops::Shape& shape) {
  Json dims = Json::array();
  for (size_t d = 0; d < shape.rank; ++d) dims.push_back(shape.dims[d]);
  return dims;
}

std::string shape_text(const ops::Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims.begin(), shape.dims.begin() + shape.rank, ", "));
}

std::string optional(std::string_view text) { return text.empty() ? "-" : std::string(text); }

int arity(const ops::Operator& op) { return ops::forms(op.rule).front().slots; }

Json application_json(const ops::Applied& applied) {
  const ops::Operator& op = *applied.op;
  Json line = {{"result", shape_json(applied.out)}, {"dtype", op.indices ? "int64" : "float32"}};
  for (int i = 0; i < ops::operand_count(applied); ++i) {
    const auto slot = static_cast<size_t>(std::min(i, applied.form->slots - 1));
    Json operand = {{"shape", shape_json(applied.operands[slot])},
                    {"range", ops::to_string(op.ranges[slot])}};
    if (op.ranges[slot] == ops::Range::kIndex) operand["below"] = ops::index_bound(applied);
    line["operands"].push_back(std::move(operand));
  }
  line["weights"] = Json::array();  // in the order of the module's parameters
  for (const ops::Weight& weight : ops::weights_of(applied)) {
    std::string shape;
    ops::spell(shape, weight.shape, applied, {});
    line["weights"].push_back(
        {{"name", weight.name}, {"made", fmt::format("torch.{}({})", weight.maker, shape)}});
  }
  const ops::Spellings written = ops::spellings(applied);
  line["functional"] = written.functional, line["method"] = written.method;
  line["module"] = written.module, line["call"] = written.call;
  const ops::Cost cost = ops::cost_of(applied);
  line["flops"] = cost.flops, line["bytes"] = cost.bytes;
  return line;
}

Json operator_json(const ops::Operator& op, int variant) {
  Json line = {{"name", op.name},
               {"operands", arity(op)},
               {"rule", ops::to_string(op.rule)},
               {"lowering", ops::to_string(op.lowering)},
               {"aten", op.aten},
               {"functional", op.functional},
               {"method", op.method},
               {"module", op.module},
               {"constants", op.constants},
               {"commutes", op.commutes},
               {"drtriton", op.drtriton},
               {"dtype", op.indices ? "int64" : "as operand"}};
  line["ranges"] = Json::array();
  for (int s = 0; s < arity(op); ++s) line["ranges"].push_back(ops::to_string(op.ranges[s]));
  line["forms"] = Json::array();
  for (const ops::Form& form : ops::forms(op.rule))
    line["forms"].push_back(application_json(ops::example(op, form, variant)));
  return line;
}

std::string table(const std::vector<const ops::Operator*>& chosen, const Terminal& terminal) {
  std::string text = terminal.bold(fmt::format("{:<29}{:>8}  {:<15}{:<20}{:<34}{}", "operator", "operands",
                                               "lowering", "inputs", "ATen", "written")) +
                     "\n";
  for (const ops::Operator* op : chosen) {
    std::vector<std::string_view> ranges;
    for (int s = 0; s < arity(*op); ++s) ranges.push_back(ops::to_string(op->ranges[s]));
    const std::string inputs = fmt::format("{}", fmt::join(ranges, ","));
    std::string written;
    const ops::Spellings spelled = ops::spellings(ops::example(*op, ops::forms(op->rule).front()));
    for (const auto& spelling : {spelled.functional, spelled.method, spelled.module})
      if (!spelling.empty()) written += (written.empty() ? "" : "   ") + spelling;
    std::string line = fmt::format("{:<29}{:>8}  {:<15}{:<20}{:<34}{}", op->name, arity(*op),
                                   ops::to_string(op->lowering), inputs, op->aten, written);
    if (terminal.terminal && static_cast<int>(line.size()) > terminal.width)
      line = line.substr(0, static_cast<size_t>(terminal.width) - 1) + "…";
    text += line + "\n";
  }
  text += fmt::format("\n{} operators; leaves: {}. `nereid ops NAME` shows every form of one.\n",
                      chosen.size(), fmt::join(ops::leaf_operators(), ", "));
  return text;
}

std::string details(const ops::Operator& op, const Terminal& terminal, int variant) {
  std::string text =
      terminal.bold(std::string(op.name)) + fmt::format("  {}, lowered as {}, rule {}\n", op.aten,
                                                        ops::to_string(op.lowering), ops::to_string(op.rule));
  text += fmt::format("  functional  {}\n  method      {}\n  module      {}\n", op.functional,
                      optional(op.method), optional(op.module));
  if (!op.constants.empty()) text += fmt::format("  constants   {}\n", op.constants);
  for (const ops::Form& form : ops::forms(op.rule)) {
    const ops::Applied applied = ops::example(op, form, variant);
    std::vector<std::string> operands;
    for (size_t s = 0; s < form.slots; ++s)
      operands.push_back(fmt::format("{} {}", ops::to_string(op.ranges[s]), shape_text(applied.operands[s])));
    const ops::Cost cost = ops::cost_of(applied);
    text += fmt::format("  {:<60} {} -> {}, {:.0f} FLOPs, {:.0f} bytes\n", ops::spellings(applied).functional,
                        fmt::join(operands, ", "), shape_text(applied.out), cost.flops, cost.bytes);
  }
  return text;
}

Result<std::vector<const ops::Operator*>> choose(const OpsOptions& options) {
  std::vector<const ops::Operator*> chosen;
  for (const std::string& name : options.names) {
    NEREID_TRY(const ops::Operator* op, find_operator(name));
    chosen.push_back(op);
  }
  if (options.names.empty()) chosen = ops::every_operator();
  if (options.lowering.empty()) return chosen;
  std::set<std::string_view> classes;
  for (const ops::Operator& op : ops::catalogue()) classes.insert(ops::to_string(op.lowering));
  if (!classes.contains(options.lowering))
    return input_error("--lowering: expected one of {}, got '{}'", fmt::join(classes, ", "),
                       options.lowering);
  std::erase_if(chosen, [&](const auto* op) { return ops::to_string(op->lowering) != options.lowering; });
  return chosen;
}

Result<Answer> run(const OpsOptions& options, bool json) {
  NEREID_TRY(const auto chosen, choose(options));
  if (json) {
    for (const ops::Operator* op : chosen)
      NEREID_TRY_STATUS(stream_stdout(operator_json(*op, options.variant).dump() + "\n"));
    return Answer::kYes;
  }
  const Terminal terminal = Terminal::of_stdout();
  std::string text;
  if (options.names.empty())
    text = table(chosen, terminal);
  else
    for (const ops::Operator* op : chosen) text += details(*op, terminal, options.variant);
  NEREID_TRY_STATUS(write_stdout(text));
  return Answer::kYes;
}

size_t distance(std::string_view a, std::string_view b) {  // of Levenshtein
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Result<const ops::Operator*> find_operator(std::string_view name) {
  if (const ops::Operator* op = ops::find(name)) return op;
  const auto all = ops::catalogue();
  const auto nearest = std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return distance(a.name, name) < distance(b.name, name);
  });
  return input_error("expected an operator (`nereid ops` lists them), got '{}'; did you mean '{}'?", name,
                     nearest->name);
}

void add_ops_command(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("ops", "List the operators: shapes, costs, spellings, lowering classes");
  command->footer(kOpsHelp);
  auto options = std::make_shared<OpsOptions>();
  command->add_option("NAME", options->names,
                      "Operators of which to show every form (default: list all operators)");
  command->add_option("--lowering", options->lowering,
                      "List operators of this lowering class: pointwise, reduction, scan, contraction, ...");
  command
      ->add_option(
          "--sizes", options->variant,
          "Index of the set of small sizes to show forms at; from 3 on windows and layers are random")
      ->check(CLI::Range(0, 9999));
  add_json_flag(
      *command, chosen,
      "Print one JSON object per operator: name, operands, rule, lowering, aten, spellings, ranges, forms[]");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run(*options, chosen.json); }; });
}

}  // namespace nereid::cli
