#include "nereid/python/graph_cache.h"

#include <algorithm>
#include <utility>

namespace nereid::python {
namespace {

uint64_t hash_of(const std::vector<uint64_t>& pointers) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint64_t pointer : pointers) hash = (hash ^ pointer) * 0x100000001b3, hash ^= hash >> 29;
  return hash | 1;  // 0: none
}

}  // namespace

std::shared_ptr<Graph> GraphCache::find(const std::vector<uint64_t>& pointers) {
  ++calls_;
  for (Entry& entry : entries_) {
    if (entry.pointers != pointers) continue;
    entry.used = calls_;
    return entry.graph;
  }
  return nullptr;
}

std::vector<GraphCache::Entry>::iterator GraphCache::oldest() {
  return std::ranges::min_element(entries_, {}, &Entry::used);
}

bool GraphCache::wants(const std::vector<uint64_t>& pointers) {
  if (most_ == 0 || failures_ >= kMaxFailures) return false;
  const uint64_t hash = hash_of(pointers);
  if (std::ranges::find(seen_, hash) == seen_.end()) {
    seen_[next_++ % seen_.size()] = hash;
    return false;
  }
  return entries_.size() < most_ || oldest()->used + kIdle < calls_;
}

void GraphCache::add(const std::vector<uint64_t>& pointers, std::shared_ptr<Graph> graph) {
  if (std::ranges::find(entries_, pointers, &Entry::pointers) != entries_.end()) return;
  if (entries_.size() >= most_) entries_.erase(oldest());
  entries_.push_back({pointers, std::move(graph), calls_});
}

void GraphCache::remove(const std::shared_ptr<Graph>& graph) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.graph == graph; });
}

}  // namespace nereid::python
