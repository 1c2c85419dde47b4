// Where subjects come from: files with a header, folders of such files, folders of saved subjects, sampled
// programs that the compiler lowers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "nereid/mutate/campaign.h"
#include "nereid/synth/sample/space.h"
#include "nereid/tracer/tracer.h"

namespace nereid::mutate {

// How the files of a pair become texts, with the files that they import.
struct PairReader {
  std::function<Result<std::string>(const std::filesystem::path&)> reference, candidate;
};

// A candidate's file, with its reference; or, where `reference` is empty, the one that its docstring names by
// a line `reference: PATH`, as it may name its policy by `policy: NAME`. An error where neither names one.
Result<Source> source_of_file(tracer::Tracer& tracer, const std::filesystem::path& candidate,
                              const std::filesystem::path& reference, const PairReader& reader,
                              uint64_t seed);

// The files of a folder whose docstring names a reference and the verdict Verified.
Result<std::vector<Source>> sources_of_folder(tracer::Tracer& tracer, const std::filesystem::path& folder,
                                              const PairReader& reader, uint64_t seed);

Result<std::vector<Source>> sources_of_saved(const std::filesystem::path& folder);

// `count` programs of this length, each lowered in up to `variants` ways: the first is mutated, all are
// judged.
std::vector<Source> sources_of_programs(tracer::Tracer& tracer, std::shared_ptr<const synth::Space> space,
                                        int length, int count, int variants, uint64_t seed);

}  // namespace nereid::mutate
