// One pass over the steps writes bodies: forward() and, for regions written apart, functions and submodules.
// What a body's constructor must hold is collected on the way; sizes are named when they are first written.
#include "nereid/synth/write/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <iterator>

#include "nereid/ops/spelling.h"
#include "nereid/synth/write/phrasing.h"
#include "nereid/synth/write/prose.h"
#include "nereid/synth/write/words.h"

namespace nereid::synth {
namespace {

// A value as it is written in the body at hand.
struct Written {
  std::string text;
  bool atomic = true;  // false: an infix expression, which a method needs in parentheses
};

// An argument of a constructor that is no size.
struct Number {
  std::string argument, value;
  std::string text;  // as get_init_inputs() has it
};

// A class or function that is being written.
struct Body {
  NameTable names;              // of variables
  NameTable attributes;         // of self
  std::string init;             // lines of __init__
  std::string lines;            // of forward, or of the function
  std::vector<int32_t> sizes;   // written in __init__ by name, in the order of their arguments
  std::vector<Number> numbers;  // further ones
  std::vector<std::pair<int32_t, std::string>> unpacked;  // sizes that variables of forward() hold
  std::vector<Written> steps, inputs;  // how each value is written here; empty: not known here
  std::vector<std::pair<Ref, std::string>> arguments;
  std::vector<Layout::Owner> parameters, submodules;  // of self's tensors: whose they are
  std::vector<size_t> unplaced;                       // steps in the statement that is being put together
  // Steps, and lines of `lines` or further ones; behind all steps the statements that come before theirs.
  std::vector<std::pair<size_t, int>> placed;
  bool method = true;
  bool model = false;  // the whole module's
};

class Emitter {
 public:
  Emitter(const Program& program, const CodeStyle& style, std::string& to)
      : program_(program),
        style_(style),
        uses_(uses_of(program)),
        to_(to),
        inventor_(style.invented_names),
        prose_(style.prose) {
    const auto list = size_names(style.size_names);
    listed_sizes_.assign(list.begin(), list.end());
    if (style.invented_sizes != 0) {
      NameInventor inventor(style.invented_sizes);
      NameTable once;
      for (std::string& name : listed_sizes_) name = once.fresh(inventor.size());
    }
    if (style.shuffled != 0) {
      Rng rng(style.shuffled, 0);
      shuffle(rng, listed_sizes_);
    }
    layout_.lines.resize(program.steps.size()), layout_.before.resize(program.steps.size()),
        layout_.own.resize(program.steps.size());
    layout_.parameter.resize(program.inputs.size());
  }

  Layout write() {
    Body model = body(true);
    model.model = true;
    arguments_of(model, 0, program_.steps.size());
    if (style_.unpacked) unpack(model);
    steps(model, 0, program_.steps.size(), true);
    finish(model, static_cast<int>(program_.steps.size()) - 1, style_.second_output);
    if (style_.shuffled != 0) {
      Rng rng(style_.shuffled, 1);
      shuffle(rng, model.sizes);
    }
    // Inputs first: they name the sizes that are globals.
    const std::string inputs = inputs_function(model);
    const std::string init = init_function(model);
    file_prose();
    imports();
    std::string model_class;
    write_class(model, "Model", model_class);
    const bool globals_first = style_.size_names % 2 == 1;
    if (globals_first) globals();
    place(placed_apart_);
    to_ += apart_;
    place(model.placed);
    to_ += model_class;
    if (!globals_first) globals();
    to_ += inputs;
    to_ += init;
    for (const auto& [ref, name] : model.arguments) layout_.arguments.push_back(ref.index);
    layout_.state = std::move(model.parameters);
    layout_.state.insert(layout_.state.end(), model.submodules.begin(), model.submodules.end());
    if (style_.tight) tighten();
    if (style_.whole_paths) spell_out();
    return std::move(layout_);
  }

 private:
  template <typename... Args>
  static void format(std::string& to, fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(to), text, std::forward<Args>(args)...);
  }

  template <typename T>
  static void shuffle(Rng& rng, std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[rng.below(static_cast<uint32_t>(i))]);
  }

  // ---- prose
  bool says(uint32_t one_in) { return style_.prose != 0 && prose_.one_in(one_in); }
  // Lines of comments.
  void comments(const char* indent, uint32_t one_in, std::string& to) {
    if (!says(one_in)) return;
    for (uint32_t lines = 1 + prose_.below(2); lines > 0; --lines)
      format(to, "{}# {}\n", indent, prose_.sentence());
  }
  // At the end of a line.
  void remark(uint32_t one_in, std::string& to) {
    if (says(one_in)) format(to, "  # {}", prose_.remark());
  }
  void docstring(const char* indent, std::string& to) {
    const uint32_t sentences = prose_.below(3);
    if (sentences == 0) {
      format(to, "{}\"\"\"{}\"\"\"\n", indent, prose_.sentence());
      return;
    }
    const bool begins = prose_.one_in(2);  // in a line of its own
    format(to, "{}\"\"\"{}", indent, begins ? fmt::format("\n{}", indent) : "");
    to += prose_.sentence();
    for (uint32_t i = 0; i < sentences; ++i)
      format(to, "\n{}{}{}", prose_.one_in(2) ? "\n" : "", indent, prose_.sentence());
    format(to, "\n{}\"\"\"\n", indent);
  }
  void file_prose() {
    comments("", 8, to_);
    if (says(5)) {
      docstring("", to_);
      if (prose_.one_in(2)) to_ += '\n';
    }
  }

