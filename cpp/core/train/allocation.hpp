// Queries of every layer under one budget of multiply-accumulates.
#pragma once

#include <cstdint>

namespace pmt {

// A layer's gain and cost of a query, and how many the layer gets.
struct QueryDemand {
  float error;   // squared error of the layer's gradient times its queries, >= 0
  int64_t macs;  // of one query: the network from the layer on; 0 for a layer that needs none
  int32_t queries;
};

// Fewest queries of a layer, and what queries come in: antithetic pairs are never cut.
constexpr int32_t least_allocated = 4;
constexpr int32_t allocated_at_once = 2;

// Minimizes the sum of error / queries where the sum of queries * macs is at most that of `uniform`
// queries for every layer. Without bounds and rounding that is queries ~ sqrt(error / macs). Starting
// from the fewest, the two queries that lower the sum most for their multiply-accumulates are
// added, the earlier layer's in a tie, until no two fit. With fewer than `least_allocated` uniform
// queries, or no error known anywhere, it stays uniform, as it does for layers that need none.
void allocate_queries(QueryDemand* layers, int32_t count, int32_t uniform);

}  // namespace pmt
