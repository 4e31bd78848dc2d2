#include "core/align/covariance_alignment.hpp"

#include "core/base/arena.hpp"
#include "core/base/arithmetic.hpp"

namespace pmt {

namespace {

// Six to nine sweeps reach the precision of a float; one that finds nothing to do is the last.
constexpr int32_t most_sweeps = 16;
constexpr float negligible = 1e-7f;  // of the geometric mean of the two diagonal elements

struct Rotation {
  float cosine, sine;
};

// The rotation that makes element (p, q) zero, of the smaller angle.
Rotation rotation_of(float pp, float qq, float pq) {
  const float ratio = (qq - pp) / (2.0f * pq);
  const float root = __builtin_sqrtf(1.0f + ratio * ratio);
  const float tangent = ratio >= 0.0f ? 1.0f / (ratio + root) : 1.0f / (ratio - root);
  const float cosine = 1.0f / __builtin_sqrtf(1.0f + tangent * tangent);
  return {cosine, tangent * cosine};
}

void rotate(float* a, float* b, int32_t count, int32_t stride, const Rotation& r) {
  for (int32_t i = 0; i < count * stride; i += stride) {
    const float x = a[i];
    const float y = b[i];
    a[i] = r.cosine * x - r.sine * y;
    b[i] = r.sine * x + r.cosine * y;
  }
}

float magnitude(float value) { return value < 0.0f ? -value : value; }

}  // namespace

void symmetric_eigen(int32_t n, float* matrix, float* vectors) {
  for (int32_t i = 0; i < n * n; ++i) vectors[i] = i % (n + 1) == 0 ? 1.0f : 0.0f;
  bool rotated = true;
  for (int32_t sweep = 0; sweep < most_sweeps && rotated; ++sweep) {
    rotated = false;
    for (int32_t p = 0; p < n; ++p) {
      for (int32_t q = p + 1; q < n; ++q) {
        const float pp = matrix[p * n + p];
        const float qq = matrix[q * n + q];
        const float pq = matrix[p * n + q];
        if (pq * pq <= negligible * negligible * magnitude(pp * qq)) continue;
        const Rotation r = rotation_of(pp, qq, pq);
        rotate(matrix + p, matrix + q, n, n, r);
        rotate(matrix + p * n, matrix + q * n, n, 1, r);
        rotate(vectors + p * n, vectors + q * n, n, 1, r);
        rotated = true;
      }
    }
  }
}

namespace {

// product = a * b, or a * b^T; all n x n.
void multiply(int32_t n, const float* a, const float* b, bool transposed, float* product) {
  for (int32_t i = 0; i < n; ++i) {
    float* row = product + i * n;
    for (int32_t j = 0; j < n; ++j) row[j] = 0.0f;
    for (int32_t k = 0; k < n; ++k) {
      const float factor = a[i * n + k];
      for (int32_t j = 0; j < n; ++j) row[j] += factor * (transposed ? b[j * n + k] : b[k * n + j]);
    }
  }
}

void copy_with_ridge(int32_t n, const float* from, float* to) {
  for (int32_t i = 0; i < n * n; ++i) to[i] = from[i] + (i % (n + 1) == 0 ? transport_ridge : 0.0f);
}

// Rounding may leave an eigenvalue below what the ridge makes the least.
float root_of(float eigenvalue, float least) { return __builtin_sqrtf(eigenvalue > least ? eigenvalue : least); }

// The sum over eigenvectors (rows) v of f(eigenvalue) v v^T, with f the root.
void square_root(int32_t n, const float* values, const float* vectors, float* root) {
  for (int32_t i = 0; i < n * n; ++i) root[i] = 0.0f;
  for (int32_t k = 0; k < n; ++k) {
    const float weight = root_of(values[k * n + k], 0.0f);
    const float* vector = vectors + k * n;
    for (int32_t i = 0; i < n; ++i) {
      const float scaled = weight * vector[i];
      for (int32_t j = 0; j < n; ++j) root[i * n + j] += scaled * vector[j];
    }
  }
}

}  // namespace

// In the basis of found's eigenvectors, where its root is diagonal. The matrix under the outer root is
// then graded, and Jacobi's rotations find small eigenvalues of such matrices to their own precision
// (Demmel and Veselic 1992); formed in the old basis they would drown in the large ones' rounding.
void transport_map(int32_t n, const float* reference, const float* found, float* map, float* scratch) {
  float* values = scratch;
  float* basis = values + n * n;
  float* vectors = basis + n * n;
  float* graded = vectors + n * n;
  float* roots = graded + n * n;
  copy_with_ridge(n, found, values);
  symmetric_eigen(n, values, basis);
  for (int32_t i = 0; i < n; ++i) roots[i] = root_of(values[i * n + i], 0.5f * transport_ridge);
  copy_with_ridge(n, reference, values);
  multiply(n, basis, values, false, map);
  multiply(n, map, basis, true, graded);
  for (int32_t i = 0; i < n * n; ++i) graded[i] *= roots[i / n] * roots[i % n];
  symmetric_eigen(n, graded, vectors);
  square_root(n, graded, vectors, values);
  for (int32_t i = 0; i < n * n; ++i) values[i] /= roots[i / n] * roots[i % n];
  multiply(n, values, basis, false, graded);
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j = 0; j < n; ++j) vectors[i * n + j] = basis[j * n + i];
  }
  multiply(n, vectors, graded, false, map);
}

