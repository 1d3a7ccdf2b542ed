#include "config.h"

#include "runtime/policy.h"

static uint8_t switched(uint8_t flags, varve_switch how, varve_role role)
{
    if (how == VARVE_SWITCH_ON)
        return flags | (uint8_t)role;
    return how == VARVE_SWITCH_OFF ? flags & (uint8_t)~(unsigned)role : flags;
}

uint8_t varve_policy_flags(bool root, const varve_policy *policy)
{
    uint8_t flags = 0;
    if (root)
        flags |= VV_FLAG_SELECTED | VV_FLAG_ROOT | VARVE_ALL_ROLES;
    if (policy && policy->llm)
        flags |= VV_FLAG_SELECTED | VV_FLAG_LLM | VARVE_ALL_ROLES;
    if (!policy || !policy->manual)
        return flags;
    flags |= VV_FLAG_SELECTED | VV_FLAG_MANUAL;
    flags = switched(flags, policy->input, VARVE_INPUT);
    flags = switched(flags, policy->output, VARVE_OUTPUT);
    return switched(flags, policy->error, VARVE_ERROR);
}

varve_root *varve_root_suppress(varve_engine *engine, varve_thread **ret_thread)
{
    (void)engine;
    *ret_thread = NULL;
    return NULL;
}
