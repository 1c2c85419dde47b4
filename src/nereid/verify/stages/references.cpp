#include "nereid/verify/stages/references.h"

namespace nereid::verify {

Result<std::shared_ptr<const Traced>> References::get(const std::string& key, const Make& make) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    auto& place = entries_[key];
    if (!place) {
      place = std::make_shared<Entry>();
      order_.push_back(key);
      if (order_.size() > most_) {
        entries_.erase(order_.front());
        order_.pop_front();
      }
    }
    entry = place;
  }
  std::lock_guard lock(entry->making);
  if (entry->done) return entry->result;
  auto result = make();
  if (result.ok() || result.error().blame == Blame::kInput) {
    entry->result = result;
    entry->done = true;
  }
  return result;
}

}  // namespace nereid::verify
