#include "nereid/render/python_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <sstream>

#include "nereid/trace/notation.h"

namespace nereid::render {
namespace {

bool dotted_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  });
}

class ArgumentWriter {
 public:
  ArgumentWriter(const NameOf& name_of, const std::string& device, Names names)
      : name_of_(name_of), device_(device), names_(names) {}

  Result<std::string> operator()(const trace::Arg& arg) const {
    if (std::holds_alternative<trace::None>(arg.node)) return std::string("None");
    if (const auto* flag = std::get_if<bool>(&arg.node)) return std::string(*flag ? "True" : "False");
    if (const auto* whole = std::get_if<int64_t>(&arg.node)) return std::to_string(*whole);
    if (const auto* real = std::get_if<double>(&arg.node)) return float_text(*real);
    if (const auto* z = std::get_if<std::complex<double>>(&arg.node)) return complex_text(*z);
    if (const auto* text = std::get_if<trace::Text>(&arg.node)) return quoted_text(text->text);
    if (const auto* ref = std::get_if<trace::TensorRef>(&arg.node)) return name_of_(ref->value);
    if (const auto* named = std::get_if<trace::Named>(&arg.node)) return of(*named);
    if (const auto* list = std::get_if<trace::List>(&arg.node)) return of(*list);
    if (const auto* dict = std::get_if<trace::Dict>(&arg.node)) return of(*dict);
    return input_error("an argument has no text");
  }

 private:
  Result<std::string> of(const trace::Named& named) const {
    if (named.kind == "dtype")
      if (const auto type = trace::dtype_from_string(named.name)) return dtype_text(*type);
    if (named.kind == "device")
      return named.name == "cpu" && names_ != Names::kFile ? std::string("\"cpu\"") : device_;
    if (named.kind == "global" && names_ == Names::kFile) return name_of_global(named.name);
    if ((named.kind == "layout" || named.kind == "memory_format") && dotted_name(named.name))
      return "torch." + named.name;
    return input_error("a {} has no text", named.kind);
  }
  Result<std::string> of(const trace::List& list) const {
    std::vector<std::string> items;
    for (const auto& item : list.items) {
      NEREID_TRY(auto text, (*this)(item));
      items.push_back(std::move(text));
    }
    if (!list.tuple) return fmt::format("[{}]", fmt::join(items, ", "));
    return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
  }
  Result<std::string> of(const trace::Dict& dict) const {
    std::vector<std::string> items;
    if (names_ != Names::kNone && dict.kind != trace::Dict::Kind::kDict) return object(dict);
    for (const auto& item : dict.items) {
      NEREID_TRY(auto text, (*this)(item.second));
      items.push_back(quoted_text(item.first) + ": " + text);
    }
    return fmt::format("{{{}}}", fmt::join(items, ", "));
  }

  // "Color.RED" of an enumeration.
  Result<std::string> member(const trace::Dict& dict) const {
    const auto name = std::ranges::find(dict.items, "name", &trace::DictItem::first);
    const auto* text = name == dict.items.end() ? nullptr : std::get_if<trace::Text>(&name->second.node);
    if (text == nullptr) return input_error("an object of class {} has no text", dict.type);
    return fmt::format("{}.{}", name_of_global(dict.type), text->text);
  }

  Result<std::string> object(const trace::Dict& dict) const {
    if (names_ == Names::kFile && dict.kind == trace::Dict::Kind::kEnum) return member(dict);
    const size_t colon = std::min(dict.type.find(':'), dict.type.size() - 1);
    const std::string module = dict.type.substr(0, colon), name = dict.type.substr(colon + 1);
    if (!dotted_name(name) || (!module.empty() && !dotted_name(module)) ||
        dict.kind == trace::Dict::Kind::kEnum)
      return input_error("an object of class {} has no text", dict.type);
    std::vector<std::string> items;
    for (const auto& item : dict.items) {
      NEREID_TRY(auto text, (*this)(item.second));
      items.push_back(item.first + "=" + text);
    }
    const std::string from = module.empty() || names_ == Names::kFile
                                 ? ""
                                 : fmt::format("__import__(\"importlib\").import_module(\"{}\").", module);
    return fmt::format("{}{}({})", from, name, fmt::join(items, ", "));
  }

  const NameOf& name_of_;
  const std::string& device_;
  const Names names_;
};

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string first_word(const std::string& line, size_t at) {
  size_t end = at;
  while (end < line.size() && word_char(line[end])) ++end;
  return line.substr(at, end - at);
}

