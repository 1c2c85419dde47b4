// The code style of a program: how one author would write it, drawn once for each program.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "nereid/ops/spelling.h"
#include "nereid/synth/program.h"
#include "nereid/synth/sample/rng.h"

namespace nereid::synth {

using ops::Spelling;
enum class Names : uint8_t { kReused, kNumbered, kSpoken };  // x = f(x); h1 = f(x); activated = f(x)
enum class SizeStyle : uint8_t { kLiteral, kGlobal, kArguments };

// Consecutive steps that are written apart. Nothing but the last one's result is used after it.
struct Region {
  enum Kind : uint8_t { kSequential, kFunction, kModule } kind{};
  uint16_t first = 0, last = 0;  // steps, both included
};

struct CodeStyle {
  std::vector<Spelling> spelling;                 // of each step
  std::vector<std::array<uint8_t, 2>> constants;  // of each step: which of its constants' values
  std::vector<bool> inlined;                      // of each step: written inside the only step that uses it
  std::vector<bool> number_first;                 // of each step: `2.0 * x`, not `x * 2.0`
  std::vector<bool> parameter;  // of each input: a parameter of the module rather than an argument
  std::vector<Region> regions;  // in order, apart from each other
  int second_output = -1;       // a step whose result is returned too
  enum Returned : uint8_t { kTuple, kList, kDict } returned = kTuple;  // two results
  Names names{};
  SizeStyle sizes{};
  uint8_t size_names = 0, input_names = 0, spoken = 0;  // which of several lists
  uint32_t invented_sizes = 0,
           invented_names = 0;  // not 0: names that are thought up (words.h), not those lists
  uint8_t docstring_style = 0;  // which kind of docstring
  uint32_t prose = 0;           // not 0: the number of an author who says more (prose.h)
  uint32_t shuffled = 0;      // not 0: sizes' names and the constructor's arguments in an order of their own
  uint8_t spare = 0;          // global sizes that nothing uses
  uint32_t phrasing = 0;      // phrasing.h
  uint8_t made = 0;           // how inputs of normal numbers are made
  ops::Applied::Axes axes{};  // how axes are written
  bool bare_axes = false, listed_axes = false, short_transpose = false;  // as ops::Applied has them
  bool inline_shapes = false;                                            // `x.shape[0]` where a size is used
  bool loops = false;                 // runs of layers as a ModuleList that forward() goes through
  bool kept_numbers = false;          // constants and axes are attributes of the module
  bool passed_numbers = false;        // and these are arguments of the constructor
  bool passed_windows = false;        // the numbers of layers are, too: kernel_size, padding, eps
  bool global_numbers = false;        // constants are globals
  ops::Applied::Inferred inferred{};  // a reshape is given -1 for one of the sizes
  bool apart = false;                 // the constructor's arguments are called otherwise than global sizes
  bool defaults = false;              // of the constructor's arguments, and none are passed
  bool unpacked = false;              // sizes in forward() come from an input's shape
  bool one_by_one = false;            // `n = x.shape[0]`, a line for each of these sizes that it has
  bool assigned_input = false;        // `x = ...; return [x]` of the only input, too
  bool bare = false;  // no constructor where there is nothing to construct; else an empty one for a docstring
  bool whole_paths = false;   // torch.nn.functional.relu, not F.relu
  bool more_imports = false;  // some that nothing needs
  bool docstring = false, forward_docstring = false, shape_comments = false, said_comments = false;
  bool type_hints = false, long_super = false, plain_import = false, spaced = false,
       tight = false;  // one empty line between functions and classes, not two
};

// Where the result of each step is used, and how often.
struct Uses {
  std::vector<uint16_t> count, last;  // of each step; last: the last step that uses it
};
Uses uses_of(const Program& program);

// A step as the author puts it.
ops::Applied styled_call(const Program& program, const CodeStyle& style, size_t step);

// The keys of two results in a dict.
std::array<std::string_view, 2> result_keys(const CodeStyle& style);
CodeStyle draw_code_style(Rng& rng, const Program& program);

}  // namespace nereid::synth