  // One empty line where there were two.
  void tighten() {
    std::string text;
    std::vector<int> kept = {0};  // of each line and those before it: how many stay
    for (size_t begin = 0; begin < to_.size();) {
      const size_t end = to_.find('\n', begin) + 1;
      const bool dropped = end == begin + 1 && begin >= 2 && to_[begin - 2] == '\n';
      if (!dropped) text.append(to_, begin, end - begin);
      kept.push_back(kept.back() + (dropped ? 0 : 1));
      begin = end;
    }
    for (auto* lines : {&layout_.lines, &layout_.before})
      for (int& line : *lines) line = kept[static_cast<size_t>(line)];
    to_ = std::move(text);
  }

  // `torch.nn.` for `nn.`, in every line.
  void spell_out() {
    for (const auto& [prefix, whole] :
         {std::pair{"nn.", "torch.nn."}, std::pair{"F.", "torch.nn.functional."}})
      for (size_t at = 0; (at = to_.find(prefix, at)) != std::string::npos; at += std::strlen(whole)) {
        const char before = at == 0 ? '\n' : to_[at - 1];
        if (before != '.' && before != '_' && std::isalnum(static_cast<unsigned char>(before)) == 0)
          to_.replace(at, std::strlen(prefix), whole);
      }
  }

  // ---- names
  std::string value_called(std::string_view wanted) {
    return style_.invented_names == 0 ? std::string(wanted) : inventor_.value();
  }

  // ---- where things are
  static int lines_in(std::string_view text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  // What is placed in a text that comes next.
  void place(const std::vector<std::pair<size_t, int>>& placed) {
    const int before = lines_in(to_) + 1;
    const size_t steps = layout_.lines.size();
    for (const auto& [step, line] : placed)
      (step < steps ? layout_.lines[step] : layout_.before[step - steps]) = before + line;
  }
  // The body's lines come next in `text`.
  static void move_on(Body& body, std::string_view text) {
    const int before = lines_in(text);
    for (auto& [step, line] : body.placed) line += before;
  }

  Body body(bool method) const {
    Body made;
    made.steps.resize(program_.steps.size()), made.inputs.resize(program_.inputs.size());
    made.method = method;
    if (style_.sizes == SizeStyle::kGlobal)  // a variable of such a name would hide the size
      for (const std::string& size : listed_sizes_) (void)made.names.fresh(size);
    return made;
  }

  // ---- sizes
  const std::string& size_name(int32_t size) {
    for (const auto& [known, name] : size_names_)
      if (known == size) return name;
    const size_t place = size_names_.size();
    return size_names_
        .emplace_back(size, place < listed_sizes_.size() ? listed_sizes_[place] : fmt::format("dim{}", place))
        .second;
  }
  void number(std::string& to, int32_t size) const { format(to, "{}", size); }
  void global(std::string& to, int32_t size) {
    if (style_.sizes != SizeStyle::kGlobal || size < 2) return number(to, size);
    to += size_name(size);
  }
  // In forward() or a function.
  void in_forward(const Body& body, std::string& to, int32_t size) {
    for (const auto& [known, name] : body.unpacked)
      if (known == size) {
        to += name;
        return;
      }
    global(to, size);
  }
  // `b, c = x.shape`, or no variables at all.
  void unpack(Body& body) {
    static constexpr std::string_view kNames[][ops::kMaxRank] = {{"b", "c", "h", "w", "d"},
                                                                 {"bs", "rows", "cols", "depth", "last"}};
    for (const auto& [ref, argument] : body.arguments) {
      const ops::Shape& shape = program_.inputs[ref.index].shape;
      if (shape.rank < 2) continue;
      if (style_.inline_shapes) {
        if (style_.names == Names::kReused) return;  // it is something else soon
        for (size_t d = 0; d < shape.rank; ++d)
          if (shape.dims[d] > 1)
            body.unpacked.emplace_back(
                shape.dims[d],
                fmt::format(style_.spoken == 0 ? fmt::runtime("{}.shape[{}]") : fmt::runtime("{}.size({})"),
                            argument, d));
        return;
      }
      std::string list;
      for (size_t d = 0; d < shape.rank; ++d) {
        if (style_.one_by_one && d % 2 == style_.input_names % 2U) continue;
        const std::string name = body.names.fresh(value_called(kNames[style_.spoken][d]));
        if (style_.one_by_one) {
          const int axis = static_cast<int>(d) - (style_.input_names == 2 ? static_cast<int>(shape.rank) : 0);
          format(body.lines,
                 style_.spoken == 0 ? fmt::runtime("        {} = {}.shape[{}]\n")
                                    : fmt::runtime("        {} = {}.size({})\n"),
                 name, argument, axis);
        }
        list += (d > 0 ? ", " : "") + name;
        if (shape.dims[d] > 1) body.unpacked.emplace_back(shape.dims[d], name);
      }
      if (!style_.one_by_one)
        format(body.lines, "        {} = {}.{}\n", list, argument, style_.spoken == 0 ? "shape" : "size()");
      return;
    }
  }
  // What the constructors' arguments call it: as globals do, or "n" of N.
  std::string argument_name(int32_t size) {
    const std::string& global = size_name(size);
    if (!style_.apart || style_.sizes != SizeStyle::kGlobal) return global;
    for (const auto& [known, name] : argument_names_)
      if (known == size) return name;
    std::string name = global;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name == global || name.size() < 4) name += style_.spoken == 0 ? "_size" : "_dim";  // "is", "for"
    name = arguments_.fresh(name);
    return argument_names_.emplace_back(size, name).second;
  }
  // In a constructor.
  void argument(Body& body, std::string& to, int32_t size) {
    if (style_.sizes == SizeStyle::kLiteral || size < 2) return number(to, size);
    if (std::find(body.sizes.begin(), body.sizes.end(), size) == body.sizes.end()) body.sizes.push_back(size);
    to += argument_name(size);
  }
  void shape(std::string& to, const ops::Shape& shape, bool in_constructor, Body* body) {
    if (shape.rank == 0) to += "()";
    for (size_t d = 0; d < shape.rank; ++d) {
      if (d > 0) to += ", ";
      in_constructor ? argument(*body, to, shape.dims[d]) : global(to, shape.dims[d]);
    }
  }

