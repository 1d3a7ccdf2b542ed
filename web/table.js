// One run's functions as a table: sorted by any column, filtered, and drawn only where it is in view.

import { Resource } from './api.js';
import { emptyState, noCalls } from './badges.js';
import { h, setAttr, setChildren, setText, viewModule } from './dom.js';
import {
    compareCounts,
    formatCount,
    formatNs,
    formatPlace,
    formatShare,
    functionName,
    plural,
    textOf,
    toNumber,
} from './format.js';
import { isNative } from './palette.js';

const PAGE = 1000;
const MAX_ROWS = 20000;
const ROW = 34;
const SPARE = 12;
const TYPING_MS = 80;
const COLUMNS = [
    { key: 'name', label: 'Function', text: true },
    { key: 'calls', label: 'Calls', format: formatCount },
    { key: 'self_ns', label: 'Self', format: formatNs, bar: true },
    { key: 'inclusive_ns', label: 'Inclusive', format: formatNs },
    { key: 'await_ns', label: 'Await', format: formatNs },
    { key: 'errors', label: 'Errors', format: formatCount },
    { key: 'contexts', label: 'Paths', format: formatCount },
];
const DEFAULT_SORT = '-self_ns';

class TableView {
    constructor(el, params) {
        this.params = params;
        this.rows = null;
        this.pool = [];
        this.resources = [];
        this.answers = [];
        this.abort = new AbortController();
        this.build(el);
        this.observer = new ResizeObserver(() => this.draw());
        this.observer.observe(this.scroller);
        this.load();
    }

    build(el) {
        this.search = h('input', {
            type: 'search',
            placeholder: 'Filter functions',
            'aria-label': 'Filter functions by name or file',
            spellcheck: 'false',
            autocomplete: 'off',
            on: { input: () => this.typed(), keydown: (event) => this.searchKey(event) },
        });
        this.search.value = this.params.query.q || '';
        this.count = h('span.count');
        this.heads = COLUMNS.map((column) =>
            h(
                column.text ? 'th' : 'th.num',
                { scope: 'col', 'data-col': column.key },
                h(
                    'button',
                    { type: 'button', on: { click: () => this.sortBy(column) } },
                    h('span.sort-label', { text: column.label })
                )
            )
        );
        this.above = h('tr.gap', { 'aria-hidden': 'true' }, h('td', { colspan: COLUMNS.length }));
        this.below = h('tr.gap', { 'aria-hidden': 'true' }, h('td', { colspan: COLUMNS.length }));
        this.body = h('tbody', {
            on: { click: (event) => this.click(event), keydown: (event) => this.rowKey(event) },
        });
        this.table = h(
            'table.functions',
            { 'aria-label': 'Functions' },
            h('thead', {}, h('tr', {}, ...this.heads)),
            this.body
        );
        this.scroller = h('div.table-scroll', { on: { scroll: () => this.draw() } }, this.table);
        this.message = h('div.flame-message', { hidden: true });
        el.append(
            h(
                'div.flame-view',
                {},
                h(
                    'div.toolbar.compact',
                    {},
                    this.count,
                    h('span.spacer'),
                    h('label.search', {}, this.search, h('kbd', { text: '/' }))
                ),
                h('div.flame-frame', {}, this.scroller, this.message)
            )
        );
    }

    get sort() {
        const text = this.params.query.sort || DEFAULT_SORT;
        const key = text.replace(/^-/, '');
        return COLUMNS.some((column) => column.key === key)
            ? { key, down: text[0] === '-' }
            : { key: 'self_ns', down: true };
    }

    refresh(generation) {
        if (this.loading) this.wanted = generation;
        else if (this.generation !== generation) this.load();
    }

    // The first page's ETag covers the whole store: where it stands, the others stand too.
    async load() {
        this.loading = true;
        this.wanted = null;
        try {
            if (await this.fetchPages()) this.arrange();
        } catch (error) {
            if (error.name === 'AbortError') return;
            if (!this.rows) this.showError(error);
        }
        this.loading = false;
        if (this.wanted) this.refresh(this.wanted);
    }

    async fetchPages() {
        let cursor = null;
        let changedAny = false;
        for (let page = 0; page * PAGE < MAX_ROWS; page++) {
            if (!this.resources[page] || this.resources[page].cursor !== cursor) {
                this.resources[page] = new Resource('/api/v1/functions', {
                    execution: this.params.id,
                    limit: PAGE,
                    cursor,
                });
                this.resources[page].cursor = cursor;
            }
            const { changed, data } = await this.resources[page].fetch(this.abort.signal);
            if (page === 0 && !changed) return false;
            if (changed) {
                this.answers[page] = data;
                changedAny = true;
            }
            cursor = this.answers[page].next;
            if (!cursor) {
                this.answers.length = page + 1;
                break;
            }
        }
        this.cut = Boolean(cursor);
        this.generation = this.answers[0].snapshot.generation;
        this.rows = this.answers.flatMap((answer) => answer.items);
        return changedAny;
    }

    arrange() {
        if (!this.rows) return;
        const needle = (this.params.query.q || '').trim().toLowerCase();
        const hit = (row) =>
            !needle ||
            functionName(row).toLowerCase().includes(needle) ||
            textOf(row.file).toLowerCase().includes(needle);
        const { key, down } = this.sort;
        const compare = key === 'name' ? compareNames : (a, b) => compareCounts(a[key], b[key]);
        const sign = down ? -1 : 1;
        this.list = this.rows.filter(hit).sort((a, b) => sign * compare(a, b) || compareNames(a, b));
        this.total = this.rows.reduce((sum, row) => sum + (toNumber(row.self_ns) || 0), 0);
        this.largest = this.rows.reduce((most, row) => Math.max(most, toNumber(row.self_ns) || 0), 0);
        for (const th of this.heads) {
            setAttr(th, 'aria-sort', th.dataset.col === key ? (down ? 'descending' : 'ascending') : 'none');
        }
        const shown =
            this.list.length === this.rows.length
                ? plural(this.rows.length, 'function')
                : `${formatCount(this.list.length)} of ${plural(this.rows.length, 'function')}`;
        setText(this.count, this.cut ? `${shown} (the first ${formatCount(MAX_ROWS)}: there are more)` : shown);
        setAttr(this.table, 'aria-rowcount', this.list.length + 1);
        this.showEmpty();
        this.draw();
    }

