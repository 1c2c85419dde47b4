#include "nereid/lm/serve/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "nereid/base/text.h"

namespace nereid::lm {
namespace {

bool equal_but_for_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

bool HttpReader::refuse(int status, std::string reason) {
  refusal_ = Refusal{status, std::move(reason)};
  return true;
}

bool HttpReader::feed(std::string_view bytes) {
  if (!body_bytes_) {
    // The head's end may lie across two pieces.
    const size_t from = head_.size() - std::min<size_t>(head_.size(), 3);
    head_ += bytes;
    const size_t end = head_.find("\r\n\r\n", from);
    if (std::min(end, head_.size()) > kMaxHead)
      return refuse(431, fmt::format("expected a head of at most {} bytes", kMaxHead));
    if (end == std::string::npos) return false;
    const std::string rest = head_.substr(end + 4);
    head_.resize(end);
    if (read_head(head_)) return true;
    request_.body = rest;
  } else {
    request_.body += bytes;
  }
  if (request_.body.size() > *body_bytes_)
    request_.body.resize(*body_bytes_);  // what follows is another request, which we do not take
  return request_.body.size() == *body_bytes_;
}

// True where it is refused.
bool HttpReader::read_head(std::string_view head) {
  const std::string_view first = head.substr(0, head.find("\r\n"));
  const size_t space = first.find(' '), second = first.find(' ', space == first.npos ? space : space + 1);
  if (space == first.npos || second == first.npos || !first.substr(second + 1).starts_with("HTTP/1."))
    return refuse(400, "expected a request line: METHOD PATH HTTP/1.1");
  request_.method = first.substr(0, space);
  request_.path = first.substr(space + 1, second - space - 1);
  request_.path.resize(std::min(request_.path.find('?'), request_.path.size()));
  body_bytes_ = 0;
  bool reported = false;
  for (std::string_view rest = head.substr(first.size()); rest.starts_with("\r\n");) {
    rest.remove_prefix(2);
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size());
    const size_t colon = line.find(':');
    // A space before the colon would hide a length that others read: RFC 9112 has it refused.
    if (colon == line.npos || colon == 0 || line[colon - 1] == ' ' || line[colon - 1] == '\t')
      return refuse(400, "expected headers: NAME: VALUE");
    const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (equal_but_for_case(name, "Transfer-Encoding"))
      return refuse(501, "expected a Content-Length, not a Transfer-Encoding");
    if (!equal_but_for_case(name, "Content-Length")) continue;
    size_t length = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (failure != std::errc() || end != value.data() + value.size() || (reported && length != *body_bytes_))
      return refuse(400, "expected one Content-Length, a number");
    if (length > kMaxBody)
      return refuse(413, fmt::format("expected a body of at most {} bytes, got {}", kMaxBody, length));
    body_bytes_ = length, reported = true;
  }
  return false;
}

std::string http_response(int status, std::string_view content_type, std::optional<std::string_view> body,
                          std::string_view more) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: close\r\n", status,
                                 phrase(status), content_type);
  if (body) text += fmt::format("Content-Length: {}\r\n", body->size());
  text += fmt::format("{}\r\n", more);
  if (body) text += *body;
  return text;
}

}  // namespace nereid::lm
