"""While gradients are off, autograd's dispatch keys are excluded, so that the recorder sees composite operators whole.

With gradients on (a module that differentiates inside forward) the keys come back and composites are taken apart by C++ before the
recorder sees them. `torch.func` brings its own keys along.
"""
import torch
from torch._C import DispatchKey

_KEYS = (DispatchKey.AutogradFunctionality,)
_set_grad_enabled = torch._C._set_grad_enabled


def exclude(excluded):
    for key in _KEYS:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, excluded)


def set_grad_enabled(mode):
    _set_grad_enabled(mode)
    exclude(not mode)


def install():
    torch._C._set_grad_enabled = set_grad_enabled
