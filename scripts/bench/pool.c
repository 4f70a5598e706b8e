// A pool of threads that share a queue: pool N works through N thousand small tasks with 8 threads.
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 8 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long left;
static unsigned long sum;

__attribute__((noinline)) static unsigned long collatz(unsigned long n) {
    unsigned long steps = 0;
    for (; n > 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

__attribute__((noinline)) static unsigned long task(long number) {
    unsigned long steps = 0;
    for (unsigned long n = 1; n < 60; n++) steps += collatz(number + n);
    return steps;
}

static void *work(void *none) {
    for (;;) {
        pthread_mutex_lock(&lock);
        long number = left > 0 ? left-- : 0;
        pthread_mutex_unlock(&lock);
        if (number == 0) return none;
        unsigned long steps = task(number);
        pthread_mutex_lock(&lock);
        sum += steps;
        pthread_mutex_unlock(&lock);
    }
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    left = 1000 * (argc > 1 ? atol(argv[1]) : 100);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    return sum == 0;
}
