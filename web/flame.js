// The flame graph: one run's calling paths as boxes, callers above callees.

import { Resource } from './api.js';
import { emptyState, noCalls } from './badges.js';
import { h, setAttr, setChildren, setText, viewModule } from './dom.js';
import { flameParams } from './early.js';
import { nameOf, Painter, ROW } from './flame-draw.js';
import {
    decode,
    graft,
    layout,
    matchedShare,
    matchFunctions,
    neighbour,
    nodeAt,
    nodeOf,
    pathTo,
} from './flame-layout.js';
import { formatCount, formatNs, formatShare } from './format.js';
import { details, sentence, tooltip } from './frame-info.js';
import { palette } from './palette.js';

const METRICS = [
    {
        name: 'inclusive_ns',
        label: 'Inclusive time',
        short: 'Inclusive',
        format: formatNs,
        none: 'No time was measured',
    },
    { name: 'self_ns', label: 'Self time', short: 'Self', format: formatNs, none: 'No time was measured' },
    { name: 'await_ns', label: 'Await', short: 'Await', format: formatNs, none: 'Nothing waited in this run' },
    { name: 'calls', label: 'Calls', short: 'Calls', format: formatCount, none: 'No call was counted' },
    { name: 'errors', label: 'Errors', short: 'Errors', format: formatCount, none: 'No call ended with an error' },
];
const ZOOM_MS = 220;
const TYPING_MS = 80;
const KEEP_ROWS_ABOVE = 3;
const still = matchMedia('(prefers-reduced-motion: reduce)');

class FlameView {
    constructor(el, params) {
        this.params = params;
        this.range = { from: 0, to: 1 };
        this.top = 0;
        this.width = 0;
        this.height = 0;
        this.hovered = -1;
        this.selected = -1;
        this.selectedKey = null;
        this.theme = document.documentElement.dataset.theme;
        this.build(el);
        this.listen();
        this.load();
    }

    get metric() {
        return METRICS.find((metric) => metric.name === this.params.query.metric) || METRICS[0];
    }

    build(el) {
        this.metrics = METRICS.map((metric) =>
            h(
                'button',
                {
                    type: 'button',
                    role: 'radio',
                    'data-metric': metric.name,
                    title: metric.label,
                    on: {
                        click: () =>
                            this.params.navigate({ query: { metric: metric === METRICS[0] ? null : metric.name } }),
                    },
                },
                metric.short
            )
        );
        this.search = h('input', {
            type: 'search',
            placeholder: 'Search frames',
            'aria-label': 'Search frames by name or file',
            spellcheck: 'false',
            autocomplete: 'off',
            on: { input: () => this.typed(), keydown: (event) => this.searchKey(event) },
        });
        this.search.value = this.params.query.q || '';
        this.matched = h('output.matched', { 'aria-live': 'polite' });
        this.crumbs = h('nav.crumbs', { 'aria-label': 'Zoom' });
        this.canvas = h('canvas.flame', {
            tabindex: '0',
            role: 'application',
            'aria-roledescription': 'flame graph',
            'aria-label': 'Flame graph. Arrow keys walk the frames, Enter zooms, Escape leaves the zoom.',
        });
        this.spacer = h('div.flame-space');
        this.scroller = h('div.flame-scroll', { tabindex: '-1' }, this.canvas, this.spacer);
        this.message = h('div.flame-message', { hidden: true });
        this.tip = h('div.tip', { hidden: true, role: 'tooltip' });
        this.detail = h('div.detail', {}, h('span.muted', { text: 'Loading\u2026' }));
        this.root = h(
            'div.flame-view',
            {},
            h(
                'div.toolbar.compact',
                {},
                h('div.segments', { role: 'radiogroup', 'aria-label': 'Metric' }, ...this.metrics),
                h('span.spacer'),
                this.matched,
                h('label.search', {}, this.search, h('kbd', { text: '/' }))
            ),
            this.crumbs,
            h('div.flame-frame', {}, this.scroller, this.message),
            this.detail,
            this.tip
        );
        el.append(this.root);
        this.painter = new Painter(this.canvas);
        this.showMetric();
    }

    listen() {
        const { canvas } = this;
        canvas.addEventListener('pointermove', (event) => this.hover(event));
        canvas.addEventListener('pointerleave', () => this.unhover());
        canvas.addEventListener('click', (event) => this.click(event));
        canvas.addEventListener('focus', () => this.invalidate());
        canvas.addEventListener('blur', () => this.invalidate());
        this.scroller.addEventListener('scroll', () => {
            this.top = this.scroller.scrollTop;
            this.unhover();
            this.invalidate();
        });
        this.onKey = (event) => this.key(event);
        this.onTheme = (event) => this.setTheme(event.detail);
        document.addEventListener('keydown', this.onKey);
        document.addEventListener('varve-theme', this.onTheme);
        this.observer = new ResizeObserver(() => this.measure());
        this.observer.observe(this.scroller);
    }

