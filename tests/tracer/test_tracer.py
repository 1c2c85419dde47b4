"""What the tracer answers: phases, state, known values, randomness, torch.cuda, and what goes wrong."""

import json
import pathlib
import unittest

from identity import HEAD, count_inputs, source_of, trace

from nereid._tracer import tracer
from nereid._tracer.command import reference_inputs

MODULES = pathlib.Path(__file__).parent / "modules"
CANDIDATE_HEAD = HEAD + "import triton\nimport triton.language as tl\n"


def forward_steps(answer, call=2):
    return [phase for phase in answer["trace"]["phases"] if phase["phase"] == "forward"][call]["steps"]


def calls(answer, call=2):
    return [step.get("call", "launch") for step in forward_steps(answer, call)]


def storage_of(answer, arg):
    document = answer["trace"]
    return document["storages"][document["values"][arg["v"]]["s"]]


def output(answer, call=2):
    return [phase for phase in answer["trace"]["phases"] if phase["phase"] == "forward"][call]["output"]


class Case(unittest.TestCase):
    def module(self, init, forward, inputs="randn(3, 4)", **options):
        answer = trace(source_of(init, forward, inputs), "case", **options)
        self.assertIn("trace", answer, json.dumps(answer)[:2000])
        return answer

    def refused(self, init, forward, inputs="randn(3, 4)"):
        answer = trace(source_of(init, forward, inputs), "case")
        self.assertIn("untraceable", answer)
        return answer["untraceable"]


