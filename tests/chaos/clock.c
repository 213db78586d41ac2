/* Skews the wall clock by the microseconds in a file, a 64-bit number in the machine's byte order.
   Loaded by LD_PRELOAD into the processes of a host. Monotonic clocks do not change.

   cc -shared -fPIC -O2 -o clock.so clock.c
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t right = 0;
static const volatile int64_t *wrong_by_us = &right;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("CARET_CHAOS_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) wrong_by_us = found;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  if (!real_clock_gettime) begin(); /* another library's constructor came first */
  int failed = real_clock_gettime(clock, now);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t us = now->tv_nsec / 1000 + *wrong_by_us % 1000000;
  now->tv_sec += *wrong_by_us / 1000000 + (us >= 1000000) - (us < 0);
  now->tv_nsec = (us + (us < 0 ? 1000000 : 0)) % 1000000 * 1000 + now->tv_nsec % 1000;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (out) *out = precise.tv_sec;
  return precise.tv_sec;
}
