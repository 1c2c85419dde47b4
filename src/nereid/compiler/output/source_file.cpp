#include "nereid/compiler/output/source_file.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

namespace nereid::compiler {
namespace {

struct Block {
  std::vector<std::string> lines;
  std::string name;  // of a def or class, or a constant
  bool import = false;

  std::string text() const {
    std::string all;
    for (const auto& line : lines) all += line + "\n";
    return all;
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines{""};
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else if (c != '\r')
      lines.back() += c;
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
size_t past_spaces(std::string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}
// The name that begins there; empty where none does.
std::string_view word_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && in_name(text[end])) ++end;
  return text.substr(std::min(at, text.size()), end - at);
}
// Where the name stands from `at` on, as a whole.
size_t find_word(std::string_view text, std::string_view name, size_t at = 0) {
  for (at = text.find(name, at); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !in_name(text[at - 1])) && (end == text.size() || !in_name(text[end]))) return at;
  }
  return text.npos;
}

// What a line defines: "f" of "async def f(x):".
std::string_view defined_name(std::string_view line) {
  size_t at = 0;
  std::string_view word = word_at(line, at);
  if (word == "async") word = word_at(line, at = past_spaces(line, at + word.size()));
  if (word != "def" && word != "class") return {};
  const size_t name = past_spaces(line, at + word.size());
  return name == at + word.size() ? std::string_view() : word_at(line, name);
}

size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(" \t"), line.size()); }
bool blank(const std::string& line) { return indent_of(line) == line.size(); }

// Where brackets and strings of three quotes are open, a line goes on with the statement before.
class Nesting {
 public:
  bool in_string() const { return !quotes_.empty(); }
  bool open() const { return depth_ > 0 || !quotes_.empty() || continued_; }
  // Where a comment begins in the line; at its end where there is none.
  size_t read(const std::string& line) {
    continued_ = false;
    size_t code = line.size();
    for (size_t i = 0; i < line.size(); ++i) {
      if (!quotes_.empty()) {
        if (line[i] == '\\') {
          ++i;
        } else if (line.compare(i, quotes_.size(), quotes_) == 0) {
          i += quotes_.size() - 1;
          quotes_.clear();
        }
        continue;
      }
      const char c = line[i];
      if (c == '#') {
        code = i;
        break;
      }
      if (c == '"' || c == '\'') {
        quotes_ = line.compare(i, 3, std::string(3, c)) == 0 ? std::string(3, c) : std::string(1, c);
        i += quotes_.size() - 1;
      }
      if (c == '(' || c == '[' || c == '{') ++depth_;
      if (c == ')' || c == ']' || c == '}') --depth_;
      if (c == '\\' && i + 1 == line.size()) continued_ = true;
    }
    if (quotes_.size() == 1) quotes_.clear();  // it would be no Python
    return code;
  }

 private:
  int depth_ = 0;
  std::string quotes_;
  bool continued_ = false;
};

// "N" of "N = 2 * M": a number, of other names or not, which nothing but its name brings in.
std::string_view constant_name(const Block& block) {
  if (block.lines.size() != 1 || block.import) return {};
  const std::string_view line = block.lines.front(), name = word_at(line, 0);
  size_t at = past_spaces(line, name.size());
  if (name.empty() || at >= line.size() || line[at] != '=' || line.substr(at).starts_with("==")) return {};
  for (++at; at < line.size() && line[at] != '#'; ++at)
    if (!in_name(line[at]) && !is_space(line[at]) &&
        std::string_view(".+-*/").find(line[at]) == std::string_view::npos)
      return {};
  return name;
}