class Phases(Case):
    def test_order(self):
        answer = self.module("self.m = nn.Linear(4, 4)", "self.m(a)")
        self.assertEqual(
            ["module", "init"] + ["make_inputs", "forward"] * 3,
            [phase["phase"] for phase in answer["trace"]["phases"]],
        )
        self.assertEqual(["aten::linear"], calls(answer))
        self.assertEqual(["case.py", 12], forward_steps(answer)[0]["at"])

    def test_tensors_made_at_import(self):
        source = source_of(None, "a * SCALE", "randn(3, 4)").replace(
            "\nclass Model", "SCALE = torch.full((4,), 2.0)\nclass Model"
        )
        answer = trace(source, "case")
        steps = answer["trace"]["phases"][0]["steps"]
        self.assertEqual(["aten::full"], [step["call"] for step in steps])

    def test_state(self):
        init = ("self.a = nn.Linear(4, 4)\nself.b = nn.Linear(4, 4, bias=False)\n"
                "self.b.weight = self.a.weight\n"
                "self.register_buffer('kept', torch.ones(2))\n"
                "self.register_buffer('lost', torch.ones(2), persistent=False)")  # fmt: skip
        state = {entry["name"]: entry for entry in self.module(init, "self.b(self.a(a))")["trace"]["state"]}
        self.assertEqual(["a.weight", "a.bias", "b.weight", "kept", "lost"], list(state))
        self.assertEqual(state["a.weight"]["value"], state["b.weight"]["value"])
        self.assertTrue(state["kept"]["persistent"] and not state["lost"]["persistent"])
        self.assertTrue(state["a.bias"]["parameter"] and not state["kept"]["parameter"])

    BUFFER = "self.register_buffer('m', torch.zeros(4))"

    def test_a_name_that_gets_another_tensor_is_a_copy_into_its_own(self):
        answer = self.module(self.BUFFER, "self.m = self.m * 0.5 + a[0]\nreturn a - self.m")
        last = forward_steps(answer)[-1]
        held = answer["trace"]["state"][0]["value"]
        self.assertEqual("aten::copy_", last["call"])
        self.assertEqual([{"v": held}, held], [last["args"][0], last["result"]["v"]])
        reads = [arg for step in forward_steps(answer) for arg in step["args"][:1]]
        self.assertIn({"v": held}, reads[:-1], "the next call reads what has the name")

    def test_a_tensor_that_gets_other_data_is_a_copy_too(self):
        answer = self.module(self.BUFFER, "y = a - self.m\nself.m.data = torch.ones(4)\nreturn y")
        self.assertEqual("aten::copy_", calls(answer)[-1])

    def test_a_name_without_its_tensor_is_noted(self):
        for change in ("del self.m", "self.m = torch.zeros(5)", "self.m = None"):
            answer = self.module(self.BUFFER, f"y = a * 2\nif hasattr(self, 'm'): {change}\nreturn y")
            self.assertIn("forward leaves m without the tensor that it had", answer["trace"]["notes"], change)

    def test_a_tensor_that_is_returned_is_cloned_before_it_is_overwritten(self):
        for returned in ("old", "(a, [old])", "{'m': old[1:]}"):
            answer = self.module(self.BUFFER, f"old = self.m\nself.m = a[0] * 2\nreturn {returned}")
            clone, copy = forward_steps(answer)[-2:]
            self.assertEqual(["aten::clone", "aten::copy_"], [clone["call"], copy["call"]])
            forward = [phase for phase in answer["trace"]["phases"] if phase["phase"] == "forward"][-1]
            self.assertIn(str(clone["result"]), str(forward["output"]))
            self.assertEqual(["forward leaves m to another tensor"], answer["trace"]["notes"])

    def test_an_input_that_becomes_another_view_is_noted(self):
        answer = self.module(None, "y = a * 2\na.t_()\nreturn y")
        self.assertEqual(["forward leaves input 0 as another view"], answer["trace"]["notes"])

    def test_untouched_state_leaves_no_step(self):
        answer = self.module("self.m = nn.BatchNorm1d(4)", "self.m(a)")
        self.assertNotIn("aten::copy_", calls(answer))

    def test_an_input_that_is_given_twice_is_two(self):
        source = source_of(None, "a * b", "x, x").replace(
            "return [x, x]", "x = torch.randn(3, 4)\n    return [x, x]"
        )
        answer = trace(source, "case")
        inputs = [phase for phase in answer["trace"]["phases"] if phase["phase"] == "make_inputs"][2][
            "inputs"
        ]
        self.assertEqual(2, len({storage["name"] for storage in (storage_of(answer, arg) for arg in inputs)}))

    def test_an_open_order_of_topk_is_recorded(self):
        answer = self.module(None, "torch.topk(a, 2, sorted=False)[0]")
        step = next(step for step in forward_steps(answer) if step["call"] == "aten::topk")
        self.assertEqual(False, step["args"][4])

    def test_moves_and_conversions_keep_what_is_shared(self):
        init = (
            "self.a = nn.Linear(4, 4)\nself.b = nn.Linear(4, 4, bias=False)\nself.b.weight ="
            " self.a.weight\nself.half()\nself.cuda()"
        )
        answer = self.module(init, "self.b(self.a(a.half()))")
        state = {entry["name"]: entry for entry in answer["trace"]["state"]}
        self.assertEqual(state["a.weight"]["value"], state["b.weight"]["value"])
        self.assertEqual("f16", answer["trace"]["values"][state["a.weight"]["value"]]["t"])

    def test_views_and_outputs_alias_as_in_pytorch(self):
        answer = self.module(None, "y = a + 1\nreturn y, y[1:], y.t(), a")
        y, tail, transposed, given = output(answer)["tuple"]
        values = answer["trace"]["values"]
        self.assertEqual(1, len({values[arg["v"]]["s"] for arg in (y, tail, transposed)}))
        self.assertEqual(
            {"s": values[y["v"]]["s"], "t": "f32", "n": [2, 4], "d": [4, 1], "o": 4}, values[tail["v"]]
        )
        self.assertEqual([1, 4], values[transposed["v"]]["d"])
        self.assertEqual("input", storage_of(answer, given)["role"])

    def test_module_constants_may_be_overridden(self):
        source = source_of(None, "a * 2", "randn(N, 4)").replace("import math", "N = 1024\nimport math")
        from nereid._tracer import tracer

        answer = tracer.handle(
            {
                "source": source,
                "path": "case.py",
                "class": "Model",
                "draw": 0,
                "globals": {"N": 4},
                "calls": 1,
                "reference": None,
            }
        )
        self.assertEqual([4, 4], answer["trace"]["values"][output(answer, 0)["v"]]["n"])

    def test_python_outputs(self):
        answer = self.module(
            "import dataclasses\nself.D = dataclasses.make_dataclass('D', ['x', 'n'])",
            "{'d': self.D(a, 3), 'f': math.inf, 'o': object()}",
        )
        encoded = dict(output(answer)["dict"])
        self.assertEqual("object", encoded["d"]["object"]["kind"])
        self.assertEqual(3, dict(encoded["d"]["object"]["items"])["n"])
        self.assertEqual({"f": "inf"}, encoded["f"])
        self.assertEqual({"opaque": "object"}, encoded["o"])

    def test_outputs_keep_the_kind_of_their_container(self):
        kinds = {
            "collections.namedtuple('T', 'x n')(a, 3)": ("namedtuple", "case:T"),
            "types.SimpleNamespace(x=a, n=3)": ("object", "types:SimpleNamespace"),
            "Plain(a, 3)": ("object", ":Plain"), "Frozen(a, 3)": ("object", ":Frozen"),
            "Mapping(x=a, n=3)": ("mapping", ":Mapping"),
        }  # fmt: skip
        classes = (
            "import collections, dataclasses, types\nclass Plain:\n    def __init__(self, x, n):\n       "
            " self.x, self.n = x, n\n@dataclasses.dataclass(frozen=True)\nclass Frozen:\n    x: object\n   "
            " n: int\n@dataclasses.dataclass\nclass Mapping(collections.OrderedDict):\n    x: object\n    n:"
            " int\n    def __post_init__(self):\n        super().__init__(x=self.x, n=self.n)\n"
        )
        for forward, (kind, type_) in kinds.items():
            source = classes + source_of(None, forward, "randn(2, 3)")
            answer = tracer.handle(
                {
                    "source": source,
                    "path": "case.py",
                    "class": "Model",
                    "draw": 0,
                    "calls": 1,
                    "reference": None,
                }
            )
            made = output(answer, 0)["object"]
            self.assertEqual((kind, ["x", "n"]), (made["kind"], [name for name, _ in made["items"]]), forward)
            if kind != "namedtuple":
                self.assertEqual(type_, made["type"])
            self.assertEqual(3, dict(made["items"])["n"])

    def test_views_lie_inside_their_storages(self):
        from identity import validate

        for forward in (
            "a.expand(2, 3, 4)[1].t()[1:]",
            "a.new_empty(0).resize_(5, 5)",
            "torch.as_strided(a, (2, 2), (1, 3), 2)",
        ):
            self.assertEqual([], validate(self.module(None, forward)["trace"]))


