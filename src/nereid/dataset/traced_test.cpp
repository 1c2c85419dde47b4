// The trace that is written without Python against the tracer's own, of programs of every length, operator
// and code style: the same state, inputs, calls, layouts and lines, and so the same compiled modules.
//
// Compared is what lowering reads of a trace. Left out are the phases before the last forward, values of
// integer inputs, the parts of composite operators, seconds, and the numbers that storages and values have:
// storages are numbered here as they come, state first, then inputs, then what calls name.
#include "nereid/synth/traced.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>

#include "nereid/dataset/variants.h"
#include "nereid/dataset/whole_task_subgraph.h"
#include "nereid/synth/sample/maker.h"
#include "nereid/tracer/tracer.h"

namespace nereid::dataset {
namespace {

class Printer {
 public:
  explicit Printer(const trace::Trace& trace) : trace_(trace) {}

  std::vector<std::string> print() {
    std::vector<std::string> lines = {trace_.file + " " + trace_.class_name};
    for (const auto& state : trace_.state)
      lines.push_back(fmt::format("{} {}{}{}", state.name, tensor(state.value),
                                  state.parameter ? " parameter" : "",
                                  state.persistent ? " persistent" : ""));
    const trace::Phase& forward = trace_.phases.back();
    lines.push_back("forward of " + text_of(forward.inputs));
    for (const auto& step : forward.steps) {
      const auto& call = std::get<trace::Call>(step);
      std::string line = fmt::format("{}:{} {}", call.place.file, call.place.line, call.op);
      for (const auto& one : call.args) line += " " + text_of(one);
      for (const auto& [name, one] : call.kwargs) line += " " + name + "=" + text_of(one);
      lines.push_back(line + " -> " + text_of(call.result));
    }
    lines.push_back("returns " + text_of(forward.output));
    for (const auto& [name, flag] : trace_.flags) lines.push_back(fmt::format("{} {}", name, flag));
    return lines;
  }

 private:
  std::string tensor(trace::ValueId id) {
    const trace::Value& value = trace_.values.at(static_cast<size_t>(id));
    const trace::Storage& storage = trace_.storages.at(static_cast<size_t>(value.storage));
    const auto known = numbers_.emplace(value.storage, numbers_.size());
    std::string text = fmt::format("{}{}", trace::to_string(value.dtype), fmt::join(value.sizes, "x"));
    text += fmt::format("({})+{}@{}", fmt::join(value.strides, ","), value.offset, known.first->second);
    if (known.second)
      text +=
          fmt::format("[{} bytes {} role {}]", storage.bytes, storage.name, static_cast<int>(storage.role));
    return text;
  }
  std::string text_of(const trace::Arg& arg) {
    return std::visit([&](const auto& node) { return text_of(node); }, arg.node);
  }
  std::string text_of(const trace::None&) { return "None"; }
  std::string text_of(bool flag) { return flag ? "True" : "False"; }
  std::string text_of(int64_t number) { return fmt::format("{}", number); }
  std::string text_of(double number) { return fmt::format("{}f", number); }
  std::string text_of(const std::complex<double>&) { return "complex"; }
  std::string text_of(const trace::Text& text) { return text.text; }
  std::string text_of(const trace::TensorRef& ref) { return tensor(ref.value); }
  std::string text_of(const trace::Named& named) { return named.kind + ":" + named.name; }
  std::string text_of(const trace::List& list) {
    std::string text = list.tuple ? "(" : "[";
    for (const auto& item : list.items) text += text_of(item) + ";";
    return text + (list.tuple ? ")" : "]");
  }
  std::string text_of(const trace::Dict& dict) {
    std::string text = "{";
    for (const auto& item : dict.items) text += item.first + ": " + text_of(item.second) + ";";
    return text + "}";
  }
  std::string text_of(const trace::Opaque& opaque) { return opaque.type; }

  const trace::Trace& trace_;
  std::map<trace::StorageId, size_t> numbers_;
};

class TracedTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    tracer_ = tracer::Tracer::start({.installation = Installation::locate().value()}).value().release();
  }
  static void TearDownTestSuite() { delete tracer_; }

  // So many programs of the length, from the seed on, made of these operators; compared in the end, many in
  // each of the tracer's processes.
  void compare(int length, uint64_t seed, size_t count, const std::vector<const ops::Operator*>& operators,
               double free_forms = 0) {
    const auto& space = spaces_.emplace_back(operators, synth::Bounds{.elements = 5, .work = 7});
    auto& maker = makers_.emplace_back(
        space, synth::MakerConfig{.length = length, .seed = seed, .free_forms = free_forms});
    if (maker.sampler().empty()) return;
    size_t made_of_these = 0;
    for (uint64_t index = 0; made_of_these < count && index < 4 * count; ++index) {
      synth::Made made;
      maker.draw(index, 0, made);
      if (made.outcome != synth::Outcome::kMade) continue;
      maker.write(made);
      programs_.push_back(std::move(made));
      ++made_of_these;
    }
  }
  void TearDown() override {
    for (size_t at = 0; at < programs_.size(); at += kGroup)
      compare(std::span(programs_).subspan(at, std::min(kGroup, programs_.size() - at)));
  }

