#include "nereid/search/subgraphs/partitioner.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "nereid/render/python_text.h"
#include "nereid/search/report/graph_svg.h"
#include "nereid/search/subgraphs/subgraph_search.h"

namespace nereid::search {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using trace::ValueId;

// A program of calls over [8, 4] tensors: each node reads what its list says (-1: the input, -2: the
// parameter w).
std::unique_ptr<Task> program(const std::vector<std::vector<int>>& nodes, std::vector<int> outputs = {}) {
  auto task = std::make_unique<Task>();
  auto& trace = task->trace;
  trace.class_name = "Model", task->source = "class Model: pass\n", task->name = "task.py";
  const auto tensor = [&](trace::Role role, const char* name) {
    trace.storages.push_back({.bytes = 128, .role = role, .device = {}, .name = name, .data = {}});
    trace::Value v;
    v.storage = static_cast<int>(trace.storages.size()) - 1, v.sizes = {8, 4}, v.strides = {4, 1};
    trace.values.push_back(v);
    return static_cast<ValueId>(trace.values.size() - 1);
  };
  const auto ref = [](ValueId id) { return trace::Arg{trace::TensorRef{id}}; };
  const ValueId input = tensor(trace::Role::kInput, "0"), w = tensor(trace::Role::kParameter, "block.0.w");
  trace.state.push_back({"block.0.w", w, true, true});
  trace::Phase forward{
      .kind = trace::PhaseKind::kForward, .call = 0, .steps = {}, .inputs = {}, .output = {}};
  forward.inputs = trace::Arg{trace::List{{ref(input)}}};
  std::vector<ValueId> made;
  for (const auto& reads : nodes) {
    trace::Call call;
    call.op = reads.size() == 1 ? "aten::relu" : "aten::add.Tensor";
    for (const int r : reads)
      call.args.push_back(ref(r == -1 ? input : r == -2 ? w : made[static_cast<size_t>(r)]));
    made.push_back(tensor(trace::Role::kTemporary, ""));
    call.result = ref(made.back());
    forward.steps.emplace_back(call);
  }
  trace::List list{{}, true};
  if (outputs.empty()) outputs = {static_cast<int>(nodes.size()) - 1};
  for (const int o : outputs) list.items.push_back(ref(made[static_cast<size_t>(o)]));
  forward.output = trace::Arg{list};
  trace.phases.push_back(std::move(forward));
  verify::PhaseAnalysis facts{.kind = trace::PhaseKind::kForward};
  for (size_t i = 0; i < nodes.size(); ++i)
    facts.steps.push_back({.name = "x", .work = verify::Work::kPointwise, .flops = 32, .bytes = 256});
  task->facts.trace = &trace;
  task->facts.phases.push_back(facts);
  return task;
}

// Every convex connected set of a small program, by looking at all sets.
size_t count_convex(const std::vector<std::vector<int>>& nodes, size_t most) {
  const size_t n = nodes.size();
  std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
  for (size_t i = 0; i < n; ++i)
    for (const int r : nodes[i])
      if (r >= 0) {
        reach[static_cast<size_t>(r)][i] = true;
        for (size_t a = 0; a < n; ++a)
          if (reach[a][static_cast<size_t>(r)]) reach[a][i] = true;
      }
  size_t count = 0;
  for (size_t set = 1; set < (size_t{1} << n); ++set) {
    const auto in = [&](size_t i) { return (set >> i & 1) != 0; };
    if (static_cast<size_t>(__builtin_popcountll(set)) > most) continue;
    bool convex = true;
    for (size_t a = 0; a < n; ++a)
      for (size_t b = 0; b < n; ++b)
        for (size_t c = 0; c < n; ++c)
          if (in(a) && !in(b) && in(c) && reach[a][b] && reach[b][c]) convex = false;
    size_t joined = set & (~set + 1), before = 0;
    while (joined != before) {
      before = joined;
      for (size_t i = 0; i < n; ++i)
        for (const int r : nodes[i])
          if (r >= 0 && in(i) && in(static_cast<size_t>(r)) &&
              ((joined >> i & 1) != 0 || (joined >> r & 1) != 0))
            joined |= size_t{1} << i | size_t{1} << r;
    }
    if (convex && joined == set) ++count;
  }
  return count;
}

TEST(Partitioner, FindsEveryConvexSet) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<int>> nodes;
    for (int i = 0; i < 7; ++i) {
      nodes.push_back({static_cast<int>(random() % static_cast<unsigned>(i + 1)) - 1});
      if (random() % 2 == 0)
        nodes.back().push_back(static_cast<int>(random() % static_cast<unsigned>(i + 1)) - 1);
    }
    std::vector<int> all = {0, 1, 2, 3, 4, 5, 6};  // all returned: every set has an output
    const auto task = program(nodes, all);
    const auto partitioner = Partitioner::cut(*task);
    ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
    EXPECT_EQ(partitioner->subgraphs(5, 10000).size(), count_convex(nodes, 5));
  }
}

