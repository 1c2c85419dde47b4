#include "nereid/proposers/http.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/proposers/speculative_chat.h"

namespace nereid::proposers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

// A server on this machine that answers each connection with the next of its lines, the last one again and
// again.
class Server {
 public:
  struct Reply {
    std::string bytes;    // of the whole HTTP response
    double silence = 0;   // seconds before the connection is closed
    size_t repeated = 0;  // times that `again` follows
    std::string again = {};
  };

  explicit Server(std::vector<Reply> replies) : replies_(std::move(replies)) {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    stop_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string base() const { return fmt::format("http://127.0.0.1:{}/v1", port_); }
  std::vector<std::string> requests;  // as they came, heads and bodies; to be read when all is over

 private:
  void serve() {
    for (size_t number = 0; !stop_; ++number) {
      Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection.valid()) return;
      requests.push_back(read(connection.get()));
      const Reply& reply = replies_[std::min(number, replies_.size() - 1)];
      bool open = send(connection.get(), reply.bytes);
      for (size_t i = 0; i < reply.repeated && open; ++i) open = send(connection.get(), reply.again);
      for (double waited = 0; waited < reply.silence && !stop_; waited += 0.02)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  static std::string read(int fd) {
    std::string request;
    char chunk[4096];
    while (true) {
      const size_t head = request.find("\r\n\r\n");
      if (head != request.npos) {
        const size_t at = request.find("Content-Length: ");
        if (request.size() >= head + 4 + std::stoul(request.substr(at + 16))) return request;
      }
      const ssize_t got = ::recv(fd, chunk, sizeof chunk, 0);
      if (got <= 0) return request;
      request.append(chunk, static_cast<size_t>(got));
    }
  }
  static bool send(int fd, const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<size_t>(sent);
    }
    return true;
  }

  std::vector<Reply> replies_;
  Fd listener_;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

std::string response(int status, const std::string& type, const std::string& body,
                     const std::string& more = "") {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Type: {}\r\nConnection: close\r\n{}\r\n{}", status, type, more,
                     body);
}
std::string part(const std::string& text, const std::string& finish = "null") {
  return "data: " +
         Json{{"choices", {{{"delta", {{"content", text}}}, {"finish_reason", Json::parse(finish)}}}}}
             .dump() +
         "\n\n";
}
const std::string kUsage =
    "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 100, \"completion_tokens\": 20}}\n\n";
std::string stream(const std::string& body) {
  return response(200, "text/event-stream; charset=utf-8", body);
}
const std::string kGood = stream(": hello\n\n" + part("I fuse.\n") + part("```python\nx = 1\n") +
                                 part("```", "\"stop\"") + kUsage + "data: [DONE]\n\n");

ChatOptions options_for(const Server& server) {
  return {.base = server.base(),
          .key = "secret",
          .model = "m",
          .tries = 3,
          .first_pause = 0.01,
          .longest_pause = 0.2,
          .connect_seconds = 2,
          .stall_seconds = 1,
          .max_bytes = 100000};
}
Result<ChatAnswer> ask(const Server& server, double seconds = 200) {
  return chat(options_for(server), {{"user", "hi"}}, Deadline::after(seconds));
}

TEST(Chat, AStreamIsReadWhole) {
  const Server server({{kGood}});
  const auto answer = ask(server);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->text, "I fuse.\n```python\nx = 1\n```");
  EXPECT_EQ(answer->finish, "stop");
  EXPECT_TRUE(answer->tokens_known);
  EXPECT_EQ(answer->prompt_tokens, 100);
  EXPECT_EQ(answer->completion_tokens, 20);
  EXPECT_EQ(answer->tries, 1);
}

TEST(Chat, TheRequestSaysWhatItMust) {
  Server server({{kGood}});
  ASSERT_TRUE(ask(server).ok());
  ASSERT_THAT(server.requests, SizeIs(1));
  const std::string& request = server.requests[0];
  EXPECT_THAT(request, HasSubstr("POST /v1/chat/completions"));
  EXPECT_THAT(request, HasSubstr("Authorization: Bearer secret"));
  const Json body = Json::parse(request.substr(request.find("\r\n\r\n") + 4));
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["messages"][0]["content"], "hi");
}

