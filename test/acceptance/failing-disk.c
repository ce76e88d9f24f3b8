// Preloaded: call number FAIL_AT, of those that write, sync or rename states of training, fails as on a full disk. When
// none is left to fail, the process ends as it would.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static int fails(void) {
  const char *at = getenv("FAIL_AT");
  if (!at || atomic_fetch_add(&calls, 1) + 1 != atol(at))
    return 0;
  errno = ENOSPC;
  return 1;
}

static int isState(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0)
    return 0;
  path[n] = 0;
  return strstr(path, "training-state") != NULL;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  static ssize_t (*next)(int, const void *, size_t);
  if (!next)
    next = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  if (isState(fd) && fails()) {
    next(fd, bytes, count / 2); // some of it arrives
    errno = ENOSPC;
    return -1;
  }
  return next(fd, bytes, count);
}
int fsync(int fd) {
  static int (*next)(int);
  if (!next)
    next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return isState(fd) && fails() ? -1 : next(fd);
}
int rename(const char *from, const char *to) {
  static int (*next)(const char *, const char *);
  if (!next)
    next = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
  return strstr(to, "training-state") && fails() ? -1 : next(from, to);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  static int (*next)(int, int, off_t, off_t);
  if (!next)
    next = (int (*)(int, int, off_t, off_t))dlsym(RTLD_NEXT, "fallocate");
  return isState(fd) && fails() ? -1 : next(fd, mode, offset, length);
}
