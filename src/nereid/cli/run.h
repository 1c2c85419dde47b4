// What `nereid` does with its arguments: its exit code.
#pragma once

namespace nereid::cli {

int run(int argc, char** argv);

}  // namespace nereid::cli
