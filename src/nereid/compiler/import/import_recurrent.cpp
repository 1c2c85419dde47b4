// Recurrent cells, and layers of them: what the inputs give is one product for all steps, then come the steps
// (Recurrence in graph.h).
#include <algorithm>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

int64_t gates_of(Cell cell) { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }

// What a cell multiplies with, all of [gates * hidden, k] or [gates * hidden].
struct Weights {
  trace::ValueId input, hidden;
  std::optional<trace::ValueId> input_bias, hidden_bias;
};

// Reads element (sample, k), with extents.
using Read = std::function<ExprId(const Index& sample, const Index& k, const Extents& extents)>;
// The hidden and the cell's own state: what a step starts from.
struct State {
  Read hidden, cell;
};

class Cells {
 public:
  Cells(Importer& import, Cell cell, const Size& batch, const Size& hidden, DType stored)
      : import_(import),
        exprs_(import.exprs()),
        cell_(cell),
        batch_(batch),
        hidden_(hidden),
        stored_(stored) {}

  // [batch, gates * hidden] = x w^T + bias
  TensorId product(const Read& x, const Size& inputs, trace::ValueId weight,
                   std::optional<trace::ValueId> bias, const char* name) {
    const Extents sizes{batch_, gates_of(cell_) * hidden_}, extents{sizes[0], sizes[1], inputs};
    import_.contraction_under("matmul.allow_tf32");
    const Value a(exprs_, x(dim(0), dim(2), extents)),
        b(exprs_, import_.read(weight, {dim(1), dim(2)}, extents));
    const TensorId sum = import_.temporary(Reduction::kSum, sizes, {inputs}, (a * b).id(), a.type(), name);
    if (!bias) return sum;
    const Value total(exprs_, import_.load(sum, dimensions(2)));
    const Value shifted = total + Value(exprs_, import_.read(*bias, {dim(1)}, sizes));
    return import_.temporary(Reduction::kNone, sizes, {}, shifted.id(), total.type(), name);
  }

  // The next hidden state, and the next state of the cell where it has one.
  std::pair<TensorId, std::optional<TensorId>> step(TensorId from_input, const State& state,
                                                    const Weights& weights) {
    const TensorId from_hidden =
        product(state.hidden, hidden_, weights.hidden, weights.hidden_bias, "hidden_gates");
    const Extents sizes{batch_, hidden_};
    const auto at = [&](TensorId gates, int64_t gate) {
      return Value(exprs_, import_.load(gates, {dim(0), dim(1) + Index(gate * hidden_)}));
    };
    const auto both = [&](int64_t gate) { return at(from_input, gate) + at(from_hidden, gate); };
    const auto made = [&](Value value, const char* name) {
      return import_.temporary(Reduction::kNone, sizes, {}, value.id(), stored_, name);
    };
    if (cell_ == Cell::kTanh) return {made(both(0).apply(Fn::kTanh), "hidden"), std::nullopt};
    if (cell_ == Cell::kRelu) return {made(maximum(both(0), 0), "hidden"), std::nullopt};
    const Value before(exprs_, state.hidden(dim(0), dim(1), sizes));
    if (cell_ == Cell::kGru) {
      const Value reset = both(0).apply(Fn::kSigmoid), update = both(1).apply(Fn::kSigmoid);
      const Value fresh = (at(from_input, 2) + reset * at(from_hidden, 2)).apply(Fn::kTanh);
      return {made((before - fresh) * update + fresh, "hidden"), std::nullopt};
    }
    const Value in = both(0).apply(Fn::kSigmoid), forget = both(1).apply(Fn::kSigmoid),
                fresh = both(2).apply(Fn::kTanh);
    const Value cell = forget * Value(exprs_, state.cell(dim(0), dim(1), sizes)) + in * fresh;
    const TensorId kept = made(cell, "cell");
    return {made(both(3).apply(Fn::kSigmoid) * cell.apply(Fn::kTanh), "hidden"), kept};
  }

  Read of(TensorId tensor) const {
    return [this, tensor](const Index& sample, const Index& k, const Extents&) {
      return import_.load(tensor, {sample, k});
    };
  }
  // Of a value whose leading indices are given.
  Read of(trace::ValueId id, std::vector<Index> leading) const {
    return [this, id, leading](const Index& sample, const Index& k, const Extents& extents) {
      std::vector<Index> at = leading;
      at.push_back(sample);
      at.push_back(k);
      return import_.read(id, at, extents);
    };
  }

