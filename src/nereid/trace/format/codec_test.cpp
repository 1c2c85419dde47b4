#include "nereid/trace/format/codec.h"

#include <gtest/gtest.h>

#include <set>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "tests/support/trace_sample.h"

namespace nereid::trace {
namespace {

namespace fs = std::filesystem;

// The sample with one field replaced, and what the decoder says to it.
std::string complaint(const std::string& pointer, const Json& replacement) {
  Json document = sample_document();
  document[Json::json_pointer(pointer)] = replacement;
  const auto trace = decode(document);
  return trace.ok() ? "accepted" : trace.error().message;
}

TEST(Codec, RoundTripsEveryPartOfTheFormat) {
  const Json document = sample_document();
  const auto trace = decode(document);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  expect_sound(*trace);
  const Json again = encode(*trace);
  EXPECT_EQ(encode(decode(again).value()), again);
  // The only differences are fields left out that have their default, the hash, and a flag's number.
  const Json patch = Json::diff(document, again);
  for (const Json& change : patch)
    if (change["op"] != "add") {
      EXPECT_TRUE(change["path"] == "/kernels/0/hash" || change["path"] == "/kernels/0/options/flag")
          << change.dump();
    }
}

TEST(Codec, ReadsTheRightThings) {
  const Trace trace = decode(sample_document()).value();
  EXPECT_EQ(trace.draw, 3u);
  EXPECT_EQ(trace.storages[4].data.size(), 16u);
  EXPECT_TRUE(trace.storages[4].pinned);
  EXPECT_EQ(trace.storages[5].device, Device::kCpu);
  EXPECT_EQ(trace.values[3].offset, 12);
  EXPECT_TRUE(trace.values[6].conj && trace.values[6].neg);
  EXPECT_EQ(trace.kernels[0].options.at("flag"), 1);
  EXPECT_EQ(trace.kernels[0].hash.size(), 64u);
  ASSERT_EQ(trace.phases.size(), 4u);
  const auto& launch = std::get<Launch>(trace.phases[3].steps[2]);
  EXPECT_EQ(launch.place.line, 30);
  EXPECT_EQ(launch.tuner, 2);
  EXPECT_EQ(launch.order.stream, 3);
  EXPECT_EQ(launch.order.number, 2);
  EXPECT_EQ(launch.order.after, (std::vector<std::pair<int32_t, int64_t>>{{0, 5}}));
  EXPECT_EQ(std::get<Call>(trace.phases[3].steps[0]).order.number, 4);
  EXPECT_EQ(trace.phases[3].joined, (std::vector<std::pair<int32_t, int64_t>>{{3, 3}}));
  EXPECT_EQ(std::get<PointerArg>(launch.alternatives[0].args[0]).offset, 4);
  EXPECT_EQ(launch.alternatives[1].before[0].op, "aten::zero_");
  EXPECT_EQ(tensors_in(trace.phases[2].inputs), (std::vector<ValueId>{0, 4}));
}

TEST(Codec, TheHashNamesTextAndOptionsAndIsNeverTakenFromTheDocument) {
  Json document = sample_document();
  const std::string hash = decode(document).value().kernels[0].hash;
  document["kernels"][0]["hash"] = "forged";
  EXPECT_EQ(decode(document).value().kernels[0].hash, hash);
  document["kernels"][0]["options"]["num_warps"] = 8;
  EXPECT_NE(decode(document).value().kernels[0].hash, hash);
}

TEST(Codec, NamesPathExpectedAndGot) {
  EXPECT_EQ(complaint("/nereid_trace", 2),
            "trace.nereid_trace: expected 1, the version this program reads, got 2");
  EXPECT_EQ(complaint("/values/0/s", 6), "trace.values[0].s: expected an integer from 0 to 5, got 6");
  EXPECT_EQ(complaint("/values/0/s", -1), "trace.values[0].s: expected an integer from 0 to 5, got -1");
  EXPECT_EQ(complaint("/values/0/s", 0.0), "trace.values[0].s: expected an integer from 0 to 5, got 0.0");
  EXPECT_EQ(complaint("/values/0/t", "f31"),
            "trace.values[0].t: expected an element type such as f32, got \"f31\"");
  EXPECT_EQ(complaint("/values/0/n", {4, 5}),
            "trace.values[0]: expected a view that ends within the 64 bytes of storage 0, got one that ends "
            "at byte 68");
  EXPECT_EQ(complaint("/values/0/d", {4}), "trace.values[0]: expected as many sizes as strides, got 2 and 1");
  EXPECT_EQ(complaint("/values/0/d/0", -4),
            "trace.values[0].d[0]: expected an integer from 0 to 1125899906842624, got -4");
  EXPECT_EQ(complaint("/storages/2/data", "AAEC"),
            "trace.storages[2].data: expected the storage's 16 bytes in base64 (3 came), got \"AAEC\"");
  EXPECT_EQ(complaint("/storages/1/role", "constant"),
            "trace.storages[1]: expected 'data', which a constant has, got an object with bytes, name, role");
  EXPECT_EQ(
      complaint("/phases/3/steps/0/call", "linear"),
      "trace.phases[3].steps[0].call: expected an operator's name such as aten::add.Tensor, got \"linear\"");
  EXPECT_EQ(complaint("/phases/3/steps/0/args/0/v", 7),
            "trace.phases[3].steps[0].args[0].v: expected an integer from 0 to 6, got 7");
  EXPECT_EQ(complaint("/phases/3/steps/2/launch", Json::array()),
            "trace.phases[3].steps[2].launch: expected at least one alternative, got an array of 0 items");
  EXPECT_EQ(complaint("/phases/3/steps/2/launch/0/kernel", 1),
            "trace.phases[3].steps[2].launch[0].kernel: expected an integer from 0 to 0, got 1");
  EXPECT_EQ(complaint("/phases/3/steps/2/launch/0/grid", {1, 1}),
            "trace.phases[3].steps[2].launch[0].grid: expected three integers, got an array of 2 items");
}

TEST(Codec, RefusesWhatTheFormatRefuses) {
  for (const auto& [pointer, replacement] :
       std::vector<std::pair<std::string, Json>>{{"/storages/0/bytes", -1},
                                                 {"/storages/0/bytes", int64_t{1} << 45},
                                                 {"/storages/0/role", "god"},
                                                 {"/storages/4/data", nullptr},
                                                 {"/storages/0/pinned", true},
                                                 {"/values/0/n", {int64_t{1} << 40, int64_t{1} << 40}},
                                                 {"/values/3/n", {4, int64_t{1} << 51}},
                                                 {"/values/3/n", {int64_t{1} << 30, int64_t{1} << 30}},
                                                 {"/values/0/d", {int64_t{1} << 50, int64_t{1} << 50}},
                                                 {"/values/0/o", 1},
                                                 {"/values/0/o", int64_t{1} << 62},
                                                 {"/values/0/n", std::vector<int>(65, 1)},
                                                 {"/kernels/0/ttir", 7},
                                                 {"/phases/3/steps/0/args/0", {{"v", 0}, {"f", "inf"}}},
                                                 {"/phases/3/steps/0/args/0", {{"f", "huge"}}},
                                                 {"/phases/3/steps/0/args/0", {{"pickle", "x"}}},
                                                 {"/phases/3/steps/0/args/0", UINT64_MAX},
                                                 {"/phases/3/steps/0/at", {"model.py"}},
                                                 {"/phases/3/steps/2/launch/0/args/0", {{"q", 1}}},
                                                 {"/phases/3/steps/2/launch/0/args/5/block", {0, 2}},
                                                 {"/phases/3/steps/2/launch/0/args/5/shape", {4}},
                                                 {"/phases/3/steps/2/launch/0/grid/0", int64_t{1} << 31},
                                                 {"/phases/3/phase", "init"},
                                                 {"/phases/3/call", 1},
                                                 {"/phases/0/phase", "forward"},
                                                 {"/state/0/value", -1},
                                                 {"/seconds", -1},
                                                 {"/flags", {{"x", "y"}}}})
    EXPECT_NE(complaint(pointer, replacement), "accepted")
        << pointer << " " << replacement.dump().substr(0, 80);
  Json nested = 1;
  for (int i = 0; i < 40; ++i) nested = Json::array({nested});
  EXPECT_NE(complaint("/init_inputs", nested), "accepted");
  Json document = sample_document();
  document["state"].push_back(document["state"][0]);
  EXPECT_FALSE(decode(document).ok());
  document = sample_document();
  document["phases"].erase(3);
  EXPECT_EQ(decode(document).error().message, "trace.phases: expected the last to be a forward");
}

// Every node of the document replaced by every nasty thing: the answer is an error or a sound trace, never a
// crash.
TEST(Codec, SurvivesEveryMutation) {
  const Json nasty[] = {nullptr,
                        true,
                        -1,
                        0,
                        7,
                        INT64_MAX,
                        INT64_MIN,
                        UINT64_MAX,
                        int64_t{1} << 50,
                        1e308,
                        0.5,
                        "",
                        "x",
                        "inf",
                        Json::array(),
                        Json::array({1, 2, 3, 4, 5, 6}),
                        Json::object(),
                        {{"v", 6}},
                        {{"v", 7}}};
  const Json document = sample_document();
  int accepted = 0, refused = 0;
  const Json flat = document.flatten();
  std::set<std::string> places;
  for (const auto& [leaf, unused] : flat.items())
    for (Json::json_pointer at(leaf); !at.empty(); at = at.parent_pointer()) places.insert(at.to_string());
  Json mutated = document;
  for (const std::string& place : places) {
    Json& changed = mutated[Json::json_pointer(place)];
    const Json original = changed;
    for (const Json& replacement : nasty) {
      changed = replacement;
      const auto trace = decode(mutated);
      (trace.ok() ? accepted : refused)++;
      if (!trace.ok()) {
        ASSERT_EQ(trace.error().blame, Blame::kInput);
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(expect_sound(*trace)) << place << " " << replacement.dump();
      const Json again = encode(*trace);
      ASSERT_EQ(encode(decode(again).value()), again);
    }
    changed = original;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1500);
}

TEST(Codec, SurvivesFlippedAndMissingBytesOfAFile) {
  const std::string bytes = serialize(decode(sample_document()).value());
  uint64_t random = 1;
  for (int round = 0; round < 3000; ++round) {
    std::string broken = bytes;
    for (int flips = 1 + round % 4; flips > 0; --flips) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      broken[(random >> 33) % broken.size()] = static_cast<char>(random >> 20);
    }
    const auto trace = parse(broken, "file");
    if (trace.ok()) {
      ASSERT_NO_FATAL_FAILURE(expect_sound(*trace));
    }
  }
  for (size_t n = 0; n < bytes.size(); ++n) ASSERT_FALSE(parse(bytes.substr(0, n), "file").ok());
}

TEST(Codec, SavesAndLoads) {
  const auto folder = TemporaryFolder::create().value();
  const auto path = folder.path() / "a.trace";
  const Trace trace = decode(sample_document()).value();
  ASSERT_TRUE(save(trace, path).ok());
  EXPECT_EQ(encode(load(path).value()), encode(trace));
  // As JSON, and inside a tracer's answer.
  ASSERT_TRUE(write_file_atomically(path, " " + encode(trace).dump(1)).ok());
  EXPECT_EQ(encode(load(path).value()), encode(trace));
  ASSERT_TRUE(write_file_atomically(path, Json{{"trace", encode(trace)}}.dump()).ok());
  EXPECT_EQ(encode(load(path).value()), encode(trace));
  ASSERT_TRUE(write_file_atomically(path, "nereid trace 2\nxyz").ok());
  EXPECT_EQ(load(path).error().message, path.string() + ": expected a trace of version 1, got version '2'");
  ASSERT_TRUE(write_file_atomically(path, "import torch").ok());
  EXPECT_EQ(load(path).error().message,
            path.string() + ": expected a trace (a line 'nereid trace 1', or JSON)");
  EXPECT_FALSE(looks_like_trace("import torch"));
}

// Traces of real modules.
TEST(Codec, ReadsTheGoldenTraces) {
  const fs::path folder = fs::path(NEREID_SOURCE_DIR) / "tests/golden/traces";
  ASSERT_TRUE(fs::exists(folder)) << folder;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const auto trace = load(entry.path());
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    expect_sound(*trace);
    EXPECT_EQ(encode(parse(serialize(*trace), "again").value()), encode(*trace));
    ++count;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace nereid::trace
