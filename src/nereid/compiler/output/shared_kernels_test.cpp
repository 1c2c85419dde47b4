#include "nereid/compiler/output/shared_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nereid::compiler {
namespace {

const char* const kRelu = R"(@triton.jit
def relu_kernel(x_ptr, relu_ptr, BLOCK: tl.constexpr):
    # relu
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset, mask=offset < 300, other=0.0)
    tl.store(relu_ptr + offset, tl.maximum(x, 0.0), mask=offset < 300)
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST(SharedKernels, NamesAndCommentsDoNotMatter) {
  const std::string same =
      with(with(with(kRelu, "relu_ptr", "relu_2_ptr"), "# relu", "# relu of the sum"), "x", "h");
  EXPECT_EQ(canonical_text(kRelu),
            canonical_text(with(with(same, "mahimum", "maximum"), "constehpr", "constexpr")));
}

TEST(SharedKernels, WhatIsComputedMatters) {
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"300", "301"},
                                                        {"maximum", "minimum"},
                                                        {"tl.store(relu_ptr", "tl.store(x_ptr"},
                                                        {"other=0.0", "other=1.0"}})
    EXPECT_NE(canonical_text(kRelu), canonical_text(with(kRelu, from, to))) << from;
  EXPECT_NE(canonical_text(kRelu), canonical_text(with(kRelu, "(x_ptr, relu_ptr", "(relu_ptr, x_ptr")));
}

TEST(SharedKernels, WhatIsCalledKeepsItsName) {
  const std::string helped = with(kRelu, "tl.maximum(", "larger_of(");
  EXPECT_NE(canonical_text(helped), canonical_text(with(helped, "larger_of", "smaller_of")));
}

TEST(SharedKernels, AKeywordIsNoName) {
  const std::string cached = with(kRelu, "other=0.0", "cache_modifier=\".cg\"");
  EXPECT_NE(canonical_text(cached), canonical_text(with(cached, "cache_modifier", "eviction_policy")));
}

TEST(SharedKernels, ANumberOfTheAuthorsIsNoSize) {
  const auto kernel = [](const std::string& name, const std::string& size, const std::string& number) {
    KernelText made;
    made.name = name, made.pointers = {{"x_ptr", 0}, {"relu_ptr", 1}}, made.constants = {{"BLOCK", 256}};
    made.text = with(with(with(kRelu, "relu_kernel", name), "300", size), "other=0.0", "other=" + number);
    return made;
  };
  const auto merged = [&](const std::string& first, const std::string& second) {
    std::vector<KernelText> kernels = {kernel("relu_kernel", "{300=300}", first),
                                       kernel("relu_kernel_2", "{400=400}", second)};
    share_equal_kernels(kernels);
    return kernels;
  };
  // Equal to the size in both kernels, and no size still.
  EXPECT_FALSE(merged(hole_of_number(300), hole_of_number(400))[1].text.empty());
  const auto kernels = merged(hole_of_number(300), hole_of_number(300));
  EXPECT_TRUE(kernels[1].text.empty());
  EXPECT_NE(filled(kernels[0].text).find("other=300"), std::string::npos) << kernels[0].text;
}

TEST(SharedKernels, TheFirstIsKept) {
  const auto kernel = [](const std::string& name, const std::string& text) {
    KernelText made;
    made.name = name, made.text = text, made.pointers = {{"x_ptr", 0}, {"relu_ptr", 1}},
    made.constants = {{"BLOCK", 256}};
    return made;
  };
  std::vector<KernelText> kernels = {
      kernel("relu_kernel", kRelu), kernel("relu_kernel_2", with(kRelu, "relu_kernel", "relu_kernel_2")),
      kernel("relu_kernel_3", with(with(kRelu, "relu_kernel", "relu_kernel_3"), "300", "400"))};
  kernels[1].constants[0].value = 512;  // a launch's own
  share_equal_kernels(kernels);
  EXPECT_EQ(kernels[1].name, "relu_kernel");
  EXPECT_TRUE(kernels[1].text.empty());
  // Of another size it is called with that.
  EXPECT_EQ(kernels[2].name, "relu_kernel");
  EXPECT_TRUE(kernels[2].text.empty());
  EXPECT_EQ(kernels[0].text,
            with(with(kRelu, "300", "OFFSETS"), "relu_ptr, BLOCK", "relu_ptr, OFFSETS: tl.constexpr, BLOCK"));
  EXPECT_EQ(kernels[0].constants[0].name, "OFFSETS");
  EXPECT_EQ(kernels[0].constants[0].value, 300);
  EXPECT_EQ(kernels[1].constants[0].value, 300);
  EXPECT_EQ(kernels[1].constants[1].value, 512);
  EXPECT_EQ(kernels[2].constants[0].value, 400);
}

