#include "nereid/synth/write/natural.h"

#include <algorithm>

namespace nereid::synth {

using Wide = unsigned __int128;

Natural& Natural::operator+=(const Natural& other) {
  if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
  uint64_t carry = 0;
  for (size_t i = 0; i < words_.size(); ++i) {
    const Wide sum = Wide{words_[i]} + carry + (i < other.words_.size() ? other.words_[i] : 0);
    words_[i] = static_cast<uint64_t>(sum);
    carry = static_cast<uint64_t>(sum >> 64);
  }
  if (carry != 0) words_.push_back(carry);
  return *this;
}

Natural Natural::operator*(const Natural& other) const {
  Natural product;
  if (is_zero() || other.is_zero()) return product;
  product.words_.assign(words_.size() + other.words_.size(), 0);
  for (size_t i = 0; i < words_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < other.words_.size(); ++j) {
      const Wide sum = Wide{words_[i]} * other.words_[j] + product.words_[i + j] + carry;
      product.words_[i + j] = static_cast<uint64_t>(sum);
      carry = static_cast<uint64_t>(sum >> 64);
    }
    product.words_[i + other.words_.size()] = carry;
  }
  if (product.words_.back() == 0) product.words_.pop_back();
  return product;
}

Natural Natural::shifted_by_word() const {
  Natural shifted = *this;
  if (!is_zero()) shifted.words_.insert(shifted.words_.begin(), 0);
  return shifted;
}

std::strong_ordering Natural::operator<=>(const Natural& other) const {
  if (words_.size() != other.words_.size()) return words_.size() <=> other.words_.size();
  for (size_t i = words_.size(); i-- > 0;)
    if (words_[i] != other.words_[i]) return words_[i] <=> other.words_[i];
  return std::strong_ordering::equal;
}

double Natural::to_double() const {
  double value = 0;
  for (size_t i = words_.size(); i-- > 0;) value = value * 0x1p64 + static_cast<double>(words_[i]);
  return value;
}

}  // namespace nereid::synth
