/*
 * A C program that records its own calls. docs/embedding.md explains it.
 *
 *     cc -O2 -o plain plain.c $(pkg-config --cflags --libs varve)
 *     ./plain && varve top
 */
#include <varve.h>

static uint32_t number_of_fib;

static unsigned fib(varve_thread *t, unsigned n)
{
    varve_call_begin(t, number_of_fib, 0);
    unsigned result = n < 2 ? n : fib(t, n - 1) + fib(t, n - 2);
    varve_call_end(t, VARVE_CALL_OK);
    return result;
}

int main(void)
{
    varve_session *s = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options),
                                                           .host_version = "plain 1"});
    varve_engine *e = varve_engine_open(s, &(varve_engine_info){.source_label = "plain.c"});
    uint32_t number_of_main = varve_function_add(e, &(varve_function_info){.fqn = "main"});
    number_of_fib = varve_function_add(e, &(varve_function_info){.fqn = "fib"});

    varve_thread *t;
    varve_root *r = varve_root_begin(e, NULL, &t);
    varve_call_begin(t, number_of_main, 0);
    unsigned result = fib(t, 20);
    varve_call_end(t, VARVE_CALL_OK);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(r, VARVE_SUCCEEDED);

    varve_engine_close(e);
    varve_session_close(s);
    return result == 6765 ? 0 : 1;
}
