#include "nereid/replay/worker/prepared_call.h"

#include <ATen/core/ivalue.h>
#include <c10/core/Scalar.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/order_sensitivity.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/allowed_ops.h"

namespace nereid::replay {
namespace {

using c10::IValue;
using c10::TypeKind;
using trace::Arg;

int64_t named_number(const trace::Named& named) {
  if (named.kind == "dtype") {
    const auto type = trace::dtype_from_string(named.name);
    if (!type) refuse(fmt::format("the dtype '{}'", named.name));
    return static_cast<int64_t>(scalar_type(*type));
  }
  if (named.kind == "layout" && named.name == "strided") return static_cast<int64_t>(c10::Layout::Strided);
  if (named.kind == "memory_format") {
    if (named.name == "contiguous_format") return static_cast<int64_t>(c10::MemoryFormat::Contiguous);
    if (named.name == "preserve_format") return static_cast<int64_t>(c10::MemoryFormat::Preserve);
    if (named.name == "channels_last") return static_cast<int64_t>(c10::MemoryFormat::ChannelsLast);
    if (named.name == "channels_last_3d") return static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d);
  }
  refuse(fmt::format("the {} '{}'", named.kind, named.name));
}

std::optional<c10::Scalar> as_scalar(const Arg& arg) {
  if (const auto* b = std::get_if<bool>(&arg.node)) return c10::Scalar(*b);
  if (const auto* i = std::get_if<int64_t>(&arg.node)) return c10::Scalar(*i);
  if (const auto* d = std::get_if<double>(&arg.node)) return c10::Scalar(*d);
  if (const auto* c = std::get_if<std::complex<double>>(&arg.node))
    return c10::Scalar(c10::complex<double>(*c));
  return std::nullopt;
}

const char* kind_of(const Arg& arg) {
  static constexpr const char* kNames[] = {
      "None",     "a bool",        "an integer", "a float", "a complex number", "text",
      "a tensor", "a named value", "a list",     "a dict",  "an opaque object"};
  return kNames[arg.node.index()];
}

// The base operators that allocate and write nothing, and those that look at a tensor's shape alone.
constexpr std::string_view kAllocators[] = {"empty",     "empty_strided",     "empty_like",
                                            "new_empty", "new_empty_strided", "empty_permuted"};
constexpr std::string_view kShapeReaders[] = {"empty_like",   "new_empty", "new_empty_strided", "zeros_like",
                                              "ones_like",    "full_like", "rand_like",         "randn_like",
                                              "randint_like", "new_zeros", "new_ones",          "new_full"};
bool one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

// Converts arguments by the schema's types, noting where tensors go.
class PreparedCall::Builder {
 public:
  Builder(PreparedCall& prepared_call, const trace::Trace& trace, const Machine& machine)
      : prepared_(prepared_call), trace_(trace), machine_(machine) {}

  void argument(const c10::Argument& schema, const Arg* given) {
    index_ = prepared_.arguments_.size();
    writes_ = (schema.alias_info() && schema.alias_info()->isWrite()) ||
              (updates_statistics_ && (schema.name() == "running_mean" || schema.name() == "running_var"));
    words_ = is_word(*schema.real_type());
    if (schema.name() == "pin_memory") given = nullptr;  // only speed
    if (schema.name() == "sorted") given = nullptr;      // an order that is left open is the sorted one
    if (!given) {
      if (!schema.default_value() && schema.type()->kind() != TypeKind::OptionalType)
        refuse(fmt::format("the argument '{}' is missing", schema.name()));
      prepared_.arguments_.push_back(schema.default_value().value_or(IValue()));
      return;
    }
    try {
      prepared_.arguments_.push_back(convert(*given, *schema.type(), schema));
    } catch (const Failed& failed) {
      throw Failed(failed.kind, fmt::format("argument '{}': {}", schema.name(), failed.what()));
    }
  }

  // Norms write their running statistics while they train, which their schema doesn't say.
  void updates_statistics(bool updates) { updates_statistics_ = updates; }

  void result(const Arg& result, size_t returns) {
    if (returns == 1) return one_result(result, 0);
    const auto* list = std::get_if<trace::List>(&result.node);
    if (returns == 0) return;
    if (!list || list->items.size() != returns) refuse(fmt::format("{} results expected", returns));
    for (size_t i = 0; i < returns; ++i) one_result(list->items[i], i);
  }

 private:
  void one_result(const Arg& result, size_t position) {
    if (const auto* ref = std::get_if<trace::TensorRef>(&result.node)) add_result({position, -1, ref->value});
    if (const auto* list = std::get_if<trace::List>(&result.node))
      for (size_t i = 0; i < list->items.size(); ++i)
        if (const auto* item = std::get_if<trace::TensorRef>(&list->items[i].node))
          add_result({position, static_cast<int64_t>(i), item->value});
  }

