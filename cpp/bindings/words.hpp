// The core's enumerations with words, as str in Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <type_traits>

#include "core/base/words.hpp"

namespace pmt::bindings {

template <typename Enumeration>
pybind11::tuple split(const Words<Enumeration>& words) {
  return pybind11::tuple(pybind11::str(words.joined).attr("split")(", "));
}

}  // namespace pmt::bindings

namespace pybind11::detail {

template <typename Enumeration>
struct type_caster_enum_type_enabled<Enumeration, std::void_t<decltype(joined_words(Enumeration{}))>>
    : std::false_type {};

template <typename Enumeration>
struct type_caster<Enumeration, std::void_t<decltype(joined_words(Enumeration{}))>> {
  PYBIND11_TYPE_CASTER(Enumeration, const_name("str"));

  bool load(handle source, bool) {
    const auto word = reinterpret_borrow<object>(source);
    const tuple known = pmt::bindings::split(pmt::words<Enumeration>);
    for (size_t i = 0; i < known.size(); ++i) {
      if (!object(known[i]).equal(word)) continue;
      value = static_cast<Enumeration>(i);
      return true;
    }
    const std::string choices = pmt::words<Enumeration>.joined;
    throw value_error(std::string(repr(source)) + " is unknown; choose one of " + choices);
  }

  static handle cast(Enumeration word, return_value_policy, handle) {
    const object found = pmt::bindings::split(pmt::words<Enumeration>)[static_cast<size_t>(word)];
    return object(found).release();
  }
};

}  // namespace pybind11::detail
