"""A graph of Dynamo's as a module with state."""

import dataclasses

import torch


@dataclasses.dataclass(frozen=True)
class Place:
    """What one argument of the graph is: "state" (a parameter or buffer), "tensor", "constant" (a size or
    another value that is compared), or "number" (a tensor of one element that the graph only calls item()
    of)."""

    kind: str
    name: str = ""


def _is_item(node):
    return node.op == "call_method" and node.target == "item"


class Number:
    """In place of a tensor of which the graph reads the number."""

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


def placeholders(graph):
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def places_of(graph, state=()):
    """Of each argument what it is; `state` has names of more parameters and buffers."""
    places, taken = [], set()
    for node in placeholders(graph):
        value = node.meta.get("example_value")
        if not isinstance(value, torch.Tensor):
            places.append(Place("constant"))
            continue
        if value.dim() == 0 and value.device.type == "cpu" and node.users and all(map(_is_item, node.users)):
            places.append(Place("number"))
            continue
        source = getattr(node, "_dynamo_source", None)
        guard = getattr(source, "guard_source", None)
        guard = guard() if callable(guard) else guard
        of_module = "MODULE" in getattr(guard, "name", "") or node.name in state
        if not (of_module or isinstance(value, torch.nn.Parameter)):
            places.append(Place("tensor"))
            continue
        name = _short_name(node.name)
        while name in taken:
            name += "_"
        taken.add(name)
        places.append(Place("state", name))
    return places


def _short_name(name):
    """ "l_self_modules_fc_parameters_weight_" as fc_weight: a name that a person knows."""
    words = [word for word in name.strip("_").split("_") if word]
    kept = [word for word in words if word not in ("modules", "parameters", "buffers")]
    if len(kept) > 2 and kept[0].lower() == "l":
        kept = kept[2:]
    text = "_".join(kept) or "state"
    return text if text.isidentifier() and not hasattr(torch.nn.Module(), text) else f"p_{text}"


class Lifted(torch.nn.Module):
    """A graph whose parameters and buffers are state, and whose numbers are constants; forward takes the
    other tensors."""

    def __init__(self, graph, places, args):
        super().__init__()
        self._call = graph.forward  # no submodule: Dynamo sets attributes of a graph at any time
        self._places = places
        self._constants = tuple(
            arg if place.kind in ("constant", "number") else None
            for arg, place in zip(args, places, strict=True)
        )
        for place, arg in zip(places, args):
            if place.kind == "state" and isinstance(arg, torch.nn.Parameter):
                self.register_parameter(place.name, arg)
            elif place.kind == "state":
                self.register_buffer(place.name, arg)
        self.training = False

    def hold(self, args):
        """Takes the state from a call's arguments; returns the other tensors."""
        tensors = []
        for place, arg in zip(self._places, args):
            if place.kind == "tensor":
                tensors.append(arg)
            elif place.kind == "state":
                held = self._parameters if place.name in self._parameters else self._buffers
                held[place.name] = arg
        return tuple(tensors)

    def forward(self, *tensors):
        rest = iter(tensors)
        args = []
        for place, constant in zip(self._places, self._constants):
            if place.kind == "tensor":
                args.append(next(rest))
            else:
                args.append(getattr(self, place.name) if place.kind == "state" else constant)
        return self._call(*args)
