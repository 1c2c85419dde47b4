// HTTP/1.1 and WebSocket on one port, by Boost.Beast: connections that stay, limits on heads, bodies and
// time, one thread.
//
// All callbacks run on the thread that is in `run`, and all functions but `post` belong to it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::serve {

struct HttpRequest {
  std::string method, path, query;             // the path without its query, which comes after the '?'
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string peer;  // the client's address

  std::string_view header(const std::string& name) const;  // empty where there is none
};

struct HttpResponse {
  int status = 200;
  std::string body{};
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
};

// Answers one request, once, now or later. To a client that has gone: nothing happens.
using Reply = std::function<void(HttpResponse)>;

// One WebSocket connection. Messages come and go as text, in order.
class WebSocket {
 public:
  virtual ~WebSocket() = default;
  virtual void send(std::string text) = 0;
  virtual void close() = 0;  // after what was sent

  std::function<void(std::string)> on_message;
  std::function<void()> on_close;
};

struct HttpLimits {
  size_t body = size_t{16} << 20;  // bytes, of a WebSocket's message too; more is 413
  size_t head = size_t{64} << 10;  // bytes; more is 431
  size_t connections = 4096;       // at a time; more are closed at once
  double seconds =
      60;  // for a request to arrive, for an answer to be taken, between requests of a connection
};

struct HttpHandlers {
  // Sees a request's head before its body is read: a response refuses it.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> on_head;
  std::function<void(HttpRequest, Reply)> on_request;
  std::string socket_path;  // the path that upgrades to a WebSocket
  std::function<void(const HttpRequest&, std::shared_ptr<WebSocket>)> on_socket;
};

class HttpServer {
 public:
  // Port 0 is any that is free. An error is blamed on the input.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& address, int port,
                                                    const HttpLimits& limits, HttpHandlers handlers);
  ~HttpServer();
  int port() const;

  void run();   // until `stop`
  void stop();  // what was answered but not sent is lost
  // Runs `work` on the server's thread. Thread-safe.
  void post(std::function<void()> work);
  void every(double seconds, std::function<void()> work);
  void when_readable(int fd, std::function<void()> work);  // once

  void stop_listening();
  size_t connections() const;
  size_t unanswered() const;  // requests that wait for their answer, or whose answer is being sent
  void close_idle();          // connections between two requests

  struct State;

 private:
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace nereid::serve
