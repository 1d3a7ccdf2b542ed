/*
 * Function tables that executions share: each is read once, however many executions of its engine are loaded, and kept
 * as long as the budget has room. All calls may come from any thread.
 */
#pragma once

#include "base/budget.h"
#include "reader/store.h"

typedef struct vv_tables vv_tables;
typedef struct vv_shared_table vv_shared_table;

/* Memory of tables comes out of budget, which outlives them. NULL without memory. */
vv_tables *vv_tables_new(vv_budget *budget);
void vv_tables_free(vv_tables *t); /* accepts NULL; after all tables have been released */

/*
 * The table that engine names, which must name one. Errors as vv_engine_table, and LIMIT where the budget has no room.
 */
VV_MUST_CHECK vv_code vv_tables_get(vv_tables *t, vv_source *source, const vv_engine *engine, vv_shared_table **ret,
                                    vv_error *err);
const vv_function_table *vv_shared_table_see(const vv_shared_table *s);
void vv_tables_release(vv_tables *t, vv_shared_table *s); /* accepts NULL */

/* Gives up tables that nobody holds until the budget has n bytes left; true if there was one. */
bool vv_tables_give_back(vv_tables *t, size_t n);