TEST(Partitioner, WhatAPolicyReservesIsNotPyTorchs) {
  const auto task = program({{-1}, {0}, {1}});
  auto& steps = task->facts.phases[0].steps;
  steps[1].work = verify::Work::kHeavy;
  steps[2].work = verify::Work::kFree;
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok());
  std::map<verify::Policy, std::vector<bool>> reserved;
  for (const auto policy : {verify::Policy::kStrict, verify::Policy::kMostly, verify::Policy::kHybrid})
    for (size_t n = 0; n < partitioner->nodes(); ++n)
      reserved[policy].push_back(partitioner->is_reserved(n, policy));
  EXPECT_THAT(reserved[verify::Policy::kStrict], ElementsAre(true, true, false));
  EXPECT_THAT(reserved[verify::Policy::kMostly], ElementsAre(false, true, false));
  EXPECT_THAT(reserved[verify::Policy::kHybrid], ElementsAre(false, false, false));
}

TEST(Partitioner, ASubgraphIsATaskOfItsOwn) {
  // 0: relu(x); 1: relu(0) and 2: add(0, w), 3: add(1, 2)
  const auto task = program({{-1}, {0}, {0, -2}, {1, 2}});
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok());
  const auto subgraphs = partitioner->subgraphs(2, 100);
  const auto find = [&](std::initializer_list<size_t> nodes) -> const Subgraph* {
    Nodes set;
    for (const size_t n : nodes) set.set(n);
    for (const auto& f : subgraphs)
      if (f.nodes == set) return &f;
    return nullptr;
  };
  const Subgraph* pair = find({2, 3});
  ASSERT_NE(pair, nullptr);
  EXPECT_THAT(pair->inputs, SizeIs(3));
  EXPECT_THAT(pair->outputs, SizeIs(1));
  EXPECT_THAT(pair->source, HasSubstr("def forward(self, x0, x1, x2):"));
  EXPECT_THAT(pair->source, HasSubstr("t0 = torch.ops.aten.add.Tensor(x0, x1)"));
  EXPECT_THAT(pair->source, HasSubstr("t1 = torch.ops.aten.add.Tensor(x2, t0)"));
  EXPECT_THAT(pair->source, HasSubstr("return t1"));
  // What comes out of a relu is never negative.
  EXPECT_THAT(pair->source, HasSubstr("torch.rand(8, 4)"));
  EXPECT_THAT(pair->source, HasSubstr("torch.randn(8, 4)"));
  EXPECT_EQ(find({0, 3}), nullptr);  // not connected
}

TEST(Partitioner, InputsAreDeclaredContiguous) {
  // 0: relu(x); 1: relu of 0 transposed, which 1 lies like; 2: relu(1)
  const auto task = program({{-1}, {0}, {1}});
  auto& trace = task->trace;
  auto& steps = trace.phases.back().steps;
  const auto result = [&](size_t step) {
    return trace::tensors_in(std::get<trace::Call>(steps[step]).result)[0];
  };
  const auto value = [&](ValueId id) -> trace::Value& { return trace.values[static_cast<size_t>(id)]; };
  trace::Value turned = value(result(0));
  turned.sizes = {4, 8}, turned.strides = {1, 4};
  trace.values.push_back(turned);
  const trace::Arg view{trace::TensorRef{static_cast<ValueId>(trace.values.size() - 1)}};
  value(result(1)).sizes = {4, 8}, value(result(1)).strides = {1, 4};
  std::get<trace::Call>(steps[1]).args = {view};
  trace::Call transpose;
  transpose.op = "aten::transpose.int", transpose.result = view;
  transpose.args = {trace::Arg{trace::TensorRef{result(0)}}, trace::Arg{int64_t{0}}, trace::Arg{int64_t{1}}};
  steps.insert(steps.begin() + 1, transpose);
  task->facts.phases.back().steps.insert(task->facts.phases.back().steps.begin() + 1, {.name = "x"});
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
  ASSERT_EQ(partitioner->nodes(), 3U);
  // The view is the subgraph's own; what has no view that made it is declared contiguous.
  const Subgraph second = partitioner->alone(1), third = partitioner->alone(2);
  EXPECT_THAT(second.source, HasSubstr("        t0 = torch.ops.aten.transpose.int(x0, 0, 1)\n"
                                       "        t1 = torch.ops.aten.relu.default(t0)\n        return t1\n"));
  EXPECT_THAT(second.source, HasSubstr("torch.rand(8, 4)"));
  EXPECT_THAT(second.inputs, ElementsAre(result(0)));
  EXPECT_THAT(third.source, HasSubstr("t0 = torch.ops.aten.relu.default(x0)"));
  EXPECT_THAT(third.source, HasSubstr("torch.rand(4, 8)"));
  // Who does not understand the view is given what it shows.
  Nodes middle;
  middle.set(1);
  const auto otherwise = partitioner->alternative_sources(middle);
  ASSERT_THAT(otherwise, SizeIs(1));
  EXPECT_THAT(otherwise[0].source,
              HasSubstr("        t0 = torch.ops.aten.relu.default(x0)\n        return t0\n"));
  EXPECT_THAT(otherwise[0].source, HasSubstr("torch.rand(4, 8)"));
  EXPECT_THAT(otherwise[0].inputs, ElementsAre(trace::tensors_in(view)[0]));
  EXPECT_THAT(partitioner->alternative_sources(third.nodes), IsEmpty());  // there is one way alone
  const auto whole = partitioner->whole();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->nodes, partitioner->all());
  EXPECT_THAT(whole->source, HasSubstr("t2 = torch.ops.aten.relu.default(t1)"));
  const std::string viewless = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n";
  const Subgraph before = partitioner->alone(0);
  const auto given =
      partitioner->compose({{&before, "", ""}, {&otherwise[0], viewless, "model"}, {&third, "", ""}});
  ASSERT_TRUE(given.ok()) << given.error().message;
  EXPECT_THAT(
      *given,
      HasSubstr(
          "t1 = torch.ops.aten.transpose.int(t0, 0, 1)\n        t2 = self.subgraph_1_run(t1.contiguous())"));
  // So it is given as declared.
  const Subgraph first = partitioner->alone(0);
  const std::string candidate = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n";
  const auto text = partitioner->compose({{&first, "", ""}, {&second, "", ""}, {&third, candidate, "model"}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("t2 = torch.ops.aten.relu.default(t1)"));
  EXPECT_THAT(*text, HasSubstr("t3 = self.subgraph_1_run(t2.contiguous())"));
}

