"""Backward passes over autograd's graph, in Python: PyTorch's own engine asks the CUDA driver for streams
that are not there.

A node is called as the engine would call it; gradients that meet are added in the order in which the nodes
run, which is the engine's: the node that was made last goes first. Hooks on tensors run, hooks on nodes do
not.
"""

import heapq

import torch


def run_backward(
    outputs, grad_outputs, keep_graph, create_graph, inputs, allow_unreachable=True, accumulate_grad=False
):
    with torch.set_grad_enabled(create_graph):
        return _Pass(inputs, accumulate_grad).run(outputs, grad_outputs, allow_unreachable)


def _order(node):
    """The engine's: sequence numbers fall, and nodes without one (AccumulateGrad) come as soon as they
    can."""
    try:
        return -node._sequence_nr()
    except (AttributeError, RuntimeError):
        return -(1 << 62)


def _metadata(node, number):
    metadata = getattr(node, "_input_metadata", ())
    return metadata[number] if number < len(metadata) else None


class _Pass:
    def __init__(self, inputs, accumulate):
        self._inputs, self._accumulate = tuple(inputs or ()), accumulate
        self._wanted = {}  # (node, input number) -> indices into inputs that are not leaves
        for index, tensor in enumerate(self._inputs):
            if tensor.grad_fn is not None:
                self._wanted.setdefault((tensor.grad_fn, tensor.output_nr), []).append(index)
        self._results = [None] * len(self._inputs)
        self._gradients = {}  # node -> {input number: gradient}

    def run(self, outputs, grad_outputs, allow_unreachable):
        roots = []
        for output, gradient in zip(outputs, grad_outputs):
            if output.grad_fn is None:
                self._leaf(output, gradient)
            else:
                roots.append(output.grad_fn)
                self._add(output.grad_fn, output.output_nr, gradient)
        waiting = self._dependencies(roots)
        queue, serial = [], 0
        for node in dict.fromkeys(roots):
            if waiting[node] == 0:
                heapq.heappush(queue, (_order(node), serial, node))
                serial += 1
        while queue:
            _, _, node = heapq.heappop(queue)
            for (next_node, number), gradient in zip(node.next_functions, self._call(node)):
                if next_node is None:
                    continue
                self._add(next_node, number, gradient)
                waiting[next_node] -= 1
                if waiting[next_node] == 0:
                    heapq.heappush(queue, (_order(next_node), serial, next_node))
                    serial += 1
        return tuple(self._results) if self._inputs else None

    def _dependencies(self, roots):
        """How many edges lead to each node."""
        waiting, stack, seen = {root: 0 for root in roots}, list(roots), set(roots)
        while stack:
            for node, _ in stack.pop().next_functions:
                if node is None:
                    continue
                waiting[node] = waiting.get(node, 0) + 1
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
        return waiting

    def _add(self, node, number, gradient):
        if gradient is None:
            return
        expected = node.variable if hasattr(node, "variable") else _metadata(node, number)
        if (
            expected is not None
        ):  # as the engine does: broadcasting's gradient is summed, a cast's is cast back
            if gradient.shape != expected.shape:
                gradient = gradient.sum_to_size(expected.shape)
            if gradient.dtype != expected.dtype:
                gradient = gradient.to(expected.dtype)
        slots = self._gradients.setdefault(node, {})
        slots[number] = gradient if number not in slots else slots[number] + gradient

    def _call(self, node):
        slots = self._gradients.pop(node, {})
        for number, gradient in slots.items():
            for index in self._wanted.get((node, number), ()):
                self._results[index] = gradient
        edges = node.next_functions
        if hasattr(node, "variable"):  # AccumulateGrad
            self._leaf(node.variable, slots.get(0))
            return ()
        if not slots:
            return [None] * len(edges)
        count = len(node._input_metadata) if hasattr(node, "_input_metadata") else max(slots) + 1
        gradients = [slots.get(number) for number in range(count)]
        call = node.apply if isinstance(node, torch.autograd.function.BackwardCFunction) else node
        if call is not node and node.materialize_grads:
            gradients = [
                self._zeros(meta) if gradient is None else gradient
                for gradient, meta in zip(gradients, node._input_metadata)
            ]
        results = call(*gradients)
        results = results if isinstance(results, tuple) else (results,)
        return [*results, *[None] * (len(edges) - len(results))]

    def _zeros(self, meta):
        return torch.zeros(meta.shape, dtype=meta.dtype, device=meta.device)

    def _leaf(self, variable, gradient):
        if gradient is None:
            return
        wanted = [index for index, tensor in enumerate(self._inputs) if tensor is variable]
        for index in wanted:
            before = self._results[index]
            self._results[index] = gradient if before is None else before + gradient
        if self._accumulate and (wanted or not self._inputs):
            gradient = gradient if torch.is_grad_enabled() else gradient.detach()
            variable.grad = gradient if variable.grad is None else variable.grad + gradient


def install():
    import torch.autograd.graph

    def engine(outputs, *args, **kwargs):
        return run_backward(outputs, *args, **kwargs)

    torch.autograd.graph._engine_run_backward = torch.autograd._engine_run_backward = engine
