#include "nereid/mutate/kernel_text.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>

namespace nereid::mutate {
namespace {

using std::string;
using std::string_view;

constexpr string_view kTensor = "tensor<";

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '#' || c == '$' || c == '.' ||
         c == '-';
}

// "%x" or "%x#1" at the start of `text`; empty where there is none.
string_view name_at(string_view text) {
  if (text.empty() || text[0] != '%') return {};
  size_t end = 1;
  while (end < text.size() && is_name_character(text[end])) ++end;
  return text.substr(0, end);
}

// The last " : " outside brackets.
size_t find_type(string_view text) {
  int depth = 0;
  size_t found = string_view::npos;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '-' && i + 1 < text.size() && text[i + 1] == '>') {
      ++i;
    } else if (c == '(' || c == '{' || c == '[' || c == '<') {
      ++depth;
    } else if (c == ')' || c == '}' || c == ']' || c == '>') {
      --depth;
    } else if (c == ' ' && depth == 0 && text.substr(i, 3) == " : ") {
      found = i;
    }
  }
  return found;
}

void read_operands(Operation& operation) {
  string_view rest = operation.middle;
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == '(')) rest.remove_prefix(1);
  // A predicate, the kind of an atomic operation, its order and its scope.
  while (!rest.empty() && std::isalpha(static_cast<unsigned char>(rest[0]))) {
    const size_t comma = rest.find(", ");
    if (comma == string_view::npos || rest.substr(0, comma).find(' ') != string_view::npos) return;
    rest.remove_prefix(comma + 2);
  }
  while (true) {
    const auto name = name_at(rest);
    if (name.empty()) return;
    operation.operands.emplace_back(name);
    rest.remove_prefix(name.size());
    if (rest.substr(0, 2) != ", ") return;
    rest.remove_prefix(2);
  }
}

}  // namespace

std::optional<Operation> read_operation(string_view line) {
  Operation out;
  const size_t start = line.find_first_not_of(' ');
  if (start == string_view::npos) return std::nullopt;
  out.indent = line.substr(0, start);
  line.remove_prefix(start);
  if (const size_t location = line.rfind(" loc("); location != string_view::npos && line.back() == ')') {
    out.location = line.substr(location);
    line = line.substr(0, location);
  }
  if (const auto name = name_at(line); !name.empty()) {
    out.result = name, out.results = 1;
    line.remove_prefix(name.size());
    if (!line.empty() && line[0] == ':') {
      out.results = std::atoi(string(line.substr(1)).c_str());
      line.remove_prefix(std::min(line.size(), line.find(" = ")));
    }
    if (line.substr(0, 3) != " = ") return std::nullopt;
    line.remove_prefix(3);
  }
  out.quoted = !line.empty() && line[0] == '"';
  if (out.quoted) line.remove_prefix(1);
  size_t end = 0;
  while (end < line.size() &&
         (std::isalnum(static_cast<unsigned char>(line[end])) || line[end] == '.' || line[end] == '_'))
    ++end;
  out.op = line.substr(0, end);
  if (out.op.find('.') == string::npos) return std::nullopt;
  line.remove_prefix(end + (out.quoted ? 1 : 0));
  const size_t type = find_type(line);
  if (type != string_view::npos) out.type = line.substr(type + 3);
  out.middle = line.substr(0, type);
  if (!out.quoted && !out.middle.empty() && out.middle[0] == ' ') out.middle.erase(0, 1);
  read_operands(out);
  return out;
}

string write(const Operation& o) {
  string text = o.indent;
  if (!o.result.empty())
    text += o.results == 1 ? o.result + " = " : fmt::format("{}:{} = ", o.result, o.results);
  text += o.quoted ? "\"" + o.op + "\"" : o.op;
  if (!o.quoted && !o.middle.empty() && o.middle[0] != '(') text += " ";
  text += o.middle;
  if (!o.type.empty()) text += " : " + o.type;
  return text + o.location;
}

string element_of(string_view type) {
  if (!type.starts_with(kTensor) || !type.ends_with(">")) return string(type);
  type.remove_prefix(kTensor.size());
  type.remove_suffix(1);
  while (!type.empty() && std::isdigit(static_cast<unsigned char>(type[0]))) {
    const size_t x = type.find('x');
    if (x == string_view::npos) break;
    type.remove_prefix(x + 1);
  }
  return string(type);
}

