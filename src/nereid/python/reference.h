// One reference to a Python object.
#pragma once

#include <Python.h>

namespace nereid::python {

// Owns one reference, or none.
class Reference {
 public:
  explicit Reference(PyObject* object) : object_(object) {}
  ~Reference() { Py_XDECREF(object_); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  PyObject* get() const { return object_; }
  PyObject* release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  PyObject* object_;
};

}  // namespace nereid::python
