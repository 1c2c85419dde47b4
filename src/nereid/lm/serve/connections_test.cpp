#include "nereid/lm/serve/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>

namespace nereid::lm {
namespace {

constexpr std::string_view kWholeRequest = "GET /x HTTP/1.1\r\n\r\n";

class ConnectionsTest : public testing::Test {
 protected:
  void open(ConnectionLimits limits = {}) {
    connections_.emplace(Connections::listen("127.0.0.1", 0, limits).value());
  }
  Fd client(std::string_view says = {}) const {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET, at.sin_port = htons(static_cast<uint16_t>(connections_->port())),
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::send(fd.get(), says.data(), says.size(), 0), static_cast<ssize_t>(says.size()));
    return fd;
  }
  // Turns until `done`, or for a minute.
  bool turn_until(const std::function<bool()>& done) {
    const Stopwatch watch;
    while (watch.seconds() < 60) {
      if (done()) return true;
      connections_->wait(
          10, -1,
          {.on_request = [&](ClientId id,
                             const HttpRequest& request) { asked_.emplace_back(id, request.path); },
           .on_refusal = [&](ClientId,
                             const HttpReader::Refusal& refusal) { refused_.push_back(refusal.status); },
           .on_gone = [&](ClientId id) { gone_.push_back(id); }});
    }
    return false;
  }
  // What is there to be read now; "end" where nothing more comes.
  static std::string received(const Fd& client) {
    std::string text;
    char chunk[1 << 16];
    ssize_t got;
    while ((got = ::recv(client.get(), chunk, sizeof chunk, MSG_DONTWAIT)) > 0)
      text.append(chunk, static_cast<size_t>(got));
    return got == 0 || errno == ECONNRESET ? text + "end" : text;
  }

  std::optional<Connections> connections_;
  std::vector<std::pair<ClientId, std::string>> asked_;
  std::vector<int> refused_;
  std::vector<ClientId> gone_;
};

TEST_F(ConnectionsTest, AnAnswerInPiecesEndsWithItsConnection) {
  open();
  const Fd one = client(kWholeRequest.substr(0, 5)), other = client("nonsense\r\n\r\n");
  ASSERT_TRUE(turn_until([&] { return !refused_.empty(); }));
  EXPECT_TRUE(asked_.empty());
  ASSERT_EQ(::send(one.get(), kWholeRequest.data() + 5, kWholeRequest.size() - 5, 0),
            static_cast<ssize_t>(kWholeRequest.size() - 5));
  ASSERT_TRUE(turn_until([&] { return !asked_.empty(); }));
  const ClientId id = asked_[0].first;
  connections_->send(id, "one ");
  EXPECT_FALSE(connections_->all_sent());
  std::string text;
  ASSERT_TRUE(turn_until([&] { return (text += received(one)) == "one "; }));
  EXPECT_TRUE(connections_->all_sent());
  connections_->send(id, "two ");
  connections_->finish(id);
  ASSERT_TRUE(turn_until([&] { return (text += received(one)) == "one two end"; }));
  EXPECT_TRUE(gone_.empty());
  connections_->send(id, "late"), connections_->finish(id);  // to a closed connection
}

TEST_F(ConnectionsTest, AClientThatLeavesBeforeTheAnswerIsReported) {
  open();
  {
    const Fd one = client(kWholeRequest);
    ASSERT_TRUE(turn_until([&] { return !asked_.empty(); }));
  }
  EXPECT_TRUE(turn_until([&] { return gone_ == std::vector<ClientId>{asked_[0].first}; }));
}

TEST_F(ConnectionsTest, WhoDoesNotAskInTimeIsCutAndWhoHasAskedIsNot) {
  open({.seconds_for_request = 0.2});
  const Fd slow = client("GET /"), quick = client(kWholeRequest);
  ASSERT_TRUE(turn_until([&] { return received(slow) == "end"; }));
  ASSERT_EQ(asked_.size(), 1u);
  connections_->send(asked_[0].first, "late");
  EXPECT_TRUE(turn_until([&] { return received(quick) == "late"; }));
}

TEST_F(ConnectionsTest, WhoDoesNotReadIsCut) {
  open({.max_unsent = size_t{1} << 20});
  const Fd deaf = client(kWholeRequest);
  ASSERT_TRUE(turn_until([&] { return !asked_.empty(); }));
  EXPECT_TRUE(turn_until([&] {
    connections_->send(asked_[0].first, std::string(size_t{1} << 20, 'x'));
    return !gone_.empty();
  }));
}

TEST_F(ConnectionsTest, ThereIsRoomForSoMany) {
  open({.most = 2});
  const Fd one = client(), two = client(), three = client(kWholeRequest);
  EXPECT_TRUE(turn_until([&] { return received(three) == "end"; }));
  EXPECT_TRUE(asked_.empty());
  connections_->stop_listening();
  ASSERT_EQ(::send(two.get(), kWholeRequest.data(), kWholeRequest.size(), 0),
            static_cast<ssize_t>(kWholeRequest.size()));
  EXPECT_TRUE(turn_until([&] { return !asked_.empty(); }));
}

}  // namespace
}  // namespace nereid::lm
