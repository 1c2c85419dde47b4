#include "nereid/synth/write/size_names.h"

#include <algorithm>

#include "nereid/synth/write/body.h"

namespace nereid::synth {

SizeNames::SizeNames(const CodeStyle& style) : style_(style) {
  const auto list = size_names(style.size_names);
  listed_.assign(list.begin(), list.end());
  if (style.invented_sizes != 0) {
    NameInventor inventor(style.invented_sizes);
    NameTable once;
    for (std::string& name : listed_) name = once.fresh(inventor.size());
  }
  if (style.shuffled != 0) {
    Rng rng(style.shuffled, 0);
    shuffle(rng, listed_);
  }
}

const std::string& SizeNames::name(int32_t size) {
  for (const auto& [known, name] : used_)
    if (known == size) return name;
  const size_t place = used_.size();
  return used_.emplace_back(size, place < listed_.size() ? listed_[place] : fmt::format("dim{}", place))
      .second;
}

void SizeNames::global(std::string& to, int32_t size) {
  if (style_.sizes != SizeStyle::kGlobal || size < 2) return append(to, "{}", size);
  to += name(size);
}

bool SizeNames::is_listed(std::string_view name) const {
  return std::ranges::find(listed_, name) != listed_.end();
}

void SizeNames::shape(std::string& to, const ops::Shape& shape) {
  if (shape.rank == 0) to += "()";
  for (size_t d = 0; d < shape.rank; ++d) {
    if (d > 0) to += ", ";
    global(to, shape.dims[d]);
  }
}

}  // namespace nereid::synth
