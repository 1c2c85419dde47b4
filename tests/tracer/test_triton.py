"""Kernels and launches: what of Python's arguments reaches the TTIR, and every way to launch."""

import json
import re
import unittest

from identity import HEAD, trace

KERNELS = (
    HEAD
    + """
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def add(x, y, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + scale * tl.load(y + i, mask=m), mask=m)

"""
)


def module(body, kernels="", init="pass", inputs="randn(64), randn(64)"):
    lines = "\n".join("        " + line for line in body.split("\n"))
    return (f"{KERNELS}{kernels}\nclass Model(nn.Module):\n    def __init__(self):\n"
            f"        super().__init__()\n        {init}\n"
            f"    def forward(self, a, b):\n        out = torch.empty_like(a)\n{lines}\n        return out\n"
            f"def get_inputs():\n    return [{inputs}]\ndef get_init_inputs():\n    return []\n")  # fmt: skip


def parameters_of(ttir):
    """How many parameters the kernel's TTIR function has."""
    start = ttir.index("tt.func public @")
    head = ttir[start : ttir.index("attributes", start)]
    return len(re.findall(r"%\w+: ", head))


class Case(unittest.TestCase):
    def traced(self, body, *args, **kwargs):
        answer = trace(module(body, *args, **kwargs), "case")
        self.assertIn("trace", answer, json.dumps(answer)[:2000])
        self.document = answer["trace"]
        steps = [phase for phase in self.document["phases"] if phase["phase"] == "forward"][2]["steps"]
        launches = [step for step in steps if "launch" in step]
        for launch in launches:
            for alternative in launch["launch"]:
                kernel = self.document["kernels"][alternative["kernel"]]
                covered = sum(
                    1 + 2 * len(arg["shape"]) if "desc" in arg else 1 for arg in alternative["args"]
                )
                self.assertEqual(parameters_of(kernel["ttir"]), covered, kernel["ttir"][:400])
        return launches

    def only(self, *args, **kwargs):
        (launch,) = self.traced(*args, **kwargs)
        (alternative,) = launch["launch"]
        return alternative

    def refused(self, body, *args, **kwargs):
        answer = trace(module(body, *args, **kwargs), "case")
        self.assertNotIn("trace", answer)
        return answer

    def kernel(self, alternative):
        return self.document["kernels"][alternative["kernel"]]