TEST(Partitioner, MasksAndIndicesAreDrawn) {
  // 0: relu(x); 1: masked_fill(0, w as a mask); 2: index_select(1, 1, w as indices)
  const auto task = program({{-1}, {0, -2}, {1, -2}});
  auto& trace = task->trace;
  auto& steps = trace.phases.back().steps;
  auto& mask = trace.values[1];  // w
  mask.dtype = trace::DType::kBool;
  auto& fill = std::get<trace::Call>(steps[1]);
  fill.op = "aten::masked_fill.Scalar", fill.args.push_back(trace::Arg{0.0});
  trace.storages.push_back(
      {.bytes = 128, .role = trace::Role::kInput, .device = {}, .name = "1", .data = {}});
  trace::Value indices;
  indices.dtype = trace::DType::kI64, indices.storage = static_cast<int>(trace.storages.size()) - 1;
  indices.sizes = {9}, indices.strides = {1};
  trace.values.push_back(indices);
  const trace::Arg them{trace::TensorRef{static_cast<ValueId>(trace.values.size() - 1)}};
  std::get<trace::List>(trace.phases.back().inputs.node).items.push_back(them);
  auto& select = std::get<trace::Call>(steps[2]);
  select.op = "aten::index_select", select.args = {select.args[0], trace::Arg{int64_t{-1}}, them};
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
  // Alone as people write it, with others as the trace has it.
  EXPECT_THAT(partitioner->alone(1).source,
              HasSubstr("    def forward(self, x, mask):\n        out = torch.masked_fill(x, mask, 0.0)\n"));
  const auto otherwise = partitioner->alternative_sources(partitioner->alone(1).nodes);
  ASSERT_THAT(otherwise, SizeIs(2));
  EXPECT_THAT(otherwise[0].source,
              HasSubstr("t0 = torch.ops.aten.where.self(x0, x2, x1)"));  // named as they are read
  EXPECT_THAT(otherwise[0].inputs,
              ElementsAre(partitioner->alone(1).inputs[1], partitioner->alone(1).inputs[0]));
  ASSERT_THAT(otherwise[0].numbers, SizeIs(1));
  EXPECT_THAT(otherwise[1].source, HasSubstr("t0 = torch.ops.aten.masked_fill.Scalar(x0, x1, 0.0)"));
  EXPECT_THAT(partitioner->alone(1).source,
              HasSubstr("    mask = torch.rand(8, 4) < 0.5\n    return [x, mask]\n"));
  EXPECT_THAT(partitioner->alone(2).source, HasSubstr("        out = torch.index_select(x, -1, idx)\n"));
  EXPECT_THAT(partitioner->alone(2).source, HasSubstr("    idx = torch.randint(0, 4, (9,))\n"));
  std::string both;
  for (const auto& subgraph : partitioner->subgraphs(2, 10))
    if (subgraph.nodes.count() == 2 && subgraph.nodes.test(2)) both = subgraph.source;
  EXPECT_THAT(both, HasSubstr("        t1 = torch.ops.aten.index_select.default(t0, -1, x2)\n"));
  EXPECT_THAT(both, HasSubstr("        torch.rand(8, 4) < 0.5,\n        torch.randint(0, 4, (9,)),\n"));
  // Rows by indices of two dimensions: declared with one, and given so.
  indices.sizes = {3, 3}, indices.strides = {3, 1};
  trace.values.back() = indices;
  select.op = "aten::embedding", select.args = {select.args[0], them};
  trace.values[static_cast<size_t>(trace::tensors_in(select.result)[0])].sizes = {3, 3, 4};
  const auto rows = Partitioner::cut(*task);
  const Subgraph first = rows->alone(0), second = rows->alone(1), third = rows->alone(2);
  EXPECT_THAT(third.source, HasSubstr("out = torch.index_select(x, 0, idx)"));
  EXPECT_THAT(third.source, HasSubstr("idx = torch.randint(0, 8, (9,))"));
  const std::string candidate = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n";
  const auto text = rows->compose({{&first, "", ""}, {&second, "", ""}, {&third, candidate, "model"}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr(", inputs[1].reshape(9))\n        t2 = t2.reshape([3, 3, 4])\n"));
  // Where the bounds of integers are unknown, there is no task of its own.
  select.op = "aten::add.Tensor", select.args = {select.args[0], them};
  const auto other = Partitioner::cut(*task);
  EXPECT_THAT(other->alone(2).source, IsEmpty());
  EXPECT_THAT(other->subgraphs(1, 10), SizeIs(2));
}

TEST(Partitioner, ANumberIsDeclaredAsATensorOfOneElement) {
  // 0: relu(x), a single number; 1: add(w, 0)
  const auto task = program({{-1}, {-2, 0}});
  auto& trace = task->trace;
  auto& number = trace.values[static_cast<size_t>(
      trace::tensors_in(std::get<trace::Call>(trace.phases.back().steps[0]).result)[0])];
  number.sizes = {}, number.strides = {};
  const auto partitioner = Partitioner::cut(*task);
  const Subgraph first = partitioner->alone(0), second = partitioner->alone(1);
  EXPECT_THAT(second.source, HasSubstr("        torch.rand(1),\n"));
  const std::string candidate = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n";
  const auto text = partitioner->compose({{&first, "", ""}, {&second, candidate, "model"}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("t1 = self.subgraph_1_run(self.block[0].w, t0.contiguous().reshape(1))\n"
                               "        t1 = t1.reshape([8, 4])\n"));
}

TEST(Partitioner, WhatALineDoesIsASubgraph) {
  // Nodes 1, 2 and 4 are of one line, but 4 hangs together with neither; 3 reads 2.
  const auto task = program({{-1}, {0}, {1}, {2}, {3}}, {4});
  auto& steps = task->trace.phases.back().steps;
  for (size_t i = 0; i < 5; ++i)
    std::get<trace::Call>(steps[i]).place = {"m.py", i == 0 ? 1 : i == 3 ? 3 : 2};
  const auto partitioner = Partitioner::cut(*task);
  Nodes expected;
  expected.set(1), expected.set(2);
  const auto lines = partitioner->lines_as_subgraphs(5);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].nodes, expected);
  EXPECT_EQ(partitioner->lines(expected), 1U);
  EXPECT_EQ(partitioner->lines(partitioner->all()), 3U);
  EXPECT_THAT(partitioner->lines_as_subgraphs(1), IsEmpty());
}

