// What `nereid` does with its arguments: its exit code.
#pragma once

namespace nereid::app {

int run(int argc, char** argv);

}  // namespace nereid::app
