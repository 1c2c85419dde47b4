#include "nereid/compiler/codegen/emit_expr.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace nereid::compiler {
namespace {

std::string both(const std::vector<std::string>& conditions) {
  if (conditions.size() == 1) return conditions[0];
  std::vector<std::string> parts;
  for (const auto& each : conditions)
    parts.push_back(each.front() == '(' || each.find(' ') == each.npos ? each : "(" + each + ")");
  return fmt::format("{}", fmt::join(parts, " & "));
}

}  // namespace

int64_t power_of_two(int64_t at_least) {
  int64_t power = 1;
  while (power < at_least) power *= 2;
  return power;
}

bool ends_with_blocks(int64_t count, int64_t block, bool masked) {
  return block == 1 || (count % block == 0 && (!masked || power_of_two(count) == count));
}

std::string number_text(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

std::string constant_text(double value, DType type) {
  return trace::is_floating(type) ? number_text(value) : std::to_string(static_cast<int64_t>(value));
}

std::string identifier(const std::string& name) {
  std::string made;
  for (const char c : name) made += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made[0]))) made = "x" + made;
  return made;
}

std::string type_text(DType type) {
  switch (type) {
    case DType::kBool:
      return "tl.int1";
    case DType::kU8:
      return "tl.uint8";
    case DType::kI8:
      return "tl.int8";
    case DType::kI16:
      return "tl.int16";
    case DType::kI32:
      return "tl.int32";
    case DType::kF16:
      return "tl.float16";
    case DType::kBF16:
      return "tl.bfloat16";
    case DType::kF32:
      return "tl.float32";
    case DType::kF64:
      return "tl.float64";
    default:
      return "tl.int64";
  }
}

