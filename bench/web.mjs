// Prints how long the page takes from navigation to a drawn graph of 100,000 frames, and how long a page takes that
// does the least possible with the same answer: one script that fetches, places and fills rectangles. VV_BENCH_ROUNDS
// pairs (15), interleaved.

import { launch, open, until } from '../tests/web/browser.mjs';
import { startMock } from '../tests/web/mock.mjs';

const LIMIT = 1.5;
const rounds = Number(process.env.VV_BENCH_ROUNDS || 15);

const BARE_HTML = '<!doctype html><canvas width="1280" height="600"></canvas><script src="/bare.js"></script>';
const BARE_JS = `
    const canvas = document.querySelector('canvas');
    const ctx = canvas.getContext('2d', { alpha: false });
    const colours = Array.from({ length: 16 }, (_, i) => 'hsl(' + i * 22 + ' 60% 75%)');
    (async () => {
        const { nodes } = await (await fetch(location.search.slice(1))).json();
        const x = new Float64Array(nodes.length);
        const next = new Float64Array(nodes.length);
        const depth = new Int32Array(nodes.length);
        const scale = canvas.width / nodes[0][8];
        ctx.fillStyle = '#fff';
        ctx.fillRect(0, 0, canvas.width, canvas.height);
        for (let i = 0; i < nodes.length; i++) {
            const parent = nodes[i][0];
            if (parent >= 0) {
                x[i] = next[parent];
                next[parent] += nodes[i][8];
                depth[i] = depth[parent] + 1;
            }
            next[i] = x[i];
            const width = nodes[i][8] * scale;
            if (width < 1 || depth[i] * 22 > canvas.height) continue;
            ctx.fillStyle = colours[nodes[i][1] & 15];
            ctx.fillRect(x[i] * scale, depth[i] * 22, width - 1, 21);
        }
        performance.mark('flame-drawn');
    })();
`;

const mock = await startMock(0, { '/bare.html': BARE_HTML, '/bare.js': BARE_JS });
const { browser, close } = await launch();
const id = mock.state.runs.find((run) => run.row.entry_fqn === 'large').row.execution_id;
const answer = `/api/v1/flame?execution=${id}&metric=inclusive_ns&width=1280&ids=1`;
const pages = { bare: `${mock.url}bare.html?${answer}`, varve: `${mock.url}#/x/${id}/flame` };
const times = { bare: [], varve: [] };
const paints = [];
const heaps = { bare: 0, varve: 0 };

async function measure(kind) {
    const { page } = await open(browser, mock.url);
    await page.goto(pages[kind]);
    const at = await until('drawn', () =>
        page.evaluate(() => performance.getEntriesByName('flame-drawn')[0]?.startTime)
    );
    times[kind].push(at);
    const client = await page.context().newCDPSession(page);
    await client.send('HeapProfiler.collectGarbage');
    heaps[kind] = (await client.send('Runtime.getHeapUsage')).usedSize / 2 ** 20;
    if (kind === 'varve') paints.push(...(await redraws(page)));
    await page.close();
}

// The pointer over the graph and one zoom: what a redraw costs inside the page.
async function redraws(page) {
    await page.evaluate(async () => {
        const { Painter } = await import('/flame-draw.js');
        const paint = Painter.prototype.paint;
        window.paints = [];
        Painter.prototype.paint = function timed(scene) {
            const start = performance.now();
            const drawn = paint.call(this, scene);
            window.paints.push(performance.now() - start);
            return drawn;
        };
    });
    const box = await page.locator('canvas.flame').boundingBox();
    for (let i = 0; i < 12; i++) await page.mouse.move(box.x + 40 + 90 * i, box.y + 30 + 3 * i);
    await page.mouse.click(box.x + 30, box.y + 60);
    return until('redraws', () => page.evaluate(() => (window.paints.length > 12 ? window.paints : null)));
}

const sorted = (list) => [...list].sort((a, b) => a - b);
const at = (list, part) => sorted(list)[Math.min(list.length - 1, Math.floor(list.length * part))];
const spread = (list) =>
    `${at(list, 0.5).toFixed(0)} ms (${at(list, 0.1).toFixed(0)} to ${at(list, 0.9).toFixed(0)})`;

await measure('bare');
await measure('varve');
for (const list of Object.values(times)) list.length = 0;
paints.length = 0;
for (let round = 0; round < rounds; round++) {
    for (const kind of round % 2 ? ['varve', 'bare'] : ['bare', 'varve']) await measure(kind);
}
await close();
mock.close();
const ratio = at(times.varve, 0.5) / at(times.bare, 0.5);
process.stdout.write(
    `navigation to drawn, 100,000 frames, bare canvas: ${spread(times.bare)}, heap ${heaps.bare.toFixed(1)} MiB\n` +
        `navigation to drawn, 100,000 frames, the page: ${spread(times.varve)}, heap ${heaps.varve.toFixed(1)} MiB\n` +
        `redraw: median ${at(paints, 0.5).toFixed(1)} ms, 95 % below ${at(paints, 0.95).toFixed(1)} ms\n` +
        `page / bare canvas: ${ratio.toFixed(2)} (limit ${LIMIT})\n`
);
process.exitCode = ratio <= LIMIT || rounds < 10 ? 0 : 1;
