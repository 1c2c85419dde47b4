#include "nereid/compiler/ir/size.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace nereid::compiler {
namespace {

Size symbol(int64_t value) { return Size::dimension(value); }

TEST(SizeTest, IsANumberLikeAnyOther) {
  const Size rows = symbol(5);
  EXPECT_EQ(rows * 96, 480);
  EXPECT_TRUE(rows < 6 && rows != symbol(4) && rows == symbol(5));
  EXPECT_EQ(static_cast<double>(rows) * 0.5, 2.5);
  EXPECT_EQ(max(rows, symbol(7)).text(), "7");
  EXPECT_EQ((Extents{5, 96}), Extents(std::vector<int64_t>{5, 96}));
}

TEST(SizeTest, SaysWhatItIsMadeOf) {
  EXPECT_EQ((symbol(5) * symbol(96)).text(), "5 * 96");
  EXPECT_EQ((symbol(5) * symbol(96)).text(Size::Place::kFactor), "(5 * 96)");
  EXPECT_EQ(symbol(96).text(Size::Place::kFactor), "96");
  EXPECT_EQ((symbol(640) - 1).text(), "640 - 1");
  EXPECT_EQ((2 * symbol(96) + 3).text(), "2 * 96 + 3");
  EXPECT_EQ(((symbol(50) - 1) * symbol(6)).text(), "(50 - 1) * 6");
  EXPECT_EQ((5 - symbol(3) * symbol(4)).text(), "5 - 3 * 4");
  EXPECT_EQ((-(symbol(3) * symbol(4))).text(), "-3 * 4");
  EXPECT_EQ((Size(5) * 96).text(), "480");
}

TEST(SizeTest, WhatIsSubtractedIsTakenOut) {
  EXPECT_EQ((symbol(24) * symbol(16) + symbol(16)).text(), "24 * 16 + 16");
  EXPECT_EQ((symbol(24) * symbol(16) - symbol(16)).text(), "(24 - 1) * 16");
}

TEST(SizeTest, StandsInBracketsWhereItHasTo) {
  const Size product = symbol(5) * symbol(96), sum = symbol(50) - 1;
  EXPECT_EQ(product.text(Size::Place::kTerm), "5 * 96");
  EXPECT_EQ(sum.text(Size::Place::kTerm), "(50 - 1)");
  EXPECT_EQ((sum * symbol(6)).text(Size::Place::kTerm), "(50 - 1) * 6");
  EXPECT_EQ((sum * symbol(6)).text(Size::Place::kFactor), "((50 - 1) * 6)");
  EXPECT_EQ(Size(-3).text(Size::Place::kFactor), "(-3)");
  const std::string text = "x + i * " + hole(product, Size::Place::kFactor) + " + " +
                           hole(sum, Size::Place::kTerm) + ", i < " + hole(product) + ", " + hole(Size(7));
  EXPECT_EQ(text, "x + i * {480*5 * 96} + {49+50 - 1}, i < {480=5 * 96}, 7");
  EXPECT_EQ(filled(text), "x + i * (5 * 96) + (50 - 1), i < 5 * 96, 7");
}

TEST(SizeTest, BecomesALiteralWhereItIsOne) {
  EXPECT_TRUE(symbol(1).is_literal() && symbol(0).is_literal());
  EXPECT_TRUE((symbol(5) - symbol(5)).is_literal());
  EXPECT_TRUE((symbol(5) * 0).is_literal());
  EXPECT_TRUE((symbol(3) - 2).is_literal());  // 1: a loop of one turn, a stride of one
  EXPECT_TRUE(floor_divide(symbol(96), 5).is_literal());
}

TEST(SizeTest, DividesWhatComesOutEven) {
  const Size product = symbol(5) * symbol(96) * symbol(7);
  EXPECT_EQ(floor_divide(product, symbol(96)).text(), "5 * 7");
  EXPECT_EQ((product / (symbol(7) * symbol(5))).text(), "96");
  EXPECT_EQ(floor_divide(6 * symbol(96) + 3, 2 * symbol(96)).text(), "3");
  EXPECT_EQ(floor_divide(symbol(5) * symbol(96) + 3, symbol(96)).text(), "5");
  EXPECT_EQ(((symbol(5) * symbol(96) + 3) % symbol(96)).text(), "3");
  EXPECT_EQ((product % symbol(96)).text(), "0");
  EXPECT_EQ(floor_divide(symbol(7), symbol(2)), 3);
  EXPECT_EQ(floor_divide(-symbol(7), symbol(2)), -4);
  EXPECT_EQ(-symbol(7) / symbol(2), -3);
}

TEST(SizeTest, TheBatchIsWrittenByItsName) {
  const Size batch = Size::of_batch(33, 1, 0);
  EXPECT_EQ(batch, 33);
  EXPECT_EQ(batch.text(), "batch_size");
  EXPECT_EQ((batch * symbol(5)).text(), "batch_size * 5");
  EXPECT_EQ(Size::of_batch(33, 2, 1).text(), "2 * batch_size + 1");
  EXPECT_EQ(Size::of_batch(33, 2, 1), 67);
  EXPECT_EQ((batch - 32).text(), "batch_size - 32");  // 1 at this batch alone
  EXPECT_EQ((batch + symbol(33)).text(), "batch_size + 33");
}

TEST(SizeTest, ATupleInPython) {
  EXPECT_EQ(sizes_text({}), "()");
  EXPECT_EQ(sizes_text({symbol(5) * symbol(96)}), "(5 * 96,)");
  EXPECT_EQ(sizes_text({symbol(5), Size::of_batch(33, 1, 0)}), "(5, batch_size)");
}

TEST(SizeTest, LongOnesBecomeNumbers) {
  Size sum = 0, product = 1;
  for (const int64_t size : {3, 5, 7, 11, 13}) sum += symbol(size) * symbol(size + 1);
  for (int i = 0; i < 7; ++i) product *= symbol(3);
  EXPECT_EQ(sum.text(), std::to_string(sum.value()));
  EXPECT_EQ(product.text(), "2187");
}

// The value of "(3 * 4 - 1) * 5".
class SumText {
 public:
  explicit SumText(std::string text) : text_(std::move(text)) { std::erase(text_, ' '); }
  int64_t value() {
    const int64_t first = term();
    int64_t sum = first;
    while (at_ < text_.size() && text_[at_] != ')') sum += text_[at_++] == '-' ? -term() : term();
    return sum;
  }

