#include "nereid/search/timeline.h"

#include <algorithm>

#include "nereid/base/json.h"

namespace nereid::search {

void Timeline::add(Span span) {
  const std::lock_guard lock(mutex_);
  spans_.push_back(std::move(span));
}

std::vector<Span> Timeline::spans() const {
  const std::lock_guard lock(mutex_);
  auto spans = spans_;
  std::ranges::stable_sort(spans, {}, &Span::from);
  return spans;
}

Utilization utilization(const std::vector<Span>& spans, double seconds) {
  if (seconds <= 0) return {};
  // Ends of spans in the order of time, with how many of either kind begin (1) or end (-1) there.
  struct End {
    double at;
    bool judged;
    int change;
  };
  std::vector<End> ends;
  for (const Span& span : spans) {
    const double from = std::clamp(span.from, 0.0, seconds), to = std::clamp(span.to, from, seconds);
    ends.push_back({from, span.kind == Span::Kind::kJudged, 1});
    ends.push_back({to, span.kind == Span::Kind::kJudged, -1});
  }
  std::ranges::sort(ends, {}, &End::at);
  Utilization busy;
  int written = 0, judged = 0;
  double before = 0;
  for (const End& end : ends) {
    const double share = (end.at - before) / seconds;
    busy.written += written > 0 ? share : 0;
    busy.judged += judged > 0 ? share : 0;
    busy.both += written > 0 && judged > 0 ? share : 0;
    (end.judged ? judged : written) += end.change;
    before = end.at;
  }
  return busy;
}

Json to_json(const std::vector<Span>& spans, double seconds) {
  const Utilization busy = utilization(spans, seconds);
  Json list = Json::array();
  for (const Span& span : spans) {
    const bool judged = span.kind == Span::Kind::kJudged;
    Json one = {
        {"what", judged ? "judged" : "written"}, {"label", span.label}, {"from", span.from}, {"to", span.to}};
    if (judged) one["verified"] = span.verified;
    list.push_back(std::move(one));
  }
  return {{"writing", busy.written}, {"judging", busy.judged}, {"both", busy.both}, {"spans", list}};
}

}  // namespace nereid::search
