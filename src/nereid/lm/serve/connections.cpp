#include "nereid/lm/serve/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nereid::lm {

Result<Connections> Connections::listen(const std::string& address, int port, ConnectionLimits limits) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1)
    return input_error("--address: expected an IPv4 address, got '{}'", address);
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  socklen_t size = sizeof at;
  if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(fd.get(), 512) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0)
    return input_error("{}:{}: {}", address, port, std::strerror(errno));
  // One more must always be taken, to be closed: a client that cannot be taken would wake `wait` again and
  // again.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0)
    limits.most = std::min<size_t>(limits.most, files.rlim_cur > 256 ? files.rlim_cur - 128 : 128);
  return Connections(std::move(fd), ntohs(at.sin_port), limits);
}

void Connections::wait(int milliseconds, int wake, const Handler& handler) {
  for (auto& [client, connection] : connections_) flush(connection);
  sweep(handler);
  std::vector<pollfd> polled = {{wake, POLLIN, 0}, {listener_.get(), POLLIN, 0}};  // poll passes over a -1
  std::vector<ClientId> clients;
  Deadline until = Deadline::never();
  for (const auto& [client, connection] : connections_) {
    clients.push_back(client);
    polled.push_back(
        {connection.fd.get(), static_cast<short>(POLLIN | (connection.unsent.empty() ? 0 : POLLOUT)), 0});
    if (connection.state == Connection::kAsks) until = Deadline::earlier(until, connection.until);
  }
  const int left = until.poll_milliseconds();
  if (left >= 0) milliseconds = milliseconds < 0 ? left : std::min(milliseconds, left);
  if (::poll(polled.data(), polled.size(), milliseconds) > 0) {
    for (size_t i = 0; i < clients.size(); ++i) {
      Connection& connection = connections_.at(clients[i]);
      if (polled[i + 2].revents & (POLLIN | POLLHUP | POLLERR)) receive(clients[i], connection, handler);
      flush(connection);
    }
    if (polled[1].revents & POLLIN) accept();
  }
  sweep(handler);
}

void Connections::accept() {
  while (true) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    if (connections_.size() < limits_.most)
      connections_.emplace(
          next_++, Connection{.fd = std::move(fd), .until = Deadline::after(limits_.seconds_for_request)});
  }
}

void Connections::receive(ClientId client, Connection& connection, const Handler& handler) {
  char chunk[1 << 16];
  const ssize_t got = ::recv(connection.fd.get(), chunk, sizeof chunk, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {  // a client that has gone asks for nothing any more
    connection.state = Connection::kLost;
    return;
  }
  if (connection.state != Connection::kAsks || !connection.reader.feed({chunk, static_cast<size_t>(got)}))
    return;
  connection.state = Connection::kAnswered;
  if (const auto& refusal = connection.reader.refusal())
    handler.on_refusal(client, *refusal);
  else
    handler.on_request(client, connection.reader.request());
}

void Connections::flush(Connection& connection) const {
  size_t sent = 0;
  while (connection.state != Connection::kLost && sent < connection.unsent.size()) {
    const ssize_t taken = ::send(connection.fd.get(), connection.unsent.data() + sent,
                                 connection.unsent.size() - sent, MSG_NOSIGNAL);
    if (taken >= 0) sent += static_cast<size_t>(taken);
    if (taken >= 0 || errno == EINTR) continue;
    if (errno == EAGAIN && connection.unsent.size() - sent <= limits_.max_unsent) break;
    connection.state = Connection::kLost;
  }
  connection.unsent.erase(0, sent);
}

// Ends what is over.
void Connections::sweep(const Handler& handler) {
  std::erase_if(connections_, [&](auto& entry) {
    auto& [client, connection] = entry;
    if (connection.state == Connection::kAsks) return connection.until.passed();
    if (connection.state == Connection::kLost) handler.on_gone(client);
    return connection.state == Connection::kLost ||
           (connection.state == Connection::kFinished && connection.unsent.empty());
  });
}

void Connections::send(ClientId client, std::string_view bytes) {
  const auto found = connections_.find(client);
  if (found != connections_.end() && found->second.state != Connection::kLost) found->second.unsent += bytes;
}

void Connections::finish(ClientId client) {
  const auto found = connections_.find(client);
  if (found != connections_.end() && found->second.state != Connection::kLost)
    found->second.state = Connection::kFinished;
}

bool Connections::all_sent() const {
  return std::all_of(connections_.begin(), connections_.end(), [](const auto& entry) {
    return entry.second.unsent.empty() && entry.second.state != Connection::kFinished;
  });
}

}  // namespace nereid::lm
