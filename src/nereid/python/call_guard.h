// The check before a call, by what an earlier call that passed the check in Python looked like
// (python/nereid/_optimize/native.py builds it). It says yes only where Python's check would: everything that
// it finds changed, or does not know, is left to Python.
#pragma once

#include <Python.h>

#include <memory>
#include <vector>

namespace nereid::python {

// One argument, or one item of it, as it has to be.
struct Pattern {
  enum class Kind { kTensor, kSame, kEqual, kTuple, kList, kDict };
  Kind kind;
  PyObject* value = nullptr;  // kTensor: its class; kSame, kEqual: the value; borrowed, as all pointers here
  Py_ssize_t index = 0;       // kTensor: its place among the call's tensors
  std::vector<PyObject*> keys;  // kDict, in order
  std::vector<Pattern> items;
};

// A form of call: arguments, and what torch compares their tensors with.
struct Variant {
  Pattern args, kwargs;
  Py_ssize_t tensors = 0;
  // Of each of the call's tensors and the module's the first one that is the same object.
  std::vector<Py_ssize_t> same;
  PyObject* check = nullptr;  // callable of the call's tensors and the module's; true where they are alike
  std::vector<Py_ssize_t> aliases;  // of each tensor the first one whose memory it shares; empty below two
  bool without_gradients = false;   // whether a tensor requires a gradient
};

// What of a module and of the program around it has to be as it was. Pointers are borrowed from `held`.
struct Guard {
  struct Owner {
    PyObject *object, *type, *dictionary;
  };  // its class and its __dict__
  struct Entry {
    PyObject *mapping, *key, *value;
  };  // mapping[key] is value
  struct Size {
    PyObject* container;
    Py_ssize_t size;
  };
  struct Attribute {
    PyObject *object, *name, *value;
  };  // object.name is value
  struct Answer {
    PyObject *function, *args, *expected;
  };  // function(*args) equals expected
  struct Place {
    PyObject *mapping, *key;
  };

  std::vector<Owner> owners;
  std::vector<Entry> entries;
  std::vector<Size> sizes;
  std::vector<Attribute> attributes;
  std::vector<Answer> answers;
  std::vector<PyObject*> refusals;  // functions without arguments whose answers have to be false
  std::vector<Place> state;         // of parameters and buffers
  std::vector<Place> absent;        // keys that are not there, or None
  std::vector<std::shared_ptr<const Variant>> variants;
  PyObject* grad_enabled = nullptr;     // torch.is_grad_enabled
  PyObject* untyped_storage = nullptr;  // torch.Tensor.untyped_storage
  PyObject* held = nullptr;             // a list that owns all of these
};

// Fills the guard from a dictionary of lists under the names above. False: a Python error is set.
bool fill(Guard& guard, PyObject* lists);

// Adds a form of call: a tuple (args, kwargs, number of tensors, check, aliases, without_gradients), patterns
// as native.py writes them. False: a Python error is set.
bool add_variant(Guard& guard, PyObject* form);

// Whether all but the arguments is as it was: 1, 0, or -1 with a Python error set.
int unchanged(const Guard& guard);

// The call's tensors, a new tuple; None where the call is not as one of the forms; nullptr: a Python error.
PyObject* matched(const Guard& guard, PyObject* args, PyObject* kwargs);

}  // namespace nereid::python