  // A result that lives in an argument's storage is made from that storage when it is wanted.
  void add_result(ResultSlot slot) {
    prepared_.results_.push_back(slot.value);
    const auto storage = trace_.values[slot.value].storage;
    const auto shares = [&](trace::ValueId read) { return trace_.values[read].storage == storage; };
    if (std::ranges::none_of(prepared_.reads_, shares) && std::ranges::none_of(prepared_.writes_, shares)) {
      prepared_.result_slots_.push_back(slot);
      prepared_.bound_results_.push_back(slot.value);
    }
  }

  void note_tensor(trace::ValueId value) {
    prepared_.reads_.push_back(value);
    if (writes_) prepared_.writes_.push_back(value);
  }

  IValue convert(const Arg& arg, const c10::Type& type, const c10::Argument& schema) {
    const bool none = std::holds_alternative<trace::None>(arg.node);
    switch (type.kind()) {
      case TypeKind::OptionalType:
        return none ? IValue() : convert(arg, *type.castRaw<c10::OptionalType>()->getElementType(), schema);
      case TypeKind::TensorType:
        return tensor(arg);
      case TypeKind::ListType:
        return list(arg, *type.castRaw<c10::ListType>()->getElementType(), schema);
      case TypeKind::NumberType:
        if (const auto scalar = as_scalar(arg)) return *scalar;
        break;
      case TypeKind::IntType:
      case TypeKind::SymIntType:
        if (const auto* i = std::get_if<int64_t>(&arg.node); i && !words_) return *i;
        if (const auto* b = std::get_if<bool>(&arg.node); b && !words_) return int64_t{*b};
        if (const auto* named = std::get_if<trace::Named>(&arg.node)) return named_number(*named);
        break;
      case TypeKind::FloatType:
      case TypeKind::SymFloatType:
        if (const auto scalar = as_scalar(arg); scalar && !scalar->isComplex()) return scalar->toDouble();
        break;
      case TypeKind::BoolType:
      case TypeKind::SymBoolType:
        if (const auto* b = std::get_if<bool>(&arg.node)) return *b;
        if (const auto* i = std::get_if<int64_t>(&arg.node)) return *i != 0;
        break;
      case TypeKind::StringType:
        if (const auto* text = std::get_if<trace::Text>(&arg.node)) return text->text;
        break;
      case TypeKind::DeviceObjType:
        if (const auto* named = std::get_if<trace::Named>(&arg.node); named && named->kind == "device")
          return device(named->name);
        break;
      case TypeKind::GeneratorType:
        if (const auto* named = std::get_if<trace::Named>(&arg.node); named && named->kind == "generator") {
          prepared_.generators_.push_back({index_, named->name});
          return IValue();
        }
        if (none) return IValue();
        break;
      default:
        break;
    }
    refuse(fmt::format("expected {}, got {}", words_ ? "a name" : type.str(), kind_of(arg)));
  }

  // A dtype, a layout or a memory format: an integer to the dispatcher, which PyTorch takes for one of them
  // unseen.
  static bool is_word(const c10::Type& type) {
    if (type.kind() == TypeKind::OptionalType)
      return is_word(*type.castRaw<c10::OptionalType>()->getElementType());
    return type.kind() == TypeKind::ScalarTypeType || type.kind() == TypeKind::LayoutType ||
           type.kind() == TypeKind::MemoryFormatType;
  }

  c10::Device device(const std::string& name) const {
    const auto type = name.substr(0, name.find(':'));
    if (type == "cuda") return machine_.device(trace::Device::kCuda);
    if (type == "cpu") return machine_.device(trace::Device::kCpu);
    refuse(fmt::format("the device '{}'", name));
  }

  IValue tensor(const Arg& arg) {
    if (const auto* ref = std::get_if<trace::TensorRef>(&arg.node)) {
      prepared_.tensors_.push_back({TensorSlot::Shape::kOne, index_, {ref->value}});
      note_tensor(ref->value);
      return IValue();
    }
    if (std::holds_alternative<trace::None>(arg.node)) return at::Tensor();
    if (const auto scalar = as_scalar(arg)) {  // x + 2: a number that takes part in promotion as a number
      auto number = at::scalar_tensor(*scalar, at::TensorOptions().dtype(scalar->type()));
      number.unsafeGetTensorImpl()->set_wrapped_number(true);
      return number;
    }
    refuse(fmt::format("expected Tensor, got {}", kind_of(arg)));
  }