// The name that a line at the margin defines; empty where it defines none.
std::string defined(const std::string& line) {
  for (const std::string_view keyword : {"class ", "def "})
    if (line.starts_with(keyword)) return first_word(line, keyword.size());
  const std::string word = first_word(line, 0);
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return "";
  size_t at = line.find_first_not_of(' ', word.size());
  if (at == line.npos || (line[at] != '=' && line[at] != ':')) return "";
  return line.compare(at, 2, "==") == 0 ? "" : word;
}

std::string renamed(const std::string& text, const std::set<std::string>& names, const std::string& prefix) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (!word_char(text[i])) {
      out += text[i++];
      continue;
    }
    const std::string word = first_word(text, i);
    const bool attribute = i > 0 && text[i - 1] == '.';
    if (!attribute && names.contains(word)) out += prefix;
    out += word;
    i += word.size();
  }
  return out;
}

}  // namespace

std::string float_text(double x) {
  if (std::isnan(x)) return "float(\"nan\")";
  if (std::isinf(x)) return x > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  std::string text = fmt::format("{}", x);
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

std::string quoted_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (byte < 32 || byte == 127)  // other bytes are UTF-8, and so is the file
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string tuple_text(const std::vector<int64_t>& numbers) {
  return fmt::format("({}{})", fmt::join(numbers, ", "), numbers.size() == 1 ? "," : "");
}

std::string dtype_text(trace::DType type) { return fmt::format("torch.{}", trace::torch_name(type)); }

Result<std::string> call_python(const trace::Call& call, const NameOf& name_of, const std::string& device,
                                Names names) {
  const size_t colons = call.op.find("::");
  const std::string name = colons == call.op.npos ? "" : call.op.substr(colons + 2);
  if (!call.op.starts_with("aten::") || !dotted_name(name)) return input_error("{} has no text", call.op);
  const ArgumentWriter writer(name_of, device, names);
  std::vector<std::string> args;
  for (const auto& arg : call.args) {
    NEREID_TRY(auto text, writer(arg));
    args.push_back(std::move(text));
  }
  for (const auto& [key, arg] : call.kwargs) {
    if (!dotted_name(key)) return input_error("{}'s argument '{}' has no text", call.op, key);
    NEREID_TRY(const auto text, writer(arg));
    args.push_back(key + "=" + text);
  }
  return fmt::format("torch.ops.aten.{}{}({})", name, name.find('.') == name.npos ? ".default" : "",
                     fmt::join(args, ", "));
}

std::string targets_python(const trace::Arg& result, const std::function<std::string(trace::ValueId)>& wish) {
  if (const auto* ref = std::get_if<trace::TensorRef>(&result.node)) return wish(ref->value);
  const auto* list = std::get_if<trace::List>(&result.node);
  if (list == nullptr || list->items.empty()) return "_";
  std::vector<std::string> items;
  for (const auto& item : list->items) items.push_back(targets_python(item, wish));
  return fmt::format("{}{}", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

Result<std::string> tree_python(const trace::Arg& arg, const NameOf& name_of, const std::string& device,
                                Names names) {
  return ArgumentWriter(name_of, device, names)(arg);
}

std::string name_of_global(const std::string& name) { return name.substr(name.find(':') + 1); }

std::string complex_text(std::complex<double> z) {
  return fmt::format("complex({}, {})", float_text(z.real()), float_text(z.imag()));
}

Part as_part(const std::string& source, const std::string& prefix) {
  Part part;
  std::set<std::string> names;
  // A file's own text at its top (a plan in words) is no code.
  size_t begin = source.find_first_not_of(" \n");
  if (begin != source.npos && source.compare(begin, 3, "\"\"\"") == 0)
    if (const size_t end = source.find("\"\"\"", begin + 3); end != source.npos) begin = end + 3;
  std::istringstream lines(begin == source.npos ? "" : source.substr(begin));
  bool dropped = false;
  for (std::string line; std::getline(lines, line);) {
    const bool margin =
        !line.empty() && line[0] != ' ' && line[0] != '\t' && line[0] != ')' && line[0] != '#';
    if (margin) dropped = line.starts_with("def get_inputs") || line.starts_with("def get_init_inputs");
    if (dropped) continue;
    if (margin && (line.starts_with("import ") || line.starts_with("from "))) {
      if (line.find('(') != line.npos)
        for (std::string more; line.find(')') == line.npos && std::getline(lines, more);) line += "\n" + more;
      part.imports.push_back(line);
      continue;
    }
    if (margin)
      if (auto name = defined(line); !name.empty()) names.insert(std::move(name));
    part.text += line + "\n";
  }
  part.text = renamed(part.text, names, prefix);
  const size_t first = part.text.find_first_not_of('\n');
  part.text.erase(0, first == part.text.npos ? part.text.size() : first);
  while (part.text.ends_with("\n\n")) part.text.pop_back();
  return part;
}

}  // namespace nereid::render