  static Index dim(int d) { return Index::dimension(d); }

 private:
  Importer& import_;
  Exprs& exprs_;
  Cell cell_;
  Size batch_, hidden_;
  DType stored_;
};

// lstm_cell(x, [h, c], w_ih, w_hh, b_ih, b_hh) and its kin.
OperatorImport one_cell(Cell cell) {
  return [cell](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "input"));
    const auto hx = import.arg(1, "hx") == nullptr ? std::vector<trace::ValueId>{}
                                                   : trace::tensors_in(*import.arg(1, "hx"));
    const auto input = import.tensor(import.arg(2, "w_ih")), hidden = import.tensor(import.arg(3, "w_hh"));
    if (!x || !input || !hidden || hx.empty() || import.value(*x).sizes.size() != 2)
      return import.cannot("expected a batch and weights");
    const Extents sizes = import.value(hx[0]).sizes;
    Cells cells(import, cell, sizes[0], sizes[1], import.result().dtype);
    const Weights weights{*input, *hidden, import.tensor(import.arg(4, "b_ih")),
                          import.tensor(import.arg(5, "b_hh"))};
    const TensorId from_input =
        cells.product(cells.of(*x, {}), import.value(*x).sizes[1], *input, weights.input_bias, "input_gates");
    const State state{cells.of(hx[0], {}), hx.size() > 1 ? cells.of(hx[1], {}) : nullptr};
    const auto [next, kept] = cells.step(from_input, state, weights);
    NEREID_TRY_STATUS(import.define(import.results()[0], import.load(next, dimensions(2)), "hidden"));
    return kept ? import.define(import.results().at(1), import.load(*kept, dimensions(2)), "cell")
                : ok_status();
  };
}

// lstm.input(x, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first), x [time, batch,
// k].
//
// A state that is projected, h = P s, is multiplied with W P in the steps: so they go from s to s as those of
// any LSTM, and P is one product for all steps. What the first h gives, W h, is added to the input's gates.
class Layers {
 public:
  Layers(Importer& import, Cell cell) : import_(import), cell_(cell) {}

  Status run() {
    const auto x = import_.tensor(import_.arg(0, "input"));
    if (!import_.call().op.ends_with(".input") || !x || import_.value(*x).sizes.size() != 3)
      return import_.cannot("its sequences are packed");
    hx_ = trace::tensors_in(*import_.arg(1, "hx"));
    params_ = trace::tensors_in(*import_.arg(2, "params"));
    biases_ = import_.flag(import_.arg(3, "has_biases"), true);
    layers_ = import_.integer(import_.arg(4, "num_layers"), 1);
    directions_ = import_.flag(import_.arg(7, "bidirectional"), false) ? 2 : 1;
    batch_first_ = import_.flag(import_.arg(8, "batch_first"), false);
    if (import_.number(import_.arg(5, "dropout"), 0) > 0 && import_.flag(import_.arg(6, "train"), false) &&
        layers_ > 1)
      return import_.cannot("it drops elements at random");
    const Extents in = import_.value(*x).sizes;
    time_ = in[batch_first_ ? 1 : 0];
    batch_ = in[batch_first_ ? 0 : 1];
    hidden_ = import_.value(hx_.back()).sizes.at(2), out_ = import_.value(hx_.at(0)).sizes.at(2);
    projects_ = params_.size() > static_cast<size_t>(layers_ * directions_) * (biases_ ? 4 : 2);
    if (projects_) first_ = -1;
    for (int64_t layer = 0; layer < layers_; ++layer) {
      std::vector<TensorId> made;
      for (int64_t direction = 0; direction < directions_; ++direction)
        made.push_back(one(layer, direction, *x, in[2]));
      states_ = std::move(made);
    }
    return results();
  }