class Configurations(Case):
    """What a reference gives to a constructor or to forward reaches its candidate as an object of the same
    fields."""

    REFERENCE = (
        HEAD
        + "import dataclasses, enum, types\nimport torch.nn.functional as F\nclass Mode(enum.Enum):\n    FAST"
        " = 1\n    SLOW = 2\n@dataclasses.dataclass(frozen=True)\nclass Config:\n    width: int\n    mode:"
        " Mode\n    act: object = F.gelu\n    @property\n    def half(self):\n        return self.width //"
        " 2\nclass Model(nn.Module):\n    def __init__(self, config, more):\n        super().__init__()\n  "
        "      self.config, self.more = config, more\n    def forward(self, x, batch):\n        return"
        " self.config.act(x[:, : self.config.half]) * self.more.scale + batch.bias +"
        " self.config.mode.value\ndef get_inputs():\n    return [torch.randn(3, 8),"
        " types.SimpleNamespace(bias=torch.randn(4), name='b')]\ndef get_init_inputs():\n    return"
        " [Config(8, Mode.SLOW), types.SimpleNamespace(scale=0.5)]\n"
    )

    def traced(self, source):
        reference = tracer.handle(
            {
                "source": self.REFERENCE,
                "path": "reference.py",
                "class": "Model",
                "draw": 0,
                "calls": 3,
                "reference": None,
            }
        )
        self.assertIn("trace", reference, json.dumps(reference)[:2000])
        request = {
            "source": source,
            "path": "candidate.py",
            "class": "ModelNew",
            "draw": 0,
            "calls": 3,
            "reference": reference_inputs(reference["trace"]),
        }
        answer = tracer.handle(request)
        self.assertIn("trace", answer, json.dumps(answer)[:2000])
        return reference, answer

    def test_with_the_candidates_own_class(self):
        reference, answer = self.traced(self.REFERENCE.replace("Model(nn", "ModelNew(nn"))
        self.assertEqual(calls(reference), calls(answer))

    def test_without_the_class(self):
        body = self.REFERENCE[self.REFERENCE.index("class Model(") : self.REFERENCE.index("def get_inputs")]
        reference, answer = self.traced(HEAD + body.replace("Model(nn", "ModelNew(nn"))
        self.assertEqual(calls(reference), calls(answer))

    def test_a_tensor_in_an_object_is_an_input(self):
        reference, _ = self.traced(self.REFERENCE.replace("Model(nn", "ModelNew(nn"))
        phase = [phase for phase in reference["trace"]["phases"] if phase["phase"] == "forward"][2]
        bias = dict(phase["inputs"][1]["object"]["items"])["bias"]
        self.assertEqual(
            ("input", "1.bias"), tuple(storage_of(reference, bias)[key] for key in ("role", "name"))
        )


