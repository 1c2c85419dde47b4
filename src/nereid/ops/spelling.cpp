#include "nereid/ops/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "nereid/base/check.h"

namespace nereid::ops {
namespace {

class Speller {
 public:
  Speller(std::string& to, const Applied& applied, const Names& names)
      : to_(to), applied_(applied), names_(names) {}

  void pattern(std::string_view text) {
    while (!text.empty()) {
      const size_t open = text.find('{');
      to_ += text.substr(0, open);
      if (open == text.npos) return;
      const size_t close = text.find('}', open);
      placeholder(text.substr(open + 1, close - open - 1));
      text.remove_prefix(close + 1);
    }
  }

 private:
  void placeholder(std::string_view name) {
    if (name.size() == 1 && name[0] >= 'x' && name[0] <= 'z') {
      to_ += names_.operands[static_cast<size_t>(name[0] - 'x')];
    } else if (name == "a" || name == "b") {
      constant(name[0]);
    } else if (name.size() > 2 && name[1] == '.') {
      dimension(name[0], name.substr(2));
    } else if (!attribute(name) && !composed(name)) {
      to_ += names_.weight_prefix;
      to_ += name;
    }
  }

  void constant(char which) { to_ += constant_of(applied_, which); }

  void dimension(char of, std::string_view index) {
    int d = 0;
    std::from_chars(index.data(), index.data() + index.size(), d);
    if (of == 'n') return size(applied_.inner[static_cast<size_t>(d)]);
    const Shape& shape = of == 'o' ? applied_.out : applied_.operands[0];
    size(shape.dims[static_cast<size_t>(d < 0 ? d + shape.rank : d)]);
  }

  bool attribute(std::string_view name) {
    const Form& form = *applied_.form;
    const auto put = [&](int value) {
      fmt::format_to(std::back_inserter(to_), "{}", value);
      return true;
    };
    if (name == "dim") return put(written_axis(applied_, form.dim));
    if (name == "parts") return put(applied_.cut.parts);
    if (name == "part") return put(applied_.cut.part);
    if (name == "before") return put(applied_.cut.before);
    if (name == "dim2") return put(written_axis(applied_, form.dim2));
    if (name == "k") {
      if (applied_.window.named) to_ += "kernel_size=";
      return each("", applied_.window.kernel), true;
    }
    if (name == "groups") return put(group_count(applied_));
    if (name == "nd") return put(spatial_axes(applied_));
    if (name == "bd") return put(std::max(1, spatial_axes(applied_)));
    if (name == "over" || name == ",over" || name == "over,") {
      if (form.all) return true;
      if (name == ",over") to_ += ", ";
      over();
      if (name == "over,") to_ += ", ";
      return true;
    }
    return false;
  }

  bool composed(std::string_view name) {
    if (name == "axes") return axes();
    if (name == "order")
      return list(applied_.out.rank,
                  [&](size_t d) { to_ += static_cast<char>('0' + applied_.form->order[d]); });
    if (name == "shape")
      return list(applied_.out.rank, [&](size_t d) {
        is_inferred(applied_, d) ? void(to_ += "-1") : size(applied_.out.dims[d]);
      });
    if (name == "split") return list(2, [&](size_t d) { size(applied_.out.dims[axis() + d]); });
    if (name == "half") return size(applied_.out.dims[axis()]), true;
    if (name == "mid") return size(applied_.out.dims[applied_.out.rank - 1U] / 2), true;
    if (name == "index") return index();
    if (name == "pads") return pads();
    if (name == "rest")
      return list(names_.operands.size() - 1, [&](size_t i) { to_ += names_.operands[i + 1]; });
    if (name == "kk")
      return list(static_cast<size_t>(spatial_axes(applied_)),
                  [&](size_t d) { to_ += static_cast<char>('0' + applied_.window.kernel[d]); });
    if (name == "cin") return size(applied_.operands[0].dims[1] / groups_of(applied_)), true;
    if (name == "cout") return size(applied_.out.dims[1] / groups_of(applied_)), true;
    if (name == "conv") return convolution();
    if (name == ",bias") {
      if (applied_.bias) fmt::format_to(std::back_inserter(to_), ", {}bias", names_.weight_prefix);
      return true;
    }
    if (name == "unbiased") return to_ += applied_.bias ? "" : ", bias=False", true;
    if (name == "pool") return pool();
    return false;
  }

