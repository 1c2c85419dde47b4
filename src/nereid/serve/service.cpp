#include "nereid/serve/service.h"

#include <algorithm>
#include <cmath>

namespace nereid::serve {
namespace {

using State = StoredTask::State;

constexpr double kSecondsBetweenPrunes = 600;
constexpr int64_t kLatest = 30;

std::string dump_json(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

Result<std::unique_ptr<Service>> Service::start(ServiceOptions options, std::unique_ptr<TaskStore> store,
                                                const std::vector<JudgePlace>& places, Post post) {
  std::unique_ptr<Service> service(new Service(std::move(options), std::move(store)));
  NEREID_TRY_STATUS(service->load());
  service->judges_.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    service->judges_[i].name = places[i].name;
    service->judges_[i].is_fleet = places[i].spec.fleet;
    service->judges_[i].pairs = places[i].judges * (service->options_.jobs + 1);
    const JudgeProcess::Events events = {
        .on_line =
            [raw = service.get(), i, post](uint64_t generation, std::string line) {
              post([raw, i, generation, line = std::move(line)] { raw->take_line(i, generation, line); });
            },
        .on_death =
            [raw = service.get(), i, post](uint64_t generation, std::string why) {
              post([raw, i, generation, why = std::move(why)] { raw->take_death(i, generation, why); });
            },
        .on_start =
            [raw = service.get(), i, post](uint64_t generation) {
              post([raw, i, generation] { raw->take_start(i, generation); });
            }};
    NEREID_TRY(service->judges_[i].process, JudgeProcess::start(places[i].spec, events));
  }
  service->dispatch();
  return service;
}

Status Service::load() {
  NEREID_TRY(const auto waiting, store_->waiting());
  for (const StoredTask& task : waiting) {
    pending_[task.id] = {.client = task.client, .accepted = task.accepted};
    queue_.push(task.client, task.id);
  }
  return ok_status();
}

std::optional<Service::Refusal> Service::accept(const std::vector<Question>& questions,
                                                const Client& client) {
  if (ending_) return Refusal{503, "this server is ending", 5};
  std::vector<StoredTask> tasks;
  std::set<std::string> fresh;
  for (const Question& question : questions) {
    if (pending_.contains(question.id) || fresh.contains(question.id)) continue;
    if (const auto known = find(question.id); known && known->verdict) continue;
    fresh.insert(question.id);
    const Json receipt = {{"id", question.id},
                          {"task", question.task.empty() ? Json() : Json(question.task)},
                          {"reference", question.reference_hash},
                          {"completion", question.completion_hash},
                          {"versions", options_.versions},
                          {"hardware", options_.hardware}};
    tasks.push_back({.id = question.id,
                     .client = client,
                     .line = question.line,
                     .receipt = dump_json(receipt),
                     .accepted = seconds_now()});
  }
  const size_t waiting = queue_.size() + suspects_.size();
  const int seconds = std::clamp(
      static_cast<int>(60.0 * static_cast<double>(waiting) / std::max(1.0, statistics_.per_minute()) / 4), 1,
      60);
  if (waiting + tasks.size() > options_.queue) {
    ++statistics_.refused["queue"];
    return Refusal{429,
                   fmt::format("{} pairs wait already, and {} more would be over the limit of {} (--queue)",
                               waiting, tasks.size(), options_.queue),
                   seconds};
  }
  if (const size_t own = queue_.size_of(client.principal); own + tasks.size() > options_.per_client) {
    ++statistics_.refused["client"];
    return Refusal{
        429,
        fmt::format("{} pairs of this client wait already, and {} more would be over the limit of {} "
                    "(--queue-per-client)",
                    own, tasks.size(), options_.per_client),
        seconds};
  }
  if (!tasks.empty())
    if (const Status accepted = store_->accept(tasks); !accepted.ok()) {
      statistics_.error(accepted.error().message);
      return Refusal{503, accepted.error().message, 5};
    }
  statistics_.accepted += std::ssize(tasks);
  statistics_.known += std::ssize(questions) - std::ssize(tasks);
  for (const StoredTask& task : tasks) {
    unsaved_.erase(task.id);
    pending_[task.id] = {.client = client, .accepted = task.accepted};
    queue_.push(client, task.id);
  }
  dispatch();
  return std::nullopt;
}

// What killed a judge, maybe, is asked alone; so the one that does is found out, and the others are judged.
void Service::dispatch() {
  for (Judge& judge : judges_) {
    if (!judge.lives || judge.alone) continue;
    while (!suspects_.empty() && judge.under_way.empty()) {
      const std::string id = suspects_.front();
      suspects_.pop_front();
      judge.alone = ask(judge, id);
    }
    if (judge.alone || !suspects_.empty()) continue;
    while (judge.under_way.size() < judge.pairs) {
      const auto id = queue_.pop();
      if (!id) break;
      ask(judge, *id);
    }
  }
}

bool Service::ask(Judge& judge, const std::string& id) {
  const auto line = store_->line(id);
  if (!line.ok()) {
    settle(id, State::kFault, line.error().message);
    return false;
  }
  pending_.at(id).under_way = true;
  judge.under_way.insert(id);
  judge.process->ask(judge.generation, *line);
  return true;
}

void Service::take_line(size_t number, uint64_t generation, const std::string& line) {
  Judge& judge = judges_[number];
  if (generation != judge.generation) return;
  if (is_report(line)) return take_report(judge, line);
  auto verdict = parse_json(line, "the judge's answer");
  const std::string id = verdict.ok() && verdict->is_object() ? verdict->value("id", Json()).dump() : "";
  const auto found =
      id.size() > 2 ? judge.under_way.find(id.substr(1, id.size() - 2)) : judge.under_way.end();
  if (found == judge.under_way.end())
    return statistics_.error(
        fmt::format("the judge wrote a line that answers nothing: {}", line.substr(0, 200)));
  const std::string task = *found;
  judge.under_way.erase(found);
  judge.alone = false;
  ++judge.verdicts;
  verdict->erase("id");
  verdict->erase("line");
  Pending& pending = pending_.at(task);
  const std::string kind = verdict->value("verdict", "Error");
  if (kind == "Error" && verdict->value("blame", "ours") == "ours") {
    const std::string reason = verdict->value("reason", "no reason was given");
    pending.under_way = false;
    if (++pending.errors < options_.errors && !judge.is_fleet)
      suspects_.push_back(task);
    else
      settle(task, State::kFault, fmt::format("the judge failed: {}", reason));
  } else {
    statistics_.verdict(kind, verdict->value("seconds", 0.0), seconds_now() - pending.accepted);
    settle(task, State::kAnswered, dump_json(*verdict));
  }
  dispatch();
}

void Service::take_report(Judge& judge, const std::string& line) {
  auto report = parse_json(line, "the fleet's report");
  if (!report.ok()) return statistics_.error(report.error().message);
  for (const Json& message : report->value("errors", Json::array()))
    if (message.is_string()) statistics_.error(message.get<std::string>());
  judge.report = report->value("fleet", Json::object());
}

void Service::take_death(size_t number, uint64_t generation, const std::string& why) {
  Judge& judge = judges_[number];
  if (generation != judge.generation) return;
  ++judge.restarts, ++statistics_.restarts;
  judge.alone = judge.lives = false;
  statistics_.error(fmt::format("the judge {} ended with {} pairs under way and is started again: {}",
                                judge.name, judge.under_way.size(), why));
  judge.report = Json();
  const std::set<std::string> left = std::exchange(judge.under_way, {});
  for (const std::string& id : left) {
    Pending& pending = pending_.at(id);
    pending.under_way = false;
    if (judge.is_fleet) {  // no pair runs in that process: none is to blame
      queue_.push(pending.client, id);
      continue;
    }
    if (++pending.deaths < options_.deaths)
      suspects_.push_front(id);
    else
      settle(id, State::kFault,
             fmt::format("the judge ended {} times while it had this pair: {}", options_.deaths, why));
  }
  dispatch();
}

void Service::take_start(size_t number, uint64_t generation) {
  judges_[number].generation = generation;
  judges_[number].lives = true;
  dispatch();
}

void Service::settle(const std::string& id, State state, const std::string& result) {
  if (state == State::kFault) {
    ++statistics_.faults;
    statistics_.error(result);
  }
  save(id, state, result);
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  const std::vector<uint64_t> waits = std::move(found->second.waits);
  pending_.erase(found);
  for (const uint64_t number : waits)
    if (const auto wait = waits_.find(number); wait != waits_.end() && --wait->second.missing == 0)
      fire(number);
}

void Service::save(const std::string& id, State state, const std::string& result) {
  const Status saved = store_->settle(id, state, result, seconds_now());
  if (saved.ok()) {
    unsaved_.erase(id);
    return;
  }
  if (unsaved_.emplace(id, std::pair(state, result)).second) statistics_.error(saved.error().message);
}

std::optional<Answered> Service::find(const std::string& id) {
  const auto stored = store_->find(id);
  if (!stored.ok()) return Answered{.verdict = {}, .fault = stored.error().message, .receipt = {}};
  if (!*stored) return std::nullopt;
  StoredTask task = **stored;
  if (const auto unsaved = unsaved_.find(id); unsaved != unsaved_.end())
    std::tie(task.state, task.result) = unsaved->second;
  if (task.state == State::kWaiting) return std::nullopt;
  const auto receipt = parse_json(task.receipt, "receipt");
  Answered answered{.verdict = {}, .fault = {}, .receipt = receipt.ok() ? *receipt : Json::object()};
  answered.receipt["accepted"] = task.accepted;
  answered.receipt["answered"] = task.answered;
  if (task.state == State::kFault) {
    answered.fault = task.result;
    return answered;
  }
  auto verdict = parse_json(task.result, "verdict");
  if (verdict.ok() && verdict->is_object()) {
    for (const char* key : {"seed", "trace", "seconds"}) answered.receipt[key] = verdict->value(key, Json());
    answered.verdict = *std::move(verdict);
  } else {
    answered.fault = "the store holds no verdict that can be read";
  }
  return answered;
}

void Service::wait(std::vector<std::string> ids, size_t needed, double seconds, Done done) {
  const uint64_t number = next_wait_++;
  Wait wait{.ids = std::move(ids), .until = seconds_now() + seconds, .done = std::move(done)};
  size_t there = 0;
  for (const std::string& id : wait.ids)
    if (!pending_.contains(id)) ++there;
  wait.missing = std::min(needed, wait.ids.size()) - std::min({there, needed, wait.ids.size()});
  const bool fires = wait.missing == 0 || seconds <= 0;
  if (!fires)
    for (const std::string& id : wait.ids)
      if (const auto found = pending_.find(id); found != pending_.end())
        found->second.waits.push_back(number);
  waits_.emplace(number, std::move(wait));
  if (fires) fire(number);
}

void Service::fire(uint64_t number) {
  const auto found = waits_.find(number);
  if (found == waits_.end()) return;
  Wait wait = std::move(found->second);
  waits_.erase(found);
  std::vector<std::optional<Answered>> answers;
  for (const std::string& id : wait.ids) {
    const auto pending = pending_.find(id);
    if (pending != pending_.end()) std::erase(pending->second.waits, number);
    answers.push_back(pending != pending_.end() ? std::nullopt : find(id));
  }
  wait.done(std::move(answers));
}

Service::Stage Service::stage(const std::string& id) {
  if (const auto found = pending_.find(id); found != pending_.end())
    return found->second.under_way ? Stage::kUnderWay : Stage::kWaiting;
  return find(id) ? Stage::kAnswered : Stage::kUnknown;
}

void Service::tick() {
  const double now = seconds_now();
  std::vector<uint64_t> late;
  for (const auto& [number, wait] : waits_)
    if (wait.until <= now) late.push_back(number);
  for (const uint64_t number : late) fire(number);
  for (const auto& [id, answer] : std::map(unsaved_)) save(id, answer.first, answer.second);
  if (now - last_prune_ < kSecondsBetweenPrunes) return;
  last_prune_ = now;
  if (const auto pruned = store_->prune(now - options_.keep); !pruned.ok())
    statistics_.error(pruned.error().message);
}

void Service::give_up() {
  std::vector<uint64_t> all;
  for (const auto& [number, wait] : waits_) all.push_back(number);
  for (const uint64_t number : all) fire(number);
}

bool Service::healthy() const {
  return std::ranges::any_of(judges_, [](const Judge& judge) { return judge.ready(); });
}

// A row for each judge of a fleet, or one that says that it has none yet.
void Service::add_judges(const Judge& judge, Json& judges) const {
  const Json actors = judge.report.is_object() ? judge.report.value("actors", Json::array()) : Json::array();
  for (const Json& actor : actors)
    judges.push_back({{"name", judge.name + " " + actor.value("name", "")},
                      {"running", true},
                      {"under_way", actor.value("under_way", 0)},
                      {"jobs", options_.jobs},
                      {"verdicts", actor.value("verdicts", 0)},
                      {"restarts", 0}});
  if (judge.is_fleet && !actors.empty()) return;
  judges.push_back({{"name", judge.name},
                    {"running", judge.ready()},
                    {"under_way", judge.under_way.size()},
                    {"jobs", judge.is_fleet ? 0 : options_.jobs},
                    {"verdicts", judge.verdicts},
                    {"restarts", judge.restarts}});
}

Json Service::status() {
  Json clients = Json::array(), judges = Json::array(), latest = Json::array(), errors = Json::array();
  for (const auto& [name, size] : queue_.sizes()) clients.push_back({{"name", name}, {"waiting", size}});
  size_t under_way = 0;
  for (const Judge& judge : judges_) {
    under_way += judge.under_way.size();
    add_judges(judge, judges);
  }
  if (const auto newest = store_->latest(kLatest); newest.ok())
    for (const StoredTask& task : *newest) {
      const auto receipt = parse_json(task.receipt, "receipt");
      Json row = {{"id", task.id},
                  {"client", task.client.principal},
                  {"task", receipt.ok() ? receipt->value("task", Json()) : Json()},
                  {"answered", task.answered},
                  {"waited", task.answered - task.accepted}};
      const auto verdict = parse_json(task.result, "verdict");
      if (task.state == State::kAnswered && verdict.ok()) {
        for (const char* key : {"verdict", "reason", "rule", "seconds", "evidence"})
          row[key] = verdict->value(key, Json());
        const auto judged = judged_in(*verdict);
        const Json* times = verdict->contains("times") ? &(*verdict)["times"] : nullptr;
        row["speedup"] = judged && times != nullptr && times->is_object() ? Json(judged->speedup) : Json();
      } else {
        row["verdict"] = "fault", row["reason"] = task.result;
      }
      latest.push_back(std::move(row));
    }
  for (const auto& [time, message] : statistics_.errors)
    errors.push_back({{"time", time}, {"message", message}});
  return {{"started", statistics_.started},
          {"now", seconds_now()},
          {"versions", options_.versions},
          {"hardware", options_.hardware},
          {"ending", ending_},
          {"queue",
           {{"waiting", queue_.size() + suspects_.size()},
            {"limit", options_.queue},
            {"under_way", under_way},
            {"clients", std::move(clients)}}},
          {"verdicts", statistics_.verdicts},
          {"faults", statistics_.faults},
          {"accepted", statistics_.accepted},
          {"known", statistics_.known},
          {"per_minute", statistics_.per_minute()},
          {"series", {{"seconds", Statistics::kStep}, {"counts", statistics_.series()}}},
          {"latest", std::move(latest)},
          {"judges", std::move(judges)},
          {"errors", std::move(errors)}};
}

std::string Service::fleet_metrics() const {
  std::string text;
  for (const Judge& judge : judges_) {
    if (!judge.report.is_object()) continue;
    text += metric_head("nereid_fleet_wanted_judges", "gauge", "Judges that the fleet's queue asks for.") +
            metric("nereid_fleet_wanted_judges", "", "", judge.report.value("wanted", 0.0)) +
            metric_head("nereid_fleet_starting_judges", "gauge", "Judges that have no place yet, or begin.") +
            metric("nereid_fleet_starting_judges", "", "", judge.report.value("starting", 0.0)) +
            metric_head("nereid_fleet_lost_total", "counter", "Judges that were lost with their node.") +
            metric("nereid_fleet_lost_total", "", "", judge.report.value("lost", 0.0));
  }
  return text;
}

std::string Service::metrics() {
  std::string text;
  const auto one = [&](const char* name, const char* type, const char* help, double value) {
    text += metric_head(name, type, help) + metric(name, "", "", value);
  };
  size_t under_way = 0, running = 0;
  for (const Judge& judge : judges_) {
    under_way += judge.under_way.size();
    running += judge.is_fleet && judge.report.is_object() ? judge.report.value("actors", Json::array()).size()
               : judge.lives && !judge.is_fleet           ? 1
                                                          : 0;
  }
  one("nereid_start_time_seconds", "gauge", "When this server started, in seconds since 1970.",
      statistics_.started);
  one("nereid_queue_pairs", "gauge", "Pairs that wait for a judge.",
      static_cast<double>(queue_.size() + suspects_.size()));
  one("nereid_queue_limit", "gauge", "Pairs that may wait (--queue).", static_cast<double>(options_.queue));
  one("nereid_under_way_pairs", "gauge", "Pairs that judges have.", static_cast<double>(under_way));
  one("nereid_judges", "gauge", "Judges that run.", static_cast<double>(running));
  one("nereid_accepted_total", "counter", "Pairs that were accepted to be judged.",
      static_cast<double>(statistics_.accepted));
  one("nereid_known_total", "counter", "Pairs that had been asked before, and were not judged again.",
      static_cast<double>(statistics_.known));
  one("nereid_faults_total", "counter", "Pairs without a verdict for a fault of the judge.",
      static_cast<double>(statistics_.faults));
  one("nereid_judge_restarts_total", "counter", "Judges that were started again.",
      static_cast<double>(statistics_.restarts));
  text += fleet_metrics();
  text += metric_head("nereid_verdicts_total", "counter", "Verdicts by kind.");
  for (const auto& [kind, count] : statistics_.verdicts)
    text += metric("nereid_verdicts_total", "verdict", kind, static_cast<double>(count));
  text += metric_head("nereid_refused_total", "counter", "Requests that were refused, by reason.");
  for (const auto& [reason, count] : statistics_.refused)
    text += metric("nereid_refused_total", "reason", reason, static_cast<double>(count));
  text += metric_head("nereid_requests_total", "counter", "Requests by route and HTTP status.");
  for (const auto& [request, count] : statistics_.requests)
    text += fmt::format("nereid_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", request.first,
                        request.second, count);
  text += statistics_.judging.text("nereid_verdict_seconds", "Seconds that the judge took for a verdict.");
  return text +
         statistics_.waiting.text("nereid_wait_seconds", "Seconds from accepting a pair to its verdict.");
}

}  // namespace nereid::serve
