#include "nereid/python/call_guard.h"

#include <string_view>

#include "nereid/python/reference.h"

namespace nereid::python {
namespace {

// mapping[key] is value: 1, 0, or -1 with a Python error set.
int is_item(PyObject* mapping, PyObject* key, PyObject* value) {
  if (PyDict_CheckExact(mapping)) {
    PyObject* now = PyDict_GetItemWithError(mapping, key);
    if (now == nullptr && PyErr_Occurred() != nullptr) return -1;
    return now == value ? 1 : 0;
  }
  const Reference now(PyObject_GetItem(mapping, key));
  if (now.get() != nullptr) return now.get() == value ? 1 : 0;
  if (PyErr_ExceptionMatches(PyExc_LookupError) == 0) return -1;
  PyErr_Clear();
  return 0;
}

int is_attribute(const Guard::Attribute& one) {
  const Reference now(PyObject_GetAttr(one.object, one.name));
  return now.get() == nullptr ? -1 : now.get() == one.value ? 1 : 0;
}

// function() or function(*args) equals what is expected; without it, whether the answer is false.
int answers(PyObject* function, PyObject* args, PyObject* expected) {
  const Reference now(args == nullptr ? PyObject_CallNoArgs(function) : PyObject_CallObject(function, args));
  if (now.get() == nullptr) return -1;
  if (expected != nullptr) return PyObject_RichCompareBool(now.get(), expected, Py_EQ);
  return PyObject_Not(now.get());
}

int matches(const Pattern& pattern, PyObject* object, PyObject* tensors);

int match_dictionary(const Pattern& pattern, PyObject* object, PyObject* tensors) {
  if (!PyDict_CheckExact(object) || PyDict_Size(object) != Py_ssize_t(pattern.keys.size())) return 0;
  PyObject *key = nullptr, *item = nullptr;
  Py_ssize_t place = 0;
  for (size_t i = 0; PyDict_Next(object, &place, &key, &item) != 0; ++i) {
    if (i >= pattern.keys.size()) return 0;
    if (key != pattern.keys[i]) {
      if (!PyUnicode_CheckExact(key) || !PyUnicode_CheckExact(pattern.keys[i])) return 0;
      if (PyUnicode_Compare(key, pattern.keys[i]) != 0) return 0;
    }
    if (const int same = matches(pattern.items[i], item, tensors); same != 1) return same;
  }
  return 1;
}

int match_items(const Pattern& pattern, PyObject* object, PyObject* tensors) {
  const bool tuple = pattern.kind == Pattern::Kind::kTuple;
  if (tuple ? !PyTuple_CheckExact(object) : !PyList_CheckExact(object)) return 0;
  const Py_ssize_t size = tuple ? PyTuple_Size(object) : PyList_Size(object);
  if (size != Py_ssize_t(pattern.items.size())) return 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = tuple ? PyTuple_GetItem(object, i) : PyList_GetItem(object, i);
    if (item == nullptr) return -1;
    if (const int same = matches(pattern.items[size_t(i)], item, tensors); same != 1) return same;
  }
  return 1;
}

// Whether an argument is as it has to be; puts its tensors into their places. No code of a user's runs here:
// values that are compared are Python's own.
int matches(const Pattern& pattern, PyObject* object, PyObject* tensors) {
  switch (pattern.kind) {
    case Pattern::Kind::kTensor:
      if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != pattern.value) return 0;
      return PyTuple_SetItem(tensors, pattern.index, Py_NewRef(object)) == 0 ? 1 : -1;
    case Pattern::Kind::kSame:
      return object == pattern.value ? 1 : 0;
    case Pattern::Kind::kEqual:
      if (object == pattern.value) return 1;
      if (Py_TYPE(object) != Py_TYPE(pattern.value)) return 0;
      return PyObject_RichCompareBool(object, pattern.value, Py_EQ);
    case Pattern::Kind::kTuple:
    case Pattern::Kind::kList:
      return match_items(pattern, object, tensors);
    case Pattern::Kind::kDict:
      return match_dictionary(pattern, object, tensors);
  }
  return 0;
}

// The address of the tensor's storage object, as Python's check compares it; -1 as a Python error.
int storage_of(const Guard& guard, PyObject* tensor, unsigned long long* address) {
  const Reference storage(PyObject_CallFunctionObjArgs(guard.untyped_storage, tensor, nullptr));
  if (storage.get() == nullptr) return -1;
  const Reference number(PyObject_GetAttrString(storage.get(), "_cdata"));
  if (number.get() == nullptr) return -1;
  *address = PyLong_AsUnsignedLongLong(number.get());
  return PyErr_Occurred() != nullptr ? -1 : 1;
}

int sharing_unchanged(const Guard& guard, const Variant& variant, PyObject* tensors) {
  std::vector<unsigned long long> storages(variant.aliases.size());
  for (size_t i = 0; i < storages.size(); ++i) {
    if (storage_of(guard, PyTuple_GetItem(tensors, Py_ssize_t(i)), &storages[i]) != 1) return -1;
    size_t first = 0;
    while (storages[first] != storages[i]) ++first;
    if (Py_ssize_t(first) != variant.aliases[i]) return 0;
  }
  return 1;
}