    stop() {
        this.stopped = true;
        this.observer.disconnect();
        document.removeEventListener('keydown', this.onKey);
        document.removeEventListener('varve-theme', this.onTheme);
        if (this.request) this.request.abort();
        if (this.detailRequest) this.detailRequest.abort();
        cancelAnimationFrame(this.frame);
        cancelAnimationFrame(this.animation);
        clearTimeout(this.typing);
    }

    // Data

    refresh(generation) {
        if (this.loading) this.wanted = generation;
        else if (this.generation !== generation) this.load();
    }

    /** Asks for the whole run's graph. */
    async load() {
        const params = flameParams(this.params.id, this.metric.name);
        const key = `${params.metric} ${params.width}`;
        if (this.loading === key) return;
        if (this.request) this.request.abort();
        this.request = new AbortController();
        if (!this.resource || this.resource.key !== key) {
            this.resource = new Resource('/api/v1/flame', params);
            this.resource.key = key;
        }
        this.loading = key;
        this.wanted = null;
        try {
            const { changed, data } = await this.resource.fetch(this.request.signal);
            if (this.stopped) return;
            if (changed) this.take(data);
        } catch (error) {
            if (error.name !== 'AbortError' && !this.base) this.showError(error);
            if (error.name === 'AbortError') return;
        }
        this.loading = null;
        if (this.wanted) this.refresh(this.wanted);
    }

    take(answer) {
        const metric = METRICS.find((known) => known.name === answer.metric.name) || this.metric;
        const first = !this.base;
        const fine = !first && this.shown !== this.base;
        this.generation = answer.snapshot.generation;
        this.running = answer.evidence.running > 0;
        this.base = this.model(decode(answer), metric);
        this.base.folded = answer.truncated || Number(answer.folded && answer.folded.nodes) > 0;
        this.detailKey = null;
        this.canvas.dataset.nodes = this.base.flame.count;
        if (fine && this.refreshDetail()) return;
        this.shown = this.base;
        this.showZoom(false);
        this.select(nodeOf(this.shown.flame, this.selectedKey), false);
        if (first && this.selected < 0) this.showDetail();
        // At once: the browser has a frame to show sooner than by waiting for the next one to begin.
        this.paint();
    }

    // While a finer graph of a part is shown, it stays until its own new numbers are there.
    refreshDetail() {
        const key = this.params.query.root;
        const node = nodeOf(this.base.flame, key);
        const inner = nodeOf(this.shown.flame, key);
        if (node >= 0 && this.base.place.foldedBelow[node]) this.loadDetail(key, node, this.base);
        else if (node < 0 && inner >= 0) this.loadDetail(key, inner, this.shown);
        else return false;
        this.showMatched();
        return true;
    }

    model(flame, metric, total) {
        const place = layout(flame, metric.name);
        const model = {
            flame,
            place,
            metric,
            total: total ?? place.total,
            colours: palette(flame.functions, this.theme),
        };
        this.match(model);
        return model;
    }

    match(model) {
        const query = this.params.query.q || '';
        model.matches = matchFunctions(model.flame.functions, query);
    }

    /** Asks for more of what lies below a frame, where the answer at hand has folded some of it. */
    async loadDetail(key, node, model) {
        if (this.detailKey === key) return;
        if (this.detailRequest) this.detailRequest.abort();
        this.detailRequest = new AbortController();
        this.detailKey = key;
        const whole = flameParams(this.params.id, model.metric.name);
        const resource = new Resource('/api/v1/flame', { ...whole, root: key });
        try {
            const { data } = await resource.fetch(this.detailRequest.signal);
            if (this.stopped || this.params.query.root !== key) return;
            const merged = graft(model.flame, node, decode(data));
            this.shown = this.model(merged, model.metric, this.base.total);
            this.zoomTo(nodeOf(merged, key), this.animating > 0);
            this.select(nodeOf(merged, this.selectedKey), false);
            this.showCrumbs();
        } catch (error) {
            if (error.name !== 'AbortError') this.detailKey = null;
        }
    }

    // State from the address

