//! Threads that live shorter than a sampling period.

/// Two functions work in turn, each in a thread of its own that lives so many microseconds, for so many
/// milliseconds of processor time; prints the processor time that the process used, in milliseconds.
pub const POOL: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
static volatile unsigned long sink;
static double each;
static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
__attribute__((noinline)) void even(double end) {
    do for (int i = 0; i < 2000; i++) sink += i; while (now(CLOCK_THREAD_CPUTIME_ID) < end);
}
__attribute__((noinline)) void odd(double end) {
    do for (int i = 0; i < 2000; i++) sink ^= i; while (now(CLOCK_THREAD_CPUTIME_ID) < end);
}
static void *run(void *is_even) {
    double end = now(CLOCK_THREAD_CPUTIME_ID) + each;
    is_even ? even(end) : odd(end);
    return 0;
}
int main(int count, char **words) {
    each = atof(words[1]);
    double end = atof(words[2]) * 1e3;
    for (long i = 0; now(CLOCK_PROCESS_CPUTIME_ID) < end; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, run, (void *)(i & 1));
        pthread_join(thread, 0);
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%ld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000
        + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000);
    return 0;
}
"#;
