// nereid-ttir-run: runs one launch of a TTIR kernel as a JSON document says, on raw binary files.
//
//   {"ttir": "kernel.ttir", "grid": [4, 1, 1],
//    "buffers": [{"file": "x.bin", "name": "x", "element_bytes": 4, "written": true}, {"bytes": 4096,
//    "output": "o.bin"}], "arguments": [{"buffer": 0, "offset": 0}, {"scalar": 17, "type": "i32"}, {"scalar":
//    0.5, "type": "f32"}, {"null": true},
//                  {"descriptor": {"buffer": 0, "offset": 0, "shape": [8, 8], "strides": [8, 1],
//                  "nan_padding": false}}],
//    "sanitize": true, "threads": 0, "repeat": 1, "time_limit": 30}
//
// A buffer is read from "file", or is "bytes" of zeros; after the run it is written to "output" ("file"
// itself when "output" is true). "written": false starts with no byte written. "repeat" runs again (buffers
// as the last run left them) and reports the least and the median of the times. With --lines every line of
// standard input is a document, answered by a line of standard output.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iostream>
#include <optional>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/thread_pool.h"
#include "nereid/ttir/exec/executor.h"
#include "nereid/ttir/ir/float_formats.h"

namespace nereid::ttir {
namespace {

struct Memory {
  std::string bytes;
  std::vector<uint8_t> written;
  std::string output;
};

Result<Argument> argument_of(const Json& j) {
  const auto pointer = [](const Json& p) {
    return Pointer{p.value("buffer", -1), p.value("offset", int64_t{0})};
  };
  if (j.value("null", false)) return Argument(Pointer{});
  if (j.contains("descriptor")) {
    const Json& d = j["descriptor"];
    Descriptor descriptor;
    descriptor.base = pointer(d);
    descriptor.shape = d.at("shape").get<std::vector<int64_t>>();
    descriptor.strides = d.at("strides").get<std::vector<int64_t>>();
    descriptor.nan_padding = d.value("nan_padding", false);
    return Argument(descriptor);
  }
  if (!j.contains("scalar")) return Argument(pointer(j));
  const std::string type = j.value("type", "i32");
  const Elem elem = elem_named(type);
  const Json& v = j["scalar"];
  if (is_float(elem))
    return Argument(
        Scalar{from_double(v.is_string() ? std::stod(v.get<std::string>()) : v.get<double>(), elem)});
  if (!is_integer(elem)) return input_error("argument: expected a scalar type, got {}", type);
  uint64_t bits = v.is_boolean()           ? v.get<bool>()
                  : v.is_number_unsigned() ? v.get<uint64_t>()
                                           : static_cast<uint64_t>(v.get<int64_t>());
  const int width = elem_bits(elem);
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  return Argument(Scalar{bits});
}

// Launch and buffers of a document; `memory` holds what the buffers point to.
struct Job {
  Launch launch;
  std::vector<Memory> memory;
  std::vector<Buffer> buffers;
};

Result<Job> job_of(const Json& spec) {
  Job job;
  const auto grid = spec.value("grid", std::vector<int64_t>{1});
  for (size_t k = 0; k < grid.size() && k < 3; ++k) job.launch.grid[k] = grid[k];
  for (const Json& a : spec.value("arguments", Json::array())) {
    NEREID_TRY(Argument argument, argument_of(a));
    job.launch.arguments.push_back(std::move(argument));
  }
  const Json listed = spec.value("buffers", Json::array());
  job.memory.resize(listed.size());
  for (size_t k = 0; k < listed.size(); ++k) {
    const Json& b = listed[k];
    Memory& memory = job.memory[k];
    if (b.contains("file")) {
      NEREID_TRY(memory.bytes, read_file(b["file"].get<std::string>(), size_t{8} << 30));
    } else {
      memory.bytes.assign(b.at("bytes").get<size_t>(), '\0');
    }
    if (b.contains("output"))
      memory.output = b["output"].is_string()   ? b["output"].get<std::string>()
                      : b["output"].get<bool>() ? b.at("file").get<std::string>()
                                                : "";
    Buffer buffer;
    buffer.data = reinterpret_cast<std::byte*>(memory.bytes.data());
    buffer.bytes = static_cast<int64_t>(memory.bytes.size());
    buffer.name = b.value("name", fmt::format("buffer {}", k));
    buffer.element_bytes = b.value("element_bytes", int64_t{1});
    if (b.contains("written")) {
      memory.written.assign((memory.bytes.size() + 7) / 8 + 8, b["written"].get<bool>() ? 0xff : 0);
      buffer.written = memory.written.data();
    }
    job.buffers.push_back(buffer);
  }
  return job;
}

// What the analyses say of the kernel, whatever it computes.
Json analysis_of(const Kernel& kernel, const Launch& launch) {
  Json out;
  out["parameters"] = Json::array();
  for (const Parameter& p : kernel.parameters())
    out["parameters"].push_back({{"name", p.name}, {"type", p.type}});
  out["facts"] = {{"uses_int_to_ptr", kernel.uses_int_to_ptr()},
                  {"inline_assembly", kernel.inline_assembly()},
                  {"branches_on_float_data", kernel.branches_on_float_data()}};
  const Cost cost = kernel.cost(launch);
  out["cost"] = {{"flops", cost.flops},
                 {"bytes_read", cost.bytes_read},
                 {"bytes_written", cost.bytes_written},
                 {"exact", cost.exact}};
  return out;
}

Result<Json> run(const Json& spec) {
  NEREID_TRY(const std::string text, read_file(spec.at("ttir").get<std::string>()));
  Stopwatch load_time;
  NEREID_TRY(const Kernel kernel, Kernel::load(text));
  const double load_seconds = load_time.seconds();
  NEREID_TRY(Job job, job_of(spec));

  const int threads = spec.value("threads", 0);
  ThreadPool pool(threads);
  RunOptions options;
  options.sanitize = spec.value("sanitize", true);
  options.pool = &pool;
  options.max_findings = spec.value("max_findings", 16);
  std::vector<double> times;
  Report report;
  for (int r = 0; r < std::max(1, spec.value("repeat", 1)); ++r) {
    options.deadline = Deadline::after(spec.value("time_limit", 600.0));
    Stopwatch time;
    NEREID_TRY(report, kernel.run(job.launch, job.buffers, options));
    times.push_back(time.seconds());
  }
  for (const Memory& m : job.memory)
    if (!m.output.empty()) NEREID_TRY_STATUS(write_file_atomically(m.output, m.bytes));

  std::sort(times.begin(), times.end());
  Json out = analysis_of(kernel, job.launch);
  out["kernel"] = kernel.name();
  out["ok"] = report.ok();
  out["timed_out"] = report.timed_out;
  out["finding_count"] = report.finding_count;
  out["findings"] = Json::array();
  for (const Finding& f : report.findings)
    out["findings"].push_back({{"kind", to_string(f.kind)},
                               {"kernel", f.kernel},
                               {"file", f.file},
                               {"line", f.line},
                               {"program", f.program},
                               {"buffer", f.buffer},
                               {"index", f.index},
                               {"sentence", f.sentence}});
  out["load_seconds"] = load_seconds;
  out["seconds_min"] = times.front();
  out["seconds_median"] = times[times.size() / 2];
  return out;
}

// The report of one document, or {"error": ...}; the exit code.
std::pair<Json, int> answer(const std::string& text, const std::string& path) {
  auto report = [&]() -> Result<Json> {
    try {
      NEREID_TRY(const Json spec, parse_json(text, path));
      return run(spec);
    } catch (const Json::exception& e) {
      return input_error("{}: {}", path, e.what());
    }
  }();
  if (!report) return {Json{{"error", report.error().message}}, 2};
  const bool ok = (*report)["ok"].get<bool>();
  return {std::move(*report), ok ? 0 : 1};
}

int tool(int count, char** arguments) {
  if (count != 2 || std::string(arguments[1]) == "--help") {
    std::fputs(
        "usage: nereid-ttir-run SPEC.json (or - for standard input, or --lines for many documents there); "
        "the "
        "report goes to standard output.\n",
        stderr);
    return count == 2 ? 0 : 2;
  }
  const std::string path = arguments[1];
  if (path == "--lines") {
    int worst = 0, number = 0;
    for (std::string line; std::getline(std::cin, line);) {
      const auto [report, code] = answer(line, fmt::format("line {}", ++number));
      std::puts(report.dump().c_str());
      std::fflush(stdout);
      worst = std::max(worst, code);
    }
    return worst;
  }
  const auto text = read_file(path == "-" ? "/dev/stdin" : path);
  if (!text) {
    std::fprintf(stderr, "%s\n", text.error().message.c_str());
    return 2;
  }
  const auto [report, code] = answer(*text, path);
  std::puts(report.dump(1).c_str());
  if (report.contains("error")) std::fprintf(stderr, "%s\n", report["error"].get<std::string>().c_str());
  return code;
}

}  // namespace
}  // namespace nereid::ttir

int main(int count, char** arguments) { return nereid::ttir::tool(count, arguments); }