// The call's tensors and the module's as one new tuple, each object once, as torch compares them; nullptr
// without a Python error where one is missing, or where others are the same than those that were.
PyObject* all_tensors(const Guard& guard, const Variant& variant, PyObject* tensors) {
  const size_t given = size_t(variant.tensors);
  std::vector<PyObject*> all(variant.same.size());
  Py_ssize_t count = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = i < given ? PyTuple_GetItem(tensors, Py_ssize_t(i))
                       : PyDict_GetItemWithError(guard.state[i - given].mapping, guard.state[i - given].key);
    if (all[i] == nullptr || all[i] != all[size_t(variant.same[i])]) return nullptr;
    count += variant.same[i] == Py_ssize_t(i) ? 1 : 0;
  }
  Reference once(PyTuple_New(count));
  if (once.get() == nullptr) return nullptr;
  for (size_t i = all.size(); i-- > 0;)
    if (variant.same[i] == Py_ssize_t(i)) PyTuple_SetItem(once.get(), --count, Py_NewRef(all[i]));
  return once.release();
}

// Whether tensors are as they were in this form of call.
int tensors_match(const Guard& guard, const Variant& variant, PyObject* tensors) {
  if (variant.without_gradients) {
    if (const int off = answers(guard.grad_enabled, nullptr, nullptr); off != 1) return off;
  }
  const Reference all(all_tensors(guard, variant, tensors));
  if (all.get() == nullptr) return PyErr_Occurred() != nullptr ? -1 : 0;
  const Reference alike(PyObject_CallObject(variant.check, all.get()));
  if (alike.get() == nullptr) return -1;
  if (alike.get() != Py_True) return 0;
  return variant.aliases.empty() ? 1 : sharing_unchanged(guard, variant, tensors);
}

// -- how it is filled ---------------------------------------------------------------------------------------

// Calls `take` with each tuple of the list under a name.
template <typename Take>
bool each(PyObject* lists, const char* name, PyObject* held, Take take) {
  PyObject* list = PyDict_GetItemString(lists, name);
  if (list == nullptr || !PyList_Check(list)) {
    PyErr_Format(PyExc_TypeError, "expected a list of %s", name);
    return false;
  }
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    PyObject* one = PyList_GetItem(list, i);
    if (PyList_Append(held, one) != 0 || !take(one)) return false;
  }
  return true;
}

bool fill_pattern(PyObject* text, Py_ssize_t tensors, Pattern& pattern);

bool fill_items(PyObject* items, Py_ssize_t tensors, Pattern& pattern) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(items); ++i)
    if (!fill_pattern(PyTuple_GetItem(items, i), tensors, pattern.items.emplace_back())) return false;
  return true;
}

// A pattern is a tuple: ("tensor", class, index), ("same", value), ("equal", value), ("tuple", items),
// ("list", items), ("dict", keys, items).
bool fill_pattern(PyObject* text, Py_ssize_t tensors, Pattern& pattern) {
  const char* kind = nullptr;
  PyObject *first = nullptr, *second = nullptr;
  if (PyArg_ParseTuple(text, "sO|O", &kind, &first, &second) == 0) return false;
  const std::string_view name = kind;
  using enum Pattern::Kind;
  pattern.kind = name == "tensor"  ? kTensor
                 : name == "same"  ? kSame
                 : name == "equal" ? kEqual
                 : name == "tuple" ? kTuple
                 : name == "list"  ? kList
                                   : kDict;
  pattern.value = first;
  if (pattern.kind == kTensor) {
    pattern.index = second == nullptr ? -1 : PyLong_AsSsize_t(second);
    if (pattern.index >= 0 && pattern.index < tensors) return true;
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_ValueError, "a tensor's index is out of range");
    return false;
  }
  if (pattern.kind == kSame || pattern.kind == kEqual) return true;
  PyObject* items = pattern.kind == kDict ? second : first;
  const bool keyed = pattern.kind == kDict;
  if (!PyTuple_Check(first) || items == nullptr || !PyTuple_Check(items) ||
      (keyed && PyTuple_Size(first) != PyTuple_Size(items))) {
    PyErr_SetString(PyExc_TypeError, "expected tuples of keys and of items");
    return false;
  }
  for (Py_ssize_t i = 0; keyed && i < PyTuple_Size(first); ++i)
    pattern.keys.push_back(PyTuple_GetItem(first, i));
  return fill_items(items, tensors, pattern);
}

// Of each of `count` things the first one that is like it.
bool fill_firsts(PyObject* numbers, Py_ssize_t count, std::vector<Py_ssize_t>& firsts) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(numbers); ++i) {
    firsts.push_back(PyLong_AsSsize_t(PyTuple_GetItem(numbers, i)));
    if (PyErr_Occurred() != nullptr) return false;
    if (firsts.back() < 0 || firsts.back() > i) break;
  }
  if (Py_ssize_t(firsts.size()) == count && PyTuple_Size(numbers) == count &&
      (count == 0 || (firsts.back() >= 0 && firsts.back() < count)))
    return true;
  PyErr_SetString(PyExc_ValueError, "expected the number of an earlier one for each tensor");
  return false;
}

}  // namespace

