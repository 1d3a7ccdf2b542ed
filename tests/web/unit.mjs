// The page's pure parts: numbers and times, the flame's layout, colours, words.

import assert from 'node:assert/strict';

import {
    decode,
    EDGE,
    exactValue,
    FLAG,
    graft,
    layout,
    matchedShare,
    matchFunctions,
    neighbour,
    nodeAt,
    nodeOf,
    pathTo,
} from '../../web/flame-layout.js';
import {
    compareCounts,
    formatAgo,
    formatCount,
    formatNs,
    formatPlace,
    formatShare,
    formatTime,
    functionName,
    parseTime,
    plural,
    textOf,
} from '../../web/format.js';
import { fillOf, isNative, moduleOf, palette } from '../../web/palette.js';
import { evidenceLines, statusWords, verdictWords } from '../../web/words.js';
import { COLUMNS, random } from './mock.mjs';
import { done, test } from './tap.mjs';

const FUNCTIONS = [
    { name: 'main', file: 'main.lua', line: 1, kind: 'bytecode' },
    { name: 'lib:parse', file: 'lib.lua', line: 7, kind: 'bytecode' },
    { name: 'c:string.sub', file: null, line: null, kind: 'native' },
];

const row = (parent, fn, edge, numbers = {}) => {
    const all = {
        calls: 1,
        open: 0,
        errors: 0,
        cancelled: 0,
        inclusive_ns: 0,
        self_ns: 0,
        await_ns: 0,
        ...numbers,
    };
    return [
        parent,
        fn,
        edge,
        null,
        all.calls,
        all.open,
        all.errors,
        all.cancelled,
        all.inclusive_ns,
        all.self_ns,
        all.await_ns,
        0,
        all.flags || 0,
        all.nodes || 1,
    ];
};

const flameOf = (nodes, contexts) => decode({ columns: COLUMNS, functions: FUNCTIONS, nodes, contexts });

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9, `${a} is not ${b}`);

// A random flame whose times add up, in the server's form.
function randomFlame(next, count) {
    const nodes = [];
    const keys = [];
    for (let i = 0; i < count; i++) {
        const parent = i === 0 || next() < 0.02 ? -1 : Math.floor(next() * i);
        const spawn = parent >= 0 && next() < 0.1;
        nodes.push(
            row(parent, Math.floor(next() * 3), parent < 0 ? 'root' : spawn ? 'spawn' : 'call', {
                calls: 1 + Math.floor(next() * 9),
                errors: Math.floor(next() * 3),
                self_ns: Math.floor(next() * 1000),
                await_ns: next() < 0.2 ? Math.floor(next() * 500) : 0,
            })
        );
        keys.push(`key${i}`);
    }
    for (let i = count - 1; i >= 0; i--) {
        nodes[i][8] += nodes[i][9] + nodes[i][10];
        if (nodes[i][0] >= 0 && nodes[i][2] !== 'spawn') nodes[nodes[i][0]][8] += nodes[i][8];
    }
    return flameOf(nodes, keys);
}

await test('nanoseconds take the unit that suits them', () => {
    const table = [
        [null, '\u2013'],
        [undefined, '\u2013'],
        [0, '0'],
        [1, '1 ns'],
        [999, '999 ns'],
        [1000, '1.00 \u00b5s'],
        [12345, '12.3 \u00b5s'],
        [999499, '999 \u00b5s'],
        [999500, '1.00 ms'],
        [1e6, '1.00 ms'],
        [1234567890, '1.23 s'],
        [59.94e9, '59.9 s'],
        [60e9, '1 m 00 s'],
        [125e9, '2 m 05 s'],
        [3599.6e9, '1 h 00 m'],
        [3 * 3600e9 + 240e9, '3 h 04 m'],
        [52 * 3600e9, '2 d 04 h'],
        ['18446744073709551615', '213,504 d 00 h'],
        [-1500, '\u22121.50 \u00b5s'],
    ];
    for (const [value, text] of table) assert.equal(formatNs(value), text, String(value));
});

