// All runs of the store, newest first.

import { poll, Resource } from './api.js';
import { emptyState, showStatus, showVerdict, statusPill, verdictBadge } from './badges.js';
import { h, setAttr, setChildren, setText, viewModule } from './dom.js';
import { formatAgo, formatCount, formatTime, plural } from './format.js';
import { durationOf, readExecution } from './model.js';

const PAGE = 200;
const LIVE_MS = 1000;
const IDLE_MS = 3000;
const TICK_MS = 1000;
const IDLE_TICKS = 10;
const TYPING_MS = 120;
const COLUMNS = [
    ['status', 'Status'],
    ['run', 'Run'],
    ['started', 'Started'],
    ['duration', 'Duration'],
    ['calls', 'Calls'],
    ['errors', 'Errors'],
    ['evidence', 'Evidence'],
    ['id', 'Id'],
];
const NUMERIC = new Set(['duration', 'calls', 'errors']);
const STATUSES = ['running', 'succeeded', 'failed', 'cancelled', 'panicked', 'abandoned'];

class ListView {
    constructor(el, params) {
        this.params = params;
        this.rows = new Map();
        this.items = null;
        this.pages = 1;
        this.build(el);
        document.title = 'Varve';
        this.restart();
        this.ticks = 0;
        this.clock = setInterval(() => this.tick(), TICK_MS);
    }

    build(el) {
        this.search = h('input', {
            type: 'search',
            placeholder: 'Search runs',
            'aria-label': 'Search runs by name, label or id',
            spellcheck: 'false',
            autocomplete: 'off',
            on: { input: () => this.typed(), keydown: (event) => this.searchKey(event) },
        });
        this.search.value = this.params.query.q || '';
        this.status = h(
            'select',
            { 'aria-label': 'Status', on: { change: () => this.filter() } },
            h('option', { value: '' }, 'Any status'),
            ...STATUSES.map((name) => h('option', { value: name }, name[0].toUpperCase() + name.slice(1)))
        );
        this.status.value = this.params.query.status || '';
        this.count = h('span.count');
        this.body = h('tbody', {
            on: { click: (event) => this.open(event), keydown: (event) => this.rowKey(event) },
        });
        this.table = h(
            'table.runs',
            { hidden: true },
            h(
                'thead',
                {},
                h(
                    'tr',
                    {},
                    ...COLUMNS.map(([key, label]) =>
                        h(NUMERIC.has(key) ? 'th.num' : 'th', { scope: 'col', 'data-col': key, text: label })
                    )
                )
            ),
            this.body
        );
        this.message = h('div', { hidden: true });
        this.more = h(
            'button.button',
            { type: 'button', hidden: true, on: { click: () => this.loadMore() } },
            'Show older runs'
        );
        el.append(
            h(
                'div.page',
                {},
                h(
                    'div.toolbar',
                    {},
                    h('h1', { text: 'Runs' }),
                    this.count,
                    h('span.spacer'),
                    this.status,
                    h('label.search', {}, this.search, h('kbd', { text: '/' }))
                ),
                h('div.card.list', {}, this.table),
                this.message,
                this.more
            )
        );
    }

    update(params) {
        const before = this.params.query;
        this.params = params;
        if (document.activeElement !== this.search) this.search.value = params.query.q || '';
        this.status.value = params.query.status || '';
        if (before.q !== params.query.q || before.status !== params.query.status) this.restart();
    }

