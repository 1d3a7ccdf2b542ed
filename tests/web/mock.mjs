// A stand-in for `varve serve`: serves the page and made-up answers, for cases that are hard to record. Nothing in it
// comes from the real server but the form of the answers.
//
//   node mock.mjs [PORT]      prints the address and serves until it is stopped

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const WEB = fileURLToPath(new URL('../../web/', import.meta.url));
const TYPES = {
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.css': 'text/css',
    '.svg': 'image/svg+xml',
};
export const COLUMNS = [
    'parent',
    'function',
    'edge',
    'line',
    'calls',
    'open',
    'errors',
    'cancelled',
    'inclusive_ns',
    'self_ns',
    'await_ns',
    'unattributed_ns',
    'flags',
    'nodes',
];
const SLIVER = 32;

/** Numbers from a seed (mulberry32), 0 to 1. */
export function random(seed) {
    let state = seed >>> 0;
    return () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let t = Math.imul(state ^ (state >>> 15), state | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

const hex = (text) => createHash('sha256').update(text).digest('hex');

/** A graph under construction; `add` returns the node's index. Times are those of the node alone. */
class Tree {
    constructor(functions) {
        this.functions = functions;
        this.nodes = [];
    }

    add(parent, fn, own, more = {}) {
        const edge = parent < 0 ? 'root' : 'call';
        this.nodes.push({
            parent,
            fn,
            edge,
            line: 1,
            calls: 1,
            open: 0,
            errors: 0,
            cancelled: 0,
            self: own,
            await: 0,
            flags: 0,
            nodes: 1,
            ...more,
        });
        return this.nodes.length - 1;
    }

    finish() {
        const { nodes } = this;
        for (const node of nodes) {
            node.callees = 0;
            node.size = 0;
        }
        for (let i = nodes.length - 1; i >= 0; i--) {
            const node = nodes[i];
            node.inclusive = node.inclusive ?? node.self + node.await + node.callees;
            node.size = Math.max(node.inclusive, node.self + node.await + node.callees);
            if (node.parent >= 0 && node.edge !== 'spawn') nodes[node.parent].callees += node.size;
        }
        nodes.forEach((node, i) => {
            node.key =
                node.key ?? hex(`${node.parent < 0 ? '' : nodes[node.parent].key}/${node.fn}/${node.edge}/${i}`);
        });
        return this;
    }
}

const fn = (name, file, line, kind = 'bytecode') => ({
    name,
    function_id: 1,
    program: 'p1',
    kind,
    origin: kind === 'native' ? 'builtin' : 'user',
    file,
    line,
});

const FILES = [
    'main.lua',
    'lib/parser.lua',
    'lib/lexer.lua',
    'lib/stages/resolve.lua',
    'lib/stages/check.lua',
    'lib/report.lua',
    'util/fs.lua',
];
const WORDS = [
    'parse',
    'scan',
    'emit',
    'visit',
    'resolve',
    'check',
    'report',
    'open',
    'walk',
    'merge',
    'push',
    'collect',
    'format',
    'load',
];

function makeFunctions(count, next) {
    const functions = [fn('main chunk', 'main.lua', 0)];
    for (let i = 1; i < count; i++) {
        const native = i % 6 === 0;
        const file = FILES[Math.floor(next() * FILES.length)];
        const name = `${WORDS[Math.floor(next() * WORDS.length)]}_${WORDS[Math.floor(next() * WORDS.length)]}`;
        functions.push(
            native
                ? fn(`string.${name}`, null, null, 'native')
                : fn(
                      `${file.replace(/\.lua$/, '').replace(/\//g, '.')}.${name}`,
                      file,
                      1 + Math.floor(next() * 400)
                  )
        );
    }
    return functions;
}

/** A random tree of `count` nodes; children go under recent nodes, so it is both deep and wide. */
function randomTree(seed, count, functionCount = 60, depthBias = 0.35) {
    const next = random(seed);
    const tree = new Tree(makeFunctions(functionCount, next));
    tree.add(-1, 0, 4e5);
    for (let i = 1; i < count; i++) {
        const back = Math.floor(next() ** (1 / depthBias) * i);
        const id = 1 + Math.floor(next() * (functionCount - 1));
        const own = Math.floor(next() ** 4 * 3e6) + 50;
        tree.add(next() < 0.5 ? i - 1 - Math.min(i - 1, Math.floor(next() * 6)) : back, id, own, {
            calls: 1 + Math.floor(next() ** 6 * 5000),
            errors: next() < 0.015 ? 1 + Math.floor(next() * 4) : 0,
            await: next() < 0.04 ? Math.floor(next() * 2e6) : 0,
        });
    }
    return tree.finish();
}

function spawnTree() {
    const tree = new Tree([
        fn('main chunk', 'main.lua', 0),
        fn('producer', 'main.lua', 10),
        fn('consumer', 'main.lua', 30),
        fn('coroutine.resume', null, null, 'native'),
        fn('step', 'work.lua', 3),
    ]);
    const main = tree.add(-1, 0, 2e6);
    const resume = tree.add(main, 3, 1e5, { await: 5e6, calls: 40 });
    const made = tree.add(resume, 1, 3e6, { edge: 'spawn' });
    tree.add(made, 4, 1.5e6, { calls: 400 });
    const used = tree.add(main, 2, 4e5, { edge: 'spawn', await: 2e7 });
    tree.add(used, 4, 9e6, { calls: 800, errors: 3 });
    return tree.finish();
}

function overflowTree() {
    const tree = randomTree(5, 400);
    tree.add(-1, -1, 9e6, {
        edge: 'unknown',
        flags: 2,
        calls: 12345,
        key: 'overflow:context_memory_unavailable_after_drain:call',
    });
    tree.add(-1, 7, 6e6, { edge: 'unknown', flags: 4, calls: 17 });
    tree.add(0, -1, 5e6, { flags: 8, calls: 3 });
    tree.add(0, 3, 4e6, { flags: 16, calls: 3 });
    tree.add(0, 4, 4e6, { flags: 1, open: 1, calls: 1 });
    return tree.finish();
}

export const WEIRD_NAMES = [
    '<img src=x onerror="window.hacked=1">',
    '',
    'имя.функции',
    'دالة.عربية',
    '関数🔥名',
    'a'.repeat(3000),
    'new\nline\tand\u0000nul',
    '"><script>window.hacked=1</script>',
    '\u202Eevil.txt',
    '   ',
    '__proto__',
    'constructor',
];

function weirdTree() {
    const tree = new Tree([
        fn('main chunk', 'main.lua', 0),
        ...WEIRD_NAMES.map((name, i) => fn(name, i % 2 ? name : 'x.lua', i)),
        fn({ base64: '//79', preview: '\uFFFD\uFFFD\uFFFD' }, 'bytes.lua', 1),
    ]);
    const main = tree.add(-1, 0, 1e6);
    for (let i = 1; i < tree.functions.length; i++) tree.add(main, i, 2e6);
    return tree.finish();
}

function hugeTree() {
    const tree = new Tree([fn('main chunk', 'main.lua', 0), fn('forever', 'main.lua', 3)]);
    const huge = { self: '9007199254740993000', inclusive: '18446744073709551615', calls: '18446744073709551614' };
    tree.nodes.push({
        parent: -1,
        fn: 0,
        edge: 'root',
        line: 1,
        calls: 1,
        open: 0,
        errors: 0,
        cancelled: 0,
        self: 0,
        await: 0,
        flags: 0,
        nodes: 1,
        inclusive: '18446744073709551615',
        key: hex('a'),
        size: 2 ** 64,
        callees: 0,
    });
    tree.nodes.push({
        parent: 0,
        fn: 1,
        edge: 'call',
        line: 1,
        open: 0,
        errors: 0,
        cancelled: 0,
        await: 0,
        flags: 0,
        nodes: 1,
        key: hex('b'),
        size: 2 ** 64,
        callees: 0,
        ...huge,
    });
    return tree;
}

function deepTree(depth) {
    const tree = new Tree([fn('main chunk', 'main.lua', 0), fn('recurse', 'deep.lua', 2)]);
    let node = tree.add(-1, 0, 1000);
    for (let i = 1; i < depth; i++) node = tree.add(node, 1, 1000);
    return tree.finish();
}

/** The whole tree, or what is under a root, with what is narrower than half a pixel folded. */
function flameAnswer(state, run, query) {
    const tree = run.tree();
    const metric = query.get('metric') || 'inclusive_ns';
    const width = run.fold === false ? 0 : Number(query.get('width') || 0);
    const rootKey = query.get('root');
    const start = rootKey ? tree.nodes.findIndex((node) => node.key === rootKey) : -1;
    if (rootKey && start < 0) return null;
    const size = sizes(tree, metric);
    const whole =
        start >= 0 ? size[start] : tree.nodes.reduce((sum, node, i) => sum + (node.parent < 0 ? size[i] : 0), 0);
    const limit = width ? whole / width / 2 : 0;
    const index = new Int32Array(tree.nodes.length).fill(-1);
    const rows = [];
    const contexts = [];
    const slivers = new Map();
    let folded = 0;
    tree.nodes.forEach((node, i) => {
        const inside =
            i === start || (start < 0 && node.parent < 0) || (node.parent >= 0 && index[node.parent] >= 0);
        if (!inside || (start >= 0 && i < start)) return;
        const parent = i === start || node.parent < 0 ? -1 : index[node.parent];
        if (size[i] < limit && parent >= 0) {
            folded += subtree(tree, i, (below) => addSliver(slivers, parent, tree.nodes[below], below === i));
            return;
        }
        index[i] = rows.length;
        rows.push([
            parent,
            node.fn,
            node.edge,
            node.line,
            node.calls,
            node.open,
            node.errors,
            node.cancelled,
            node.inclusive,
            node.self,
            node.await,
            0,
            node.flags,
            1,
        ]);
        contexts.push(node.key);
    });
    for (const [parent, s] of slivers) {
        rows.push([
            parent,
            -1,
            'folded',
            null,
            s.calls,
            0,
            s.errors,
            0,
            s.inclusive,
            s.self,
            s.await,
            0,
            SLIVER,
            s.nodes,
        ]);
        contexts.push(null);
    }
    return {
        snapshot: state.snapshot(),
        evidence: run.evidence,
        metric: { name: metric, unit: metric.endsWith('_ns') ? 'ns' : 'calls' },
        order: 'top_down',
        totals: { calls: run.row.total_calls },
        functions: tree.functions,
        columns: COLUMNS,
        nodes: rows,
        contexts: query.get('ids') === '1' ? contexts : undefined,
        folded: { nodes: folded, calls: 0, self_ns: 0 },
        truncated: false,
    };
}

function subtree(tree, start, visit) {
    tree.children = tree.children || childLists(tree);
    const stack = [start];
    let count = 0;
    while (stack.length) {
        const node = stack.pop();
        visit(node);
        count++;
        stack.push(...(tree.children.get(node) || []));
    }
    return count;
}

function childLists(tree) {
    const children = new Map();
    tree.nodes.forEach((node, i) => {
        if (!children.has(node.parent)) children.set(node.parent, []);
        children.get(node.parent).push(i);
    });
    return children;
}

function addSliver(slivers, parent, node, top) {
    const s = slivers.get(parent) || { calls: 0, errors: 0, inclusive: 0, self: 0, await: 0, nodes: 0 };
    s.calls += node.calls;
    s.errors += node.errors;
    s.self += node.self;
    s.await += node.await;
    if (top) s.inclusive += node.size;
    s.nodes++;
    slivers.set(parent, s);
}

function sizes(tree, metric) {
    const own = { self_ns: 'self', await_ns: 'await', calls: 'calls', errors: 'errors' }[metric];
    const size = new Float64Array(tree.nodes.length);
    for (let i = tree.nodes.length - 1; i >= 0; i--) {
        const node = tree.nodes[i];
        if (!own) size[i] = Number(node.size);
        else {
            size[i] += Number(node[own]);
            if (node.parent >= 0) size[node.parent] += size[i];
        }
    }
    return size;
}

function functionRows(tree) {
    const rows = tree.functions.map((entry) => ({
        ...entry,
        calls: 0,
        errors: 0,
        cancelled: 0,
        self_ns: 0,
        inclusive_ns: 0,
        await_ns: 0,
        contexts: 0,
    }));
    tree.nodes.forEach((node) => {
        const row = rows[node.fn];
        if (!row) return;
        for (const [key, from] of [
            ['calls', 'calls'],
            ['errors', 'errors'],
            ['self_ns', 'self'],
            ['await_ns', 'await'],
        ]) {
            row[key] = typeof node[from] === 'string' ? node[from] : row[key] + node[from];
        }
        row.contexts++;
        let above = node.parent;
        while (above >= 0 && tree.nodes[above].fn !== node.fn) above = tree.nodes[above].parent;
        if (above < 0)
            row.inclusive_ns =
                typeof node.inclusive === 'string' ? node.inclusive : row.inclusive_ns + node.inclusive;
    });
    return rows.filter((row) => Number(row.calls) > 0);
}

function evidence(verdict, more = {}) {
    return {
        verdict,
        executions: 1,
        running: 0,
        abandoned: 0,
        index_states: {},
        data_states: {},
        issues: [],
        losses: {},
        overflow_calls: 0,
        timing_incomplete: 0,
        equations: [],
        truncated: false,
        ...more,
    };
}

const once = (make) => {
    let made = null;
    return () => made || (made = make());
};

/** @returns {Array<Object>} runs, newest first */
function makeRuns(state) {
    const runs = [];
    const add = (name, status, tree, more = {}) => {
        const id = `baml_thread_1_${hex(name).slice(0, 44)}`;
        const verdict = more.verdict || 'complete';
        const minutes = runs.length ** 3 * 7 + 1;
        runs.push({
            tree,
            evidence: evidence(verdict, more.evidence),
            fold: more.fold,
            row: {
                execution_id: id,
                short_id: `${hex(name).slice(0, 8)}.1.1`,
                entry_fqn: name,
                source_label: more.label ?? `${name}.lua`,
                program_id: hex('p').slice(0, 16),
                status,
                verdict,
                started_at: new Date(state.now - minutes * 60000).toISOString(),
                ended_at: null,
                duration_ns: 1.234e9 * (runs.length + 1),
                total_calls: 12345 * (runs.length + 1),
                total_errors: 0,
                total_cancelled: 0,
                ...more.row,
            },
        });
    };
    add('growing', 'running', () => state.growing(), { verdict: 'running', row: { duration_ns: null } });
    add(
        'luacheck',
        'succeeded',
        once(() => randomTree(1, 2500)),
        { row: { total_errors: 31 }, label: 'bin/luacheck.lua' }
    );
    add('coroutines', 'succeeded', once(spawnTree));
    add(
        'broken',
        'failed',
        once(() => randomTree(2, 300)),
        { row: { total_errors: 1 } }
    );
    add(
        'stopped',
        'cancelled',
        once(() => randomTree(3, 200))
    );
    add(
        'crashed',
        'panicked',
        once(() => randomTree(4, 120))
    );
    add(
        'killed',
        'abandoned',
        once(() => randomTree(6, 800)),
        { verdict: 'partial', evidence: { abandoned: 1 }, row: { duration_ns: null } }
    );
    add('overflowing', 'succeeded', once(overflowTree), {
        verdict: 'partial',
        evidence: { overflow_calls: 12345, timing_incomplete: 1, losses: { evidence_queue_full: 3 } },
    });
    add(
        'damaged',
        'succeeded',
        once(() => randomTree(8, 500)),
        {
            verdict: 'damaged',
            evidence: {
                issues: [
                    { kind: 'missing_data_segment', sequence: 7 },
                    { kind: 'missing_data_segment', sequence: 8 },
                    { kind: 'corrupt_data_segment', sequence: 11 },
                ],
                issues_total: 5,
                equations: [{ name: 'span_starts', left: 120, right: 118, holds: false, terms: {} }],
            },
        }
    );
    add(
        'large',
        'succeeded',
        once(() => randomTree(9, 100000, 400)),
        { fold: false }
    );
    add(
        'folding',
        'succeeded',
        once(() => randomTree(10, 60000, 300))
    );
    add(
        'deep',
        'succeeded',
        once(() => deepTree(5000)),
        { fold: false }
    );
    add(WEIRD_NAMES[0], 'succeeded', once(weirdTree), { label: '' });
    add('', 'succeeded', once(hugeTree), {
        label: 'huge.lua',
        row: { total_calls: '18446744073709551615', duration_ns: '18446744073709551615' },
    });
    add(
        'empty',
        'succeeded',
        once(() => new Tree([])),
        { row: { total_calls: 0, duration_ns: 12 } }
    );
    return runs;
}

class State {
    constructor() {
        this.now = Date.now();
        this.generation = 1;
        this.ticks = 3;
        this.scene = 'full';
        this.runs = makeRuns(this);
        /** Who follows: functions of an event's name. */
        this.followers = new Set();
        this.epoch = hex(`${this.now} ${Math.random()}`).slice(0, 16);
    }

    turn() {
        this.generation++;
        for (const tell of this.followers) tell('change');
    }

    event(full) {
        const { generation, as_of: asOf } = this.snapshot();
        const cursor = `${this.epoch}-${this.generation}`;
        return { cursor, generation, as_of: asOf, changed: true, full, streams: [] };
    }

    growing() {
        const tree = new Tree([
            fn('main chunk', 'main.lua', 0),
            fn('loop', 'main.lua', 4),
            fn('string.rep', null, null, 'native'),
        ]);
        const main = tree.add(-1, 0, 1e6, { flags: 1, open: 1, inclusive: 0 });
        const loop = tree.add(main, 1, this.ticks * 2e6, { calls: this.ticks * 1000 });
        tree.add(loop, 2, this.ticks * 1e6, { calls: this.ticks * 5000 });
        return tree.finish();
    }

    /** The running program commits some more. */
    grow() {
        this.ticks++;
        this.runs[0].row.total_calls = this.ticks * 6001;
        this.turn();
    }

    /** Another program of the same store commits something: the generation moves, no run shown does. */
    touch() {
        this.turn();
    }

    end() {
        Object.assign(this.runs[0].row, { status: 'succeeded', verdict: 'complete', duration_ns: 5e9 });
        this.runs[0].evidence = evidence('complete');
        this.turn();
    }

    snapshot() {
        return { generation: hex(String(this.generation)), as_of: String(this.generation), streams: [] };
    }

    list(query) {
        const q = (query.get('q') || '').toLowerCase();
        const status = query.get('status');
        const all = this.scene === 'full' ? this.runs : [];
        const items = all
            .map((run) => run.row)
            .filter(
                (row) =>
                    (!status || row.status === status) &&
                    (!q || `${row.entry_fqn} ${row.source_label} ${row.short_id}`.toLowerCase().includes(q))
            );
        return { snapshot: this.snapshot(), evidence: evidence('complete'), items, next: null };
    }
}

function answer(state, url) {
    const query = url.searchParams;
    const parts = url.pathname.split('/').slice(3).map(decodeURIComponent);
    const find = (id) => state.runs.find((run) => run.row.execution_id === id || run.row.short_id === id);
    if (parts[0] === 'meta') return { store: { name: 'mock/.baml', present: state.scene !== 'no-store' } };
    if (parts[0] === 'executions' && !parts[1]) return state.scene === 'no-store' ? null : state.list(query);
    if (parts[0] === 'executions') {
        const run = find(parts[1]);
        return run && { snapshot: state.snapshot(), evidence: run.evidence, execution: run.row, totals: {} };
    }
    const run = find(query.get('execution'));
    if (!run) return null;
    if (parts[0] === 'flame') return flameAnswer(state, run, query);
    if (parts[0] === 'functions') {
        return { snapshot: state.snapshot(), evidence: run.evidence, items: functionRows(run.tree()), next: null };
    }
    return null;
}

const SECURITY = {
    'Content-Security-Policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
};

const files = {};

async function serveFile(response, path, extra) {
    const name = normalize(path === '/' ? '/index.html' : path);
    const body = extra[name] ?? (files[name] ||= await readFile(join(WEB, name)).catch(() => null));
    if (body === null) {
        response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not found\n');
        return;
    }
    response
        .writeHead(200, {
            ...SECURITY,
            'Content-Type': TYPES[extname(name)] || 'text/plain',
            'Cache-Control': 'no-cache',
        })
        .end(body);
}

/** As the server's: events without end, or one answer when something has changed. */
function follow(state, request, response, url) {
    const events = (request.headers.accept || '').includes('text/event-stream');
    if (state.following === 'none' || (state.following === 'polls' && events)) {
        response.writeHead(503, { 'Content-Type': 'application/problem+json', 'Retry-After': '5' }).end('{}');
        return;
    }
    const type = events ? 'text/event-stream' : 'application/json';
    response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-store' });
    const tell = (name) => {
        const data = state.event(name === 'snapshot');
        if (events) {
            response.write(`event: ${name}\nid: ${data.cursor}\ndata: ${JSON.stringify(data)}\n\n`);
        } else {
            state.followers.delete(tell);
            response.end(JSON.stringify(data));
        }
    };
    response.on('close', () => state.followers.delete(tell));
    const cursor = request.headers['last-event-id'] || url.searchParams.get('cursor');
    state.followers.add(tell);
    if (cursor !== state.event().cursor) tell('snapshot');
    else if (events) response.write(':\n\n');
}

/**
 * Starts the stand-in.
 * @param {Object<string, string>} [extra] further files by path, for comparisons
 * @returns {Promise<{url: string, state: State, log: Array<string>, close: () => void}>} log: what was asked, but for
 * following
 */
export async function startMock(port = 0, extra = {}) {
    const state = new State();
    const log = [];
    const bodies = new Map();
    const server = createServer(async (request, response) => {
        const url = new URL(request.url, 'http://localhost');
        if (!url.pathname.startsWith('/api/')) {
            await serveFile(response, url.pathname, extra);
            return;
        }
        if (url.pathname === '/api/v1/follow') {
            follow(state, request, response, url);
            return;
        }
        const etag = `"${hex(`${state.generation} ${state.scene} ${request.url}`).slice(0, 32)}"`;
        const fresh = request.headers['if-none-match'] === etag;
        log.push(`${fresh ? 304 : 200} ${request.url}`);
        if (fresh) {
            response.writeHead(304, { ETag: etag }).end();
            return;
        }
        // The largest answers are made once, so that a timing of the page is not one of this stand-in.
        let body = bodies.get(etag);
        if (!body) {
            const data = answer(state, url);
            body = data && Buffer.from(JSON.stringify(data));
            if (body && body.length > 1e6) bodies.set(etag, body);
        }
        if (!body) {
            response.writeHead(404, { 'Content-Type': 'application/problem+json' }).end(
                JSON.stringify({
                    title: 'Not found',
                    detail: 'There is no such thing here.',
                    remedy: 'Look at the list of runs.',
                })
            );
            return;
        }
        response
            .writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache', ETag: etag })
            .end(body);
    });
    await new Promise((resolve) => {
        server.listen(port, '127.0.0.1', resolve);
    });
    return {
        url: `http://127.0.0.1:${server.address().port}/`,
        state,
        log,
        close: () => {
            server.closeAllConnections();
            server.close();
        },
    };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const mock = await startMock(Number(process.argv[2] || 0));
    process.stdout.write(`listening on ${mock.url}\n`);
    setInterval(() => mock.state.grow(), 1000);
}
