// Covariance alignment: gives a layer's windows the covariances that they have on clean images. The linear map
// that does it goes into the layer's own weights; the channel alignment that follows sets means and deviations.
#pragma once

#include <cstdint>

#include "core/align/channel_statistics.hpp"
#include "core/align/window_statistics.hpp"

namespace pmt {

// Eigenvalues and eigenvectors of a symmetric matrix by Jacobi's rotations (Golub and Van Loan,
// Matrix Computations, 8.5). They take sums, products, quotients and square roots alone, in a fixed
// order: the same bits on every target.

// `matrix` (n x n, row by row) becomes diagonal: its eigenvalues. Row i of `vectors` (n x n) becomes
// the eigenvector of eigenvalue i. Accurate to some 1e-6 of the largest eigenvalue.
void symmetric_eigen(int32_t n, float* matrix, float* vectors);

// The linear map that gives vectors of one covariance another one and moves them least: the optimal
// transport between two normal distributions (Olkin and Pukelsheim 1982; Peyre and Cuturi 2019,
// arXiv:1803.00567, remark 2.31).

// Share of the mean variance that is added to both covariances: it keeps directions that hold next to
// nothing from being blown up.
constexpr float transport_ridge = 0.003f;

constexpr int64_t transport_floats(int64_t n) { return 4 * n * n + n; }

// map = found^-1/2 (found^1/2 reference found^1/2)^1/2 found^-1/2, symmetric; all n x n. Both
// covariances have a mean variance of 1. `scratch` takes transport_floats(n).
void transport_map(int32_t n, const float* reference, const float* found, float* map, float* scratch);

// Writes weights that a linear map of the inputs was multiplied into.

// An output channel's weights, in steps of its old scale, in the layer's order; and the mean input, in int8
// steps, of the channels that they belong to in turn.
struct MappedWeights {
  const float* values;
  const float* means;
  int32_t channels;
};

// Writes weights, weight scale and bias of an output channel: int8 weights fill their range, and what the map takes
// from the mean output goes into the bias. The channel stays as it is where the scale would leave its range.
void write_mapped_channel(const Model& model, const OpRecord& op, int32_t channel, const MappedWeights& mapped,
                          const WritableLayer& layer);

// The results of WindowMeter for one layer.
struct WindowStatistics {
  const float* means;
  const float* values;
};

// Bytes of scratch that align_covariances() takes.
size_t covariance_alignment_bytes(const WindowGroups& groups);

// weights' = map * weights, by output channel, with map the transport from the windows found to the
// reference's (see transport_map), for the output channels of one group; both covariances are divided by their mean
// variance. Then weights, weight scales and biases are written anew: int8 weights fill their range, and what the map
// takes from the mean output goes into the bias. Channels that are dead, or whose group is constant in the reference or
// as found, stay as they are. Groups may be done in any order.
void align_covariances(const Model& model, int32_t op, int32_t group, const WindowStatistics& reference,
                       const WindowStatistics& found, const WritableLayer& layer, void* scratch);

}  // namespace pmt
