// What a subcommand is to the program around it, of `nereid` and of `nereid-lm`: something that registers
// itself, and then runs to an answer.
//
// A command parses nothing and prints no errors itself. It writes data to stdout, everything else to stderr,
// and returns an Error where it cannot answer.
#pragma once

#include <functional>

#include "nereid/base/result.h"

namespace nereid {

// What a command returns, as an exit code; an Error's blame gives 2, 3 or 130.
// kBadInput and kOurError: the command has reported the error itself, as a part of its data.
enum class Answer : int { kYes = 0, kNo = 1, kBadInput = 2, kOurError = 3 };

// The program's side of a parsed command line.
struct Chosen {
  bool json = false;                    // --json: errors are printed as a JSON object on stdout, too
  std::function<Result<Answer>()> run;  // set by the callback of the subcommand that was given
};

int exit_code(Blame blame);

// Runs it, interruptible from now on, and reports what goes wrong: an Error, an interrupt, an exception
// (whose first line has the reason; libtorch adds a stack). The exit code.
int run_to_exit_code(const Chosen& chosen);

}  // namespace nereid