TEST(Chat, AnAnswerThatIsNotStreamedIsTakenToo) {
  const Server server({{response(200, "application/json",
                                 R"({"choices": [{"message": {"content": "x"}, "finish_reason": "length"}],
                                     "usage": {"prompt_tokens": 1, "completion_tokens": 2}})")}});
  const auto answer = ask(server);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->text, "x");
  EXPECT_EQ(answer->finish, "length");
  EXPECT_EQ(answer->completion_tokens, 2);
}

// What may pass: one such answer, then a good one.
class Passing : public testing::TestWithParam<std::pair<const char*, std::string>> {};
TEST_P(Passing, IsTriedAgain) {
  const Server server({{GetParam().second, 0}, {kGood}});
  const auto answer = ask(server);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->tries, 2);
  EXPECT_EQ(answer->text, "I fuse.\n```python\nx = 1\n```");
}
// ... and nothing but such answers: an error that says what came.
TEST_P(Passing, IsReportedInTheEnd) {
  Server server({{GetParam().second, 0}});
  const auto answer = ask(server);
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, AllOf(HasSubstr("127.0.0.1"), HasSubstr("3 tries")));
  EXPECT_EQ(answer.error().blame, Blame::kOurs);
}
INSTANTIATE_TEST_SUITE_P(
    Usual, Passing,
    testing::Values(
        std::pair{"TooMany", response(429, "application/json", "{}", "Retry-After: 0\r\n")},
        std::pair{"Internal", response(500, "text/plain", "oh no")},
        std::pair{"Unavailable", response(503, "text/html", "<html>")},
        std::pair{"ClosedAtOnce", std::string()},
        std::pair{"HalfAHead", std::string("HTTP/1.1 200 OK\r\nContent-Ty")},
        std::pair{"CutStream", stream(part("I fu"))},
        std::pair{"CutLine", stream(part("I fu") + "data: {\"choi")},
        std::pair{
            "CutLength",
            std::string(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{\"cho")},
        std::pair{"BadJson", response(200, "application/json", "{\"choices\": [")},
        std::pair{"BadPart", stream("data: {nonsense\n\ndata: [DONE]\n\n")},
        std::pair{"NoChoices", response(200, "application/json", R"({"choices": []})")},
        std::pair{"NoChoicesStreamed", stream(kUsage + "data: [DONE]\n\n")},
        std::pair{"EmptyText", stream(part("", "\"stop\"") + "data: [DONE]\n\n")},
        std::pair{"NullContent",
                  response(200, "application/json", R"({"choices": [{"message": {"content": null}}]})")},
        std::pair{"WrongTypes", response(200, "application/json", R"({"choices": {"message": 3}})")},
        std::pair{"Html", response(200, "text/html", "<html><body>Sign in</body></html>")},
        std::pair{"ErrorIn200", stream("data: {\"error\": {\"message\": \"overloaded\"}}\n\n")}),
    [](const auto& info) { return std::string(info.param.first); });

TEST(Chat, WhatWillNotPassIsNotTriedAgain) {
  for (const int status : {400, 401, 403, 404, 422}) {
    Server server({{response(status, "application/json", R"({"error": "no such model"})")}});
    const auto answer = ask(server);
    ASSERT_FALSE(answer.ok());
    EXPECT_THAT(answer.error().message, AllOf(HasSubstr(std::to_string(status)), HasSubstr("no such model")));
    EXPECT_EQ(answer.error().blame, Blame::kInput);
    EXPECT_THAT(server.requests, SizeIs(1));
  }
}

TEST(Chat, AHangEnds) {
  {
    const Server server({{"", 300}, {kGood}});  // not a byte
    const Stopwatch watch;
    (void)ask(server, 4);
    EXPECT_LT(watch.seconds(), 60);
  }
  {
    const Server server({{stream(part("I fu")), 300}});  // some, and then none
    const Stopwatch watch;
    const auto answer = ask(server, 2);
    EXPECT_FALSE(answer.ok());
    EXPECT_LT(watch.seconds(), 60);
  }
}

TEST(Chat, AHugeAnswerIsRefusedWithoutHoldingIt) {
  for (const bool streamed : {true, false}) {
    Server server({{streamed ? stream("") : response(200, "application/json", "{\"x\": \""), 0, 5000,
                    streamed ? part(std::string(500, 'x')) : std::string(500, 'x')}});
    const auto answer = ask(server);
    ASSERT_FALSE(answer.ok());
    EXPECT_THAT(answer.error().message, HasSubstr("longer than 100000 bytes"));
    EXPECT_THAT(server.requests, SizeIs(1));
  }
  // One line without an end, too.
  const Server server({{stream("data: "), 0, 5000, std::string(500, 'x')}});
  EXPECT_THAT(ask(server).error().message, HasSubstr("longer than"));
}

TEST(Chat, NoServer) {
  std::string base;
  {
    base = Server({{kGood}}).base();
  }
  const auto answer =
      chat({.base = base, .model = "m", .tries = 2, .first_pause = 0.01, .connect_seconds = 1},
           {{"user", "hi"}}, Deadline::after(60));
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("2 tries"));
}

