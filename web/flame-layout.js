// The flame graph as columns: decoding the answer, placing the boxes, finding and matching them. No DOM in here.
//
// Every column is a typed array indexed by node, so that 100,000 nodes cost no objects. A parent comes before its
// children, which makes each pass one loop, with no recursion over a tree of unknown depth.

import { functionName, textOf } from './format.js';

export const EDGE = { root: 0, call: 1, spawn: 2, unknown: 3, folded: 4 };
export const FLAG = { open: 1, overflow: 2, parentMissing: 4, undefined: 8, timingIncomplete: 16, sliver: 32 };

const FEW = 24;
const EXACT = 2 ** 53;

const NUMBERS = {
    calls: 'calls',
    open: 'open',
    errors: 'errors',
    cancelled: 'cancelled',
    inclusive: 'inclusive_ns',
    self: 'self_ns',
    await: 'await_ns',
    nodes: 'nodes',
};

// What a node has of its own in a metric; inclusive time is a case of its own.
const OWN = { self_ns: 'self', await_ns: 'await', calls: 'calls', errors: 'errors' };

/**
 * @typedef {Object} Flame the answer's nodes as columns
 * @property {number} count
 * @property {Int32Array} parent -1 for a top-level node
 * @property {Int32Array} fn index into functions, -1 for none
 * @property {Uint8Array} edge
 * @property {Uint8Array} flags
 * @property {Float64Array} calls and open, errors, cancelled, inclusive, self, await, nodes
 * @property {Array<Object>} functions
 * @property {Array<string>|null} contexts
 * @property {Map<number, string>} exact values above 2^53, by column * count + node
 */

/**
 * Decodes a flame answer. Rows that break the form (a parent that comes later, a function that is not there) lose
 * that link instead of breaking the page.
 * @returns {Flame}
 */
export function decode(answer) {
    const rows = answer.nodes || [];
    const at = new Map((answer.columns || []).map((name, i) => [name, i]));
    const flame = blank(rows.length, answer.functions || [], answer.contexts || null);
    const { parent, fn, edge, flags, functions } = flame;
    const place = ['parent', 'function', 'edge', 'flags'].map((name) => at.get(name) ?? -1);
    const counters = Object.values(NUMBERS).map((name) => at.get(name) ?? -1);
    const [c0, c1, c2, c3, c4, c5, c6, c7] = counters;
    const { calls, open, errors, cancelled, inclusive, self, await: waited, nodes } = flame;
    // Written out, as each row is far away in memory: it is visited once.
    for (let i = 0; i < rows.length; i++) {
        const row = rows[i];
        const up = row[place[0]];
        const of = row[place[1]];
        parent[i] = up >= 0 && up < i ? up : -1;
        fn[i] = of >= 0 && of < functions.length ? of : -1;
        edge[i] = edgeCode(row[place[2]]);
        flags[i] = row[place[3]];
        calls[i] = row[c0];
        open[i] = row[c1];
        errors[i] = row[c2];
        cancelled[i] = row[c3];
        inclusive[i] = row[c4];
        self[i] = row[c5];
        waited[i] = row[c6];
        nodes[i] = row[c7];
        if (!(calls[i] + errors[i] + inclusive[i] + self[i] + waited[i] < EXACT))
            keepExact(flame, row, i, counters);
    }
    return flame;
}

// Counters above 2^53 come as strings, which are kept beside their doubles. What is no number at all counts as zero.
function keepExact(flame, row, i, counters) {
    Object.keys(NUMBERS).forEach((name, column) => {
        const value = row[counters[column]];
        if (Number.isNaN(flame[name][i])) flame[name][i] = 0;
        else if (typeof value === 'string') flame.exact.set(column * flame.count + i, value);
    });
}

function edgeCode(word) {
    return word === 'call' ? EDGE.call : Object.hasOwn(EDGE, word) ? EDGE[word] : EDGE.unknown;
}

function blank(count, functions, contexts) {
    const flame = {
        count,
        parent: new Int32Array(count),
        fn: new Int32Array(count),
        edge: new Uint8Array(count),
        flags: new Uint8Array(count),
        functions,
        contexts,
        exact: new Map(),
    };
    for (const name of Object.keys(NUMBERS)) flame[name] = new Float64Array(count);
    return flame;
}

/** A node's counter as the server wrote it: a number, or a decimal string above 2^53. */
export function exactValue(flame, name, node) {
    const column = Object.keys(NUMBERS).indexOf(name);
    return flame.exact.get(column * flame.count + node) ?? flame[name][node];
}

