// The flame graph as columns: decoding the answer, placing the boxes, finding and matching them. No DOM in here.
//
// Every column is a typed array indexed by node, so that 100,000 nodes cost no objects. A parent comes before its
// children, which makes each pass one loop, with no recursion over a tree of unknown depth.

import { functionName, textOf } from './format.js';

export const EDGE = { root: 0, call: 1, spawn: 2, unknown: 3, folded: 4 };
export const FLAG = { open: 1, overflow: 2, parentMissing: 4, undefined: 8, timingIncomplete: 16, sliver: 32 };

const NUMBERS = {
    calls: 'calls',
    open: 'open',
    errors: 'errors',
    cancelled: 'cancelled',
    inclusive: 'inclusive_ns',
    self: 'self_ns',
    await: 'await_ns',
    unattributed: 'unattributed_ns',
    nodes: 'nodes',
};

/**
 * @typedef {Object} Flame the answer's nodes as columns
 * @property {number} count
 * @property {Int32Array} parent -1 for a top-level node
 * @property {Int32Array} fn index into functions, -1 for none
 * @property {Uint8Array} edge
 * @property {Uint8Array} flags
 * @property {Float64Array} calls and open, errors, cancelled, inclusive, self, await, unattributed, nodes
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
    const names = Object.keys(NUMBERS);
    const columns = names.map((name) => flame[name]);
    const from = names.map((name) => at.get(NUMBERS[name]) ?? -1);
    const parentAt = at.get('parent');
    const fnAt = at.get('function');
    const edgeAt = at.get('edge');
    const flagsAt = at.get('flags');
    const functions = flame.functions.length;
    for (let i = 0; i < rows.length; i++) {
        const row = rows[i];
        const parent = row[parentAt];
        const fn = row[fnAt];
        flame.parent[i] = parent >= 0 && parent < i ? parent : -1;
        flame.fn[i] = fn >= 0 && fn < functions ? fn : -1;
        flame.edge[i] = EDGE[row[edgeAt]] ?? EDGE.unknown;
        flame.flags[i] = row[flagsAt] || 0;
        for (let c = 0; c < columns.length; c++) {
            const value = row[from[c]];
            if (typeof value === 'number') columns[c][i] = value;
            else if (typeof value === 'string') {
                columns[c][i] = Number(value);
                flame.exact.set(c * rows.length + i, value);
            }
        }
    }
    return flame;
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
    const { count, parent } = flame;
    const size = metric === 'inclusive_ns' ? inclusiveSizes(flame) : subtreeSizes(flame, ownColumn(flame, metric));
    const { first, order } = childLists(flame, size);
    const x = new Float64Array(count + 1);
    const w = new Float64Array(count + 1);
    const depth = new Int32Array(count + 1);
    const squeezed = new Uint8Array(count + 1);
    const sums = new Float64Array(count + 1);
    const foldedBelow = new Uint8Array(count + 1);
    for (let i = count - 1; i >= 0; i--) {
        const up = parent[i] < 0 ? count : parent[i];
        sums[up] += size[i];
        if (flame.flags[i] & FLAG.sliver) foldedBelow[i] = 1;
        if (foldedBelow[i]) foldedBelow[up] = 1;
    }
    const total = sums[count];
    w[count] = 1;
    depth[count] = -1;
    let maxDepth = -1;
    placeChildren(count, total);
    for (let i = 0; i < count; i++) placeChildren(i, size[i]);
    return { size, x, w, depth, first, order, squeezed, foldedBelow, total, maxDepth };

    function placeChildren(node, whole) {
        const from = first[node];
        const to = first[node + 1];
        if (from === to) return;
        squeezed[node] = sums[node] > whole * (1 + 1e-9) ? 1 : 0;
        const base = Math.max(whole, sums[node]);
        const scale = base > 0 ? w[node] / base : 0;
        const below = depth[node] + 1;
        if (below > maxDepth) maxDepth = below;
        let left = x[node];
        for (let k = from; k < to; k++) {
            const child = order[k];
            x[child] = left;
            w[child] = size[child] * scale;
            depth[child] = below;
            left += w[child];
        }
    }
}

function ownColumn(flame, metric) {
    const columns = {
        self_ns: flame.self,
        await_ns: flame.await,
        calls: flame.calls,
        errors: flame.errors,
    };
    return columns[metric] || flame.self;
}

// An open call's own inclusive time lags behind that of its children, so a box is never narrower than they are.
function inclusiveSizes(flame) {
    const { count, parent, edge } = flame;
    const size = new Float64Array(count);
    const below = new Float64Array(count);
    for (let i = count - 1; i >= 0; i--) {
        size[i] = Math.max(0, flame.inclusive[i], flame.self[i] + flame.await[i] + below[i]);
        if (parent[i] >= 0 && edge[i] !== EDGE.spawn) below[parent[i]] += size[i];
    }
    return size;
}

function subtreeSizes(flame, own) {
    const { count, parent } = flame;
    const size = new Float64Array(count);
    for (let i = count - 1; i >= 0; i--) {
        size[i] += Math.max(0, own[i]);
        if (parent[i] >= 0) size[parent[i]] += size[i];
    }
    return size;
}

function childLists(flame, size) {
    const { count, parent, flags, fn } = flame;
    const first = new Int32Array(count + 2);
    for (let i = 0; i < count; i++) first[(parent[i] < 0 ? count : parent[i]) + 1]++;
    for (let i = 0; i <= count; i++) first[i + 1] += first[i];
    const next = first.slice();
    const order = new Int32Array(count);
    for (let i = 0; i < count; i++) order[next[parent[i] < 0 ? count : parent[i]]++] = i;
    const byWidth = (a, b) =>
        (flags[a] & FLAG.sliver) - (flags[b] & FLAG.sliver) || size[b] - size[a] || fn[a] - fn[b] || a - b;
    for (let i = 0; i <= count; i++) sortSlice(order, first[i], first[i + 1], byWidth);
    return { first, order };
}

// Most nodes have few children: an insertion sort in place beats a call into the engine's sort for those.
function sortSlice(list, from, to, compare) {
    if (to - from > 24) {
        list.subarray(from, to).sort(compare);
        return;
    }
    for (let i = from + 1; i < to; i++) {
        const value = list[i];
        let k = i - 1;
        while (k >= from && compare(list[k], value) > 0) {
            list[k + 1] = list[k];
            k--;
        }
        list[k + 1] = value;
    }
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
