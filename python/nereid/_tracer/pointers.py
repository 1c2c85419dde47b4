"""Addresses of tensors that have no memory: unique, 512-byte aligned as the CUDA allocator's, and traceable
back."""

import bisect
import hashlib
import random

import torch

from .._task.errors import Untraceable

_FIRST = 0x7000_0000_0000
_ALIGNMENT = 512
MARGIN = 1 << 20  # bytes around a tensor at which an address still means it


class Pointers:
    def __init__(self, recorder, text):
        """`text`: the module's; distances between tensors follow from it, so that a trace is the same each
        time, and from nothing else that the module knows."""
        self._recorder = recorder
        self._random = random.Random(hashlib.sha256(text.encode("utf-8", "replace")).digest())
        self._next = _FIRST
        self._starts, self._storages = [], []

    @property
    def taken(self):
        """Whether any address was asked for."""
        return bool(self._starts)

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
            # Far from any other, and how far cannot be guessed: an address past an end belongs to no tensor.
            gap = 4 * MARGIN + self._random.randrange(1 << 13) * _ALIGNMENT
            storage.address = self._next + gap
            size = max(storage.bytes, storage.fake.nbytes())
            self._next = storage.address + (size // _ALIGNMENT + 1) * _ALIGNMENT
            self._starts.append(storage.address)
            self._storages.append(storage)
        return storage.address

    def storage_at(self, address):
        """The storage that an address means, or nearly does; None where there is none."""
        at = bisect.bisect_right(self._starts, address + MARGIN) - 1
        if at >= 0:
            storage = self._storages[at]
            if address < storage.address + max(storage.bytes, storage.fake.nbytes()) + MARGIN:
                return storage
        return None

    def resolve(self, address):
        """(a flat tensor over the storage, bytes into it) of an address."""
        storage = self.storage_at(address)
        if storage is not None and address >= storage.address:
            size = max(storage.bytes, storage.fake.nbytes())
            if address < storage.address + size:
                return self._recorder.view(storage, torch.uint8, (size,), (1,), 0), address - storage.address
        raise Untraceable(f"a kernel was given the address {address:#x}, which belongs to no tensor")
