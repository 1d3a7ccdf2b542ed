#include "config.h"
#include "hosts/lua/host.h"

#include <fcntl.h>
#include <malloc.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hosts/lua/cnames.h"
#include "hosts/lua/fault.h"
#include "hosts/lua/info.h"
#include "hosts/lua/interpose.h"
#include "hosts/lua/layout.h"
#include "hosts/lua/live.h"
#include "hosts/lua/public.h"
#include "hosts/lua/select.h"
#include "hosts/lua/unwind.h"

#define SUPPORTED                                                                                                    \
    (VARVE_MON_FUNCTION_UNLOADS | VARVE_MON_MODULE_LOADS | VARVE_MON_DOMAIN_LOADS | VARVE_MON_FUNCTION_LOADS |       \
     VARVE_MON_EXCEPTIONS | VARVE_MON_COLLECTIONS | VARVE_MON_ALLOCATIONS | VARVE_MON_THREADS |                      \
     VARVE_MON_ENTER_LEAVE | VARVE_MON_SUSPENSIONS | VARVE_CALL_ARGUMENTS | VARVE_CALL_RESULTS)

static void no_enter(void *thread, uintptr_t function, uintptr_t site)
{
    (void)thread;
    (void)function;
    (void)site;
}

static void no_enter_at(void *thread, uintptr_t function, uintptr_t site, uint64_t ticks)
{
    (void)thread;
    (void)function;
    (void)site;
    (void)ticks;
}

static void no_leave(void *thread, varve_ending how)
{
    (void)thread;
    (void)how;
}

static void no_leave_at(void *thread, varve_ending how, uint64_t ticks)
{
    (void)thread;
    (void)how;
    (void)ticks;
}

static void no_wait(void *thread, uint64_t ticks)
{
    (void)thread;
    (void)ticks;
}

/* A host without one: its mask. */
static uint64_t nobody;

static const varve_hooks no_hooks = {.size = sizeof no_hooks,
                                     .enter = no_enter,
                                     .enter_at = no_enter_at,
                                     .leave = no_leave,
                                     .leave_at = no_leave_at,
                                     .suspend = no_wait,
                                     .resume = no_wait};

vl_state vl = {.host = (varve_host *)(void *)&nobody};
__thread bool vl_interpreter;

static struct {
    varve_session *session; /* NULL: not open */
    pid_t process;
    const char *const *profilers;
    size_t profiler_count;
    const char *const *arguments; /* the script's */
    int argument_count;
} at;

/* The SHA-256 of a regular file, in hex; "" where it can't be read. */
static void file_digest(const char *path, char ret[2 * SHA256_DIGEST_LENGTH + 1])
{
    struct stat st;
    *ret = '\0';
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    if (fd < 0)
        return;
    size_t n = !fstat(fd, &st) && S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
    void *text = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (text == MAP_FAILED)
        return;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(text, n, digest);
    munmap(text, n);
    for (size_t i = 0; i < sizeof digest; i++)
        sprintf(ret + 2 * i, "%02x", digest[i]);
}

static void at_exit(int status, void *unused)
{
    (void)unused;
    vl_host_close(status != 0, VARVE_ENDED_EXITED);
}

static bool choose_hook(lua_State *L)
{
    vl.private_layout = vl_layout_holds();
    vl.hook = vl.private_layout ? vl_hook : vl_public_hook;
    if (vl.private_layout)
        vl_fault_open(L);
    return vl.private_layout || vl_public_open(L);
}

static void take_hooks(const varve_hooks *h)
{
    vl.hooks = h;
    h = h ? h : &no_hooks;
    vl.enter = h->enter;
    vl.enter_at = h->enter_at;
    vl.leave = h->leave;
    vl.leave_at = h->leave_at;
    vl.suspend = h->suspend ? h->suspend : no_wait;
    vl.resume = h->resume ? h->resume : no_wait;
}

static void tell(void *me, const char *line)
{
    (void)me;
    fprintf(stderr, "varve: %s; going on without it\n", line);
}

static void load_profilers(void)
{
    const char *list = getenv("VARVE_PROFILER");
    varve_plugins_load(vl.host, at.profilers, at.profiler_count, tell, NULL);
    if (list)
        varve_plugins_load_list(vl.host, list, tell, NULL);
}

