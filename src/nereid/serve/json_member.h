// Members of an object that may be there: a null is as if it were absent.
#pragma once

#include <string>

#include "nereid/base/json.h"

namespace nereid::serve {

// nullptr where `object` is none, or has no such member.
inline const Json* member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// "" where there is no such text.
inline std::string text_in(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace nereid::serve