TEST(SharedKernels, OtherNumbersThanSizesAreAnotherKernel) {
  const auto differs = [](const std::string& from, const std::string& to) {
    KernelText one, two;
    one.name = "a_kernel", one.text = kRelu, two.name = "b_kernel", two.text = with(kRelu, from, to);
    std::vector<KernelText> kernels = {one, two};
    share_equal_kernels(kernels);
    return !kernels[1].text.empty();
  };
  EXPECT_FALSE(differs("300", "400"));
  EXPECT_TRUE(differs("0.0", "1.0"));
  EXPECT_TRUE(differs("program_id(0)", "program_id(1)"));
}

TEST(SharedKernels, ManySizesAreNoParameters) {
  std::string text = kRelu, other = kRelu;
  for (int i = 0; i < 5; ++i) {
    text += fmt::format("    x += {}\n", 100 + i);
    other += fmt::format("    x += {}\n", 200 + 2 * i);
  }
  KernelText one, two;
  one.name = "a_kernel", one.text = text, two.name = "b_kernel", two.text = other;
  std::vector<KernelText> kernels = {one, two, one};
  share_equal_kernels(kernels);
  EXPECT_FALSE(kernels[1].text.empty());
  EXPECT_EQ(kernels[2].name, "a_kernel");
  EXPECT_EQ(kernels[0].text, text);
}

KernelText of_sizes(const std::string& name, const std::string& bound, const std::string& stride) {
  KernelText made;
  made.name = name, made.constants = {{"BLOCK", 256}};
  made.text = with(with(with(kRelu, "relu_kernel", name), "offset < 300", "offset < " + bound),
                   "x_ptr + offset", "x_ptr + offset * " + stride);
  return made;
}

TEST(SharedKernels, SizesThatFollowFromOthersAreNoParameters) {
  std::vector<KernelText> kernels = {of_sizes("a_kernel", "{480=5 * 96}", "{480*5 * 96} + {5=5} + {96=96}"),
                                     of_sizes("b_kernel", "{224=7 * 32}", "{224*7 * 32} + {7=7} + {32=32}")};
  share_equal_kernels(kernels);
  EXPECT_TRUE(kernels[1].text.empty());
  ASSERT_EQ(kernels[0].constants.size(), 3u);
  const std::string a = kernels[0].constants[0].name, b = kernels[0].constants[1].name;
  EXPECT_EQ(kernels[0].constants[0].value * kernels[0].constants[1].value, 480);
  EXPECT_EQ(kernels[1].constants[0].value * kernels[1].constants[1].value, 224);
  const std::string text = filled(kernels[0].text);
  EXPECT_NE(text.find(fmt::format("offset * ({0} * {1}) + {0} + {1}", a, b)), text.npos) << text;
  EXPECT_NE(text.find(fmt::format("offset < {} * {},", a, b)), text.npos) << text;
}

TEST(SharedKernels, AProductThatIsAllThatDiffersIsOneParameter) {
  std::vector<KernelText> kernels = {of_sizes("a_kernel", "{480=5 * 96}", "{480*5 * 96}"),
                                     of_sizes("b_kernel", "{224=7 * 32}", "224")};
  share_equal_kernels(kernels);
  EXPECT_TRUE(kernels[1].text.empty());
  ASSERT_EQ(kernels[0].constants.size(), 2u);
  EXPECT_EQ(kernels[1].constants[0].value, 224);
  const std::string text = filled(kernels[0].text), name = kernels[0].constants[0].name;
  EXPECT_NE(text.find("offset * " + name), text.npos) << text;
}

// Six products of three sizes.
TEST(SharedKernels, ManyProductsOfAFewSizes) {
  const auto kernel = [](const std::string& name, int64_t a, int64_t b, int64_t c) {
    const std::vector<Size> sizes = {Size::dimension(a), Size::dimension(b), Size::dimension(c)};
    std::string stride = "1";
    for (const Size& x : sizes)
      for (const Size& y : sizes) stride += " + " + hole(x * y, Size::Place::kTerm);
    return of_sizes(name, "8", stride);
  };
  std::vector<KernelText> kernels = {kernel("a_kernel", 3, 5, 7), kernel("b_kernel", 11, 13, 17)};
  share_equal_kernels(kernels);
  EXPECT_TRUE(kernels[1].text.empty());
  EXPECT_EQ(kernels[0].constants.size(), 4u);
}

TEST(SharedKernels, OtherConstantsAreAnotherKernel) {
  KernelText one, two;
  one.name = "a_kernel", one.text = kRelu, one.constants = {{"BLOCK", 256}};
  two.name = "b_kernel", two.text = with(kRelu, "BLOCK", "BLOCK_ROWS"), two.constants = {{"BLOCK_ROWS", 256}};
  std::vector<KernelText> kernels = {one, two};
  share_equal_kernels(kernels);
  EXPECT_EQ(kernels[1].name, "b_kernel");
}

}  // namespace
}  // namespace nereid::compiler
