// What a boundary that can fail returns: a value, or an Error that says whose fault it is.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "nereid/base/check.h"

namespace nereid {

// Whose trouble it is; the command's exit code follows from it.
enum class Blame {
  kInput,        // bad usage, unreadable or malformed input: exit code 2
  kOurs,         // a lost worker, a full disk, a GPU error: exit code 3, never a verdict, worth trying again
  kInterrupted,  // Ctrl-C: exit code 130
};

struct Error {
  std::string message;  // what was expected and what came, with the file and line where there is one
  Blame blame = Blame::kOurs;
};

template <typename... Args>
Error input_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error{fmt::format(format, std::forward<Args>(args)...), Blame::kInput};
}
template <typename... Args>
Error our_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error{fmt::format(format, std::forward<Args>(args)...), Blame::kOurs};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: a value is a result
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: and so is an error

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    NEREID_CHECK(ok(), "a value, not the error '{}'", std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  T& value() & {
    NEREID_CHECK(ok(), "a value, not the error '{}'", std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  T&& value() && {
    NEREID_CHECK(ok(), "a value, not the error '{}'", std::get<1>(state_).message);
    return std::get<0>(std::move(state_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;
inline Status ok_status() { return Unit{}; }

// NEREID_TRY(auto x, f()): x is f()'s value; an error returns from the enclosing function.
#define NEREID_TRY(declaration, expression) \
  NEREID_TRY_IMPL_(NEREID_CONCAT_(nereid_try_, __LINE__), declaration, expression)
#define NEREID_TRY_IMPL_(name, declaration, expression) \
  auto name = (expression);                             \
  if (!name.ok()) return name.error();                  \
  declaration = std::move(name).value()
#define NEREID_TRY_STATUS(expression)                                                         \
  do {                                                                                        \
    if (auto nereid_status = (expression); !nereid_status.ok()) return nereid_status.error(); \
  } while (false)
#define NEREID_CONCAT_(a, b) NEREID_CONCAT_2_(a, b)
#define NEREID_CONCAT_2_(a, b) a##b

}  // namespace nereid