    update(params) {
        const before = this.params.query;
        this.params = params;
        const { query } = params;
        if (document.activeElement !== this.search) this.search.value = query.q || '';
        if (before.metric !== query.metric) {
            this.showMetric();
            this.load();
        }
        if (before.q !== query.q) this.applySearch();
        if (before.root !== query.root) this.showZoom(true);
    }

    showMetric() {
        for (const button of this.metrics) {
            const on = button.dataset.metric === this.metric.name;
            setAttr(button, 'aria-checked', String(on));
        }
    }

    applySearch() {
        if (!this.shown) return;
        this.match(this.shown);
        if (this.base !== this.shown) this.match(this.base);
        this.showMatched();
        this.invalidate();
    }

    showMatched() {
        const { matches, flame, place } = this.base || {};
        if (!matches) {
            setText(this.matched, '');
            return;
        }
        const { share, nodes } = matchedShare(flame, place, matches);
        const bound = this.base.folded && nodes ? '\u2265 ' : '';
        setText(this.matched, nodes ? `${bound}${formatShare(share, 1)} matched` : 'No match');
        setAttr(
            this.matched,
            'title',
            nodes
                ? `${formatCount(nodes)} frames; a match within a match counts once` +
                      `${bound ? '; frames folded as too narrow may hold more' : ''}`
                : null
        );
    }

    showZoom(animate) {
        if (!this.base) return;
        const key = this.params.query.root || null;
        let node = nodeOf(this.base.flame, key);
        const inner = nodeOf(this.shown.flame, key);
        if (key && node < 0 && inner >= 0) node = inner;
        else if (this.shown !== this.base) this.backToBase();
        const model = this.shown;
        this.zoomTo(node, animate);
        this.showCrumbs();
        this.showMatched();
        if (!key) this.detailKey = null;
        else if (node < 0 ? this.base.folded : model.place.foldedBelow[node]) this.loadDetail(key, node, model);
    }

    // The view stays where it was: the same frame has another place in the coarser graph.
    backToBase() {
        const { flame, place } = this.shown;
        const key = flame.contexts && this.zoom >= 0 ? flame.contexts[this.zoom] : null;
        let node = nodeOf(this.base.flame, key);
        if (node < 0 && this.zoom >= 0) {
            const known = pathTo(flame, this.zoom)
                .map((i) => nodeOf(this.base.flame, flame.contexts[i]))
                .filter((i) => i >= 0);
            node = known.length ? known[known.length - 1] : -1;
        }
        this.shown = this.base;
        this.detailKey = null;
        this.selected = nodeOf(this.base.flame, this.selectedKey);
        this.hovered = -1;
        if (node >= 0 && place.w.length) this.range = rangeOf(this.base.place, node);
    }

    /** Moves the view to a node of the shown graph, -1 for all of it. */
    zoomTo(node, animate) {
        const { place } = this.shown;
        if (node >= 0 && !(place.w[node] > 0)) node = -1;
        this.zoom = node;
        this.resizeSpace();
        const target = node < 0 ? { from: 0, to: 1 } : rangeOf(place, node);
        const top = node < 0 ? 0 : Math.max(0, (place.depth[node] - KEEP_ROWS_ABOVE) * ROW);
        const moveTop = animate || !this.inRows(place.depth[node]);
        this.move(target, moveTop ? top : this.top, animate && !still.matches ? ZOOM_MS : 0);
    }

    move(target, top, duration) {
        cancelAnimationFrame(this.animation);
        const start = { ...this.range, top: this.top };
        const begun = performance.now();
        const step = (now) => {
            const part = duration ? Math.min(1, (now - begun) / duration) : 1;
            const eased = 1 - (1 - Math.max(0, part)) ** 3;
            this.range = part < 1 ? between(start, target, eased) : target;
            this.scrollTo(start.top + (top - start.top) * eased);
            this.animating = part < 1 ? 1 : 0;
            this.invalidate();
            if (part < 1) this.animation = requestAnimationFrame(step);
        };
        if (duration) this.animation = requestAnimationFrame(step);
        else step(begun);
    }

    inRows(depth) {
        return depth === undefined || (depth * ROW >= this.top && (depth + 1) * ROW <= this.top + this.height);
    }

    // The place is kept here too: asking the document for it would make it lay itself out before each drawing.
    scrollTo(top) {
        const wanted = Math.round(Math.max(0, Math.min(top, this.space)));
        if (wanted === this.top) return;
        this.top = wanted;
        this.scroller.scrollTop = wanted;
    }

    // Drawing