// Statements at one indentation, each with what is indented below it; decorators belong to what they
// decorate.
std::vector<Block> blocks_of(const std::vector<std::string>& lines, size_t indent) {
  std::vector<Block> blocks;
  Nesting nesting;
  bool decorated = false;
  for (const auto& line : lines) {
    const bool goes_on = nesting.open() || blank(line) || indent_of(line) > indent;
    const std::string head = blank(line) ? "" : line.substr(indent_of(line));
    const bool comment = head.starts_with("#"),
               otherwise = head.starts_with("else") || head.starts_with("elif") ||
                           head.starts_with("except") || head.starts_with("finally");
    const bool begins = !goes_on && !otherwise && !decorated;
    if ((begins && !comment) || blocks.empty()) blocks.emplace_back();
    blocks.back().lines.push_back(line);
    const bool inside = nesting.open();
    nesting.read(line);
    if (inside || goes_on || comment) continue;
    decorated = head.starts_with("@");
    if (const auto name = defined_name(head); !name.empty()) blocks.back().name = name;
    if (head.starts_with("import ") || head.starts_with("from ")) blocks.back().import = true;
  }
  for (auto& block : blocks)
    while (!block.lines.empty() && blank(block.lines.back())) block.lines.pop_back();
  std::erase_if(blocks, [](const Block& block) { return block.lines.empty(); });
  return blocks;
}

bool mentions(std::string_view text, std::string_view name) { return find_word(text, name) != text.npos; }

std::string renamed(const std::string& text, const std::string& from, const std::string& to) {
  std::string made;
  size_t done = 0;
  for (size_t at = find_word(text, from); at != text.npos; at = find_word(text, from, done)) {
    made.append(text, done, at - done) += to;
    done = at + from.size();
  }
  return made.append(text, done);
}

// "super(NAME, self)" as "super()".
std::string with_plain_super(const std::string& text, const std::string& name) {
  const std::string open = "super(" + name;
  std::string made;
  size_t done = 0;
  for (size_t at = text.find(open); at != text.npos; at = text.find(open, at + 1)) {
    size_t next = past_spaces(text, at + open.size());
    if (next == text.size() || text[next] != ',') continue;
    next = past_spaces(text, next + 1);
    if (text.compare(next, 5, "self)") != 0) continue;
    made.append(text, done, at - done) += "super()";
    done = next + 5;
  }
  return made.append(text, done);
}

// What stands between the brackets after "def forward".
Result<std::string> signature_of(const std::string& file, const Block& forward) {
  const std::string text = forward.text();
  const size_t def = text.find("def forward");
  const size_t open = text.find('(', def);
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == ']' || text[i] == '}') --depth;
    if (depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return input_error("{}: the parameters of forward cannot be read", file);
}

std::vector<Parameter> parameters_of(const std::string& signature) {
  std::vector<Parameter> parameters;
  int depth = 0;
  std::string one;
  for (const char c : signature + ",") {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c != ',' || depth > 0) {
      one += c;
      continue;
    }
    const size_t first = past_spaces(one, 0);
    const bool rest = first < one.size() && one[first] == '*';
    if (const auto name = word_at(one, first + (rest ? 1 : 0)); !name.empty())
      parameters.push_back({std::string(name), rest});
    one.clear();
  }
  if (!parameters.empty()) parameters.erase(parameters.begin());  // self
  return parameters;
}

const Block* named(const std::vector<Block>& blocks, const std::string& name) {
  const auto found = std::ranges::find_if(blocks, [&](const Block& b) { return b.name == name; });
  return found == blocks.end() ? nullptr : &*found;
}

struct ClassText {
  std::string bases;
  std::vector<Block> members;
};

ClassText class_text(const Block& block) {
  ClassText made;
  size_t head = 0;
  while (head < block.lines.size() && block.lines[head].find("class ") == std::string::npos) ++head;
  Nesting nesting;
  std::string first;
  size_t body = head;
  do {
    first += block.lines[body];
    nesting.read(block.lines[body++]);
  } while (nesting.open() && body < block.lines.size());
  const size_t open = first.find('('), close = first.rfind(')');
  made.bases = open == first.npos ? "" : first.substr(open + 1, close - open - 1);
  std::vector<std::string> lines(block.lines.begin() + static_cast<ptrdiff_t>(body), block.lines.end());
  while (!lines.empty() && blank(lines.front())) lines.erase(lines.begin());
  if (!lines.empty()) made.members = blocks_of(lines, indent_of(lines.front()));
  return made;
}