TEST(Partitioner, WhatWritesInPlaceIsOneNodeWithWhatMadeIt) {
  // 0: relu(x); 1: relu(0); 2: relu_(1), the same storage; 3: add(0, 2)
  const auto task = program({{-1}, {0}, {1}, {0, 2}});
  auto& trace = task->trace;
  auto& steps = trace.phases.back().steps;
  auto& in_place = std::get<trace::Call>(steps[2]);
  in_place.op = "aten::relu_";
  const auto result = [&](size_t step) {
    return trace::tensors_in(std::get<trace::Call>(steps[step]).result)[0];
  };
  trace.values[static_cast<size_t>(result(2))] = trace.values[static_cast<size_t>(result(1))];
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
  ASSERT_EQ(partitioner->nodes(), 3U);
  const Subgraph first = partitioner->alone(0), both = partitioner->alone(1), last = partitioner->alone(2);
  EXPECT_THAT(both.source, HasSubstr("        t0 = torch.ops.aten.relu.default(x0)\n        t1 = "
                                     "torch.ops.aten.relu_.default(t0)\n        return t"));
  EXPECT_THAT(both.outputs, SizeIs(1));
  Nodes middle;
  middle.set(1);
  EXPECT_THAT(partitioner->steps_of(middle), ElementsAre(1, 2));
  // Who reads either value is given the subgraph's result.
  const std::string candidate = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n";
  const auto text = partitioner->compose({{&first, "", ""}, {&both, candidate, "model"}, {&last, "", ""}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("t2 = torch.ops.aten.add.Tensor(t0, t1)"));
}

TEST(Partitioner, ACosineSimilarityIsOneNode) {
  // norm(x), clone, norm(w), clone, 1e-8, clamp_min_ of both clones, w / clone, x / clone, their product, its
  // sum; relu of it
  const auto task =
      program({{-1}, {0}, {-2}, {2}, {-1}, {1, 4}, {3, 4}, {-2, 6}, {-1, 5}, {8, 7}, {9}, {10}});
  auto& trace = task->trace;
  auto& steps = trace.phases.back().steps;
  const auto call = [&](size_t step) -> trace::Call& { return std::get<trace::Call>(steps[step]); };
  const auto result = [&](size_t step) { return trace::tensors_in(call(step).result)[0]; };
  size_t step = 0;
  for (const char* op :
       {"linalg_vector_norm", "clone", "linalg_vector_norm", "clone", "scalar_tensor", "clamp_min_.Tensor",
        "clamp_min_.Tensor", "div.Tensor", "div.Tensor", "mul.Tensor", "sum.dim_IntList"})
    call(step++).op = fmt::format("aten::{}", op);
  const trace::Arg dims{trace::List{{trace::Arg{int64_t{-1}}}}};
  for (const size_t norm : {0, 2})
    call(norm).args.insert(call(norm).args.end(), {trace::Arg{int64_t{2}}, dims, trace::Arg{true}});
  call(10).args.push_back(dims);
  call(4).args = {trace::Arg{1e-8}};
  for (const size_t clone : {1, 3})
    trace.values[static_cast<size_t>(result(clone == 1 ? 5 : 6))] =
        trace.values[static_cast<size_t>(result(clone))];
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
  ASSERT_EQ(partitioner->nodes(), 2U);
  const Subgraph cosine = partitioner->alone(0);
  EXPECT_THAT(cosine.source,
              HasSubstr("    def forward(self, x, b):\n        out = F.cosine_similarity(x, b, dim=-1)\n"));
  EXPECT_THAT(cosine.outputs, ElementsAre(result(10)));
  EXPECT_THAT(partitioner->alone(1).source, HasSubstr("torch.ops.aten.relu.default(x0)"));
  const auto otherwise = partitioner->alternative_sources(cosine.nodes);
  ASSERT_THAT(otherwise, Not(IsEmpty()));
  EXPECT_THAT(otherwise.back().source, HasSubstr("torch.ops.aten.clamp_min_.Tensor(t1, t4)"));
  // Another epsilon is written as the trace has it.
  call(4).args = {trace::Arg{1e-6}};
  EXPECT_THAT(Partitioner::cut(*task)->alone(0).source, Not(HasSubstr("cosine")));
}

TEST(Partitioner, AHingeLossIsOneNode) {
  // zeros_like(x), empty_like(x), fill_, sub_ x, clamp_min_ of it, w != 1, where, w != -1, where, their sum,
  // its mean; relu of it
  const auto task =
      program({{-1}, {-1}, {1}, {1, -1}, {1}, {-2}, {5, 1, 0}, {-2}, {7, -1, 0}, {6, 8}, {9}, {10}});
  auto& trace = task->trace;
  auto& steps = trace.phases.back().steps;
  const auto call = [&](size_t step) -> trace::Call& { return std::get<trace::Call>(steps[step]); };
  const auto result = [&](size_t step) { return trace::tensors_in(call(step).result)[0]; };
  size_t step = 0;
  for (const char* op : {"zeros_like", "empty_like", "fill_.Scalar", "sub_.Tensor", "clamp_min_", "ne.Scalar",
                         "where.self", "ne.Scalar", "where.self", "add.Tensor", "mean"})
    call(step++).op = fmt::format("aten::{}", op);
  call(2).args.push_back(trace::Arg{1.0});
  for (const size_t i : {2, 3, 4})
    trace.values[static_cast<size_t>(result(i))] = trace.values[static_cast<size_t>(result(1))];
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
  ASSERT_EQ(partitioner->nodes(), 2U);
  EXPECT_THAT(
      partitioner->alone(0).source,
      HasSubstr("    def forward(self, x, target):\n        out = F.hinge_embedding_loss(x, target)\n"));
  EXPECT_THAT(partitioner->alone(0).source,
              HasSubstr("    target = torch.randint(0, 2, (8, 4)) * 2.0 - 1.0\n    return [x, target]\n"));
  call(2).args.back() = trace::Arg{0.5};
  EXPECT_THAT(Partitioner::cut(*task)->alone(0).source,
              HasSubstr("F.hinge_embedding_loss(x, target, margin=0.5)"));
}

TEST(Partitioner, APoolOverLinesIsWrittenAsSuch) {
  const auto task = program({{-1}, {0}});
  auto& trace = task->trace;
  auto& pool = std::get<trace::Call>(trace.phases.back().steps[1]);
  const auto ints = [](std::vector<int64_t> numbers) {
    trace::List list;
    for (const int64_t n : numbers) list.items.push_back({n});
    return trace::Arg{list};
  };
  pool.op = "aten::avg_pool2d";
  pool.args.insert(pool.args.end(),
                   {ints({1, 3}), ints({1, 2}), ints({0, 1}), trace::Arg{true}, trace::Arg{false}});
  auto& x = trace.values[static_cast<size_t>(std::get<trace::TensorRef>(pool.args[0].node).value)];
  auto& y = trace.values[static_cast<size_t>(trace::tensors_in(pool.result)[0])];
  x.sizes = {2, 4, 1, 4}, x.strides = {16, 4, 4, 1};
  y.sizes = {2, 4, 1, 2}, y.strides = {8, 2, 2, 1};
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
  const Subgraph lines = partitioner->alone(1), relu = partitioner->alone(0);
  EXPECT_THAT(lines.source, HasSubstr("        out = F.avg_pool1d(x, 3, stride=2, padding=1, ceil_mode=True, "
                                      "count_include_pad=False)\n"));
  EXPECT_THAT(lines.source, HasSubstr("    x = torch.randn(2, 4, 4)\n"));
  EXPECT_THAT(*partitioner->compose({{&relu, "", ""}, {&lines, "class ModelNew:\n    pass\n", "model"}}),
              HasSubstr("run(t0.contiguous().reshape(2, 4, 4))\n        t1 = t1.reshape([2, 4, 1, 2])\n"));
  // The usual stride and padding are not said; a pool over pictures stays one.
  pool.args[2] = ints({}), pool.args[3] = ints({0, 0}), pool.args.resize(4);
  EXPECT_THAT(Partitioner::cut(*task)->alone(1).source, HasSubstr("        out = F.avg_pool1d(x, 3)\n"));
  pool.args[1] = ints({3, 3});
  EXPECT_THAT(Partitioner::cut(*task)->alone(1).source,
              HasSubstr("torch.ops.aten.avg_pool2d.default(x0, [3, 3]"));
}

TEST(Partitioner, WhatNoOutputDependsOnIsNoPart) {
  // 0: relu(x); 1: batch_norm(0, w, ...) by its own input; 2: w is counted up
  const auto task = program({{-1}, {0}, {-2}}, {1});
  auto& trace = task->trace;
  auto& steps = trace.phases.back().steps;
  const ValueId w = trace.state[0].value;
  auto& norm = std::get<trace::Call>(steps[1]);
  const trace::Arg x = norm.args[0], counter{trace::TensorRef{w}}, none{trace::None{}};
  norm.op = "aten::batch_norm";
  norm.args = {
      x, none, none, counter, counter, trace::Arg{true}, trace::Arg{0.1}, trace::Arg{1e-5}, trace::Arg{true}};
  auto& count = std::get<trace::Call>(steps[2]);
  count.op = "aten::add_.Tensor", count.args = {counter, trace::Arg{int64_t{1}}}, count.result = counter;
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
  ASSERT_EQ(partitioner->nodes(), 2U);
  EXPECT_THAT(partitioner->whole()->source,
              HasSubstr("t1 = torch.ops.aten.batch_norm.default(t0, None, None, None, None, True, 0.1, "
                        "1e-05, True)\n        return t1\n"));
  // By what it keeps it is another.
  norm.args[5] = trace::Arg{false};
  const auto kept = Partitioner::cut(*task);
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.error().message, HasSubstr("add_.Tensor writes in place"));
}