    measure() {
        const width = this.scroller.clientWidth;
        const height = this.scroller.clientHeight;
        this.width = width;
        this.height = height;
        this.painter.resize(width, height, devicePixelRatio);
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        this.resizeSpace();
        if (this.base) this.paint();
    }

    resizeSpace() {
        const rows = this.shown ? this.shown.place.maxDepth + 1 : 0;
        this.space = Math.max(0, rows * ROW + 8 - this.height);
        this.spacer.style.height = `${this.space}px`;
    }

    setTheme(theme) {
        this.theme = theme;
        for (const model of new Set([this.base, this.shown])) {
            if (model) model.colours = palette(model.flame.functions, theme);
        }
        this.invalidate();
    }

    invalidate() {
        if (this.frame) return;
        this.frame = requestAnimationFrame(() => this.paint());
    }

    paint() {
        cancelAnimationFrame(this.frame);
        this.frame = 0;
        const model = this.shown;
        if (!model || this.stopped || !this.width) return;
        if (this.painter.ratio !== devicePixelRatio) this.painter.resize(this.width, this.height, devicePixelRatio);
        const nothing = !(model.total > 0);
        this.message.hidden = !nothing;
        if (nothing) setChildren(this.message, [this.emptyFor(model)]);
        this.canvas.dataset.boxes = this.painter.paint({
            ...model,
            theme: this.theme,
            paper: this.theme === 'dark' ? '#1b1f23' : '#ffffff',
            from: this.range.from,
            to: this.range.to,
            top: this.top,
            zoom: this.zoom ?? -1,
            hovered: this.hovered,
            selected: this.selected,
        });
        if (!this.drawn) {
            this.drawn = true;
            performance.mark('flame-drawn');
        }
    }

    emptyFor(model) {
        const { metric, flame } = model;
        const key = `${metric.name} ${flame.count > 0} ${this.running}`;
        if (!this.nothing || this.nothing.key !== key) {
            const el = flame.count
                ? emptyState(metric.none, h('p', { text: 'The other metrics may have more to show.' }))
                : noCalls(this.running);
            this.nothing = { key, el };
        }
        return this.nothing.el;
    }

    showError(error) {
        this.message.hidden = false;
        setText(this.detail, '');
        setChildren(this.message, [
            emptyState(
                error.status === 0 ? 'Not connected' : 'The graph cannot be shown',
                h('p', { text: error.message }),
                error.problem && error.problem.remedy ? h('p', { text: error.problem.remedy }) : null
            ),
        ]);
    }

    showCrumbs() {
        const { flame } = this.shown;
        const path = this.zoom >= 0 ? pathTo(flame, this.zoom) : [];
        const shown = path.length > 8 ? [...path.slice(0, 2), null, ...path.slice(-5)] : path;
        const all = h('button', { type: 'button', on: { click: () => this.goTo(null) } }, 'All');
        const items = [path.length ? all : h('span', { text: 'All', 'aria-current': 'true' })];
        for (const node of shown) {
            items.push(h('span.crumb-sep', { 'aria-hidden': 'true', text: '\u203a' }));
            if (node === null) items.push(h('span.muted', { text: '\u2026' }));
            else if (node === this.zoom)
                items.push(h('span', { dir: 'auto', text: nameOf(flame, node), 'aria-current': 'true' }));
            else
                items.push(
                    h(
                        'button',
                        { type: 'button', dir: 'auto', on: { click: () => this.goTo(node) } },
                        nameOf(flame, node)
                    )
                );
        }
        items.push(
            h('span.spacer'),
            h('span.muted.total', {
                text: `${this.base.metric.label}: ${this.base.metric.format(this.base.total)} in all`,
            })
        );
        this.crumbs.replaceChildren(...items);
    }

    // Frames under the pointer and the keyboard

    goTo(node) {
        this.params.navigate({ query: { root: node === null ? null : this.keyOf(node) } });
    }

    // What is folded has no key of its own: its caller's stands for it.
    keyOf(node) {
        const { flame } = this.shown;
        for (let i = node; i >= 0; i = flame.parent[i]) {
            if (flame.contexts && flame.contexts[i] && flame.fn[i] >= 0) return flame.contexts[i];
        }
        return null;
    }

    at(event) {
        if (!this.shown) return -1;
        const box = this.canvas.getBoundingClientRect();
        const { from, to } = this.range;
        const part = from + ((event.clientX - box.left) / this.width) * (to - from);
        return nodeAt(this.shown.place, part, Math.floor((event.clientY - box.top + this.top) / ROW));
    }

