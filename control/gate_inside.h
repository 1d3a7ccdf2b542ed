/*
 * What the tests of the gate set, and nobody else: the variant, and what can fail.
 *
 * The environment's VARVE_GATE=fenced, read by vv_gate_init, chooses the fenced variant for all of a process.
 */
#pragma once

#include "control/gate.h"

/* Stands in for the system call from now on; it returns -1 where it fails. Before vv_gate_init. */
void vv_gate_inside_membarrier(int (*fn)(int command));

/* False: the system has no membarrier for it (or this is ThreadSanitizer's build), and all stays fenced. Nobody may be
 * inside or enter meanwhile. */
bool vv_gate_inside_choose(bool fenced);

/* No more records than this are made; those that are there stay. */
void vv_gate_inside_limit(unsigned records);

/* Records made so far, and how many of them threads have. */
void vv_gate_inside_records(unsigned *ret_made, unsigned *ret_live);