// Its text without what means a function's own parameters.
std::string without_parameters(const Block& block) {
  std::string text = block.text();
  if (const auto head = std::ranges::find_if(
          block.lines, [](const std::string& line) { return line.starts_with("class "); });
      head != block.lines.end()) {
    const ClassText own = class_text(block);
    std::string members = *head + "\n";
    for (const Block& member : own.members) members += without_parameters(member);
    return members + own.bases;
  }
  const size_t def = find_word(text, "def"), open = text.find('(', def);
  if (def == text.npos || open == text.npos ||
      block.name != defined_name(std::string_view(text).substr(def, open - def + 1)))
    return text;
  int depth = 0;
  size_t close = open;
  do
    depth += text[close] == '(' || text[close] == '[' || text[close] == '{'   ? 1
             : text[close] == ')' || text[close] == ']' || text[close] == '}' ? -1
                                                                              : 0;
  while (depth > 0 && ++close < text.size());
  if (close >= text.size()) return text;
  const std::string head = text.substr(open + 1, close - open - 1);
  std::string body = text.substr(close);
  // Of the head what is no name of a parameter: defaults and hints.
  std::string kept;
  bool name = true;
  depth = 0;
  for (const char c : head) {
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    name = depth == 0 && (c == ',' || (name && c != ':' && c != '='));
    if (!name) kept += c;
  }
  for (const Parameter& parameter : parameters_of("self," + head)) body = renamed(body, parameter.name, "");
  return text.substr(0, open) + kept + body;
}

// The blocks that `text` names, and those that they name; `model` is taken over otherwise.
std::vector<bool> needed_by(const std::vector<Block>& blocks, std::string text,
                            const Block* model = nullptr) {
  std::vector<bool> needed(blocks.size(), false);
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < blocks.size(); ++i)
      if (!needed[i] && &blocks[i] != model && !blocks[i].name.empty() && mentions(text, blocks[i].name)) {
        needed[i] = more = true;
        text += without_parameters(blocks[i]);
      }
  }
  return needed;
}

}  // namespace

// "x" of "    x = f(y)" and of "    x **= 2"; empty where nothing is assigned.
static std::string_view assigned_name(std::string_view line) {
  const size_t first = past_spaces(line, 0);
  const std::string_view name = word_at(line, first);
  if (first == 0 || name.empty()) return {};
  size_t at = past_spaces(line, first + name.size());
  if (line.substr(at).starts_with("**"))
    at += 2;
  else if (at < line.size() && std::string_view("-+*/@").find(line[at]) != std::string_view::npos)
    ++at;
  const bool assigns = at + 1 < line.size() && line[at] == '=' && line[at + 1] != '=';
  return assigns ? name : std::string_view();
}

std::vector<std::string> assigned_names(const std::string& source) {
  constexpr std::string_view kForward = "def forward(";
  std::string parameters;
  for (size_t at = source.find(kForward); at != source.npos; at = source.find(kForward, at + 1)) {
    const size_t begin = at + kForward.size();
    parameters += source.substr(begin, source.find(')', begin) - begin) + ",";
  }
  std::vector<std::string> names(1);
  for (std::string line : lines_of(source)) {
    while (!line.empty() && is_space(line.back())) line.pop_back();
    const std::string_view name = assigned_name(line);
    names.emplace_back(name.empty() || mentions(parameters, name) ? std::string_view() : name);
  }
  return names;
}

// Whether a statement is a text and nothing else.
static bool is_bare_string(std::string_view statement) {
  const size_t first = past_spaces(statement, 0);
  statement.remove_prefix(first);
  if (statement.empty() || (statement.front() != '"' && statement.front() != '\'')) return false;
  const std::string three(3, statement.front());
  const std::string_view quotes =
      statement.starts_with(three) ? std::string_view(three) : statement.substr(0, 1);
  return statement.size() >= 2 * quotes.size() &&
         statement.find(quotes, quotes.size()) == statement.size() - quotes.size();
}