    hover(event) {
        const node = this.at(event);
        if (node !== this.hovered) {
            this.hovered = node;
            this.canvas.dataset.hand = node >= 0 ? 'yes' : 'no';
            if (node >= 0) setChildren(this.tip, tooltip(this.shown, node));
            this.tip.hidden = node < 0;
            this.invalidate();
        }
        if (node >= 0) this.placeTip(event);
    }

    placeTip(event) {
        const { offsetWidth: width, offsetHeight: height } = this.tip;
        let x = event.clientX + 14;
        let y = event.clientY + 18;
        if (x + width > innerWidth - 8) x = Math.max(8, event.clientX - width - 10);
        if (y + height > innerHeight - 8) y = Math.max(8, event.clientY - height - 12);
        this.tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
    }

    unhover() {
        this.tip.hidden = true;
        if (this.hovered < 0) return;
        this.hovered = -1;
        this.invalidate();
    }

    click(event) {
        const node = this.at(event);
        if (node < 0) return;
        this.select(node, false);
        this.goTo(node);
    }

    select(node, say) {
        this.selected = node;
        if (node >= 0) this.selectedKey = this.shown.flame.contexts ? this.shown.flame.contexts[node] : null;
        this.showDetail();
        this.invalidate();
        if (node >= 0 && say) this.params.announce(sentence(this.shown, node, this.shown.metric));
    }

    showDetail() {
        if (!this.shown) return;
        if (this.selected >= 0) setChildren(this.detail, details(this.shown, this.selected));
        else
            setChildren(this.detail, [
                h('span.muted', { text: 'Click a frame to zoom; arrow keys walk from frame to frame.' }),
            ]);
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
        if (event.key === 'Escape' && event.target !== this.search) this.leave();
        if (event.target !== this.canvas && event.target !== document.body) return;
        const way = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right', Home: 'first' }[
            event.key
        ];
        if (way && this.shown) {
            event.preventDefault();
            this.walk(way);
        } else if (event.key === 'Enter' && this.selected >= 0) {
            event.preventDefault();
            this.goTo(this.selected);
        }
    }

    leave() {
        if (this.params.query.root) {
            this.goTo(null);
        } else if (this.params.query.q) {
            this.search.value = '';
            this.params.navigate({ query: { q: null } }, true);
        }
    }

    walk(way) {
        const { flame, place } = this.shown;
        const start = this.selected < 0 && this.zoom >= 0 ? this.zoom : this.selected;
        const node =
            this.selected < 0
                ? start >= 0
                    ? start
                    : neighbour(flame, place, -1, 'first')
                : neighbour(flame, place, start, way);
        if (node < 0) return;
        this.select(node, true);
        this.reveal(node);
        if (document.activeElement !== this.canvas) this.canvas.focus({ preventScroll: true });
    }

    // The keyboard may leave the zoomed part or the rows in view: the view follows.
    reveal(node) {
        const { place } = this.shown;
        const middle = place.x[node] + place.w[node] / 2;
        const inside =
            this.zoom < 0 ||
            place.depth[node] < place.depth[this.zoom] ||
            (middle > this.range.from && middle < this.range.to);
        if (!inside) this.goTo(this.shown.flame.parent[node] >= 0 ? this.shown.flame.parent[node] : null);
        const y = place.depth[node] * ROW;
        if (y < this.top) this.scrollTo(y);
        else if (y + ROW > this.top + this.height) this.scrollTo(y + ROW - this.height);
    }

    typed() {
        clearTimeout(this.typing);
        this.typing = setTimeout(
            () => this.params.navigate({ query: { q: this.search.value.trim() } }, true),
            TYPING_MS
        );
    }

    searchKey(event) {
        if (event.key === 'Escape') {
            event.preventDefault();
            event.stopPropagation();
            clearTimeout(this.typing);
            this.search.value = '';
            this.search.blur();
            this.params.navigate({ query: { q: null } }, true);
        } else if (event.key === 'Enter') {
            this.canvas.focus({ preventScroll: true });
        }
    }
}

export const { mount, update, refresh, unmount } = viewModule(FlameView);

function rangeOf(place, node) {
    return { from: place.x[node], to: place.x[node] + place.w[node] };
}

// Widths change by a constant factor a frame, so that a deep zoom is as smooth as a shallow one.
function between(start, target, part) {
    const before = start.to - start.from;
    const after = target.to - target.from;
    const width = before * (after / before) ** part;
    const same = Math.abs(before - after) < 1e-15;
    const mix = same ? 1 - part : (width - after) / (before - after);
    const from = target.from + (start.from - target.from) * mix;
    return { from, to: from + width };
}