class KnownValues(Case):
    def test_integer_inputs_that_were_read_are_pinned(self):
        answer = self.module(
            None, "a[: int(b.max())], c + 1", "randn(9, 4), randint(1, 5, (3,)), randint(0, 3, (2,))"
        )
        inputs = [phase for phase in answer["trace"]["phases"] if phase["phase"] == "forward"][2]["inputs"]
        read, unread = (storage_of(answer, arg) for arg in inputs[1:])
        self.assertTrue(read["pinned"] and "data" in read)
        self.assertTrue("data" in unread and "pinned" not in unread)
        self.assertNotIn("data", storage_of(answer, inputs[0]))

    def test_what_is_computed_from_known_integers_is_known(self):
        answer = self.module(
            None,
            "o = F.pad(b.cumsum(0), (1, 0)).tolist()\nreturn a[o[0]:o[1]], (b.float() / 2).sum().item()",
            "randn(9, 4), torch.full((2,), 3)",
        )
        _, half = output(answer)["tuple"]
        self.assertEqual(3.0, half)

    def test_numpy_gets_what_is_known(self):
        answer = self.module(
            None,
            "import numpy\nreturn a, (4 * b.cumsum(0).numpy() + numpy.asarray(torch.arange(3))).tolist()",
            "randn(9, 4), torch.tensor([5, 6, 7])",
        )
        self.assertEqual([20, 45, 74], output(answer)["tuple"][1])

    def test_writes_are_seen_in_order(self):
        answer = self.module(
            None,
            "t = torch.arange(4)\nx = t[1].item()\nt[1:] *= 10\ny = t[1].item()\nt.zero_()\nreturn x, y,"
            " t[1].item(), t.sum().item()",
        )
        self.assertEqual([1, 10, 0, 0], output(answer)["tuple"])

    def test_draws_differ_and_repeat(self):
        read = lambda draw: output(
            self.module(None, "b.tolist()", "randn(1), randint(0, 1000, (4,))", draw=draw)
        )  # noqa: E731
        self.assertEqual(read(1), read(1))
        self.assertNotEqual(read(1), read(2))

    def test_floating_point_data_is_not_known(self):
        for forward in ("a.sum().item()", "a * 2 if a.sum() > 0 else a", "float(a[0, 0])", "a.tolist()",
                        "a.numpy()", "a[a > 0]", "a.nonzero()",
                        "torch.randint(0, 5, (1,)).item()", "self.w[0].item()",
                        "torch.tensor([a[0, 0], 1.0])"):  # fmt: skip
            refusal = self.refused("self.w = nn.Parameter(torch.randn(3))", forward)
            self.assertEqual(("forward", 12), (refusal["phase"], refusal["line"]), forward)
            self.assertIn("reads", refusal["message"], forward)

    def test_several_files_are_traced_as_each_alone(self):
        source = (MODULES / "softmax_candidate.py").read_text().replace("class ModelNew(", "class Model(")
        requests = [{"source": text, "path": "same_name.py", "class": "Model", "draw": 0, "globals": {},
                    "calls": 2, "reference": None}
                    for text in (source, source.replace("tl.max(", "tl.min("), "\n" + source,
                        source)]  # fmt: skip
        alone = [tracer.handle(request)["trace"] for request in requests]
        together = [answer["trace"] for answer in tracer.handle({"several": requests})["several"]]
        for one, other in zip(alone, together):
            self.assertEqual({**one, "seconds": 0}, {**other, "seconds": 0})
        ttir = [trace["kernels"][0]["ttir"] for trace in together]
        self.assertEqual(len(set(ttir)), 3)  # another text, and the same at another line

    def test_constants_are_in_the_trace(self):
        answer = self.module("self.t = torch.tensor([1.0, 2.5])", "a[:, :2] * self.t * torch.tensor(3)")
        constants = [storage for storage in answer["trace"]["storages"] if storage["role"] == "constant"]
        self.assertEqual("AACAPwAAIEA=", constants[0]["data"])

    def test_a_candidate_gets_the_integers_of_its_reference(self):
        source = source_of(None, "b.tolist()", "randn(3), randint(0, 1000, (4,))")
        reference = trace(source, "case")
        candidate = trace(
            source.replace("class Model(", "class ModelNew("),
            "case",
            class_name="ModelNew",
            reference=reference_inputs(reference["trace"]),
        )
        self.assertEqual(
            [output(reference, call) for call in range(3)], [output(candidate, call) for call in range(3)]
        )
        self.assertEqual(
            [],
            [
                phase["steps"]
                for phase in candidate["trace"]["phases"]
                if phase["phase"] == "make_inputs" and phase["steps"]
            ],
        )


