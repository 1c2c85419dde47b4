// Packets of bytes, with descriptors, over a SOCK_SEQPACKET pair between the judge and a worker of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/result.h"

namespace nereid::sandbox {

inline constexpr size_t kMaxPacket = size_t{1} << 16;

Result<std::pair<Fd, Fd>> make_channel();

Status send_packet(int socket, std::string_view packet, const std::vector<int>& descriptors = {});

// The next packet that is there; nothing when the other end is closed. Descriptors that came with it are
// dropped, or added to `descriptors`.
Result<std::optional<std::string>> receive_packet(int socket, std::vector<Fd>* descriptors = nullptr);

// A memory file holding `bytes`, at its start.
Result<Fd> memory_file(std::string_view bytes, const char* name);

}  // namespace nereid::sandbox