await test('counts are exact at any size', () => {
    assert.equal(formatCount(1234567), '1,234,567');
    assert.equal(formatCount('18446744073709551615'), '18,446,744,073,709,551,615');
    assert.equal(formatCount(null), '\u2013');
    assert.equal(formatCount('no number'), '\u2013');
    assert.equal(plural(1, 'call'), '1 call');
    assert.equal(plural('9007199254740993', 'call'), '9,007,199,254,740,993 calls');
    assert.ok(compareCounts('9007199254740993', '9007199254740992') > 0);
    assert.ok(compareCounts('9007199254740993', 5) > 0);
    assert.ok(compareCounts(null, 0) < 0);
    assert.equal(compareCounts(null, null), 0);
    assert.ok(compareCounts(0, null) > 0);
});

await test('shares', () => {
    const table = [
        [1, 2, '50.0 %'],
        [1, 1, '100 %'],
        [0, 5, '0 %'],
        [1, 1e6, '< 0.01 %'],
        [1, 0, '\u2013'],
        [null, 1, '\u2013'],
        [3, 2, '150 %'],
        [5, 1000, '0.50 %'],
    ];
    for (const [part, whole, text] of table) assert.equal(formatShare(part, whole), text);
});

await test('times', () => {
    const now = new Date(2026, 4, 6, 12, 0, 0);
    assert.equal(formatTime(new Date(2026, 4, 6, 9, 8, 7), now), '09:08:07');
    assert.equal(formatTime(new Date(2026, 4, 5, 9, 8, 7), now), '2026-05-05 09:08:07');
    assert.equal(formatTime(null, now), '\u2013');
    const ago = (seconds) => formatAgo(new Date(now.getTime() - seconds * 1000), now);
    assert.deepEqual([0, 12, 200, 7200, 90000, 400000].map(ago), [
        'just now',
        '12 s ago',
        '3 min ago',
        '2 h ago',
        'yesterday',
        '4 days ago',
    ]);
    assert.equal(parseTime('2026-11-29T23:45:29.123456789Z').getTime(), Date.UTC(2026, 10, 29, 23, 45, 29, 123));
    assert.equal(parseTime('2026-11-29T23:45:29Z').getTime(), Date.UTC(2026, 10, 29, 23, 45, 29));
    assert.equal(parseTime('rubbish'), null);
    assert.equal(parseTime(null), null);
});

await test('text keeps nothing that hides or reorders its neighbours', () => {
    assert.equal(textOf('a\u202eb'), 'a\ufffdb');
    assert.equal(textOf('a\nb\u0000'), 'a\u240ab\u2400');
    assert.equal(textOf({ base64: '//79', preview: '\ufffd' }), '\ufffd');
    assert.equal(textOf(null), '');
    assert.equal(textOf('<b>'), '<b>');
    assert.equal(functionName({ name: null, function_id: 7 }), 'function#7');
    assert.equal(functionName({ name: '', function_id: 7 }), '(no name)');
    assert.equal(formatPlace('a.lua', 3), 'a.lua:3');
    assert.equal(formatPlace('a.lua', 0), 'a.lua');
    assert.equal(formatPlace(null, 3), '');
});

await test('rows that break the form lose the link, not the page', () => {
    const flame = flameOf([
        row(5, 0, 'root'),
        row(-7, 99, 'constructor'),
        row(1, -1, 'folded', { flags: 32 }),
        row(0.5, 1, 'call'),
    ]);
    assert.deepEqual([...flame.parent], [-1, -1, 1, 0]);
    assert.deepEqual([...flame.fn], [0, -1, -1, 1]);
    assert.equal(flame.edge[1], EDGE.unknown);
    layout(flame, 'inclusive_ns');
    const odd = flameOf([row(-1, 0, 'root', { calls: 'many', inclusive_ns: {}, self_ns: null, errors: '7' })]);
    assert.deepEqual([odd.calls[0], odd.inclusive[0], odd.self[0], odd.errors[0]], [0, 0, 0, 7]);
    assert.equal(exactValue(odd, 'calls', 0), 0);
    const empty = decode({});
    assert.equal(layout(empty, 'calls').total, 0);
    assert.equal(nodeAt(layout(empty, 'calls'), 0.5, 0), -1);
});