  IValue list(const Arg& arg, const c10::Type& element, const c10::Argument& schema) {
    const auto* items = std::get_if<trace::List>(&arg.node);
    switch (element.kind()) {
      case TypeKind::TensorType:
        return tensors(items, TensorSlot::Shape::kList, arg);
      case TypeKind::OptionalType:
        if (element.castRaw<c10::OptionalType>()->getElementType()->kind() == TypeKind::TensorType)
          return tensors(items, TensorSlot::Shape::kOptionalList, arg);
        break;
      case TypeKind::IntType:
      case TypeKind::SymIntType:
        return numbers<int64_t>(items, arg, element, schema, &IValue::toInt);
      case TypeKind::FloatType:
      case TypeKind::SymFloatType:
        return numbers<double>(items, arg, element, schema, &IValue::toDouble);
      case TypeKind::BoolType:
        return numbers<bool>(items, arg, element, schema, &IValue::toBool);
      case TypeKind::NumberType:
        return numbers<c10::Scalar>(items, arg, element, schema, &IValue::toScalar);
      default:
        break;
    }
    refuse(fmt::format("lists of {}", element.str()));
  }

  // int[2] may be given as one integer.
  template <typename T, typename Get>
  IValue numbers(const trace::List* items, const Arg& arg, const c10::Type& element,
                 const c10::Argument& schema, Get get) {
    c10::List<T> out;
    if (items)
      for (const auto& item : items->items) out.push_back((convert(item, element, schema).*get)());
    else
      for (int i = 0; i < std::clamp(schema.N().value_or(1), 1, 16); ++i)
        out.push_back((convert(arg, element, schema).*get)());
    return IValue(std::move(out));
  }

  IValue tensors(const trace::List* items, TensorSlot::Shape shape, const Arg& arg) {
    if (!items) refuse(fmt::format("expected a list of tensors, got {}", kind_of(arg)));
    TensorSlot slot{shape, index_, {}};
    for (const auto& item : items->items) {
      const auto* ref = std::get_if<trace::TensorRef>(&item.node);
      if (!ref &&
          !(shape == TensorSlot::Shape::kOptionalList && std::holds_alternative<trace::None>(item.node)))
        refuse(fmt::format("expected Tensor in a list, got {}", kind_of(item)));
      slot.values.push_back(ref ? ref->value : -1);
      if (ref) note_tensor(ref->value);
    }
    prepared_.tensors_.push_back(std::move(slot));
    return IValue();
  }

  PreparedCall& prepared_;
  const trace::Trace& trace_;
  const Machine& machine_;
  size_t index_ = 0;
  bool writes_ = false, updates_statistics_ = true, words_ = false;
};

PreparedCall::GeneratorState PreparedCall::generator_state(const std::string& op, const trace::Call& call) {
  const auto* number = call.args.empty() ? nullptr : std::get_if<int64_t>(&call.args[0].node);
  if (!number) refuse(fmt::format("{} expects an integer", op));
  const auto* named = call.args.size() > 1 ? std::get_if<trace::Named>(&call.args[1].node) : nullptr;
  return {op == "nereid::save_generator", *number, named ? named->name : ""};
}

PreparedCall PreparedCall::prepare(const trace::Call& call, const trace::Trace& trace,
                                   const Machine& machine) {
  PreparedCall prepared_call;
  std::string op = call.op;
  // How `upcast` marks a call: "nereid::draw_f32 aten::normal_", "nereid::tf32 aten::mm",
  // "nereid::order_check aten::mm".
  if (const auto space = op.find(' '); space != op.npos) {
    const auto mark = op.substr(0, space);
    op = op.substr(space + 1);
    if (mark == "nereid::tf32")
      prepared_call.tf32_ = true;
    else if (mark == "nereid::order_check")
      prepared_call.order_check_ = true;
    else if (const auto type =
                 trace::dtype_from_string(mark.substr(std::min(mark.size(), strlen("nereid::draw_")))))
      prepared_call.draws_in_ = scalar_type(*type);
  }
  Builder builder(prepared_call, trace, machine);
  if (op.starts_with("nereid::")) {
    if (op == "nereid::manual_seed") {
      const auto* seed = call.args.empty() ? nullptr : std::get_if<int64_t>(&call.args[0].node);
      if (!seed) refuse("nereid::manual_seed expects an integer");
      prepared_call.seed_ = static_cast<uint64_t>(*seed);
      prepared_call.random_ = true;
    } else if (op == "nereid::save_generator" || op == "nereid::restore_generator") {
      prepared_call.state_ = generator_state(op, call);
      prepared_call.random_ = true;
    } else if (op == "nereid::constant") {
      prepared_call.results_ = trace::tensors_in(call.result);
    } else if (op != "nereid::flatten_rnn_weights") {
      refuse(fmt::format("unknown operator {}", op));
    }
    return prepared_call;
  }

  const auto dot = op.find('.');
  const std::string name = op.substr(0, dot), overload = dot == op.npos ? "" : op.substr(dot + 1);
  if (!name.starts_with("aten::")) refuse(fmt::format("{} is no ATen operator", op));
  const std::string base = name.substr(strlen("aten::"));
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle) refuse(fmt::format("unknown operator {}", op));
  prepared_call.op_ = *handle;
  prepared_call.only_metadata_ = handle->hasTag(at::Tag::inplace_view);
  if (!prepared_call.only_metadata_ && !trace::is_allowed(base))
    refuse(fmt::format("{} is not run by a replay", op));
  prepared_call.random_ = handle->hasTag(at::Tag::nondeterministic_seeded);
  prepared_call.allocates_ = one_of(base, kAllocators);
  prepared_call.several_products_ = makes_several_products(base);

