#include "config.h"
#include "hosts/lua/recorder.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hosts/lua/cnames.h"
#include "hosts/lua/interpose.h"
#include "hosts/lua/layout.h"
#include "hosts/lua/public.h"

vl_state vl;

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

static bool open_root(void)
{
    char digest[2 * SHA256_DIGEST_LENGTH + 1];
    file_digest(vl.script, digest);
    vl.engine = varve_engine_open(vl.session, &(varve_engine_info){.source_label = vl.script ? vl.script : "lua",
                                                                   .revision_label = *digest ? digest : NULL});
    if (vl.engine)
        vl.root = varve_root_begin(vl.engine, NULL, &vl.main.thread);
    return vl.root;
}

static void drop_session(void)
{
    varve_engine_close(vl.engine);
    varve_session_close(vl.session);
    vl.engine = NULL;
    vl.session = NULL;
}

static void at_exit(int status, void *unused)
{
    (void)unused;
    vl_recorder_close(status != 0, VARVE_CALL_EXITED);
}

/* The frame that holds everything: LUA_INIT, -l, -e and the script are called from it. */
static bool begin_root_frame(lua_State *L)
{
    static vl_function function;
    static vl_code code = {.function = &function};
    lua_Debug ar;
    if (!lua_getstack(L, 0, &ar) || !vl_shadow_grow(&vl.main))
        return false;
    function.id = varve_function_add(vl.engine, &(varve_function_info){.fqn = "lua", .definition_key = "lua",
                                                                       .kind = VARVE_FN_NATIVE,
                                                                       .origin = VARVE_FN_INTERNAL});
    vl.main.frames[0] = (vl_frame){.ci = ar.i_ci, .code = &code, .function = &function};
    vl.main.depth = vl.main.floor = 1;
    varve_call_begin(vl.main.thread, function.id, 0);
    return true;
}

/* VARVE_LUA_LAYOUT=public tries the slower way where the faster would do. */
static bool choose_hook(lua_State *L)
{
    const char *layout = getenv("VARVE_LUA_LAYOUT");
    vl.private_layout = (!layout || strcmp(layout, "public") != 0) && vl_layout_check();
    vl.hook = vl.private_layout ? vl_hook : vl_public_hook;
    return vl.private_layout || vl_public_open(L);
}

void vl_recorder_open(lua_State *L, const char *script)
{
    varve_status status;
    if (!vl_interpose_works(L)) {
        const char *tell = getenv("VARVE_STATUS");
        if (tell && !strcmp(tell, "1"))
            fputs("varve: off: this liblua does not let its own calls be seen\n", stderr);
        return;
    }
    vl.script = script;
    vl.session = varve_session_open(&(varve_options){.struct_size = sizeof(varve_options),
                                                     .host_version = "varve-lua 0.1.0"});
    varve_session_status(vl.session, &status);
    if (status.state != VARVE_ACTIVE || !choose_hook(L) || on_exit(at_exit, NULL) || !open_root()) {
        drop_session();
        return;
    }
    vl_cnames_open(L);
    vl.main.L = L;
    vl.main.state = VL_THREAD_RUNNING;
    vl.current = &vl.main;
    *(vl_shadow **)lua_getextraspace(L) = &vl.main;
    if (!begin_root_frame(L)) {
        vl_recorder_close(true, VARVE_CALL_CANCELLED);
        return;
    }
    vl.L = L;
    lua_sethook(L, NULL, 0, 0);
}

void vl_recorder_close(bool failed, varve_call_status status)
{
    if (!vl.session)
        return;
    uint64_t ticks = varve_ticks();
    vl.L = NULL;
    vl_thread_exit_all(ticks, VARVE_CALL_EXITED);
    vl_shadow_cut(&vl.main, 0, status, ticks);
    varve_thread_status end = status == VARVE_CALL_ERRORED ? VARVE_THREAD_ERRORED : VARVE_THREAD_COMPLETED;
    varve_thread_end_at(vl.main.thread, end, ticks);
    varve_root_end(vl.root, failed ? VARVE_FAILED : VARVE_SUCCEEDED);
    drop_session();
}