/* The frame that holds everything: LUA_INIT, -l, -e and the script are called from it. */
static void begin_root_frame(const void *ci)
{
    static char name[] = "lua";
    static vl_function function = {.name = name};
    static vl_code code = {.function = &function};
    vl_live_c_function(&function);
    vl_live_map(&function);
    vl.main.frames[0] = (vl_frame){.ci = ci, .code = &code, .function = &function, .site = vl_live_site(NULL, 0)};
    vl.main.depth = vl.main.floor = 1;
    uint64_t ticks = varve_ticks();
    vl.enter_at(vl.main.cookie, function.cookie, 0, ticks);
    vl_select_root_begin(vl.script, at.arguments, at.argument_count);
    VARVE_RAISE(vl.host, call_entered, vl_id(&vl.main), vl_id(&function), NULL, ticks);
}

/* Profilers are there from the first call on; what happens before is nobody's. */
static void begin(lua_State *L, const void *ci)
{
    static char digest[2 * SHA256_DIGEST_LENGTH + 1];
    file_digest(vl.script, digest);
    vl_info_set_domain(vl.script ? vl.script : "lua", *digest ? digest : NULL);
    vl_cnames_open(L);
    vl_unwind_open(L);
    take_hooks(NULL);
    vl.main.L = L;
    vl.current = &vl.main;
    *(vl_shadow **)lua_getextraspace(L) = &vl.main;
    vl.recorded = varve_recorder_attach(vl.host, at.session) == VARVE_OK;
    load_profilers();
    varve_host_started(vl.host);
    take_hooks(varve_host_hooks(vl.host));
    varve_host_thread_add(vl.host, vl_id(&vl.main));
    vl_interpreter = true;
    vl.L = L;
    VARVE_RAISE(vl.host, domain_loaded, vl_id(&vl));
    vl_thread_main_begin();
    begin_root_frame(ci);
    varve_plugins_listen(vl.host);
    lua_sethook(L, NULL, 0, 0);
}

void vl_host_profilers(const char *const *specs, size_t n)
{
    at.profilers = specs;
    at.profiler_count = n;
}

/* Whether somebody will listen: else nothing is begun. */
static bool is_wanted(void)
{
    varve_status status;
    varve_session_status(at.session, &status);
    return status.state == VARVE_ACTIVE || at.profiler_count || getenv("VARVE_PROFILER");
}

static void drop_session(void)
{
    varve_session_close(at.session);
    at.session = NULL;
}

/* Each thread that allocates reserves 64 MiB of addresses for itself. Where these are limited, the recorder's thread
 * allocates where the program does instead. */
static void share_address_space(void)
{
    struct rlimit r;
    if (!getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY)
        mallopt(M_ARENA_MAX, 1);
}

void vl_host_open(lua_State *L, const char *script, const char *const *arguments, int n)
{
    lua_Debug ar;
    if (!vl_interpose_works(L)) {
        const char *status = getenv("VARVE_STATUS");
        if (status && !strcmp(status, "1"))
            fputs("varve: off: this liblua does not let its own calls be seen\n", stderr);
        return;
    }
    share_address_space();
    vl.script = script;
    at.arguments = arguments;
    at.argument_count = n;
    at.session = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options),
                                                     .host_version = "varve-lua 0.1.0"});
    bool ready = is_wanted() && choose_hook(L) && lua_getstack(L, 0, &ar) && vl_shadow_grow(&vl.main) &&
                 !on_exit(at_exit, NULL);
    if (!ready || varve_host_open(&(varve_host_options){.size = sizeof(varve_host_options),
                                                        .version = VARVE_CONTRACT_VERSION,
                                                        .name = "lua",
                                                        .language_version = LUA_VERSION_MAJOR "." LUA_VERSION_MINOR,
                                                        .supported = SUPPORTED,
                                                        .functions = &vl_info},
                                  &vl.host) != VARVE_OK) {
        drop_session();
        return;
    }
    at.process = getpid();
    begin(L, ar.i_ci);
}

void vl_host_close(bool failed, varve_ending status)
{
    if (!at.session || !vl_interpreter || getpid() != at.process)
        return;
    uint64_t ticks = varve_ticks();
    vl_live_lock(); /* another thread may be asking */
    vl.L = NULL;    /* it may have been closed */
    vl_live_unlock();
    vl_live_settle();
    vl_thread_exit_all(ticks, VARVE_ENDED_EXITED);
    vl_shadow_cut(&vl.main, 0, status, ticks);
    vl_thread_main_end(status, ticks);
    varve_host_thread_remove(vl.host); /* its logical thread is over, and nothing more happens on it */
    VARVE_RAISE(vl.host, domain_unloaded, vl_id(&vl), failed ? VARVE_ENDED_ERRORED : VARVE_ENDED_OK);
    varve_plugins_close();
    varve_host_close(vl.host);
    vl.host = (varve_host *)(void *)&nobody;
    take_hooks(NULL);
    vl_interpreter = vl.recorded = false;
    drop_session();
}