TEST(Partitioner, AViewOfAllIsWhatItIsOf) {
  // 0: relu(x), turned; expanded to its own size, which has the same id; 1: relu of that
  const auto task = program({{-1}, {0}});
  auto& trace = task->trace;
  auto& steps = trace.phases.back().steps;
  const trace::Arg made = std::get<trace::Call>(steps[0]).result;
  auto& value = trace.values[static_cast<size_t>(trace::tensors_in(made)[0])];
  value.strides = {1, 8};
  trace::Call expand;
  expand.op = "aten::expand", expand.args = {made, trace::Arg{trace::List{{{int64_t{8}}, {int64_t{4}}}}}},
  expand.result = made;
  steps.insert(steps.begin() + 1, expand);
  task->facts.phases.back().steps.insert(task->facts.phases.back().steps.begin() + 1, {.name = "x"});
  const auto partitioner = Partitioner::cut(*task);
  ASSERT_TRUE(partitioner.ok()) << partitioner.error().message;
  EXPECT_THAT(partitioner->alone(1).source,
              HasSubstr("        t0 = torch.ops.aten.relu.default(x0)\n        return t0\n"));
  EXPECT_THAT(partitioner->whole()->source,
              HasSubstr("        t1 = torch.ops.aten.relu.default(t0)\n        return t1\n"));
}

