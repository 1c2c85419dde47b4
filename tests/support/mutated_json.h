// For tests: a valid document of the trace format with something changed, as whatever writes to the tracer's
// pipe could. Seeded: the same number gives the same change everywhere.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "nereid/base/json.h"

namespace nereid::verify {

class TraceMutator {
 public:
  // `other` is a second valid document, of which parts are taken.
  TraceMutator(const Json& trace, const Json& other, uint64_t seed)
      : document_(trace), other_(other), random_(seed) {}

  // One to three changes; what() says which.
  Json mutate() {
    for (uint64_t count = 1 + below(3); count > 0; --count) below(2) == 0 ? any_node() : of_the_format();
    return document_;
  }
  const std::string& what() const { return what_; }

 private:
  uint64_t below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  void note(const std::string& text) { what_ += (what_.empty() ? "" : "; ") + text; }

  using Pointer = Json::json_pointer;
  static void collect(const Json& json, const Pointer& at, std::vector<Pointer>& into) {
    into.push_back(at);
    if (json.is_array())
      for (size_t i = 0; i < json.size(); ++i) collect(json[i], at / i, into);
    if (json.is_object())
      for (const auto& [key, value] : json.items()) collect(value, at / key, into);
  }

  // A node of one section, so that long texts of kernels do not take all of the changes.
  Pointer node(const Json& of) {
    static const std::vector<std::string> kSections = {"storages", "values",  "phases", "phases",
                                                       "phases",   "kernels", "state",  "init_inputs"};
    const std::string& section = kSections[below(kSections.size())];
    std::vector<Pointer> all;
    if (of.contains(section)) collect(of[section], Pointer("/" + section), all);
    return all.empty() ? Pointer("/phases") : all[below(all.size())];
  }

  Json strange() {
    static const std::vector<Json> kStrange = {nullptr,
                                               true,
                                               0,
                                               1,
                                               -1,
                                               2,
                                               3,
                                               7,
                                               100,
                                               int64_t{1} << 31,
                                               int64_t{1} << 44,
                                               INT64_MAX,
                                               INT64_MIN,
                                               1e308,
                                               0.5,
                                               "",
                                               "f32",
                                               "i64",
                                               "bool",
                                               "input",
                                               "parameter",
                                               "temporary",
                                               "constant",
                                               "forward",
                                               "init",
                                               "module",
                                               "make_inputs",
                                               "aten::relu",
                                               "aten::mm",
                                               "aten::empty.memory_format",
                                               "aten::copy_",
                                               "aten::resize_",
                                               "aten::set_.source_Storage",
                                               "nereid::constant",
                                               "cpu",
                                               "AAAA",
                                               Json::array(),
                                               Json::object(),
                                               Json{{"v", 0}},
                                               Json{{"v", 1}},
                                               Json{{"f", "nan"}},
                                               Json{{"tuple", Json::array()}},
                                               Json{{"opaque", "Model"}},
                                               Json::array({0, 0, 0}),
                                               Json::array({1})};
    return kStrange[below(kStrange.size())];
  }

  void any_node() {
    const Pointer at = node(document_);
    Json& json = document_[at];
    switch (below(8)) {
      case 0:  // something of its own kind
        if (json.is_number_integer()) {
          const int64_t by = static_cast<int64_t>(below(5)) - 2;
          json = json.get<int64_t>() + (by == 0 ? static_cast<int64_t>(below(1000)) : by);
          return note("moved " + at.to_string());
        }
        [[fallthrough]];
      case 1:
        json = strange();
        return note(fmt::format("{} = {}", at.to_string(), json.dump().substr(0, 60)));
      case 2: {  // gone
        if (at.empty()) return;
        Json& parent = document_[at.parent_pointer()];
        if (parent.is_array()) parent.erase(std::stoul(at.back()));
        if (parent.is_object()) parent.erase(at.back());
        return note("without " + at.to_string());
      }
      case 3:  // twice
        if (json.is_array() && !json.empty()) {
          const Json copy = json[below(json.size())];
          json.insert(json.begin() + static_cast<int64_t>(below(json.size() + 1)), copy);
          return note("twice in " + at.to_string());
        }
        return;
      case 4:  // in another order
        if (json.is_array() && json.size() > 1) {
          std::swap(json[below(json.size())], json[below(json.size())]);
          return note("swapped in " + at.to_string());
        }
        return;
      case 5: {  // another place's
        const Json copy = document_[node(document_)];
        document_[at] = copy;
        return note(at.to_string() + " from elsewhere");
      }
      case 6: {  // another trace's
        const Pointer from = node(other_);
        document_[at] = other_[from];
        return note(at.to_string() + " from another trace's " + from.to_string());
      }
      default:
        if (json.is_array()) {
          const Json copy = json;
          for (const Json& item : copy) json.push_back(item);
          return note("doubled " + at.to_string());
        }
    }
  }