/**
 * @typedef {Object} Layout
 * @property {Float64Array} size what a node stands for in the metric: the tooltip's number
 * @property {Float64Array} x left edge, 0 to 1 of all; the last entry is the virtual root's
 * @property {Float64Array} w width, 0 to 1 of all
 * @property {Int32Array} depth
 * @property {Int32Array} first children of node i are order[first[i] .. first[i + 1]); i = count is the virtual root
 * @property {Int32Array} order
 * @property {Uint8Array} squeezed whether a node's children are drawn below scale: spawned work overlaps
 * @property {Float64Array} sums size of a node's children together
 * @property {Uint8Array} foldedBelow whether something below (or the node itself) is folded
 * @property {number} total size of all top-level nodes
 * @property {number} maxDepth
 */

/**
 * Places the nodes for a metric. Children stand widest first, what is folded last.
 * @param {Flame} flame
 * @param {string} metric name as in the API
 * @returns {Layout}
 */
export function layout(flame, metric) {
    const sizes = measure(flame, OWN[metric] ? flame[OWN[metric]] : null);
    const order = sortedChildren(flame, sizes);
    return { ...sizes, order, ...positions(flame.count, order, sizes), total: sizes.sums[flame.count] };
}

// From the leaves up, in one pass: how large each node is, what its children add up to, where their list starts, and
// below which nodes something is folded. `own` is what a node has of its own; null stands for inclusive time, in which
// a spawned child takes no part in its parent.
function measure(flame, own) {
    const { count, parent, edge, flags, inclusive, self, await: waited } = flame;
    const { sliver } = FLAG;
    const { spawn } = EDGE;
    const size = new Float64Array(count);
    const sums = new Float64Array(count + 1);
    const callees = own ? sums : new Float64Array(count + 1);
    const foldedBelow = new Uint8Array(count + 1);
    const first = new Int32Array(count + 2);
    for (let i = count - 1; i >= 0; i--) {
        const up = parent[i] < 0 ? count : parent[i];
        let value;
        if (own) {
            value = own[i] + sums[i];
        } else {
            // An open call's own inclusive time lags behind its children's: no box is narrower than they are.
            value = self[i] + waited[i] + callees[i];
            if (inclusive[i] > value) value = inclusive[i];
            if (edge[i] !== spawn) callees[up] += value;
        }
        if (!(value > 0)) value = 0;
        size[i] = value;
        sums[up] += value;
        first[up + 1]++;
        if (foldedBelow[i] || flags[i] & sliver) {
            foldedBelow[i] = 1;
            foldedBelow[up] = 1;
        }
    }
    for (let i = 0; i <= count; i++) first[i + 1] += first[i];
    return { size, sums, foldedBelow, first };
}

// From the top down: the virtual root first, then each node before its children.
function positions(count, order, { size, sums, first }) {
    const x = new Float64Array(count + 1);
    const w = new Float64Array(count + 1);
    const depth = new Int32Array(count + 1);
    const squeezed = new Uint8Array(count + 1);
    let maxDepth = -1;
    w[count] = 1;
    depth[count] = -1;
    for (let turn = -1; turn < count; turn++) {
        const node = turn < 0 ? count : turn;
        const end = first[node + 1];
        let k = first[node];
        if (k === end) continue;
        const sum = sums[node];
        const whole = turn < 0 ? sum : size[node];
        const base = sum > whole ? sum : whole;
        const scale = base > 0 ? w[node] / base : 0;
        const below = depth[node] + 1;
        let left = x[node];
        if (sum > whole * (1 + 1e-9)) squeezed[node] = 1;
        if (below > maxDepth) maxDepth = below;
        for (; k < end; k++) {
            const child = order[k];
            const width = size[child] * scale;
            x[child] = left;
            w[child] = width;
            depth[child] = below;
            left += width;
        }
    }
    return { x, w, depth, squeezed, maxDepth };
}

// Widest first, equal ones in the order of the answer, what is folded last.
function sortedChildren(flame, { first, size, foldedBelow }) {
    const { count, parent, flags } = flame;
    const next = first.slice();
    const order = new Int32Array(count);
    for (let i = 0; i < count; i++) order[next[parent[i] < 0 ? count : parent[i]]++] = i;
    for (let i = 0; i <= count; i++) {
        const from = first[i];
        const to = first[i + 1];
        if (to - from < 2) continue;
        if (to - from > FEW) order.subarray(from, to).sort((a, b) => size[b] - size[a] || a - b);
        else insertionSort(order, size, from, to);
        if (foldedBelow[i]) foldedLast(order, flags, from, to);
    }
    return order;
}

// Most nodes have few children, for which a sort in place beats a call into the engine's.
function insertionSort(list, size, from, to) {
    for (let i = from + 1; i < to; i++) {
        const value = list[i];
        const own = size[value];
        let k = i - 1;
        while (k >= from && size[list[k]] < own) {
            list[k + 1] = list[k];
            k--;
        }
        list[k + 1] = value;
    }
}

function foldedLast(list, flags, from, to) {
    const folded = list.subarray(from, to).filter((i) => flags[i] & FLAG.sliver);
    if (!folded.length) return;
    const others = list.subarray(from, to).filter((i) => !(flags[i] & FLAG.sliver));
    list.set(others, from);
    list.set(folded, from + others.length);
}

