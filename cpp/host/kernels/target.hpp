// What stands between these two lines is compiled for processors with more instructions than the baseline.
#pragma once

#define PMT_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define PMT_BEGIN_TARGET(name) PMT_PRAGMA(clang attribute push(__attribute__((target(name))), apply_to = function))
#define PMT_END_TARGET PMT_PRAGMA(clang attribute pop)
#else
#define PMT_BEGIN_TARGET(name) PMT_PRAGMA(GCC push_options) PMT_PRAGMA(GCC target(name))
#define PMT_END_TARGET PMT_PRAGMA(GCC pop_options)
#endif
