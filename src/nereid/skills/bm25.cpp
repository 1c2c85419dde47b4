#include "nereid/skills/bm25.h"

#include <cmath>
#include <numeric>
#include <set>

namespace nereid::skills {

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  std::string run;
  const auto end_run = [&] {
    while (run.ends_with('_')) run.pop_back();
    run.erase(0, std::min(run.find_first_not_of('_'), run.size()));
    if (run.empty()) return;
    words.push_back(run);
    if (run.find('_') != run.npos) {
      size_t at = 0;
      for (size_t end = 0; end != run.npos; at = end + 1) {
        end = run.find('_', at);
        if (const std::string part = run.substr(at, end - at); !part.empty()) words.push_back(part);
      }
    }
    run.clear();
  };
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z')
      run += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')
      run += c;
    else
      end_run();
  }
  end_run();
  return words;
}

Bm25::Bm25(const std::vector<std::vector<std::string>>& documents) {
  for (const auto& document : documents) {
    auto& counts = counts_.emplace_back();
    for (const auto& word : document) ++counts[word];
    for (const auto& [word, count] : counts) ++document_frequency_[word];
    lengths_.push_back(static_cast<double>(document.size()));
  }
  if (!documents.empty())
    mean_length_ =
        std::accumulate(lengths_.begin(), lengths_.end(), 0.0) / static_cast<double>(documents.size());
}

std::vector<double> Bm25::scores(const std::vector<std::string>& query) const {
  std::vector<double> scores(counts_.size(), 0.0);
  const double all = static_cast<double>(counts_.size());
  for (const auto& word : std::set<std::string>(query.begin(), query.end())) {
    const auto found = document_frequency_.find(word);
    if (found == document_frequency_.end()) continue;
    const double holding = found->second;
    const double idf = std::log(1 + (all - holding + 0.5) / (holding + 0.5));
    for (size_t i = 0; i < counts_.size(); ++i) {
      const auto count = counts_[i].find(word);
      if (count == counts_[i].end()) continue;
      const double f = count->second;
      scores[i] +=
          idf * f * (kBm25K1 + 1) / (f + kBm25K1 * (1 - kBm25B + kBm25B * lengths_[i] / mean_length_));
    }
  }
  return scores;
}

}  // namespace nereid::skills
