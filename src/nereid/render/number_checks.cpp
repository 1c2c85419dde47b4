#include "nereid/render/number_checks.h"

#include <fmt/format.h>

#include <cmath>

#include "nereid/render/python_text.h"

namespace nereid::render {
namespace {

using trace::Arg;

class NumberChecks {
 public:
  explicit NumberChecks(const std::string& indent) : indent_(indent) {}

  void add(const Arg& arg, const std::string& path) {
    if (path.empty()) return;
    if (const auto* number = std::get_if<double>(&arg.node)) return check(*number, path);
    if (const auto* list = std::get_if<trace::List>(&arg.node))
      for (size_t i = 0; i < list->items.size(); ++i) add(list->items[i], fmt::format("{}[{}]", path, i));
    if (const auto* dict = std::get_if<trace::Dict>(&arg.node))
      for (const auto& item : dict->items)
        add(item.second, dict->kind == trace::Dict::Kind::kDict
                             ? fmt::format("{}[{}]", path, quoted_text(item.first))
                             : fmt::format("{}.{}", path, item.first));
  }

  std::string text() const { return text_; }

 private:
  void check(double number, const std::string& path) {
    const bool nan = std::isnan(number);
    text_ += fmt::format("{0}if {1} {2} {3}:\n{0}    raise ValueError(\"expected {4}, got \" + str({1}))\n",
                         indent_, path, nan ? "==" : "!=", nan ? path : float_text(number),
                         nan ? "nan" : fmt::format("{}", number));
  }

  const std::string& indent_;
  std::string text_;
};

}  // namespace

std::string number_checks(const Arg& inputs, const InputPaths& paths, const std::string& indent) {
  NumberChecks checks(indent);
  const auto* dict = std::get_if<trace::Dict>(&inputs.node);
  if (const auto* list = std::get_if<trace::List>(&inputs.node)) {
    for (size_t i = 0; i < list->items.size(); ++i) checks.add(list->items[i], paths.by_place(i));
  } else if (dict != nullptr && dict->kind == trace::Dict::Kind::kDict) {
    for (const auto& item : dict->items) checks.add(item.second, paths.by_key(item.first));
  } else {
    checks.add(inputs, paths.by_place(0));
  }
  return checks.text();
}

}  // namespace nereid::render
