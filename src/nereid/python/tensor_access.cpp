#include "nereid/python/tensor_access.h"

#include <dlfcn.h>

#include <cstring>

#include "nereid/python/reference.h"

namespace nereid::python {
namespace {

// Of a Python object of torch.Tensor: its at::Tensor, which is one pointer.
void* inside(PyObject* tensor) { return reinterpret_cast<char*>(tensor) + sizeof(PyObject); }

}  // namespace

TensorAccess::TensorAccess(const char* library, PyObject* data_ptr, PyObject* get_device)
    : data_ptr_(data_ptr), get_device_(get_device) {
  void* torch = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (torch == nullptr) return;
  get_address_ = reinterpret_cast<GetAddress*>(dlsym(torch, "aoti_torch_get_data_ptr"));
  get_index_ = reinterpret_cast<GetNumber*>(dlsym(torch, "aoti_torch_get_device_index"));
  direct_ = get_address_ != nullptr && get_index_ != nullptr;
}

bool TensorAccess::try_on(PyObject* tensor) {
  if (!direct_) return false;
  const Reference number(PyObject_GetAttrString(tensor, "_cdata"));
  const unsigned long long held = number.get() == nullptr ? 0 : PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  uint64_t found = 0;
  std::memcpy(&found, inside(tensor), sizeof found);
  direct_ = held != 0 && found == held;
  return direct_;
}

int TensorAccess::address(PyObject* tensor, uint64_t* address) const {
  if (direct_) {
    void* found = nullptr;
    if (get_address_(inside(tensor), &found) == 0) {
      *address = reinterpret_cast<uint64_t>(found);
      return 1;
    }
  }
  const Reference number(PyObject_CallFunctionObjArgs(data_ptr_, tensor, nullptr));
  if (number.get() == nullptr) return -1;
  *address = PyLong_AsUnsignedLongLong(number.get());
  return PyErr_Occurred() != nullptr ? -1 : 1;
}

int TensorAccess::device(PyObject* tensor, long* device) const {
  if (direct_) {
    int32_t found = 0;
    if (get_index_(inside(tensor), &found) == 0) {
      *device = found;
      return 1;
    }
  }
  const Reference number(PyObject_CallFunctionObjArgs(get_device_, tensor, nullptr));
  if (number.get() == nullptr) return -1;
  *device = PyLong_AsLong(number.get());
  return PyErr_Occurred() != nullptr ? -1 : 1;
}

}  // namespace nereid::python