/**
 * The node at a place, or -1.
 * @param {Layout} place
 * @param {number} at 0 to 1 of all
 * @param {number} depth row, 0 is the top
 */
export function nodeAt(place, at, depth) {
    let node = place.first.length - 2;
    if (depth < 0 || at < 0 || at >= 1) return -1;
    for (let level = 0; level <= depth; level++) {
        node = childAt(place, node, at);
        if (node < 0) return -1;
    }
    return node;
}

function childAt(place, node, at) {
    const { first, order, x, w } = place;
    let low = first[node];
    let high = first[node + 1] - 1;
    while (low <= high) {
        const middle = (low + high) >> 1;
        const child = order[middle];
        if (at < x[child]) high = middle - 1;
        else if (at >= x[child] + w[child]) low = middle + 1;
        else return child;
    }
    return -1;
}

/** The nodes from the top down to a node, itself included. */
export function pathTo(flame, node) {
    const path = [];
    for (let i = node; i >= 0; i = flame.parent[i]) path.push(i);
    return path.reverse();
}

/**
 * The neighbour of a node for the keyboard; the node itself where there is none.
 * @param {'up'|'down'|'left'|'right'|'first'} way
 */
export function neighbour(flame, place, node, way) {
    const root = flame.count;
    if (node < 0 || way === 'first') return place.order.length ? place.order[place.first[root]] : -1;
    if (way === 'up') return flame.parent[node] >= 0 ? flame.parent[node] : node;
    if (way === 'down') return place.first[node] < place.first[node + 1] ? place.order[place.first[node]] : node;
    const up = flame.parent[node] < 0 ? root : flame.parent[node];
    const siblings = place.order.subarray(place.first[up], place.first[up + 1]);
    const index = siblings.indexOf(node) + (way === 'left' ? -1 : 1);
    return siblings[index] ?? node;
}

/** Which functions match a text: their name or file holds it, letters' case aside. Null where the text is empty. */
export function matchFunctions(functions, text) {
    const needle = text.trim().toLowerCase();
    if (!needle) return null;
    return Uint8Array.from(functions, (fn) =>
        functionName(fn).toLowerCase().includes(needle) || textOf(fn.file).toLowerCase().includes(needle) ? 1 : 0
    );
}

/**
 * How much of the whole the matching nodes cover; a match under a match counts once.
 * @returns {{share: number, nodes: number}}
 */
export function matchedShare(flame, place, matches) {
    const covered = new Uint8Array(flame.count);
    let share = 0;
    let nodes = 0;
    for (let i = 0; i < flame.count; i++) {
        const above = flame.parent[i] >= 0 && covered[flame.parent[i]];
        const match = flame.fn[i] >= 0 && matches[flame.fn[i]];
        if (match) nodes++;
        if (match && !above) share += place.w[i];
        covered[i] = above || match ? 1 : 0;
    }
    return { share: Math.min(1, share), nodes };
}

/**
 * Hangs a finer answer about one node under the ancestors known from a coarser one.
 * @param {Flame} base
 * @param {number} node the node of base that the finer answer is about, -1 where base does not have it
 * @param {Flame} detail
 * @returns {Flame}
 */
export function graft(base, node, detail) {
    const chain = node < 0 ? [] : pathTo(base, node).slice(0, -1);
    const above = chain.length;
    const merged = blank(above + detail.count, base.functions.concat(detail.functions), null);
    if (base.contexts && detail.contexts) {
        merged.contexts = chain.map((i) => base.contexts[i]).concat(detail.contexts);
    }
    const shift = base.functions.length;
    chain.forEach((from, i) => {
        merged.parent[i] = i - 1;
        merged.fn[i] = base.fn[from];
    });
    for (let i = 0; i < detail.count; i++) {
        merged.parent[above + i] = detail.parent[i] < 0 ? above - 1 : detail.parent[i] + above;
        merged.fn[above + i] = detail.fn[i] < 0 ? -1 : detail.fn[i] + shift;
    }
    for (const name of ['edge', 'flags', ...Object.keys(NUMBERS)]) {
        chain.forEach((from, i) => {
            merged[name][i] = base[name][from];
        });
        merged[name].set(detail[name], above);
    }
    Object.keys(NUMBERS).forEach((name, c) => {
        chain.forEach((from, i) => copyExact(base, c * base.count + from, merged, c * merged.count + i));
    });
    for (const [key, value] of detail.exact) {
        const column = Math.floor(key / detail.count);
        merged.exact.set(column * merged.count + above + (key % detail.count), value);
    }
    return merged;
}

function copyExact(from, key, to, target) {
    const value = from.exact.get(key);
    if (value !== undefined) to.exact.set(target, value);
}

/** The node of a context key, or -1. */
export function nodeOf(flame, key) {
    return key && flame.contexts ? flame.contexts.indexOf(key) : -1;
}
