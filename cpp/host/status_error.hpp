// A Status that is not ok, as an exception.
#pragma once

#include "core/base/status.hpp"

namespace pmt::host {

// The bindings turn it into a Python exception.
struct StatusError {
  Status status;
};

inline void check(const Status& status) {
  if (!status.ok()) throw StatusError{status};
}

}  // namespace pmt::host
