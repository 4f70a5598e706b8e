// A program that does little but start others: forks N, each of which execs /bin/true.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    for (long i = 0; i < rounds; i++) {
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(127);
        }
        int status;
        if (waitpid(child, &status, 0) < 0 || status != 0) return 1;
    }
    return 0;
}
