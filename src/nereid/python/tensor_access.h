// Addresses and devices of tensors, by torch's stable C functions; by torch's Python methods where those are
// missing.
#pragma once

#include <Python.h>

#include <cstdint>

namespace nereid::python {

class TensorAccess {
 public:
  // `library`: the path of libtorch_cpu.so, which Python has loaded; `data_ptr` and `get_device`: methods of
  // torch.Tensor, borrowed.
  TensorAccess(const char* library, PyObject* data_ptr, PyObject* get_device);

  // The C functions take the C++ tensor in a Python one. Where it lies is tried on a tensor of each class:
  // its first word is what the attribute `_cdata` says. False: it is not there, so methods are called.
  bool try_on(PyObject* tensor);

  // 1, or -1 with a Python error set.
  int address(PyObject* tensor, uint64_t* address) const;
  int device(PyObject* tensor, long* device) const;

  bool direct() const { return direct_; }

 private:
  using GetAddress = int32_t(void* tensor, void** address);
  using GetNumber = int32_t(void* tensor, int32_t* number);

  GetAddress* get_address_ = nullptr;
  GetNumber* get_index_ = nullptr;
  PyObject *data_ptr_, *get_device_;
  bool direct_ = false;
};

}  // namespace nereid::python
