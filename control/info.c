/* The info functions: the rules that come from the table, then what each does. */
#include "config.h"

#include <string.h>

#include "control/block.h"
#include "control/mapping.h"

varve_code vv_info_check(const varve_profiler *self, vv_info i, bool triggers)
{
    const vv_info_row *row = &vv_info_rows[i];
    if (!self)
        return VARVE_E_ARG;
    vv_status status = vv_status_of(self);
    if (status == VV_STATUS_NONE || status == VV_STATUS_PRE_INITIALIZE || vv_gate_is_forked()) {
        vv_violation(VARVE_ITEM_STATE, row->name, "a profiler that is not there");
        return VARVE_E_NOT_INITIALIZED;
    }
    if (status == VV_STATUS_DETACHING)
        return VARVE_E_DETACHING;
    if (self->kind == VARVE_AT_ATTACH && !(row->flags & VARVE_AFTER_ATTACH))
        return VARVE_E_NOT_AFTER_ATTACH;
    if (row->cls == VV_SYNC && vv_self.registered &&
        (!(vv_self.flags & VV_IN_CALLBACK) || (triggers && !(vv_self.flags & VV_IN_TRIGGERS))))
        return VARVE_E_CALL_SEQUENCE;
    if (row->cls == VV_INIT_ONLY && status != VV_STATUS_INIT_STARTUP && status != VV_STATUS_INIT_ATTACH)
        return VARVE_E_INIT_ONLY;
    if (row->cls != VV_SYNC && !(row->flags & VARVE_SIMPLE) && vv_self.nosuspend)
        return VARVE_E_ASYNC_UNSAFE;
    if (row->items[VV_ITEM_FIFTH].value == VV_IS_THREAD && !vv_self.registered)
        return VARVE_E_NO_THREAD;
    return VARVE_OK;
}

static bool is_live(const varve_profiler *self, varve_live_kind kind, uintptr_t id)
{
    const varve_host *host = self->host;
    return !host->check_ids || !host->functions.id_is_live || host->functions.id_is_live(host->me, kind, id);
}

/* Gives a description to one who may know less of it, or more. */
static varve_code give(varve_code code, void *ret, const void *full, size_t full_size)
{
    if (code != VARVE_OK)
        return code;
    size_t size;
    memcpy(&size, ret, sizeof size);
    memset((char *)ret + sizeof size, 0, size - sizeof size);
    size_t n = size < full_size ? size : full_size;
    memcpy((char *)ret + sizeof size, (const char *)full + sizeof size, n - sizeof size);
    return VARVE_OK;
}

#define INFO(name, cls, flags, triggers, contract, params, names, text) static varve_code do_##name params;
VARVE_INFO(INFO)
#undef INFO

static varve_code do_get_event_mask(varve_profiler *self, uint64_t *ret_mask)
{
    if (!ret_mask)
        return VARVE_E_ARG;
    *ret_mask = atomic_load(&self->requested);
    return VARVE_OK;
}

/* Bits that no attached profiler may set. */
static uint64_t not_after_attach(void)
{
    uint64_t bits = VV_IMMUTABLE_BITS;
    for (unsigned e = 0; e < VV_EVENTS; e++)
        if (!(vv_event_rows[e].flags & VARVE_AFTER_ATTACH))
            bits |= vv_event_rows[e].bit;
    return bits;
}

static varve_code do_set_event_mask(varve_profiler *self, uint64_t mask)
{
    uint64_t changed = mask ^ atomic_load(&self->requested);
    if (mask & ~vv_known_bits())
        return VARVE_E_ARG;
    if (mask & ~self->host->supported)
        return VARVE_E_UNSUPPORTED;
    if (self->number != 0 && mask & VV_IMMUTABLE_BITS)
        return VARVE_E_MAIN_ONLY;
    if (self->kind == VARVE_AT_ATTACH && mask & not_after_attach())
        return VARVE_E_NOT_AFTER_ATTACH;
    if (vv_status_of(self) == VV_STATUS_ACTIVE && changed & VV_IMMUTABLE_BITS)
        return VARVE_E_IMMUTABLE;
    atomic_store(&self->requested, mask);
    if (atomic_load(&self->host->state) >= VV_HOST_CLOSING)
        atomic_store(&self->requested, 0);
    vv_mask_update(self->host);
    return VARVE_OK;
}

static varve_code do_request_detach(varve_profiler *self, uint32_t hint_ms)
{
    return vv_detach_request(self, hint_ms);
}

static varve_code do_set_hooks(varve_profiler *self, const varve_hooks *hooks)
{
    varve_host *host = self->host;
    if (!hooks || hooks->size < offsetof(varve_hooks, suspend) || !hooks->enter || !hooks->enter_at || !hooks->leave ||
        !hooks->leave_at)
        return VARVE_E_ARG;
    if (self->number != 0)
        return VARVE_E_MAIN_ONLY;
    host->hooks_memory = (varve_hooks){0};
    size_t n = hooks->size < sizeof *hooks ? hooks->size : sizeof *hooks;
    memcpy(&host->hooks_memory, hooks, n);
    vv_mapping_wrap(&host->hooks_memory);
    self->has_hooks = true;
    atomic_store_explicit(&host->hooks, &host->hooks_memory, memory_order_release);
    return VARVE_OK;
}

static varve_code do_describe_host(varve_profiler *self, varve_host_desc *ret)
{
    if (!ret || ret->size < sizeof ret->size)
        return VARVE_E_ARG;
    const varve_host *host = self->host;
    varve_host_desc full = {sizeof full, host->name, host->language_version, VARVE_CONTRACT_VERSION, host->supported};
    return give(VARVE_OK, ret, &full, sizeof full);
}

