// The same in C++: a call ends with its scope. docs/embedding.md explains it.
//
//     c++ -O2 -o plain plain.cc $(pkg-config --cflags --libs varve)
#include <varve.h>

namespace {

class Call {
public:
    Call(varve_thread *thread, uint32_t function) : thread_(thread) { varve_call_begin(thread_, function, 0); }
    ~Call() { varve_call_end(thread_, ok_ ? VARVE_CALL_OK : VARVE_CALL_ERRORED); }
    void done() { ok_ = true; } // before each return; a scope that an exception leaves was not done
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

private:
    varve_thread *thread_;
    bool ok_ = false;
};

uint32_t number_of_fib;

unsigned fib(varve_thread *t, unsigned n)
{
    Call call(t, number_of_fib);
    unsigned result = n < 2 ? n : fib(t, n - 1) + fib(t, n - 2);
    call.done();
    return result;
}

} // namespace

int main()
{
    varve_options options = varve_options();
    options.struct_size = sizeof options;
    options.host_version = "plain 1";
    varve_session *s = varve_session_open(&options);
    varve_engine_info engine = varve_engine_info();
    engine.source_label = "plain.cc";
    varve_engine *e = varve_engine_open(s, &engine);
    varve_function_info function = varve_function_info();
    function.fqn = "main";
    uint32_t number_of_main = varve_function_add(e, &function);
    function.fqn = "fib";
    number_of_fib = varve_function_add(e, &function);

    varve_thread *t;
    varve_root *r = varve_root_begin(e, nullptr, &t);
    unsigned result;
    {
        Call call(t, number_of_main);
        result = fib(t, 20);
        call.done();
    }
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(r, VARVE_SUCCEEDED);
    varve_engine_close(e);
    varve_session_close(s);
    return result == 6765 ? 0 : 1;
}
