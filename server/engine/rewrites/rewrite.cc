#include "server/engine/rewrites/rewrite.h"

#include "server/engine/rewrites/bfloat16_products.h"
#include "server/engine/rewrites/grouped_lookups.h"
#include "server/engine/rewrites/vocabulary_lookups.h"

namespace colcast::engine {

std::vector<Rewrite> ExactRewrites() {
  return {
      {"vocabulary lookups", " vocabularies looked up as a list", true, ReplaceVocabularyLookups},
      {"grouped lookups", " lookups run as one op", true, GroupLookups}};
}

std::vector<Rewrite> FastRewrites(const CpuFlags& cpu) {
  for (const char* flag : {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_bf16"}) {
    if (!cpu.Has(flag)) return {};
  }
  return {{"bfloat16 products", " products in bfloat16", false, UseBfloat16Products}};
}

}  // namespace colcast::engine
