#include "config.h"

#include "runtime/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool vv_clock_hardware;

static const uint64_t second_ns = 1000000000, calibration_ns = 2000000;

static uint64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * second_ns + (uint64_t)ts.tv_nsec;
}

#if defined(__x86_64__)
/* The counter is invariant, and the kernel has found no reason to distrust it. */
static bool counter_trusted(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1U << 8))
        return false;
    char text[256];
    int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    char *save = NULL;
    for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
        if (strcmp(word, "tsc") == 0)
            return true;
    return false;
}
#elif defined(__aarch64__)
static bool counter_trusted(void)
{
    return true;
}
#else
static bool counter_trusted(void)
{
    return false;
}
#endif

static void select_once(void)
{
    vv_clock_hardware = counter_trusted();
}

void vv_clock_select(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, select_once);
}

uint64_t vv_clock_slow_ticks(void)
{
    return read_clock(CLOCK_MONOTONIC_RAW);
}

vv_clock_pair vv_clock_read_pair(void)
{
    if (!vv_clock_hardware) {
        uint64_t ns = read_clock(CLOCK_MONOTONIC_RAW);
        return (vv_clock_pair){ns, ns};
    }
    vv_clock_pair best = {0, 0};
    uint64_t width = UINT64_MAX;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t before = vv_ticks();
        uint64_t ns = read_clock(CLOCK_MONOTONIC_RAW);
        uint64_t after = vv_ticks();
        if (after - before < width) {
            width = after - before;
            best = (vv_clock_pair){before + width / 2, ns};
        }
    }
    return best;
}

uint64_t vv_clock_unix_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

uint64_t vv_clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* ns a tick in fixed point. Clamped to what the multiplication above can hold for a century of ticks. */
static uint64_t scale_of(uint64_t ns, uint64_t ticks)
{
    if (ticks == 0 || ns == 0)
        return 1ULL << VV_CLOCK_SHIFT;
    vv_u128 scale = ((vv_u128)ns << VV_CLOCK_SHIFT) / ticks;
    vv_u128 most = (vv_u128)1 << (VV_CLOCK_SHIFT + 10);
    return scale == 0 ? 1 : scale > most ? (uint64_t)most : (uint64_t)scale;
}

void vv_clock_init(vv_clock *c, vv_clock_pair first, vv_clock_pair second, uint64_t zero_unix_ns)
{
    memset(c, 0, sizeof *c);
    c->zero_ticks = first.ticks;
    c->zero_raw_ns = first.raw_ns;
    c->zero_unix_ns = zero_unix_ns;
    c->next_refine_ns = second_ns;
    c->lines[0] = (vv_clock_line){first.ticks, 0, scale_of(second.raw_ns - first.raw_ns, second.ticks - first.ticks)};
    if (!vv_clock_hardware && first.ticks == first.raw_ns)
        c->lines[0].scale = 1ULL << VV_CLOCK_SHIFT;
    atomic_store_explicit(&c->count, 1, memory_order_release);
}

void vv_clock_start(vv_clock *c)
{
    memset(c, 0, sizeof *c);
    c->zero_unix_ns = vv_clock_unix_ns();
    vv_clock_pair zero = vv_clock_read_pair();
    c->zero_ticks = zero.ticks;
    c->zero_raw_ns = zero.raw_ns;
}

void vv_clock_calibrate(vv_clock *c)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!vv_clock_is_ready(c)) {
        vv_clock_pair zero = {c->zero_ticks, c->zero_raw_ns}, now = vv_clock_read_pair();
        uint64_t spent = now.raw_ns - zero.raw_ns;
        if (vv_clock_hardware && spent < calibration_ns) {
            nanosleep(&(struct timespec){.tv_nsec = (long)(calibration_ns - spent)}, NULL);
            now = vv_clock_read_pair();
        }
        vv_clock_init(c, zero, now, c->zero_unix_ns);
    }
    pthread_mutex_unlock(&lock);
}

uint64_t vv_clock_lead(const vv_clock *c)
{
    uint64_t scale = c->lines[0].scale;
    return (uint64_t)(((vv_u128)5000000 << VV_CLOCK_SHIFT) / scale);
}

/*
 * The line leads from where the old one will be at its start to where the measured clock will be one window later, at
 * most a tenth faster or slower than measured.
 */
void vv_clock_refine(vv_clock *c, vv_clock_pair now, uint64_t lead_ticks)
{
    uint32_t n = atomic_load_explicit(&c->count, memory_order_relaxed);
    uint64_t window_ns = now.raw_ns - c->zero_raw_ns, window_ticks = now.ticks - c->zero_ticks;
    if (n == VV_CLOCK_LINES || window_ns < c->next_refine_ns || now.ticks <= c->zero_ticks)
        return;
    c->next_refine_ns = window_ns > UINT64_MAX / 2 ? UINT64_MAX : window_ns * 2;
    const vv_clock_line *last = &c->lines[n - 1];
    uint64_t base = now.ticks + lead_ticks;
    if (base <= last->base_ticks)
        return;
    uint64_t rate = scale_of(window_ns, window_ticks);
    vv_clock_line line = {base, vv_clock_on_line(last, base), rate};
    uint64_t goal = (uint64_t)((vv_u128)(base - c->zero_ticks + window_ticks) * rate >> VV_CLOCK_SHIFT);
    uint64_t slewed = goal > line.base_ns ? scale_of(goal - line.base_ns, window_ticks) : 1;
    uint64_t slack = rate / 10;
    line.scale = slewed < rate - slack ? rate - slack : slewed > rate + slack ? rate + slack : slewed;
    c->lines[n] = line;
    atomic_store_explicit(&c->count, n + 1, memory_order_release);
}

vv_clock_line vv_clock_line_at(const vv_clock *c, uint64_t ticks, uint64_t *ret_end)
{
    uint32_t n = atomic_load_explicit(&c->count, memory_order_acquire), i = n - 1;
    while (i > 0 && c->lines[i].base_ticks > ticks)
        i--;
    *ret_end = i + 1 < n ? c->lines[i + 1].base_ticks : UINT64_MAX;
    return c->lines[i];
}

uint64_t vv_clock_ns(const vv_clock *c, uint64_t ticks)
{
    uint64_t end;
    vv_clock_line line = vv_clock_line_at(c, ticks, &end);
    return ticks < line.base_ticks ? 0 : vv_clock_on_line(&line, ticks);
}
