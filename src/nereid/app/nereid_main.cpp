#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  CLI::App app{"Nereid turns PyTorch modules into verified Triton kernels.", "nereid"};
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
