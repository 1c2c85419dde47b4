// The reader of steps and of the arguments in them.
#pragma once

#include "nereid/base/json_field.h"
#include "nereid/trace/trace.h"

namespace nereid::trace {

// Ids are checked against the values and kernels that were read before.
class StepDecoder {
 public:
  explicit StepDecoder(const Trace& trace) : trace_(trace) {}

  Result<Step> step(const JsonField& field) const;
  // [[stream, first step that may still run]...]; empty where the object has no such key.
  static Result<std::vector<std::pair<int32_t, int64_t>>> clock(const std::optional<JsonField>& field);
  // None where the object has no such key.
  Result<Arg> arg_at(const JsonField& field, std::string_view key) const;
  Result<ValueId> value_id(const JsonField& field, int64_t lowest = 0) const;

 private:
  Result<Arg> arg(const JsonField& field, size_t depth) const;
  Result<Arg> list(const JsonField& field, bool tuple, size_t depth) const;
  Result<Arg> object(const JsonField& field, size_t depth) const;
  Result<Arg> tagged(const std::string& key, const JsonField& field, size_t depth) const;
  template <typename Item>  // a DictItem or a pair
  Status named_args(const JsonField& field, size_t depth, std::vector<Item>& args) const;
  Result<Call> call(const JsonField& field) const;
  Result<LaunchArg> launch_arg(const JsonField& field) const;
  Result<Alternative> alternative(const JsonField& field) const;
  Result<std::vector<Call>> calls(const JsonField& field, const char* name) const;
  static Result<StreamOrder> order(const JsonField& step);
  Result<Tuning> tuning(const JsonField& field, size_t alternatives) const;

  const Trace& trace_;
};

}  // namespace nereid::trace
