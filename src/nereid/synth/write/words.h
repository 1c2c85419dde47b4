// The words that programs are written in: names of sizes, values, inputs and layers, and sentences about
// them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/synth/program.h"
#include "nereid/synth/sample/rng.h"

namespace nereid::synth {

std::span<const std::string_view> size_names(int list);
// What an input is called: by its role in the operator, or plainly.
std::string_view input_name(const ops::Operator& op, const Input& input, const ops::Shape& result,
                            size_t slot, int list);
std::string_view layer_name(const ops::Operator& op);
// What a result is called ("activated").
std::string_view value_name(const ops::Operator& op, int list);
// What a constant of an operator is called ("negative_slope").
std::string_view constant_name(const ops::Operator& op, char which);
// A verb phrase of an operator, for comments ("sum over an axis").
std::string_view phrase(const ops::Operator& op);
// "Matrix product, then softmax and sum": of the whole program, cut short where it is long.
void describe(const Program& program, std::string& to);

// A word of a long list, or one that is thought up ("prelota"). It is no keyword.
std::string invented_word(Rng& rng);

// Names that no list holds: an author's own. What they are put together from and in which style follows from
// the number alone. None is a keyword, a module of PyTorch's or an attribute of nn.Module's.
class NameInventor {
 public:
  explicit NameInventor(uint32_t number);
  std::string size();        // ROWS, n_tokens, Lq
  std::string value();       // latent, wave_in, z3
  std::string function();    // mix_heads: never one of `value`
  std::string class_name();  // GateStem

 private:
  std::string word();
  Rng rng_;
  uint32_t size_style_, value_style_;
};

// Gives each name once: the second `proj` is `proj2`.
class NameTable {
 public:
  std::string fresh(std::string_view wanted);
  void release(std::string_view name);
  bool taken(std::string_view name) const;

 private:
  std::vector<std::string> taken_;
};

}  // namespace nereid::synth
