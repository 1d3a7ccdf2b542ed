/*
 * A shield around writes that the runtime does on a thread of the host's: a refused write (RLIMIT_FSIZE, a closed
 * pipe) is an error number there, and no SIGXFSZ or SIGPIPE that would end the program. The runtime's own thread blocks
 * all signals.
 */
#pragma once

#include <signal.h>

typedef struct {
    sigset_t mask, pending; /* of the thread, as they were */
} vv_shield;

/* Both on the same thread, in pairs. Signals that the host itself has pending or blocked stay so. Keeps errno. */
void vv_shield_raise(vv_shield *s);
void vv_shield_lower(const vv_shield *s);
