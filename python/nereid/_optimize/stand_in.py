"""A module that stands for another one."""

import torch


class StandIn(torch.nn.Module):
    """Has the class, attributes, state and training mode of the module in `_nereid_original`.

    `_nereid_link` sets that; until then it is an nn.Module of its own.
    """

    def _nereid_class(self):
        original = self.__dict__.get("_nereid_original")
        return type(self) if original is None else original.__class__

    def _nereid_set_class(self, cls):  # torch.nn.utils.parametrize
        self._nereid_original.__class__ = cls

    __class__ = property(_nereid_class, _nereid_set_class)

    def __prepare_scriptable__(self):
        return self._nereid_original

    def _replicate_for_data_parallel(self):
        return self._nereid_original._replicate_for_data_parallel()

    @property
    def training(self):
        original = self.__dict__.get("_nereid_original")
        return True if original is None else original.training

    @training.setter
    def training(self, mode):
        original = self.__dict__.get("_nereid_original")
        if original is not None:
            original.training = mode

    def __getattr__(self, name):
        original = self.__dict__.get("_nereid_original")
        if original is None:
            raise AttributeError(name)
        return getattr(original, name)

    def __setattr__(self, name, value):
        if name.startswith("_nereid_") or "_nereid_original" not in self.__dict__:
            super().__setattr__(name, value)
        elif name == "_compiled_call_impl":  # of `fast.compile()`, which must not compile the original
            self.__dict__[name] = value
        else:
            setattr(self._nereid_original, name, value)

    def __delattr__(self, name):
        delattr(self._nereid_original, name)

    def train(self, mode: bool = True):
        self._nereid_original.train(mode)
        return self

    def _apply(self, fn, recurse=True):
        self._nereid_original._apply(fn, recurse)
        return self

    def state_dict(self, *args, **kwargs):
        return self._nereid_original.state_dict(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        return self._nereid_original.load_state_dict(*args, **kwargs)

    def _save_to_state_dict(self, *args):
        self._nereid_original._save_to_state_dict(*args)

    def _load_from_state_dict(self, *args):
        self._nereid_original._load_from_state_dict(*args)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._nereid_original)})
