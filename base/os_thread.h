/*
 * The library's own threads, beside the host's. Each has all signals blocked, and a stack of a stated size in place of
 * the system's 8 MiB, which a host with a limited address space would miss.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "base/attr.h"

enum {
    VV_STACK_OURS = 256 << 10,   /* where nothing but our code runs: at most 70 KiB are used (docs/runtime.md) */
    VV_STACK_PLUGINS = 1 << 20,  /* where profilers are loaded and called */
};

/* 0, or pthread_create's error. stack is what the thread may use: its guard and thread-local storage come on top. */
VV_MUST_CHECK int vv_os_thread_start(pthread_t *ret, size_t stack, void *(*run)(void *), void *arg);
