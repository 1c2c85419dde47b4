// What a trial found, as evidence: the rule and the sentence.
#pragma once

#include <string>
#include <string_view>

#include "nereid/replay/report.h"
#include "nereid/verify/analysis/trace_analysis.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

std::string_view rule_of(ttir::FindingKind kind);
// Of an output that is wrong.
std::string sentence_of(const replay::OutputComparison& output);
// The last step of the judged forward that writes the output; null where there is none.
const StepAnalysis* maker_of(const TraceAnalysis& candidate, size_t output);
// The candidate changed memory that it has to leave alone, or as it found it.
bool changes_memory(const replay::TrialReport& report);
// Of memory that calls do not leave as they found it.
Evidence not_as_found(const TraceAnalysis& candidate, trace::StorageId storage, const std::string& when);
// At a step of the candidate's trace.
Evidence evidence_at(const replay::Where& where, std::string_view rule, std::string sentence);

}  // namespace nereid::verify