  void over() {
    const Form& form = *applied_.form;
    const int first = written_axis(applied_, form.dim);
    if (!bare()) to_ += "dim=";
    if (form.dim2 < 0) {
      fmt::format_to(std::back_inserter(to_), "{}", first);
    } else {
      fmt::format_to(std::back_inserter(to_), "{}{}, {}", applied_.listed_axes ? '[' : '(', first,
                     written_axis(applied_, form.dim2));
      if (form.dim3 >= 0) fmt::format_to(std::back_inserter(to_), ", {}", written_axis(applied_, form.dim3));
      to_ += applied_.listed_axes ? ']' : ')';
    }
    if (form.keep) to_ += ", keepdim=True";
  }
  // Of a norm its order would stand there.
  bool bare() const { return applied_.bare_axes && applied_.op->name != "norm"; }
  bool axes() {
    if (!applied_.form->all) return over(), true;
    if (!bare()) to_ += "dim=";
    if (applied_.operands[0].rank == 1) return to_ += '0', true;
    to_ += applied_.listed_axes ? '[' : '(';
    list(applied_.operands[0].rank, [&](size_t d) { to_ += static_cast<char>('0' + d); });
    to_ += applied_.listed_axes ? ']' : ')';
    return true;
  }
  bool index() {  // of the axis; of those before it all
    const Cut& cut = applied_.cut;
    const int32_t own = applied_.out.dims[axis()];
    for (size_t d = 0; d < axis(); ++d) to_ += ":, ";
    if (cut.before != 0) size(cut.before);
    to_ += ':';
    if (cut.behind != 0 || cut.before == 0) size(cut.before + own);
    return true;
  }
  bool pads() {  // from the last axis on, before and after
    for (size_t d = applied_.out.rank; d-- > axis();) {
      if (d + 1 != applied_.out.rank) to_ += ", ";
      size(d == axis() ? applied_.cut.before : 0);
      to_ += ", ";
      size(d == axis() ? applied_.cut.behind : 0);
    }
    return true;
  }
  // One number for all axes, or a tuple.
  template <typename List>
  void each(std::string_view name, const List& values) {
    const auto axes = static_cast<size_t>(spatial_axes(applied_));
    const bool alike =
        std::all_of(values.begin(), values.begin() + axes, [&](auto value) { return value == values[0]; });
    to_ += name;
    if (alike && (!applied_.window.listed || axes == 1))
      return void(fmt::format_to(std::back_inserter(to_), "{}", values[0]));
    to_ += '(';
    list(axes, [&](size_t d) { fmt::format_to(std::back_inserter(to_), "{}", values[d]); });
    to_ += ')';
  }
  template <typename List>
  void unless(int usual, std::string_view name, const List& values) {
    for (int d = 0; d < spatial_axes(applied_); ++d)
      if (values[static_cast<size_t>(d)] != usual) return each(name, values);
  }
  bool convolution() {
    const Window& window = applied_.window;
    unless(1, ", stride=", window.stride);
    if (window.same) to_ += ", padding=\"same\"";
    if (!window.same) unless(0, ", padding=", window.padding);
    unless(1, ", dilation=", window.dilation);
    const bool transposed = is_transposed(*applied_.op);
    if (window.groups == 0) to_ += ", groups=", size(applied_.out.dims[1]);
    if (window.groups > 1) fmt::format_to(std::back_inserter(to_), ", groups={}", window.groups);
    if (transposed) unless(0, ", output_padding=", window.rest);
    return true;
  }
  bool pool() {
    const Window& window = applied_.window;
    bool own = true;  // the stride is the window's size
    for (int d = 0; d < spatial_axes(applied_); ++d)
      own &= window.stride[static_cast<size_t>(d)] == window.kernel[static_cast<size_t>(d)];
    if (!own) each(", stride=", window.stride);
    unless(0, ", padding=", window.padding);
    unless(1, ", dilation=", window.dilation);
    if (window.ceil) to_ += ", ceil_mode=True";
    if (!window.counts_padding) to_ += ", count_include_pad=False";
    return true;
  }

