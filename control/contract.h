/*
 * The tables of varve-profiler.h as data, what a thread is in the middle of, and the checks of debug builds.
 *
 * The release build keeps what the rules of info functions need: whether the thread is registered, inside a callback,
 * inside one that allows a safepoint, in a no-suspend region. With VV_CONTRACTS (configure --enable-debug, and always
 * in the copy that the tests use) each callback and info function is a frame on a stack of contracts: what it needs
 * must be a part of what the frame below allows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "control/varve-host.h"

#ifndef VV_CONTRACTS
#define VV_CONTRACTS 0
#endif

/* Values of a contract's items. */
typedef enum {
    VV_IS_NOTHROW,
    VV_IS_THROWS,
    VV_IS_SAFEPOINT,
    VV_IS_NO_SAFEPOINT,
    VV_IS_SAFEPOINT_IF_TRIGGERS,
    VV_IS_PREEMPTIVE,
    VV_IS_COOPERATIVE,
    VV_IS_ANY_MODE,
    VV_IS_PREEMPTIVE_IF_TRIGGERS,
    VV_IS_LOCK,
    VV_IS_NO_LOCK,
    VV_IS_NO_HOST_LOCKS,
    VV_IS_HOST_LOCKS,
    VV_IS_ANY_THREAD,
    VV_IS_THREAD,
    VV_IS_ALLOC,
    VV_IS_NO_ALLOC,
} vv_item_value;

/* In the order of the rows: throws, safepoint, mode, locks, host's locks or thread, allocation. */
enum { VV_ITEMS = 6 };
typedef enum { VV_ITEM_THROW, VV_ITEM_SAFEPOINT, VV_ITEM_MODE, VV_ITEM_LOCK, VV_ITEM_FIFTH, VV_ITEM_ALLOC } vv_item_at;

typedef struct {
    uint8_t value; /* vv_item_value */
    const char *word, *reason; /* reason NULL: it is the preferred value */
} vv_item;

typedef enum { VV_SYNC, VV_ASYNC, VV_INIT_ONLY } vv_info_class;

typedef struct {
    const char *name;
    uint64_t bit;   /* 0: the library's own */
    uint32_t flags; /* VARVE_AFTER_ATTACH, ... */
    vv_item items[VV_ITEMS];
    const char *params, *text; /* params as written, with its parentheses */
} vv_event_row;

typedef struct {
    const char *name;
    vv_info_class cls;
    uint32_t flags;
    const char *triggers; /* the expression */
    vv_item items[VV_ITEMS];
    const char *params, *text;
} vv_info_row;

typedef enum {
#define EVENT(name, ...) VV_EVENT_##name,
    VARVE_EVENTS(EVENT)
#undef EVENT
    VV_EVENTS,
} vv_event;

typedef enum {
#define INFO(name, ...) VV_INFO_##name,
    VARVE_INFO(INFO)
#undef INFO
    VV_INFOS,
} vv_info;

extern const vv_event_row vv_event_rows[VV_EVENTS];
extern const vv_info_row vv_info_rows[VV_INFOS];

/* Bits that set_event_mask knows, and those that stay as initialize left them and are for a main profiler that was
 * there from the start. */
uint64_t vv_known_bits(void);
enum { VV_IMMUTABLE_BITS = VARVE_CALL_ARGUMENTS | VARVE_CALL_RESULTS };

/* What a thread is in the middle of. */
enum { VV_IN_CALLBACK = 1, VV_IN_TRIGGERS = 2 };
typedef struct vv_frame {
    const struct vv_frame *up;
    const char *name;
    uint32_t allows; /* VARVE_ITEM_SAFEPOINT, _MODE (to hold nothing borrowed), _LOCK, _ALLOC */
} vv_frame;
enum { VV_RANKS = 16 };
typedef struct {
    bool registered;
    varve_thread_id id;
    uint32_t flags;
    uint32_t nosuspend, borrow, no_safepoint, no_lock, no_alloc;
    uint32_t locks, ranks[VV_RANKS]; /* the host's that it holds; ranks of the first VV_RANKS */
    uint32_t accepted;               /* violations that are none, VARVE_ITEM_... */
    const vv_frame *top;
} vv_self_state;
extern __thread vv_self_state vv_self __attribute__((tls_model("initial-exec")));

/* Tells the handler, unless the item is accepted on this thread. */
void vv_violation(uint32_t item, const char *what, const char *inside_of);

/* A callback's or info function's frame: checked and pushed, and popped again. Nothing in release builds. */
#if VV_CONTRACTS
void vv_frame_event(vv_frame *f, vv_event e);
void vv_frame_info(vv_frame *f, vv_info i, bool triggers);
void vv_frame_pop(const vv_frame *f);
/* An event of the calling thread (id 0) or of another that must not have been destroyed. */
void vv_thread_check(vv_event e, varve_thread_id id);
/* Somebody is about to hear of threads for the first time, or again. */
void vv_thread_listening(void);
#else
static inline void vv_frame_event(vv_frame *f VV_UNUSED, vv_event e VV_UNUSED) {}
static inline void vv_frame_info(vv_frame *f VV_UNUSED, vv_info i VV_UNUSED, bool triggers VV_UNUSED) {}
static inline void vv_frame_pop(const vv_frame *f VV_UNUSED) {}
static inline void vv_thread_check(vv_event e VV_UNUSED, varve_thread_id id VV_UNUSED) {}
static inline void vv_thread_listening(void) {}
#endif
