#include "config.h"

#include "cli/dump_document.h"
#include "cli/store.h"
#include "cli/verbs.h"

static int run(const vv_cli *c)
{
    vv_source *source = NULL;
    vv_store *store = NULL;
    int status = vv_cli_open_store(c, c->arg_count ? c->args[0] : NULL, &source, &store);
    if (status >= 0)
        return status;
    vv_cli_out o;
    vv_cli_out_init(&o);
    vv_error err = {0};
    status = VV_EXIT_OK;
    if (vv_dump_document(&o, store, &err) != VV_OK)
        status = vv_cli_fail_error(&err, vv_source_path(source), "the document names what was left out");
    vv_store_free(store);
    vv_source_close(source);
    return vv_cli_out_done(&o, status);
}

static const char *const examples[] = {
    "varve dump",
    "varve dump run.tar.gz | jq '.streams[].executions[].status'",
    NULL,
};

const vv_cli_verb vv_verb_dump = {
    .name = "dump",
    .args = "[STORE]",
    .purpose = "prints everything a store holds, folded, as one canonical JSON document",
    .details = "For holding two readers of the format against each other: key order does not matter, list order does.\n"
               "64-bit values are JSON integers in full, 128-bit values decimal strings.\n",
    .examples = examples,
    .max_args = 1,
    .run = run,
};