std::vector<int> shape_of(string_view type) {
  std::vector<int> shape;
  if (!type.starts_with(kTensor)) return shape;
  type.remove_prefix(kTensor.size());
  while (!type.empty() && std::isdigit(static_cast<unsigned char>(type[0]))) {
    shape.push_back(std::atoi(string(type).c_str()));
    const size_t x = type.find('x');
    if (x == string_view::npos) break;
    type.remove_prefix(x + 1);
  }
  return shape;
}

string with_element(string_view type, string_view element) {
  if (!type.starts_with(kTensor)) return string(element);
  string out(kTensor);
  for (const int size : shape_of(type)) out += fmt::format("{}x", size);
  return out + string(element) + ">";
}

bool is_float(string_view e) { return e == "f32" || e == "f16" || e == "bf16" || e == "f64"; }
bool is_integer(string_view e) { return e == "i32" || e == "i64" || e == "i16" || e == "i8"; }

string pointee_of(string_view element) {
  constexpr string_view kPointer = "!tt.ptr<";
  if (!element.starts_with(kPointer) || !element.ends_with(">")) return {};
  return string(element.substr(kPointer.size(), element.size() - kPointer.size() - 1));
}

string result_type(const Operation& o) {
  if (o.results != 1 || o.type.empty()) return {};
  if (const size_t arrow = o.type.rfind("-> "); arrow != string::npos) return o.type.substr(arrow + 3);
  if (const size_t to = o.type.rfind(" to "); to != string::npos) return o.type.substr(to + 4);
  if (o.op == "arith.cmpi" || o.op == "arith.cmpf") return with_element(o.type, "i1");
  if (o.op == "tt.load") return with_element(o.type, pointee_of(element_of(o.type)));
  if (o.op == "arith.select") {
    const size_t comma = o.type.rfind(", ");
    return comma == string::npos ? o.type : o.type.substr(comma + 2);
  }
  if (o.op == "tt.addptr") return o.type.substr(0, o.type.rfind(", "));
  return o.type;
}

string constant_line(const Operation& like, const string& name, const string& text, const string& type) {
  Operation constant;
  constant.indent = like.indent, constant.location = like.location;
  constant.result = name, constant.results = 1, constant.op = "arith.constant";
  if (type == "i1") {
    constant.middle = text == "1" || text == "true" ? "true" : "false";
  } else {
    constant.middle = type.starts_with(kTensor) ? "dense<" + text + ">" : text;
    constant.type = type;
  }
  return write(constant);
}

KernelText::KernelText(string_view text) {
  bool in_function = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const auto line = text.substr(0, end);
    lines_.emplace_back(line);
    if (line.find(" tt.func ") != string_view::npos || line.starts_with("tt.func ")) {
      in_function = true;
      operations_.emplace_back();
    } else if (line.starts_with("#")) {
      operations_.emplace_back();
    } else {
      operations_.push_back(in_function ? read_operation(line) : std::nullopt);
    }
    text = end == string_view::npos ? string_view() : text.substr(end + 1);
  }
}

int KernelText::end_of_region(int line) const {
  const auto& opening = lines_[static_cast<size_t>(line)];
  const size_t indent = opening.find_first_not_of(' ');
  for (size_t i = static_cast<size_t>(line) + 1; i < lines_.size(); ++i) {
    const size_t own = lines_[i].find_first_not_of(' ');
    if (own == string::npos || own > indent) continue;
    if (own < indent) return -1;
    if (lines_[i][own] == '^' || lines_[i].find("else {") != string::npos) continue;
    return lines_[i][own] == '}' ? static_cast<int>(i) : -1;
  }
  return -1;
}

int KernelText::source_line(const Operation& operation) const {
  string_view at = operation.location;
  for (int depth = 0; depth < 16; ++depth) {
    // The caller's place is the last one of callsite(A at B); a name stands around its place.
    const size_t quote = at.find("\":");
    if (quote != string_view::npos) return std::atoi(string(at.substr(quote + 2)).c_str());
    const size_t hash = at.rfind("#loc");
    if (hash == string_view::npos) return 0;
    size_t end = hash + 4;
    while (end < at.size() && std::isdigit(static_cast<unsigned char>(at[end]))) ++end;
    const string name = string(at.substr(hash, end - hash)) + " = ";
    const string* found = nullptr;
    for (const auto& line : lines_)
      if (line.starts_with(name)) found = &line;
    if (found == nullptr) return 0;
    at = string_view(*found).substr(name.size());
  }
  return 0;
}

}  // namespace nereid::mutate
