/* The map_ functions of fast hooks: they are called by the host directly, but are callbacks all the same, in which SYNC
 * functions may be called. */
#pragma once

#include "control/varve-host.h"

/* Puts the library's in the place of the profiler's map_ functions; those that are NULL stay so. */
void vv_mapping_wrap(varve_hooks *hooks);
