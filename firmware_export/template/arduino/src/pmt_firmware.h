// The header that a sketch includes: the session of training, and the functions of the board.
#pragma once

#include "common/board.hpp"
#include "common/session.hpp"
#include "model/config.hpp"