 private:
  int64_t term() {
    int64_t product = factor();
    while (at_ < text_.size() && text_[at_] == '*') ++at_, product *= factor();
    return product;
  }
  int64_t factor() {
    if (text_[at_] == '-') return ++at_, -factor();
    if (text_[at_] == '(') {
      ++at_;
      const int64_t inner = value();
      ++at_;
      return inner;
    }
    size_t end = 0;
    const int64_t number = std::stoll(text_.substr(at_), &end);
    at_ += end;
    return number;
  }

  std::string text_;
  size_t at_ = 0;
};

TEST(SizeTest, TheTextHasTheValue) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    Size size = symbol(1 + static_cast<int64_t>(random() % 12));
    int64_t value = size;
    for (unsigned step = 0; step < 1 + random() % 5; ++step) {
      const auto number = static_cast<int64_t>(random() % 9);
      const Size other = random() % 2 == 0 ? symbol(number) : Size(number);
      switch (random() % 4) {
        case 0:
          size = size + other, value += number;
          break;
        case 1:
          size = size - other, value -= number;
          break;
        case 2:
          size = size * other, value *= number;
          break;
        default:
          if (number == 0) continue;
          size = floor_divide(size, other);
          value = value / number - (value % number < 0 ? 1 : 0);
      }
    }
    ASSERT_EQ(size, value);
    ASSERT_EQ(SumText(size.text()).value(), value) << size.text();
    ASSERT_EQ(SumText(size.text(Size::Place::kFactor)).value(), value) << size.text(Size::Place::kFactor);
  }
}

}  // namespace
}  // namespace nereid::compiler
