// A status is one word.
#include <doctest/doctest.h>

#include "core/base/status.hpp"

using namespace pmt;

TEST_CASE("a status keeps its code and the place that is concerned") {
  CHECK(Status().ok());
  CHECK(Status().index() == -1);
  const Status status = {Code::op_data, 41};
  CHECK(!status.ok());
  CHECK(status.code == Code::op_data);
  CHECK(status.index() == 41);
  CHECK(Status(Code::op_data, 8388607).index() == 8388607);
  CHECK(Status(Code::op_data, 8388608).index() == -1);
}
