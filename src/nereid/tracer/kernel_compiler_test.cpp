#include "nereid/tracer/kernel_compiler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::tracer {
namespace {

// Adds `addend` to every element of a vector: a kernel of its own for every addend.
trace::Kernel add_kernel(int addend) {
  trace::Kernel kernel;
  kernel.name = "add";
  kernel.ttir = fmt::format(R"(module {{
  tt.func public @add(%x: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}, %n: i32) {{
    %i = tt.make_range {{end = 256 : i32, start = 0 : i32}} : tensor<256xi32>
    %addend = arith.constant dense<{}.000000e+00> : tensor<256xf32>
    %bound = tt.splat %n : i32 -> tensor<256xi32>
    %mask = arith.cmpi slt, %i, %bound : tensor<256xi32>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %at = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    %v = tt.load %at, %mask : tensor<256x!tt.ptr<f32>>
    %sum = arith.addf %v, %addend : tensor<256xf32>
    tt.store %at, %sum, %mask : tensor<256x!tt.ptr<f32>>
    tt.return
  }}
}}
)",
                            addend);
  kernel.options = {{"num_warps", 2}, {"num_stages", 3}, {"num_ctas", 1}};
  return kernel;
}

// Two tensor descriptors as parameters, a third made in the kernel.
trace::Kernel descriptor_kernel() {
  trace::Kernel kernel;
  kernel.name = "mm";
  kernel.ttir = read_file(NEREID_SOURCE_DIR "/tests/golden/ttir/tensor_descriptors.ttir").value();
  kernel.options = {{"num_warps", 4}, {"num_stages", 3}};
  return kernel;
}

class KernelCompilerTest : public testing::Test {
 protected:
  std::unique_ptr<KernelCompiler> make() {
    return KernelCompiler::start(
               {.installation = Installation::locate().value(), .cache = folder_.path() / "kernels"})
        .value();
  }
  static CompiledKernel compiled(KernelCompiler& compiler, const trace::Kernel& kernel, int arch = 90) {
    auto answer = compiler.compile(kernel, arch, Deadline::after(250)).value();
    if (auto* words = std::get_if<CompileDiagnostics>(&answer)) ADD_FAILURE() << words->message;
    return std::get<CompiledKernel>(std::move(answer));
  }
  static std::string diagnostics(KernelCompiler& compiler, const trace::Kernel& kernel) {
    auto answer = compiler.compile(kernel, 90, Deadline::after(250)).value();
    auto* words = std::get_if<CompileDiagnostics>(&answer);
    return words != nullptr ? words->message : "it was compiled";
  }

  TemporaryFolder folder_ = TemporaryFolder::create("kernels").value();
};

TEST_F(KernelCompilerTest, GivesTheBytesThatTritonItselfGives) {
  const auto compiler = make();
  trace::Kernel kernel = descriptor_kernel();
  kernel.options = {{"num_warps", 2}, {"num_stages", 3}, {"num_ctas", 1}};
  const CompiledKernel ours = compiled(*compiler, kernel);
  const auto path = folder_.path() / "kernel.ttir";
  std::ofstream(path) << kernel.ttir;
  constexpr const char* kDirect = R"(
import sys, hashlib, triton
from triton.backends.compiler import GPUTarget
options = {'num_warps': 2, 'num_stages': 3, 'num_ctas': 1}
made = triton.compile(sys.argv[1], target=GPUTarget('cuda', 90, 32), options=options)
print(hashlib.sha256(made.asm['cubin']).hexdigest(), end='')
)";
  auto environment = sandbox::own_environment();
  environment.push_back("TRITON_CACHE_DIR=" + (folder_.path() / "triton").string());
  const auto direct =
      sandbox::run_program({.words = {Installation::locate()->python.string(), "-c", kDirect, path.string()},
                            .environment = environment},
                           Deadline::after(120));
  ASSERT_TRUE(direct.ok()) << direct.error().message;
  EXPECT_EQ(sha256_hex(ours.cubin), *direct);
}

TEST_F(KernelCompilerTest, SaysWhatALaunchNeeds) {
  const CompiledKernel kernel = compiled(*make(), add_kernel(1));
  EXPECT_EQ(kernel.name, "add");
  EXPECT_EQ(kernel.num_warps, 2);
  EXPECT_EQ(kernel.params, (std::vector<std::string>{"!tt.ptr<f32>", "i32"}));
  EXPECT_GT(kernel.registers, 0);
  EXPECT_EQ(kernel.shared, 0);
  EXPECT_FALSE(kernel.cooperative || kernel.pdl);
  auto cluster = add_kernel(1);
  cluster.options = {{"num_ctas", 2}, {"launch_cooperative_grid", 1}, {"launch_pdl", 1}};
  const CompiledKernel wide = compiled(*make(), cluster);
  EXPECT_EQ(wide.num_ctas, 2);
  EXPECT_TRUE(wide.cooperative && wide.pdl);
}

