/* Plug-ins and requests for them; varve-host.h has what a host calls. */
#pragma once

#include "control/varve-host.h"

/* How long a request to detach waits for the last callback. Tests shorten it before they listen. */
extern unsigned vv_plugin_detach_wait_ms;
