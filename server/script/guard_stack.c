#include "script/guard_stack.h"

#include <link.h>
#include <string.h>
#include "script/guard_maps.h"

#ifdef __x86_64__

enum {
    MAX_FRAMES = 1 << 16,
    SPILL_WORDS = 512, // more than machine code ever lowers the stack pointer by, in words
    ENC_PCREL_S4 = 0x1b,
    ENC_U4 = 0x03,
    ENC_DATAREL_S4 = 0x3b,
    REG_BP = 6,
    REG_SP = 7,
};

struct frame_table {
    const uint8_t *header; // .eh_frame_hdr; its offsets are relative to it
    const int32_t *rows;   // pairs: first instruction, frame description; sorted
    uint32_t count;
};

// Where the frame's base (CFA) and the saved frame pointer are, at one instruction.
struct rule {
    unsigned reg;
    int64_t offset;
    int64_t bp_offset; // from the CFA; 0: not saved
};

static struct frame_table table;

// ---- the unwind tables -------------------------------------------------------------------------

static int find_table(struct dl_phdr_info *info, size_t size, void *to)
{
    const uint8_t **header = to;
    bool is_ours = false;
    const uint8_t *found = NULL;
    (void)size;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        uintptr_t text = (uintptr_t)__start_luajit_text;
        if (p->p_type == PT_LOAD && text >= at && text < at + p->p_memsz) is_ours = true;
        if (p->p_type == PT_GNU_EH_FRAME) found = (const uint8_t *)at;
    }
    if (is_ours) *header = found;
    return is_ours;
}

bool guard_stack_learn(void)
{
    const uint8_t *header = NULL;

    if (!__start_luajit_text) return false;
    dl_iterate_phdr(find_table, &header);
    if (!header || header[0] != 1 || header[1] != ENC_PCREL_S4 || header[2] != ENC_U4 ||
        header[3] != ENC_DATAREL_S4)
        return false;
    memcpy(&table.count, header + 8, sizeof table.count);
    table.rows = (const int32_t *)(const void *)(header + 12);
    table.header = header;
    return table.count > 0;
}

static uint64_t read_uleb(const uint8_t **at)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *(*at)++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

