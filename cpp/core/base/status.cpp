#include "core/base/status.hpp"

namespace pmt {

const char* message(Code code) {
  switch (code) {
#define PMT_MESSAGE(code, message) \
  case Code::code: return message;
    PMT_STATUS_CODES(PMT_MESSAGE)
#undef PMT_MESSAGE
  }
  return "unknown status";
}

}  // namespace pmt
