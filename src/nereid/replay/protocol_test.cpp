#include "nereid/replay/protocol.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "nereid/replay/message.h"

namespace nereid::replay {
namespace {

// A user without rights whose processes may have 32 files open sends 48 descriptors that are not read at
// first: the kernel takes so many only while a reader receives them.
int send_many() {
  std::vector<std::pair<Fd, Fd>> pairs;
  for (int i = 0; i < 48; ++i) pairs.push_back(make_socket_pair().value());
  const Fd file = sealed_file("x").value();
  const rlimit few{32, 32};
  if (::setrlimit(RLIMIT_NOFILE, &few) != 0 || (::getuid() == 0 && ::setresuid(61234, 61234, 61234) != 0))
    return 2;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    for (auto& pair : pairs) (void)receive_message(pair.second.get(), Deadline::after(20));
  });
  bool sent = true;
  for (auto& pair : pairs) sent = send_message(pair.first.get(), {{"here", true}}, {file.get()}).ok() && sent;
  reader.join();
  return sent ? 0 : 1;
}

TEST(ProtocolTest, WaitsWhileTooManyDescriptorsAreOnTheirWay) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(send_many());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace nereid::replay