 private:
  // The hidden states of one layer in one direction.
  TensorId one(int64_t layer, int64_t direction, trace::ValueId x, const Size& inputs) {
    const int64_t which = layer * directions_ + direction;
    const size_t own = (biases_ ? 4 : 2) + (projects_ ? 1 : 0);
    const auto param = [&](size_t i) { return params_[static_cast<size_t>(which) * own + i]; };
    Recurrence made{.cell = cell_, .steps = time_, .batch = batch_, .hidden = hidden_};
    made.backwards = direction == 1;
    made.gates = gates(layer, x, layer == 0 ? inputs : out_ * directions_, param(0),
                       biases_ ? std::optional(param(2)) : std::nullopt);
    if (projects_) {
      made.gates = with_first(made.gates, which, param(1));
      made.weight = projected_weight(param(1), param(own - 1));
      const ExprId zero = import_.exprs().constant(0, import_.result().dtype);
      made.start = import_.temporary(Reduction::kNone, {batch_, hidden_}, {}, zero, import_.result().dtype,
                                     "first_hidden");
    } else {
      made.weight = import_.in_memory(param(1), "hidden_weight");
      made.start = start(0, which);
    }
    if (biases_) made.bias = import_.in_memory(param(3), "hidden_bias");
    if (cell_ == Cell::kLstm) made.cell_start = start(1, which);
    Exprs& exprs = import_.exprs();
    // The body names what is read.
    ExprId reads = exprs.constant(0);
    for (const TensorId id : {made.gates, made.weight, made.bias, made.start, made.cell_start})
      if (id >= 0) reads = exprs.apply(Fn::kAdd, {reads, import_.load(id, std::vector<Index>(rank(id)))});
    Node node{.sizes = {time_ + 1, batch_, hidden_}, .body = reads, .name = name_of()};
    node.whole = true;
    node.recurrence = made;
    const DType stored = import_.result().dtype;
    const TensorId states = import_.add(node, stored);
    import_.recurrence_of(states).arrived = import_.add_out({batch_}, DType::kI32, name_of() + "_arrived");
    if (cell_ == Cell::kLstm) {
      last_cell_.push_back(import_.add_out({batch_, hidden_}, stored, name_of() + "_cell"));
      import_.recurrence_of(states).cell_state = last_cell_.back();
    }
    last_hidden_.push_back(projects_ ? projected(states, param(own - 1)) : states);
    return last_hidden_.back();
  }

  // W P: [gates * hidden, hidden].
  TensorId projected_weight(trace::ValueId weight, trace::ValueId projection) {
    const Extents sizes{gates_of(cell_) * hidden_, hidden_}, extents{sizes[0], sizes[1], out_};
    const Index gate = Index::dimension(0), k = Index::dimension(1), p = Index::dimension(2);
    return sum_of_products(sizes, out_, import_.read(weight, {gate, p}, extents),
                           import_.read(projection, {p, k}, extents), import_.result().dtype,
                           "hidden_weight");
  }
  // P s after each step: [time, batch, projected].
  TensorId projected(TensorId states, trace::ValueId projection) {
    const Extents sizes{time_, batch_, out_}, extents{sizes[0], sizes[1], sizes[2], hidden_};
    const Index p = Index::dimension(2), k = Index::dimension(3);
    return sum_of_products(
        sizes, hidden_, import_.load(states, {Index::dimension(0) + Index(1), Index::dimension(1), k}),
        import_.read(projection, {p, k}, extents), import_.result().dtype, name_of() + "_projection");
  }
  // The gates with what the first hidden state gives at the step that is taken first.
  TensorId with_first(TensorId gates, int64_t which, trace::ValueId weight) {
    const Extents sizes{batch_, gates_of(cell_) * hidden_}, extents{sizes[0], sizes[1], out_};
    const Index sample = Index::dimension(0), gate = Index::dimension(1), p = Index::dimension(2);
    const ExprId state = import_.read(hx_[0], {Index(which), sample, p}, extents);
    const TensorId first = sum_of_products(sizes, out_, state, import_.read(weight, {gate, p}, extents),
                                           import_.exprs()[state].type, "first_gates");
    Exprs& exprs = import_.exprs();
    const Extents all{time_, sizes[0], sizes[1]};
    const Value total(exprs, import_.load(gates, dimensions(3)));
    const Value more(exprs, import_.load(first, {Index::dimension(1), Index::dimension(2)}));
    const Size begin = which % directions_ == 1 ? time_ - 1 : Size(0);
    const Value is_first(exprs, exprs.within(Index::dimension(0), begin, begin + 1, all));
    return import_.temporary(Reduction::kNone, all, {}, is_first.where(total + more, total).id(),
                             total.type(), name_of() + "_input_gates");
  }
  TensorId sum_of_products(const Extents& sizes, const Size& terms, ExprId a, ExprId b, DType stored,
                           const std::string& name) {
    import_.contraction_under("cudnn.allow_tf32");
    const ExprId body = import_.exprs().apply(Fn::kMul, {a, b});
    return import_.temporary(Reduction::kSum, sizes, {terms}, body, stored, name);
  }

