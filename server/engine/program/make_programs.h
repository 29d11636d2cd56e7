// Makes the programs of every signature of a loaded model, from the record of its export.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_MAKE_PROGRAMS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_MAKE_PROGRAMS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/program/programs.h"
#include "server/engine/program/staged_program.h"
#include "server/engine/record/row_record.h"
#include "server/engine/signature.h"

namespace colcast::engine {

using SignaturesByName = std::map<std::string, std::unique_ptr<Signature>, std::less<>>;
using ProgramsByName = std::map<std::string, std::unique_ptr<Programs>, std::less<>>;

// `signatures` holds the runnable signatures of `declared`. All arguments except the records must
// outlive the programs.
ProgramsByName MakePrograms(const SignaturesByName& signatures, const SignatureMap& declared,
                            const std::vector<RecordedSignatures>& records,
                            const StateCaches& memories, const Options& options);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_MAKE_PROGRAMS_H_
