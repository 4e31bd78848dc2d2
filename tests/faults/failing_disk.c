// A disk that fails: loaded before the C library (LD_PRELOAD), it counts the changes of files below a
// folder, and at the one asked for kills the process, or has no space from then on.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kind_none, kind_kill, kind_full };

static struct {
  char folder[PATH_MAX];
  int kind;
  long at;      // the change that fails, from 0
  int percent;  // of its bytes that a write still does
  long changes;
} disk;

void fault_arm(const char* folder, int kind, long at, int percent) {
  snprintf(disk.folder, sizeof disk.folder, "%s/", folder);
  disk.kind = kind;
  disk.at = at;
  disk.percent = percent;
  disk.changes = 0;
}

long fault_changes(void) { return disk.changes; }

static int is_below(const char* path) {
  return disk.kind != kind_none && path != NULL && strncmp(path, disk.folder, strlen(disk.folder)) == 0;
}

static int is_of_disk(int descriptor) {
  if (disk.kind == kind_none) return 0;
  char name[64], path[PATH_MAX];
  snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
  const ssize_t size = readlink(name, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = '\0';
  return is_below(path);
}

// Counts a change. Whether the disk has no space for it; `partial` are the bytes that it still has.
static int is_full(size_t* partial) {
  const long change = disk.changes++;
  if (change < disk.at) return 0;
  if (partial != NULL) *partial = change == disk.at ? *partial * (size_t)disk.percent / 100 : 0;
  return 1;
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// A change that takes no space: only a killed process does not do it.
static void count_free_change(void) {
  if (is_full(NULL) && disk.kind == kind_kill) die();
}

// A change that takes space; whether it fails.
static int fails(void) {
  if (!is_full(NULL)) return 0;
  if (disk.kind == kind_kill) die();
  errno = ENOSPC;
  return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int descriptor, const void* from, size_t count) {
  size_t partial = count;
  if (count == 0 || !is_of_disk(descriptor) || !is_full(&partial)) return NEXT(write)(descriptor, from, count);
  ssize_t done = partial > 0 ? NEXT(write)(descriptor, from, partial) : 0;
  if (disk.kind == kind_kill) die();
  if (done == 0) errno = ENOSPC;
  return done > 0 ? done : -1;
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  if (!is_of_disk(descriptor)) return NEXT(writev)(descriptor, parts, count);
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len > 0) return write(descriptor, parts[i].iov_base, parts[i].iov_len);
  }
  return 0;
}

static int is_new(const char* path, int flags) { return (flags & O_CREAT) && access(path, F_OK) != 0; }

#define OPEN(name)                                                            \
  int name(const char* path, int flags, ...) {                                \
    mode_t mode = 0;                                                          \
    if (flags & (O_CREAT | O_TMPFILE)) {                                      \
      va_list more;                                                           \
      va_start(more, flags);                                                  \
      mode = va_arg(more, mode_t);                                            \
      va_end(more);                                                           \
    }                                                                         \
    if (is_below(path)) {                                                     \
      if (is_new(path, flags) && fails()) return -1;                          \
      if (!is_new(path, flags) && (flags & O_TRUNC)) count_free_change();     \
    }                                                                         \
    return NEXT(name)(path, flags, mode);                                     \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                           \
  FILE* name(const char* path, const char* mode) {                            \
    if (is_below(path) && mode[0] == 'w' && access(path, F_OK) != 0 && fails()) return NULL; \
    return NEXT(name)(path, mode);                                            \
  }
FOPEN(fopen)
FOPEN(fopen64)

int mkdir(const char* path, mode_t mode) {
  if (is_below(path) && access(path, F_OK) != 0 && fails()) return -1;
  return NEXT(mkdir)(path, mode);
}

int link(const char* from, const char* to) {
  if (is_below(to) && fails()) return -1;
  return NEXT(link)(from, to);
}

int linkat(int folder, const char* from, int other, const char* to, int flags) {
  if (is_below(to) && fails()) return -1;
  return NEXT(linkat)(folder, from, other, to, flags);
}

int fsync(int descriptor) {
  if (is_of_disk(descriptor) && fails()) return -1;
  return NEXT(fsync)(descriptor);
}

int rename(const char* from, const char* to) {
  if (is_below(to)) count_free_change();
  return NEXT(rename)(from, to);
}

int unlink(const char* path) {
  if (is_below(path)) count_free_change();
  return NEXT(unlink)(path);
}

int unlinkat(int folder, const char* path, int flags) {
  if (path[0] == '/' ? is_below(path) : is_of_disk(folder)) count_free_change();
  return NEXT(unlinkat)(folder, path, flags);
}

int rmdir(const char* path) {
  if (is_below(path)) count_free_change();
  return NEXT(rmdir)(path);
}