static varve_code do_enumerate(varve_profiler *self, varve_live_kind kind, uintptr_t *into, size_t room,
                               size_t *ret_count)
{
    const varve_host *host = self->host;
    if (!ret_count || (room && !into) || kind > VARVE_LIVE_THREADS)
        return VARVE_E_ARG;
    return host->functions.enumerate ? host->functions.enumerate(host->me, kind, into, room, ret_count)
                                     : VARVE_E_UNSUPPORTED;
}

/* A description of one id, by the host's function of that name; more are arguments between the id and the result. */
#define DESCRIBE(self, function, kind, id, type, ret, ...)                                          \
    do {                                                                                            \
        const varve_host *host_ = (self)->host;                                                     \
        if (!(ret) || (ret)->size < sizeof (ret)->size || !is_live((self), (kind), (id)))           \
            return VARVE_E_ARG;                                                                     \
        if (!host_->functions.function)                                                             \
            return VARVE_E_UNSUPPORTED;                                                             \
        type full_ = {.size = sizeof full_};                                                        \
        return give(host_->functions.function(host_->me, (id), ##__VA_ARGS__, &full_), (ret), &full_, sizeof full_); \
    } while (0)

static varve_code do_describe_domain(varve_profiler *self, varve_domain_id domain, varve_domain_desc *ret)
{
    DESCRIBE(self, describe_domain, VARVE_LIVE_DOMAINS, domain, varve_domain_desc, ret);
}

static varve_code do_describe_module(varve_profiler *self, varve_module_id module, varve_module_desc *ret)
{
    DESCRIBE(self, describe_module, VARVE_LIVE_MODULES, module, varve_module_desc, ret);
}

static varve_code do_describe_function(varve_profiler *self, varve_function_id function, uint32_t how,
                                       varve_function_desc *ret)
{
    DESCRIBE(self, describe_function, VARVE_LIVE_FUNCTIONS, function, varve_function_desc, ret, how);
}

static varve_code do_describe_thread(varve_profiler *self, varve_thread_id thread, varve_thread_desc *ret)
{
    DESCRIBE(self, describe_thread, VARVE_LIVE_THREADS, thread, varve_thread_desc, ret);
}

static varve_code do_function_lines(varve_profiler *self, varve_function_id function, uint32_t how, uint32_t *into,
                                    size_t room, size_t *ret_count)
{
    const varve_host *host = self->host;
    if (!ret_count || (room && !into) || !is_live(self, VARVE_LIVE_FUNCTIONS, function))
        return VARVE_E_ARG;
    return host->functions.function_lines
               ? host->functions.function_lines(host->me, function, how, into, room, ret_count)
               : VARVE_E_UNSUPPORTED;
}

static varve_code do_current_thread(varve_profiler *self, varve_thread_id *ret_thread)
{
    const varve_host *host = self->host;
    if (!ret_thread)
        return VARVE_E_ARG;
    if (host->functions.current_thread)
        return host->functions.current_thread(host->me, ret_thread);
    *ret_thread = vv_self.registered ? vv_self.id : 0;
    return VARVE_OK;
}

static varve_code do_current_call(varve_profiler *self, varve_frame *ret)
{
    const varve_host *host = self->host;
    if (!ret)
        return VARVE_E_ARG;
    return host->functions.current_call ? host->functions.current_call(host->me, ret) : VARVE_E_UNSUPPORTED;
}

static varve_code do_stack_snapshot(varve_profiler *self, varve_thread_id thread, varve_frame *into, size_t room,
                                    size_t *ret_count)
{
    const varve_host *host = self->host;
    if (!ret_count || (room && !into) || (thread && !is_live(self, VARVE_LIVE_THREADS, thread)))
        return VARVE_E_ARG;
    return host->functions.stack_snapshot ? host->functions.stack_snapshot(host->me, thread, into, room, ret_count)
                                          : VARVE_E_UNSUPPORTED;
}

static varve_code do_call_values(varve_profiler *self, varve_values_kind which, varve_value *into, size_t room,
                                 size_t *ret_count)
{
    const varve_host *host = self->host;
    if (!ret_count || (room && !into) || which > VARVE_VALUES_RESULTS)
        return VARVE_E_ARG;
    if (!host->functions.call_values)
        return VARVE_E_UNSUPPORTED;
    uint64_t bit = which == VARVE_VALUES_ARGUMENTS ? VARVE_CALL_ARGUMENTS : VARVE_CALL_RESULTS;
    if (!(atomic_load(&self->requested) & bit))
        return VARVE_E_UNAVAILABLE;
    return host->functions.call_values(host->me, which, into, room, ret_count);
}

static varve_code do_force_collection(varve_profiler *self)
{
    const varve_host *host = self->host;
    return host->functions.force_collection ? host->functions.force_collection(host->me) : VARVE_E_UNSUPPORTED;
}

#define INFO(name, cls, flags, triggers, contract, params, names, text)      \
    static varve_code info_##name params                                     \
    {                                                                        \
        bool does_trigger = (triggers);                                      \
        varve_code code = vv_info_check(self, VV_INFO_##name, does_trigger); \
        if (code != VARVE_OK)                                                \
            return code;                                                     \
        vv_frame frame;                                                      \
        vv_frame_info(&frame, VV_INFO_##name, does_trigger);                 \
        code = do_##name names;                                              \
        vv_frame_pop(&frame);                                                \
        return code;                                                         \
    }
VARVE_INFO(INFO)
#undef INFO

const varve_info vv_info_table = {
    .size = sizeof(varve_info),
    .version = VARVE_CONTRACT_VERSION,
#define INFO(name, ...) .name = info_##name,
    VARVE_INFO(INFO)
#undef INFO
};
