// Messages between the judge and a replay worker: a JSON document and descriptors over a unix stream socket.
//
// On the wire: four bytes length (little endian), then the document as CBOR; descriptors travel with the
// first byte.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/result.h"

namespace nereid::replay {

inline constexpr size_t kMaxMessage = size_t{16} << 20;
inline constexpr size_t kMaxDescriptors = 8;

struct Message;

Result<std::pair<Fd, Fd>> make_socket_pair();

// Errors are blamed on us; "the other side is gone" where it closed its end. The descriptors stay the
// caller's.
Status send_message(int socket, const nlohmann::json& document, const std::vector<int>& descriptors = {});
// A peer is hostile: bounded in size and depth. `timed_out` is set where the deadline passed. An interrupt
// ends the wait.
Result<Message> receive_message(int socket, Deadline deadline, bool* timed_out = nullptr);

// A sealed memory file that holds `bytes`, and what such a file holds.
Result<Fd> sealed_file(std::string_view bytes);
Result<std::string> read_sealed_file(int fd, size_t max_bytes);

}  // namespace nereid::replay