  size_t rank(TensorId id) const { return import_.sizes_of(id).size(); }

  std::string name_of() const { return cell_ == Cell::kLstm ? "lstm" : cell_ == Cell::kGru ? "gru" : "rnn"; }

  // What the inputs give at every time: [time, batch, gates * hidden] = x w^T + bias.
  TensorId gates(int64_t layer, trace::ValueId x, const Size& inputs, trace::ValueId weight,
                 std::optional<trace::ValueId> bias) {
    const Extents sizes{time_, batch_, gates_of(cell_) * hidden_},
        extents{sizes[0], sizes[1], sizes[2], inputs};
    const Index t = Index::dimension(0), sample = Index::dimension(1), gate = Index::dimension(2),
                k = Index::dimension(3);
    Exprs& exprs = import_.exprs();
    import_.contraction_under("cudnn.allow_tf32");  // a GPU's PyTorch calls cuDNN
    const Value a(exprs, layer > 0      ? below(t, sample, k, extents)
                         : batch_first_ ? import_.read(x, {sample, t, k}, extents)
                                        : import_.read(x, {t, sample, k}, extents));
    const Value b(exprs, import_.read(weight, {gate, k}, extents));
    const std::string name = name_of() + "_input_gates";
    const TensorId sum = import_.temporary(Reduction::kSum, sizes, {inputs}, (a * b).id(), a.type(), name);
    if (!bias) return sum;
    const Value total(exprs, import_.load(sum, dimensions(3)));
    const Value shifted = total + Value(exprs, import_.read(*bias, {gate}, sizes));
    return import_.temporary(Reduction::kNone, sizes, {}, shifted.id(), total.type(), name);
  }

  // hx[which][layer and direction], as a tensor of its own.
  TensorId start(size_t which, int64_t layer) {
    const trace::ValueId id = hx_.at(which);
    const Extents sizes{batch_, hidden_};
    const ExprId body = import_.read(id, {Index(layer), Index::dimension(0), Index::dimension(1)}, sizes);
    return import_.temporary(Reduction::kNone, sizes, {}, body, import_.value(id).dtype,
                             which == 0 ? "first_hidden" : "first_cell");
  }

  // The layer that was made last, at a time: its directions concatenated.
  ExprId below(const Index& t, const Index& sample, const Index& k, const Extents& extents) const {
    const ExprId first = import_.load(states_[0], {t + Index(first_ + 1), sample, k});
    if (directions_ == 1) return first;
    const ExprId second = import_.load(states_[1], {Index(time_ + first_) - t, sample, k - Index(out_)});
    return import_.exprs().apply(Fn::kWhere, {import_.exprs().within(k, 0, out_, extents), first, second});
  }

  Status results() {
    const Index t = Index::dimension(batch_first_ ? 1 : 0), sample = Index::dimension(batch_first_ ? 0 : 1);
    // States are in memory as the sequence is, after the first.
    const bool held =
        directions_ == 1 && first_ == 0 &&
        import_.hold(import_.results()[0], states_[0],
                     batch_first_ ? std::vector<size_t>{1, 0, 2} : std::vector<size_t>{0, 1, 2});
    if (!held)
      NEREID_TRY_STATUS(import_.define(
          import_.results()[0], below(t, sample, Index::dimension(2), import_.result().sizes), "sequence"));
    NEREID_TRY_STATUS(last(1, last_hidden_, {Index(time_ + first_)}, "last_hidden"));
    return cell_ == Cell::kLstm ? last(2, last_cell_, {}, "last_cell") : ok_status();
  }

  // Of each layer and direction, one after the other.
  Status last(size_t result, const std::vector<TensorId>& of, std::vector<Index> at,
              const std::string& name) {
    const Extents sizes{layers_ * directions_, batch_, import_.sizes_of(of.back()).back()};
    at.push_back(Index::dimension(1));
    at.push_back(Index::dimension(2));
    ExprId body = import_.load(of.back(), at);
    for (size_t i = of.size() - 1; i-- > 0;)
      body = import_.exprs().apply(
          Fn::kWhere, {import_.exprs().within(Index::dimension(0), 0, static_cast<int64_t>(i) + 1, sizes),
                       import_.load(of[i], at), body});
    return import_.define(import_.results().at(result), body, name);
  }

