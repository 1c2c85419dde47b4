#include "nereid/render/apart/recurrent_apart.h"

#include <algorithm>
#include <string>

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Dims = std::vector<int64_t>;

constexpr int64_t kMostSteps = 480;

struct Cell {
  std::string kind;  // lstm, gru, rnn_tanh, rnn_relu
  Arg w, u;          // [gates * hidden, inputs], [gates * hidden, hidden]
  const Arg *bw = nullptr, *bu = nullptr;
};

// `gate` of [batch, gates * hidden].
Arg gate(SimplerSteps& steps, const Arg& all, int64_t gate, int64_t hidden) {
  return steps.slice(all, 1, gate * hidden, (gate + 1) * hidden);
}

// (h, c) after a time step, whose inputs' products are `given`; c is an LSTM's alone.
std::pair<Arg, Arg> time_step(SimplerSteps& steps, const Cell& cell, const Arg& given, const Arg& h,
                              const Arg& c) {
  const int64_t hidden = steps.sizes(h)[1];
  const Arg own = steps.linear(h, cell.u, cell.bu);
  if (cell.kind == "lstm") {
    const Arg gates = steps.binary("add", given, own), open = steps.unary("sigmoid", gates);
    const Arg kept = steps.binary("mul", gate(steps, open, 1, hidden), c);
    const Arg proposed = steps.unary("tanh", gate(steps, gates, 2, hidden));
    const Arg state = steps.binary("add", kept, steps.binary("mul", gate(steps, open, 0, hidden), proposed));
    return {steps.binary("mul", gate(steps, open, 3, hidden), steps.unary("tanh", state)), state};
  }
  if (cell.kind == "gru") {
    // n + z (h - n), n = tanh(given + r own)
    const Arg open = steps.unary("sigmoid", steps.binary("add", steps.slice(given, 1, 0, 2 * hidden),
                                                         steps.slice(own, 1, 0, 2 * hidden)));
    const Arg reset = steps.binary("mul", gate(steps, open, 0, hidden), gate(steps, own, 2, hidden));
    const Arg n = steps.unary("tanh", steps.binary("add", gate(steps, given, 2, hidden), reset));
    const Arg left = steps.binary("mul", gate(steps, open, 1, hidden), steps.binary("sub", h, n));
    return {steps.binary("add", n, left), {}};
  }
  return {steps.unary(cell.kind == "rnn_relu" ? "relu" : "tanh", steps.binary("add", given, own)), {}};
}

// A layer in one direction: its states h of all time steps, in their order; `last`: (h, c).
std::vector<Arg> direction(SimplerSteps& steps, const Cell& cell, const Arg& x, bool backward,
                           std::pair<Arg, Arg>& last) {
  const Dims sizes = steps.sizes(x);  // [time, batch, inputs]
  const Arg rows = steps.viewed(steps.contiguous(x), {sizes[0] * sizes[1], sizes[2]});
  const Arg all = steps.linear(rows, cell.w, cell.bw);
  const Arg given = steps.viewed(all, {sizes[0], sizes[1], steps.sizes(all)[1]});
  std::vector<Arg> states(static_cast<size_t>(sizes[0]));
  for (int64_t k = 0; k < sizes[0]; ++k) {
    const int64_t t = backward ? sizes[0] - 1 - k : k;
    last = time_step(steps, cell, steps.select(given, 0, t), last.first, last.second);
    states[static_cast<size_t>(t)] = last.first;
  }
  return states;
}

}  // namespace

bool recurrent_apart(SimplerSteps& steps) {
  const auto& call = steps.call();
  const std::string kind = call.op.substr(6, call.op.find('.') - 6);
  const bool lstm = kind == "lstm";
  const auto* params = call.args.size() > 8 ? std::get_if<trace::List>(&call.args[2].node) : nullptr;
  const auto* layers = call.args.size() > 8 ? std::get_if<int64_t>(&call.args[4].node) : nullptr;
  const auto results = trace::tensors_in(call.result);
  const auto states = call.args.size() > 8 ? trace::tensors_in(call.args[1]) : std::vector<trace::ValueId>();
  if (params == nullptr || layers == nullptr || steps.tensor(0) == nullptr ||
      states.size() != (lstm ? 2U : 1U) || results.size() != (lstm ? 3U : 2U))
    return false;
  const bool biased = steps.flag(3, true), both = steps.flag(7, false), batch_first = steps.flag(8, false);
  const int64_t directions = both ? 2 : 1;
  const size_t each = biased ? 4 : 2;
  const Arg x = *steps.tensor(0);
  const Dims sizes = steps.sizes(x);
  const auto dropout = Canonicalizer::number(call.args, 5);
  if (sizes.size() != 3 || steps.type(x) != trace::DType::kF32 ||
      params->items.size() != each * static_cast<size_t>(*layers * directions) ||
      (dropout.is > 0 && steps.flag(6, false)))
    return false;
  const int64_t time = sizes[batch_first ? 1 : 0], work = lstm ? 9 : kind == "gru" ? 9 : 3;
  if (time * *layers * directions * work > kMostSteps) return false;

  const Arg h0 = {trace::TensorRef{states[0]}}, c0 = {trace::TensorRef{states.back()}};
  Arg from = batch_first ? steps.transposed(x, 0, 1) : x;
  std::vector<Arg> last_h, last_c;
  for (int64_t layer = 0; layer < *layers; ++layer) {
    std::vector<Arg> parts;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t number = layer * directions + d;
      const Arg* own = &params->items[static_cast<size_t>(number) * each];
      const Cell cell{kind, own[0], own[1], biased ? &own[2] : nullptr, biased ? &own[3] : nullptr};
      std::pair<Arg, Arg> last = {steps.select(h0, 0, number), lstm ? steps.select(c0, 0, number) : Arg()};
      parts.push_back(steps.stacked(direction(steps, cell, from, d == 1, last), 0));
      last_h.push_back(last.first), last_c.push_back(last.second);
    }
    from = steps.joined(parts, 2);
  }
  const Arg y = {trace::TensorRef{results[0]}}, h = {trace::TensorRef{results[1]}};
  const Arg in_time = steps.room(y, steps.sizes(from)), rows_of_time = steps.copied(from, &in_time);
  if (batch_first)
    steps.transposed(rows_of_time, 0, 1, &y);
  else
    steps.viewed(rows_of_time, steps.sizes(y), &y);
  steps.stacked(last_h, 0, &h);
  if (lstm) {
    const Arg c = {trace::TensorRef{results[2]}};
    steps.stacked(last_c, 0, &c);
  }
  return true;
}

}  // namespace nereid::render
