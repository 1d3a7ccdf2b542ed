/*
 * What the host answers to profilers (varve_host_functions): the rows of the table in docs/lua-host.md.
 */
#pragma once

#include <varve-host.h>

extern const varve_host_functions vl_info;

/* The universe's name and revision (NULL: none), for good. Before the first question. */
void vl_info_set_domain(const char *name, const char *revision);
