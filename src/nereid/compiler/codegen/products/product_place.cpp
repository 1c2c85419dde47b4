#include "nereid/compiler/codegen/products/product_place.h"

#include <fmt/format.h>

#include "nereid/compiler/codegen/emit.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kTogether = 8;  // tiles of a strip, one after another

}  // namespace

void write_place(ExprWriter& write, KernelNames& names, const ProductTiles& of) {
  const char* cast = of.wide ? ".to(tl.int64)" : "";
  const bool rows = of.tiles_m > 1, columns = of.tiles_n > 1;
  if (rows || columns || of.batch > 1) write.line("pid = tl.program_id(0)");
  if (of.interleaved) {
    write.line(fmt::format("batch = pid % {}", hole(of.batch)));
    write.line(fmt::format("pid = pid // {}", hole(of.batch)));
  }
  const bool apart = of.batch > 1 && !of.interleaved;  // a batch after another
  if (rows && (columns || apart)) write.line(fmt::format("tiles_m = triton.cdiv({}, BLOCK_M)", hole(of.m)));
  if (columns && (rows || apart)) write.line(fmt::format("tiles_n = triton.cdiv({}, BLOCK_N)", hole(of.n)));
  if (apart) {
    const char* tiles = rows && columns ? " // (tiles_m * tiles_n)" : rows ? " // tiles_m" : " // tiles_n";
    write.line(fmt::format("batch = pid{}", rows || columns ? tiles : ""));
  }
  if (apart && rows && columns) write.line("pid = pid % (tiles_m * tiles_n)");
  std::string m = "0", n = "0";
  if (rows && columns) {
    const bool few = of.tiles_m <= kTogether, even = of.tiles_m % kTogether == 0;
    if (!few && even)
      write.line(fmt::format("GROUP_M: tl.constexpr = {}  # tiles that share their columns", kTogether));
    m = few    ? "pid % tiles_m"
        : even ? "pid // (GROUP_M * tiles_n) * GROUP_M + pid % GROUP_M"
               : "pid // tiles_n";
    n = few ? "pid // tiles_m" : even ? "pid % (GROUP_M * tiles_n) // GROUP_M" : "pid % tiles_n";
  } else if (rows) {
    m = apart ? "pid % tiles_m" : "pid";
  } else if (columns) {
    n = apart ? "pid % tiles_n" : "pid";
  }
  const auto start = [&](const std::string& tile, const char* block) {
    const bool simple = tile == "pid";
    return tile == "0" ? tile : fmt::format("{}{} * {}", simple ? tile : "(" + tile + ")", cast, block);
  };
  const auto first = [&](const std::string& name, const std::string& text) {
    write.line(fmt::format("{} = {}", name, text));
    if (text != "0") names.starts.emplace_back(fmt::format("{} = {}", name, text), name);
  };
  first("first_m", start(m, "BLOCK_M"));
  first("first_n", start(n, "BLOCK_N"));
  write.line(fmt::format("m = {}tl.arange(0, BLOCK_M)[:, None]", m == "0" ? "" : "first_m + "));
  write.line(fmt::format("n = {}tl.arange(0, BLOCK_N)[None, :]", n == "0" ? "" : "first_n + "));
}

}  // namespace nereid::compiler