class Launches(Case):
    def test_arguments(self):
        launch = self.only("add[(1,)](a, b[3:], out, 61, 0.5, BLOCK=64)")
        self.assertEqual([1, 1, 1], launch["grid"])
        self.assertEqual([{"i": 61}, {"x": 0.5}], launch["args"][3:])
        values = self.document["values"]
        self.assertEqual([0, 3, 0], [values[arg["p"]]["o"] for arg in launch["args"][:3]])
        kernel = self.kernel(launch)
        self.assertEqual([["BLOCK", "64"]], kernel["constants"])
        self.assertEqual("add", kernel["name"])
        self.assertEqual(4, kernel["options"]["num_warps"])
        self.assertEqual(["case.py", KERNELS.split("def add")[0].count("\n") + 1], kernel["at"])
        self.assertIn("#loc", kernel["ttir"])
        self.assertIn('"case.py":', kernel["ttir"])

    def test_ones_and_nones_are_not_parameters(self):
        kernels = ("@triton.jit\ndef k(x, maybe, n, one, out, BLOCK: tl.constexpr):\n"
                   "    i = tl.arange(0, BLOCK) * one\n    v = tl.load(x + i, mask=i < n)\n"
                   "    if maybe is not None:\n        v += tl.load(maybe + i, mask=i < n)\n"
                   "    tl.store(out + i, v, mask=i < n)\n")  # fmt: skip
        self.assertEqual(3, len(self.only("k[(1,)](a, None, 64, 1, out, BLOCK=64)", kernels)["args"]))
        self.assertEqual(4, len(self.only("k[(1,)](a, b, 64, 1, out, BLOCK=64)", kernels)["args"]))

    def test_tuples_are_flattened(self):
        kernels = ("@triton.jit\ndef k(pointers, sizes, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n"
                   "    m = i < sizes[0]\n"
                   "    tl.store(pointers[1] + i, tl.load(pointers[0] + i, mask=m) * sizes[2], "
                   "mask=m)\n")  # fmt: skip
        args = self.only("k[(1,)]((a, out), (64, 1, 2.5), BLOCK=64)", kernels)["args"]
        self.assertEqual([["p", "o"], ["p", "o"], ["i"], ["x"]], [list(arg) for arg in args])

    def test_host_descriptors(self):
        kernels = "@triton.jit\ndef k(x, y, BLOCK: tl.constexpr):\n    y.store([0, 0], x.load([0, 0]) + 1)\n"
        body = ("x = TensorDescriptor.from_tensor(a.view(8, 8), [8, 8])\n"
                "y = TensorDescriptor(out, [8, 8], [8, 1], [8, 8], 'nan')\n"
                "k[(1,)](x, y, BLOCK=8)")  # fmt: skip
        first, second = self.only(body, kernels)["args"]
        self.assertEqual(
            ([8, 8], [8, 1], [8, 8], False), tuple(first[key] for key in ("shape", "strides", "block", "nan"))
        )
        self.assertTrue(second["nan"])

    def test_addresses_lead_back_to_tensors(self):
        class_ = (
            "class P:\n    dtype = torch.float32\n    def __init__(self, p): self.p = p\n    def"
            " data_ptr(self): return self.p\n"
        )
        launch = self.only("add[(1,)](P(a.data_ptr() + 16), b, out, 60, 0.5, BLOCK=64)", class_)
        self.assertEqual(16, launch["args"][0]["o"])
        self.assertIn(
            "belongs to no tensor",
            json.dumps(self.refused("add[(1,)](P(4096), b, out, 60, 0.5, BLOCK=64)", class_)),
        )

    TABLE = ("@triton.jit\ndef through(table, out, n, BLOCK: tl.constexpr):\n"
             "    i = tl.arange(0, BLOCK)\n    address = tl.load(table + tl.program_id(0))\n"
             "    if address != 0:\n"
             "        x = %s\n"
             "        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)\n")  # fmt: skip
    POINTER = "address.to(tl.pointer_type(tl.float32))"

    def through(self, table, pointer=POINTER, before=""):
        body = f"{before}\nt = torch.tensor({table}, device='cuda')\nthrough[(2,)](t, out, 64, BLOCK=64)"
        return self.only(body.strip(), self.TABLE % pointer)

    def test_tables_of_addresses_become_pointers(self):
        launch = self.through("[b[8:].data_ptr(), a.data_ptr(), b.data_ptr(), 0]")
        text = self.kernel(launch)["ttir"]
        self.assertNotIn("int_to_ptr", text)
        self.assertEqual(parameters_of(text), len(launch["args"]))
        a, b = self.document["phases"][-1]["inputs"]
        places = {self.document["values"][arg["p"]]["s"] for arg in launch["args"][3::3]}
        self.assertEqual({self.document["values"][v["v"]]["s"] for v in (a, b)}, places)
        first, second = (int(arg["i"]) for arg in launch["args"][4::3])
        self.assertEqual((0, 0), (first % 512, second % 512))
        self.assertGreater(abs(second - first), 1 << 22)

    def test_addresses_that_tables_may_hold(self):
        for table in ("a.data_ptr() + 4 * torch.arange(2).numpy()", "torch.tensor([a.data_ptr()] * 2)"):
            self.assertNotIn("int_to_ptr", self.kernel(self.through(table))["ttir"])
        with self.assertRaisesRegex(AssertionError, "no longer exists"):
            self.through("[(a + 1).data_ptr(), b.data_ptr()]")

    def test_other_numbers_stay_numbers(self):
        for pointer in (
            "(address * 1).to(tl.pointer_type(tl.float32)) if n > 99 else (address | 1).to(tl.pointer_type("
            "tl.float32))",
            "(address + address).to(tl.pointer_type(tl.float32))",
            "address.to(tl.float64).to(tl.int64).to(tl.pointer_type(tl.float32))",
            "tl.where(address > 99, address, 0).to(tl.pointer_type(tl.float32))",
            "n.to(tl.int64).to(tl.pointer_type(tl.float32))",
        ):
            text = self.kernel(self.through("[a.data_ptr(), b.data_ptr()]", pointer))["ttir"]
            self.assertIn("int_to_ptr", text)
        for table in ("[5, 6]", "torch.argsort(b)[:2]", "[a.cpu().data_ptr()] * 2"):
            self.assertIn("int_to_ptr", self.kernel(self.through(table))["ttir"])

    def test_alignment_is_the_allocators(self):
        aligned = self.kernel(
            self.only("assert a.data_ptr() % 512 == 0\nadd[(1,)](a, b, out, 64, 0.5, BLOCK=64)")
        )["ttir"]
        shifted = self.kernel(self.only("add[(1,)](a[1:], b, out, 63, 0.5, BLOCK=64)"))["ttir"]
        self.assertGreater(aligned.count("tt.divisibility = 16"), shifted.count("tt.divisibility = 16"))

    def test_grids(self):
        for grid in (
            "(2,)",
            "(2, 1, 1)",
            "lambda meta: (128 // meta['BLOCK'],)",
            "[torch.tensor(2).item()]",
            "(triton.cdiv(100, 64), 1)",
        ):
            self.assertEqual([2, 1, 1], self.only(f"add[{grid}](a, b, out, 64, 0.5, BLOCK=64)")["grid"], grid)
        self.assertEqual([], self.traced("add[(0,)](a, b, out, 64, 0.5, BLOCK=64)"))

    def test_other_ways_to_launch(self):
        for body in ("add.run(a, b, out, 64, 0.5, BLOCK=64, grid=(1,), warmup=False)",
                     "add[(1,)].__call__(a, b, out, n=64, scale=0.5, BLOCK=64)",
                     "k = add.warmup(a, b, out, 64, 0.5, BLOCK=64, grid=(1,))\nk._init_handles()\n"
                     "assert k.n_regs > 0 and k.metadata.shared > 0\n"
                     "k[(1,)](a, b, out, 64, 0.5, 64)",
                     "k = add.warmup(a, b, out, 64, 0.5, BLOCK=64, grid=(1,))\n"
                     "k[(1, 1, 1)](a, b, out, 64, 0.5)",
                     "with torch.cuda.device(a.device):\n"
                     "    add[(1,)](a, b, out, 64, 0.5, BLOCK=64, num_warps=8)",
                     "torch.library.wrap_triton(add)[(1,)](a, b, out, 64, 0.5, BLOCK=64)"):  # fmt: skip
            self.assertEqual(5, len(self.only(body)["args"]), body)

    def test_options(self):
        launch = self.only(
            "add[(1,)](a, b, out, 64, 0.5, BLOCK=64, num_warps=8, num_stages=2, maxnreg=128,"
            " launch_cooperative_grid=True)"
        )
        options = self.kernel(launch)["options"]
        self.assertEqual(
            (8, 2, 128, 1),
            tuple(options[key] for key in ("num_warps", "num_stages", "maxnreg", "launch_cooperative_grid")),
        )

    def test_options_that_name_files_are_refused(self):
        for option in (
            'ir_override="/tmp/k.ptx"',
            'extern_libs={"libdevice": "/tmp/k.bc"}',
            'ptx_options="-o /tmp/k"',
        ):
            answer = self.refused(f"add[(1,)](a, b, out, 64, 2.0, BLOCK=64, {option})")
            self.assertIn(f"the launch option {option.split('=')[0]}: ", answer["untraceable"]["message"])

    def test_custom_operators(self):
        kernels = ("@torch.library.custom_op('case_ops::twice', mutates_args=())\n"
                   "def twice(x: torch.Tensor) -> torch.Tensor:\n    out = torch.empty_like(x)\n"
                   "    add[(1,)](x, x, out, 64, 1.0, BLOCK=64)\n    return out\n\n@twice.register_fake\n"
                   "def _(x):\n    return torch.empty_like(x)\n")  # fmt: skip
        self.assertEqual(1, len(self.traced("out = torch.ops.case_ops.twice(a) + twice(b)", kernels)) // 2)
        kernels = ("@torch.library.triton_op('case_ops::thrice', mutates_args={})\n"
                   "def thrice(x: torch.Tensor) -> torch.Tensor:\n    out = torch.empty_like(x)\n"
                   "    torch.library.wrap_triton(add)[(1,)](x, x, out, 64, 2.0, BLOCK=64)\n    return "
                   "out\n")  # fmt: skip
        self.assertEqual(1, len(self.traced("out = thrice(a)", kernels)))

    def test_reinterpreted_tensors(self):
        kernels = (
            "@triton.jit\ndef k(x, out, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    tl.store(out"
            " + i, tl.load(x + i).to(tl.float32))\n"
        )
        launch = self.only(
            "x = a.to(torch.float8_e5m2).view(torch.int8)\nk[(1,)](triton.reinterpret(x, tl.float8e5), out,"
            " BLOCK=64)",
            kernels,
        )
        self.assertIn("f8E5M2", self.kernel(launch)["ttir"])

    def test_integers_that_a_kernel_only_reads_stay_known(self):
        kernels = ("@triton.jit\ndef k(x, counts, out, n, BLOCK: tl.constexpr):\n    i = tl.arange(0, "
                   "BLOCK)\n"
                   "    p = x\n    for j in range(tl.load(counts)):\n"
                   "        tl.store(out + i, tl.load(p + i, mask=i < n), mask=i < n)\n        p += 1\n"
                   "@triton.jit\ndef w(counts):\n    tl.store(counts, 1)\n")  # fmt: skip
        body = "for e in range(2):\n    k[(1,)](a, b, out, b[e].item(), BLOCK=64)"
        self.assertEqual(2, len(self.traced(body, kernels, inputs="randn(64), randint(3, 9, (2,))")))
        refusal = self.refused("w[(1,)](b)\n" + body, kernels, inputs="randn(64), randint(3, 9, (2,))")
        self.assertIn("reads what the kernel", json.dumps(refusal))

    def test_one_kernel_compiles_once(self):
        self.traced("for i in range(3):\n    add[(1,)](a, b, out, 64, float(i), BLOCK=64)")
        self.assertEqual(1, len(self.document["kernels"]))

    def test_compile_errors(self):
        kernels = "@triton.jit\ndef bad(x, n):\n    i = tl.arange(0, 3)\n    tl.store(x + i, undefined)\n"
        answer = self.refused("bad[(1,)](out, 64)", kernels)["compile_failed"]
        at = (KERNELS + kernels).split("tl.arange(0, 3)")[0].count("\n") + 1
        self.assertEqual(
            ("bad", "case.py", at, "i = tl.arange(0, 3)"),
            tuple(answer[key] for key in ("kernel", "file", "line", "code")),
        )
        self.assertIn("power of 2", answer["message"])

    def test_a_fallback_on_compile_errors_is_traced_as_what_it_does(self):
        kernels = "@triton.jit\ndef bad(x, n):\n    tl.store(x, undefined)\n"
        self.assertEqual(
            [], self.traced("try:\n    bad[(1,)](out, 64)\nexcept Exception:\n    out = a + b", kernels)
        )


class Autotuning(Case):
    TUNED = ("@triton.autotune(configs=[triton.Config({'BLOCK': n}, num_warps=w) for n, w in ((32, 1), (64, "
             "2), (128, 4))], key=['n']%s)\n"
             "@triton.jit\ndef tuned(x, out, n, BLOCK: tl.constexpr):\n    %s\n"
             "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
             "    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n")  # fmt: skip
    LAUNCH = "tuned[lambda meta: (triton.cdiv(64, meta['BLOCK']),)](a, out, 64)"

    def test_every_configuration_is_an_alternative(self):
        (launch,) = self.traced(self.LAUNCH, self.TUNED % ("", "pass"))
        self.assertEqual(
            [[2, 1, 1], [1, 1, 1], [1, 1, 1]], [alternative["grid"] for alternative in launch["launch"]]
        )
        self.assertTrue(launch["launch"][1]["config"].startswith("BLOCK=64, num_warps=2"))
        self.assertEqual(
            [1, 2, 4], [self.kernel(alternative)["options"]["num_warps"] for alternative in launch["launch"]]
        )

    def test_configurations_that_do_not_compile_are_dropped(self):
        (launch,) = self.traced(self.LAUNCH, self.TUNED % ("", "tl.static_assert(BLOCK > 32)"))
        self.assertEqual(2, len(launch["launch"]))
        self.assertIn(
            "compile_failed", self.refused(self.LAUNCH, self.TUNED % ("", "tl.static_assert(BLOCK > 1000)"))
        )

    def test_pruning(self):
        pruned = (
            ", prune_configs_by={'early_config_prune': lambda configs, nargs, **kw: [c for c in configs if"
            " c.kwargs['BLOCK'] <= nargs['n']]}"
        )
        (launch,) = self.traced(self.LAUNCH, self.TUNED % (pruned, "pass"))
        self.assertEqual(2, len(launch["launch"]))

    def test_hooks_of_configurations_come_before(self):
        kernels = (self.TUNED % ("", "pass")).replace(
            "num_warps=w)", "num_warps=w, pre_hook=lambda args: args['out'].zero_())"
        )
        (launch,) = self.traced(self.LAUNCH, kernels)
        self.assertEqual(
            [["aten::zero_"]] * 3,
            [[step["call"] for step in alternative["before"]] for alternative in launch["launch"]],
        )

    def test_what_is_reset_to_zero_is_so_only_when_tuned(self):
        self.traced(self.LAUNCH, self.TUNED % (", reset_to_zero=['out']", "pass"))
        zeroed = [
            sum(step.get("call") == "aten::zero_" for step in phase["steps"])
            for phase in self.document["phases"]
            if phase["phase"] == "forward"
        ]
        self.assertEqual([1, 0, 0], zeroed)

    def test_what_hooks_do_around_a_measured_run(self):
        (launch,) = self.traced(self.LAUNCH, self.TUNED % (", reset_to_zero=['out']", "pass"))
        tuning = launch["tuning"]
        self.assertEqual(3, len(tuning["runs"]))
        for run in tuning["runs"]:
            self.assertEqual(["aten::zero_"], [step["call"] for step in run["before"]])
            self.assertEqual([], run["after"])
        self.assertEqual(["aten::zero_"], [step["call"] for step in tuning["reset"]])
        (launch,) = self.traced(self.LAUNCH, self.TUNED % (", restore_value=['out']", "pass"))
        tuning = launch["tuning"]
        for run in tuning["runs"]:
            self.assertEqual(["aten::clone"], [step["call"] for step in run["before"]])
            self.assertEqual(["aten::copy_"], [step["call"] for step in run["after"]])
        self.assertEqual([], tuning["reset"])

    def test_where_a_forward_tunes(self):
        first, second = self.traced(self.LAUNCH + "\n" + self.LAUNCH, self.TUNED % ("", "pass"))
        self.assertIn("tuning", first)
        self.assertNotIn("tuning", second)
        single = self.TUNED.replace("((32, 1), (64, 2), (128, 4))", "((64, 2),)") % ("", "pass")
        (launch,) = self.traced(self.LAUNCH, single)
        self.assertNotIn("tuning", launch)
        pruned = ", prune_configs_by={'early_config_prune': lambda configs, nargs, **kw: configs[:1]}"
        (launch,) = self.traced(self.LAUNCH, self.TUNED % (pruned, "pass"))
        self.assertEqual(1, len(launch["tuning"]["runs"]))

    def test_a_configuration_is_chosen_once_for_a_key(self):
        kernels = (self.TUNED % (", reset_to_zero=['out']", "pass")).replace(
            "BLOCK: tl.constexpr", "scale, BLOCK: tl.constexpr"
        )
        body = "\n".join(
            [
                "tuned[lambda meta: (triton.cdiv(64, meta['BLOCK']),)](a, out, %s, %s)" % key
                for key in ((64, 1.5), (64, 2.5), (32, 1.5), (32, 2.5))
            ]
        )
        launches = self.traced(body, kernels)
        self.assertEqual(4, len(launches))
        first = next(phase for phase in self.document["phases"] if phase["phase"] == "forward")
        self.assertEqual(
            2, sum(step.get("call") == "aten::zero_" for step in first["steps"])
        )  # as often as it was tuned

    def test_a_single_configuration(self):
        kernels = self.TUNED.replace("((32, 1), (64, 2), (128, 4))", "((64, 2),)") % ("", "pass")
        (launch,) = self.traced(self.LAUNCH, kernels)
        self.assertEqual(1, len(launch["launch"]))

    def test_heuristics(self):
        kernels = (self.TUNED % ("", "pass")).replace(
            "@triton.jit",
            "@triton.heuristics({'EVEN': lambda args: args['n'] % args['BLOCK'] == 0})\n@triton.jit",
        )
        kernels = kernels.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, EVEN: tl.constexpr")
        (launch,) = self.traced(self.LAUNCH, kernels)
        even = [dict(self.kernel(alternative)["constants"])["EVEN"] for alternative in launch["launch"]]
        self.assertEqual(["True", "True", "False"], even)


class Language(Case):
    def one(self, kernels, body, inputs="randn(64), randn(64)"):
        return self.kernel(self.only(body, kernels, inputs=inputs))["ttir"]

    def test_device_functions_and_libraries(self):
        kernels = ("from triton.language.extra import libdevice\n@triton.jit(noinline=True)\ndef scalar(x):\n"
                   "    return x * 2\n"
                   "@triton.jit\ndef helper(x, F: tl.constexpr):\n    return F(x)\n@triton.jit\n"
                   "def double(x):\n    return x + x\n"
                   "@triton.jit\ndef k(x, out, seed, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n"
                   "    v = libdevice.tanh(tl.load(x + i))\n"
                   "    v = helper(v, double) + scalar(seed) + tl.rand(seed, i)\n"
                   "    v += tl.cumsum(tl.sort(v), 0)\n"
                   "    for j in tl.static_range(3):\n        v += j\n"
                   "    v = tl.inline_asm_elementwise('tanh.approx.f32 $0, $1;', '=f,f', [v], tl.float32, "
                   "True, 1)\n"
                   "    tl.store(out + i, v)\n")  # fmt: skip
        text = self.one(kernels, "k[(1,)](a, out, 5, BLOCK=64)")
        for word in ("__nv_tanhf", "tt.elementwise_inline_asm", "tt.call", "tt.scan"):
            self.assertIn(word, text)

    def test_block_pointers_and_device_descriptors(self):
        kernels = ("@triton.jit\ndef k(x, out, n, BLOCK: tl.constexpr):\n"
                   "    p = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))\n"
                   "    d = tl.make_tensor_descriptor(out, [n // 8, 8], [8, 1], [BLOCK // 8, 8])\n"
                   "    d.store([0, 0], tl.load(p, boundary_check=(0,)).reshape(BLOCK // 8, "
                   "8))\n")  # fmt: skip
        body = (
            "triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8,"
            " device='cuda'))\nk[(1,)](a, out, 64, BLOCK=64)"
        )
        self.assertIn("tt.make_tensor_descriptor", self.one(kernels, body))

    def test_program_dependence(self):
        kernels = ("import triton.language.extra.cuda as tlc\n@triton.jit\n"
                   "def k(x, out, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n"
                   "    tlc.gdc_wait()\n    tl.store(out + i, tl.load(x + i))\n"
                   "    tlc.gdc_launch_dependents()\n")  # fmt: skip
        self.one(kernels, "k[(1,)](a, out, BLOCK=64, launch_pdl=True)")

    def test_driver_queries(self):
        body = ("d = triton.runtime.driver.active\n"
                "p = d.utils.get_device_properties(d.get_current_device())\n"
                "assert d.get_current_target().arch == 90 and p['max_shared_mem'] > 200000\n"
                "add[(min(p['multiprocessor_count'], 1),)](a, b, out, 64, 0.5, BLOCK=64)")  # fmt: skip
        self.assertEqual([1, 1, 1], self.only(body)["grid"])

    def test_benchmarks_run_once(self):
        self.assertEqual(
            1, len(self.traced("triton.testing.do_bench(lambda: add[(1,)](a, b, out, 64, 0.5, BLOCK=64))"))
        )


if __name__ == "__main__":
    unittest.main()
