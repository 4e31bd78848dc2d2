#pragma once

#include <cstdint>

constexpr int DISK_IOCTL_GET_SECTOR_COUNT = 1, DISK_IOCTL_GET_SECTOR_SIZE = 2;
constexpr int DISK_IOCTL_CTRL_SYNC = 5;
int disk_access_init(const char* disk);
int disk_access_ioctl(const char* disk, uint8_t command, void* buffer);
int disk_access_read(const char* disk, uint8_t* data, uint32_t first, uint32_t count);
int disk_access_write(const char* disk, const uint8_t* data, uint32_t first, uint32_t count);