  // ---- arguments
  // Inputs and earlier results that the steps take from outside.
  void arguments_of(Body& body, size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) {
      const Step& step = program_.steps[i];
      for (size_t s = 0; s < step.operands.size(); ++s) {
        const Ref ref = step.operands[s];
        Written& written = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
        if (!written.text.empty() || (!ref.fresh && ref.index >= first)) continue;
        if (ref.fresh && style_.parameter[ref.index]) continue;
        const std::string_view wanted =
            ref.fresh ? input_name(*step.applied.op, program_.inputs[ref.index], step.applied.out,
                                   std::min<size_t>(s, 2), style_.input_names)
                      : std::string_view("x");
        written.text = body.names.fresh(value_called(wanted));
        body.arguments.push_back({ref, written.text});
      }
    }
  }
  void own_parameter(Body& body, Ref ref, const Step& step) {
    const Input& input = program_.inputs[ref.index];
    const std::string name = body.attributes.fresh(
        value_called(input_name(*step.applied.op, input, step.applied.out, 1, style_.input_names)));
    format(body.init, "        self.{} = nn.Parameter(torch.randn(", name);
    shape(body.init, input.shape, true, &body);
    body.init += ')';
    if (input.range == ops::Range::kWeight)
      format(body.init, " * {:.4g}", 1 / std::sqrt(static_cast<double>(input.summed)));
    body.init += ")\n";
    layout_.parameter[ref.index] = name;
    body.parameters.push_back({.input = true, .index = ref.index});
    body.inputs[ref.index] = {"self." + name, true};
  }

  // ---- steps
  void steps(Body& body, size_t first, size_t end, bool regions) {
    auto region = std::lower_bound(style_.regions.begin(), style_.regions.end(), first,
                                   [](const Region& r, size_t i) { return r.first < i; });
    for (size_t i = first; i < end; ++i) {
      if (regions && region != style_.regions.end() && region->first == i) {
        apart(body, *region);
        i = region->last;
        ++region;
      } else {
        one(body, i);
      }
    }
  }

  void one(Body& body, size_t i) {
    Written expression = expression_of(body, i);
    body.unplaced.push_back(i);
    if (style_.inlined[i]) {
      body.steps[i] = std::move(expression);
      return;
    }
    assign(body, i, expression.text);
  }

  Written expression_of(Body& body, size_t i) {
    const Step& step = program_.steps[i];
    const ops::Operator& op = *step.applied.op;
    for (const Ref ref : step.operands)
      if (ref.fresh && style_.parameter[ref.index] && body.inputs[ref.index].text.empty())
        own_parameter(body, ref, step);
    const Spelling spelling = style_.spelling[i];
    const ops::Applied applied = styled_call(program_, style_, i);
    operands_.clear();
    std::string pattern(spelling == Spelling::kModule   ? ""
                        : spelling == Spelling::kMethod ? op.method
                                                        : op.functional);
    pattern = phrased(std::move(pattern), applied, style_.phrasing);
    const bool infix = spelling == Spelling::kMethod || (spelling == Spelling::kFunctional && binds(pattern));
    for (const Ref ref : step.operands) {
      const Written& written = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
      const bool wrap = infix && !written.atomic;
      operands_.push_back(wrap ? "(" + written.text + ")" : written.text);
    }
    ops::Names names{.operands = operands_,
                     .size = [this, &body](std::string& to, int32_t size) { in_forward(body, to, size); },
                     .weight_prefix = {}};
    Written made;
    if (spelling == Spelling::kModule) {
      const std::string name = body.attributes.fresh(value_called(layer_name(op))), layer = "self." + name;
      format(body.init, "        {} = ", layer);
      construct(body, applied);
      body.init += '\n';
      submodule(body, i, name + ".");
      ops::spell_call(made.text, applied, names, layer);
      return made;
    }
    std::string prefix;
    if (!op.weights.empty()) {
      layout_.own[i] = weights(body, applied);
      body.parameters.push_back({.index = static_cast<uint16_t>(i)});
      prefix = "self." + layout_.own[i];
      names.weight_prefix = prefix;
    }
    pattern = with_fresh_names(body, pattern);
    if (style_.number_first[i] && (pattern == "{x} * {a}" || pattern == "{x} + {a}"))
      std::swap(pattern[1], pattern[pattern.size() - 2]);
    made.atomic = !pattern.starts_with("-{x}") && !is_infix(pattern);
    ops::spell(made.text, pattern, applied, names);
    if ((style_.kept_numbers || style_.global_numbers) && body.method)
      keep_numbers(body, applied, pattern, made.text);
    if (const size_t end = made.text.find('\n'); end != made.text.npos) {
      for (const size_t inlined : body.unplaced) body.placed.emplace_back(inlined, lines_in(body.lines));
      body.unplaced.clear();
      body.placed.emplace_back(layout_.lines.size() + i, lines_in(body.lines));
      format(body.lines, "{}{}\n", body.method ? "        " : "    ", made.text.substr(0, end));
      made.text.erase(0, end + 1);
    }
    return made;
  }

  // What a pattern's statement names, "gate, value = ...", is called something that is free.
  std::string with_fresh_names(Body& body, std::string_view pattern) {
    if (pattern.find('\n') == pattern.npos) return std::string(pattern);
    std::vector<std::pair<std::string_view, std::string>> named;
    std::string_view names = pattern.substr(0, pattern.find(" = "));
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(", "));
      named.emplace_back(name, body.names.fresh(value_called(name)));
      names.remove_prefix(std::min(name.size() + 2, names.size()));
    }
    std::string made;
    while (!pattern.empty()) {
      const auto found =
          std::ranges::find_if(named, [&](const auto& each) { return pattern.starts_with(each.first); });
      made += found == named.end() ? pattern.substr(0, 1) : std::string_view(found->second);
      pattern.remove_prefix(found == named.end() ? 1 : found->first.size());
    }
    return made;
  }

  // Whether operators stand outside of all parentheses.
  static bool is_infix(std::string_view pattern) {
    int depth = 0;
    for (const char c : pattern) {
      depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
      if (depth == 0 && c == ' ') return true;
    }
    return false;
  }
  // Whether operators or methods are next to an operand.
  static bool binds(std::string_view pattern) {
    return std::ranges::any_of(std::array{"{x}.", "{x} ", "{x}[", "-{x}", "{y}."},
                               [&](const char* text) { return pattern.find(text) != pattern.npos; });
  }

  // Constants and an axis of a call become attributes: `torch.clamp(x, self.min_val, self.max_val)`.
  void keep(Body& body, std::string& text, size_t at, std::string_view value, std::string_view name) {
    if (style_.global_numbers) {
      std::string global(name);
      for (char& c : global) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      if (is_size(global)) return;
      global = global_numbers_.fresh(global);
      globals_.emplace_back(global, value);
      text.replace(at, value.size(), global);
      return;
    }
    const std::string attribute = body.attributes.fresh(name);
    std::string passed;
    if (style_.passed_numbers && body.model) passed = passed_number(body, attribute, value);
    format(body.init, "        self.{} = {}\n", attribute, passed.empty() ? std::string(value) : passed);
    text.replace(at, value.size(), "self." + attribute);
  }
  // An argument of the constructor with that value: how it is called there. Empty where the name is taken.
  std::string passed_number(Body& body, std::string_view name, std::string_view value) {
    if (is_size(name)) return {};
    const std::string argument = arguments_.fresh(name);
    std::string text(value);
    if (style_.sizes == SizeStyle::kGlobal) {
      static constexpr std::string_view kUsual[] = {"kernel_size", "stride",     "padding",
                                                    "dilation",    "num_groups", "eps"};
      std::string global = argument;
      if (style_.apart || std::ranges::find(kUsual, name) == std::end(kUsual))
        for (char& c : global) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      if (!is_size(global)) {
        text = global_numbers_.fresh(global);
        globals_.emplace_back(text, value);
      }
    }
    body.numbers.push_back({argument, std::string(value), text});
    return argument;
  }
  // Of "nn.Conv2d(C, D, 3, padding=1)", which begins at `begin`: kernel_size, padding=padding.
  void pass_numbers(Body& body, size_t begin) {
    std::string& to = body.init;
    const std::string layer = to.substr(begin, to.find('(', begin) - begin);
    if (layer == "nn.Sequential" || layer.size() == to.size() - begin) return;
    const bool convolution = layer.starts_with("nn.Conv"),
               pool = layer.find("Pool") != layer.npos && !layer.starts_with("nn.Adaptive");
    std::string made = layer + '(';
    int position = 0;
    for (size_t at = begin + made.size(), end = at; at < to.size(); at = end + 1, ++position) {
      int depth = 0;
      for (end = at; end < to.size() && (depth > 0 || (to[end] != ',' && to[end] != ')')); ++end)
        depth += to[end] == '(' ? 1 : to[end] == ')' ? -1 : 0;
      std::string argument = to.substr(at, end - at);
      const size_t first = std::min(argument.find_first_not_of(' '), argument.size()),
                   equals = argument.find('=');
      const size_t from = equals == argument.npos ? first : equals + 1;
      const std::string value = argument.substr(from);
      const std::string name = equals != argument.npos        ? argument.substr(first, equals - first)
                               : convolution && position == 2 ? "kernel_size"
                               : pool && position == 0        ? "kernel_size"
                               : layer == "nn.GroupNorm" && position == 0 ? "num_groups"
                                                                          : "";
      const bool number = value.find_first_of("0123456789") != value.npos &&
                          value.find_first_not_of("0123456789.e-(), ") == value.npos;
      if (number && !name.empty())
        if (const std::string passed = passed_number(body, name, value); !passed.empty())
          argument.replace(from, value.size(), passed);
      made += argument;
      if (end < to.size()) made += to[end];
    }
    to.replace(begin, to.size() - begin, made);
  }
  bool is_size(std::string_view name) const {
    return std::ranges::find(listed_sizes_, name) != listed_sizes_.end();
  }
  void keep_numbers(Body& body, const ops::Applied& applied, std::string_view pattern, std::string& text) {
    // From the end, where no operand's own numbers are; what is before the operand is at the beginning.
    for (const char which : {'b', 'a'}) {
      const size_t place = pattern.find(which == 'a' ? "{a}" : "{b}");
      if (place == pattern.npos || pattern.find("{z}", place) != pattern.npos) continue;
      const std::string value(ops::constant_of(applied, which));
      const size_t at = pattern.starts_with("{a}") ? 0 : text.rfind(value);
      keep(body, text, at, value, constant_name(*applied.op, which));
    }
    if (pattern.find("dim={dim}") == pattern.npos) return;
    const size_t at = text.rfind("dim=") + 4;
    const size_t end = text.find_first_not_of("-0123456789", at);
    keep(body, text, at, text.substr(at, end - at), "dim");
  }

  void submodule(Body& body, size_t i, std::string prefix) {
    layout_.own[i] = std::move(prefix);
    if (!program_.steps[i].applied.op->weights.empty())
      body.submodules.push_back({.index = static_cast<uint16_t>(i)});
  }
  void construct(Body& body, const ops::Applied& applied) {
    const ops::Names sizes{.operands = {},
                           .size = [this, &body](std::string& to, int32_t size) { argument(body, to, size); },
                           .weight_prefix = {}};
    const size_t begin = body.init.size();
    ops::spell(body.init, phrased(std::string(applied.op->module), applied, style_.phrasing), applied, sizes);
    if (style_.passed_windows && body.model) pass_numbers(body, begin);
  }

  // The operator's own tensors as parameters; what their names start with.
  std::string weights(Body& body, const ops::Applied& applied) {
    const std::string prefix = body.attributes.fresh(value_called(layer_name(*applied.op))) + "_";
    const ops::Names sizes{.operands = {},
                           .size = [this, &body](std::string& to, int32_t size) { argument(body, to, size); },
                           .weight_prefix = {}};
    for (const ops::Weight& weight : ops::weights_of(applied)) {
      if (weight.buffer())
        format(body.init, "        self.register_buffer(\"{}{}\", torch.{}(", prefix, weight.name,
               weight.maker);
      else
        format(body.init, "        self.{}{} = nn.Parameter(torch.{}(", prefix, weight.name, weight.maker);
      ops::spell(body.init, weight.shape, applied, sizes);
      body.init += ')';
      if (weight.maker == "randn" && applied.op->rule != ops::Rule::kEmbedding)
        format(body.init, " * {:.4g}", 1 / std::sqrt(fan_in(applied)));
      body.init += ")\n";
    }
    return prefix;
  }
  static double fan_in(const ops::Applied& applied) {
    const ops::Shape& x = applied.operands[0];
    if (applied.op->lowering != ops::Lowering::kConvolution) return x.dims[x.rank - 1U];
    double fan = x.dims[1] / static_cast<double>(ops::groups_of(applied));
    for (size_t d = 0; d < static_cast<size_t>(ops::spatial_axes(applied)); ++d)
      fan *= applied.window.kernel[d];
    return fan;
  }

  // The statement that gives a result its name.
  void assign(Body& body, size_t i, const std::string& expression) {
    const Step& step = program_.steps[i];
    std::string name;
    const auto dead = [&](Ref ref) {  // after this step, in this body
      return !ref.fresh && uses_.last[ref.index] <= i && style_.second_output != ref.index &&
             !body.steps[ref.index].text.empty() && body.names.taken(body.steps[ref.index].text);
    };
    if (style_.names == Names::kReused) {
      const Ref first = step.operands[0];
      if (dead(first)) {
        name = body.steps[first.index].text;
      } else if (first.fresh && !style_.parameter[first.index] && !tapped_later(first, i) &&
                 body.names.taken(body.inputs[first.index].text)) {
        name = body.inputs[first.index].text;
      } else {
        name = body.names.fresh(value_called(i % 2 == 0 ? "out" : "h"));
      }
    } else if (style_.names == Names::kNumbered) {
      name = body.names.fresh(fmt::format("{}{}", style_.spoken == 0 ? 'h' : 't', i + 1));
    } else {
      name = body.names.fresh(value_called(value_name(*step.applied.op, style_.spoken)));
    }
    std::string& to = body.lines;
    const char* indent = body.method ? "        " : "    ";
    if (style_.said_comments && i % 3 == 0) {
      format(to, "{}# ", indent);
      for (const char c : phrase(*step.applied.op)) to += c == '_' ? ' ' : c;
      to += '\n';
    }
    comments(indent, 8, to);
    for (const size_t step : body.unplaced) body.placed.emplace_back(step, lines_in(to));
    body.unplaced.clear();
    format(to, "{}{} = {}", indent, name, expression);
    if (says(10)) {
      format(to, "  # {}", prose_.remark());
    } else if (style_.shape_comments) {
      const ops::Shape& shape = step.applied.out;
      format(to, "  # ({})", fmt::join(shape.dims.begin(), shape.dims.begin() + shape.rank, ", "));
    }
    to += '\n';
    if (style_.spaced && i % 4 == 3) to += '\n';
    body.steps[i] = {std::move(name), true};
  }
  bool tapped_later(Ref input, size_t i) const {
    for (size_t j = i + 1; j < program_.steps.size(); ++j)
      if (std::find(program_.steps[j].operands.begin(), program_.steps[j].operands.end(), input) !=
          program_.steps[j].operands.end())
        return true;
    return false;
  }

  // ---- regions
  void apart(Body& body, const Region& region) {
    if (region.kind == Region::kSequential) return sequential(body, region);
    Body part = body_of(region);
    std::string arguments;
    for (const auto& [ref, name] : part.arguments) {
      const Written& here = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
      arguments += (arguments.empty() ? "" : ", ") + here.text;
    }
    steps(part, region.first, region.last + 1U, false);
    finish(part, region.last, -1);
    std::string callee;
    if (region.kind == Region::kFunction) {
      callee = functions_.fresh(style_.invented_names != 0 ? inventor_.function()
                                : style_.spoken == 0       ? "_apply"
                                                           : "combine");
      write_function(part, callee);
    } else {
      const std::string name = functions_.fresh(style_.invented_names != 0 ? inventor_.class_name()
                                                : style_.spoken == 0       ? "Block"
                                                                           : "Stage");
      write_class(part, name, apart_);
      const std::string attribute =
          body.attributes.fresh(value_called(style_.spoken == 0 ? "block" : "stage"));
      adopt(body, part, attribute + ".");
      callee = "self." + attribute;
      format(body.init, "        {} = {}(", callee, name);
      for (size_t k = 0; k < part.sizes.size(); ++k) {
        if (k > 0) body.init += ", ";
        argument(body, body.init, part.sizes[k]);
      }
      body.init += ")\n";
    }
    placed_apart_.insert(placed_apart_.end(), part.placed.begin(), part.placed.end());
    assign(body, region.last, fmt::format("{}({})", callee, arguments));
  }
  // The tensors of a submodule, its own first.
  void adopt(Body& body, const Body& part, const std::string& prefix) {
    for (const auto* owners : {&part.parameters, &part.submodules})
      for (const Layout::Owner& owner : *owners) {
        body.submodules.push_back(owner);
        (owner.input ? layout_.parameter : layout_.own)[owner.index].insert(0, prefix);
      }
  }
  Body body_of(const Region& region) {
    Body part = body(region.kind == Region::kModule);
    arguments_of(part, region.first, region.last + 1U);
    return part;
  }

  void sequential(Body& body, const Region& region) {
    const std::string attribute = body.attributes.fresh(value_called(style_.spoken == 0 ? "net" : "layers"));
    const std::string name = "self." + attribute;
    const bool loop = style_.loops && body.method;
    format(
        body.init,
        loop ? fmt::runtime("        {} = nn.ModuleList([\n") : fmt::runtime("        {} = nn.Sequential(\n"),
        name);
    for (size_t i = region.first; i <= region.last; ++i) {
      if (!loop) body.unplaced.push_back(i);
      submodule(body, i, fmt::format("{}.{}.", attribute, i - region.first));
      body.init += "            ";
      construct(body, styled_call(program_, style_, i));
      body.init += ",\n";
    }
    body.init += loop ? "        ])\n" : "        )\n";
    const Ref input = program_.steps[region.first].operands[0];
    const Written& here = input.fresh ? body.inputs[input.index] : body.steps[input.index];
    if (!loop) return assign(body, region.last, fmt::format("{}({})", name, here.text));
    assign(body, region.last, here.text);
    const std::string indent = body.method ? "        " : "    ",
                      layer = body.names.fresh(value_called("layer"));
    const std::string& result = body.steps[region.last].text;
    for (size_t i = region.first; i <= region.last; ++i)
      body.placed.emplace_back(i, lines_in(body.lines) + 1);
    format(body.lines, "{0}for {1} in {2}:\n{0}    {3} = {1}({3})\n", indent, layer, name, result);
  }

  // ---- whole functions and classes
  void finish(Body& body, int last, int second_output) {
    const char* indent = body.method ? "        " : "    ";
    std::string& to = body.lines;
    const std::string& name = body.steps[static_cast<size_t>(last)].text;
    if (second_output >= 0) {
      const std::string& other = body.steps[static_cast<size_t>(second_output)].text;
      const auto keys = result_keys(style_);
      if (style_.returned == CodeStyle::kDict)
        format(to, "{}return {{\"{}\": {}, \"{}\": {}}}\n", indent, keys[0], name, keys[1], other);
      else if (style_.returned == CodeStyle::kList)
        format(to, "{}return [{}, {}]\n", indent, name, other);
      else
        format(to, "{}return {}, {}\n", indent, name, other);
      return;
    }
    // `y = f(x)` and `return y` as `return f(x)`, as the author likes it
    const size_t line = to.rfind('\n', to.size() - 2);
    const size_t start = line == std::string::npos ? 0 : line + 1;
    const std::string head = fmt::format("{}{} = ", indent, name);
    if (style_.input_names != 1 && to.compare(start, head.size(), head) == 0 && to.back() == '\n')
      to.replace(start, head.size(), fmt::format("{}return ", indent));
    else
      format(to, "{}return {}\n", indent, name);
  }

  void parameter_list(const Body& body, std::string& to) const {
    bool first = !body.method;
    if (body.method) to += "self";
    for (const auto& [ref, name] : body.arguments) {
      if (!first) to += ", ";
      first = false;
      to += name;
      if (style_.type_hints) to += ": torch.Tensor";
    }
  }

  void write_function(Body& body, const std::string& name) {
    format(apart_, "def {}(", name);
    parameter_list(body, apart_);
    apart_ += style_.type_hints ? ") -> torch.Tensor:\n" : "):\n";
    if (style_.forward_docstring) apart_ += "    \"\"\"One part of the forward pass.\"\"\"\n";
    move_on(body, apart_);
    apart_ += body.lines;
    apart_ += "\n\n";
  }

  void write_class(Body& body, const std::string& name, std::string& to) {
    const bool model = name == "Model";
    format(to, "class {}(nn.Module):\n", name);
    if (style_.docstring && says(2)) {
      docstring("    ", to);
      if (!prose_.one_in(3)) to += '\n';
    } else if (style_.docstring) {
      class_docstring(body, model, to);
    }
    const bool constructed = !body.init.empty() || (style_.docstring && model && !style_.bare);
    if (constructed) {
      to += "    def __init__(self";
      for (const int32_t size : body.sizes) {
        format(to, ", {}{}", argument_name(size), style_.type_hints ? ": int" : "");
        if (model && style_.defaults) format(to, "{}{}", style_.type_hints ? " = " : "=", size);
      }
      for (const Number& number : body.numbers) {
        const char* type = number.value.starts_with('(')                           ? ": tuple"
                           : number.value.find_first_of(".e") == number.value.npos ? ": int"
                                                                                   : ": float";
        format(to, ", {}{}", number.argument, style_.type_hints ? type : "");
        if (style_.defaults) format(to, "{}{}", style_.type_hints ? " = " : "=", number.value);
      }
      to += "):\n";
      if (style_.long_super)
        format(to, "        super({}, self).__init__()\n", name);
      else
        to += "        super().__init__()\n";
      comments("        ", 6, to);
      to += body.init;
      to += '\n';
    }
    to += "    def forward(";
    parameter_list(body, to);
    const bool several = model && style_.second_output >= 0;
    to += style_.type_hints && !several ? ") -> torch.Tensor:\n" : "):\n";
    if (model && style_.forward_docstring) {
      if (says(2))
        docstring("        ", to);
      else
        forward_docstring(body, to);
    }
    move_on(body, to);
    to += body.lines;
    to += "\n\n";
  }

  void class_docstring(const Body& body, bool model, std::string& to) {
    static constexpr std::string_view kBefore[] = {
        "", "", "", "Simple model that performs: ", "A module for benchmarks. ", "Model: "};
    format(to, "    \"\"\"{}", model ? kBefore[style_.docstring_style] : "");
    if (model)
      describe(program_, to);
    else
      to += "A part of the model";
    to += '.';
    if (style_.docstring_style == 2 && !body.sizes.empty()) {
      to += "\n\n    Args:\n";
      for (const int32_t size : body.sizes)
        format(to, "        {} (int): {}\n", argument_name(size),
               style_.prose == 0 ? "one of the sizes." : prose_.sentence());
      to += "    ";
    }
    to += "\"\"\"\n\n";
  }
  void forward_docstring(const Body& body, std::string& to) const {
    const auto said = [](const ops::Shape& shape) {
      return fmt::format("({})", fmt::join(shape.dims.begin(), shape.dims.begin() + shape.rank, ", "));
    };
    const std::string out = said(program_.steps.back().applied.out);
    if (style_.docstring_style < 3) {
      format(to, "        \"\"\"Returns a tensor of shape {}.\"\"\"\n", out);
      return;
    }
    to += style_.docstring_style == 3 ? "        \"\"\"\n        Forward pass.\n\n" : "        \"\"\"\n";
    to += "        Args:\n";
    for (const auto& [ref, name] : body.arguments)
      format(to, "            {}: {} of shape {}\n", name,
             style_.docstring_style == 4 ? "input tensor" : "tensor", said(program_.inputs[ref.index].shape));
    format(to, "\n        Returns:\n            {} of shape {}\n        \"\"\"\n",
           style_.docstring_style == 4 ? "torch.Tensor: Output tensor" : "tensor", out);
  }

  void imports() {
    // Which modules the text names is known once it is written.
    const auto mentions = [&](std::string_view word) {
      return apart_.find(word) != std::string::npos || model_mentions_.find(word) != std::string::npos;
    };
    if (style_.more_imports)
      to_ += style_.spoken == 0 ? "import math\n\n" : "from typing import Optional\n\n";
    if (style_.whole_paths) {
      to_ += style_.plain_import ? "import torch\nimport torch.nn\n" : "import torch\n";
    } else {
      to_ += style_.plain_import ? "import torch\nimport torch.nn as nn\n"
                                 : "import torch\nfrom torch import nn\n";
      if (mentions("F.") || style_.more_imports)
        to_ += style_.plain_import ? "import torch.nn.functional as F\n"
                                   : "from torch.nn import functional as F\n";
    }
    to_ += "\n\n";
  }

  void globals() {
    if (style_.sizes == SizeStyle::kGlobal) {
      for (const auto& [size, name] : size_names_) globals_.emplace_back(name, std::to_string(size));
      Rng rng(style_.shuffled, 2);
      for (size_t i = 0; i < style_.spare && size_names_.size() + i < listed_sizes_.size(); ++i)
        globals_.emplace_back(listed_sizes_[size_names_.size() + i],
                              std::to_string(1 + rng.below(1U << (1 + rng.below(10)))));
    }
    if (globals_.empty()) return;
    if (style_.shuffled != 0) {
      Rng rng(style_.shuffled, 3);
      shuffle(rng, globals_);
    }
    comments("", 5, to_);
    for (const auto& [name, value] : globals_) {
      format(to_, "{} = {}", name, value);
      remark(6, to_);
      to_ += '\n';
    }
    to_ += "\n\n";
  }

  std::string inputs_function(const Body& model) {
    model_mentions_ = model.lines;
    std::string to = "def get_inputs():\n";
    comments("    ", 8, to);
    const bool inline_list =
        model.arguments.size() == 1 ? !style_.assigned_input : style_.names == Names::kNumbered;
    std::string list;
    for (const auto& [ref, name] : model.arguments) {
      if (!list.empty()) list += ", ";
      if (inline_list) {
        value(list, program_.inputs[ref.index]);
        continue;
      }
      format(to, "    {} = ", name);
      value(to, program_.inputs[ref.index]);
      to += '\n';
      list += name;
    }
    format(to, "    return [{}]\n\n\n", list);
    return to;
  }

  void value(std::string& to, const Input& input) {
    using ops::Range;
    const auto drawn = [&](std::string_view maker) {
      to += maker;
      to += '(';
      shape(to, input.shape, false, nullptr);
      to += ')';
    };
    const auto integers = [&](int64_t below) {
      format(to, "torch.randint(0, {}, (", below);
      if (input.shape.rank > 0) shape(to, input.shape, false, nullptr);
      to += input.shape.rank == 1 ? ",))" : "))";
    };
    switch (input.range) {
      case Range::kNormal:
        return normal(to, input.shape);
      case Range::kPositive:
        drawn("torch.rand"), to += " + 0.5";
        return;
      case Range::kMask:
        drawn("torch.rand"), to += " < 0.5";
        return;
      case Range::kIndex:
        return integers(input.bound);
      case Range::kSign:
        integers(2), to += " * 2.0 - 1.0";
        return;
      case Range::kProbability:
        to += "torch.softmax(", drawn("torch.randn"), to += ", dim=-1)";
        return;
      case Range::kWeight:
        drawn("torch.randn");
        format(to, " * {:.4g}", 1 / std::sqrt(static_cast<double>(input.summed)));
        return;
    }
  }

  void normal(std::string& to, const ops::Shape& size) {
    const bool listed = style_.made == 1 && size.rank > 0, once_more = style_.made == 2 && size.rank > 1,
               between = style_.made == 3;
    to += between ? "2 * torch.rand(" : "torch.randn(";
    if (listed || once_more) to += listed ? '[' : '(';
    shape(to, size, false, nullptr);
    if (listed || once_more) to += listed ? ']' : ')';
    if (style_.made == 4) to += ", dtype=torch.float32";
    to += between ? ") - 1" : ")";
  }

  std::string init_function(const Body& model) {
    std::string list;
    if (style_.defaults) return "def get_init_inputs():\n    return []\n";
    for (const int32_t size : model.sizes) {
      if (!list.empty()) list += ", ";
      global(list, size);
    }
    for (const Number& number : model.numbers) list += (list.empty() ? "" : ", ") + number.text;
    return fmt::format("def get_init_inputs():\n    return [{}]\n", list);
  }

  const Program& program_;
  const CodeStyle& style_;
  const Uses uses_;
  std::string& to_;
  Layout layout_;
  std::string apart_;  // functions and submodules
  std::vector<std::pair<size_t, int>> placed_apart_;
  std::string model_mentions_;
  NameTable functions_;
  NameInventor inventor_;
  Prose prose_;
  NameTable arguments_, global_numbers_;  // of constructors, other than sizes as they are called everywhere
  std::vector<std::pair<int32_t, std::string>> argument_names_;
  std::vector<std::pair<std::string, std::string>> globals_;  // and their values
  std::vector<std::string> listed_sizes_;  // names of sizes, in the order in which they are given
  std::vector<std::pair<int32_t, std::string>> size_names_;
  std::vector<std::string> operands_;
};

}  // namespace

Layout emit(const Program& program, const CodeStyle& style, std::string& to) {
  return Emitter(program, style, to).write();
}

}  // namespace nereid::synth
