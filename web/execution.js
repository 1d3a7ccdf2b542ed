// One run: what it was, whether its evidence is whole, and the tabs.

import { poll, Resource } from './api.js';
import { emptyState, showStatus, showVerdict, statusPill, verdictBadge } from './badges.js';
import { copyButton, h, setAttr, setText, viewModule } from './dom.js';
import * as flame from './flame.js';
import { formatAgo, formatCount, formatTime } from './format.js';
import { durationOf, readExecution } from './model.js';
import * as table from './table.js';
import { evidenceLines, verdictWords } from './words.js';

const LIVE_MS = 1000;
const IDLE_MS = 3000;
const TICK_MS = 1000;
const MAX_LINES = 6;
const TABS = [
    ['flame', 'Flame graph', flame],
    ['functions', 'Functions', table],
];

class ExecutionView {
    constructor(el, params) {
        this.params = params;
        this.build(el);
        this.showTab();
        const resource = new Resource(`/api/v1/executions/${encodeURIComponent(params.id)}`);
        this.poller = poll(
            async (signal) => {
                const { changed, data } = await resource.fetch(signal);
                if (changed) this.take(data);
                else this.showHead();
            },
            () => (this.run && this.run.status === 'running' ? LIVE_MS : IDLE_MS),
            (error) => this.report(error)
        );
        // How long it has taken so far changes by itself.
        this.clock = setInterval(() => {
            if (this.run && this.run.status === 'running' && !document.hidden) this.showHead();
        }, TICK_MS);
        this.onKey = (event) => this.key(event);
        document.addEventListener('keydown', this.onKey);
    }

    build(el) {
        this.name = h('h1.title', { dir: 'auto', text: '\u2026' });
        this.status = statusPill();
        this.verdict = verdictBadge();
        this.status.hidden = true;
        this.verdict.hidden = true;
        this.facts = h('dl.facts');
        this.values = new Map();
        for (const [key, label] of FACTS) {
            const value = h('dd', { 'data-fact': key });
            this.values.set(key, value);
            this.facts.append(h('div', {}, h('dt', { text: label }), value));
        }
        this.banner = h('div.banner', { role: 'note', hidden: true });
        this.tabs = h('div.tabs', { role: 'tablist', 'aria-label': 'Views of the run' });
        this.buttons = TABS.map(([key, label]) =>
            h(
                'button',
                {
                    type: 'button',
                    role: 'tab',
                    id: `tab-${key}`,
                    'data-tab': key,
                    'aria-controls': 'panel',
                    on: { click: () => this.params.navigate({ tab: key }), keydown: (event) => this.tabKey(event) },
                },
                label
            )
        );
        this.tabs.append(...this.buttons);
        this.panel = h('section.panel', { id: 'panel', role: 'tabpanel' });
        this.view = h(
            'div.run-view',
            {},
            h(
                'div.run-head',
                {},
                h(
                    'div.run-title',
                    {},
                    h('a.back', { href: '#/', 'aria-label': 'All runs', title: 'All runs' }, '\u2190'),
                    this.name,
                    this.status,
                    this.verdict
                ),
                this.facts
            ),
            this.banner,
            this.tabs,
            this.panel
        );
        el.append(this.view);
    }

    update(params) {
        const before = this.params.tab;
        this.params = params;
        if (before !== params.tab) this.showTab();
        else this.part.update(params);
    }

    showTab() {
        const [key, , part] = TABS.find(([name]) => name === this.params.tab);
        if (this.part) this.part.unmount();
        this.panel.replaceChildren();
        this.part = part;
        this.buttons.forEach((button) => {
            const on = button.dataset.tab === key;
            setAttr(button, 'aria-selected', String(on));
            setAttr(button, 'tabindex', on ? '0' : '-1');
        });
        setAttr(this.panel, 'aria-labelledby', `tab-${key}`);
        part.mount(this.panel, this.params);
    }

    tabKey(event) {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const index = this.buttons.indexOf(event.currentTarget);
        const next = this.buttons[(index + step + this.buttons.length) % this.buttons.length];
        next.focus();
        next.click();
    }

