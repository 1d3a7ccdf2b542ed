#include "config.h"
#include "hosts/lua/select.h"

#include <string.h>

#include "hosts/lua/callid.h"
#include "hosts/lua/value.h"

static varve_policy policy_of(const vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    varve_policy policy = {0};
    const vl_call_passed *p = NULL;
    if (s->depth > 1 && s->frames[s->depth - 2].code->passes_id)
        p = vl_call_passed_to(L, ar);
    if (p)
        policy = p->policy;
    policy.llm = s->frames[s->depth - 1].code->llm;
    return policy;
}

void vl_select_begin(vl_shadow *s, lua_State *L, lua_Debug *ar, uint64_t ticks)
{
    vl_frame *top = &s->frames[s->depth - 1];
    if (!vl.recorded) {
        vl.enter_at(s->cookie, top->function->cookie, top->site->cookie, ticks);
        return;
    }
    varve_policy policy = policy_of(s, L, ar);
    varve_call_begin_as(s->cookie, (uint32_t)top->function->cookie, (uint32_t)top->site->cookie, ticks, &policy);
    unsigned roles = varve_call_roles(s->cookie);
    top->output = roles & VARVE_OUTPUT;
    varve_capture *c = roles & VARVE_INPUT ? varve_value_begin(s->cookie, VARVE_INPUT) : NULL;
    if (c) {
        vl_value_put_arguments(c, L, ar);
        varve_capture_end(c);
    }
}

void vl_select_output(vl_shadow *s, lua_State *L, lua_Debug *ar)
{
    s->frames[s->depth - 1].output = false;
    varve_capture *c = varve_value_begin(s->cookie, VARVE_OUTPUT);
    if (!c)
        return;
    if (ar)
        vl_value_put_results(c, L, ar);
    else
        varve_put_omitted(c, VARVE_OMITTED_UNSUPPORTED, "results of a tail call");
    varve_capture_end(c);
}

void vl_select_root_begin(const char *script, const char *const *arguments, int n)
{
    varve_capture *c = vl.recorded ? varve_value_begin(vl.main.cookie, VARVE_INPUT) : NULL;
    if (!c)
        return;
    varve_map_begin(c);
    varve_map_key(c, "script", strlen("script"));
    if (script)
        vl_value_put_string(c, script, strlen(script));
    else
        varve_put_null(c);
    varve_map_key(c, "args", strlen("args"));
    varve_list_begin(c);
    for (int i = 0; i < n; i++)
        vl_value_put_string(c, arguments[i], strlen(arguments[i]));
    varve_list_end(c);
    varve_map_end(c);
    varve_capture_end(c);
}

void vl_select_root_output(lua_State *L, int first, int n)
{
    varve_capture *c = vl.recorded && vl.L ? varve_value_begin(vl.main.cookie, VARVE_OUTPUT) : NULL;
    if (!c)
        return;
    vl_value_put_slots(c, L, first, n);
    varve_capture_end(c);
}

void vl_select_set_id(lua_State *L, const lua_Debug *ar, const uint8_t id[16])
{
    vl_shadow *s = vl.recorded && vl.L ? vl_shadow_of(L) : NULL;
    uint32_t n = s && s->L == L ? vl_shadow_find(s, ar->i_ci) : 0;
    if (n)
        varve_call_set_runtime_id(s->cookie, s->depth - n, id);
}
