#include "config.h"

#include "reader/changes.h"

void vv_plane_change_note(vv_plane_change *p, uint64_t sequence)
{
    for (unsigned i = 0; i < p->count; i++)
        if (p->sequences[i] == sequence)
            return;
    if (p->count == VV_CHANGED_SEGMENTS)
        p->all = true;
    else
        p->sequences[p->count++] = sequence;
}
