#include "config.h"

#include "runtime/sizing.h"

#define KI 1024ULL
#define MI (1024ULL * KI)

static uint64_t clamp(uint64_t v, uint64_t lo, uint64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static uint64_t at_least(uint64_t v, uint64_t lo)
{
    return v < lo ? lo : v;
}

uint64_t vv_sizing_total(uint64_t address_space)
{
    return clamp(address_space / 8, VV_MEMORY_MIN, 256 * MI);
}

bool vv_sizing_derive(uint64_t total, vv_sizing *ret)
{
    if (total < VV_MEMORY_MIN)
        return false;
    vv_sizing s = {.control = clamp(total / 16, 2 * MI, 16 * MI), .manual = clamp(total / 16, 2 * MI, 16 * MI)};
    s.general = total - s.control - s.manual;
    s.slots = clamp((s.control - 256 * KI) / VV_SLOT_CHARGE, 1, 4096);
    s.segment_target = at_least(clamp(s.general / 32, 256 * KI, 4 * MI), 64 * KI);
    s.epoch_target = clamp(s.general / 4, 1 * MI, 64 * MI);
    s.queue_slots = at_least(s.segment_target / VV_ITEM_CHARGE, 1);
    s.single_value = at_least(clamp(s.general / 16, 0, 16 * MI), 512);
    *ret = s;
    return true;
}
