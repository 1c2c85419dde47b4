// Whether a replay server is of this build and speaks the messages of this judge.
#pragma once

#include <string>

#include "nereid/base/json.h"
#include "nereid/base/result.h"

namespace nereid::replay {

// Of this program: a hash of the sources that write and read the messages between judge and workers.
std::string build_id();

// The first message of a server that is warm.
Json hello(const std::string& isolation);

// An Error of ours that names `program` where its first message is not that of a server of this build: what
// it would answer later must not be taken for a finding about a candidate.
Status same_build(const Json& hello, const std::string& program);

}  // namespace nereid::replay
