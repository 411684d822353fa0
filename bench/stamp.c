/* An executor that does nothing but say when its first instruction ran: it appends the time to $STAMP_FILE, drains its
 * prompt, and answers in the events of `codex exec --json`. Used by the benchmarks only. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const char *path = getenv("STAMP_FILE");
    if (path) {
        char line[64];
        int length = snprintf(line, sizeof line, "%lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (fd < 0 || write(fd, line, (size_t)length) != length) return 1;
        close(fd);
    }
    char sink[65536];
    while (read(0, sink, sizeof sink) > 0) {}
    puts("{\"type\":\"thread.started\",\"thread_id\":\"01a22dc0-3217-78d1-8fdd-ce098a780ef0\"}");
    puts("{\"type\":\"turn.started\"}");
    puts("{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\",\"text\":\"stamped\"}}");
    puts("{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}");
    return 0;
}
