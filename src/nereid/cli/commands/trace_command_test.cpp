#include "nereid/cli/commands/trace_command.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <sstream>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/cli/pages/trace_graph.h"
#include "nereid/cli/pages/trace_page.h"
#include "nereid/trace/format/codec.h"

namespace nereid::cli {
namespace {

trace::Trace golden(const std::string& name) {
  return trace::load(NEREID_SOURCE_DIR "/tests/golden/traces/" + name + ".json").value();
}

std::string page_of(const trace::Trace& trace, const PageOptions& options = {}) {
  const TraceFacts facts = trace_facts(trace);
  return trace_page(trace, facts.costs, facts.idle(), options);
}

TEST(TraceJson, SaysWhatEachStepIsAndCanBeReadBack) {
  const trace::Trace trace = golden("gelu_linear.Model");
  const Json json = trace_json(trace, trace_facts(trace));
  EXPECT_EQ(trace::encode(trace::decode(json).value()), trace::encode(trace));
  const Json& forward = json["phases"].back();
  EXPECT_EQ(forward["steps"][0]["call"], "aten::linear");
  EXPECT_EQ(forward["steps"][0]["class"], "contraction");
  EXPECT_EQ(forward["steps"][0]["flops"], 2.0 * 32 * 48 * 48);
  EXPECT_EQ(forward["steps"][0]["reaches_output"], true);
  const trace::Trace views = golden("ragged.Model");
  const Json reported = trace_json(views, trace_facts(views));
  for (const Json& step : reported["phases"].back()["steps"])
    EXPECT_EQ(step["class"] == "view", !step.contains("reaches_output")) << step["call"];
  EXPECT_EQ(json["flops"], forward["flops"]);
  double sum = 0;
  for (const Json& step : forward["steps"]) sum += step["flops"].get<double>();
  EXPECT_EQ(json["flops"], sum);
  EXPECT_GT(json["bytes"], 0);
}

TEST(TracePage, ShowsInputsStateStepsAndKernels) {
  const std::string page = page_of(golden("gelu_linear_candidate.ModelNew"));
  for (const char* part :
       {"class ModelNew, 3 forward calls", "inputs       [x0: f32[32, 48]]", "fc.weight  f32[48, 48]",
        "forward 2 (calls 0, 1 do the same)  2 calls, 1 launch,",
        "fused[2, 1, 1](x0: f32[32, 48], fc.weight: f32[48, 48]", "(the first of 2)", "kernels\n"})
    EXPECT_NE(page.find(part), page.npos) << part << "\nis not in\n" << page;
  EXPECT_EQ(page.find('\x1b'), page.npos);
}

TEST(TracePage, FitsTheTerminalAndColoursOnlyThere) {
  PageOptions options;
  options.terminal = {.width = 90, .terminal = true, .colour = true};
  const std::string page = page_of(golden("ragged.Model"), options);
  EXPECT_NE(page.find("\x1b["), page.npos);
  options.terminal.colour = false;
  std::istringstream lines(page_of(golden("ragged.Model"), options));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 92u) << line;
}

TEST(TracePage, IsSafeForATerminal) {
  trace::Trace trace = golden("gelu_linear.Model");
  trace.file = "evil\x1b]0;title\x07.py";
  trace.notes = {"\x1b[2J", "caf\xc3\xa9 \xe2\x80\xae reversed \xc2\x9b"};
  trace.state[0].name = "a\nforged line";
  const std::string page = page_of(trace);
  EXPECT_EQ(page.find('\x1b'), page.npos);
  EXPECT_EQ(page.find('\x07'), page.npos);
  EXPECT_EQ(page.find("\nforged"), page.npos);
  EXPECT_NE(page.find("caf\xc3\xa9 ? reversed ?"), page.npos);
}

TEST(TraceGraph, IsWhatGraphvizReads) {
  const trace::Trace trace = golden("gelu_linear.Model");
  const std::string dot = trace_graph(trace, trace.phases.back(), trace_facts(trace).flow);
  EXPECT_NE(dot.find("label=\"linear\""), dot.npos);
  EXPECT_NE(dot.find("s0 -> s1 [label=\"f32[32, 48]\"]"), dot.npos);
  EXPECT_NE(dot.find("output f32[32]"), dot.npos);
  // Its grammar, as far as we use it; Graphviz itself below, where it is installed.
  const std::string settings = R"re(\[([a-z]+=("([^"\\]|\\.)*"|[A-Za-z0-9.]+)(, )?)+\])re";
  const std::regex head(R"re(digraph "([^"\\]|\\.)*" \{)re"),
      defaults("  rankdir=TB; node " + settings + "; edge " + settings + ";"),
      element("  [bso][0-9]+( -> [bso][0-9]+)? " + settings + ";"), end("\\}");
  std::istringstream text(dot);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_GT(lines.size(), 5U);
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_TRUE(std::regex_match(lines[i], i == 0                  ? head
                                           : i == 1                ? defaults
                                           : i + 1 == lines.size() ? end
                                                                   : element))
        << lines[i];
  if (std::system("command -v dot >/dev/null") != 0) return;
  const auto folder = TemporaryFolder::create().value();
  const std::string path = (folder.path() / "g.dot").string();
  ASSERT_TRUE(write_file_atomically(path, dot).ok());
  EXPECT_EQ(std::system(("dot -Tsvg " + path + " -o " + path + ".svg").c_str()), 0);
}

}  // namespace
}  // namespace nereid::cli