static uint32_t read_u4(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

// The frame description that covers pc, NULL when none does.
static const uint8_t *find_description(uintptr_t pc, uintptr_t *first)
{
    int64_t offset = (int64_t)(pc - (uintptr_t)table.header);
    uint32_t low = 0, high = table.count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table.rows[middle * 2] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return NULL;
    const uint8_t *description = table.header + table.rows[(low - 1) * 2 + 1];
    *first = (uintptr_t)table.header + (uintptr_t)(intptr_t)table.rows[(low - 1) * 2];
    return pc - *first < read_u4(description + 12) ? description : NULL;
}

struct program {
    struct rule now, initial, saved[8];
    unsigned depth;
    uintptr_t at; // the instruction that the rules hold from
};

// One instruction of a description. False when it is none that LuaJIT's tables are known to use.
static bool step_program(struct program *p, const uint8_t **ops)
{
    uint8_t op = *(*ops)++;
    unsigned low = op & 0x3f;

    switch (op & 0xc0) {
    case 0x40: p->at += low; return true; // advance_loc
    case 0x80: {                          // offset
        int64_t offset = -8 * (int64_t)read_uleb(ops);
        if (low == REG_BP) p->now.bp_offset = offset;
        return true;
    }
    case 0xc0: // restore
        if (low == REG_BP) p->now.bp_offset = p->initial.bp_offset;
        return true;
    default: break;
    }
    switch (op) {
    case 0x00: return true;                     // nop
    case 0x02: p->at += *(*ops)++; return true; // advance_loc1
    case 0x03:
        p->at += (*ops)[0] | (*ops)[1] << 8;
        *ops += 2;
        return true; // advance_loc2
    case 0x04:
        p->at += read_u4(*ops);
        *ops += 4;
        return true; // advance_loc4
    case 0x0a:       // remember_state
        if (p->depth == 8) return false;
        p->saved[p->depth++] = p->now;
        return true;
    case 0x0b: // restore_state
        if (p->depth == 0) return false;
        p->now = p->saved[--p->depth];
        return true;
    case 0x0c: // def_cfa
        p->now.reg = (unsigned)read_uleb(ops);
        p->now.offset = (int64_t)read_uleb(ops);
        return true;
    case 0x0d: p->now.reg = (unsigned)read_uleb(ops); return true;   // def_cfa_register
    case 0x0e: p->now.offset = (int64_t)read_uleb(ops); return true; // def_cfa_offset
    default: return false;
    }
}

static bool run_program(struct program *p, const uint8_t *ops, const uint8_t *end, uintptr_t pc)
{
    while (ops < end) {
        uintptr_t before = p->at;
        struct rule rule = p->now;
        if (!step_program(p, &ops)) return false;
        if (p->at != before && p->at > pc) {
            p->now = rule;
            return true;
        }
    }
    return true;
}

// Where the frame that pc stands in begins.
static bool find_rule(uintptr_t pc, struct rule *rule)
{
    struct program p = {0};
    uintptr_t first;
    const uint8_t *fde = find_description(pc, &first);

    if (!fde) return false;
    const uint8_t *cie = fde + 4 - read_u4(fde + 4);
    const uint8_t *ops = cie + 9;
    if (cie[8] != 1 || ops[0] != 'z') return false;
    while (*ops++) continue;
    if (read_uleb(&ops) != 1 || *ops++ != 0x78 || *ops++ != 16) return false; // 1, -8, rip
    uint64_t skip = read_uleb(&ops);
    ops += skip;
    if (!run_program(&p, ops, cie + 4 + read_u4(cie), UINTPTR_MAX)) return false;

    p.initial = p.now;
    p.at = first;
    ops = fde + 16;
    skip = read_uleb(&ops);
    ops += skip;
    if (!run_program(&p, ops, fde + 4 + read_u4(fde), pc)) return false;
    *rule = p.now;
    return rule->reg == REG_SP || rule->reg == REG_BP;
}

// ---- the walk ----------------------------------------------------------------------------------

// Other frames' memory, which a sanitizer may have marked.
__attribute__((no_sanitize("address", "thread"), noinline)) static uintptr_t word_at(uintptr_t at)
{
    return *(const volatile uintptr_t *)at;
}

static bool is_luajit(uintptr_t pc)
{
    return pc >= (uintptr_t)__start_luajit_text && pc < (uintptr_t)__stop_luajit_text;
}

// Whether a call instruction stands right before `pc`: call rel32, or call through a register or
// memory (ff /2), which is two to seven bytes long.
static bool follows_call(const struct guard_range *in, uintptr_t pc)
{
    const uint8_t *code = (const uint8_t *)pc;
    if (pc - in->from < 7) return false;
    if (code[-5] == 0xe8) return true;
    for (int n = 2; n <= 7; n++) {
        if (code[-n] == 0xff && (code[-n + 1] & 0x38) == 0x10) return true;
    }
    return false;
}

// Machine code has no tables: it runs in the interpreter's frame, with the stack pointer lowered by
// its spill slots. The first return address above is the one that the interpreter's frame was
// called from. A stale word that looks like one makes the walk fail, never succeed wrongly, for the
// frames above must then fit as well.
static bool leave_machine_code(const struct guard_ranges *all, struct guard_registers *r,
                               uintptr_t floor)
{
    uintptr_t at = r->sp, previous = 0;

    for (unsigned i = 0; i < SPILL_WORDS && at < floor; i++, at += sizeof at) {
        uintptr_t word = word_at(at);
        const struct guard_range *in = guard_maps_find(all, word);
        if (in && in->has_file && follows_call(in, word)) {
            *r = (struct guard_registers){.pc = word, .sp = at + sizeof at, .bp = previous};
            return true;
        }
        previous = word;
    }
    return false;
}

static bool leave_function(struct guard_registers *r, uintptr_t pc, uintptr_t floor)
{
    struct rule rule;
    if (!find_rule(pc, &rule)) return false;
    uintptr_t base = (rule.reg == REG_SP ? r->sp : r->bp) + (uintptr_t)rule.offset;
    if (base <= r->sp || base > floor || base % sizeof base) return false;
    if (rule.bp_offset) r->bp = word_at(base + (uintptr_t)rule.bp_offset);
    r->pc = word_at(base - sizeof base);
    r->sp = base;
    return true;
}

bool guard_stack_is_lua(struct guard_registers r, uintptr_t floor)
{
    struct guard_ranges all;

    if (!table.count || r.sp >= floor || r.sp % sizeof r.sp) return false;
    if (!is_luajit(r.pc) && !guard_maps_read(&all)) return false;
    bool has_ranges = !is_luajit(r.pc);
    for (unsigned n = 0; n < MAX_FRAMES && r.sp < floor; n++) {
        // A return address may be the first byte behind its function.
        uintptr_t pc = n ? r.pc - 1 : r.pc;
        if (is_luajit(pc)) {
            if (!leave_function(&r, pc, floor)) return false;
            continue;
        }
        if (!has_ranges && !guard_maps_read(&all)) return false;
        has_ranges = true;
        const struct guard_range *in = guard_maps_find(&all, pc);
        if (!in || in->has_file || !leave_machine_code(&all, &r, floor)) return false;
    }
    return r.sp == floor;
}

#else

bool guard_stack_learn(void)
{
    return false;
}

bool guard_stack_is_lua(struct guard_registers r, uintptr_t floor)
{
    (void)r, (void)floor;
    return false;
}

#endif