std::string without_prose(const std::string& source) {
  std::string made, statement, owed;  // owed: what a body needs if nothing else is in it
  Nesting nesting;
  const auto settle = [&](size_t indent) {
    if (!owed.empty() && indent < indent_of(owed)) made += owed + "\n";
    owed.clear();
  };
  for (const std::string& line : lines_of(source)) {
    const bool begins = !nesting.open();
    const size_t code = nesting.read(line);
    std::string kept = line.substr(0, code);
    if (code < line.size())
      while (!kept.empty() && is_space(kept.back())) kept.pop_back();
    if (begins && blank(kept) && code < line.size()) continue;  // nothing but a comment
    statement += kept + "\n";
    if (nesting.open()) continue;
    while (!statement.empty() && is_space(statement.back())) statement.pop_back();
    const size_t indent = indent_of(statement);
    if (is_bare_string(statement)) {
      if (indent > 0 && owed.empty()) owed = std::string(indent, ' ') + "pass";
    } else {
      if (!blank(statement)) settle(indent);
      made += statement + "\n";
    }
    statement.clear();
  }
  settle(0);
  return made + statement;
}

Result<std::string> as_function(const std::string& source, const std::string& name,
                                const std::string& class_name) {
  std::string made = "def " + name + "():\n";
  for (const Block& block : blocks_of(lines_of(source), 0)) {
    const std::string& first = block.lines.front();
    if (block.name == "get_inputs" || block.name == "get_init_inputs" || first.starts_with("if __name__") ||
        first.starts_with("from __future__"))
      continue;
    if (block.import && first.find("import *") != first.npos)
      return input_error("--fallback: `{}` of the reference cannot stand in a function: name what it imports",
                         first);
    Nesting nesting;
    for (const std::string& line : block.lines) {
      const bool in_string = nesting.in_string();
      made += (in_string || blank(line) ? "" : "    ") + line + "\n";
      nesting.read(line);
    }
  }
  return made + "    return " + class_name + "\n";
}

std::string with_constructor(const std::string& members, const std::vector<std::string>& statements) {
  std::vector<Block> blocks = blocks_of(lines_of(members), indent_of(members));
  const auto constructor = std::ranges::find(blocks, "__init__", &Block::name);
  if (constructor == blocks.end() || mentions(constructor->text(), "return")) return "";
  std::vector<std::string>& own = constructor->lines;
  Nesting nesting;
  size_t body = 0;  // after comments, decorators and the parameters
  while (body < own.size() && !mentions(own[body], "def")) ++body;
  for (bool head = true; body < own.size() && (head || nesting.open() || blank(own[body])); head = false)
    nesting.read(own[body++]);
  if (body == own.size()) return "";
  for (const std::string& statement : statements)
    own.push_back(std::string(indent_of(own[body]), ' ') + statement);
  std::string made;
  for (const Block& block : blocks) made += (made.empty() ? "" : "\n") + block.text();
  return made;
}

static bool is_class(const Block& block) {
  return std::ranges::any_of(block.lines, [](const std::string& line) { return line.starts_with("class "); });
}

// "Gate" of the statement `Model = Gate`; empty of any other.
static std::string alias_in(const Block& block, const std::string& name) {
  if (block.lines.size() != 1 || block.import) return "";
  const std::string_view line =
      std::string_view(block.lines.front()).substr(0, block.lines.front().find('#'));
  size_t at = past_spaces(line, name.size());
  if (word_at(line, 0) != name || at >= line.size() || line[at] != '=') return "";
  const std::string_view meant = word_at(line, at = past_spaces(line, at + 1));
  return past_spaces(line, at + meant.size()) == line.size() ? std::string(meant) : "";
}

// The names of the class of the file that `name` stands for, itself the last, where aliases lead to it (they
// are removed from the blocks); else `name` alone.
static std::vector<std::string> names_of_class(std::vector<Block>& blocks, const std::string& name) {
  std::vector<std::string> names = {name};
  std::vector<size_t> aliases;
  while (named(blocks, names.back()) == nullptr && aliases.size() < 16) {
    const auto alias =
        std::ranges::find_if(blocks, [&](const Block& b) { return !alias_in(b, names.back()).empty(); });
    if (alias == blocks.end()) return {name};
    aliases.push_back(static_cast<size_t>(alias - blocks.begin()));
    names.push_back(alias_in(*alias, names.back()));
  }
  const Block* target = named(blocks, names.back());
  if (target == nullptr || !is_class(*target)) return {name};
  std::ranges::sort(aliases, std::greater<>());
  for (const size_t i : aliases) blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
  return names;
}