    typed() {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.filter(), TYPING_MS);
    }

    filter() {
        this.params.navigate({ query: { q: this.search.value.trim(), status: this.status.value } }, true);
    }

    searchKey(event) {
        if (event.key === 'Escape') {
            event.preventDefault();
            this.search.value = '';
            this.search.blur();
            this.filter();
        } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
            const link = this.body.querySelector('a');
            if (link) link.focus();
            event.preventDefault();
        }
    }

    rowKey(event) {
        const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
        const row = step && event.target.closest('tr');
        if (!row) return;
        event.preventDefault();
        if (row[step]) row[step].querySelector('a').focus();
        else if (event.key === 'ArrowUp') this.search.focus();
    }

    open(event) {
        const row = event.target.closest('tr');
        if (!row || event.target.closest('a, button') || String(getSelection())) return;
        row.querySelector('a').click();
    }

    // How long ago, and how long so far, change by themselves.
    tick() {
        this.ticks++;
        if (this.items && !document.hidden && (this.live || this.ticks % IDLE_TICKS === 0)) this.render();
    }

    restart() {
        if (this.poller) this.poller.stop();
        this.pages = 1;
        this.resources = [];
        this.answers = [];
        this.poller = poll(
            (signal) => this.loadOrWait(signal),
            () => (this.live ? LIVE_MS : IDLE_MS),
            (error) => this.report(error)
        );
    }

    // A server may wait for its store to appear: then there is no list to ask for.
    async lookForStore(signal) {
        this.meta = this.meta || new Resource('/api/v1/meta');
        const { changed, data } = await this.meta.fetch(signal);
        if (changed) {
            this.present = data.store.present;
            this.storeName = data.store.name;
        }
    }

    loadMore() {
        this.pages++;
        this.poller.now();
    }

    async loadOrWait(signal) {
        if (!this.present) await this.lookForStore(signal);
        try {
            if (this.present) await this.load(signal);
            else this.showNoStore();
        } catch (error) {
            if (error.status !== 404) throw error;
            this.present = false;
            this.meta = null;
            this.showNoStore();
        }
    }

    // The first page's ETag covers the whole store: where it stands, the others stand too.
    async load(signal) {
        const { q, status } = this.params.query;
        let cursor = null;
        for (let page = 0; page < this.pages; page++) {
            const key = { limit: PAGE, q, status, cursor };
            let resource = this.resources[page];
            if (!resource || resource.cursor !== cursor) {
                resource = new Resource('/api/v1/executions', key);
                resource.cursor = cursor;
                this.resources[page] = resource;
            }
            const { changed, data } = await resource.fetch(signal);
            if (changed) this.answers[page] = data;
            cursor = this.answers[page].next;
            if (!cursor) break;
        }
        this.answers.length = Math.min(this.answers.length, this.pages);
        this.items = this.answers.flatMap((answer) => answer.items).map(readExecution);
        this.next = cursor;
        this.live = this.items.some((item) => item.status === 'running');
        this.render();
    }

    report(error) {
        if (!error) {
            const running = (this.items || []).filter((item) => item.status === 'running').length;
            this.params.pulse(running ? 'live' : 'idle', running ? `${running} running` : '');
            return;
        }
        this.params.pulse('lost', error.status ? 'Error' : 'Not connected');
        if (this.items) return;
        const { problem } = error;
        this.show(
            emptyState(
                (problem && problem.title) || 'The runs cannot be shown',
                h('p', { text: error.message }),
                problem && problem.remedy ? h('p', { text: problem.remedy }) : null
            )
        );
    }

    show(message) {
        this.table.hidden = Boolean(message);
        this.table.parentNode.hidden = Boolean(message);
        this.message.hidden = !message;
        if (message) this.message.replaceChildren(message);
        this.shown = null;
    }

    render() {
        const now = new Date();
        const rows = this.items.map((item) => this.row(item, now));
        setChildren(this.body, rows);
        const kept = new Set(this.items.map((item) => item.id));
        for (const id of this.rows.keys()) {
            if (!kept.has(id)) this.rows.delete(id);
        }
        this.more.hidden = !this.next;
        setText(
            this.count,
            this.items.length ? plural(this.items.length, 'run') + (this.next ? ' shown' : '') : ''
        );
        if (this.items.length) this.show(null);
        else this.showEmpty();
    }

    showEmpty() {
        const filtered = this.params.query.q || this.params.query.status;
        this.showKind(filtered ? 'filtered' : 'runs');
    }

    showNoStore() {
        this.items = null;
        this.live = false;
        this.resources = [];
        setText(this.count, '');
        this.more.hidden = true;
        this.showKind('store');
    }

    showKind(kind) {
        if (this.shown === kind) return;
        this.show(EMPTY[kind]({ clear: () => this.clear(), store: this.storeName }));
        this.shown = kind;
    }

    clear() {
        this.search.value = '';
        this.status.value = '';
        this.filter();
        this.search.focus();
    }

    row(item, now) {
        let parts = this.rows.get(item.id);
        if (!parts) {
            parts = makeRow(item);
            this.rows.set(item.id, parts);
        }
        showStatus(parts.status, item.status);
        setText(parts.name, item.name);
        setText(parts.entry, item.entry);
        setText(parts.label, item.label);
        setText(parts.time, formatTime(item.started, now));
        setText(parts.ago, formatAgo(item.started, now));
        const { text, soFar } = durationOf(item, now);
        setText(parts.duration, text);
        setAttr(parts.duration, 'data-so-far', soFar ? 'yes' : null);
        setAttr(parts.duration, 'title', soFar ? 'so far' : null);
        setText(parts.calls, formatCount(item.calls));
        setText(
            parts.errors,
            Number(item.errors) > 0 ? formatCount(item.errors) : item.errors === null ? '\u2013' : '0'
        );
        setAttr(parts.errors, 'data-some', Number(item.errors) > 0 ? 'yes' : null);
        showVerdict(parts.verdict, item.verdict);
        return parts.row;
    }

    stop() {
        this.poller.stop();
        clearInterval(this.clock);
        clearTimeout(this.typing);
    }
}

export const { mount, update, unmount } = viewModule(ListView);

function howToRecord() {
    return h('pre', {}, h('code', { text: 'varve-lua script.lua' }));
}

const EMPTY = {
    store: ({ store }) =>
        emptyState(
            'No store here yet',
            h('p', {
                text: `The server waits for ${store}. The first run that is recorded there creates it:`,
            }),
            howToRecord(),
            h('p.muted', { text: 'This page shows the run as soon as it starts.' })
        ),
    runs: () =>
        emptyState(
            'No runs yet',
            h('p', { text: 'The store is there, and empty. Record a run:' }),
            howToRecord(),
            h('p.muted', { text: 'This page shows the run as soon as it starts.' })
        ),
    filtered: ({ clear }) =>
        emptyState(
            'No run matches',
            h('p', { text: 'There may be others: the search and the status hide them.' }),
            h('p', {}, h('button.button', { type: 'button', on: { click: clear } }, 'Show all runs'))
        ),
};

function makeRow(item) {
    const parts = {
        status: statusPill(),
        name: h('a.run-name', { href: `#/x/${encodeURIComponent(item.id)}/flame`, dir: 'auto' }),
        entry: h('span.run-entry', { dir: 'auto' }),
        label: h('span.run-label', { dir: 'auto' }),
        time: h('span'),
        ago: h('span.muted.ago'),
        duration: h('td.num'),
        calls: h('td.num'),
        errors: h('td.num.errors'),
        verdict: verdictBadge(),
    };
    parts.row = h(
        'tr',
        { 'data-id': item.id },
        h('td', {}, parts.status),
        h('td.run', {}, h('span.run-line', {}, parts.name, parts.entry), parts.label),
        h('td.when', {}, parts.time, parts.ago),
        parts.duration,
        parts.calls,
        parts.errors,
        h('td', {}, parts.verdict),
        h('td.id', {}, h('code', { text: item.shortId }))
    );
    return parts;
}
