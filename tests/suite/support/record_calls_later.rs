//! A program and its plugin, whose calls count from its first instruction.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::record::Room;
use crate::support::record_calls::{arc, built};

/// Counts how often `inside` was called, by itself and by `plugin_run`.
pub const PLUGIN: &str = "
    __attribute__((noipa)) int inside(int *calls) { return ++*calls; }
    static int at_load;
    static int (*resolve(void))(int *) { inside(&at_load); return inside; }
    int chosen(int *) __attribute__((ifunc(\"resolve\")));
    int (*pointer)(int *) = chosen;
    __attribute__((constructor)) static void begin(void) { inside(&at_load); }
    __attribute__((noipa)) int plugin_run(int n, int *calls) {
        for (int i = 0; i < n; i++) inside(calls);
        return at_load;
    }";

/// Loads the plugin and unloads it, again and again, in threads and children; prints how often
/// `inside` was called by `plugin_run`, and at each load.
pub const HOST: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static const char *first, *second;
static int *calls;
static void run(void *library, int n) {
    int own = 0;
    int (*plugin)(int, int *) = (int (*)(int, int *))dlsym(library, "plugin_run");
    __atomic_add_fetch(&calls[1], plugin(n, &own), __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&calls[0], own, __ATOMIC_SEQ_CST);
}
static void *work(void *library) { for (int i = 0; i < 50; i++) run(library, 7); return 0; }
static void *open(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); exit(1); }
    return library;
}
int main(int argc, char **argv) {
    first = argv[1], second = argv[2];
    calls = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 5; i++) {
        void *library = open(first);
        run(library, 10 + i);
        dlclose(library);
    }
    void *library = open(first);
    for (int i = 0; i < 3; i++)
        if (!fork()) {
            // It has the first from its parent, and loads the second itself.
            run(library, 100);
            run(open(second), 1000);
            exit(0);
        }
    while (wait(0) > 0) {}
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, library);
    for (int i = 0; i < 20; i++) { void *other = open(second); run(other, 3); dlclose(other); }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%d %d\n", calls[0], calls[1]);
    return argc == 3 ? 4 : 5;
}
"#;

pub fn plugin(room: &Room, name: &str) -> Option<PathBuf> {
    built(room, PLUGIN, &["-shared", "-fPIC"], name)
}

/// The numbers of an arc: calls, and whether there may be more.
pub fn calls(graph: &Value, from: &str, to: &str) -> Option<(u64, bool)> {
    let arc = arc(graph, from, to)?;
    Some((arc["calls"].as_u64()?, arc["calls_at_least"] == true))
}

pub const LEAF: &str = r#"
#include <stdio.h>
__attribute__((noipa)) int leaf(int x) { return x + 1; }
int main(void) { int s = 0; for (int i = 0; i < 100; i++) s += leaf(i); printf("%d\n", s); return 3; }
"#;