class Cuda(Case):
    def test_queries(self):
        forward = ("p = torch.cuda.get_device_properties(0)\n"
                   "return p.multi_processor_count, p.name, torch.cuda.get_device_capability(), "
                   "torch.cuda.is_available(), a.is_cuda, a.device.type, torch.cuda.current_device(), "
                   "a.get_device()")  # fmt: skip
        self.assertEqual(
            [132, "NVIDIA H200", {"tuple": [9, 0]}, True, True, "cuda", 0, 0],
            output(self.module(None, forward))["tuple"],
        )

    def test_steps_say_what_their_stream_waited_for(self):
        forward = ("s, t = torch.cuda.Stream(), torch.cuda.Stream()\nx = a + 1\n"
                   "s.wait_stream(torch.cuda.current_stream())\n"
                   "with torch.cuda.stream(s):\n    y = x + 2\n    e = s.record_event()\n    z = y + 3\n"
                   "t.wait_event(e)\nwith t:\n    w = y + 4\ntorch.cuda.current_stream().wait_stream(t)\n"
                   "return w + 5")  # fmt: skip
        answer = self.module(None, forward)
        orders = [step["stream"] for step in forward_steps(answer, 0)]
        s, t = orders[1][0], orders[3][0]
        self.assertEqual(
            [
                [0, 1, []],
                [s, 1, [[0, 2]]],
                [s, 2, [[0, 2]]],
                [t, 1, [[0, 2], [s, 2]]],
                [0, 2, [[s, 2], [t, 2]]],
            ],
            orders,
        )
        phase = [phase for phase in answer["trace"]["phases"] if phase["phase"] == "forward"][0]
        self.assertEqual([[s, 2], [t, 2]], phase["joined"])

    def test_without_other_streams_nothing_is_said_of_streams(self):
        answer = self.module(None, "torch.cuda.current_stream().synchronize()\nreturn a + 1")
        self.assertNotIn("stream", forward_steps(answer)[0])

    def test_synchronizing_the_device_ends_all_work(self):
        forward = (
            "s = torch.cuda.Stream()\ntorch.cuda.synchronize()\nwith s:\n    y = a +"
            " 1\ntorch.cuda.synchronize()\nreturn y + 1"
        )
        orders = [step["stream"] for step in forward_steps(self.module(None, forward), 0)]
        s = orders[0][0]
        self.assertEqual([[s, 1, [[0, 1]]], [0, 1, [[s, 2]]]], orders)

    def test_streams_and_events_record_nothing(self):
        forward = ("s = torch.cuda.Stream()\ns.wait_stream(torch.cuda.current_stream())\n"
                   "with torch.cuda.stream(s):\n    y = a + 1\n"
                   "e = torch.cuda.Event(enable_timing=True)\ne.record()\ntorch.cuda.synchronize()\n"
                   "y.record_stream(s)\nreturn y")  # fmt: skip
        self.assertEqual(["aten::add.Tensor"], calls(self.module(None, forward)))

    def test_a_graph_records_when_captured_and_works_when_replayed(self):
        init = "self.g = None\nself.x = torch.zeros(3, 4)"
        forward = ("if self.g is None:\n    self.g = torch.cuda.CUDAGraph()\n"
                   "    with torch.cuda.graph(self.g):\n        self.y = self.x * 2\n"
                   "self.x.copy_(a)\nself.g.replay()\nreturn self.y.clone()")  # fmt: skip
        answer = self.module(init, forward)
        for call in range(3):
            self.assertEqual(["aten::copy_", "aten::mul.Tensor", "aten::clone"], calls(answer, call))

    def test_a_graphed_callable_copies_its_arguments_and_returns_static_outputs(self):
        forward = ("if self.g is None:\n    self.g = torch.cuda.make_graphed_callables(lambda x: x * 2, "
                   "(torch.zeros_like(a),), num_warmup_iters=1)\n"
                   "return self.g(a)")  # fmt: skip
        answer = self.module("self.g = None", forward)
        self.assertEqual(
            ["aten::zeros_like", "aten::mul.Tensor", "aten::copy_", "aten::mul.Tensor", "aten::detach"],
            calls(answer, 0),
        )
        for call in (1, 2):
            self.assertEqual(["aten::copy_", "aten::mul.Tensor", "aten::detach"], calls(answer, call))
        values = answer["trace"]["values"]
        static = {values[output(answer, call)["v"]]["s"] for call in range(3)}
        self.assertEqual(1, len(static))

    def test_autocast_casts_are_recorded(self):
        answer = self.module(
            "self.m = nn.Linear(4, 4)",
            "with torch.autocast('cuda', dtype=torch.bfloat16):\n    return self.m(a).relu() @ a.t()",
        )
        value = answer["trace"]["values"][output(answer)["v"]]
        self.assertEqual("bf16", value["t"])
        self.assertIn("aten::_to_copy", calls(answer))

    def test_threads_are_recorded(self):
        forward = (
            "import threading\nout = []\nt = threading.Thread(target=lambda: out.append(a +"
            " 1))\nt.start()\nt.join()\nreturn out[0] * 2"
        )
        self.assertEqual(["aten::add.Tensor", "aten::mul.Tensor"], calls(self.module(None, forward)))

    def test_work_in_a_bare_thread_is_not_lost(self):
        forward = ("import _thread, time\nout = []\n_thread.start_new_thread(lambda: out.append(a + 1), ())\n"
                   "while not out:\n    time.sleep(0.001)\nreturn out[0] * 2")  # fmt: skip
        self.assertEqual(["aten::add.Tensor", "aten::mul.Tensor"], calls(self.module(None, forward)))

    def test_seeds(self):
        answer = self.module(
            None,
            "torch.manual_seed(7)\ng = torch.Generator(device='cuda').manual_seed(9)\nreturn torch.randn(2),"
            " torch.randn(2, generator=g)",
        )
        steps = forward_steps(answer)
        self.assertEqual(["nereid::manual_seed", "aten::randn", "aten::randn.generator"], calls(answer))
        self.assertEqual([7], steps[0]["args"])
        (name,) = [arg["generator"] for key, arg in steps[2]["kwargs"] if key == "generator"]
        self.assertTrue(name.startswith("cuda:9#"), name)