TEST(Partitioner, WhatIsNotCut) {
  const auto task = program({{-1}, {0}});
  auto& steps = task->trace.phases.back().steps;
  std::get<trace::Call>(steps[0]).op = "aten::relu_";
  EXPECT_THAT(Partitioner::cut(*task).error().message, HasSubstr("in place"));  // an input
  steps[0] = trace::Launch{.alternatives = {trace::Alternative{}}, .place = {}, .tuning = {}};
  EXPECT_THAT(Partitioner::cut(*task).error().message, HasSubstr("kernels of its own"));
}

TEST(Partitioner, PiecesMakeAProgram) {
  const auto task = program({{-1}, {0}, {0, -2}, {1, 2}});
  const auto partitioner = Partitioner::cut(*task);
  const auto subgraphs = partitioner->subgraphs(2, 100);
  const Subgraph *tail = nullptr, *first = nullptr;
  for (const auto& f : subgraphs) {
    if (f.nodes.count() == 2 && f.nodes.test(2) && f.nodes.test(3)) tail = &f;
    if (f.nodes.count() == 1 && f.nodes.test(1)) first = &f;
  }
  ASSERT_TRUE(tail != nullptr && first != nullptr);
  const std::string candidate =
      "import torch\nimport triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n\n\nclass "
      "Model(torch.nn.Module):\n    pass\n\n\n"
      "def get_inputs():\n    return [1]\n\n\nclass ModelNew(Model):\n    def forward(self, a, b, c):\n      "
      "  kernel[(1,)](a)\n        return a\n";
  const Subgraph alone = partitioner->alone(0);
  const auto text =
      partitioner->compose({{&alone, "", ""}, {first, candidate, "compiler"}, {tail, candidate, "compiler"}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("t0 = torch.ops.aten.relu.default(inputs[0])"));
  EXPECT_THAT(*text, HasSubstr("t1 = self.subgraph_1_run(t0.contiguous())"));
  EXPECT_THAT(*text, HasSubstr("t2 = self.subgraph_1_run(t0.contiguous(), self.block[0].w, "
                               "t1.contiguous())"));  // one text, one class
  EXPECT_THAT(*text, HasSubstr("return (t2,)"));
  EXPECT_THAT(*text, HasSubstr("subgraph_1_kernel[(1,)](a)"));
  EXPECT_THAT(*text, HasSubstr("class subgraph_1_ModelNew(subgraph_1_Model):"));
  EXPECT_THAT(*text, Not(HasSubstr("get_inputs")));
}

TEST(Cover, IsTheCheapest) {
  // Against all ways to cover a small program, tried one by one.
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::vector<int>> nodes;
    for (int i = 0; i < 6; ++i)
      nodes.push_back({static_cast<int>(random() % static_cast<unsigned>(i + 1)) - 1});
    const auto task = program(nodes, {0, 1, 2, 3, 4, 5});
    const auto partitioner = Partitioner::cut(*task);
    const auto subgraphs = partitioner->subgraphs(3, 1000);
    std::vector<Offer> offers;
    for (const auto& f : subgraphs)
      if (f.nodes.count() == 1 || random() % 3 > 0)
        offers.push_back({&f, static_cast<double>(random() % 1000 + 1) * (f.nodes.count() == 1 ? 1.0 : 1.5),
                          static_cast<int>(offers.size())});
    double best = 1e30;
    const std::function<void(Nodes, double)> all_ways = [&](Nodes done, double ms) {
      if (done == partitioner->all()) best = std::min(best, ms);
      if (ms >= best) return;
      for (const auto& o : offers)
        if ((o.subgraph->nodes & done).none() && partitioner->may_follow(o.subgraph->nodes, done))
          all_ways(done | o.subgraph->nodes, ms + o.ms);
    };
    all_ways({}, 0);
    double ms = 0;
    Nodes covered;
    for (const auto& o : cheapest_cover(*partitioner, offers)) {
      EXPECT_TRUE(partitioner->may_follow(o.subgraph->nodes, covered));
      EXPECT_TRUE((covered & o.subgraph->nodes).none());
      covered |= o.subgraph->nodes, ms += o.ms;
    }
    EXPECT_EQ(covered, partitioner->all());
    EXPECT_DOUBLE_EQ(ms, best);
  }
  const auto task = program({{-1}, {0}});
  const auto partitioner = Partitioner::cut(*task);
  EXPECT_THAT(cheapest_cover(*partitioner, {}), IsEmpty());
}