TEST(Chat, ALongRetryAfterIsNotWaitedFor) {
  const Server server({{response(429, "application/json", "{}", "Retry-After: 3600\r\n")}});
  const Stopwatch watch;
  const auto answer = ask(server, 300);
  ASSERT_FALSE(answer.ok());
  EXPECT_LT(watch.seconds(), 60);
  EXPECT_THAT(answer.error().message, HasSubstr("too late"));
}

TEST(Chat, EventsComeInAnyPieces) {
  const std::string body = part("ab") + part("\xc3\xa9\n", "\"stop\"") + kUsage + "data: [DONE]\r\n\r\n";
  for (size_t piece = 1; piece < 40; ++piece) {
    EventReader reader(1000);
    for (size_t at = 0; at < body.size(); at += piece)
      ASSERT_TRUE(reader.feed(std::string_view(body).substr(at, piece)).ok());
    const auto answer = reader.finish();
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->text, "ab\xc3\xa9\n");
  }
}

struct Environment {
  explicit Environment(std::map<std::string, std::string> values) {
    for (const char* name :
         {"NEREID_HTTP_BASE", "OPENAI_BASE_URL", "NEREID_HTTP_KEY", "OPENAI_API_KEY", "NEREID_HTTP_MODEL",
          "NEREID_HTTP_PRICE", "NEREID_HTTP_TIMEOUT", "NEREID_HTTP_PROMPTS"})
      ::unsetenv(name);
    for (const auto& [name, value] : values) ::setenv(name.c_str(), value.c_str(), 1);
  }
};
const std::filesystem::path kPrompts =
    std::filesystem::path(NEREID_SOURCE_DIR) / "python" / "nereid" / "prompts";

TEST(Http, TheEnvironmentSaysWhom) {
  const auto fails = [](std::map<std::string, std::string> values, const char* word) {
    const Environment environment(std::move(values));
    const auto options = HttpOptions::from_environment(kPrompts);
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.error().blame, Blame::kInput);
    EXPECT_THAT(options.error().message, HasSubstr(word));
  };
  fails({}, "NEREID_HTTP_BASE");
  fails({{"NEREID_HTTP_BASE", "ftp://x"}, {"NEREID_HTTP_MODEL", "m"}}, "http://");
  fails({{"OPENAI_BASE_URL", "http://x"}}, "NEREID_HTTP_MODEL");
  fails({{"NEREID_HTTP_BASE", "http://x"}, {"NEREID_HTTP_MODEL", "m"}, {"NEREID_HTTP_PRICE", "3"}},
        "0.5,1.5");
  fails({{"NEREID_HTTP_BASE", "http://x"}, {"NEREID_HTTP_MODEL", "m"}, {"NEREID_HTTP_PROMPTS", "/nowhere"}},
        "system.md");
  const Environment environment({{"NEREID_HTTP_BASE", "http://x"},
                                 {"NEREID_HTTP_MODEL", "m"},
                                 {"NEREID_HTTP_PRICE", "1,2"},
                                 {"NEREID_HTTP_KEY", "k"}});
  const auto options = HttpOptions::from_environment(kPrompts);
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_DOUBLE_EQ(options->dollars_per_completion_token, 2e-6);
  EXPECT_EQ(HttpProposer(*options).identity().find("k "), std::string::npos);
}

