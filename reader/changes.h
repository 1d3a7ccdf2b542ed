/*
 * What may have changed in a store since a look at it: everything, or some streams, and of each some segments or all.
 * More may be named than did change, never less.
 */
#pragma once

#include "format/segment.h"

enum { VV_CHANGED_SEGMENTS = 8 };

typedef struct {
    bool all; /* the plane is to be listed anew */
    unsigned count;
    uint64_t sequences[VV_CHANGED_SEGMENTS]; /* each once, in no order, where not all */
} vv_plane_change;

typedef struct {
    vv_euid euid;
    bool probe; /* whether a writer holds the stream may have changed */
    vv_plane_change planes[VV_PLANES];
} vv_stream_change;

typedef struct {
    bool all;
    bool place;   /* the root itself may be another one */
    bool listing; /* streams may have come or gone: they are to be listed anew */
    vv_stream_change *streams; /* in no order, each once, where not all */
    size_t count;
} vv_changes;

/* Notes one segment of a plane. */
void vv_plane_change_note(vv_plane_change *p, uint64_t sequence);
static inline void vv_stream_change_all(vv_stream_change *s)
{
    s->probe = true;
    for (unsigned i = 0; i < VV_PLANES; i++)
        s->planes[i].all = true;
}