TEST_F(KernelCompilerTest, SaysHowTensorDescriptorsArePassed) {
  const auto compiler = make();
  const trace::Kernel kernel = descriptor_kernel();
  const CompiledKernel maps = compiled(*compiler, kernel);
  ASSERT_EQ(maps.tensordesc_meta.size(), 2);
  EXPECT_EQ(maps.tensordesc_meta[0].block_size, (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(maps.tensordesc_meta[0].elem_size, 2);
  EXPECT_EQ(maps.tensordesc_meta[0].swizzle, 3);
  EXPECT_GT(maps.global_scratch[0], 0);  // for the descriptor that the kernel makes itself
  EXPECT_FALSE(maps.expanded_descriptors);
  const CompiledKernel pointers = compiled(*compiler, kernel, 80);
  EXPECT_TRUE(pointers.expanded_descriptors);
  EXPECT_TRUE(pointers.tensordesc_meta.empty());
  EXPECT_EQ(pointers.params, maps.params);
}

TEST_F(KernelCompilerTest, WorksWithoutNamespaces) {
  KernelCompilerOptions options{.installation = Installation::locate().value(),
                                .cache = folder_.path() / "kernels"};
  options.namespaces = false;
  const auto compiler = KernelCompiler::start(options).value();
  EXPECT_EQ(compiled(*compiler, add_kernel(1)).name, "add");
}

TEST_F(KernelCompilerTest, SaysWhatTheCompilerSaid) {
  const auto compiler = make();
  auto kernel = add_kernel(1);
  kernel.ttir.replace(kernel.ttir.find("arith.addf"), 10, "arith.oddf");
  EXPECT_NE(diagnostics(*compiler, kernel).find("arith.oddf"), std::string::npos);
  kernel.ttir = "module {}";
  EXPECT_NE(diagnostics(*compiler, kernel), "it was compiled");
  kernel.ttir = std::string(1 << 20, '(');
  EXPECT_NE(diagnostics(*compiler, kernel), "it was compiled");
  kernel = add_kernel(1);
  kernel.options["num_warps"] = 3;
  EXPECT_NE(diagnostics(*compiler, kernel).find("power of 2"), std::string::npos);
  kernel = add_kernel(1);
  kernel.text_options["ptx_options"] = "--output-file /tmp/x";
  EXPECT_NE(diagnostics(*compiler, kernel).find("ptx_options"), std::string::npos);
}

TEST_F(KernelCompilerTest, KeepsWhatItMadeForOthersToFind) {
  const CompiledKernel first = compiled(*make(), add_kernel(2));
  const auto other = make();
  const CompiledKernel second = compiled(*other, add_kernel(2));
  EXPECT_TRUE(first.cubin == second.cubin);
  EXPECT_EQ(other->launcher_pid(), 0);  // it never had to start its worker
  EXPECT_NE(other->key(add_kernel(2), 90), other->key(add_kernel(3), 90));
  EXPECT_NE(other->key(add_kernel(2), 90), other->key(add_kernel(2), 80));
  auto wider = add_kernel(2);
  wider.options["num_warps"] = 4;
  EXPECT_NE(other->key(add_kernel(2), 90), other->key(wider, 90));
}

TEST_F(KernelCompilerTest, CompilesAgainWhatIsCorrupt) {
  const auto compiler = make();
  const CompiledKernel good = compiled(*compiler, add_kernel(4));
  const auto path = compiler->cache().path_of(compiler->key(add_kernel(4), 90));
  const std::string bytes = read_file(path).value();
  std::string flipped = bytes;
  flipped[bytes.size() / 2] ^= 1;
  for (const std::string& damaged :
       {std::string(), bytes.substr(0, bytes.size() / 2), flipped, std::string("nereid-kernel 1 ")}) {
    std::ofstream(path, std::ios::trunc | std::ios::binary) << damaged;
    EXPECT_FALSE(compiler->cache().find(compiler->key(add_kernel(4), 90)));
    EXPECT_TRUE(compiled(*compiler, add_kernel(4)).cubin == good.cubin);
    EXPECT_TRUE(read_file(path).value() == bytes);
  }
}

TEST_F(KernelCompilerTest, WorksWithoutAPlaceToKeepThings) {
  std::ofstream(folder_.path() / "kernels") << "a file where the cache's folder should be";
  const auto compiler = make();
  EXPECT_EQ(compiled(*compiler, add_kernel(5)).name, "add");
  EXPECT_NE(compiler->cache().trouble(), "");
}

TEST_F(KernelCompilerTest, UsesManyThreadsAndCompilesTheSameKernelOnce) {
  const auto compiler = make();
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] { made += compiled(*compiler, add_kernel(10 + t % 3)).cubin.size() > 100; });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(made, 6);
}

TEST_F(KernelCompilerTest, SurvivesTheLossOfItsWorkerInTheMiddle) {
  const auto compiler = make();
  ASSERT_EQ(compiled(*compiler, add_kernel(20)).name, "add");
  const int first = compiler->launcher_pid();
  std::thread killer([&] {
    ::usleep(30000);
    ::kill(first, SIGKILL);
  });
  for (int i = 21; i < 24; ++i) EXPECT_EQ(compiled(*compiler, add_kernel(i)).name, "add");
  killer.join();
  EXPECT_NE(compiler->launcher_pid(), first);
}

}  // namespace
}  // namespace nereid::tracer