await test('values above 2^53 stay exact', () => {
    const flame = flameOf([row(-1, 0, 'root', { calls: '18446744073709551615', inclusive_ns: 5 })]);
    assert.equal(exactValue(flame, 'calls', 0), '18446744073709551615');
    assert.equal(exactValue(flame, 'inclusive', 0), 5);
    assert.equal(flame.calls[0], 2 ** 64);
});

await test('a hand-made graph is placed as computed by hand', () => {
    const flame = flameOf([
        row(-1, 0, 'root', { inclusive_ns: 100, self_ns: 20 }),
        row(0, 1, 'call', { inclusive_ns: 30, self_ns: 30 }),
        row(0, 2, 'call', { inclusive_ns: 50, self_ns: 50 }),
    ]);
    const place = layout(flame, 'inclusive_ns');
    assert.equal(place.total, 100);
    assert.equal(place.maxDepth, 1);
    assert.deepEqual([place.x[0], place.w[0]], [0, 1]);
    // The wider one first.
    near(place.x[2], 0);
    near(place.w[2], 0.5);
    near(place.x[1], 0.5);
    near(place.w[1], 0.3);
    assert.equal(nodeAt(place, 0.25, 1), 2);
    assert.equal(nodeAt(place, 0.6, 1), 1);
    assert.equal(nodeAt(place, 0.9, 1), -1);
    assert.equal(nodeAt(place, 0.9, 0), 0);
});

await test('an open call is as wide as what it called', () => {
    const flame = flameOf([
        row(-1, 0, 'root', { inclusive_ns: 0, self_ns: 5, flags: FLAG.open, open: 1 }),
        row(0, 1, 'call', { inclusive_ns: 95, self_ns: 95 }),
    ]);
    const place = layout(flame, 'inclusive_ns');
    assert.equal(place.total, 100);
    near(place.w[1], 0.95);
});

await test('spawned work that overlaps is squeezed into its parent', () => {
    const flame = flameOf([
        row(-1, 0, 'root', { inclusive_ns: 10, self_ns: 10 }),
        row(0, 1, 'spawn', { inclusive_ns: 30, self_ns: 30 }),
        row(0, 2, 'spawn', { inclusive_ns: 10, self_ns: 10 }),
    ]);
    const place = layout(flame, 'inclusive_ns');
    assert.equal(place.squeezed[0], 1);
    assert.equal(place.total, 10);
    near(place.w[1], 0.75);
    near(place.w[2], 0.25);
    assert.equal(place.size[1], 30);
});

await test('layouts of random graphs hold together', () => {
    const seed = Number(process.env.VV_SEED) || 20261129;
    const next = random(seed);
    for (let round = 0; round < 60; round++) {
        const flame = randomFlame(next, 1 + Math.floor(next() * 300));
        for (const metric of ['inclusive_ns', 'self_ns', 'await_ns', 'calls', 'errors'])
            checkLayout(flame, metric, next, `seed ${seed}`);
    }
});

