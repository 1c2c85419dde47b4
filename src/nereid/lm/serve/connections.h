// The sockets of a server: clients come, send one request each, and take its answer as fast as they read. One
// thread; nothing blocks but `wait`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/result.h"
#include "nereid/lm/serve/http_message.h"

namespace nereid::lm {

using ClientId = uint64_t;

struct ConnectionLimits {
  size_t most = 4096;                    // at a time; more are closed at once
  size_t max_unsent = size_t{64} << 20;  // bytes for one client: one that does not read is cut
  double seconds_for_request = 60;       // from its coming until its request is whole
};

class Connections {
 public:
  struct Handler {
    std::function<void(ClientId, const HttpRequest&)> on_request;
    std::function<void(ClientId, const HttpReader::Refusal&)> on_refusal;  // what came is no request
    std::function<void(ClientId)> on_gone;  // before it had all of its answer, or any
  };

  // An IPv4 address of this machine; port 0 is any that is free. An error is blamed on the input.
  static Result<Connections> listen(const std::string& address, int port, ConnectionLimits limits = {});
  int port() const { return port_; }
  // Accepts no more connections; open ones stay.
  void stop_listening() { listener_.reset(); }

  // Sends what clients take, then waits for at most so many milliseconds (-1: for ever), for `wake` too where
  // that is a file descriptor, and hands out what has come.
  void wait(int milliseconds, int wake, const Handler& handler);
  // To be sent in the next `wait`. To a client that is gone: nothing happens.
  void send(ClientId client, std::string_view bytes);
  // The last was sent: the connection ends when it is with the client.
  void finish(ClientId client);
  bool all_sent() const;

 private:
  struct Connection {
    Fd fd;
    Deadline until;  // its request is to be whole
    HttpReader reader = {};
    std::string unsent = {};
    enum { kAsks, kAnswered, kFinished, kLost } state = kAsks;
  };
  Connections(Fd listener, int port, ConnectionLimits limits)
      : listener_(std::move(listener)), port_(port), limits_(limits) {}
  void accept();
  void receive(ClientId client, Connection& connection, const Handler& handler);
  void flush(Connection& connection) const;
  void sweep(const Handler& handler);

  Fd listener_;
  int port_;
  ConnectionLimits limits_;
  ClientId next_ = 1;
  std::map<ClientId, Connection> connections_;
};

}  // namespace nereid::lm