  void compare(std::span<const synth::Made> programs) {
    std::vector<tracer::TraceRequest> requests;
    for (const auto& made : programs)
      requests.push_back({.source = made.code, .path = "model.py", .calls = 1, .seconds = 60});
    const auto answers = tracer_->trace_several(requests, Deadline::after(600)).value();
    for (size_t i = 0; i < programs.size(); ++i) {
      const auto* real = std::get_if<trace::Trace>(&answers[i]);
      ASSERT_NE(real, nullptr) << programs[i].code;
      compare(programs[i], *real);
    }
  }

  void compare(const synth::Made& made, const trace::Trace& real) {
    ++compared_;
    const auto ours = synth::traced(made.program, made.style, made.layout, "model.py");
    ASSERT_TRUE(ours) << made.code;
    const auto expected = Printer(real).print(), got = Printer(*ours).print();
    for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
      const std::string a = i < expected.size() ? expected[i] : "", b = i < got.size() ? got[i] : "";
      if (a == b) continue;
      ADD_FAILURE() << "the tracer's\n  " << a << "\nours\n  " << b << "\n" << made.code;
      return;
    }
    if (compared_ % 4 != 0) return;  // modules follow from traces; some are looked at all the same
    const auto part = as_subgraph(real), our_part = as_subgraph(*ours);
    EXPECT_EQ(part.ok() ? part->source : part.error().message,
              our_part.ok() ? our_part->source : our_part.error().message);
    synth::Rng one(0, made.index, 2), other(0, made.index, 2);
    const auto a = variants_of(real, made.code, one, 3), b = variants_of(*ours, made.code, other, 3);
    ASSERT_EQ(a.ok(), b.ok()) << made.code;
    if (!a.ok()) {
      EXPECT_EQ(a.error().message, b.error().message);
      return;
    }
    ASSERT_EQ(a->size(), b->size()) << made.code;
    for (size_t v = 0; v < a->size(); ++v) EXPECT_EQ((*a)[v].module.text, (*b)[v].module.text) << made.code;
  }

  static constexpr size_t kGroup = 50;
  static inline tracer::Tracer* tracer_ = nullptr;
  std::deque<synth::Space> spaces_;  // programs refer to them
  std::deque<synth::Maker> makers_;
  std::vector<synth::Made> programs_;
  int compared_ = 0;
};

// NEREID_TEST_TRACED: times as many programs.
size_t times() {
  const char* times = std::getenv("NEREID_TEST_TRACED");
  return times == nullptr ? 1 : static_cast<size_t>(std::atoi(times));
}

constexpr const char* kOnViews[] = {
    "transpose",      "permute",     "chunk",         "split",        "slice",           "elu",
    "selu",           "gelu",        "relu",          "hardsigmoid",  "hardswish",       "hardtanh",
    "clamp",          "sigmoid",     "mish",          "logsigmoid",   "leaky_relu",      "softsign",
    "prelu_channels", "masked_fill", "fill_negative", "where_larger", "positive_by_mask"};

TEST_F(TracedTest, IsTheTracersOfEveryOperator) {
  for (const ops::Operator& op : ops::catalogue()) compare(1, times(), times(), {&op});
}

// Parts of transposed tensors, of which one dimension has one element: the tracer describes the dense part
// otherwise of every kind of operator.
TEST_F(TracedTest, IsTheTracersOfWhatWorksElementByElementOnViews) {
  std::vector<const ops::Operator*> chosen;
  for (const char* name : kOnViews) chosen.push_back(ops::find(name));
  compare(4, times(), 50 * times(), chosen);
}

// GELU of both kinds on inputs that are not contiguous: fake tensors compute it in several operators, of
// which each lays out its result anew.
TEST_F(TracedTest, IsTheTracersOfGeluOnViews) {
  std::vector<const ops::Operator*> chosen;
  for (const char* name : {"gelu", "gelu_tanh", "transpose", "slice"}) chosen.push_back(ops::find(name));
  compare(3, times(), 15 * times(), chosen);
}

// Windows that no form has, layers without a bias, other parts of axes.
TEST_F(TracedTest, IsTheTracersOfFreeForms) {
  std::vector<const ops::Operator*> chosen = {ops::find("transpose")};
  for (const char* name :
       {"linear", "group_norm", "cat", "pad", "slice", "split", "chunk", "flatten", "merge"}) {
    chosen.push_back(ops::find(name));
    compare(1, times(), 3 * times(), {chosen.back()}, 1);
  }
  for (const ops::Operator& op : ops::catalogue())
    if (ops::has_window(op)) {
      compare(1, times(), 3 * times(), {&op}, 1);
      chosen.push_back(&op);
    }
  compare(3, times(), 40 * times(), chosen, 1);
}

TEST_F(TracedTest, IsTheTracersOfLargerPrograms) {
  compare(2, times(), 20 * times(), ops::every_operator());
  compare(5, times(), 30 * times(), ops::every_operator());
  compare(20, times(), 8 * times(), ops::every_operator());
}

}  // namespace
}  // namespace nereid::dataset
