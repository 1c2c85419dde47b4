// HTTP/1.1 as a small server needs it: a request in pieces, bounded; a response that ends with its
// connection.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::lm {

struct HttpRequest {
  std::string method, path;  // the path without what follows a '?'
  std::string body;
};

// Bytes of one request as they come; hostile.
class HttpReader {
 public:
  struct Refusal {
    int status = 400;
    std::string reason;
  };
  static constexpr size_t kMaxHead = size_t{64} << 10, kMaxBody = size_t{16} << 20;

  // True when the request is whole, or refused: nothing more is read then.
  bool feed(std::string_view bytes);
  const std::optional<Refusal>& refusal() const { return refusal_; }
  const HttpRequest& request() const { return request_; }

 private:
  bool refuse(int status, std::string reason);
  bool read_head(std::string_view head);

  std::string head_;
  std::optional<size_t> body_bytes_;  // where the head is read
  std::optional<Refusal> refusal_;
  HttpRequest request_;
};

// A whole response, or, with no body, the head of one whose body ends when the connection does.
// `more`: further headers, each with its end of line.
std::string http_response(int status, std::string_view content_type, std::optional<std::string_view> body,
                          std::string_view more = {});

}  // namespace nereid::lm