    key(event) {
        if (
            event.ctrlKey ||
            event.metaKey ||
            event.altKey ||
            /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)
        )
            return;
        const tab = { f: 'flame', t: 'functions' }[event.key];
        if (tab) this.params.navigate({ tab });
    }

    take(data) {
        const row = data.execution;
        const run = readExecution(row);
        // The store's other runs move the generation too: only this run's own facts ask for new numbers.
        const facts = JSON.stringify([row, data.evidence]);
        const moved = this.factsText !== facts;
        this.factsText = facts;
        this.run = run;
        this.evidence = data.evidence;
        this.showHead();
        this.showBanner();
        if (moved) this.part.refresh(data.snapshot.generation);
    }

    showHead() {
        const { run } = this;
        const now = new Date();
        setText(this.name, run.name);
        document.title = `${run.name} \u2013 Varve`;
        this.status.hidden = false;
        showStatus(this.status, run.status);
        showVerdict(this.verdict, run.verdict, evidenceLines(this.evidence));
        const took = durationOf(run, now);
        const facts = {
            entry: run.entry,
            duration: `${took.text}${took.soFar ? ' so far' : ''}`,
            calls: formatCount(run.calls),
            errors: formatCount(run.errors),
            started:
                `${formatTime(run.started, now)} ${run.started ? `(${formatAgo(run.started, now)})` : ''}`.trim(),
            program: run.label || run.name,
        };
        for (const [key, text] of Object.entries(facts)) setText(this.values.get(key), text);
        this.values.get('program').parentNode.hidden = !run.label;
        this.values.get('entry').parentNode.hidden = !run.entry;
        setAttr(this.values.get('errors'), 'data-some', Number(run.errors) > 0 ? 'yes' : null);
        const id = this.values.get('id');
        if (!id.firstChild) id.append(copyButton(run.shortId, 'the id'));
    }

    showBanner() {
        const verdict = this.run.verdict;
        const words = verdictWords(verdict);
        const lines = evidenceLines(this.evidence);
        this.banner.hidden = !words || verdict === 'complete' || verdict === 'running';
        if (this.banner.hidden) return;
        const text = JSON.stringify([verdict, lines]);
        if (this.bannerText === text) return;
        this.bannerText = text;
        setAttr(this.banner, 'data-verdict', verdict);
        this.banner.replaceChildren(h('strong', { text: `${words.label}. ` }), words.help, ...lineList(lines));
    }

    report(error) {
        const running = this.run && this.run.status === 'running';
        if (!error) this.params.pulse(running ? 'live' : 'idle', running ? 'Live' : '');
        else this.params.pulse('lost', error.status === 0 ? 'Not connected' : 'Error');
        if (!error || this.run || error.status === 0) return;
        const { problem } = error;
        this.view.replaceChildren(
            emptyState(
                error.status === 404 ? 'No such run' : problem.title || 'The run cannot be read',
                h('p', { text: error.message }),
                problem.remedy ? h('p', { text: problem.remedy }) : null,
                h('p', {}, h('a', { href: '#/' }, 'All runs'))
            )
        );
    }

    stop() {
        this.poller.stop();
        clearInterval(this.clock);
        document.removeEventListener('keydown', this.onKey);
        this.part.unmount();
        this.params.pulse('idle', '');
    }
}

export const { mount, update, unmount } = viewModule(ExecutionView);

const FACTS = [
    ['duration', 'Duration'],
    ['calls', 'Calls'],
    ['errors', 'Errored calls'],
    ['started', 'Started'],
    ['entry', 'Entry'],
    ['program', 'Program'],
    ['id', 'Id'],
];

function lineList(lines) {
    const shown = lines.slice(0, MAX_LINES);
    if (lines.length > MAX_LINES) shown.push(`and ${lines.length - MAX_LINES} more`);
    return lines.length ? [h('ul', {}, ...shown.map((line) => h('li', { text: line })))] : [];
}