void write_mapped_channel(const Model& model, const OpRecord& op, int32_t channel, const MappedWeights& mapped,
                          const WritableLayer& layer) {
  const ChannelWeights at = channel_weights(model, op, channel);
  const float zero = to_float(model.input_of(op).zero_point);
  const float old = layer.weight_scales[channel];
  float largest = 0.0f;
  float moved = 0.0f;  // of the mean sum, in products of an old weight's step and an input's
  for (int32_t i = 0; i < at.count; ++i) {
    const float value = mapped.values[i];
    const float size = absolute(value);
    largest = size > largest ? size : largest;
    const float weight = to_float(layer.weights[at.first + i * at.stride]);
    moved += (weight - value) * (mapped.means[i % mapped.channels] - zero);
  }
  const float step = largest / to_float(largest_weight);
  const float scale = old * step;
  if (!(scale > dead_channel_scale) || !(scale < largest_scale)) return;
  for (int32_t i = 0; i < at.count; ++i) {
    layer.weights[at.first + i * at.stride] = static_cast<int8_t>(round_half_even(mapped.values[i] / step));
  }
  layer.bias[channel] = round_bias((to_float(layer.bias[channel]) + moved) / step);
  layer.weight_scales[channel] = scale;
}

namespace {

struct Memory {
  float* reference;
  float* found;
  float* map;
  float* transport;
  float* weights;  // of one output channel, mapped
};

Memory take_memory(Arena& arena, const WindowGroups& groups) {
  const int64_t window = groups.window();
  Memory memory = {};
  memory.reference = arena.take<float>(window * window);
  memory.found = arena.take<float>(window * window);
  memory.map = arena.take<float>(window * window);
  memory.transport = arena.take<float>(transport_floats(window));
  memory.weights = arena.take<float>(window);
  return memory;
}

// False where there is nothing to divide by.
bool normalized_covariance(const WindowGroups& groups, const float* values, float* matrix) {
  window_covariance(groups, values, matrix);
  const int32_t window = groups.window();
  float sum = 0.0f;
  for (int32_t i = 0; i < window; ++i) sum += matrix[i * (window + 1)];
  const float mean = sum / to_float(window);
  if (!(mean > 0.0f) || !is_finite(mean)) return false;
  for (int32_t i = 0; i < window * window; ++i) matrix[i] /= mean;
  return true;
}

void map_channel(const Model& model, const OpRecord& op, int32_t channel, const WindowGroups& groups,
                 const Memory& memory, const float* means, const WritableLayer& layer) {
  const ChannelWeights at = channel_weights(model, op, channel);
  const int32_t window = groups.window();
  for (int32_t i = 0; i < window; ++i) memory.weights[i] = 0.0f;
  for (int32_t k = 0; k < window; ++k) {
    const float weight = to_float(layer.weights[at.first + k * at.stride]);
    for (int32_t i = 0; i < window; ++i) memory.weights[i] += weight * memory.map[k * window + i];
  }
  write_mapped_channel(model, op, channel, {memory.weights, means, groups.channels}, layer);
}

}  // namespace

size_t covariance_alignment_bytes(const WindowGroups& groups) {
  Arena measure;
  take_memory(measure, groups);
  return measure.used();
}

void align_covariances(const Model& model, int32_t op, int32_t group, const WindowStatistics& reference,
                       const WindowStatistics& found, const WritableLayer& layer, void* scratch) {
  const OpRecord& record = model.op(op);
  const WindowGroups groups = window_groups(model, op);
  Arena arena(scratch, covariance_alignment_bytes(groups));
  const Memory memory = take_memory(arena, groups);
  const int64_t at = int64_t{group} * groups.values();
  if (!normalized_covariance(groups, reference.values + at, memory.reference)) return;
  if (!normalized_covariance(groups, found.values + at, memory.found)) return;
  transport_map(groups.window(), memory.reference, memory.found, memory.map, memory.transport);
  const int32_t outputs = model.output_of(record).channels / groups.count;
  for (int32_t c = group * outputs; c < (group + 1) * outputs; ++c) {
    if (channel_is_dead(layer.weight_scales[c])) continue;
    map_channel(model, record, c, groups, memory, found.means + group * groups.channels, layer);
  }
}

}  // namespace pmt
