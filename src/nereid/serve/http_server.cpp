#include "nereid/serve/http_server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <deque>
#include <set>

namespace nereid::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kMaxUnsent = size_t{64} << 20;  // bytes for one WebSocket that does not read
constexpr size_t kMaxDiscarded = size_t{256} << 20;
constexpr double kSecondsToDiscard = 5;

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

HttpRequest request_of(const http::request<http::string_body>& head, const std::string& peer) {
  HttpRequest request;
  request.method = std::string(head.method_string());
  std::string_view target(head.target().data(), head.target().size());
  std::string host;  // of a target with a scheme, as proxies send it: it stands for the header Host
  if (constexpr std::string_view kScheme = "http://"; target.starts_with(kScheme)) {
    const size_t path = std::min(target.find_first_of("/?", kScheme.size()), target.size());
    host = target.substr(kScheme.size(), path - kScheme.size());
    target = path == target.size() ? "/" : target.substr(path);
  }
  const size_t question = std::min(target.find('?'), target.size());
  request.path = target.substr(0, question);
  request.query = target.substr(std::min(question + 1, target.size()));
  for (const auto& field : head) {
    std::string name(field.name_string());
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers.emplace(std::move(name), std::string(field.value()));
  }
  if (!host.empty()) request.headers["host"] = host;
  request.peer = peer;
  return request;
}

HttpResponse refusal(int status, std::string_view message) {
  return {.status = status, .body = fmt::format(R"({{"status":"error","error":"{}"}})", message)};
}

}  // namespace

std::string_view HttpRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

class Session;

struct HttpServer::State {
  State(const HttpLimits& limits, HttpHandlers handlers)
      : limits(limits), handlers(std::move(handlers)), acceptor(io) {}

  HttpLimits limits;
  HttpHandlers handlers;
  int port = 0;
  size_t connections = 0, unanswered = 0;
  std::set<Session*> idle;
  asio::io_context io{1};  // holds the sessions, which use what is above
  tcp::acceptor acceptor;
  std::vector<std::shared_ptr<asio::steady_timer>> timers;

  void accept();
};

// A WebSocket of one client. It lives as long as an operation of it is under way.
class SocketSession : public WebSocket, public std::enable_shared_from_this<SocketSession> {
 public:
  SocketSession(HttpServer::State& server, tcp::socket socket, HttpRequest request)
      : server_(server), stream_(std::move(socket)), request_(std::move(request)) {
    ++server_.connections;
  }
  ~SocketSession() override { --server_.connections; }

  void begin(const http::request<http::string_body>& upgrade) {
    auto timeout = websocket::stream_base::timeout::suggested(beast::role_type::server);
    timeout.handshake_timeout = milliseconds(server_.limits.seconds);
    stream_.set_option(timeout);
    stream_.read_message_max(server_.limits.body);
    stream_.async_accept(upgrade, [self = shared_from_this()](error_code failure) {
      if (failure) return;
      self->server_.handlers.on_socket(self->request_, self);
      self->read();
    });
  }

  void send(std::string text) override {
    if (closed_) return;
    unsent_bytes_ += text.size();
    unsent_.push_back(std::move(text));
    if (unsent_bytes_ > kMaxUnsent) return end();
    if (unsent_.size() == 1) write();
  }

  void close() override {
    closing_ = true;
    if (unsent_.empty()) close_gracefully();
  }

 private:
  // Reads all the time: only a read answers the client's pings.
  void read() {
    stream_.async_read(buffer_, [self = shared_from_this()](error_code failure, size_t) {
      if (failure) return self->end();
      std::string text(static_cast<const char*>(self->buffer_.data().data()), self->buffer_.size());
      self->buffer_.consume(self->buffer_.size());
      if (const auto handler = self->on_message) handler(std::move(text));  // a copy: `end` takes it away
      if (!self->closed_) self->read();
    });
  }
  void write() {
    stream_.text(true);
    stream_.async_write(asio::buffer(unsent_.front()),
                        [self = shared_from_this()](error_code failure, size_t) {
                          if (failure) return self->end();
                          self->unsent_bytes_ -= self->unsent_.front().size();
                          self->unsent_.pop_front();
                          if (!self->unsent_.empty()) return self->write();
                          if (self->closing_) self->close_gracefully();
                        });
  }
  void close_gracefully() {
    if (closed_) return;
    stream_.async_close(websocket::close_code::normal,
                        [self = shared_from_this()](error_code) { self->end(); });
  }
  void end() {
    if (std::exchange(closed_, true)) return;
    beast::get_lowest_layer(stream_).close();
    if (on_close) on_close();
    on_close = nullptr, on_message = nullptr;  // they may hold this
  }

