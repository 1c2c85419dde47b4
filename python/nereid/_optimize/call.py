"""A module's forward on arguments by name."""

import inspect


class Call:
    """A module's forward on arguments that are bound to its parameters' names."""

    def __init__(self, module):
        self.signature = inspect.signature(module.forward)
        self._kinds = {name: parameter.kind for name, parameter in self.signature.parameters.items()}
        simple = all(
            kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for kind in self._kinds.values()
        )
        self._names = tuple(self._kinds) if simple else None
        self._rest = next(
            (name for name, kind in self._kinds.items() if kind == inspect.Parameter.VAR_POSITIONAL), None
        )

    def bind(self, args, kwargs):
        if not kwargs and self._names is not None and len(args) == len(self._names):
            return dict(zip(self._names, args))
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def run(self, module, bound):
        args, kwargs = [], {}
        positional = bool(bound.get(self._rest)) if self._rest else False
        for name, value in bound.items():
            kind = self._kinds[name]
            if kind == inspect.Parameter.VAR_POSITIONAL:
                args += value
            elif kind == inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif kind == inspect.Parameter.POSITIONAL_ONLY or (
                positional and kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
            ):
                args.append(value)
            elif (
                value is not self.signature.parameters[name].default
            ):  # a decorated forward may look at what was given
                kwargs[name] = value
        return module.forward(*args, **kwargs)