  size_t axis() const { return static_cast<size_t>(applied_.form->dim); }
  void size(int32_t value) {
    if (names_.size) return names_.size(to_, value);
    fmt::format_to(std::back_inserter(to_), "{}", value);
  }
  template <typename Put>
  bool list(size_t count, const Put& put) {
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) to_ += ", ";
      put(i);
    }
    return true;
  }

  std::string& to_;
  const Applied& applied_;
  const Names& names_;
};

}  // namespace

void spell(std::string& to, std::string_view pattern, const Applied& applied, const Names& names) {
  Speller(to, applied, names).pattern(pattern);
}

void spell_call(std::string& to, const Applied& applied, const Names& names, std::string_view module) {
  std::string_view pattern = applied.op->call;
  if (pattern.empty()) {
    to += module;
    to += '(';
    for (int s = 0; s < applied.form->slots; ++s) {
      if (s > 0) to += ", ";
      to += names.operands[static_cast<size_t>(s)];
    }
    to += ')';
    return;
  }
  const size_t place = pattern.find("{m}");
  to += pattern.substr(0, place);
  to += module;
  spell(to, pattern.substr(place + 3), applied, names);
}

std::string_view constant_values(const Operator& op, char which) {
  std::string_view rest = op.constants;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(' '));
    if (one[0] == which) return one.substr(2);
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  return {};
}

int constant_count(const Operator& op, char which) {
  const std::string_view values = constant_values(op, which);
  return values.empty() ? 0 : 1 + static_cast<int>(std::count(values.begin(), values.end(), '|'));
}

std::string_view constant_of(const Applied& applied, char which) {
  std::string_view values = constant_values(*applied.op, which);
  for (int skip = applied.constants[which == 'a' ? 0 : 1]; skip > 0; --skip)
    values.remove_prefix(values.find('|') + 1);
  return values.substr(0, values.find('|'));
}

std::vector<Weight> weights_of(const Applied& applied) {
  const Operator& op = *applied.op;
  std::vector<Weight> weights;
  std::string_view rest = op.weights;
  while (!rest.empty()) {
    const size_t equals = rest.find('='), open = rest.find('['), close = rest.find(']');
    NEREID_CHECK(close != rest.npos, "name=maker[shape] in the weights of {}", op.name);
    if (applied.bias || rest.substr(0, equals) != "bias")
      weights.push_back({rest.substr(0, equals), rest.substr(equals + 1, open - equals - 1),
                         rest.substr(open + 1, close - open - 1)});
    rest.remove_prefix(std::min(rest.size(), close + 2));
  }
  return weights;
}

std::vector<int64_t> shape_of(const Weight& weight, const Applied& applied) {
  std::string text;
  spell(text, weight.shape, applied, {});
  std::vector<int64_t> sizes;
  int64_t size = 1;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {  // "3 * 8, 16"
    int64_t factor = 0;
    const auto read = std::from_chars(at, end, factor);
    if (read.ptr == at) {
      if (*at == ',') sizes.push_back(std::exchange(size, 1));
      ++at;
      continue;
    }
    size *= factor, at = read.ptr;
  }
  sizes.push_back(size);
  return sizes;
}

}  // namespace nereid::ops
