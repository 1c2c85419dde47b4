"""Inductor's wrapper module as plain Python: its kernels, and the body of its `call` as a forward.

The wrapper is text that Inductor wrote in this process; what is not known in it is declined, never guessed.
"""

import ast
import textwrap

import torch

GONE = {"assert_size_stride", "assert_alignment"}
KNOWN = {
    "torch",
    "triton",
    "inf",
    "nan",
    "inputs",
    "self",
    "reinterpret",
    "float",
    "int",
    "max",
    "min",
    "range",
    "len",
}


class Unknown(Exception):
    pass


class Kernel:
    """One `async_compile.triton(name, source)`."""

    def __init__(self, name, source):
        self.name = name
        tree = ast.parse(source)
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
        function.decorator_list = [ast.parse("triton.jit", mode="eval").body]
        helpers = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node is not function]
        self.text = "\n\n\n".join(
            ast.unparse(ast.fix_missing_locations(node)) for node in [*helpers, function]
        )
        self.arguments = [arg.arg for arg in function.args.args]
        self.configs, self.meta = choices(source, name)

    def launch(self, arguments):
        config = self.configs[0]
        constants = dict(config.kwargs)
        given = [name for name in self.arguments if name not in constants]
        if len(given) != len(arguments):
            raise Unknown(f"{self.name} is given {len(arguments)} arguments for {len(given)}")
        named = dict(zip(given, arguments))
        grid = self.grid(
            config, {name: value.value for name, value in named.items() if isinstance(value, ast.Constant)}
        )
        words = [f"{name}={value}" for name, value in constants.items()]
        words += [f"num_warps={config.num_warps}", f"num_stages={config.num_stages}"]
        return f"{self.name}[{grid}]({', '.join([ast.unparse(value) for value in arguments] + words)})"

    def grid(self, config, numbers):
        from torch._inductor.runtime.triton_heuristics import GridExpr

        sizes = GridExpr.from_meta(self.meta, config).eval_slow({**numbers, **config.kwargs})
        return f"({', '.join(str(int(size)) for size in sizes)})"


def choices(source, name):
    """The configurations that Inductor's heuristics offer for a kernel, and what its grid follows from."""
    from torch._inductor.runtime import triton_heuristics

    seen = {}

    def captured(
        size_hints, configs, triton_meta, heuristic_type, filename=None, inductor_meta=None, **others
    ):
        seen["configs"], seen["meta"] = configs, inductor_meta or {}
        return lambda function: function

    before, triton_heuristics.cached_autotune = triton_heuristics.cached_autotune, captured
    try:
        import linecache

        path = f"<inductor {name}>"
        linecache.cache[path] = (
            len(source),
            None,
            source.splitlines(True),
            path,
        )  # triton.jit reads the source again
        space = {"__file__": path, "__name__": "inductor_kernel"}
        exec(compile(source, path, "exec"), space)
    finally:
        triton_heuristics.cached_autotune = before
    configs = seen["configs"]
    parameters = space[name].arg_names
    for config in configs:
        config.kwargs = {key: value for key, value in config.kwargs.items() if key in parameters}
    return configs, seen["meta"]


class Wrapper:
    def __init__(self, text, leaves):
        """`leaves`: for each input of the graph, by its name there, how Python reaches it."""
        self.leaves = leaves
        tree = ast.parse(text)
        self.kernels = {}
        for node in tree.body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == "async_compile.triton"
            ):
                kernel_name, source = (arg.value for arg in node.value.args[:2])
                self.kernels[node.targets[0].id] = Kernel(kernel_name, source)
        self.call = next(
            node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "call"
        )

    def write(self, base, parameters, output, checks=()):
        body = Body(self)
        lines = [line for node in self.call.body for line in body.lines(node)]
        lines[-1] = f"return {output(body.results)}"
        self.check("\n".join(lines))
        used = [leaf for leaf in self.leaves.values() if leaf.startswith("inputs")] or list(
            self.leaves.values()
        )
        text = "".join(kernel.text + "\n\n\n" for kernel in self.kernels.values())
        if body.reinterprets:
            text += ("def reinterpret(tensor, sizes, strides, offset):\n"
                     "    return torch.as_strided(tensor, sizes, strides, tensor.storage_offset() + "
                     "offset)\n\n"
                     "\n")  # fmt: skip
        text += f"class ModelNew({base}):\n    def forward(self, {parameters}):\n"
        head = [f"device = {used[0]}.device"] if body.allocates and used else []
        text += textwrap.indent("\n".join([*checks, *head, *lines]), " " * 8) + "\n"
        imports = "import triton\nimport triton.language as tl\n"
        if any(word in text for word in ("triton_helpers", "tl_math", "libdevice", "math.")):
            imports += "from torch._inductor.runtime import triton_helpers\n"
            imports += "from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math\n"
        return {"imports": imports, "classes": text}

    def check(self, text):
        """No name is used that the text does not define."""
        tree = ast.parse("def f():\n" + textwrap.indent(text, "    "))
        stored = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in stored | KNOWN | {"device"} | {
                kernel.name for kernel in self.kernels.values()
            }:
                raise Unknown(f"Inductor's wrapper uses {node.id}")


class Body(ast.NodeTransformer):
    """The statements of `call`, each as lines of text."""

    def __init__(self, wrapper):
        self.wrapper, self.reinterprets, self.allocates, self.results = wrapper, False, False, []

    def lines(self, node):
        if isinstance(node, ast.With):
            if "_DeviceGuard" not in ast.unparse(node.items[0]):
                raise Unknown(f"Inductor's wrapper has {ast.unparse(node.items[0])}")
            return [line for inner in node.body for line in self.lines(inner)]
        text = ast.unparse(node)
        if text == "args.clear()" or "get_raw_stream" in text or text.startswith("torch.cuda.set_device"):
            return []
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func) in GONE
        ):
            return []
        if isinstance(node, ast.Assign) and text.endswith("= args"):
            names = [target.id for target in ast.walk(node.targets[0]) if isinstance(target, ast.Name)]
            return [f"{name} = {self.wrapper.leaves[name]}" for name in names]
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == "run"
        ):
            kernel = self.wrapper.kernels.get(ast.unparse(node.value.func.value))
            if kernel is None:
                raise Unknown(f"Inductor's wrapper runs {ast.unparse(node.value.func)}")
            return [kernel.launch([self.visit(arg) for arg in node.value.args])]
        if isinstance(node, ast.Return):
            results = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
            self.results = [ast.unparse(self.visit(result)) for result in results]
            return ["return ..."]
        if not isinstance(node, (ast.Assign, ast.Expr, ast.Delete)):
            raise Unknown(f"Inductor's wrapper has {text[:80]}")
        return [ast.unparse(ast.fix_missing_locations(self.visit(node)))]

    def visit_Call(self, node):
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name == "empty_strided_cuda":
            self.allocates = True
            sizes, strides, dtype = node.args
            return ast.parse(f"torch.empty_strided({ast.unparse(sizes)}, {ast.unparse(strides)}, "
                             f"device=device, dtype={ast.unparse(dtype)})",
                             mode="eval").body  # fmt: skip
        if name == "reinterpret_tensor":
            self.reinterprets = True
            node.func = ast.Name("reinterpret", ast.Load())
        if name.startswith("extern_kernels."):
            if not hasattr(torch, name.split(".", 1)[1]):
                raise Unknown(f"Inductor's wrapper calls {name}")
            node.func.value = ast.Name("torch", ast.Load())
        return node

    def visit_Name(self, node):
        return ast.parse("torch.ops.aten", mode="eval").body if node.id == "aten" else node