TEST(Http, ProposesAndRepairs) {
  Server server({{kGood}});
  HttpOptions options{
      .chat = options_for(server), .dollars_per_prompt_token = 1e-6, .dollars_per_completion_token = 2e-6};
  options.prompts = *lm::Prompts::load(kPrompts);
  HttpProposer http(options);
  const auto answer =
      http.propose({.name = "softmax.py",
                    .source = "class Model: pass",
                    .attempts = {{.text = "first try", .evidence = "Mismatch: wrong at [3]"}}},
                   Deadline::after(100));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  ASSERT_THAT(answer->proposals, SizeIs(1));
  EXPECT_TRUE(answer->proposals[0].answer);
  EXPECT_EQ(answer->proposals[0].plan, "I fuse.");
  EXPECT_DOUBLE_EQ(answer->cost.dollars, 140e-6);
  const std::string& request = server.requests.at(0);
  const Json messages = Json::parse(request.substr(request.find("\r\n\r\n") + 4))["messages"];
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_THAT(messages[1]["content"].get<std::string>(),
              AllOf(HasSubstr("softmax.py"), HasSubstr("class Model: pass")));
  EXPECT_EQ(messages[2], (Json{{"role", "assistant"}, {"content", "first try"}}));
  EXPECT_THAT(messages[3]["content"].get<std::string>(), HasSubstr("wrong at [3]"));
}

const std::string kProgram = "class ModelNew:\n    def forward(self, x):\n        return x\n```\n";

Answer text_alone(const ChatAnswer&, std::string text, double) {
  Answer answer;
  answer.proposals.push_back({.text = std::move(text), .answer = true});
  return answer;
}

TEST(SpeculativeChat, ABranchGoesOnFromThePlan) {
  Server server({{stream(part("I fuse.\n") + part("```py") + part("thon\nx = 1\n" + kProgram) +
                         part("It is fast, as all of this text says.", "\"stop\"") + kUsage)},
                 {stream(part("x = 2\n" + kProgram, "\"stop\"") + kUsage)}});
  std::map<int, Answers::One> answers;
  {
    SpeculativeChat chat(options_for(server), std::vector<Message>{{"user", "hi"}}, {4, 7}, true, nullptr,
                         text_alone);
    while (true) {
      auto one = chat.next(Deadline::after(100));
      ASSERT_TRUE(one.ok()) << one.error().message;
      if (!*one) break;
      answers.emplace((*one)->sample, **one);
    }
  }
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers.at(4).answer.proposals.at(0).text, "I fuse.\n```python\nx = 1\n" + kProgram);
  EXPECT_EQ(answers.at(7).answer.proposals.at(0).text, "I fuse.\n```python\nx = 2\n" + kProgram);
  EXPECT_EQ(answers.at(4).branch, "");
  EXPECT_EQ(answers.at(7).branch, "plan");
  ASSERT_THAT(server.requests, SizeIs(2));
  const Json body = Json::parse(server.requests[1].substr(server.requests[1].find("\r\n\r\n") + 4));
  EXPECT_EQ(body["messages"][1], (Json{{"role", "assistant"}, {"content", "I fuse.\n```python\n"}}));
  EXPECT_EQ(body["continue_final_message"], true);
  EXPECT_EQ(body["add_generation_prompt"], false);
}

