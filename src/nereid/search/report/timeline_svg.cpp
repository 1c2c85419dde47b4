#include "nereid/search/report/timeline_svg.h"

#include <algorithm>

#include "nereid/search/report/html.h"

namespace nereid::search {
namespace {

constexpr int kLabel = 230, kRoom = 640, kRow = 22;

class Picture {
 public:
  explicit Picture(double seconds) : seconds_(seconds) {}

  void row(const std::string& label) {
    y_ += kRow;
    body_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLabel - 10, y_ + 12,
                         escaped(shortened(label, 34)));
  }
  void bar(const Span& span, const char* colour) {
    const double from = std::clamp(span.from, 0.0, seconds_), to = std::clamp(span.to, from, seconds_);
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"14\" rx=\"2\" "
        "style=\"fill:var({})\"><title>{}: "
        "{:.2f} to {:.2f} s</title></rect>\n",
        kLabel + from / seconds_ * kRoom, y_, std::max(1.0, (to - from) / seconds_ * kRoom), colour,
        escaped(span.label), span.from, span.to);
  }
  std::string done() const {
    const int bottom = y_ + kRow + 14;
    return fmt::format(
        "<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\">\n{}<text x=\"{}\" y=\"{}\" "
        "class=\"soft\">0</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\" class=\"soft\">{:.1f} "
        "s</text>\n</svg>\n",
        kLabel + kRoom + 10, bottom + 6, kLabel + kRoom + 10, body_, kLabel, bottom, kLabel + kRoom, bottom,
        seconds_);
  }

 private:
  const double seconds_;
  int y_ = -kRow + 4;
  std::string body_;
};

}  // namespace

std::string timeline_svg(const std::vector<Span>& spans, double seconds, size_t most) {
  std::vector<Span> written;
  std::ranges::copy_if(spans, std::back_inserter(written),
                       [](const Span& span) { return span.kind == Span::Kind::kWritten; });
  if (written.empty() || seconds <= 0) return "";
  const Utilization busy = utilization(spans, seconds);
  Picture picture(seconds);
  picture.row(fmt::format("model, {:.0f} % of the time", 100 * busy.written));
  for (const Span& span : written) picture.bar(span, "--accent");
  picture.row(fmt::format("judge, {:.0f} %", 100 * busy.judged));
  for (const Span& span : spans)
    if (span.kind == Span::Kind::kJudged) picture.bar(span, span.verified ? "--good" : "--bad");
  for (size_t i = 0; i < std::min(most, written.size()); ++i) {
    picture.row(written[i].label);
    picture.bar(written[i], "--plain");
  }
  std::string out = picture.done();
  if (written.size() > most) out += fmt::format("<p class=\"soft\">and {} more</p>\n", written.size() - most);
  return out;
}

}  // namespace nereid::search
