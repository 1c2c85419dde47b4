// BM25: how well documents answer a query of words.
//
// S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and
// Trends in Information Retrieval 3(4), 2009, section 3, with an inverse document frequency that is never
// negative (1 + inside of the logarithm, as Lucene's). For each distinct word w of the query that occurs f
// times in a document of length n, in words, where N documents have the mean length m and d of them hold w:
//
//   ln(1 + (N - d + 0.5) / (d + 0.5)) * f * (k1 + 1) / (f + k1 * (1 - b + b * n / m))
//
// summed over words. k1 = 1.5 and b = 0.75.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::skills {

inline constexpr double kBm25K1 = 1.5, kBm25B = 0.75;

// Runs of ASCII letters, digits and underscores, in lower case, without underscores at their ends; one with
// underscores inside is followed by its parts: "aten::_layer_norm" is "aten", "layer_norm", "layer", "norm".
std::vector<std::string> words_in(std::string_view text);

class Bm25 {
 public:
  explicit Bm25(const std::vector<std::vector<std::string>>& documents);
  // One score for each document; 0 where it holds no word of the query.
  std::vector<double> scores(const std::vector<std::string>& query) const;

 private:
  std::vector<std::map<std::string, int>> counts_;  // of each document
  std::vector<double> lengths_;
  std::map<std::string, int> document_frequency_;
  double mean_length_ = 0;
};

}  // namespace nereid::skills