  Importer& import_;
  Cell cell_;
  std::vector<trace::ValueId> hx_, params_;
  bool biases_ = true, batch_first_ = false, projects_ = false;
  int64_t layers_ = 1, directions_ = 1;
  Size time_ = 1, batch_ = 1, hidden_ = 1;
  Size out_ = 1;                  // what a step hands out: the hidden state, projected or not
  int64_t first_ = 0;             // where a first state would be among the states: -1 where there is none
  std::vector<TensorId> states_;  // of the layer below, by direction
  std::vector<TensorId> last_hidden_, last_cell_;
};

OperatorImport layers(Cell cell) {
  return [cell](Importer& import) -> Status { return Layers(import, cell).run(); };
}

// Calls of a cell, one after the other, as a layer.
class Loop {
 public:
  Loop(Importer& import, Cell cell, const std::vector<const trace::Call*>& steps)
      : import_(import), exprs_(import.exprs()), cell_(cell), steps_(steps) {
    for (const trace::Call* step : steps) x_.push_back(trace::tensors_in(step->args[0])[0]);
    const auto hx = trace::tensors_in(steps[0]->args[1]);
    start_ = hx[0], cell_start_ = hx.back();
    batch_ = import.value(start_).sizes[0], hidden_ = import.value(start_).sizes[1];
    for (size_t p = 2; p < steps[0]->args.size(); ++p) params_.push_back(import.tensor(&steps[0]->args[p]));
    params_.resize(4);
  }

  Status run() {
    if (!params_[0] || !params_[1]) return import_.cannot("expected weights");
    Recurrence made{.cell = cell_, .steps = time(), .batch = batch_, .hidden = hidden_};
    made.gates = gates();
    made.weight = import_.in_memory(*params_[1], "hidden_weight");
    if (params_[3]) made.bias = import_.in_memory(*params_[3], "hidden_bias");
    const DType stored = import_.result().dtype;
    made.start = start(start_, "first_hidden", stored);
    if (cell_ == Cell::kLstm) made.cell_start = start(cell_start_, "first_cell", stored);
    ExprId reads = exprs_.constant(0);  // the body names what is read
    for (const TensorId id : {made.gates, made.weight, made.bias, made.start, made.cell_start})
      if (id >= 0)
        reads = exprs_.apply(Fn::kAdd,
                             {reads, import_.load(id, std::vector<Index>(import_.sizes_of(id).size()))});
    Node node{.sizes = {time() + 1, batch_, hidden_}, .body = reads, .name = name()};
    node.whole = true;
    node.recurrence = made;
    const TensorId states = import_.add(node, stored);
    import_.recurrence_of(states).arrived = import_.add_out({batch_}, DType::kI32, name() + "_arrived");
    TensorId cells = -1;
    if (cell_ == Cell::kLstm) {
      cells = import_.add_out({batch_, hidden_}, stored, name() + "_cell");
      import_.recurrence_of(states).cell_state = cells;
    }
    for (size_t t = 0; t < steps_.size(); ++t) {
      import_.enter(*steps_[t]);
      const Index after(static_cast<int64_t>(t) + 1);
      NEREID_TRY_STATUS(
          import_.define(import_.results()[0],
                         import_.load(states, {after, Index::dimension(0), Index::dimension(1)}), "hidden"));
    }
    return cells < 0 ? ok_status()
                     : import_.define(import_.results().at(1), import_.load(cells, dimensions(2)), "cell");
  }

 private:
  int64_t time() const { return static_cast<int64_t>(steps_.size()); }
  std::string name() const { return cell_ == Cell::kLstm ? "lstm" : cell_ == Cell::kGru ? "gru" : "rnn"; }

  TensorId start(trace::ValueId id, const char* name, DType type) {
    const Extents sizes{batch_, hidden_};
    return import_.temporary(Reduction::kNone, sizes, {}, import_.read(id, dimensions(2), sizes), type, name);
  }

