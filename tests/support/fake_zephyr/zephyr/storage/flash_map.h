#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#ifndef PARTITION_BYTES
#define PARTITION_BYTES 65536
#endif
#define FIXED_PARTITION_EXISTS(label) (PARTITION_BYTES > 0)
#define FIXED_PARTITION_SIZE(label) PARTITION_BYTES
#define FIXED_PARTITION_ID(label) 3

struct flash_area;
int flash_area_open(uint8_t id, const flash_area** area);
int flash_area_read(const flash_area* area, off_t offset, void* to, size_t count);
int flash_area_write(const flash_area* area, off_t offset, const void* from, size_t count);
int flash_area_erase(const flash_area* area, off_t offset, size_t count);
uint32_t flash_area_align(const flash_area* area);
