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

void vv_cli_cell_function(vv_cli_table *t, const vv_function_ref *f)
{
    enum { NAME_SHOWN = 80 };
    if (f->def)
        vv_cli_cell_text(t, VV_PAINT_BOLD, f->def->fqn, NAME_SHOWN);
    else
        vv_cli_cell(t, VV_PAINT_NONE, "function #%u", f->id);
}

void vv_cli_text_line(const char *name, int width, vv_str text)
{
    char line[VV_CLI_LINE];
    printf("%-*s %s\n", width, name, vv_cli_line(line, text));
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
