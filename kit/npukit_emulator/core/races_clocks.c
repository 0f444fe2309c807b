/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Vector clocks: rows of counts, shared by views of the same knowledge, also by PEs that run side by side. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "races.h"

struct row {
    uint32_t held;
    uint32_t counts[];
};

struct row *clocks_row(uint32_t pes)
{
    struct row *row = needed(calloc(1, sizeof *row + 2 * (size_t)pes * sizeof row->counts[0]));
    row->held = 1;
    return row;
}

static struct row *hold(struct row *row)
{
    __atomic_add_fetch(&row->held, 1, __ATOMIC_RELAXED);
    return row;
}

struct view clocks_hold(struct view view)
{
    hold(view.row);
    return view;
}

void clocks_let_go(struct view *view)
{
    if (view->row != NULL && __atomic_sub_fetch(&view->row->held, 1, __ATOMIC_ACQ_REL) == 0) {
        free(view->row);
    }
    view->row = NULL;
}

static struct row *own_row(struct view *view, uint32_t pes)
{
    if (__atomic_load_n(&view->row->held, __ATOMIC_ACQUIRE) > 1) {
        struct row *row = clocks_row(pes);
        memcpy(row->counts, view->row->counts, 2 * (size_t)pes * sizeof row->counts[0]);
        clocks_let_go(view);
        view->row = row;
    }
    return view->row;
}

/* Whether any count of `one` exceeds the same count of `other`. */
static bool exceeds(const struct row *one, const struct row *other, uint32_t counts)
{
    uint32_t more = 0;
    for (uint32_t i = 0; i < counts; i++) {
        more |= one->counts[i] > other->counts[i];
    }
    return more != 0;
}

static void join(struct view *own, struct row *other, uint32_t pes)
{
    if (own->row == other || !exceeds(other, own->row, 2 * pes)) {
        return;
    }
    if (!exceeds(own->row, other, 2 * pes)) {
        hold(other);
        clocks_let_go(own);
        own->row = other;
        return;
    }
    struct row *row = own_row(own, pes);
    for (uint32_t i = 0; i < 2 * pes; i++) {
        row->counts[i] = row->counts[i] < other->counts[i] ? other->counts[i] : row->counts[i];
    }
}

static void raise(struct view *own, uint32_t place, uint32_t count, uint32_t pes)
{
    if (own->row->counts[place] < count) {
        own_row(own, pes)->counts[place] = count;
    }
}

/* Add another view's knowledge to a view. */
void clocks_learn(struct view *own, const struct view *other, uint32_t pes)
{
    join(own, other->row, pes);
    if (other->pe != own->pe) {
        raise(own, other->pe, other->time, pes);
        raise(own, pes + other->pe, other->engine, pes);
    } else if (own->engine < other->engine) {
        own->engine = other->engine;
    }
    const uint32_t engine = own->row->counts[pes + own->pe];
    own->engine = own->engine < engine ? engine : own->engine;
}

uint32_t clocks_core(const struct view *view, uint32_t pe)
{
    return pe == view->pe ? view->time : view->row->counts[pe];
}

uint32_t clocks_engine(const struct view *view, uint32_t pe, uint32_t pes)
{
    return pe == view->pe ? view->engine : view->row->counts[pes + pe];
}
