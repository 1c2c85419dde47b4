#include "nereid/proposers/chat.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"

namespace nereid::proposers {
namespace {

constexpr size_t kMaxShown = 300;  // of a body in an error

// How one try ended.
struct Try {
  bool again = false;       // it may pass
  double retry_after = -1;  // seconds the endpoint asked for; < 0: it did not
  Result<ChatAnswer> answer = Error{};
};

Try failed(bool again, std::string message, Blame blame = Blame::kOurs, double retry_after = -1) {
  return {again, retry_after, Error{std::move(message), blame}};
}

// The transfer as libcurl's callbacks see it.
struct Transfer {
  const ChatOptions& options;
  Deadline deadline;
  CURL* curl = nullptr;
  EventReader events;
  std::string body{};  // of what is no stream, and of an error
  double retry_after = -1;
  Status trouble = ok_status();
  size_t got = 0;
  const ChatWatch& watch;
  size_t seen = 0;      // bytes of text that were watched
  bool enough = false;  // says who watches

  bool cancelled() const { return watch.cancelled != nullptr && *watch.cancelled; }
  bool streamed() const {
    const char* type = nullptr;
    ::curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
    return type != nullptr && std::string_view(type).starts_with("text/event-stream");
  }
  long status() const {
    long code = 0;
    ::curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }
};

size_t on_bytes(char* bytes, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t amount = size * count;
  transfer.got += amount;
  if (transfer.got > transfer.options.max_bytes) {
    transfer.trouble = our_error("the answer is longer than {} bytes", transfer.options.max_bytes);
    return 0;
  }
  if (transfer.status() == 200 && transfer.streamed()) {
    transfer.trouble = transfer.events.feed({bytes, amount});
    if (!transfer.trouble.ok()) return 0;
    const std::string& text = transfer.events.text();
    if (transfer.watch.on_text && text.size() > transfer.seen)
      transfer.enough = !transfer.watch.on_text(text);
    transfer.seen = text.size();
    return transfer.enough ? 0 : amount;
  }
  transfer.body.append(bytes, amount);
  return amount;
}

size_t on_header(char* bytes, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string line(bytes, size * count);
  std::transform(line.begin(), line.end(), line.begin(), [](unsigned char c) { return std::tolower(c); });
  if (line.starts_with("retry-after:")) {
    try {
      transfer.retry_after = std::max(0.0, std::stod(line.substr(12)));
    } catch (const std::exception&) {  // a date, which is not supported
    }
  }
  return size * count;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<const Transfer*>(user);
  return interrupted() || transfer.deadline.passed() || transfer.cancelled() ? 1 : 0;
}

std::string shortened(const std::string& body) {
  std::string text;
  for (const char c : body.substr(0, kMaxShown)) text += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  return body.size() > kMaxShown ? text + "..." : text;
}

std::string request_body(const ChatOptions& options, const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const auto& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  Json body = {{"model", options.model},
               {"messages", list},
               {"temperature", options.temperature},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  if (!messages.empty() && messages.back().role == "assistant")
    body["continue_final_message"] = true, body["add_generation_prompt"] = false;
  if (options.max_tokens > 0) body["max_tokens"] = options.max_tokens;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What a transfer that libcurl was done with means.
Try judge(Transfer& transfer, CURLcode code, const char* why) {
  const std::string& url = transfer.options.base;
  if (interrupted()) return failed(false, "interrupted", Blame::kInterrupted);
  if (transfer.enough) return {false, -1, transfer.events.take()};
  if (transfer.cancelled()) return failed(false, url + ": cancelled");
  if (!transfer.trouble.ok()) {
    const bool too_long = transfer.got > transfer.options.max_bytes;
    return failed(!too_long, url + ": " + transfer.trouble.error().message);
  }
  if (transfer.deadline.passed()) return failed(false, url + ": no answer in the time that was left");
  const long status = transfer.status();
  const bool passing_code = code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT ||
                            code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
                            code == CURLE_SEND_ERROR || code == CURLE_PARTIAL_FILE ||
                            code == CURLE_COULDNT_RESOLVE_HOST;
  // A cut connection after the stream's own end has cost nothing.
  if (code != CURLE_OK && !(status == 200 && transfer.streamed()))
    return failed(
        passing_code, fmt::format("{}: {}", url, *why != '\0' ? why : ::curl_easy_strerror(code)),
        code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ? Blame::kInput : Blame::kOurs);
  if (status != 200) {
    const bool passing = status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
    return failed(passing, fmt::format("{} answered {}: {}", url, status, shortened(transfer.body)),
                  passing ? Blame::kOurs : Blame::kInput, transfer.retry_after);
  }
  auto answer = transfer.streamed() ? transfer.events.finish()
                                    : read_whole_answer(transfer.body, transfer.options.max_bytes);
  if (!answer.ok()) return failed(true, url + ": " + answer.error().message);
  return {false, -1, std::move(answer)};
}

Try once(const ChatOptions& options, const std::string& body, Deadline deadline, const ChatWatch& watch) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(::curl_easy_init(), ::curl_easy_cleanup);
  if (!curl) return failed(false, "libcurl cannot be started");
  Transfer transfer{.options = options,
                    .deadline = deadline,
                    .curl = curl.get(),
                    .events = EventReader(options.max_bytes),
                    .watch = watch};
  curl_slist* list = ::curl_slist_append(nullptr, "Content-Type: application/json");
  if (!options.key.empty())
    list = ::curl_slist_append(list, ("Authorization: Bearer " + options.key).c_str());
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, ::curl_slist_free_all);
  char why[CURL_ERROR_SIZE] = "";
  const std::string url = options.base + (options.base.ends_with('/') ? "" : "/") + "chat/completions";
  const auto set = [&](CURLoption option, auto value) { ::curl_easy_setopt(curl.get(), option, value); };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_POSTFIELDS, body.c_str());
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  set(CURLOPT_WRITEFUNCTION, on_bytes);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_XFERINFOFUNCTION, on_progress);
  set(CURLOPT_XFERINFODATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, why);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_seconds * 1000));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::max(1.0, std::ceil(options.stall_seconds))));
  if (const int left = deadline.poll_milliseconds(); left >= 0)
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(left) + 1);
  const CURLcode code = ::curl_easy_perform(curl.get());
  Try result = judge(transfer, code, why);
  if (watch.on_text && transfer.seen > 0) result.again = false;
  return result;
}

