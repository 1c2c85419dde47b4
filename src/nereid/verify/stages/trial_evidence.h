// What a trial found, as evidence: the rule and the sentence.
#pragma once

#include <string>
#include <string_view>

#include "nereid/replay/report.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

std::string_view rule_of(ttir::FindingKind kind);
// Of an output that is wrong.
std::string sentence_of(const replay::OutputComparison& output);
// At a step of the candidate's trace.
Evidence evidence_at(const replay::Where& where, std::string_view rule, std::string sentence);

}  // namespace nereid::verify