// Of the class, else of the first of its bases in the file that has one.
static std::optional<Block> forward_of(const std::vector<Block>& blocks, const ClassText& of, int depth = 0) {
  if (const Block* own = named(of.members, "forward")) return *own;
  for (size_t at = 0; depth < 16 && at < of.bases.size();) {
    const size_t end = std::min(of.bases.find(',', at), of.bases.size());
    const std::string base(word_at(of.bases, past_spaces(of.bases, at)));
    if (const Block* parent = named(blocks, base); parent != nullptr && is_class(*parent))
      if (auto found = forward_of(blocks, class_text(*parent), depth + 1)) return found;
    at = end + 1;
  }
  return std::nullopt;
}

static std::string keywords_in(const std::string& signature) {
  const size_t stars = signature.find("**");
  return stars == signature.npos ? "" : std::string(word_at(signature, stars + 2));
}

Result<SourceFile> read_source(const std::string& file, const std::string& source,
                               const std::string& given_name, const std::string& new_name,
                               const std::set<std::string>& also, const std::string& signature) {
  std::vector<Block> blocks = blocks_of(lines_of(source), 0);
  const std::vector<std::string> names = names_of_class(blocks, given_name);
  const std::string& class_name = names.back();
  const Block* model = named(blocks, class_name);
  if (model != nullptr && !is_class(*model)) model = nullptr;  // a function that makes it
  if (model == nullptr && signature.empty()) return input_error("{}: there is no class {}", file, class_name);
  ClassText own;
  std::optional<Block> forward;
  if (model != nullptr) {
    own = class_text(*model);
    forward = forward_of(blocks, own);
  } else {
    own.bases = "torch.nn.Module";
    own.members.emplace_back();
    own.members.back().name = "__init__";
    own.members.back().lines = {"    def __init__(self, *arguments, **named):",
                                "        super().__init__()",
                                "        vars(self).update(vars(" + class_name + "(*arguments, **named)))",
                                "",
                                "    def __getitem__(self, name):",
                                "        return self._modules[str(name)]"};
  }
  if (!forward && signature.empty())
    return input_error("{}: class {} has no forward of its own", file, class_name);
  for (Block& block : blocks)
    if (block.name.empty()) block.name = constant_name(block);
  SourceFile made;
  made.bases = own.bases;
  made.signature = signature;
  if (forward) {
    NEREID_TRY(made.signature, signature_of(file, *forward));
  }
  made.parameters = parameters_of(made.signature);
  made.keywords = keywords_in(made.signature);
  // The constructor, what it calls, and what is no function.
  std::string text, own_names;
  std::vector<Block> members = own.members;
  std::erase_if(members, [](const Block& b) { return b.name == "forward"; });
  const Block* constructor = named(members, "__init__");
  const std::vector<bool> used = needed_by(members, constructor == nullptr ? "" : constructor->text());
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].name.empty() || members[i].name == "__init__" || used[i]) {
      text += (text.empty() ? "" : "\n") + members[i].text();
      own_names += without_parameters(members[i]);
    }
  const auto rename = [&](std::string code) {
    if (model == nullptr) return code;
    for (const std::string& name : names) code = renamed(code, name, new_name);
    return code;
  };
  made.members = rename(text);
  made.members = with_plain_super(made.members, new_name);
  // At top level: what runs, and the constants, functions and classes that it and the class name.
  std::string wanted = own_names + "\n" + made.bases + "\n" + made.signature + "\n";
  const auto free_code = [&](const Block& b) {
    const bool is_bare_string = b.lines.front().starts_with("\"\"\"") || b.lines.front().starts_with("'''") ||
                                b.lines.front().starts_with("if __name__");
    return b.name.empty() && !b.import && !is_bare_string;
  };
  for (const std::string& name : also) wanted += name + "\n";
  for (const Block& block : blocks)
    if (free_code(block)) wanted += block.text();
  const std::vector<bool> needed = needed_by(blocks, wanted, model);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].import) {
      made.imports.push_back(blocks[i].text());
      continue;
    }
    if (&blocks[i] == model || !(free_code(blocks[i]) || needed[i])) continue;
    const bool apart = !blocks[i].name.empty() && constant_name(blocks[i]).empty();
    made.needed += (made.needed.empty() || !apart ? "" : "\n\n") + rename(blocks[i].text());
  }
  return made;
}

}  // namespace nereid::compiler
