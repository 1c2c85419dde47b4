#include "nereid/lm/serve/http_message.h"

#include <gtest/gtest.h>

#include <random>

namespace nereid::lm {
namespace {

const std::string kRequest =
    "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: here\r\ncontent-length:  11 \r\n\r\nhello\r\n\r\nyou";

TEST(HttpReader, ReadsARequestInWhateverPieces) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 300; ++turn) {
    HttpReader reader;
    size_t at = 0;
    bool done = false;
    while (!done) {
      ASSERT_LT(at, kRequest.size());
      const size_t n = 1 + random() % (turn % 7 == 0 ? 200 : 9);
      done = reader.feed(std::string_view(kRequest).substr(at, n));
      at += n;
    }
    EXPECT_GE(at, kRequest.size() - 1);
    ASSERT_FALSE(reader.refusal()) << reader.refusal()->reason;
    EXPECT_EQ(reader.request().method, "POST");
    EXPECT_EQ(reader.request().path, "/v1/chat/completions");
    EXPECT_EQ(reader.request().body, "hello\r\n\r\nyo");
  }
}

int status_of(const std::string& text) {
  HttpReader reader;
  if (!reader.feed(text)) return 0;
  return reader.refusal() ? reader.refusal()->status : 200;
}

TEST(HttpReader, RefusesWhatItDoesNotTake) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n"), 0);
  EXPECT_EQ(status_of("GET /\r\n\r\n"), 400);
  EXPECT_EQ(status_of("\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length : 1\r\n\r\nx"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"), 413);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + std::string(70000, 'x')), 431);
}

TEST(HttpReader, ChangedBytesAreARequestOrARefusal) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 20000; ++turn) {
    std::string text = kRequest;
    for (unsigned i = 0; i < 1 + random() % 4; ++i) text[random() % text.size()] = "\r\n: \0x9"[random() % 7];
    HttpReader reader;
    for (size_t at = 0; at < text.size(); at += 7)
      if (reader.feed(std::string_view(text).substr(at, 7))) break;
    EXPECT_LE(reader.request().body.size(), text.size());
  }
}

TEST(HttpResponse, HasALengthOrEndsWithItsConnection) {
  EXPECT_EQ(http_response(404, "text/plain", "no"),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: "
            "2\r\n\r\nno");
  EXPECT_EQ(http_response(200, "text/event-stream", {}),
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace nereid::lm