class Composites(Case):
    def test_parts_are_listed(self):
        (step,) = forward_steps(
            self.module(None, "F.scaled_dot_product_attention(a, a, a)", "randn(1, 2, 3, 8)")
        )
        self.assertEqual("aten::scaled_dot_product_attention", step["call"])
        self.assertTrue(step["parts"])

    def test_composites_that_no_device_changes_are_taken_apart(self):
        self.assertEqual(["aten::_softmax"], calls(self.module(None, "torch.softmax(a, -1)")))
        self.assertEqual(
            ["aten::addmm"], calls(self.module(None, "torch.addmm(a[0], a, a.t()[:, :1].expand(4, 4))"))[-1:]
        )


class Trouble(Case):
    def test_malformed(self):
        for source, words in (
            ("def f(:", "SyntaxError"),
            ("x = 1", "no class Model"),
            ("class Model: pass", "get_inputs"),
            ("\0", "null bytes"),
        ):
            answer = trace(source, "case")
            self.assertIn(words, answer["malformed"]["message"])

    def test_where_an_error_was(self):
        refusal = self.refused(None, "y = a + 1\nreturn undefined_name(y)")
        self.assertEqual(("NameError", "case.py", 13), (refusal["type"], refusal["file"], refusal["line"]))
        self.assertEqual("return undefined_name(y)", refusal["code"])

    def test_exits_and_recursion_do_not_silence_the_tracer(self):
        self.assertEqual("SystemExit", self.refused(None, "raise SystemExit(0)\nreturn a")["type"])
        self.assertEqual("RecursionError", self.refused(None, "f = lambda x: f(x)\nreturn f(a)")["type"])
        self.assertEqual("KeyboardInterrupt", self.refused(None, "raise KeyboardInterrupt\nreturn a")["type"])

    def test_too_many_steps(self):
        from nereid._tracer import recorder

        before, recorder.MAX_STEPS = recorder.MAX_STEPS, 100
        try:
            self.assertIn(
                "more than 100",
                self.refused(None, "for _ in range(1000):\n    a = a + 1\nreturn a")["message"],
            )
        finally:
            recorder.MAX_STEPS = before

    def test_tensors_without_strides_are_refused(self):
        for forward, words in (("a.to_sparse().to_dense()", "sparse"),
                               ("a.to_sparse_csr() @ a.t()", "sparse"),
                               ("torch.sparse.mm(a.to_sparse(), a.t())", "sparse"),
                               ("torch.sparse_coo_tensor(torch.tensor([[0], [1]]), a[0, :1], (3, 3))",
                                   "sparse"),
                               ("torch.nested.nested_tensor([a, a[:2]])", "nested")):  # fmt: skip
            refusal = self.refused(None, forward)
            self.assertIn(words, refusal["message"], forward)
            self.assertEqual(12, refusal["line"], forward)

    def test_named_tensors_and_subclasses_are_refused_with_advice(self):
        subclass = "class Mine(torch.Tensor):\n    pass\n"
        for forward, words in (("torch.zeros(2, 3, names=('n', 'c'))", "leave the names out"),
                               ("a.refine_names('n', 'c').sum('c')", "leave the names out"),
                               ("a.rename('n', 'c').align_to('c', 'n')", "leave the names out"),
                               (subclass + "return a.as_subclass(Mine) + 1",
                                   "plain tensor, and separately what Mine"),
                               ("torch.nested.nested_tensor([a])", "pad the sequences"),
                               ("a.to_sparse()", "keep the tensor dense")):  # fmt: skip
            refusal = self.refused(None, forward)
            self.assertIn(words, refusal["message"], forward)
            self.assertEqual(12 + forward.count("\n"), refusal["line"], forward)
        self.assertEqual(["aten::add.Tensor"], calls(self.module(None, "a.as_subclass(torch.Tensor) + 1")))

    def test_generator_states_are_put_back_where_they_were_taken(self):
        for init, forward, words in (("self.s = torch.get_rng_state()",
                                     "torch.set_rng_state(self.s)\nreturn a", "taken in init"),
                                     (None, "torch.set_rng_state(torch.get_rng_state().clone())\nreturn a",
                                         "a copy or bytes of one's own"),
                                     (None, "torch.set_rng_state(torch.zeros(5056, dtype=torch.uint8))\n"
                                            "return a", "a copy or bytes of one's own"),
                                     (None, "torch.get_rng_state().sum().item()", "reads")):  # fmt: skip
            self.assertIn(words, self.refused(init, forward)["message"], forward)
        answer = self.module(
            None,
            "s = torch.cuda.get_rng_state()\nx = torch.randn(3)\ntorch.cuda.set_rng_state(s)\nreturn x,"
            " torch.randn(3), s.numel()",
        )
        self.assertEqual(
            ["nereid::save_generator", "aten::randn", "nereid::restore_generator", "aten::randn"],
            calls(answer),
        )
        self.assertEqual(16, output(answer)["tuple"][2])

    def test_lazy_parameters_that_no_call_shaped_are_no_state(self):
        answer = self.module(
            "self.m = nn.LazyLinear(3)\nself.n = nn.Linear(4, 2)", "self.m(a) + self.n(a).sum()"
        )
        self.assertEqual(["n.weight", "n.bias"], [entry["name"] for entry in answer["trace"]["state"]])

    def test_what_other_libraries_get_is_refused(self):
        for forward in ("torch.utils.dlpack.to_dlpack(a)", "a.__dlpack__()", "a.cpu().numpy()"):
            self.refused(None, forward + "\nreturn a")


assert count_inputs  # used by test modules that import from here

if __name__ == "__main__":
    unittest.main()