  const auto& schema = handle->schema();
  if (call.args.size() > schema.arguments().size()) refuse(fmt::format("too many arguments for {}", op));
  for (const auto& [key, value] : call.kwargs)
    if (!schema.argumentIndexWithName(key)) refuse(fmt::format("{} has no argument '{}'", op, key));
  const GivenArguments given(schema, call, trace);
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto& argument = schema.arguments()[i].name();
    const auto* arg = given.at(i);
    const auto* flag = arg ? std::get_if<bool>(&arg->node) : nullptr;
    if (flag && (argument == "training" || argument == "use_input_stats")) builder.updates_statistics(*flag);
  }
  for (size_t i = 0; i < schema.arguments().size(); ++i) builder.argument(schema.arguments()[i], given.at(i));
  check_sizes(base, given);
  prepared_call.within_ = element_bounds(base, given);
  builder.result(call.result, schema.returns().size());
  if (prepared_call.only_metadata_ && !prepared_call.result_slots_.empty())
    refuse(fmt::format("{} of a tensor that is none of its arguments", op));
  if (one_of(base, kShapeReaders)) prepared_call.shape_only_ = true;
  return prepared_call;
}

void PreparedCall::run(Operands& operands) const {
  // Nothing of it is data, and values are made from their storages: the operator itself (set_, resize_) never
  // runs.
  if (only_metadata_) return;
  if (seed_) return operands.seed(*seed_);
  if (state_) {
    if (state_->save) return operands.save_generator(state_->number, state_->generator);
    return operands.restore_generator(state_->number, state_->generator);
  }
  if (!op_) return;
  torch::jit::Stack stack(arguments_);
  const uint64_t id = results_.empty() ? 0 : static_cast<uint64_t>(results_.front());
  for (const auto& slot : tensors_) {
    const auto operand = [&](trace::ValueId value) {
      auto tensor = operands.operand(value, shape_only_);
      const bool rounds = tf32_ && !several_products_;
      return rounds ? rounded_factor(*op_, slot.argument, tensor, operands.tf32, id) : tensor;
    };
    if (slot.shape == TensorSlot::Shape::kOne) {
      stack[slot.argument] = operand(slot.values[0]);
    } else if (slot.shape == TensorSlot::Shape::kList) {
      c10::List<at::Tensor> list;
      for (const auto value : slot.values) list.push_back(operand(value));
      stack[slot.argument] = std::move(list);
    } else {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto value : slot.values)
        list.push_back(value < 0 ? std::nullopt : std::optional(operand(value)));
      stack[slot.argument] = std::move(list);
    }
  }
  for (const auto& slot : generators_) stack[slot.argument] = operands.generator(slot.name);

  if (within_) check_numbers(*within_, stack);
  at::Tensor target;  // of a upcast draw
  if (draws_in_ && !stack.empty() && stack[0].isTensor()) {
    target = stack[0].toTensor();
    stack[0] = target.to(*draws_in_);
  }
  const auto arguments = order_check_ ? stack : torch::jit::Stack();
  {
    std::optional<RoundedProducts> rounded;
    if (tf32_ && several_products_) rounded.emplace(operands.tf32, id);
    op_->callBoxed(stack);
  }
  if (order_check_ && stack.size() == 1 && stack[0].isTensor()) {
    auto result = stack[0].toTensor();
    invalidate_order_sensitive(*op_, arguments, result);
    stack[0] = std::move(result);
  }
  if (target.defined()) target.copy_(stack.at(0).toTensor());

  for (const auto& slot : result_slots_) {
    if (slot.position >= stack.size())
      throw Failed(Failure::Kind::kRaised, "fewer results than the trace says");
    auto& returned = stack[slot.position];
    // Taken off the stack: a result without other owners becomes the value as it is, without a copy.
    at::Tensor tensor;
    if (slot.item < 0 && returned.isTensor()) {
      tensor = std::move(returned).toTensor();
    } else if (slot.item >= 0 && returned.isTensorList()) {
      const auto list = returned.toTensorList();
      if (slot.item < static_cast<int64_t>(list.size())) tensor = list.extract(slot.item);
    }
    // Some operators omit on one device a result that they return on another: a step that reads it fails
    // then.
    if (tensor.defined()) operands.bind(slot.value, std::move(tensor));
  }
}

}  // namespace nereid::replay
