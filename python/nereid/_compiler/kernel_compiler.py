"""The kernel compiler: TTIR text to machine code for one GPU architecture, without a GPU.

`warm()` is called once in a process that then forks for every request; `handle(request)` does the work in a
child, which sees nothing but the text. By hand:
`python -m nereid._compiler.kernel_compiler FILE.ttir [ARCH]`.

request = {"ttir": text, "arch": 90, "options": {"num_warps": 4, ...}}
answer  = {"cubin": base64, "name": symbol, "params": [type of each parameter of the TTIR function],
           "tensordesc_meta": [how each tensor descriptor became a CUtensorMap], "shared": bytes,
           "num_warps": n, "num_ctas": n, "global_scratch": [bytes a CTA, align],
           "profile_scratch": the same, "tmem": columns, "cooperative": bool, "pdl": bool,
           "expanded_descriptors": bool, "registers": n, "spills": bytes}
       or {"error": what the compiler said}

The cubin's parameters are the TTIR function's in order, then a pointer to global scratch and one to profile
scratch. A tensor descriptor is a CUtensorMap by value (128 bytes); with `expanded_descriptors` (below sm_90)
it is instead its base pointer, its shape and its strides as 64-bit integers, and one byte that says whether
its padding is nan. The shape (i32) and the strides (i64) that follow a descriptor in the TTIR function stay.
"""

import base64
import os
import re
import subprocess
import sys
import tempfile

from triton import __version__ as triton_version
from triton._C.libtriton import ir, passes
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend, get_ptxas, ptx_get_version, sm_arch_from_capability

MOST_LOG = 8000
# The options that may change the code. Others say what the front end did, name files, or pass words to ptxas.
INTEGERS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "max_num_imprecise_acc_default")
FLAGS = (
    "enable_fp_fusion",
    "enable_reflect_ftz",
    "launch_cooperative_grid",
    "launch_pdl",
    "debug",
    "sanitize_overflow",
)

WARM_UP = """
module {
  tt.func public @copy(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                       %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %0 = tt.splat %from : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %1 = tt.addptr %0, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %2 = tt.load %1 : tensor<128x!tt.ptr<f32>>
    %3 = tt.splat %to : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %4 = tt.addptr %3, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    tt.store %4, %2 : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
"""


class CompileError(Exception):
    pass


def parse_options(backend, given, arch):
    options = {name: int(given[name]) for name in INTEGERS if given.get(name) is not None}
    options.update({name: bool(given[name]) for name in FLAGS if given.get(name) is not None})
    if given.get("ptx_options"):
        raise CompileError(f"the launch option ptx_options={given['ptx_options']!r} is not taken")
    options["ptx_version"] = ptx_get_version(get_ptxas(arch).version)
    return backend.parse_options(options)


def parse_ttir(text, context):
    # Text without locations gets the file's, and ptxas puts a file's name and age into the cubin: both must
    # not vary.
    with open("kernel.ttir", "w") as file:
        file.write(text)
    module = ir.parse_mlir_module("kernel.ttir", context)
    module.context = context
    os.remove("kernel.ttir")
    return module


def parameter_types(module):
    signature = module.get_function_signature(module.get_function(module.get_entry_func_name()))
    return [f"!tt.ptr<{kind[1:]}>" if kind.startswith("*") else kind for kind in signature]


def expand_descriptors(module, context):
    """What Triton's own ttir stage does for GPUs without tensor maps; the tracer's text was made for
    sm_90."""
    manager = ir.pass_manager(context)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "expand_descriptors")


def assemble(ptx, options, arch):
    """ptxas, called as Triton calls it."""
    source, result = "kernel.ptx", "kernel.cubin"
    with open(source, "w") as file:
        file.write(ptx)
    fmad = [] if options.enable_fp_fusion else ["--fmad=false"]
    command = [
        get_ptxas(arch).path,
        "-lineinfo",
        *fmad,
        "-v",
        f"--gpu-name={sm_arch_from_capability(arch)}",
        source,
        "-o",
        result,
    ]
    with open("log", "w+b") as log:
        status = subprocess.run(
            command, close_fds=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ).returncode
        log.seek(0)
        said = log.read(1 << 20).decode(errors="replace")
    if status != 0:
        raise CompileError(f"ptxas failed with status {status}: {said[-MOST_LOG:]}")
    with open(result, "rb") as file:
        return file.read(), said


def number_before(pattern, text):
    found = re.search(r"(\d+) " + pattern, text)
    return int(found.group(1)) if found else 0


def compile_ttir(request):
    arch = int(request["arch"])
    backend = CUDABackend(GPUTarget("cuda", arch, 32))
    options = parse_options(backend, request.get("options") or {}, arch)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = parse_ttir(request["ttir"], context)
    types = parameter_types(module)
    expanded = arch < 90 and any("tensordesc" in kind for kind in types)
    if expanded:
        expand_descriptors(module, context)
    metadata = {"num_warps": options.num_warps}
    module = backend.make_ttgir(module, metadata, options, arch)
    ptx = backend.make_ptx(backend.make_llir(module, metadata, options, arch), metadata, options, arch)
    cubin, said = assemble(ptx, options, arch)
    return {
        "cubin": base64.b64encode(cubin).decode(), "name": metadata["name"], "params": types,
        "tensordesc_meta": [dict(meta) for meta in metadata["tensordesc_meta"]], "shared": metadata["shared"],
        "num_warps": metadata["num_warps"], "num_ctas": options.num_ctas,
        "cluster_dims": [options.num_ctas, 1, 1],
        "global_scratch": [metadata["global_scratch_size"], metadata["global_scratch_align"]],
        "profile_scratch": [metadata["profile_scratch_size"], metadata["profile_scratch_align"]],
        "tmem": metadata["tmem_size"], "cooperative": options.launch_cooperative_grid,
        "pdl": options.launch_pdl,
        "expanded_descriptors": expanded, "registers": number_before("registers", said),
        "spills": number_before("bytes spill stores", said),
    }  # fmt: skip


def handle(request):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        # The compiler's C++ explains itself on stderr alone.
        said = os.open("said", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        before = os.dup(2)
        os.dup2(said, 2)
        try:
            return compile_ttir(request)
        except Exception as error:
            words = os.pread(said, MOST_LOG, 0).decode(errors="replace")
            message = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
            return {"error": "\n".join(filter(None, [message[:MOST_LOG], words]))}
        finally:
            os.dup2(before, 2)
            os.close(before)
            os.close(said)
            os.chdir("/")


def warm():
    """Compiles once whatever every compilation needs, so that forked children find it loaded."""
    answer = handle({"ttir": WARM_UP, "arch": 90, "options": {}})
    if "error" in answer:
        raise RuntimeError(f"the kernel compiler does not work: {answer['error']}")
    return {"triton": triton_version, "ptxas": get_ptxas(90).version}


def main():
    with open(sys.argv[1]) as file:
        answer = handle(
            {"ttir": file.read(), "arch": int(sys.argv[2]) if len(sys.argv) > 2 else 90, "options": {}}
        )
    print(
        {name: value if name != "cubin" else f"{len(value) * 3 // 4} bytes" for name, value in answer.items()}
    )
    raise SystemExit(1 if "error" in answer else 0)


if __name__ == "__main__":
    main()
