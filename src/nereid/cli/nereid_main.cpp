// The `nereid` command: a frame around its subcommands. Each registers itself (command.h); what is common to
// all is in run.cpp: help, version, interrupts, how an error is reported and which exit code follows.
#include <cstdio>
#include <exception>

#include "nereid/base/program/command.h"
#include "nereid/base/program/standard_output.h"
#include "nereid/base/result.h"
#include "nereid/cli/run.h"

int main(int argc, char** argv) {
  nereid::reserve_standard_streams();
  try {
    return nereid::cli::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nereid: unexpected: %s\n", e.what());
    return nereid::exit_code(nereid::Blame::kOurs);
  }
}