  HttpServer::State& server_;
  websocket::stream<beast::tcp_stream> stream_;
  HttpRequest request_;
  beast::flat_buffer buffer_;
  std::deque<std::string> unsent_;
  size_t unsent_bytes_ = 0;
  bool closing_ = false, closed_ = false;
};

// The requests of one connection, one after the other.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(HttpServer::State& server, tcp::socket socket) : server_(server), stream_(std::move(socket)) {
    ++server_.connections;
    error_code failure;
    const auto peer = stream_.socket().remote_endpoint(failure);
    if (!failure) peer_ = peer.address().to_string();
  }
  ~Session() {
    server_.idle.erase(this);
    --server_.connections;
    if (waiting_) --server_.unanswered;
  }

  void read_head() {
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(server_.limits.head));
    parser_->body_limit(server_.limits.body);
    stream_.expires_after(milliseconds(server_.limits.seconds));
    server_.idle.insert(this);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code failure, size_t) {
                              self->server_.idle.erase(self.get());
                              if (failure) return self->refuse(failure);
                              self->take_head();
                            });
  }

  void close() {
    error_code ignored;
    stream_.socket().close(ignored);
  }

 private:
  void take_head() {
    HttpRequest head = request_of(parser_->get(), peer_);
    without_body_ = head.method == "HEAD";
    if (auto refused = server_.handlers.on_head(head)) return respond(*std::move(refused), /*last=*/true);
    if (websocket::is_upgrade(parser_->get()) && head.path == server_.handlers.socket_path) {
      const auto upgrade = parser_->release();
      stream_.expires_never();
      std::make_shared<SocketSession>(server_, stream_.release_socket(), std::move(head))->begin(upgrade);
      return;
    }
    stream_.expires_after(milliseconds(server_.limits.seconds));
    if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return read_body();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = shared_from_this()](error_code failure, size_t) {
                        if (!failure) self->read_body();
                      });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code failure, size_t) {
      if (failure) return self->refuse(failure);
      self->take_request();
    });
  }

  void take_request() {
    stream_.expires_never();  // the judge has its own limits
    keep_alive_ = parser_->get().keep_alive();
    HttpRequest request = request_of(parser_->get(), peer_);
    request.body = std::move(parser_->get().body());
    waiting_ = true;
    ++server_.unanswered;
    const auto answered = std::make_shared<bool>(false);
    server_.handlers.on_request(std::move(request),
                                [self = shared_from_this(), answered](HttpResponse response) {
                                  if (!std::exchange(*answered, true))
                                    self->respond(std::move(response), false);
                                });
  }

  // What came is no request that we take.
  void refuse(error_code failure) {
    if (failure == http::error::body_limit)
      return respond(refusal(413, fmt::format("expected a body of at most {} bytes", server_.limits.body)),
                     true);
    if (failure == http::error::header_limit)
      return respond(refusal(431, fmt::format("expected a head of at most {} bytes", server_.limits.head)),
                     true);
    if (failure == beast::error::timeout && parser_ && parser_->got_some()) return close();  // a slow client
    const bool is_http = failure.category() == http::make_error_code(http::error::bad_method).category();
    if (!is_http || failure == http::error::end_of_stream || failure == http::error::partial_message)
      return close();
    respond(refusal(400, "expected an HTTP/1.1 request"), true);
  }

  void respond(HttpResponse response, bool last) {
    response_ = {};
    response_.version(11);
    response_.result(static_cast<unsigned>(response.status));
    response_.set(http::field::server, "nereid");
    response_.set(http::field::content_type, response.type);
    response_.set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : response.headers) response_.set(name, value);
    last = last || !keep_alive_ || !server_.acceptor.is_open();
    response_.keep_alive(!last);
    if (!last && parser_->get().version() == 10) response_.set(http::field::connection, "keep-alive");
    response_.body() = std::move(response.body);
    response_.prepare_payload();
    if (without_body_) response_.body().clear();
    stream_.expires_after(milliseconds(server_.limits.seconds));
    http::async_write(stream_, response_, [self = shared_from_this(), last](error_code failure, size_t) {
      if (std::exchange(self->waiting_, false)) --self->server_.unanswered;
      if (failure) return self->close();
      if (!last) return self->read_head();
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      self->stream_.expires_after(milliseconds(kSecondsToDiscard));
      self->discard();
    });
  }

  // A connection that is closed while its client still sends is reset, and the client may never read our
  // answer.
  void discard() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(size_t{1} << 16),
                            [self = shared_from_this()](error_code failure, size_t got) {
                              self->discarded_ += got;
                              if (failure || self->discarded_ > kMaxDiscarded) return self->close();
                              self->discard();
                            });
  }

  HttpServer::State& server_;
  beast::tcp_stream stream_;
  std::string peer_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  bool keep_alive_ = false, without_body_ = false, waiting_ = false;
  size_t discarded_ = 0;
};