TEST(Cover, IsFoundByAskingForFew) {
  std::mt19937 random(7);
  size_t asked = 0, could_ask = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<int>> nodes;
    for (int i = 0; i < 7; ++i)
      nodes.push_back({static_cast<int>(random() % static_cast<unsigned>(i + 1)) - 1});
    const auto task = program(nodes, {0, 1, 2, 3, 4, 5, 6});
    const auto partitioner = Partitioner::cut(*task);
    const auto subgraphs = partitioner->subgraphs(4, 1000);
    std::map<std::string, double> costs;  // equal texts cost the same
    for (const auto& f : subgraphs)
      if (const double ms = f.min_ms * (1 + static_cast<double>(random() % 100) / 100);
          !costs.contains(f.source))
        costs[f.source] = f.nodes.count() > 1 && random() % 4 == 0 ? INFINITY : ms;
    std::vector<Offer> hopes, all;
    for (const auto& f : subgraphs) {
      hopes.push_back({.subgraph = &f, .ms = f.min_ms, .asked = false});
      if (costs[f.source] < INFINITY) all.push_back({.subgraph = &f, .ms = costs[f.source]});
    }
    const auto cost = [](const std::vector<Offer>& cover) {
      double ms = 0;
      for (const auto& o : cover) ms += o.ms;
      return ms;
    };
    std::set<std::string> questions;
    const auto ask = [&](const Subgraph& f) {
      EXPECT_TRUE(questions.insert(f.source).second) << "asked twice";
      return std::optional(costs[f.source]);
    };
    const double best = cost(cheapest_cover(*partitioner, all));
    EXPECT_DOUBLE_EQ(cost(cheapest_cover_lazily(*partitioner, hopes, ask, [] { return INFINITY; })), best);
    asked += questions.size(), could_ask += costs.size();
    // Nothing is cheaper than what is there, or it is stopped.
    questions.clear();
    EXPECT_THAT(cheapest_cover_lazily(*partitioner, hopes, ask, [&] { return best * 0.99; }), IsEmpty());
    EXPECT_THAT(cheapest_cover_lazily(
                    *partitioner, hopes, [](const Subgraph&) { return std::optional<double>(); },
                    [] { return INFINITY; }),
                IsEmpty());
  }
  EXPECT_LT(asked, could_ask * 3 / 4) << could_ask;
}

