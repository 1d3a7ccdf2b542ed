/* Threads of the library's own: their stack is as large as was said, whatever thread-local storage there is. */
#include "config.h"

#include "base/os_thread.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "tests/testing.h"

enum { LOCAL = 1 << 20, RESERVED = 8 << 10 };
static _Thread_local volatile uint8_t local[LOCAL];

/* Goes down until so many bytes are used since top. */
static __attribute__((noinline)) unsigned use(uintptr_t top, size_t bytes)
{
    volatile uint8_t part[1024];
    memset((void *)(uintptr_t)part, 1, sizeof part);
    return top - (uintptr_t)__builtin_frame_address(0) >= bytes ? part[0] : part[0] + use(top, bytes);
}

static void *run(void *arg)
{
    size_t *stack = arg;
    for (size_t i = 0; i < LOCAL; i += 4096)
        local[i] = 1;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    bool all = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGPROF) == 1;
    return (void *)(uintptr_t)(all && use((uintptr_t)__builtin_frame_address(0), *stack - RESERVED) > 1);
}

START_TEST(stack_is_there)
{
    static const size_t sizes[] = {VV_STACK_OURS, VV_STACK_PLUGINS};
    size_t stack = sizes[_i];
    pthread_t id;
    void *ok;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    ck_assert_int_eq(vv_os_thread_start(&id, stack, run, &stack), 0);
    ck_assert_int_eq(pthread_join(id, &ok), 0);
    ck_assert_ptr_nonnull(ok);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    ck_assert_int_eq(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}
END_TEST

int main(void)
{
    TCase *c = test_case("os_thread", 60);
    tcase_add_loop_test(c, stack_is_there, 0, 2);
    return test_run();
}