function checkLayout(flame, metric, next, why) {
    const place = layout(flame, metric);
    const end = (i) => place.x[i] + place.w[i];
    const last = new Map();
    for (let k = 0; k < flame.count; k++) {
        const node = place.order[k];
        const up = flame.parent[node] < 0 ? flame.count : flame.parent[node];
        assert.ok(
            place.x[node] >= place.x[up] - 1e-9 && end(node) <= end(up) + 1e-9,
            `${why}: ${node} leaves its parent`
        );
        assert.equal(place.depth[node], place.depth[up] + 1, why);
        const left = last.get(up);
        if (left !== undefined) {
            assert.ok(Math.abs(end(left) - place.x[node]) < 1e-9, `${why}: a gap before ${node}`);
            assert.ok(place.w[left] >= place.w[node] - 1e-12, `${why}: ${node} is out of order`);
        }
        last.set(up, node);
        if (place.w[node] > 1e-9)
            assert.equal(nodeAt(place, place.x[node] + place.w[node] / 2, place.depth[node]), node, why);
    }
    const column = { self_ns: flame.self, await_ns: flame.await, calls: flame.calls, errors: flame.errors }[metric];
    if (column) assert.ok(Math.abs(place.total - column.reduce((sum, v) => sum + v, 0)) < 1e-6, why);
    checkMatches(flame, place, why);
    const node = Math.floor(next() * flame.count);
    assert.equal(neighbour(flame, place, node, 'up'), flame.parent[node] < 0 ? node : flame.parent[node], why);
    const right = neighbour(flame, place, node, 'right');
    if (right !== node) assert.equal(neighbour(flame, place, right, 'left'), node, why);
}

// The matched share by another way: mark a fine grid under each match, and count what is marked.
function checkMatches(flame, place, why) {
    const matches = matchFunctions(FUNCTIONS, 'LIB');
    assert.deepEqual([...matches], [0, 1, 0]);
    const edges = [];
    for (let i = 0; i < flame.count; i++) if (flame.fn[i] === 1) edges.push([place.x[i], place.x[i] + place.w[i]]);
    edges.sort((a, b) => a[0] - b[0]);
    let covered = 0;
    let right = 0;
    for (const [from, to] of edges) {
        covered += Math.max(0, to - Math.max(from, right));
        right = Math.max(right, to);
    }
    const { share, nodes } = matchedShare(flame, place, matches);
    assert.equal(nodes, edges.length, why);
    assert.ok(Math.abs(share - Math.min(1, covered)) < 1e-9, `${why}: ${share} is not ${covered}`);
}

await test('a chain of 180,000 frames is placed without recursion', () => {
    const count = 180000;
    const nodes = Array.from({ length: count }, (_, i) =>
        row(i - 1, i ? 1 : 0, i ? 'call' : 'root', { inclusive_ns: count - i, self_ns: 1 })
    );
    const flame = flameOf(nodes);
    const place = layout(flame, 'inclusive_ns');
    assert.equal(place.maxDepth, count - 1);
    assert.equal(pathTo(flame, count - 1).length, count);
    assert.equal(nodeAt(place, 1e-9, count - 1), count - 1);
    near(matchedShare(flame, place, matchFunctions(FUNCTIONS, 'parse')).share, (count - 1) / count);
});

await test('a finer answer hangs under the ancestors of a coarser one', () => {
    const base = flameOf(
        [
            row(-1, 0, 'root', { inclusive_ns: 100, self_ns: 0, calls: '9007199254740993' }),
            row(0, 1, 'call', { inclusive_ns: 60, self_ns: 10 }),
            row(0, 2, 'call', { inclusive_ns: 40, self_ns: 40 }),
            row(1, -1, 'folded', { inclusive_ns: 50, self_ns: 50, flags: FLAG.sliver, nodes: 2 }),
        ],
        ['a', 'b', 'c', null]
    );
    const coarse = layout(base, 'inclusive_ns');
    assert.deepEqual([...coarse.foldedBelow], [1, 1, 0, 1, 1]);
    const detail = decode({
        columns: COLUMNS,
        functions: [FUNCTIONS[2], FUNCTIONS[1]],
        contexts: ['b', 'd', 'e'],
        nodes: [
            row(-1, 1, 'call', { inclusive_ns: 60, self_ns: 10 }),
            row(0, 0, 'call', { inclusive_ns: 30, self_ns: 30, calls: '18446744073709551615' }),
            row(0, 0, 'call', { inclusive_ns: 20, self_ns: 20 }),
        ],
    });
    const merged = graft(base, nodeOf(base, 'b'), detail);
    assert.deepEqual([...merged.parent], [-1, 0, 1, 1]);
    assert.deepEqual(merged.contexts, ['a', 'b', 'd', 'e']);
    assert.deepEqual(
        [...merged.fn].map((fn) => merged.functions[fn].name),
        ['main', 'lib:parse', 'c:string.sub', 'c:string.sub']
    );
    assert.equal(exactValue(merged, 'calls', 0), '9007199254740993');
    assert.equal(exactValue(merged, 'calls', 2), '18446744073709551615');
    assert.equal(exactValue(merged, 'inclusive', 3), 20);
    const alone = graft(base, -1, detail);
    assert.deepEqual([...alone.parent], [-1, 0, 0]);
});

