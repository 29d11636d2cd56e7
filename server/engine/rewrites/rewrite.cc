#include "server/engine/rewrites/rewrite.h"

#include "server/engine/rewrites/grouped_lookups.h"
#include "server/engine/rewrites/int8_lookups.h"
#include "server/engine/rewrites/kernel_rows.h"
#include "server/engine/rewrites/packed_products.h"
#include "server/engine/rewrites/vocabulary_lookups.h"

namespace colcast::engine {

std::vector<Rewrite> ExactRewrites() {
  return {{"kernel rows", " kernels' rows gathered once", GatherKernelRowsOnce},
          {"vocabulary lookups", " vocabularies looked up as a list", ReplaceVocabularyLookups},
          {"grouped lookups", " lookups run as one op", GroupLookups}};
}

std::vector<Rewrite> FastRewrites(const CpuFlags& cpu, const std::set<std::string>& tables) {
  std::vector<Rewrite> rewrites;
  if (!tables.empty()) {
    rewrites.push_back({"int8 tables", " tables in int8",
                        [tables](const std::set<std::string>& feeds, tensorflow::GraphDef* graph) {
                          return UseInt8Tables(tables, feeds, graph);
                        }});
  }
  for (const char* flag : {"avx512f", "avx512bw", "avx512vl", "avx512dq"}) {
    if (!cpu.Has(flag)) return rewrites;
  }
  if (cpu.Has("avx512_bf16")) {
    rewrites.push_back({"bfloat16 products", " products in bfloat16", UseBfloat16Products});
  }
  return rewrites;
}

}  // namespace colcast::engine