TEST(SpeculativeChat, WithoutContinuationAllBeginFromTheQuestion) {
  Server server({{stream(part("```python\n" + kProgram, "\"stop\"") + kUsage)}});
  SpeculativeChat chat(options_for(server), std::vector<Message>{{"user", "hi"}}, {0, 1, 2}, false, nullptr,
                       text_alone);
  for (int i = 0; i < 3; ++i) {
    const auto one = chat.next(Deadline::after(100));
    ASSERT_TRUE(one.ok() && *one);
    EXPECT_EQ((*one)->branch, "");
  }
  EXPECT_FALSE(chat.next(Deadline::after(100))->has_value());
}

TEST(SpeculativeChat, WhatIsNotWantedIsCancelled) {
  const Server server({{.bytes = stream(part("I am thinking.\n")), .silence = 300}});
  const Stopwatch watch;
  auto options = options_for(server);
  options.stall_seconds = 300;
  {
    SpeculativeChat chat(options, std::vector<Message>{{"user", "hi"}}, {0, 1, 2}, true, nullptr, text_alone);
    EXPECT_FALSE(chat.next(Deadline::after(0.3)).ok());
  }
  EXPECT_LT(watch.seconds(), 100);
}

TEST(Http, ARequestThatIsCancelledEndsSoon) {
  const Server server({{.bytes = stream(part("I am thinking.\n")), .silence = 300}});
  HttpOptions options{.chat = options_for(server)};
  options.chat.stall_seconds = 300;
  auto prompts = lm::Prompts::load(kPrompts);
  ASSERT_TRUE(prompts.ok());
  options.prompts = *prompts;
  HttpProposer http(options);
  for (const bool speculate : {false, true}) {
    std::atomic<bool> cancelled = false;
    const auto answers = http.propose_several({.name = "softmax.py",
                                               .source = "class Model: pass",
                                               .speculate = speculate,
                                               .cancelled = &cancelled},
                                              {0, 1});
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      cancelled = true;
    });
    const Stopwatch watch;
    EXPECT_FALSE(answers->next(Deadline::after(300)).ok());
    EXPECT_LT(watch.seconds(), 100);
    other.join();
  }
}

TEST(SpeculativeChat, AnErrorOfAllIsReported) {
  const Server server({{response(401, "application/json", "{}")}});
  SpeculativeChat chat(options_for(server), std::vector<Message>{{"user", "hi"}}, {0, 1}, true, nullptr,
                       text_alone);
  const auto one = chat.next(Deadline::after(100));
  ASSERT_FALSE(one.ok());
  EXPECT_THAT(one.error().message, HasSubstr("401"));
}

TEST(Http, GuidanceFollowsTheTask) {
  Server server({{kGood}});
  HttpOptions options{.chat = options_for(server)};
  options.prompts = *lm::Prompts::load(kPrompts);
  HttpProposer http(options);
  const auto messages = http.messages({.name = "softmax.py",
                                       .source = "class Model: pass",
                                       .attempts = {{.text = "first try", .evidence = "Mismatch"}},
                                       .guidance = "Read each row once."});
  ASSERT_TRUE(messages.ok());
  ASSERT_THAT(*messages, SizeIs(4));
  EXPECT_THAT((*messages)[1].content,
              AllOf(HasSubstr("class Model: pass"), testing::EndsWith("\n\nRead each row once.")));
  EXPECT_THAT((*messages)[3].content, testing::Not(HasSubstr("each row")));
  const auto reply = http.converse({{"user", "Which?"}}, Deadline::after(100));
  ASSERT_TRUE(reply.ok() && *reply);
  EXPECT_EQ((*reply)->text, "I fuse.\n```python\nx = 1\n```");
  EXPECT_EQ((*reply)->cost.completion_tokens, 20);
}

}  // namespace
}  // namespace nereid::proposers