std::string clear_name(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> kNames = {
      {"sum", "total"},  {"abs", "magnitude"}, {"max", "largest"},       {"min", "smallest"},
      {"pow", "power"},  {"round", "rounded"}, {"any", "any_true"},      {"all", "all_true"},
      {"slice", "part"}, {"range", "span"},    {"sorted", "in_order"},   {"float", "as_float"},
      {"int", "as_int"}, {"bool", "as_bool"},  {"complex", "as_complex"}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? name : found->second;
}

std::string KernelNames::fresh(const std::string& asked) {
  const std::string wish = clear_name(asked);
  std::string name = wish;
  for (int n = 1; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
  return name;
}

std::string KernelNames::pointer(const Graph& graph, TensorId id) {
  if (const TensorId into = graph.tensors[static_cast<size_t>(id)].into; into >= 0) id = into;
  for (const auto& [name, tensor] : pointers)
    if (tensor == id) return name;
  const std::string name = fresh(identifier(graph.tensors[static_cast<size_t>(id)].name) + "_ptr");
  pointers.emplace_back(name, id);
  return name;
}

ExprWriter::ExprWriter(Graph& graph, KernelNames& names, std::vector<BlockDimension> dimensions)
    : graph_(graph), names_(names), dimensions_(std::move(dimensions)) {
  for (const auto& each : dimensions_) {
    extents_.push_back(max(each.extent, 1));
    names_.taken.insert(each.name);
  }
}

std::string ExprWriter::let(const std::string& wish, const std::string& text) {
  const std::string name = names_.fresh(wish);
  line(fmt::format("{} = {}", name, text));
  return name;
}

void ExprWriter::begin_loop(std::vector<int> dimensions) {
  in_loop_ = true;
  loop_dimensions_ = std::move(dimensions);
}

void ExprWriter::end_loop(const std::string& header) {
  in_loop_ = false;
  line(header);
  for (const auto& each : loop_) line("    " + each);
  loop_.clear();
  for (const ExprId id : of_the_loop_) known_.erase(id);
  of_the_loop_.clear();
  for (const Index& place : places_of_the_loop_) places_.erase(place);
  places_of_the_loop_.clear();
}

std::string ExprWriter::value(ExprId id) {
  std::vector<ExprId> results;
  for (const ExprId under : graph_.exprs.below(id))
    if (graph_.exprs[under].kind == Expr::Kind::kApply && graph_.exprs.step_of(under) >= 0)
      results.push_back(under);
  std::ranges::stable_sort(results, {}, [&](ExprId each) { return graph_.exprs.step_of(each); });
  for (const ExprId each : results) made(each);
  return made(id);
}

std::string ExprWriter::made(ExprId id) {
  const auto found = known_.find(id);
  if (found != known_.end()) return found->second;
  const bool outside =
      in_loop_ && std::ranges::none_of(loop_dimensions_, [&](int d) { return graph_.exprs.uses(id, d); });
  if (outside) in_loop_ = false;  // what is the same in every turn comes before the loop
  std::string text = make(id);
  if (outside) in_loop_ = true;
  known_[id] = text;
  if (in_loop_ && !outside) of_the_loop_.insert(id);
  return text;
}

std::string ExprWriter::make(ExprId id) {
  const Expr expr = graph_.exprs[id];
  switch (expr.kind) {
    case Expr::Kind::kConstant:
      if (expr.type == DType::kBool) return expr.integer != 0 ? "True" : "False";
      if (expr.ratio != nullptr) return expr.ratio->text();
      if (trace::is_floating(expr.type)) return number_text(expr.number);
      return hole_of_number(expr.integer);
    case Expr::Kind::kIndex:
      return let("index", text(expr.index));
    case Expr::Kind::kWithin:
      return within(expr);
    case Expr::Kind::kLoad:
      return load(expr);
    case Expr::Kind::kApply:
      return apply(id, expr);
  }
  return "";
}

std::string ExprWriter::coordinate(const Index& index, size_t from_end) {
  const auto found = places_.find(index);
  if (found != places_.end()) return found->second;
  if (index.terms().size() + (index.constant() != 0 ? 1 : 0) < 2) return text(index);
  constexpr std::array kNames = {"w", "h", "d"};  // width, height, depth
  const bool outside =
      in_loop_ && std::ranges::none_of(loop_dimensions_, [&](int d) { return index.uses(d); });
  if (outside) in_loop_ = false;
  const std::string name = let(from_end < kNames.size() ? kNames[from_end] : "place", text(index));
  if (outside) in_loop_ = true;
  if (in_loop_) places_of_the_loop_.insert(index);
  return places_[index] = name;
}

std::string ExprWriter::within(const Expr& expr) {
  const std::string index = text(expr.index);
  const Bounds bounds = expr.index.bounds(extents_);
  std::vector<std::string> parts;
  if (bounds.low < expr.low) parts.push_back(fmt::format("({} >= {})", index, hole(expr.low)));
  if (bounds.high >= expr.high) parts.push_back(fmt::format("({} < {})", index, hole(expr.high)));
  if (parts.size() == 1) parts[0] = parts[0].substr(1, parts[0].size() - 2);
  return let("inside", fmt::format("{}", fmt::join(parts, " & ")));
}

std::string ExprWriter::text(const Index& index) const {
  if (const auto named = places_.find(index); named != places_.end()) return named->second;
  names_.divides_sums |= index.divides_sums();
  const auto name = [&](int d) { return dimensions_[static_cast<size_t>(d)].name; };
  const auto narrow = [&](int d) { return !dimensions_[static_cast<size_t>(d)].wide; };
  return to_string(index, name, extents_, true, narrow);
}

Index ExprWriter::address(TensorId tensor, const std::vector<Index>& at) const {
  const Tensor& of = graph_.tensors[static_cast<size_t>(tensor)];
  Index sum(of.shift);
  for (size_t d = 0; d < at.size(); ++d) sum = sum + at[d] * of.strides[d];
  return sum;
}

std::string ExprWriter::place(const std::string& pointer, const Index& address) const {
  return address == Index() ? pointer : fmt::format("{} + {}", pointer, text(address));
}

std::string ExprWriter::mask(const Index& address, const std::vector<std::string>& also) const {
  std::vector<int> used;
  for (size_t d = 0; d < dimensions_.size(); ++d)
    if (address.uses(static_cast<int>(d))) used.push_back(static_cast<int>(d));
  return mask_of(used, also);
}

std::string ExprWriter::mask_of(const std::vector<int>& dimensions,
                                const std::vector<std::string>& also) const {
  std::vector<std::string> parts;
  for (const int d : dimensions) {
    const BlockDimension& each = dimensions_[static_cast<size_t>(d)];
    if (!each.exact) parts.push_back(fmt::format("{} < {}", each.name, hole(each.extent)));
  }
  std::ranges::copy_if(also, std::back_inserter(parts),
                       [](const std::string& each) { return !each.empty(); });
  return parts.empty() ? "" : both(parts);
}

// As under a `where` that throws the element away, or in a tile that ends after the tensor.
std::string ExprWriter::beyond(TensorId tensor, const std::vector<Index>& at) const {
  std::vector<std::string> parts;
  const Tensor& of = graph_.tensors[static_cast<size_t>(tensor)];
  for (size_t d = 0; d < at.size(); ++d) {
    const Bounds bounds = at[d].bounds(extents_);
    if (bounds.low < 0) parts.push_back(fmt::format("({} >= 0)", text(at[d])));
    if (bounds.high >= of.sizes[d]) parts.push_back(fmt::format("({} < {})", text(at[d]), hole(of.sizes[d])));
  }
  return fmt::format("{}", fmt::join(parts, " & "));
}

std::optional<std::string> ExprWriter::padded_load(ExprId id, const Expr& expr) {
  const Expr load = graph_.exprs[expr.args[1]], other = graph_.exprs[expr.args[2]];
  if (load.kind != Expr::Kind::kLoad || !load.args.empty() || other.kind != Expr::Kind::kConstant ||
      load.type != other.type || known_.contains(expr.args[1]) || results_.contains(load.tensor))
    return std::nullopt;
  // A mask has no more dimensions than what it is for.
  const Index at = address(load.tensor, load.at);
  for (size_t d = 0; d < dimensions_.size(); ++d)
    if (const auto dimension = static_cast<int>(d);
        graph_.exprs.uses(expr.args[0], dimension) && !at.uses(dimension))
      return std::nullopt;
  const Extents sizes = graph_.tensors[static_cast<size_t>(load.tensor)].sizes;
  Given given;
  bool implied = true;  // by the load's own mask
  for (const ExprId under : graph_.exprs.below(expr.args[0])) {
    const Expr& condition = graph_.exprs[under];
    if (condition.kind == Expr::Kind::kApply && condition.fn == Fn::kAnd) continue;
    if (condition.kind != Expr::Kind::kWithin) return std::nullopt;
    given.within.push_back(under);
    bool same = false;
    for (size_t d = 0; d < sizes.size(); ++d)
      same = same || (load.at[d] == condition.index && condition.low <= 0 && condition.high >= sizes[d]);
    implied = implied && same;
  }
  given = implied ? Given{} : Given{made(expr.args[0]), std::move(given.within)};
  const std::string own = graph_.exprs.name_of(id), otherwise = make(expr.args[2]);
  const bool nothing = other.number == 0 && other.integer == 0 && !std::signbit(other.number);
  return this->load(load, given, nothing ? "0" : otherwise, own.empty() ? "" : identifier(own));
}

std::string ExprWriter::load(const Expr& expr, const Given& given, const std::string& other,
                             const std::string& wish) {
  const auto made_here = results_.find(expr.tensor);
  if (made_here != results_.end()) return made_here->second;
  const std::string pointer = names_.pointer(graph_, expr.tensor);
  const Tensor& from = graph_.tensors[static_cast<size_t>(expr.tensor)];
  const Index at = address(expr.tensor, expr.at);
  const auto is_given = [&](size_t d) {
    return std::ranges::any_of(given.within, [&](ExprId id) {
      const Expr& within = graph_.exprs[id];
      return within.index == expr.at[d] && within.low >= 0 && within.high <= from.sizes[d];
    });
  };
  Index rest(from.shift);
  std::string further, within_reach;
  for (size_t d = 0; d < expr.at.size(); ++d) {
    const Bounds bounds = expr.at[d].bounds(extents_);
    const bool moved = d < expr.args.size() && (graph_.exprs[expr.args[d]].kind != Expr::Kind::kConstant ||
                                                graph_.exprs[expr.args[d]].integer != 0);
    const bool checked = !moved && !is_given(d) && (bounds.low < 0 || bounds.high >= from.sizes[d]);
    if (checked) coordinate(expr.at[d], expr.at.size() - 1 - d);
    if (!checked || !places_.contains(expr.at[d]))
      rest = rest + expr.at[d] * from.strides[d];
    else if (from.strides[d] != 0)
      further += fmt::format(
          " + {}{}", text(expr.at[d]),
          from.strides[d] == 1 ? "" : fmt::format(" * {}", hole(from.strides[d], Size::Place::kFactor)));
  }
  std::vector<int> used;
  for (size_t d = 0; d < dimensions_.size(); ++d) {
    const auto dimension = static_cast<int>(d);
    const auto in = [&](ExprId id) { return graph_.exprs.uses(id, dimension); };
    if (at.uses(dimension) || std::ranges::any_of(expr.args, in)) used.push_back(dimension);
  }
  for (size_t d = 0; d < expr.args.size(); ++d) {
    const Expr& each = graph_.exprs[expr.args[d]];
    if (each.kind == Expr::Kind::kConstant && each.integer == 0) continue;
    const std::string amount = made(expr.args[d]);
    further += from.strides[d] == 1
                   ? fmt::format(" + {}", amount)
                   : fmt::format(" + {} * {}", amount, hole(from.strides[d], Size::Place::kFactor));
    // A window at the border of what is gathered reaches beyond it, like one of anything else.
    const bool moves = !expr.at[d].is_constant();
    if (moves || expr.at[d].constant() < 0 || expr.at[d].constant() >= from.sizes[d]) {
      const std::string place = names_.fresh("place");
      line(fmt::format("{} = {} + {}", place, text(expr.at[d]), amount));
      within_reach += fmt::format("{0}({1} >= 0) & ({1} < {2})", within_reach.empty() ? "" : " & ", place,
                                  hole(from.sizes[d]));
    }
  }
  std::vector<Index> known = expr.at;  // what only the kernel knows, or all know, is not looked at
  for (size_t d = 0; d < expr.at.size(); ++d) {
    const Expr* each = d < expr.args.size() ? &graph_.exprs[expr.args[d]] : nullptr;
    const bool moved = each != nullptr && (each->kind != Expr::Kind::kConstant || each->integer != 0);
    if (moved || is_given(d)) known[d] = Index();
  }
  const std::string where = mask_of(used, {given.text, beyond(expr.tensor, known), within_reach});
  return let(wish.empty() ? pointer.substr(0, pointer.size() - 4) : wish,
             fmt::format("tl.load({}{}{})", place(pointer, rest), further,
                         where.empty() ? "" : fmt::format(", mask={}, other={}", where, other)));
}

// "~x" for x == False and its kin, "is_nan(x)" for x != x.
std::optional<std::string> ExprWriter::of_a_truth_value(const Expr& expr,
                                                        const std::vector<std::string>& args,
                                                        const std::string& own) {
  if (expr.fn != Fn::kEqual && expr.fn != Fn::kNotEqual) return std::nullopt;
  const bool equal = expr.fn == Fn::kEqual;
  const auto wish = [&](const std::string& otherwise) { return own.empty() ? otherwise : identifier(own); };
  if (expr.args[0] == expr.args[1])
    return let(wish(equal ? "is_number" : "nan"), fmt::format("{}is_nan({})", equal ? "~" : "", args[0]));
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Expr &flag = graph_.exprs[expr.args[i]], &other = graph_.exprs[expr.args[1 - i]];
    if (flag.kind != Expr::Kind::kConstant || flag.type != DType::kBool || other.type != DType::kBool ||
        other.kind == Expr::Kind::kConstant)
      continue;
    const std::string& value = args[1 - i];
    return equal == (flag.integer != 0) ? value : let(wish("not_" + value), "~" + value);
  }
  return std::nullopt;
}

// A Python number is float32 to the functions of Triton and libdevice (not to operators), whose arguments
// must be of one type.
void ExprWriter::widen_constants(const Expr& expr, std::vector<std::string>& args) const {
  if (args.size() < 2 || expr.fn == Fn::kWhere) return;
  for (size_t i = 0; i < args.size(); ++i) {
    const Expr& arg = graph_.exprs[expr.args[i]];
    if (arg.kind == Expr::Kind::kConstant && arg.type == DType::kF64)
      args[i] = fmt::format("tl.full((), {}, tl.float64)", args[i]);
  }
}

std::string ExprWriter::apply(ExprId id, const Expr& expr) {
  if (expr.fn == Fn::kWhere)
    if (auto padded = padded_load(id, expr)) return *padded;
  std::vector<std::string> args;
  for (const ExprId arg : expr.args) args.push_back(made(arg));
  const std::string own = graph_.exprs.name_of(id);
  const std::string wish = identifier(own.empty() ? std::string(info(expr.fn).name) : own);
  if (auto logical = of_a_truth_value(expr, args, own)) return *logical;
  if (expr.fn == Fn::kCast) {
    const bool named = std::isalpha(static_cast<unsigned char>(args[0].front())) != 0;
    const std::string type = type_text(expr.type);
    return let(own.empty() && named ? args[0] + "_" + type.substr(3) : wish,
               fmt::format("{}.to({})", args[0], type));
  }
  std::string text;
  // tl.sqrt_rn knows float32 alone, and of float64 tl.sqrt rounds as well.
  const bool root_of_double = expr.fn == Fn::kSqrt && expr.type == DType::kF64;
  const std::string_view form = root_of_double ? "tl.sqrt({0})" : info(expr.fn).triton;
  if (form.front() != '{') widen_constants(expr, args);
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '{') {
      text += form[i];
      continue;
    }
    const std::string& arg = args.at(static_cast<size_t>(form[i + 1] - '0'));
    text += arg.front() == '-' ? "(" + arg + ")" : arg;
    i += 2;
  }
  return let(wish, text);
}

}  // namespace nereid::compiler
