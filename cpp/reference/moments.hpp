// An optimizer's direction after a series of gradients of one element, in double, from the whole series.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// sum over t of momentum^(T - t) * gradient[t], t = 1 .. T.
double momentum_direction(const Vector<double>& gradients, double momentum);

// Kingma & Ba 2015, algorithm 1, written out: weighted means of the gradients and of their squares.
double adam_direction(const Vector<double>& gradients, double beta1, double beta2);

}  // namespace pmt::reference
