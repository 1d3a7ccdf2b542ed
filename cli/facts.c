#include "config.h"

#include "cli/facts.h"

#include <inttypes.h>
#include <stdio.h>

const char *vv_cli_life_text(vv_life l)
{
    static const char *const texts[VV_LIVES] = {"", "open", "unfinished", "end missing", "start missing"};
    return texts[l];
}

const char *vv_cli_place(char out[VV_CLI_PLACE], const vv_profile *p, const vv_site *site)
{
    char line[VV_CLI_LINE];
    const vv_source_file *file = site && p->has_table ? vv_function_table_file(&p->table, site->file) : NULL;
    out[0] = 0;
    if (site && site->line)
        snprintf(out, VV_CLI_PLACE, "%.140s:%" PRIu32, file ? vv_cli_line(line, file->path) : "?", site->line);
    return out;
}

void vv_cli_value_line(const char *name, int width, vv_value_view v)
{
    char cid[VV_CID_TEXT];
    if (v.value)
        vv_cid_text(cid, &v.value->cid);
    printf("%-*s %s", width, name, v.word);
    if (v.value)
        printf(", %" PRIu64 " bytes, %s", v.value->bytes, cid);
    printf("\n");
}
