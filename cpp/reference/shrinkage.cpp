#include "reference/shrinkage.hpp"

namespace pmt::reference {

double noise_share(const xt::xtensor<double, 2>& differences, const Vector<double>& freedom,
                   const Vector<double>& sums) {
  const Vector<double> by_sample = xt::sum(xt::square(differences), {1});
  return xt::sum(by_sample * freedom)() / xt::sum(xt::square(sums))();
}

}  // namespace pmt::reference