    showEmpty() {
        this.message.hidden = this.list.length > 0;
        if (this.list.length) return;
        setChildren(this.message, [
            this.rows.length
                ? emptyState('No function matches', h('p', { text: 'The filter looks at names and files.' }))
                : noCalls(this.answers[0].evidence.running > 0),
        ]);
    }

    draw() {
        if (!this.list) return;
        const room = this.scroller.clientHeight;
        const first = Math.max(0, Math.min(this.list.length, Math.floor(this.scroller.scrollTop / ROW)) - SPARE);
        const last = Math.min(this.list.length, first + Math.ceil(room / ROW) + 2 * SPARE);
        const rows = [];
        // A row keeps its element while it is in view, and with it the focus.
        const slots = Math.ceil(room / ROW) + 2 * SPARE + 1;
        for (let i = first; i < last; i++) rows.push(this.fill(i % slots, i));
        this.above.firstChild.style.height = `${first * ROW}px`;
        this.below.firstChild.style.height = `${(this.list.length - last) * ROW}px`;
        setChildren(this.body, [this.above, ...rows, this.below]);
    }

    fill(slot, index) {
        const parts = this.pool[slot] || (this.pool[slot] = makeRow());
        const row = this.list[index];
        parts.row.dataset.index = index;
        setAttr(parts.row, 'aria-rowindex', index + 2);
        setText(parts.name, functionName(row));
        setAttr(parts.name, 'title', functionName(row));
        setText(parts.place, formatPlace(row.file, row.line));
        setAttr(parts.kind, 'data-kind', isNative(row) ? 'native' : 'script');
        setAttr(parts.kind, 'title', textOf(row.kind) || null);
        for (const [column, cell] of parts.cells) setText(cell, column.format(row[column.key]));
        const self = toNumber(row.self_ns) || 0;
        parts.bar.style.width = `${this.largest > 0 ? (self / this.largest) * 100 : 0}%`;
        setText(parts.share, formatShare(self, this.total));
        setAttr(parts.errors, 'data-some', Number(row.errors) > 0 ? 'yes' : null);
        return parts.row;
    }

    sortBy(column) {
        const { key, down } = this.sort;
        const fresh = column.text ? column.key : `-${column.key}`;
        const text = key === column.key ? `${down ? '' : '-'}${key}` : fresh;
        this.params.navigate({ query: { sort: text === DEFAULT_SORT ? null : text } }, true);
    }

    click(event) {
        const row = event.target.closest('tr[data-index]');
        if (row && !String(getSelection())) this.show(this.list[row.dataset.index]);
    }

    rowKey(event) {
        const row = event.target.closest('tr[data-index]');
        const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
        if (!row || !step) return;
        event.preventDefault();
        const next = row[step] && row[step].querySelector('button');
        if (!next) return;
        next.focus({ preventScroll: true });
        row[step].scrollIntoView({ block: 'nearest' });
    }

    show(row) {
        this.params.navigate({ tab: 'flame', query: { q: functionName(row), root: null } });
    }

    update(params) {
        this.params = params;
        if (document.activeElement !== this.search) this.search.value = params.query.q || '';
        this.arrange();
    }

    typed() {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => {
            this.scroller.scrollTop = 0;
            this.params.navigate({ query: { q: this.search.value.trim() } }, true);
        }, TYPING_MS);
    }

    searchKey(event) {
        if (event.key === 'Escape') {
            event.preventDefault();
            this.search.value = '';
            this.search.blur();
            this.params.navigate({ query: { q: null } }, true);
        } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
            const button = this.body.querySelector('button');
            if (button) button.focus();
            event.preventDefault();
        }
    }

    showError(error) {
        this.message.hidden = false;
        setChildren(this.message, [emptyState('The functions cannot be shown', h('p', { text: error.message }))]);
    }

    stop() {
        this.abort.abort();
        this.observer.disconnect();
        clearTimeout(this.typing);
    }
}

export const { mount, update, refresh, unmount } = viewModule(TableView);

function compareNames(a, b) {
    const x = functionName(a);
    const y = functionName(b);
    return x < y ? -1 : x > y ? 1 : 0;
}

function makeRow() {
    const name = h('button.fn-name', { type: 'button', dir: 'auto' });
    const place = h('span.fn-place', { dir: 'auto' });
    const kind = h('span.fn-kind', { 'aria-hidden': 'true' });
    const bar = h('span.bar-fill');
    const share = h('span.share');
    const cells = [];
    const columns = COLUMNS.filter((column) => !column.text).map((column) => {
        const value = h('span');
        cells.push([column, value]);
        return column.bar
            ? h('td.num.self', {}, h('span.bar-track', {}, bar), share, value)
            : h('td.num', { 'data-col': column.key }, value);
    });
    const row = h('tr', {}, h('td.fn', {}, h('div.fn-line', {}, kind, name, place)), ...columns);
    const errors = columns[COLUMNS.findIndex((column) => column.key === 'errors') - 1];
    return { row, name, place, kind, bar, share, cells, errors };
}