// Sleeps, unless there is an interrupt or no time.
bool pause_for(double seconds, Deadline deadline) {
  const auto until = Deadline::after(seconds);
  if (deadline.when() < until.when()) return false;
  while (!until.passed()) {
    if (interrupted()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace

Result<ChatAnswer> chat(const ChatOptions& options, const std::vector<Message>& messages, Deadline deadline,
                        const ChatWatch& watch) {
  static std::once_flag once_only;
  std::call_once(once_only, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::string body = request_body(options, messages);
  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> varied(0.5, 1.5);
  for (int number = 1;; ++number) {
    Try result = once(options, body, deadline, watch);
    if (result.answer.ok()) {
      result.answer->tries = number;
      return std::move(result.answer);
    }
    Error error = result.answer.error();
    if (number > 1) error.message += fmt::format(" ({} tries)", number);
    if (!result.again || number >= options.tries) return error;
    const double own =
        std::min(options.first_pause * std::pow(2, number - 1), options.longest_pause) * varied(random);
    const double pause = std::max(own, result.retry_after);
    if (pause > options.longest_pause * 1.5 || !pause_for(pause, deadline)) {
      if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
      error.message += fmt::format("; to be tried again in {:.0f} s, which is too late", pause);
      return error;
    }
  }
}

Status EventReader::feed(std::string_view bytes) {
  seen_ += bytes.size();
  if (seen_ > max_bytes_) return our_error("the answer is longer than {} bytes", max_bytes_);
  buffer_ += bytes;
  size_t at = 0;
  for (size_t end; (end = buffer_.find('\n', at)) != buffer_.npos; at = end + 1)
    NEREID_TRY_STATUS(line(std::string_view(buffer_).substr(at, end - at)));
  buffer_.erase(0, at);
  return ok_status();
}

Status EventReader::line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with("data:")) return ok_status();  // comments, event names, empty lines
  line.remove_prefix(5);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    done_ = true;
    return ok_status();
  }
  return data(std::string(line));
}

namespace {

Status read_usage(const JsonField& root, ChatAnswer& answer) {
  NEREID_TRY(const auto usage, root.find("usage"));
  if (!usage || !usage->json().is_object()) return ok_status();
  NEREID_TRY(answer.prompt_tokens, usage->integer_at("prompt_tokens", 0, 0, int64_t{1} << 40));
  NEREID_TRY(answer.completion_tokens, usage->integer_at("completion_tokens", 0, 0, int64_t{1} << 40));
  answer.tokens_known = true;
  return ok_status();
}

// An endpoint may report its trouble in a body that came with 200.
Status read_error(const JsonField& root) {
  NEREID_TRY(const auto error, root.find("error"));
  if (error && !error->json().is_null()) return our_error("it reports {}", shortened(error->json().dump()));
  return ok_status();
}

// `part` is "delta" or "message".
Result<int> read_choices(const JsonField& root, std::string_view part, size_t max_bytes, ChatAnswer& answer) {
  NEREID_TRY(const auto choices, root.find("choices"));
  if (!choices) return 0;
  int count = 0;
  NEREID_TRY_STATUS(choices->each(16, [&](const JsonField& choice) -> Status {
    if (count++ > 0) return ok_status();  // one was asked for
    NEREID_TRY(const auto message, choice.find(part));
    if (message && message->json().is_object()) {
      NEREID_TRY(const auto content, message->find("content"));
      if (content && !content->json().is_null()) {
        NEREID_TRY(const std::string text, content->text(max_bytes));
        answer.text += text;
      }
    }
    NEREID_TRY(const auto finish, choice.find("finish_reason"));
    if (finish && finish->json().is_string())
      answer.finish = finish->json().get<std::string>().substr(0, 100);
    return ok_status();
  }));
  return count;
}

}  // namespace

Status EventReader::data(const std::string& text) {
  NEREID_TRY(const Json json, parse_json(text, "a streamed part"));
  const JsonField root(json, "part");
  NEREID_TRY_STATUS(read_error(root));
  NEREID_TRY(const int choices, read_choices(root, "delta", max_bytes_, answer_));
  choices_ += choices;
  return read_usage(root, answer_);
}

Result<ChatAnswer> EventReader::finish() {
  if (!done_ && answer_.finish.empty())
    return our_error("the stream was cut after {} bytes of text", answer_.text.size());
  if (choices_ == 0) return our_error("the answer has no choices");
  if (answer_.text.empty()) return our_error("the answer is empty");
  return std::move(answer_);
}

Result<ChatAnswer> read_whole_answer(std::string_view body, size_t max_bytes) {
  const auto json = parse_json(body, "the answer");
  if (!json.ok())
    return our_error("expected JSON or an event stream, got '{}' ({})", shortened(std::string(body)),
                     json.error().message);
  const JsonField root(*json, "answer");
  ChatAnswer answer;
  NEREID_TRY_STATUS(read_error(root));
  NEREID_TRY(const int choices, read_choices(root, "message", max_bytes, answer));
  NEREID_TRY_STATUS(read_usage(root, answer));
  if (choices == 0) return our_error("the answer has no choices");
  if (answer.text.empty()) return our_error("the answer is empty");
  return answer;
}

}  // namespace nereid::proposers