await test('the empty search matches nothing in particular', () => {
    assert.equal(matchFunctions(FUNCTIONS, '  '), null);
    assert.deepEqual([...matchFunctions(FUNCTIONS, 'main.lua')], [1, 0, 0]);
    assert.deepEqual(
        [...matchFunctions([{ name: '__proto__' }, { name: null, function_id: 3 }], 'function#3')],
        [0, 1]
    );
});

await test('text on every frame is readable in both themes', () => {
    const next = random(7);
    for (const theme of ['light', 'dark']) {
        const ink = channels(palette([], theme).text);
        for (let i = 0; i < 2000; i++) {
            const fn = { name: `f${next()}`, file: `m${next()}.lua`, kind: i % 5 ? 'bytecode' : 'native' };
            const ratio = contrast(fillOf(fn, theme), ink);
            assert.ok(ratio >= 4.5, `${theme}: contrast ${ratio.toFixed(2)}`);
        }
    }
});

function channels(text) {
    return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

function contrast(a, b) {
    const light = (rgb) =>
        rgb
            .map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
}

await test('colours are those of the file, and the same each time', () => {
    assert.equal(moduleOf({ name: 'a:b', file: 'x.lua' }), 'x.lua');
    assert.equal(moduleOf({ name: 'c:string.sub', file: null }), 'c:string');
    assert.equal(isNative({ kind: 'native' }), true);
    assert.equal(isNative({ kind: 'bytecode' }), false);
    const fn = { name: 'a:b', file: 'x.lua', kind: 'bytecode' };
    assert.deepEqual(fillOf(fn, 'light'), fillOf({ ...fn }, 'light'));
    assert.notDeepEqual(fillOf(fn, 'light'), fillOf({ ...fn, kind: 'native' }, 'light'));
});

await test('evidence in words', () => {
    assert.deepEqual(evidenceLines(null), []);
    assert.deepEqual(
        evidenceLines({ verdict: 'complete', issues: [], losses: {}, equations: [{ name: 'x', holds: null }] }),
        []
    );
    const lines = evidenceLines({
        issues: [
            { kind: 'missing_data_segment', sequence: 7 },
            { kind: 'missing_data_segment', sequence: 9 },
            { kind: 'brand_new' },
        ],
        issues_total: 5,
        losses: { evidence_queue_full: 3 },
        overflow_calls: '9007199254740993',
        timing_incomplete: 1,
        abandoned: 1,
        equations: [{ name: 'span_starts', left: 3, right: 2, holds: false }],
    });
    assert.deepEqual(lines, [
        'a segment of the recording is missing (7, 9)',
        'brand new',
        '2 more issues',
        'records of single calls dropped, as their queue was full: 3',
        '9,007,199,254,740,993 calls counted without a path, as memory for paths ran out',
        'times are incomplete on 1 path',
        'the process died before the run was closed; what it had committed is here',
        'span starts: 3 on one side, 2 on the other',
    ]);
    assert.equal(statusWords('no such').label, 'Unknown');
    assert.equal(statusWords('constructor').label, 'Unknown');
    assert.equal(verdictWords(null), null);
    assert.equal(verdictWords('partial').label, 'Partial');
});

done();