  // What the inputs give at every time: [time, batch, gates * hidden] = x w^T + bias.
  TensorId gates() {
    const Size inputs = import_.value(x_[0]).sizes[1];
    const Extents sizes{time(), batch_, gates_of(cell_) * hidden_},
        extents{sizes[0], sizes[1], sizes[2], inputs};
    const Index gate = Index::dimension(2), k = Index::dimension(3);
    // As PyTorch's own cells, which are two products each.
    import_.contraction_under("matmul.allow_tf32");
    const Value a(exprs_, input({Index::dimension(0), Index::dimension(1), k}, extents));
    const Value b(exprs_, import_.read(*params_[0], {gate, k}, extents));
    const std::string name = this->name() + "_input_gates";
    const TensorId sum = import_.temporary(Reduction::kSum, sizes, {inputs}, (a * b).id(), a.type(), name);
    if (!params_[2]) return sum;
    const Value total(exprs_, import_.load(sum, dimensions(3)));
    const Value shifted = total + Value(exprs_, import_.read(*params_[2], {gate}, sizes));
    return import_.temporary(Reduction::kNone, sizes, {}, shifted.id(), total.type(), name);
  }

  // The calls' inputs as one tensor [time, batch, k]: slices of one at equal distances, or put together.
  ExprId input(const std::vector<Index>& at, const Extents& extents) {
    const TracedTensor first = import_.value(x_[0]);
    const Size distance = import_.value(x_[1]).offset - first.offset;
    bool slices = true;
    for (size_t t = 0; t < x_.size(); ++t) {
      const TracedTensor& x = import_.value(x_[t]);
      slices = slices && x.storage == first.storage && x.strides == first.strides &&
               x.offset == first.offset + distance * static_cast<int64_t>(t);
    }
    if (!slices) return import_.load(stacked(), at);
    TracedTensor all = distance < 0 ? import_.value(x_.back()) : first;
    all.sizes.insert(all.sizes.begin(), Size(time()));
    all.strides.insert(all.strides.begin(), distance < 0 ? Size(0) - distance : distance);
    std::vector<Index> place = at;
    if (distance < 0) place[0] = Index(time() - 1) - place[0];
    return import_.read(all, place, extents);
  }

  TensorId stacked() {
    const Extents of = import_.value(x_[0]).sizes, sizes{time(), of[0], of[1]};
    std::vector<ExprId> parts;
    for (const trace::ValueId x : x_)
      parts.push_back(import_.read(x, {Index::dimension(1), Index::dimension(2)}, sizes));
    return import_.temporary(Reduction::kNone, sizes, {}, import_.joined(parts, 0, 1, sizes),
                             import_.value(x_[0]).dtype, name() + "_input");
  }

  Importer& import_;
  Exprs& exprs_;
  Cell cell_;
  const std::vector<const trace::Call*>& steps_;
  std::vector<trace::ValueId> x_ = {};  // of each step
  trace::ValueId start_ = -1, cell_start_ = -1;
  std::vector<std::optional<trace::ValueId>> params_ = {};  // input and hidden weights, their biases
  Size batch_ = 1, hidden_ = 1;
};

}  // namespace

Status import_cell_loop(Importer& import, const std::vector<const trace::Call*>& steps) {
  const std::string_view op = steps.front()->op;
  const Cell cell = op.starts_with("aten::lstm")       ? Cell::kLstm
                    : op.starts_with("aten::gru")      ? Cell::kGru
                    : op.starts_with("aten::rnn_relu") ? Cell::kRelu
                                                       : Cell::kTanh;
  return Loop(import, cell, steps).run();
}

Status Importer::loop(const CellLoop& loop, const std::vector<const trace::Call*>& calls) {
  tf32_ = under_flag_ = window_ = false;
  trouble_ = ok_status();
  std::vector<const trace::Call*> steps;
  for (const size_t call : loop.calls) steps.push_back(calls[call]);
  call_ = steps.front();
  NEREID_TRY_STATUS(import_cell_loop(*this, steps));
  return std::exchange(trouble_, ok_status());
}

void add_recurrent(OperatorTable& table) {
  table["aten::rnn_tanh_cell"] = one_cell(Cell::kTanh);
  table["aten::rnn_relu_cell"] = one_cell(Cell::kRelu);
  table["aten::gru_cell"] = one_cell(Cell::kGru);
  table["aten::lstm_cell"] = one_cell(Cell::kLstm);
  table["aten::rnn_tanh"] = layers(Cell::kTanh);
  table["aten::rnn_relu"] = layers(Cell::kRelu);
  table["aten::gru"] = layers(Cell::kGru);
  table["aten::lstm"] = layers(Cell::kLstm);
}

}  // namespace nereid::compiler