  static Json part(const Json& of, const char* key) {
    return of.is_object() && of.contains(key) ? of[key] : Json();
  }
  static size_t bytes_of(const Json& storage) {
    const Json bytes = part(storage, "bytes");
    return bytes.is_number_unsigned() ? bytes.get<uint64_t>() % 65536 : 0;
  }
  Json& any_of(Json& array) { return array[below(array.size())]; }

  // What a forger who knows the format would try.
  void of_the_format() {
    Json& storages = document_["storages"];
    Json& values = document_["values"];
    Json& phases = document_["phases"];
    if (!storages.is_array() || !values.is_array() || !phases.is_array() || storages.empty() ||
        values.empty() || phases.empty())
      return;
    Json& storage = any_of(storages);
    Json& value = any_of(values);
    Json& phase = any_of(phases);
    if (!storage.is_object() || !value.is_object() || !phase.is_object()) return;
    switch (below(16)) {
      case 0:
        value["s"] = below(storages.size());
        return note("a view of another storage");
      case 1:
        value["o"] = below(64);
        return note("a view elsewhere");
      case 2:
        if (value.contains("d") && value["d"].is_array() && !value["d"].empty())
          any_of(value["d"]) = below(3);
        return note("another stride");
      case 3:
        if (value.contains("n") && value["n"].is_array() && !value["n"].empty())
          any_of(value["n"]) = below(200);
        return note("another size");
      case 4:
        value["t"] =
            std::vector<std::string>{"f32", "f64", "f16", "i32", "i64", "bool", "c64", "f8e4m3fn"}[below(8)];
        return note("another type");
      case 5:
        storage["role"] =
            std::vector<std::string>{"temporary", "input", "parameter", "buffer", "constant"}[below(5)];
        return note("another role");
      case 6:
        storage["pinned"] = true;
        storage["data"] = base64_encode(std::string(bytes_of(storage), static_cast<char>(below(256))));
        return note("pinned");
      case 7:
        storage["bytes"] = below(2) == 0 ? below(1 << 20) : uint64_t{1} << below(44);
        return note("another length");
      case 8:
        phase["call"] = below(4);
        return note("another call");
      case 9:
        phase["phase"] = std::vector<std::string>{"module", "init", "make_inputs", "forward"}[below(4)];
        return note("another phase");
      case 10:
        phase["inputs"] = part(any_of(phases), "inputs");
        return note("another phase's inputs");
      case 11:
        phase["output"] = part(any_of(phases), "inputs");
        return note("inputs as outputs");
      case 12:
        phase["steps"] = part(any_of(phases), "steps");
        return note("another phase's steps");
      case 13: {
        const size_t a = below(phases.size()), b = below(phases.size());
        std::swap(phases[a], phases[b]);
        return note("phases swapped");
      }
      case 14:
        phases.erase(below(phases.size()));
        return note("a phase less");
      default:
        if (phase.contains("steps") && phase["steps"].is_array() && !phase["steps"].empty()) {
          phase["steps"].erase(below(phase["steps"].size()));
          return note("a step less");
        }
    }
  }

  Json document_;
  const Json& other_;
  std::mt19937_64 random_;
  std::string what_;
};

}  // namespace nereid::verify