bool fill(Guard& guard, PyObject* lists) {
  guard.held = PyList_New(0);
  PyObject* held = guard.held;
  if (held == nullptr) return false;
  const auto three = [](auto& into) {
    return [&into](PyObject* one) {
      auto& [a, b, c] = into.emplace_back();
      return PyArg_ParseTuple(one, "OOO", &a, &b, &c) != 0;
    };
  };
  const auto two = [](auto& into) {
    return [&into](PyObject* one) {
      auto& [a, b] = into.emplace_back();
      return PyArg_ParseTuple(one, "OO", &a, &b) != 0;
    };
  };
  return each(lists, "owners", held, three(guard.owners)) &&
         each(lists, "entries", held, three(guard.entries)) &&
         each(lists, "attributes", held, three(guard.attributes)) &&
         each(lists, "answers", held, three(guard.answers)) && each(lists, "state", held, two(guard.state)) &&
         each(lists, "absent", held, two(guard.absent)) &&
         each(lists, "sizes", held,
              [&](PyObject* one) {
                auto& [container, size] = guard.sizes.emplace_back();
                return PyArg_ParseTuple(one, "On", &container, &size) != 0;
              }) &&
         each(lists, "refusals", held,
              [&](PyObject* one) {
                guard.refusals.push_back(one);
                return true;
              }) &&
         each(lists, "functions", held, [&](PyObject* one) {
           (guard.grad_enabled == nullptr ? guard.grad_enabled : guard.untyped_storage) = one;
           return true;
         });
}

bool add_variant(Guard& guard, PyObject* form) {
  PyObject *args = nullptr, *kwargs = nullptr, *same = nullptr, *aliases = nullptr;
  int without_gradients = 0;
  auto variant = std::make_shared<Variant>();
  if (PyArg_ParseTuple(form, "OOnO!OO!p", &args, &kwargs, &variant->tensors, &PyTuple_Type, &same,
                       &variant->check, &PyTuple_Type, &aliases, &without_gradients) == 0)
    return false;
  variant->without_gradients = without_gradients != 0;
  const Py_ssize_t tensors = variant->tensors, all = tensors + Py_ssize_t(guard.state.size());
  if (tensors < 0 || !fill_pattern(args, tensors, variant->args)) return false;
  if (!fill_pattern(kwargs, tensors, variant->kwargs)) return false;
  if (!fill_firsts(same, all, variant->same)) return false;
  if (tensors > 1 && !fill_firsts(aliases, tensors, variant->aliases)) return false;
  if (PyList_Append(guard.held, form) != 0) return false;
  guard.variants.push_back(std::move(variant));
  return true;
}

int unchanged(const Guard& guard) {
  for (const auto& [object, type, dictionary] : guard.owners) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != type) return 0;
    const Reference now(PyObject_GenericGetDict(object, nullptr));
    if (now.get() == nullptr) return -1;
    if (now.get() != dictionary) return 0;
  }
  for (const auto& [container, size] : guard.sizes) {
    const Py_ssize_t now = PyDict_Check(container) ? PyDict_Size(container) : PyObject_Size(container);
    if (now < 0) return -1;
    if (now != size) return 0;
  }
  for (const auto& [mapping, key, value] : guard.entries)
    if (const int same = is_item(mapping, key, value); same != 1) return same;
  for (const auto& [mapping, key] : guard.absent) {
    PyObject* now = PyDict_GetItemWithError(mapping, key);
    if (now == nullptr && PyErr_Occurred() != nullptr) return -1;
    if (now != nullptr && now != Py_None) return 0;
  }
  for (const Guard::Attribute& one : guard.attributes)
    if (const int same = is_attribute(one); same != 1) return same;
  for (const auto& [function, args, expected] : guard.answers)
    if (const int same = answers(function, args, expected); same != 1) return same;
  for (PyObject* function : guard.refusals)
    if (const int none = answers(function, nullptr, nullptr); none != 1) return none;
  return 1;
}

PyObject* matched(const Guard& guard, PyObject* args, PyObject* kwargs) {
  int same = -2;  // not looked at yet
  // What is compared may run Python, which may add a form: none is referred to across that.
  for (size_t i = 0; i < guard.variants.size() && same != 0; ++i) {
    const std::shared_ptr<const Variant> variant = guard.variants[i];
    Reference tensors(PyTuple_New(variant->tensors));
    if (tensors.get() == nullptr) return nullptr;
    int found = matches(variant->args, args, tensors.get());
    if (found == 1) found = matches(variant->kwargs, kwargs, tensors.get());
    if (found == 1 && same == -2) same = unchanged(guard);
    if (found == 1) found = same;
    if (found == 1) found = tensors_match(guard, *variant, tensors.get());
    if (found < 0) return nullptr;
    if (found == 1) return tensors.release();
  }
  return Py_NewRef(Py_None);
}

}  // namespace nereid::python