TEST(Pictures, ARegionHasOneNumberInBoth) {
  const auto task = program({{-1}, {0}, {1}});
  Work work;
  work.steps = {{.name = "other"}, {.name = "kernel", .triton = true}};
  const std::vector<proposers::Region> regions = {{"nothing", {}}, {"kernel", {0, 1}}, {"again", {0}}};
  const auto count = [](const std::string& text, const std::string& word) {
    size_t n = 0;
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  const std::string graph = graph_svg(*task, regions), steps = steps_svg(work, regions);
  EXPECT_EQ(count(graph, ">2</text>"), 2U);  // both steps, by the first kernel that does them
  EXPECT_EQ(count(graph, "<circle"), 2U);    // the third belongs to none
  EXPECT_EQ(count(steps, ">2</text>"), 1U);
  EXPECT_EQ(count(steps, "<circle"), 1U);
  EXPECT_EQ(count(graph_svg(*task, {}), "<circle"), 0U);
}

TEST(Parts, NamesAreSetApart) {
  const render::Part part = render::as_part(
      "\"\"\"head\nhelper: x\n\"\"\"\n# head\nimport torch\nfrom a import b\n\nN = 3\n\ndef helper(x, "
      "N=N):\n    return x.helper + "
      "helper_2(N)\n"
      "def get_inputs():\n    return [N]\n\n\nclass ModelNew:\n    pass\n",
      "p_");
  EXPECT_THAT(part.imports, ElementsAre("import torch", "from a import b"));
  EXPECT_THAT(part.text, HasSubstr("p_N = 3\n"));
  EXPECT_THAT(part.text, HasSubstr("def p_helper(x, p_N=p_N):\n    return x.helper + helper_2(p_N)\n"));
  EXPECT_THAT(part.text, HasSubstr("class p_ModelNew:"));
  EXPECT_THAT(part.text, Not(HasSubstr("get_inputs")));
}

TEST(PythonText, OfArguments) {
  trace::Call call;
  call.op = "aten::softmax.int";
  call.args = {
      trace::Arg{trace::TensorRef{3}},
      trace::Arg{int64_t{-1}},
      trace::Arg{trace::Named{"dtype", "bf16"}},
      trace::Arg{trace::List{
          {trace::Arg{1.0}, trace::Arg{INFINITY}, trace::Arg{true}, trace::Arg{trace::None{}}}, true}},
      trace::Arg{trace::Text{"a\"b"}},
      trace::Arg{trace::Named{"device", "cuda"}}};
  call.kwargs = {{"alpha", trace::Arg{2e-5}}};
  const auto text = render::call_python(
      call, [](ValueId id) -> Result<std::string> { return fmt::format("v{}", id); }, "x.device");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "torch.ops.aten.softmax.int(v3, -1, torch.bfloat16, (1.0, float(\"inf\"), True, None), "
            "\"a\\\"b\", x.device, alpha=2e-05)");
  call.args = {trace::Arg{trace::Opaque{"X"}}};
  EXPECT_FALSE(
      render::call_python(call, [](ValueId) -> Result<std::string> { return std::string(); }, "").ok());
  const render::NameOf none = [](ValueId) -> Result<std::string> { return std::string(); };
  // A forged trace writes no code.
  call.args = {trace::Arg{trace::Text{"\"\n\\"}}}, call.kwargs = {};
  EXPECT_EQ(*render::call_python(call, none, ""), "torch.ops.aten.softmax.int(\"\\\"\\x0a\\\\\")");
  EXPECT_EQ(render::quoted_text("na\xc3\xafve\x7f\r"), "\"na\xc3\xafve\\x7f\\x0d\"");
  call.args = {trace::Arg{trace::Named{"layout", "strided, exit()"}}};
  EXPECT_FALSE(render::call_python(call, none, "").ok());
  call.args = {}, call.kwargs = {{"x=exit(), y", trace::Arg{true}}};
  EXPECT_FALSE(render::call_python(call, none, "").ok());
  call.kwargs = {}, call.op = "aten::exit(); x";
  EXPECT_FALSE(render::call_python(call, none, "").ok());
  call.op = "other::thing";
  EXPECT_FALSE(
      render::call_python(call, [](ValueId) -> Result<std::string> { return std::string(); }, "").ok());
}

}  // namespace
}  // namespace nereid::search