void HttpServer::State::accept() {
  acceptor.async_accept([this](error_code failure, tcp::socket socket) {
    if (failure == asio::error::operation_aborted) return;
    if (!failure && connections < limits.connections) {
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      std::make_shared<Session>(*this, std::move(socket))->read_head();
    }
    if (acceptor.is_open()) accept();
  });
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& address, int port,
                                                       const HttpLimits& limits, HttpHandlers handlers) {
  auto state = std::make_unique<State>(limits, std::move(handlers));
  error_code failure;
  const auto ip = asio::ip::make_address(address, failure);
  if (failure) return input_error("--address: expected an IP address, got '{}'", address);
  const tcp::endpoint at(ip, static_cast<uint16_t>(port));
  auto& acceptor = state->acceptor;
  acceptor.open(at.protocol(), failure);
  if (!failure) acceptor.set_option(tcp::acceptor::reuse_address(true), failure);
  if (!failure) acceptor.bind(at, failure);
  if (!failure) acceptor.listen(512, failure);
  if (failure) return input_error("{}:{}: {}", address, port, failure.message());
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  state->port = acceptor.local_endpoint().port();
  // One more must always be accepted, to be closed.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0)
    state->limits.connections =
        std::min<size_t>(limits.connections, files.rlim_cur > 256 ? files.rlim_cur - 128 : 128);
  state->accept();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

int HttpServer::port() const { return state_->port; }
void HttpServer::run() { state_->io.run(); }
void HttpServer::stop() { state_->io.stop(); }
void HttpServer::post(std::function<void()> work) { asio::post(state_->io, std::move(work)); }

void HttpServer::every(double seconds, std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(state_->io);
  state_->timers.push_back(timer);
  auto tick = std::make_shared<std::function<void(error_code)>>();
  *tick = [timer, seconds, work = std::move(work), weak = std::weak_ptr(tick)](error_code failure) {
    if (failure) return;
    work();
    timer->expires_after(milliseconds(seconds));
    if (const auto again = weak.lock()) timer->async_wait([again](error_code next) { (*again)(next); });
  };
  timer->expires_after(milliseconds(seconds));
  timer->async_wait([tick](error_code failure) { (*tick)(failure); });
}

void HttpServer::when_readable(int fd, std::function<void()> work) {
  auto descriptor = std::make_shared<asio::posix::stream_descriptor>(state_->io, ::dup(fd));
  descriptor->async_wait(asio::posix::stream_descriptor::wait_read,
                         [descriptor, work = std::move(work)](error_code failure) {
                           if (!failure) work();
                         });
}

void HttpServer::stop_listening() {
  error_code ignored;
  state_->acceptor.close(ignored);
}
size_t HttpServer::connections() const { return state_->connections; }
size_t HttpServer::unanswered() const { return state_->unanswered; }
void HttpServer::close_idle() {
  for (Session* session : std::set<Session*>(state_->idle)) session->close();
}

}  // namespace nereid::serve
