"""Addresses of tensors that have no memory: unique, 512-byte aligned as the CUDA allocator's, and traceable
back."""

import bisect

import torch

from .._task.errors import Untraceable

_FIRST = 0x7F00_0000_0000
_ALIGNMENT = 512


class Pointers:
    def __init__(self, recorder):
        self._recorder = recorder
        self._next = _FIRST
        self._starts, self._storages = [], []

    def address(self, tensor):
        """data_ptr(): the address of a tensor's first element; 0 for one without elements, as in PyTorch."""
        if tensor.numel() == 0:
            return 0
        return (
            self.storage_address(self._recorder.storage_of(tensor))
            + tensor.storage_offset() * tensor.element_size()
        )

    def storage_address(self, storage):
        if storage.address == 0:
            storage.address = self._next
            # An unused page between any two, so that an address past an end belongs to no tensor.
            size = max(storage.bytes, storage.fake.nbytes())
            self._next += (size // _ALIGNMENT + 2) * _ALIGNMENT
            self._starts.append(storage.address)
            self._storages.append(storage)
        return storage.address

    def resolve(self, address):
        """(a flat tensor over the storage, bytes into it) of an address."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at >= 0:
            storage = self._storages[at]
            size = max(storage.bytes, storage.fake.nbytes())
            if address < storage.address + size:
                return self._recorder.view(storage, torch.uint8, (size,), (1,), 0), address - storage.address
        raise Untraceable(f"a kernel was given the address {address:#x}, which belongs to no tensor")
